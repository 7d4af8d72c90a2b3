"""Plain text, a sentence a line, words between white space; read through `datasets`."""

import csv
import dataclasses
import glob
import pathlib
import sys

from zoo import files
from zoo.data.corpus import Corpus
from zoo.data.file_source import FileSource, ranged
from zoo.errors import UserError

# The suffix of a file tells which of the library's readers takes it; any other is plain text.
READERS = {".json": "json", ".jsonl": "json", ".parquet": "parquet", ".csv": "csv", ".tsv": "csv"}
# utf-8-sig: without the mark that some editors put first.
OPTIONS = {
    "text": {"encoding": "utf-8-sig"},
    "csv": {"encoding": "utf-8-sig", "keep_default_na": False},
}


@dataclasses.dataclass(frozen=True)
class Text(FileSource):
    """Text files, tables with a column of text, folders of them, or data sets of a hub.

    Attributes:
      train, validation: a path (.txt or any other plain text, .json, .jsonl, .parquet, .csv, .tsv,
        or a folder of such files), perhaps with a range of the lines that are not blank
        ('news.txt[:-1000]'), or
        'hub:NAME:SPLIT' or 'hub:NAME:CONFIGURATION:SPLIT'
        ('hub:Salesforce/wikitext:wikitext-2-raw-v1:train').
      tests: the same for the test splits "test1", "test2" ... ("test" if one).
      column: the column that holds the text, where there are columns.
      streaming: reads a data set example by example, without keeping a copy of it on disk.
    """

    column: str = "text"
    streaming: bool = False

    def read(self, split):
        """The sentences of a split: its lines that are not blank, cut at white space."""
        part = self.part(split)
        lines = self._lines(part.path)
        # One object a word, not one a token: in a large text tokens outnumber words by thousands.
        sentences = [[*map(sys.intern, words)] for line in lines if (words := line.split())]
        return Corpus(part.path, ranged(part, sentences))

    def _lines(self, path):
        import datasets  # a second of import that CoNLL-U and the micro language do without

        datasets.disable_progress_bars()
        datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # its errors become ours
        if path.startswith("hub:"):
            *name, split = _hub_name(path)
            return self._read(path, *name, split=split, streaming=self.streaming)
        found = files.find(path)
        members = sorted(p for p in found.rglob("*") if p.is_file()) if found.is_dir() else [found]
        if not members:
            raise UserError(f"{path} is a folder without files: give one with text.")
        lines = []
        for member in members:
            suffix = pathlib.PurePath(member.name.lower().removesuffix(".gz")).suffix
            reader = READERS.get(suffix, "text")
            if reader in ("text", "csv", "json"):
                files.read_text(member)  # its errors are clearer than the library's
            options = dict(OPTIONS.get(reader, {}))
            if reader == "csv":  # "007" and "NA" are text, not a number and nothing
                options["converters"] = {self.column: str}
            if suffix == ".tsv":  # a quotation mark is text there
                options |= {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
            lines += self._read(
                member,
                reader,
                data_files=glob.escape(str(member)),
                split="train",
                streaming=True,
                column="text" if reader == "text" else None,
                **options,
            )
        return lines

    def _read(self, path, *arguments, column=None, **options):
        """The lines of what `datasets.load_dataset` makes of the arguments."""
        import datasets

        try:
            return self._column(
                datasets.load_dataset(*arguments, **options), path, column or self.column
            )
        except UserError:
            raise
        except Exception as error:  # the library raises many kinds for what is wrong with a file
            message = str(error).strip() or type(error).__name__
            raise UserError(
                f"{path} cannot be read by datasets: {message.splitlines()[0]}"
            ) from error

    def _column(self, dataset, path, column):
        lines = []
        for example in dataset:
            if column not in example:
                raise UserError(
                    f"{path} has no column {column!r}: set data.column to one of "
                    f"{', '.join(map(str, example))}."
                )
            if example[column] is not None:
                lines += str(example[column]).split("\n")
        return lines


def _hub_name(path):
    parts = path.split(":")[1:]
    if len(parts) not in (2, 3) or not all(parts):
        raise UserError(f"{path} should read hub:NAME:SPLIT or hub:NAME:CONFIGURATION:SPLIT.")
    return parts
