"""Treebanks in CoNLL-U: words, UPOS and FEATS (https://universaldependencies.org/format.html)."""

import collections
import dataclasses
import itertools
import re
from typing import NamedTuple

from zoo import lazy
from zoo.errors import UserError, check_choices
from zoo.sources import files
from zoo.sources.source import Corpus, FileSource, Form, ranged

COLUMNS = 10
_COMMENT = re.compile(r"#\s*(?P<name>\w[\w-]*)\s*[=:]\s*(?P<value>.*)")
CHOICES = ("split", "surface", "kept")
TAGS = ("UPOS", "FEATS", "XPOS", "LEMMA")


def token_features(token: dict, columns: tuple[str, ...]) -> list[str]:
    """Returns features such as ["POS:NOUN", "Gender:Fem", "XPOS:NCS", "Lemma:chat"] of a token."""
    features = []
    for column in columns:
        if column == "UPOS":
            features.append(f"POS:{token['upos'] or '_'}")
        elif column == "FEATS":
            features += [
                f"{name}:{value}"
                for name, values in sorted((token["feats"] or {}).items())
                for value in (values or "_").split(",")
            ]
        elif column == "XPOS":
            features += [f"XPOS:{token['xpos']}"] if token["xpos"] else []
        # An empty column is "_", but the lemma of the word "_" is "_", too.
        elif token["lemma"] and (token["lemma"] != "_" or token["form"] == "_"):
            features.append(f"Lemma:{token['lemma']}")
    return features


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
        sentences = self._read(self.path_of(split))
        tokens = [*map(self._chosen, sentences)]
        words = [[token["form"] for token in sentence] for sentence in tokens]
        features = [[self._tags(token) for token in sentence] for sentence in tokens]
        fused = {} if self.fused == "surface" else fused_forms(sentences)
        return Corpus(self.part(split).path, words, features, fused=fused)

    def tokens(self, split):
        """Reads the sentences of a split as lists of tokens, each a dict of all columns.

        The tokens are chosen according to `fused`, as in `read`. A fused form has the tokens of its
        words under "parts"; of its columns only the form is filled.
        """
        return [*map(self._chosen, self._read(self.path_of(split)))]

    def lexicon_entries(self):
        """Returns the words of the files `words`, without features."""
        sentences = itertools.chain.from_iterable(map(self._read, self.words))
        return {token["form"]: () for one in sentences for token in self._chosen(one)}

    def _read(self, path):
        part = files.Part.parse(path)
        file, text = files.read(part.path)
        return ranged(part, [sentence.tokens for sentence in parse(text, file)])

    def _tags(self, token):
        """Returns the features of a token; a fused form read alone has all its words' features."""
        parts = token.get("parts", (token,)) if self.fused == "surface" else (token,)
        tags = (token_features(part, self.columns) for part in parts)
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
        for token in itertools.chain.from_iterable(treebank.tokens("train")):
            for form in {token["form"], token["form"].lower()}:
                tags[form].update(token_features(token, columns))
    return dict(tags)


def fused_forms(sentences) -> dict[str, tuple[str, ...]]:
    """Returns {fused form: its most frequent words}, without forms such as French "des" that occur
    more often as a single word."""
    ways: collections.defaultdict = collections.defaultdict(collections.Counter)
    alone: collections.Counter = collections.Counter()
    for token in itertools.chain.from_iterable(map(surface, sentences)):
        if "parts" in token:
            ways[token["form"]][tuple(part["form"] for part in token["parts"])] += 1
        else:
            alone[token["form"]] += 1
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


def parse(text: str, path) -> list[Sentence]:
    with lazy.extra():
        import conllu.exceptions
        import conllu.parser
    sentences, tokens, comments, first = [], [], {}, 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.startswith("#"):
            if comment := _COMMENT.fullmatch(line):
                comments[comment["name"]] = comment["value"].rstrip()
        elif line.strip():
            where = f"{path}, line {number}"
            _check_columns(line, where)
            try:
                token: dict = conllu.parser.parse_line(line, conllu.parser.DEFAULT_FIELDS)
                if token["id"] is None:
                    raise ValueError("it has no ID in its first column.")
                if not token["form"] or token["form"].isspace():
                    raise ValueError("it has no FORM in its second column.")
            # ValueError also of numbers that Python finds too long to read.
            except (conllu.exceptions.ParseException, ValueError) as error:
                raise UserError(f"{where} is not CoNLL-U: {error}") from error
            first = first or number
            # An id is a number, a (start, "-", end) range or an (n, ".", k) empty node.
            if isinstance(token["id"], int):
                tokens.append((token, where))
            elif token["id"][1] == "-":
                tokens.append((token | {"parts": []}, where))
        else:
            if tokens:
                sentences.append(Sentence(_joined(tokens), comments, first))
            tokens, comments, first = [], {}, 0
    return sentences


def _joined(tokens):
    """Attaches the words of each fused form and returns the tokens of a sentence."""
    for number, (token, where) in enumerate(tokens):
        if "parts" in token:
            first, _, last = token["id"]
            parts = [part for part, _ in tokens[number + 1 : number + 2 + last - first]]
            ids = [part["id"] for part in parts]
            # Compare the lengths first: a wrong range may be of billions.
            if len(ids) != last + 1 - first or ids != [*range(first, last + 1)]:
                raise UserError(
                    f"{where}: the words {first} to {last}, of which {token['form']!r} is made, "
                    "are not the next ones: correct the range or the words."
                )
            token["parts"] += parts
    words = ((token, where) for token, where in tokens if "parts" not in token)
    for number, (token, where) in enumerate(words, 1):
        if token["id"] != number:
            remedy = "number the words of each sentence from 1, with a blank line after it"
            if token["id"] == 1:
                remedy = "a blank line is missing before it, where a sentence ends: put one there"
            raise UserError(
                f"{where}: the word {token['form']!r} has the ID {token['id']}, where {number} "
                f"comes next: {remedy}."
            )
    return [token for token, _ in tokens]


def _check_columns(line, where):
    columns = line.split("\t")
    if len(columns) != COLUMNS:
        raise UserError(
            f"{where}: {len(columns)} columns where CoNLL-U has {COLUMNS}, separated by tabs: "
            "correct the line."
        )
    # The parser would take two spaces for a tab; in the last column it does not matter.
    if any("  " in column for column in columns[:-1]):
        raise UserError(f"{where}: two spaces in a column: leave one of them out.")
