"""Lists of words: a run's words, printed as a table, and a user's words, read from a file."""

import math
import pathlib
import sys

from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.runs import output_files
from zoo.runs.workdir import Workdir
from zoo.sources import files, table_rows

COLUMNS = ("word", "training_count")


def read(path: str, lexicon: Lexicon, lower_case: bool = False) -> dict[str, None]:
    """Reads the words of a file, each once, in its order, without the marks of a lexicon.

    The file has a word a line, or is a table with a column "word", as `report` writes.
    """
    file = files.find(path)
    text = files.read_text(file)
    lines = [*enumerate(text.split("\n"), 1)]
    names = table_rows.header(text)
    if "word" in names and names != [lines[0][1]]:
        lines = [(n, row["word"]) for n, row in table_rows.rows(text, path, "\t", full=True)[1]]
    spaced = any(" " in word for word in lexicon.words)
    words: dict = {}
    for number, line in lines:
        line = line.lower() if lower_case else line
        # Where characters are words, so is a space.
        word = line if line in lexicon.ids else line.strip()
        if word not in lexicon.ids and len(word.split()) > 1 and ("\t" in word or not spaced):
            raise UserError(f"{path}, line {number}: {word!r} is not a word: write one a line.")
        if word and word not in (lexicon.boundary, lexicon.unknown):
            words[word] = None
    if not words:
        raise UserError(f"{path} has no words: give a file with one a line.")
    return words


def table(lexicon: Lexicon, features: bool = False) -> tuple[tuple[str, ...], list[tuple]]:
    """Returns (the names of the columns, a row for each word of a lexicon in its order)."""
    rows = [*zip(lexicon.words, lexicon.counts, strict=True)]
    if not features:
        return COLUMNS, rows
    return (*COLUMNS, "features"), [(*row, _said(lexicon, id)) for id, row in enumerate(rows)]


def _said(lexicon, word):
    return " ".join(
        name if math.isclose(value, 1) else f"{name}={value:.7g}"
        for name, value in lexicon.features_of(word).items()
    )


def report(
    workdir: str | pathlib.Path, features: bool = False, file: str | pathlib.Path | None = None
):
    """Prints the words of a run as a table, or writes them to a file."""
    lexicon = Workdir(workdir).lexicon()
    if features and not lexicon.feature_names:
        raise UserError(f"the words of {workdir} have no features: leave --features out.")
    columns, rows = table(lexicon, features)
    if file is not None:
        output_files.write_table(file, columns, rows)
    else:
        sys.stdout.writelines(map(output_files.line, (columns, *rows)))
