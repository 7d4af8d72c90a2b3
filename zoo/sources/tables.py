"""Tables of facts: a subject a line, a relation a column, between tabs."""

from zoo.errors import UserError
from zoo.sources import files, table_rows


def read_table(path: str) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
    """Reads (relations, {subject: {relation: value}}) from a table.

    The first line names the column of subjects and then each relation; cells without a value are
    empty.
    """
    file = files.find(path)
    lines = table_rows.lines(files.read_text(file), file)
    _, *relations = map(str.strip, next(lines)[1])
    if not all(relations) or len(set(relations)) < max(1, len(relations)):
        raise UserError(
            f"{file}, line 1: name the column of subjects and then each relation once, between "
            "tabs."
        )
    facts = {}
    for number, cells in lines:
        subject, *values = map(str.strip, cells)
        if not any((subject, *values)):
            continue
        if len(values) != len(relations) or any(len(c.split()) > 1 for c in (subject, *values)):
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
