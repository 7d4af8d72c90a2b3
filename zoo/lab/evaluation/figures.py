"""Figures and their passports: everything that comparing a number with another one requires.

A passport is kept as JSON, in which objects have the names of the fields here. Figures whose
parts in `zoo.lab.evaluation.results` differ are not of the same quantity, and are not compared.
"""

import dataclasses
import functools
import pathlib
from dataclasses import field
from typing import Any, NamedTuple

from zoo.base import strict_json
from zoo.data.batches import POLICIES
from zoo.decoding import BeamSearch
from zoo.lab.evaluation.changes import registry
from zoo.lab.evaluation.changes.change import Change
from zoo.lab.evaluation.perplexity import Band, Impossible, LogZ
from zoo.lab.runs.provenance import Code, Machine, check_version
from zoo.lab.runs.seen_texts import KnowledgeText, SeenText
from zoo.lab.runs.workdir import WarmStart

# ---------------------------------------- figures of each kind


@dataclasses.dataclass(frozen=True)
class Part:
    """The figures of some of the counted tokens."""

    tokens: int
    rate: float  # their share of all counted tokens
    log_perplexity: float | None  # nats per token; None without any
    perplexity: float | None


@dataclasses.dataclass(frozen=True)
class SubwordFigures:
    """The figures of a text whose tokens are subwords."""

    tokens: int
    log_perplexity: float


@dataclasses.dataclass(frozen=True)
class Mixture:
    """A mixture of a run with a uniform distribution, see `zoo.lab.evaluation.mixtures`."""

    weight: float
    words: int
    tuned_on: str | None  # the split on which the weight was set; None for a weight that was given

    def __post_init__(self):
        if not 0 <= self.weight < 1:
            raise ValueError(f"weight is {self.weight}, where 0 or more, and below 1, should be")
        strict_json.check_least(self.words, 1, "words")


@dataclasses.dataclass(frozen=True)
class MixtureFigures(Mixture):
    """The figures of a text under a mixture."""

    log_perplexity: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerplexityFigures:
    """The figures of a text."""

    log_perplexity: float  # nats per token
    perplexity: float
    bits: float
    log_z: LogZ | None = None
    bands: tuple[Band, ...] = ()
    seen: Part | None = None
    unseen: Part | None = None
    mixture: MixtureFigures | None = None
    impossible: Impossible | None = None
    per_subword: SubwordFigures | None = None
    strings: Part | None = None
    log_perplexity_over_all_spellings: float | None = None
    log_perplexity_with_boundaries: float | None = None
    tokens_with_boundaries: int | None = None
    interval: tuple[float, float] | None = None  # 95 %, by bootstrap over sentences, of a record


@dataclasses.dataclass(frozen=True, kw_only=True)
class Accuracy:
    """The figures of questions."""

    accuracy: float
    right: int
    interval: tuple[float, float]  # 95 %
    details: dict[str, Any] = field(default_factory=dict)  # further figures of a single judgement


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairAccuracy(Accuracy):
    """The figures of minimal pairs."""

    pairs: int
    skipped: int
    mean_difference: float  # log p(good) - log p(bad), nats
    equal: int | None = None  # pairs of equal sentences, which are left out
    groups: dict[str, dict[str, "PairAccuracy"]] = field(default_factory=dict)
    cases: dict[str, "PairAccuracy"] = field(default_factory=dict)
    both_seen: "PairAccuracy | None" = None  # of the pairs whose words were both in training

    def __post_init__(self):
        if not 0 <= self.right <= self.pairs:
            raise ValueError(f"right is {self.right}, where 0 to {self.pairs} should be")

    def by_case(self) -> dict[str, "PairAccuracy"]:
        """Returns the figures of each case and group."""
        groups = {
            f"{name}: {value}": figures
            for name, group in self.groups.items()
            for value, figures in group.items()
        }
        return {**self.cases, **groups}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerAccuracy(Accuracy):
    """The figures of answers that equal the given ones word for word."""

    answers: int
    complete: int
    well_formed: int | None  # complete answers that a grammar parses; None without a grammar


@dataclasses.dataclass(frozen=True)
class Score:
    """A score of translations."""

    score: float  # percent
    signature: str


# ---------------------------------------- parts of a passport


@dataclasses.dataclass(frozen=True)
class JudgedText:
    """A text by path, size and a hash of its words as read, whatever the path."""

    path: str
    sha256: str
    sentences: int
    words: int


@dataclasses.dataclass(frozen=True)
class SourceText(JudgedText):
    """The sources of translations."""

    out_of_vocabulary: int


