"""Tables: CSV and TSV, whose first line names the columns, JSON, and data sets.

A format is read here alone; a new one is a reader, and a line of `READERS`.

CSV (with commas or semicolons) and TSV are read by RFC 4180, as pandas and R write them: cells may
be in quotation marks, and quotation marks within such a cell are doubled. A quotation mark inside
any other cell is text, and so is one alone between tabs, as in a treebank with a word a row. A cell
between tabs ends on its line.
"""

import csv
import io
import json
import pathlib
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from zoo.base import lazy, regular_files, strict_json
from zoo.base.trust import permissions
from zoo.errors import UserError, quote, shortened
from zoo.sources import files

# A lone quotation mark, a cell in quotation marks, or any other cell, with the tab behind it.
_CELL = re.compile(r'("|"((?:[^"]|"")*+)"|[^\t]*)\t')

# {mark between the cells of a table: how to mend a row of too many cells}
_MARKS = {
    ",": "quote cells that have commas",
    ";": "quote cells that have semicolons",
    "\t": "leave tabs out of cells",
}


def cells(line: str, location: str) -> list[str]:
    """Splits a line at its tabs and unquotes its cells; `location` names the line in the error."""
    if '"' not in line:
        return line.split("\t")
    unquoted_cells = []
    for cell, quoted in _CELL.findall(line + "\t"):
        if cell == f'"{quoted}"':
            cell = quoted.replace('""', '"')
        elif cell.startswith('"') and cell.count('"') % 2 and cell.strip('"'):
            raise UserError(
                f"{location}: {shortened(cell, 80)} begins with a quotation mark that is never "
                "closed: close it on its line, or quote the cell and double the quotation marks "
                "in it."
            )
        unquoted_cells.append(cell)
    return unquoted_cells


def header(text: str, file: pathlib.Path | None = None) -> list[str]:
    """Returns the cells of a text's first line, between tabs or as a file has them; [] if they
    cannot be read."""
    first = text.partition("\n")[0]
    delimiter = "\t" if file is None else delimiter_of(file, text)
    try:
        numbered_rows = lines(first, "") if delimiter == "\t" else _csv_rows(first, "", delimiter)
        return next(numbered_rows)[1]
    except (StopIteration, UserError):
        return []


def delimiter_of(file: pathlib.Path, text: str) -> str:
    """Returns the mark between the cells of a table: the commonest of its first line in a .csv
    file, for spreadsheets write semicolons where the comma is the decimal point; else a tab, or
    the commonest mark of a line without tabs."""
    first = text.lstrip("\n").partition("\n")[0]
    if files.kind(file) != ".csv" and ("\t" in first or not {*",;"} & {*first}):
        return "\t"
    return max(_MARKS, key=first.count)


def lines(text: str, path: pathlib.Path | str) -> Iterator[tuple[int, list[str]]]:
    """Yields (number from 1, cells) of each line of a text with tabs; a blank line has one cell."""
    for number, line in enumerate(files.lines(text), 1):
        yield number, cells(line, f"{path}, line {number}")


def read_rows(
    text: str, file: pathlib.Path, contents: Container[str] = ()
) -> tuple[list[str], list[tuple[int, dict]]]:
    """Returns (names, (line, {name: cell}) of each row) of a table with all its columns as text, in
    JSON with the number of the row; the columns of `contents` have to have words."""
    if not is_json(file, text):
        return rows(text, file, delimiter_of(file, text), full=True)
    numbered_objects = [*enumerate(objects(text, file), 1)]
    names = dict.fromkeys(name for _, row in numbered_objects for name in row)

    def cell(number, name, value):
        place = f"{file}, row {number}"
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            value = " ".join(value)
        if value is None or isinstance(value, str):
            return check_characters(value or "", f"{place},")
        content = json.dumps(value, ensure_ascii=False)
        if name.lower() in contents or name.lower().partition("_")[0] in contents:
            content = shortened(content, 80)
            raise UserError(f"{place}: {name!r} is {content}: write a string or list of strings.")
        return content

    return [*names], [
        (number, {name: cell(number, name, row.get(name)) for name in names})
        for number, row in numbered_objects
    ]


