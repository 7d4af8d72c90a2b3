"""Meaning representations and the sentences that express them, character by character."""

import dataclasses
import re

from zoo.errors import UserError
from zoo.sources import files, table_rows
from zoo.sources.pairs import Prefixed
from zoo.sources.source import Corpus, ranged

# Blanks that tokenisers insert: before punctuation and clitics, after signs, in "20 - 25".
_SPACED = re.compile(r" (?=[.,;:!?)])| (?=(?:n't|'\w{0,2})\b)|(?<=[(£$]) |(?<=\d) (?=-)|(?<=\d -) ")
# A slot with its value, which may have commas.
_SLOT = re.compile(r"[^\s,\[\]][^,\[\]]*\[[^\]]*\]")
_SLOTS = re.compile(rf"{_SLOT.pattern}(?:, {_SLOT.pattern})*")


@dataclasses.dataclass(frozen=True)
class Realisations(Prefixed):
    """CSV files with a meaning representation and a sentence a row.

    The E2E challenge (Novikova, Dusek and Rieser 2017) has such files: "name[Alimentum],
    area[riverside]" and "Alimentum is near the river."

    Every character is a token. The meaning and the separator are a prefix: the model reads it, but
    is neither trained nor evaluated on it. The blanks that tokenisers insert before punctuation are
    removed, so that tokenised and untokenised files can be combined.

    Attributes:
      train: path of a file, perhaps with a range of its rows.
      validation: as `train`.
      tests: as `train`, for the test splits "test1", "test2" ... ("test" if one).
      meaning: the column of meanings.
      sentence: the column of sentences.
      separator: the character between meaning and sentence; it must not occur in either.
      last_first: whether the slots of a meaning are reversed: the name, with which most sentences
        begin, then directly precedes the sentence (as Sutskever, Vinyals and Le 2014 reverse source
        sentences).

    Example:
      >>> text = 'mr,ref\\n"name[One], food[two]",One has two .\\n'
      >>> _ = pathlib.Path("meanings.csv").write_text(text)
      >>> corpus = papers.Realisations(train="meanings.csv", validation="meanings.csv")
      >>> corpus = corpus.read("train")
      >>> "".join(corpus.sentences[0]), corpus.prefixes
      ('name[One], food[two]|One has two.', [21])
    """

    of_characters = True

    meaning: str = "mr"
    sentence: str = "ref"
    separator: str = "|"
    last_first: bool = False

    def __post_init__(self):
        if len(self.separator) != 1:
            raise UserError(f"data.separator is {self.separator!r}: give a single character.")

    def read(self, split):
        """Reads the rows of a split; raises UserError, naming the row, if a part is missing."""
        part = self.part(split)
        path = files.find(part.path)
        names, rows = table_rows.rows(files.read_text(path), path)
        for column in (self.meaning, self.sentence):
            if column not in names:
                raise UserError(
                    f"{path} has no column {column!r}, but {', '.join(names)}: set data.meaning "
                    "and data.sentence."
                )
        sentences, prefixes = [], []
        for number, (_, row) in enumerate(rows, 1):
            meaning, sentence = (
                " ".join(_SPACED.sub("", row.get(column) or "").split())
                for column in (self.meaning, self.sentence)
            )
            if not meaning or not sentence or self.separator in meaning + sentence:
                raise UserError(
                    f"{path}, row {number}: write a meaning and a sentence, neither with "
                    f"{self.separator!r}, the data.separator."
                )
            if self.last_first:
                if not _SLOTS.fullmatch(meaning):
                    raise UserError(
                        f"{path}, row {number}: {meaning!r} is not of the form a[b], c[d], so that "
                        "its slots cannot be reversed: correct it, or set data.last_first=false."
                    )
                meaning = ", ".join(reversed(_SLOT.findall(meaning)))
            sentences.append([*meaning, self.separator, *sentence])
            prefixes.append(len(meaning) + 1)
        return Corpus(part.path, ranged(part, sentences), prefixes=prefixes[part.range])
