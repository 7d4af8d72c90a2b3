"""Treebanks in CoNLL-U: words, UPOS and FEATS (https://universaldependencies.org/format.html)."""

import dataclasses

import conllu.exceptions
import conllu.parser

from zoo import files
from zoo.data.corpus import Corpus
from zoo.data.file_source import FileSource, ranged
from zoo.errors import UserError

COLUMNS = 10


def token_features(upos: str | None, feats: dict[str, str] | None) -> tuple[str, ...]:
    """("POS:NOUN", "Gender:Fem", ...); a tag column of "_" gives "POS:_"."""
    return (
        f"POS:{upos or '_'}",
        *(
            f"{name}:{value}"
            for name, values in sorted((feats or {}).items())
            for value in (values or "_").split(",")
        ),
    )


@dataclasses.dataclass(frozen=True)
class Conllu(FileSource):
    """CoNLL-U files.

    Attributes:
      train, validation: paths, each perhaps with a range of sentences: 'fr-ud-train.conllu[:-728]'.
      tests: paths of the test files; their splits are "test1", "test2" ... ("test" if one).
      fused: "split" reads the syntactic words (French "des" as "de" "les") and leaves the fused
        form out; "kept" also reads the fused form, as a token with the tag "_" before its words.
        Empty nodes (8.1) are no words and are always left out.
    """

    fused: str = "split"

    def read(self, split):
        """The sentences of a split, with POS and morphological features."""
        sentences = self.tokens(split)
        words = [[token["form"] for token in sentence] for sentence in sentences]
        features = [
            [token_features(token["upos"], token["feats"]) for token in sentence]
            for sentence in sentences
        ]
        return Corpus(self.part(split).path, words, features)

    def tokens(self, split):
        """The sentences of a split with all their columns, a dict a token, as `read` takes them."""
        if self.fused not in ("split", "kept"):
            raise UserError(f"data.fused is {self.fused!r}: give 'split' or 'kept'.")
        part = self.part(split)
        sentences = read_conllu(files.find(part.path), keep_fused=self.fused == "kept")
        return ranged(part, sentences)


def read_conllu(path, keep_fused=False):
    """The sentences of a file, a dict of columns a token; UserError with the line where it is not
    CoNLL-U."""
    sentences, tokens = [], []
    for number, line in enumerate([*files.read_text(path).split("\n"), ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            token = _token(line.rstrip("\r"), f"{path}, line {number}")
            # An id is a number, a (start, "-", end) range or an (n, ".", k) empty node.
            fused = isinstance(token["id"], tuple) and token["id"][1] == "-"
            if isinstance(token["id"], int) or (fused and keep_fused):
                tokens.append(token)
        elif tokens:
            sentences.append(tokens)
            tokens = []
    return sentences


def _token(line, where):
    """The token of a line; UserError, with the place, where the line is not CoNLL-U."""
    columns = line.split("\t")
    if len(columns) != COLUMNS:
        raise UserError(
            f"{where}: {len(columns)} columns where CoNLL-U has {COLUMNS}, separated by tabs: "
            "correct the line."
        )
    # The parser would take two spaces for a tab; in the last column it does not matter.
    if any("  " in column for column in columns[:-1]):
        raise UserError(f"{where}: two spaces in a column: leave one of them out.")
    try:
        token = conllu.parser.parse_line(line, conllu.parser.DEFAULT_FIELDS)
    except conllu.exceptions.ParseException as error:
        raise UserError(f"{where} is not CoNLL-U: {error}") from error
    if token["id"] is None:
        raise UserError(f"{where} is not CoNLL-U: it has no ID in its first column.")
    return token
