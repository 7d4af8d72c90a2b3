"""Treebanks in CoNLL-U: words, UPOS and FEATS (https://universaldependencies.org/format.html)."""

import collections
import dataclasses
import functools
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zoo import lazy
from zoo.errors import UserError, check_choices
from zoo.sources import files
from zoo.sources.source import Corpus, FileSource, Form, ranged

COLUMNS = 10
NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Most different cells whose values are kept: treebanks have few, or, of some columns, one a token.
_CACHED = 1 << 16
_COMMENT = re.compile(r"#\s*(?P<name>\w[\w-]*)\s*[=:]\s*(?P<value>.*)")
CHOICES = ("split", "surface", "kept")
TAGS = ("UPOS", "FEATS", "XPOS", "LEMMA")


def token_features(token: dict, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Returns features such as ("POS:NOUN", "Gender:Fem", "XPOS:NCS", "Lemma:chat") of a token."""
    # Many tokens share these cells, and so the tuple.
    cells = (token[column.lower()] for column in columns)
    return _features(columns, token["form"] == "_", *cells)


@functools.lru_cache(_CACHED)
def _features(columns, is_underscore, *cells):
    features = []
    for column, cell in zip(columns, cells, strict=True):
        if column == "UPOS":
            features.append(f"POS:{cell or '_'}")
        elif column == "FEATS":
            features += [
                f"{name}:{value}"
                for name, values in sorted(pairs(cell).items())
                for value in (values or "_").split(",")
            ]
        # An empty column is "_", but the lemma of the word "_" is "_", too.
        elif cell and (cell != "_" or (column == "LEMMA" and is_underscore)):
            features.append(f"{'XPOS' if column == 'XPOS' else 'Lemma'}:{cell}")
    return tuple(dict.fromkeys(features))


@dataclasses.dataclass(frozen=True)
class Conllu(FileSource):
    """CoNLL-U files.

    Attributes:
      train: path of a file, perhaps with a range of its sentences: 'fr-ud-train.conllu[:-728]'.
      fused: how fused forms (multiword tokens) are read. "split" reads the syntactic words (French
        "des" as "de" "les") without the fused form; "surface" reads the fused form in place of its
        words, with all their tags; "kept" reads the fused form, with the tag "_", before its words.
        Plain text has surface forms. Empty nodes (8.1) are always left out.
      columns: the columns that the features of a token are taken from, some of UPOS ("POS:NOUN"),
        FEATS ("Gender:Fem"), XPOS ("XPOS:NCS") and LEMMA ("Lemma:chat"). priors.Morphology chooses
        among these features.
      words: files, each perhaps with a range, whose words enter the lexicon without counts or tags,
        so that runs on parts of a text share one lexicon.

    Example:
      >>> columns = (["1", "the", "the", "DET"], ["2", "cats", "cat", "NOUN", "_", "Number=Plur"])
      >>> lines = ["\\t".join(cells + ["_"] * (10 - len(cells))) for cells in columns]
      >>> _ = pathlib.Path("bank.conllu").write_text("\\n".join(lines) + "\\n\\n")
      >>> corpus = data.Conllu(train="bank.conllu", validation="bank.conllu").read("train")
      >>> corpus.sentences, corpus.features
      ([['the', 'cats']], [[('POS:DET',), ('POS:NOUN', 'Number:Plur')]])
    """

    fused: str = "split"
    columns: tuple[str, ...] = ("UPOS", "FEATS")
    words: tuple[str, ...] = ()

    def __post_init__(self):
        check_choices(self, "data", fused=CHOICES)
        if not self.columns or not {*self.columns} <= {*TAGS}:
            raise UserError(f"data.columns is {self.columns}: give some of {', '.join(TAGS)}.")

    @property
    def form(self):
        return Form(fused=self.fused, plain=True)

    def read(self, split):
        """Reads the sentences of a split, with POS and morphological features."""
        rows = self._rows(self.path_of(split))
        words, features, fused = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
        forms = {} if self.fused == "surface" else fused_forms(words, fused, self.fused == "kept")
        return Corpus(self.part(split).path, words, features, fused=forms)

    def tokens(self, split):
        """Reads the sentences of a split as lists of tokens, each a dict of all columns.

        The tokens are chosen according to `fused`, as in `read`. A fused form has the tokens of its
        words under "parts"; of its columns only the form is filled.
        """
        return self._each(self.path_of(split), self._chosen)

    def lexicon_entries(self):
        """Returns the words of the files `words`, without features."""
        rows = itertools.chain.from_iterable(map(self._rows, self.words))
        return {word: () for words, *_ in rows for word in words}

    def _each(self, path, call):
        """Calls a function on the tokens of each sentence of a path, and keeps what it returns."""
        part = files.Part.parse(path)
        file = files.find(part.path)
        found = [call(sentence.tokens) for sentence in parse(files.read_lines(part.path), file)]
        if not found:
            files.read_text(file)  # which refuses an empty one
        return ranged(part, found)

    def _rows(self, path):
        """Reads (words, features, [(fused form, its words)]) of each sentence of a path."""
        return self._each(path, self._row)

    def _row(self, sentence):
        tokens = self._chosen(sentence)
        fused = [
            (token["form"], tuple(part["form"] for part in token["parts"]))
            for token in sentence
            if "parts" in token
        ]
        return [token["form"] for token in tokens], [*map(self._tags, tokens)], fused

    def _tags(self, token):
        """Returns the features of a token; a fused form read alone has all its words' features."""
        if self.fused != "surface" or "parts" not in token:
            return token_features(token, self.columns)
        tags = (token_features(part, self.columns) for part in token["parts"])
        return tuple(dict.fromkeys(itertools.chain.from_iterable(tags)))

    def _chosen(self, sentence):
        """Returns the tokens of a sentence that are read according to `fused`."""
        if self.fused == "split":
            return [token for token in sentence if "parts" not in token]
        return sentence if self.fused == "kept" else surface(sentence)


def surface(sentence: list[dict]) -> list[dict]:
    """Returns the tokens of a sentence that are not words of a fused form."""
    within = {part["id"] for token in sentence for part in token.get("parts", ())}
    return [token for token in sentence if token["id"] not in within]


def tags_of_words(
    paths: tuple[str, ...], columns: tuple[str, ...] = TAGS[:2]
) -> dict[str, set[str]]:
    """Returns {form, as written and in lower case: the features of all its tokens} of treebanks."""
    tags: collections.defaultdict = collections.defaultdict(set)
    for path in paths:
        treebank = Conllu(train=path, validation=path, columns=columns)
        for words, features, _ in treebank._rows(path):
            for word, of_word in zip(words, features, strict=True):
                for form in {word, word.lower()}:
                    tags[form].update(of_word)
    return dict(tags)


def fused_forms(sentences, fused, kept: bool) -> dict[str, tuple[str, ...]]:
    """Returns {fused form: its most frequent words}, without forms such as French "des" that occur
    more often as a single word; `kept` if the sentences have the forms beside their words."""
    ways: collections.defaultdict = collections.defaultdict(collections.Counter)
    alone = collections.Counter(itertools.chain.from_iterable(sentences))
    for form, words in itertools.chain.from_iterable(fused):
        ways[form][words] += 1
        alone.subtract((form, *words) if kept else words)
    return {
        form: counts.most_common(1)[0][0]
        for form, counts in ways.items()
        if counts.total() >= alone[form]
    }


class Sentence(NamedTuple):
    """A sentence of a treebank."""

    tokens: list[dict]
    comments: dict[str, str]
    line: int


def parse(lines: Iterable[tuple[int, str]], path) -> Iterator[Sentence]:
    """Yields the sentences of numbered lines."""
    tokens, comments, first = [], {}, 0
    for number, line in itertools.chain(lines, [(0, "")]):
        if line.startswith("#"):
            if comment := _COMMENT.fullmatch(line):
                comments[comment["name"]] = comment["value"].rstrip()
        elif line.strip():
            token = _token(line, path, number)
            first = first or number
            # An id is a number, a (start, "-", end) range or an (n, ".", k) empty node.
            if isinstance(token["id"], int):
                tokens.append((token, number))
            elif token["id"][1] == "-":
                tokens.append((token | {"parts": []}, number))
        else:
            if tokens:
                yield Sentence(_joined(tokens, path), comments, first)
            tokens, comments, first = [], {}, 0


@functools.cache
def _library():
    """Returns the error of the library `conllu`, its parser of lines, and parsers of cells.

    Its own parser of lines takes most of the time of reading; here it only words its errors.
    """
    with lazy.extra():
        import conllu.exceptions
        import conllu.parser
    parser = conllu.parser
    cells = (parser.parse_id_value, parser.parse_int_value, parser.parse_paired_list_value)
    cached = map(functools.lru_cache(_CACHED), cells)
    return conllu.exceptions.ParseException, parser.parse_line, *cached


@functools.lru_cache(_CACHED)
def pairs(cell: str) -> dict[str, str | None]:
    """Returns {name: value} of a cell of FEATS or MISC."""
    import conllu.parser

    return conllu.parser.parse_dict_value(cell) or {}


def _token(line, path, number):
    """Returns the cells of a line, by their names; of the columns ID, HEAD and DEPS as numbers."""
    cells = line.split("\t")
    if len(cells) != COLUMNS or "  " in line:
        _check_columns(cells, f"{path}, line {number}")
        # The library takes two spaces for a tab; in the last column they do not matter.
        cells[-1] = cells[-1].partition("  ")[0]
    error_of_library, parse_line, id_of, number_of, deps_of = _library()
    try:
        try:
            token = dict(zip(NAMES, cells, strict=True))
            token["id"], token["head"] = id_of(cells[0]), number_of(cells[6])
            token["deps"] = deps_of(cells[8])
        except (error_of_library, ValueError):
            parse_line(line, NAMES)
            raise
        if token["id"] is None:
            raise ValueError("it has no ID in its first column.")
        if not token["form"] or token["form"].isspace():
            raise ValueError("it has no FORM in its second column.")
    # ValueError also of numbers that Python finds too long to read.
    except (error_of_library, ValueError) as error:
        raise UserError(f"{path}, line {number} is not CoNLL-U: {error}") from error
    token["form"] = sys.intern(token["form"])  # one object a word, not one a token
    return token


def _joined(tokens, path):
    """Attaches the words of each fused form and returns the tokens of a sentence."""
    for place, (token, number) in enumerate(tokens):
        if "parts" in token:
            first, _, last = token["id"]
            parts = [part for part, _ in tokens[place + 1 : place + 2 + last - first]]
            ids = [part["id"] for part in parts]
            # Compare the lengths first: a wrong range may be of billions.
            if len(ids) != last + 1 - first or ids != [*range(first, last + 1)]:
                raise UserError(
                    f"{path}, line {number}: the words {first} to {last}, of which "
                    f"{token['form']!r} is made, are not the next ones: correct the range or the "
                    "words."
                )
            token["parts"] += parts
    words = ((token, number) for token, number in tokens if "parts" not in token)
    for place, (token, number) in enumerate(words, 1):
        if token["id"] != place:
            remedy = "number the words of each sentence from 1, with a blank line after it"
            if token["id"] == 1:
                remedy = "a blank line is missing before it, where a sentence ends: put one there"
            raise UserError(
                f"{path}, line {number}: the word {token['form']!r} has the ID {token['id']}, "
                f"where {place} comes next: {remedy}."
            )
    return [token for token, _ in tokens]


def _check_columns(columns, where):
    if len(columns) != COLUMNS:
        raise UserError(
            f"{where}: {len(columns)} columns where CoNLL-U has {COLUMNS}, separated by tabs: "
            "correct the line."
        )
    if any("  " in column for column in columns[:-1]):
        raise UserError(f"{where}: two spaces in a column: leave one of them out.")
