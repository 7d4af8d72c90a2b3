"""Tables of runs side by side, whose figures must be of the same quantity."""

import math
from collections.abc import Callable

from zoo.errors import UserError
from zoo.lab.comparison import comparison, paired, parts, seeds
from zoo.lab.comparison.comparison import ALL_TEXTS, Comparison, TextFilter
from zoo.lab.evaluation import (
    agreement,
    evaluation_texts,
    leakage,
    mixtures,
    passport,
    scored_texts,
    sentence_scores,
    significance,
)
from zoo.lab.evaluation.passport import priors_that_saw, seen_text_lines, unfinished
from zoo.lab.evaluation.results import judged_texts, names_of, read_answers
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files, text_tables
from zoo.lab.runs.workdir import check_folders

NOT_RANKED = "!"


def tables(folders: list[str], in_parts: bool = False, wanted: TextFilter = ALL_TEXTS) -> str:
    """Makes tables of the results of runs; docs/passports.md lists columns and order."""
    runs = Comparison.from_paths(folders)
    lines = []
    paths = runs.paths.values()
    every = read_answers(paths)
    answers = {
        one: of_runs for one, of_runs in every.items() if wanted.accepts(str(one), one.digest)
    }
    if not answers or any(wanted.accepts(*text) for run in paths for text in judged_texts(run)):
        lines = _loss_lines(runs, in_parts, wanted)
    names = {path: name for name, path in runs.paths.items()}
    for questions, of_runs in answers.items():
        named = {names[run]: found for run, found in of_runs.items()}
        lines += _accuracy_lines(runs, str(questions), named)
    return "\n".join(text_tables.wrap_lines(lines)).removeprefix("\n")


def _loss_lines(runs, in_parts, wanted):
    """Returns the table of log-perplexities and the notes below it, as lines."""
    table = comparison.rank(runs, wanted)
    mixed = {
        name: steps
        for name, results in table.runs.items()
        if len(steps := _columns_by_step(results)) > 1
    }
    groups, lines = table.ranked, []
    for head, *made in text_tables.join_tables(_table_blocks(table, mixed)):
        lines += [head, *made[: len(groups)]]
        if table.unranked:
            lines += ["not ranked:", *made[len(groups) :]]
    lines += [f"{group.name}: {', '.join(group.runs)}" for group in groups if len(group.runs) > 1]
    first = {group.name: group.runs[0] for group in groups + table.unranked}
    recipes = {name: recipe for name, run in first.items() if (recipe := runs.recipes[run])}
    results = {name: [*table.runs[run].values()] for name, run in first.items()}
    knowledge = {name: of_run[0].get("knowledge") for name, of_run in results.items()}
    lines += seeds.difference_lines(recipes, knowledge)
    lines.append(_describe_ranking(table))
    for column, passports in table.columns.items():
        lines += _column_notes(table.names[column], passports)
        of_groups = (table.losses[column, group] for group in groups)
        lines += paired.loss_lines([one for one in of_groups if one is not None])
        if in_parts:
            there = {group.name: table.passports(column, group) for group in groups}
            kept = {name: of_group for name, of_group in there.items() if of_group}
            lines += parts.part_lines(table.names[column], kept)
    for name, steps in mixed.items():
        checkpoints = "; ".join(f"{columns} of step {step}" for step, columns in steps.items())
        lines.append(
            f"* {name} was judged at different checkpoints, {checkpoints}: evaluate it again."
        )
    return lines


def _table_blocks(table, mixed):
    """Returns the blocks of the table, (header, rows): names, and each column of results."""
    rows = []
    groups = table.ranked + table.unranked
    for group in groups:
        results = table.runs[group.runs[0]]
        plain = [passport for column, passport in results.items() if not column.learns]
        any_result = (plain or [*results.values()])[0]
        star = " *" if any(name in mixed for name in group.runs) else ""
        head = any_result["head"].partition("(")[0]
        rows.append([f"{group.name}{star}", head, f"{any_result['parameters']:,}"])
    blocks = [(["run", "head", "parameters"], rows)]
    for column in table.columns:
        of_groups = [table.losses[column, group] for group in groups]
        several = any(one and len(one.losses) > 1 for one in of_groups)
        kept = any(one and not math.isnan(one.interval[0]) for one in of_groups)
        header = [f"{table.names[column]}: nats"]
        header += ["seeds"] * several + ["95 %"] * kept + ["perplexity"]
        cells = []
        for group, one in zip(groups, of_groups, strict=True):
            if one is None:
                cells.append(["-"] * (2 + several + kept))
                continue
            row = comparison.make_row(one, table.passports(column, group))
            spread = _format_range(*one.loss_range) if len(one.losses) > 1 else "-"
            perplexity = f"{row.perplexity:,.2f}" + f" {NOT_RANKED}" * row.text_seen
            ranges = [spread] * several + [_format_range(*one.interval)] * kept
            judged, seeds_of = len(one.losses), len(group.runs)
            some = f" ({judged} of {seeds_of} seeds)" if judged < seeds_of else ""
            cells.append([f"{one.loss:.4f}{some}", *ranges, perplexity])
        blocks.append((header, cells))
    return blocks


def _format_range(low, high):
    return "-" if math.isnan(low) else f"[{low:.4f}, {high:.4f}]"


