"""Plain text, a sentence a line, words between white space; tables are read through `datasets`."""

import dataclasses
import glob
import re
import sys

from zoo.errors import UserError, named
from zoo.sources import csv_rows, dataset_rows, files, folders, json_rows, shards
from zoo.sources.file_source import FileSource, ranged
from zoo.sources.source import Corpus, Form

# {suffix: reader}; files with other suffixes are plain text.
READERS = {".json": "json", ".jsonl": "json", ".parquet": "parquet", ".csv": "csv", ".tsv": "csv"}
_SURROGATE = re.compile("[\ud800-\udfff]")
# Files that `save_to_disk` of `datasets` writes beside a data set, and beside several splits.
SAVED, SAVED_SPLITS = "state.json", "dataset_dict.json"


@dataclasses.dataclass(frozen=True)
class Text(FileSource):
    """Text files, tables with a column of text, folders of them, or data sets of a hub.

    A file may be compressed with gzip, bzip2 or xz. A cell of text may have several lines, each a
    sentence, or be a list of strings, the words of one sentence.

    Attributes:
      train: a path: plain text (.txt or any other suffix), .json, .jsonl, .parquet, .csv, .tsv, a
        folder of such files or a pattern of their paths (see `folders.text_files`), a split saved
        by `datasets`, or a folder written by `zoo encode` (see `shards`); perhaps with a range of
        the lines that are not blank ('news.txt[:-1000]'). Or 'hub:NAME:SPLIT' or
        'hub:NAME:CONFIGURATION:SPLIT' ('hub:Salesforce/wikitext:wikitext-2-raw-v1:train').
      validation: as `train`.
      tests: as `train`, for the test splits "test1", "test2" ... ("test" if one).
      column: the column that holds the text of a table.
      streaming: whether a data set is read example by example, without a copy on disk.
      blank_lines: "skipped" or "kept". A kept blank line is a sentence without words whose boundary
        is predicted and counted, also by ranges. Published figures of WikiText keep blank lines:
        the test text of WikiText-2 has 245,569 tokens with its 1,467 blank lines, 244,102 without.

    Example:
      >>> source = data.Text(**paths)
      >>> source.read("train").sentences
      [['the', 'cat', 'sat'], ['the', 'cat']]
    """

    column: str = "text"
    streaming: bool = False
    blank_lines: str = "skipped"

    @property
    def form(self):
        """The form of plain text, or of a column of a table."""
        return Form(column=self.column, blank_lines=self.blank_lines, plain=True)

    def read(self, split):
        """Reads the sentences of a split: its lines, split at blanks; see `blank_lines`."""
        if self.blank_lines not in shards.BLANK_LINES:
            known = ", ".join(shards.BLANK_LINES)
            raise UserError(f"data.blank_lines is {self.blank_lines!r}: give one of {known}.")
        part, kept = self.part(split), self.blank_lines == "kept"
        files.check_path(part.path)
        encoded = shards.found_at(part.path)
        if encoded is not None:
            return self._encoded(part, encoded)
        lines = self._lines(part.path)
        # Intern words: one object a word, not one a token.
        sentences = [[*map(sys.intern, words)] for line in lines if (words := line.split()) or kept]
        return Corpus(part.path, ranged(part, sentences))

    def _encoded(self, part, folder):
        """Reads the sentences of a folder of shards."""
        corpus = shards.ShardedCorpus.of(part.path, folder)
        if self.blank_lines != corpus.sentences.shards.blank_lines:
            raise UserError(
                f"{part.path} was encoded with blank lines "
                f"{corpus.sentences.shards.blank_lines}, and data.blank_lines is "
                f"{self.blank_lines!r}: change that setting, or encode the text again."
            )
        return dataclasses.replace(corpus, sentences=ranged(part, corpus.sentences))

    def _lines(self, path):
        files.check_path(path)
        if path.startswith("hub:"):
            *name, split = dataset_rows.hub_name(path)
            return self._table(path, *name, split=split, streaming=self.streaming)
        saved = _saved(path)
        if saved is not None:
            return self._table(saved)
        return [line for member in folders.text_files(path) for line in self._lines_of(member)]

    def _lines_of(self, member):
        """Reads the lines of one file."""
        suffix = folders.kind(member)
        reader = READERS.get(suffix)
        # Read the text of tables here, for clearer errors than the library's.
        text = files.read_text(member) if reader != "parquet" else ""
        if reader is None:
            return _split(text)
        if reader == "json":
            names, rows = json_rows.rows(text, member)
            return self._column(rows, member, names)
        if reader == "csv":
            names, lines = csv_rows.rows(text, member, "\t" if suffix == ".tsv" else ",")
            return self._column([row for _, row in lines], member, names)
        return self._table(
            member, reader, split="train", streaming=True, data_files=glob.escape(str(member))
        )

    def _table(self, path, *arguments, **options):
        """Reads the lines of a data set; see `dataset_rows.rows` for the arguments."""
        return self._column(dataset_rows.rows(path, *arguments, **options), path)

    def _column(self, dataset, path, names=()):
        """Collects the lines of a column of rows.

        `names` are the columns, of which rows may lack some; without names, the rows have all.
        """
        lines = []
        if names and self.column not in names:
            raise self._missing(path, names)
        for number, example in enumerate(dataset, 1):
            if not names and self.column not in example:
                raise self._missing(path, example)
            cell = example.get(self.column)
            if isinstance(cell, list) and all(isinstance(word, str) for word in cell):
                lines.append(" ".join(cell))
            elif isinstance(cell, str):
                lines += _split(cell)
            elif cell is not None:
                kind = f"a value of type {type(cell).__name__}"
                if isinstance(cell, list):
                    others = sorted({type(item).__name__ for item in cell} - {"str"})
                    kind = f"a list with items of type {', '.join(others)}"
                raise UserError(
                    f"{path}, row {number}: the column {self.column!r} has {kind}, where a string "
                    "or a list of strings should be: set data.column to a column of text."
                )
        if any(map(_SURROGATE.search, lines)):
            raise UserError(
                f"{path} has half a character (an escape from \\ud800 to \\udfff that stands "
                "alone): correct the text."
            )
        return lines

    def _missing(self, path, names):
        there = f"set data.column to one of {named([*names])}" if names else "nor any other"
        if {"word", "sentence"} & {*names}:
            there += "; or, to score a table of items, separate its columns by tabs"
        return UserError(f"{path} has no column {self.column!r}: {there}.")


def _split(text):
    """Splits a text into lines; the last line may lack its line break."""
    return text.removesuffix("\n").split("\n")


def _saved(path):
    """Returns the folder at `path` if `datasets` saved a data set there, else None."""
    try:
        folder = files.find(path)
    except UserError:
        return None
    if (folder / SAVED_SPLITS).is_file():
        splits = sorted(member.name for member in folder.iterdir() if (member / SAVED).is_file())
        raise UserError(
            f"{path} has the splits {', '.join(splits)} of a data set: name one of them, as in "
            f"{path}/{splits[0] if splits else 'train'}."
        )
    return folder if (folder / SAVED).is_file() else None
