"""Treebanks in CoNLL-U: words, UPOS and FEATS (https://universaldependencies.org/format.html)."""

import collections
import dataclasses
import functools
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from zoo.base import lazy
from zoo.errors import UserError, check_choices
from zoo.sources import files
from zoo.sources.mapped_text import ArraySentences
from zoo.sources.source import Corpus, FileSource, Form, ranged

NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_COLUMNS = " ".join(NAMES).upper()
_COMMENT = re.compile(r"#\s*(?P<name>\w[\w.-]*)\s*[=:]\s*(?P<value>.*)")
TAGS = ("UPOS", "FEATS", "XPOS", "LEMMA")


def token_features(token: dict, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Returns features such as ("POS:NOUN", "Gender:Fem", "XPOS:NCS", "Lemma:chat") of a token."""
    # Many tokens share these cells, and so the tuple.
    cells = (token[column.lower()] for column in columns)
    return _features(columns, token["form"] == "_", *cells)


@functools.cache
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
        check_choices(self, "data", fused=("split", "surface", "kept"))
        if not self.columns or not {*self.columns} <= {*TAGS}:
            raise UserError(f"data.columns is {self.columns}: give some of {', '.join(TAGS)}.")

    @property
    def form(self):
        return Form(fused=self.fused, plain=True)

    def read(self, split):
        """Reads the sentences of a split, with POS and morphological features."""
        part, fused = self.part(split), []

        def tagged_words():
            for tokens in self._sentences(part):
                pairs, sentence_fused = self._row(tokens)
                fused.append(sentence_fused)
                yield pairs

        # Ids of words with their features: 4 bytes a token.
        text = ArraySentences.encode(tagged_words())
        chosen = ranged(part, text)
        text = text if len(chosen) == len(text) else ArraySentences.encode(chosen)
        words, features = (text.respelled(pair[n] for pair in text.words) for n in (0, 1))
        forms = fused_forms(words, fused[part.range], self.fused == "kept")
        return Corpus(part.path, words, features, fused=forms)

    def tokens(self, split):
        """Reads the sentences of a split as lists of tokens, each a dict of all columns, as text
        but for the numbers of ID and HEAD and the pairs of DEPS.

        The tokens are chosen according to `fused`, as in `read`. A fused form has the tokens of its
        words under "parts"; of its columns only the form is filled.
        """
        return self._map_sentences(self.path_of(split), self._select_tokens)

    def lexicon_entries(self):
        """Returns the words of the files `words`, without features."""
        rows = (row for path in self.words for row in self._map_sentences(path, self._row))
        return {word: () for pairs, _ in rows for word, _ in pairs}

    def _map_sentences(self, path, call):
        """Returns the results of a function, called on the tokens of each sentence of a path."""
        part = files.Part.parse(path)
        return ranged(part, [*map(call, self._sentences(part))])

    def _sentences(self, part):
        """Yields the tokens of each sentence of a file."""
        file = files.find(part.path)
        return (tokens for tokens, *_ in parse(files.lines_in(file), file))

    def _row(self, sentence):
        """Returns ([(word, its features)], ((fused form, its words), ...)) of a sentence."""
        tokens = self._select_tokens(sentence)
        fused = tuple(
            (token["form"], tuple(part["form"] for part in token["parts"]))
            for token in sentence
            if "parts" in token and self.fused != "surface"
        )
        return [(token["form"], self._tags(token)) for token in tokens], fused

    def _tags(self, token):
        """Returns the features of a token; a fused form read alone has all its words' features."""
        if self.fused != "surface" or "parts" not in token:
            return token_features(token, self.columns)
        tags = (token_features(part, self.columns) for part in token["parts"])
        return tuple(dict.fromkeys(itertools.chain.from_iterable(tags)))

    def _select_tokens(self, sentence):
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
        for token in itertools.chain.from_iterable(treebank.tokens("train")):
            for form in {token["form"], token["form"].lower()}:
                tags[form].update(token_features(token, columns))
    return dict(tags)


def fused_forms(sentences, fused, keeps_forms: bool) -> dict[str, tuple[str, ...]]:
    """Returns {fused form: its most frequent words}, without forms such as French "des" that occur
    more often as a single word; `keeps_forms` if the sentences have the forms beside their
    words."""
    splits_by_form: collections.defaultdict = collections.defaultdict(collections.Counter)
    word_counts = collections.Counter(itertools.chain.from_iterable(sentences))
    for form, words in itertools.chain.from_iterable(fused):
        splits_by_form[form][words] += 1
        word_counts.subtract((form, *words) if keeps_forms else words)
    return {
        form: counts.most_common(1)[0][0]
        for form, counts in splits_by_form.items()
        if counts.total() >= word_counts[form]
    }


class Sentence(NamedTuple):
    tokens: list[dict]
    comments: dict[str, str]
    line: int


def parse(lines: Iterable[str], path) -> Iterator[Sentence]:
    tokens, comments, first_line = [], {}, 0
    for number, line in enumerate(itertools.chain(lines, [""]), 1):
        if line.startswith("#"):
            comment = _COMMENT.fullmatch(line)
            if comment:
                comments[comment["name"]] = comment["value"].rstrip()
            if comments.get("global.columns", _COLUMNS).split() != _COLUMNS.split():
                message = f"global.columns is of CoNLL-U Plus: write the columns {_COLUMNS} alone"
                raise UserError(f"{path}, line {number}: {message}.")
        elif line.strip():
            location = f"{path}, line {number}"
            token, first_line = _token(line, location), first_line or number
            # An id is a number, a (start, "-", end) range or an (n, ".", k) empty node.
            if isinstance(token["id"], int):
                tokens.append((token, location))
            elif token["id"][1] == "-":
                tokens.append((token | {"parts": []}, location))
        else:
            if tokens:
                yield Sentence(_attach_parts(tokens), comments, first_line)
            tokens, comments, first_line = [], {}, 0


@functools.lru_cache(1 << 16)  # a column has few different cells, or, as MISC may, one a token
def _value(column, cell):
    with lazy.extra():
        import conllu.exceptions
        import conllu.parser
    try:
        return conllu.parser.DEFAULT_FIELD_PARSERS[column]([cell], 0)
    except conllu.exceptions.ParseException as error:
        raise ValueError(f"Failed parsing field '{column}': {error}") from error


def pairs(cell: str) -> dict[str, Any]:
    """Returns {name: value} of a cell of FEATS or MISC."""
    return _value("feats", cell) or {}


def _token(line, location):
    """Returns {column: cell}, with the values of ID, HEAD and DEPS."""
    cells = line.split("\t")
    if len(cells) != len(NAMES):
        raise UserError(
            f"{location}: {len(cells)} columns where CoNLL-U has {len(NAMES)}, separated by tabs: "
            "correct the line."
        )
    *columns, misc = cells
    if "  " in line and any("  " in cell for cell in columns):
        raise UserError(f"{location}: two spaces in a column: leave one of them out.")
    token: dict = dict(zip(NAMES, [*columns, misc.partition("  ")[0]], strict=True))
    token["form"] = sys.intern(token["form"])  # one object a word, not one a token
    try:
        for column in ("id", "head", "deps"):
            token[column] = _value(column, token[column])
        if token["id"] is None:
            raise ValueError("it has no ID in its first column.")
        if not token["form"] or token["form"].isspace():
            raise ValueError("it has no FORM in its second column.")
    except ValueError as error:  # also of numbers that Python finds too long to read
        raise UserError(f"{location} is not CoNLL-U: {error}") from error
    return token


def _attach_parts(tokens):
    """Attaches the words of each fused form and returns the tokens of a sentence."""
    for number, (token, location) in enumerate(tokens):
        if "parts" in token:
            first, _, last = token["id"]
            parts = [part for part, _ in tokens[number + 1 : number + 2 + last - first]]
            ids = [part["id"] for part in parts]
            # Compare the lengths first: a wrong range may be of billions.
            if len(ids) != last + 1 - first or ids != [*range(first, last + 1)]:
                raise UserError(
                    f"{location}: the words {first} to {last}, of which {token['form']!r} is made, "
                    "are not the next ones: correct the range or the words."
                )
            token["parts"] += parts
    words = ((token, location) for token, location in tokens if "parts" not in token)
    for number, (token, location) in enumerate(words, 1):
        if token["id"] != number:
            remedy = "number the words of each sentence from 1, with a blank line after it"
            if token["id"] == 1:
                remedy = "a blank line is missing before it, where a sentence ends: put one there"
            raise UserError(
                f"{location}: the word {token['form']!r} has the ID {token['id']}, where {number} "
                f"comes next: {remedy}."
            )
    return [token for token, _ in tokens]