@dataclasses.dataclass(frozen=True)
class Policies:
    """The choices that change a figure without changing the model."""

    state: str
    batch: int | None
    boundary: str
    boundary_marks: int | None
    unknown: str
    lower_case: bool
    fused: str | None
    blank_lines: str | None

    def __post_init__(self):
        if self.state not in POLICIES:
            raise ValueError(f"state is {self.state!r}, not {' or '.join(POLICIES)}")


@dataclasses.dataclass(frozen=True)
class LexiconRecord:
    """A lexicon, and the one of training."""

    words: str  # a digest of the words, whatever their order
    size: int
    hash: str | None = None
    of_training: "LexiconRecord | None" = None


# ---- overlap of a judged text with the texts that a model has seen, by the content of sentences
# A model that was trained on a text, or whose checkpoint was chosen on it, has a figure of another
# kind than one that never saw it. Some sentences recur by nature, short ones above all. Measured as
# the share of a text's tokens that stand in sentences of the training text, in percent: of all
# sentences / of those with at least 30 letters.
#
#     Penn Treebank: validation 1.44 / 1.28, test 0.75 / 0.63      micro: test 0.13 / 0
#     Czech news: validation 1.44 / 0.80, test 1.17 / 0.47         GeoQuery: test 0.30 / 0.30
#     UD French: validation 0.38 / 0.39, tests 0.02 / 0 and 0 / 0  Overnight: test 0 / 0
#     Multi30k, English, French, Czech: tests 0 / 0                1 Billion Word: test 0 / 0
#     Tiny Shakespeare, a line a sentence: validation 6.72 / 0, test 2.69 / 0
#
# So a text counts as seen where more than `OF_LONG` of the tokens of its long sentences, or more
# than `OF_ALL` of all its tokens, are found. Below that the share is reported and nothing more.

OF_LONG = 0.05
OF_ALL = 0.25


@dataclasses.dataclass(frozen=True)
class OverlapCounts:
    """Sentences of a text, and tokens in them, that are among others, of all."""

    sentences: int
    of_sentences: int
    tokens: int
    of_tokens: int

    @property
    def share(self) -> float:
        """The share of the tokens that are found; 0 without any."""
        return self.tokens / self.of_tokens if self.of_tokens else 0.0


@dataclasses.dataclass(frozen=True)
class Overlap:
    """How much of a text is among others: of all sentences, and of long ones."""

    all: OverlapCounts
    long: OverlapCounts

    @property
    def is_seen(self) -> bool:
        """Whether more of the text is found than recurs by nature."""
        return self.long.share > OF_LONG or self.all.share > OF_ALL

    def __str__(self):
        if not self.all.tokens:
            return "none of its sentences found"
        text = f"{self.all.share:.2%} of its tokens in sentences found there"
        return f"{text}, {self.long.share:.2%} for long sentences" if self.long.of_tokens else text


@dataclasses.dataclass(frozen=True)
class OverlapByRole:
    """How much of a text is among the texts that a model has seen."""

    letters: int  # of a long sentence, at least
    trained_on: Overlap
    selected_on: Overlap

    def leak(self, split: str) -> str | None:
        """Explains why a figure on a split is not of unseen text; None if it is."""
        if self.trained_on.is_seen:
            return f"it was trained on this text ({self.trained_on})"
        if self.selected_on.is_seen and not is_validation(split):
            return f"its checkpoint was chosen on this text ({self.selected_on})"
        return None


def is_validation(split: str) -> bool:
    """Whether a split is validation text, on which checkpoints are chosen, or a part of it."""
    return split == "validation" or split.endswith(".validation")


@dataclasses.dataclass(frozen=True)
class TrainingRecord:
    """The training of a run."""

    seed: int | None
    recipe_sha256: str
    recipe_but_seed: str | None
    made_with: Code | None
    finished: bool | None = None


class Place(NamedTuple):
    """Where a result was read, and where its scores are kept."""

    name: str
    scores: pathlib.Path
    prefix: str = ""


# ---------------------------------------- passports