def _accuracy_lines(runs, split, of_runs):
    """Returns the table of the accuracies of runs on the same questions, and tests of them."""
    rows = []
    for name, (record, _) in of_runs.items():
        figures = record["figures"]
        right, accuracy = int(figures["right"]), float(figures["accuracy"])
        interval = significance.binomial_interval(right, int(record["tokens"]))
        cells = [name, f"{accuracy:.2%}", significance.percent(interval), f"{right:,}"]
        rows.append((-accuracy, [*cells, f"{record['tokens']:,}"]))
    rows.sort(key=lambda row: row[0])
    header = [split, "accuracy", "95 %", "right", "of"]
    keys = {name: runs.run_key(name, record) for name, (record, _) in of_runs.items()}
    groups = seeds.group_by_recipe(keys)
    of_groups = {
        group.name: [float(of_runs[run][0]["figures"]["accuracy"]) for run in group.runs]
        for group in runs.make_groups(groups, seeds.name_groups(groups))
    }
    return [
        "",
        *text_tables.align(header, [row for _, row in rows]),
        *paired.answer_lines(split, of_runs),
        *paired.accuracy_lines(of_groups),
    ]


def _describe_ranking(table):
    name = table.names[table.ranking_column]
    if not comparison.any_unseen(table.columns[table.ranking_column]):
        return f"nothing is ranked: no run's figure on {name} is one of unseen text"
    order = f"ranked by {name}"
    if leakage.is_validation(table.ranking_column.split):
        order += (
            ", a text that the checkpoints were chosen on: figures of validation, not of a test"
        )
    return order


def _columns_by_step(results):
    """Returns {training step: the columns that come from it} of a run."""
    names = names_of(results)
    steps: dict = {}
    for column, record in results.items():
        steps.setdefault(record.get("checkpoint"), []).append(names[column])
    return {step: " and ".join(columns) for step, columns in steps.items()}


def _column_notes(name, passports):
    """Yields the tokens that a column counts, and how much of its text runs and priors had seen."""
    passport = next(iter(passports.values()))
    yield (
        f"{name}: {passport['tokens']:,} tokens: {passport['counts']}; normalised over "
        f"{passport['normalised_over']}"
    )
    for run, passport in passports.items():
        if why := leakage.reason(passport):
            yield f"  {NOT_RANKED} {run}: {why}"
    for told in (
        unfinished,
        seen_text_lines,
        _distribution_changes,
        lambda one: [priors_that_saw(one)],
    ):
        found = seeds.runs_by_line({run: told(passport) for run, passport in passports.items()})
        for line, runs in found.items():
            every = len(runs) == len(passports) > seeds.MOST_NAMED
            yield f"  {line} ({'all runs' if every else ', '.join(runs)})"


def _distribution_changes(passport):
    """Returns a line on how the judged distribution differs from the trained one, if it does."""
    lexicon = passport["lexicon"]
    trained = lexicon.get("of_training")
    letters = passport.get("spread_letters")
    how = f" by {letters}-grams of their letters" if letters else ""
    ways = {
        "over other words than in training": trained and trained["words"] != lexicon["words"],
        f"the unknown word's probability spread over new words{how}": passport["spread_unknown"],
        "renormalised over the lexicon": passport["renormalised"],
    }
    learned = passport.get("learns_from_text") or ()
    ways |= {f"learns from the text that it is judged on, by {way}": True for way in learned}
    found = [way for way, is_so in ways.items() if is_so]
    return ["; ".join(found)] if found else []


# ---- runs side by side on a text that none of them was made for, with the lexicons that they have
# A comparison on a run's own test may depend on choices that were made with that test at hand,
# above all on a lexicon read off it. Here the lexicon is fixed before the text is read: out-of-
# vocabulary words are <unk>.


def judge_and_compare(
    workdirs: list[str],
    path: str,
    load: Callable[[str], Run] = Run.load,
    state: str | None = None,
    mixed: bool = False,
):
    """Prints the figures of runs on a text, in parts, and the tests of their differences."""
    check_folders(workdirs)
    for workdir in workdirs:
        passport.check(workdir)
    treebank = evaluation_texts.is_treebank(path)
    texts = set()
    for workdir in workdirs:
        run = load(workdir)
        records = [_judge_text(run, path, state, mixed)]
        if treebank:
            records += _judge_pairs(run, path)
        texts |= {record["data"]["sha256"] for record in records}
    output_files.show(tables(workdirs, in_parts=True, wanted=TextFilter(texts)))


def _judge_text(run, path, state, mixed) -> dict:
    """Judges and keeps the log-perplexity of a run."""
    (scored,) = scored_texts.score(run, [], path, state)
    judgement = scored.judgement(mixtures.from_run(scored.run) if mixed else None)
    record = judgement.passport
    output_files.show(*map(str, judgement.keep()))
    unknown = record["out_of_vocabulary"]
    told = sentence_scores.share(record["data"]["words"], unknown, path)
    for note in filter(None, (told, *judgement.notes, *judgement.warnings)):
        output_files.show(f"  {note}")
    return record


def _judge_pairs(run, path) -> list[dict]:
    """Judges and keeps the accuracy of a run on agreement pairs; [] if the text has none."""
    try:
        (judgement,) = agreement.judge(run, [], path)
    except UserError as error:
        output_files.show(f"{run.path}: {error}")
        return []
    output_files.show(*map(str, judgement.keep()))
    return [judgement.passport]