def rows(
    text: str, path: pathlib.Path | str, delimiter: str = ",", full: bool = False
) -> tuple[list[str], list[tuple[int, dict]]]:
    """Returns (names, (line, {name: cell}) of each row); a row may end early unless `full`."""
    names: list[str] = []
    records = []
    numbered_rows = lines(text, path) if delimiter == "\t" else _csv_rows(text, path, delimiter)
    for number, row in numbered_rows:
        if len(row) < 2 and not "".join(row).strip():
            continue
        location = f"{path}, line {number}"
        if not names:
            names = row
            if len({*names}) < len(names):
                raise UserError(f"{location}: two columns have the same name: rename one.")
        elif len(row) > len(names) or (full and len(row) < len(names)):
            mend = _MARKS[delimiter] if len(row) > len(names) else "give each cell"
            raise UserError(
                f"{location}: {len(row)} cells in a table of {len(names)}: {mend}, or name all "
                "columns in line 1."
            )
        else:
            records.append((number, dict(zip(names, row, strict=False))))
    return names, records


def _csv_rows(text, path, delimiter) -> Iterator[tuple[int, list[str]]]:
    """Yields (the number of its first line, cells) of each row between commas or semicolons."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    # Strict: otherwise an unclosed quotation mark turns all further rows into one cell.
    read = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    first = 1
    try:
        for row in read:
            yield first, row
            first = read.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {read.line_num}: a quotation mark that is never closed, or not "
            f"followed by {delimiter!r} ({error}): quote the cell and double the quotation marks "
            "in it."
        ) from error


# ---- rows of Arrow tables: of Parquet, of a data set saved to disk, or of a hub
# Only the columns of text become values of Python. Features of `datasets`, such as Image, are never
# decoded: that opens the paths and the addresses that the rows name.

# What a reader returns: a function that yields the rows with the values of some columns. If one of
# these is missing, rows have the names of all columns, for the error.
Table = Callable[[Sequence[str]], Iterable[dict]]

_ROWS = 1000  # that become values of Python at a time


def _arrow(path, batches: Callable[[set[str]], Iterator]) -> Table:
    """Makes a table of (names of all columns, batch of rows) pairs."""

    def rows(columns: Sequence[str]) -> Iterator[dict]:
        roots = {*columns, *(column.partition(".")[0] for column in columns)}
        try:
            for names, batch in batches(roots):
                batch = batch.select([name for name in names if name in roots])
                batch.validate(full=True)  # a damaged offset points outside the file
                yield from ({**dict.fromkeys(names), **row} for row in batch.to_pylist())
        except lazy.MissingExtra:
            raise
        except Exception as error:  # the libraries raise many kinds of errors
            message = str(error).strip() or type(error).__name__
            raise UserError(f"{path} cannot be read: {message.splitlines()[0]}") from error

    return rows


def _parquet(file: pathlib.Path) -> Table:
    def batches(columns):
        with lazy.extra():
            import pyarrow.parquet
        with regular_files.open_regular(file) as raw:
            table = pyarrow.parquet.ParquetFile(raw)
            for batch in table.iter_batches(_ROWS, columns=[*columns]):
                yield table.schema_arrow.names, batch

    return _arrow(file, batches)


def hub(path: str, streaming: bool = False) -> Table:
    """Reads a data set 'hub:NAME:SPLIT' or 'hub:NAME:CONFIGURATION:SPLIT'."""
    *names, split = path.split(":")[1:]
    if len(names) not in (1, 2) or not all((*names, split)):
        raise UserError(f"{path} should read hub:NAME:SPLIT or hub:NAME:CONFIGURATION:SPLIT.")

    def batches(columns):
        with lazy.extra():
            import datasets  # takes a second to import
        datasets.disable_progress_bars()
        datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # its errors become ours
        loaded = datasets.load_dataset(*names, split=split, streaming=streaming)
        for table in loaded.with_format("arrow").iter(_ROWS):
            yield table.schema.names, table

    return _arrow(path, batches)


# Files that `save_to_disk` of `datasets` writes beside a data set, and beside several splits.
SAVED, SAVED_SPLITS = "state.json", "dataset_dict.json"


def _saved(path: str, folder: pathlib.Path) -> Table:
    """Reads a data set that `save_to_disk` saved; its state names files within its folder."""
    state = strict_json.read(folder / SAVED, {"_data_files": list[dict[str, str]]})
    names = [file.get("filename", "") for file in state["_data_files"]]
    for name in names:
        if permissions.leads_out(name) or not (folder / name).is_file():
            raise UserError(
                f"{folder / SAVED} names {shortened(name)!r}, which is not a file in its folder: "
                "save the data set again."
            )
    files.check_path(path, folder.iterdir())

    def batches(columns):
        with lazy.extra():
            import pyarrow
        for name in names:
            raw = regular_files.open_regular(folder / name)
            with raw, pyarrow.ipc.open_stream(raw) as stream:
                for batch in stream:
                    yield stream.schema.names, batch

    return _arrow(folder, batches)


def data_set(path: str, streaming: bool = False) -> Table | None:
    """Reads a data set of a hub, or one that `datasets` saved; None if a path names neither."""
    if path.startswith("hub:"):
        return hub(path, streaming)
    folder = files.find_or_none(path)
    if folder is None:
        return None
    if (folder / SAVED_SPLITS).is_file():
        splits = sorted(member.name for member in folder.iterdir() if (member / SAVED).is_file())
        raise UserError(
            f"{path} has the splits {', '.join(splits)} of a data set: name one of them, as in "
            f"{path}/{splits[0] if splits else 'train'}."
        )
    return _saved(path, folder) if (folder / SAVED).is_file() else None


# ------ rows of JSON: a sequence of objects, on a line each or not, or one list of objects

_BLANK = re.compile(r"[ \t\r\n]*")
# The beginning of an object of JSON, and not of {braces}.
_OBJECT = re.compile(r'\s*\{\s*"')


def is_json(file: pathlib.Path, head: str) -> bool:
    """Whether a file that begins with `head` is JSON, by its suffix or as an object."""
    return files.kind(file) in (".json", ".jsonl") or _OBJECT.match(head) is not None


def _json(path: pathlib.Path) -> Table:
    rows = [*objects(files.read_text(path), path)]
    return _filled((name for row in rows for name in row), rows)


def objects(text: str, path: pathlib.Path | str) -> Iterator[dict]:
    """Yields the rows of a table in JSON."""
    values = list(_values(text, path))
    if len(values) == 1 and isinstance(values[0], list):
        (values,) = values
    for number, row in enumerate(values, 1):
        if not isinstance(row, dict):
            kind = {str: "a string", list: "a list", bool: "true or false", type(None): "null"}
            raise UserError(
                f"{path}, value {number}: {kind.get(type(row), 'a number')} where an object with "
                'the text should be: write {"text": "..."}, or set data.column.'
            )
        yield row


def _values(text, path) -> Iterator:
    decoder = json.JSONDecoder(parse_int=strict_json.whole_number)
    begin = 0
    while (begin := _BLANK.match(text, begin).end()) < len(text):  # type: ignore[union-attr]
        try:
            value, begin = decoder.raw_decode(text, begin)
        # ValueError also for integers that are too long for Python to parse.
        except (RecursionError, ValueError) as error:
            fault = f"not JSON ({getattr(error, 'msg', error)})"
            fault = "JSON that is nested too deeply" if isinstance(error, RecursionError) else fault
            line = text.count("\n", 0, getattr(error, "pos", begin)) + 1
            raise UserError(f"{path}, line {line}: {fault}: correct it.") from error
        yield value


# ---- the texts of any table


def _filled(names: Iterable[str], records: Iterable[dict]) -> Table:
    """Makes a table of rows that may lack columns."""
    all_names = dict.fromkeys(names)

    def rows(columns: Sequence[str]) -> Iterator[dict]:
        roots = [name if name in all_names else name.partition(".")[0] for name in columns]
        # Every name in every row would take quadratic time where each row has names of its own.
        empty = dict.fromkeys(roots) if all_names.keys() >= {*roots} else all_names
        return ({**empty, **row} for row in records)

    return rows


def _delimited(file: pathlib.Path) -> Table:
    text = files.read_text(file)
    names, records = rows(text, file, delimiter_of(file, text))
    return _filled(names, (row for _, row in records))


# {suffix: reader}; files with other suffixes are plain text.
READERS: dict[str, Callable[[pathlib.Path], Table]] = {
    ".json": _json,
    ".jsonl": _json,
    ".parquet": _parquet,
    ".csv": _delimited,
    ".tsv": _delimited,
}


def lines_of(
    table: Table, path: pathlib.Path | str, column: str, setting: str = "data.column"
) -> Iterator[str]:
    """Yields the lines of the column of text of a table."""
    for _, (cell,) in texts(table, path, (column,), setting):
        if isinstance(cell, list):
            yield " ".join(cell)
        elif cell is not None:
            yield from files.lines(cell)


def texts(
    table: Table, path: pathlib.Path | str, columns: Sequence[str], setting: str
) -> Iterator[tuple[int, list[str | list[str] | None]]]:
    """Yields (number, texts of the columns) of each row; a point selects a field of a cell."""
    for number, row in enumerate(table(columns), 1):
        yield number, [_text(row, column, path, number, setting) for column in columns]


_SURROGATE = re.compile("[\ud800-\udfff]")


def _text(row, column, path, number, setting) -> str | list[str] | None:
    """Returns the text of a column, or of the field "part" of a cell for "cell.part"."""
    value = row.get(column)
    if isinstance(value, str) and not _SURROGATE.search(value):
        return value  # as nearly all
    value = row
    for name in (column,) if column in row else column.split("."):
        if not isinstance(value, dict) or name not in value:
            place = path if value is row else f"{path}, row {number},"
            count = "two" if setting == "data.columns" else "one"
            remedy = f"set {setting} to {count} of {quote([*row])}" if row else "nor any other"
            raise UserError(f"{place} has no column {column!r}: {remedy}.")
        value = value[name]
    if value is None:
        return None
    words = value if isinstance(value, list) else [value]
    if not all(isinstance(word, str) for word in words):
        kind = f"a value of type {type(value).__name__}"
        if isinstance(value, list):
            types = sorted({type(item).__name__ for item in value} - {"str"})
            kind = f"a list with items of type {', '.join(types)}"
        choice = "two columns of text" if setting == "data.columns" else "a column of text"
        raise UserError(
            f"{path}, row {number}: the column {column!r} has {kind}, where a string or a list of "
            f"strings should be: set {setting} to {choice}."
        )
    for word in words:
        check_characters(word, f"{path}, row {number},")
    return value


def check_characters(text: str, location: str) -> str:
    """Returns a text; raises UserError for half a character, which JSON may have."""
    if _SURROGATE.search(text):
        raise UserError(
            f"{location} has half a character (an escape from \\ud800 to \\udfff that stands "
            "alone): correct the text."
        )
    return text


# -------------------- tables of facts: a subject a line, a relation a column, between tabs


def read_table(path: str) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
    """Reads (relations, {subject: {relation: value}}); the first line names the relations."""
    file, text = files.read(path)
    rows = lines(text, file)
    _, *relations = map(str.strip, next(rows)[1])
    if not all(relations) or len(set(relations)) < max(1, len(relations)):
        raise UserError(
            f"{file}, line 1: name the column of subjects and then each relation once, between "
            "tabs."
        )
    facts = {}
    for number, row in rows:
        subject, *values = cells = [*map(str.strip, row)]
        if not any(cells):
            continue
        are_words = len(values) == len(relations) and all(len(cell.split()) < 2 for cell in cells)
        if not are_words or not subject or subject in facts:
            raise UserError(
                f"{file}, line {number}: write a subject, each once, and {len(relations)} values "
                "between tabs, a word each or nothing."
            )
        facts[subject] = {r: v for r, v in zip(relations, values, strict=True) if v}
    if not facts:
        raise UserError(f"{file} has no facts: give a line a subject.")
    return tuple(relations), facts