@dataclasses.dataclass(frozen=True, kw_only=True)
class Passport:
    """A passport of any kind."""

    kind: str
    split: str
    figures: Any
    tokens: int
    counts: str
    data: JudgedText
    source: SourceText | None = None
    policies: Policies
    normalised_over: str
    changes: tuple[dict, ...]  # of the trained model, see `zoo.lab.evaluation.changes`
    notes: dict[str, int]
    lexicon: LexiconRecord
    source_lexicon: LexiconRecord | None = None
    # the texts that the model has seen; None where they are not known
    trained_on: tuple[SeenText, ...] | None
    selected_on: tuple[SeenText, ...] | None
    not_known: tuple[str, ...] | None
    knowledge: tuple[KnowledgeText, ...] | None = None
    overlap: OverlapByRole | None
    training: TrainingRecord
    head: str
    form: str | None
    model: dict
    vocabulary: dict
    parameters: int
    precision: str
    matmul_precision: str
    checkpoint: int | None
    started_from: WarmStart | None
    versions: dict[str, str]
    revision: str | None
    command: tuple[str, ...] = ()
    date: str
    machine: Machine | None = None
    scores: str | None = None  # digest of the scores of single words or questions
    place: Place | None = field(default=None, compare=False)  # None unless it was read

    def __post_init__(self):
        strict_json.check_least(self.tokens, 0, "tokens")

    @functools.cached_property
    def all_changes(self) -> tuple[Change, ...]:
        """The changes of the trained model."""
        return tuple(map(registry.from_json, self.changes))

    @property
    def leak(self) -> str | None:
        """Why the figure is not of unseen text; None if it is, or if nothing was recorded."""
        return self.overlap.leak(self.split) if self.overlap else None

    @property
    def head_name(self) -> str:
        """The class of the head."""
        return self.head.partition("(")[0]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerplexityPassport(Passport):
    """The passport of a perplexity."""

    figures: PerplexityFigures
    out_of_vocabulary: int
    unknown_tokens: int
    out_of_vocabulary_rate: float
    types: int
    out_of_vocabulary_types: int
    priors_saw_this_text: tuple[str, ...]

    def __post_init__(self):
        strict_json.check_least(self.tokens, 1, "tokens")
        if self.out_of_vocabulary:
            strict_json.check_least(self.types, 1, "types")

    @property
    def is_over_strings(self) -> bool:
        """Whether it is over all strings of bytes, so that the lexicon has no part in it.

        A head that spells words gives every string its probability, as long as no word of the text
        is read as `<unk>`. Where it spells by characters, the lexicon gives the alphabet.
        """
        over = self.normalised_over
        has_unknown = self.out_of_vocabulary or self.unknown_tokens
        return over.startswith("all spellings") and "outside" not in over and not has_unknown


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccuracyPassport(Passport):
    """The passport of an accuracy of questions."""

    figures: Accuracy
    priors_saw_this_text: tuple[str, ...] = ()

    def __post_init__(self):
        super().__post_init__()
        right, accuracy = self.figures.right, self.figures.accuracy
        if not 0 <= right <= self.tokens:
            raise ValueError(f"figures.right is {right}, where 0 to {self.tokens} should be")
        if not 0 <= accuracy <= 1:
            raise ValueError(f"figures.accuracy is {accuracy}, where 0 to 1 should be")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairPassport(AccuracyPassport):
    """The passport of an accuracy on minimal pairs."""

    figures: PairAccuracy


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerPassport(AccuracyPassport):
    """The passport of answers that equal the given ones word for word."""

    figures: AnswerAccuracy


@dataclasses.dataclass(frozen=True)
class DecodingRun:
    """A run that decodes."""

    path: str
    recipe_sha256: str
    checkpoint: int
    weight: float | None = None  # of a language model


@dataclasses.dataclass(frozen=True)
class Decoding:
    """The search and the models of translations."""

    search: BeamSearch
    runs: tuple[DecodingRun, ...]
    average: str | None
    language_model: DecodingRun | None
    unknowns: dict | None = None
    longest_ratio: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationPassport(Passport):
    """The passport of scores of translations."""

    figures: dict[str, Score]
    tokenizer: str
    decoding: Decoding


PASSPORTS: dict[str, type[Passport]] = {
    "perplexity": PerplexityPassport,
    "minimal pairs": PairPassport,
    "exact match": AnswerPassport,
    "slot errors": AccuracyPassport,
    "suite": AccuracyPassport,
    "translation": TranslationPassport,
}


def parse(value: Any, place: Place | None = None, file: Any = "it") -> Passport:
    """Makes a passport of its JSON, by its kind; raises ValueError for the first wrong field, and
    UserError, with the file's name, if a later version of Zoo made it."""
    start = strict_json.parse({"kind": str, "versions": dict[str, str] | None}, value)
    check_version(start.get("versions", {}), file)
    passport = strict_json.parse(PASSPORTS.get(start["kind"], Passport), value)
    for change in passport.changes:
        registry.from_json(change)  # raises the error of a wrong one
    return dataclasses.replace(passport, place=place)
