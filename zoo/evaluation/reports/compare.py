"""Runs side by side, but only where their figures are of the same quantity."""

import math

from zoo.evaluation import overlap
from zoo.evaluation.comparable import check_comparable
from zoo.evaluation.results import columns_of, names_of, read_results

NOT_RANKED = "!"


def compare(folders: list[str]) -> str:
    """A table of the runs: head, parameters, and log-perplexity (nats per token) and perplexity of
    each split, the lowest log-perplexity on the split that ranks first.

    A run that was trained on that text, or whose checkpoint was chosen on it (unless it is the
    validation text, on which all were), stands below the ranking, its figures marked; if all are
    such, nothing is ranked. Below the table stand the reasons, what each column counts, how much of
    its text the runs had seen, and the runs whose columns come from different checkpoints, which
    the table marks with a star.

    Raises:
      UserError: a run has no results or two of the same, or figures of a split have different
        denominators, policies, texts, lexicons or constraints; the message names the field and both
        values.
    """
    runs = read_results(folders)
    columns = columns_of(runs)
    for passports in columns.values():
        (first_name, first), *others = passports.items()
        for name, passport in others:
            check_comparable(first, passport, (first_name, name))
    order = sorted(columns, key=lambda column: _place(column, columns[column]))
    mixed = {
        name: steps for name, results in runs.items() if len(steps := _checkpoints(results)) > 1
    }
    names = names_of(order)
    header = ["run", "head", "parameters"]
    for column in order:
        header += [f"{names[column]}: nats/token", "perplexity"]
    ranking = columns[order[0]]
    any_unseen = _any_unseen(ranking)
    ranked: list = []
    unranked: list = []
    for name, results in runs.items():
        cells = _cells(columns, order, name)
        any_result = next(iter(results.values()))
        label = f"{name} *" if name in mixed else name
        row = [label, any_result["head"], f"{any_result['parameters']:,}", *cells]
        seen = not any_unseen or (name in ranking and overlap.reason(ranking[name]))
        (unranked if seen else ranked).append((_rank(ranking.get(name)), row))
    for rows in (ranked, unranked):
        rows.sort(key=lambda row: row[0])
    header, *rows = _table(header, [row for _, row in ranked + unranked])
    lines = [header, *rows[: len(ranked)]]
    if unranked:
        lines += ["not ranked:", *rows[len(ranked) :]]
    lines.append(_ranked_by(order[0], names, any_unseen))
    for column in order:
        lines += _notes(names[column], columns[column])
    for name, steps in mixed.items():
        checkpoints = "; ".join(f"{columns} of step {step}" for step, columns in steps.items())
        lines.append(
            f"* {name} was judged at different checkpoints, {checkpoints}: evaluate it again."
        )
    return "\n".join(lines)


def _place(column, passports):
    """Where a column stands: those that all runs have come first, and of them those of texts that
    some run never saw, in its training or in choosing its checkpoint."""
    return -len(passports), not _any_unseen(passports)


def _any_unseen(passports):
    """Whether some run's figure is one of text that it never saw, as far as is recorded."""
    return any(overlap.reason(passport) is None for passport in passports.values())


def _ranked_by(column, names, any_unseen):
    if not any_unseen:
        return f"nothing is ranked: no run's figure on {names[column]} is one of unseen text"
    order = f"ranked by {names[column]}"
    if overlap.is_validation(column.split):
        order += (
            ", a text that the checkpoints were chosen on: figures of validation, not of a test"
        )
    return order


def _rank(passport) -> float:
    """The log-perplexity that ranks a run; infinite without one, or if it is not a number."""
    value = float(passport["figures"]["log_perplexity"]) if passport else math.inf
    return math.inf if math.isnan(value) else value


def _cells(columns, order, name):
    """Log-perplexity and perplexity of a run in each column, "-" where it has none.

    A mark says that the run had seen the text.
    """
    cells = []
    for column in order:
        passport = columns[column].get(name)
        if passport is None:
            cells += ["-", "-"]
            continue
        figures, mark = passport["figures"], f" {NOT_RANKED}" if overlap.reason(passport) else ""
        cells += [
            f"{float(figures['log_perplexity']):.4f}",
            f"{float(figures['perplexity']):,.2f}{mark}",
        ]
    return cells


def _checkpoints(results):
    """{training step: the columns that are of it} of a run."""
    names = names_of(results)
    steps: dict = {}
    for column, passport in results.items():
        steps.setdefault(passport.get("checkpoint"), []).append(names[column])
    return {step: " and ".join(columns) for step, columns in steps.items()}


def _notes(name, passports):
    """What a column counts, and what its runs and their priors had seen of its text."""
    passport = next(iter(passports.values()))
    yield (
        f"{name}: {passport['tokens']:,} tokens: {passport['counts']}; normalised over "
        f"{passport['normalised_over']}"
    )
    for run, passport in passports.items():
        if why := overlap.reason(passport):
            yield f"  {NOT_RANKED} {run}: {why}"
    told = {run: overlap.lines(passport) for run, passport in passports.items()}
    yield from _grouped({run: [f"  {line}" for line in lines] for run, lines in told.items()})
    changed = {run: _changed(passport) for run, passport in passports.items()}
    yield from _grouped({run: [f"  {how}"] for run, how in changed.items() if how})
    saw = {run: passport.get("priors_saw_this_text") for run, passport in passports.items()}
    seen = {
        run: "not recorded" if of_run is None else ", ".join(of_run) or "none"
        for run, of_run in saw.items()
    }
    yield from _grouped({run: [f"  priors that saw this text: {how}"] for run, how in seen.items()})


def _grouped(lines_of):
    """Each line once, in the order in which they come, with the runs that it is true of."""
    runs: dict = {}
    for run, lines in lines_of.items():
        for line in lines:
            runs.setdefault(line, []).append(run)
    return [f"{line} ({', '.join(of_line)})" for line, of_line in runs.items()]


def _changed(passport):
    """How the judged distribution is another than the trained one, in words; "" if it is not."""
    lexicon = passport["lexicon"]
    trained = lexicon.get("of_training")
    ways = {
        "over other words than those of training": trained and trained["words"] != lexicon["words"],
        "the unknown word's probability spread over new words": passport["spread_unknown"],
        "renormalised over the lexicon": passport["renormalised"],
    }
    return "; ".join(way for way, is_so in ways.items() if is_so)


def _table(header, rows):
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for cells in (header, *rows):
        left = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
        yield "  ".join(left + right)
