"""Tables of facts: a subject a line, a relation a column, between tabs."""

from zoo.errors import UserError
from zoo.sources import files
from zoo.sources.csv_rows import tab_cells


def read_table(path: str) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
    """Reads (relations, {subject: {relation: value}}) from a table.

    The first line names the column of subjects and then each relation; cells without a value are
    empty.
    """
    file = files.find(path)
    lines = files.read_text(file).split("\n")
    _, *relations = _cells(lines[0])
    if not all(relations) or len(set(relations)) < max(1, len(relations)):
        raise UserError(
            f"{file}, line 1: name the column of subjects and then each relation once, between "
            "tabs."
        )
    facts = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        subject, *values = _cells(line)
        if len(values) != len(relations) or any(len(cell.split()) > 1 for cell in _cells(line)):
            raise UserError(
                f"{file}, line {number}: write a subject and {len(relations)} values between "
                "tabs, a word each or nothing."
            )
        if not subject or subject in facts:
            raise UserError(
                f"{file}, line {number}: write one subject a line, and each subject once."
            )
        facts[subject] = {r: v for r, v in zip(relations, values, strict=True) if v}
    if not facts:
        raise UserError(f"{file} has no facts: give a line a subject.")
    return tuple(relations), facts


def _cells(line):
    return [cell.strip() for cell in tab_cells(line)]
