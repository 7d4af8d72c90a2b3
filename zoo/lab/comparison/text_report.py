"""Tables of runs side by side, whose figures must be of the same quantity."""

from collections.abc import Sequence
from typing import Any

from zoo.lab.comparison import paired, parts, seeds
from zoo.lab.comparison.comparison import (
    FIGURES,
    NOT_RANKED,
    Comparison,
    figure_cells,
    rank,
)
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.figures import is_validation
from zoo.lab.evaluation.passport import prior_line, seen_text_lines, unfinished
from zoo.lab.evaluation.results import judged_splits, names_of, read_answers
from zoo.lab.table import COUNT, PERCENT, Column, Table, wrap_lines


def tables(folders: list[str], in_parts: bool = False, splits: Sequence[str] = ()) -> str:
    """Formats the results of runs on some splits, () for all, as tables; docs/passports.md lists
    columns and order."""
    comparison = Comparison.from_paths(folders)
    lines = []
    paths = comparison.paths.values()
    answers = read_answers(paths)
    chosen = [text for text in answers if not splits or str(text) in splits]
    judged = {split for run in paths for split in judged_splits(run)}
    if not chosen or (judged & {*splits} if splits else judged):
        lines = _loss_lines(comparison, in_parts, splits)
    names = {path: name for name, path in comparison.paths.items()}
    for text in chosen:
        passports = {names[path]: passport for path, passport in answers[text].items()}
        lines += _accuracy_lines(comparison, str(text), passports)
    return "\n".join(wrap_lines(lines)).removeprefix("\n")


def _loss_lines(comparison, in_parts, splits):
    """Returns the table of log-perplexities and the notes below it, as lines."""
    ranking = rank(comparison, splits)
    mixed = [
        name
        for name, results in ranking.runs.items()
        if len({passport.checkpoint for passport in results.values()}) > 1
    ]
    groups, lines = ranking.ranked, [*_figure_table(ranking, mixed).text(fold=True)]
    lines += [f"{group.name}: {', '.join(group.runs)}" for group in groups if len(group.runs) > 1]
    first = {group.name: group.runs[0] for group in groups + ranking.unranked}
    recipes = {name: recipe for name, run in first.items() if (recipe := comparison.recipes[run])}
    results = {name: [*ranking.runs[run].values()] for name, run in first.items()}
    knowledge = {name: passports[0].knowledge for name, passports in results.items()}
    lines += seeds.compare_recipes(recipes, knowledge)
    lines.append(_describe_ranking(ranking))
    for column, passports in ranking.columns.items():
        lines += _column_notes(ranking.names[column], passports)
        losses_by_group = ranking.losses[column]
        ranked = [losses_by_group[group] for group in groups if group in losses_by_group]
        lines += paired.loss_lines(ranked)
        if in_parts:
            judged = {losses.name: losses.passports for losses in ranked}
            lines += parts.part_lines(ranking.names[column], judged)
    for name in mixed:
        checkpoints = _describe_checkpoints(ranking.runs[name])
        note = f"was judged at different checkpoints, {checkpoints}: evaluate it again."
        lines.append(f"* {name} {note}")
    return lines


def _figure_table(ranking, mixed):
    """Makes the table of names and of each column of results; runs in `mixed` are marked with *."""
    columns = [Column("run"), Column("head", joined=True), Column("parameters", COUNT, joined=True)]
    for name in ranking.names.values():
        columns += [FIGURES[0]._replace(header=f"{name}: nats"), *FIGURES[1:]]
    rows = []
    for group in ranking.ranked + ranking.unranked:
        results = ranking.runs[group.runs[0]]
        plain_results = [passport for column, passport in results.items() if not column.changes]
        any_result = (plain_results or [*results.values()])[0]
        star = " *" if any(name in mixed for name in group.runs) else ""
        row = [f"{group.name}{star}", any_result.head_name, any_result.parameters]
        for losses_by_group in ranking.losses.values():
            row += figure_cells(group, losses_by_group.get(group))
        rows.append(row)
    if ranking.unranked:
        rows.insert(len(ranking.ranked), ["not ranked:"])
    return Table(columns, rows)


def _accuracy_lines(comparison, split, passports):
    """Returns the table of the accuracies of runs on the same questions, and tests of them."""
    columns = [Column(split), Column("accuracy", ".2%"), Column("95 %", PERCENT)]
    columns += [Column("right", COUNT), Column("of", COUNT)]
    rows: list[list[Any]] = []
    for name, record in passports.items():
        right, count = record.figures.right, record.tokens
        low, high = significance.binomial_interval(right, count)
        rows.append([name, record.figures.accuracy, (100 * low, 100 * high), right, count])
    rows.sort(key=lambda row: -row[1])
    keys = {name: comparison.run_key(name, record) for name, record in passports.items()}
    accuracies_by_group = {
        group.name: [passports[run].figures.accuracy for run in group.runs]
        for group in comparison.make_groups(keys)
    }
    return [
        "",
        *Table(columns, rows).text(),
        *paired.answer_lines(split, passports),
        *paired.accuracy_lines(accuracies_by_group),
    ]


def _describe_ranking(ranking):
    """Describes the column that ranks the runs, or why none does; tells if it is validation."""
    column, name = next(iter(ranking.names.items()))
    if not ranking.ranked:
        return f"nothing is ranked: no run's figure on {name} is one of unseen text"
    order = f"ranked by {name}"
    if is_validation(column.split):
        order += (
            ", a text that the checkpoints were chosen on: figures of validation, not of a test"
        )
    return order


def _describe_checkpoints(results):
    """Describes the training steps of a run's results: "test and validation of step 40"."""
    names = names_of(results)
    steps: dict = {}
    for column, record in results.items():
        steps.setdefault(record.checkpoint, []).append(names[column])
    return "; ".join(f"{' and '.join(columns)} of step {step}" for step, columns in steps.items())


def _column_notes(name, passports):
    """Yields the report's lines on a column: tokens and their normalisation, and of each run why it
    is not ranked, whether it is finished, text that it or priors have seen, and changes."""
    passport = next(iter(passports.values()))
    yield (
        f"{name}: {passport.tokens:,} tokens: {passport.counts}; normalised over "
        f"{passport.normalised_over}"
    )
    for run, passport in passports.items():
        if passport.leak:
            yield f"  {NOT_RANKED} {run}: {passport.leak}"
    for describe in (
        unfinished,
        seen_text_lines,
        lambda passport: filter(None, ["; ".join(x.sentence for x in passport.all_changes)]),
        lambda passport: [prior_line(passport)],
    ):
        lines = {run: describe(passport) for run, passport in passports.items()}
        for line, runs in seeds.runs_by_line(lines).items():
            is_all = len(runs) == len(passports) > seeds.MOST_NAMED
            yield f"  {line} ({'all runs' if is_all else ', '.join(runs)})"
