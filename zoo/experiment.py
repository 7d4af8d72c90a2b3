"""An experiment: the components themselves, in one frozen dataclass."""

import dataclasses
import math

from zoo.configuration import field_types
from zoo.data import Buckets, Corpus, Source
from zoo.data.batches import POLICIES
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError, check_choices, check_least, check_rates, check_seed
from zoo.heads import Head
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel, Model
from zoo.optimizers import Adam, Optimizer
from zoo.priors.prior import check_splits
from zoo.sources.source import Held


@dataclasses.dataclass(frozen=True)
class Training:
    """How a model is trained.

    Attributes:
      batch: lanes trained side by side, over all devices; of pairs, how many.
      length: positions a step.
      buckets: of pairs, how they are put into batches.
      state: "carried" along contiguous lanes, or "sentences", each from an empty state.
      shuffle: whether the sentences are put in another order every epoch.
      optimizer: the recipe.
      clip: greatest norm of the gradient; 0 does not clip.
      mean_over: what the loss of a batch is a mean over, whose gradient is clipped: "tokens", or
        "pairs", the loss of a pair being the sum over its target's tokens.
      accumulate: in how many pieces of its lanes, one after another, the gradients of a batch are
        formed, for one update: less memory, and the same result but for rounding. Not with
        row_sparse.
      compute: "float32", or "bfloat16" for products of matrices and hidden states with numbers of
        half the bits, whose mantissa has 8. Parameters, the optimiser, log Z, losses, validation
        and evaluation are float32 in any case.
      row_sparse: whether tables of which a step reads some rows only, as sampled heads do, are
        updated in these rows only; needs SGD without momentum, Adagrad or Adam.
      frozen: parts of the parameters that keep their values, such as "embedding" and "core". They
        compute as they are configured, dropout and all, so that the parts above them learn from
        states as they were when these learned; set model.core.dropout=0 where that is not wanted. A
        tied head's weights are the embedding's.
      rates: factors of the learning rate, by the names that paths of parameters begin with, such as
        (("head", 0.1), ("head/bias", 1.0)); the longest name counts. After clipping.
      average: decay of a moving average of the parameters that is validated, kept as the best and
        evaluated in their place, such as 0.999; 0 for none. Not with row_sparse.
      epochs: at most so many.
      patience: stop when validation has not improved for so many validations; 0 never stops early.
      validate_every: steps between validations; 0 validates at the end of each epoch.
      checkpoint_every: steps between checkpoints; there is one at every validation too.
      seed: of parameters, dropout, and the order of sentences.
    """

    batch: int = 32
    length: int = 35
    buckets: Buckets = Buckets()
    state: str = "carried"
    shuffle: bool = False
    optimizer: Optimizer = Adam()
    clip: float = 0.0
    mean_over: str = "tokens"
    accumulate: int = 1
    compute: str = "float32"
    row_sparse: bool = False
    frozen: tuple[str, ...] = ()
    rates: tuple[tuple[str, float], ...] = ()
    average: float = 0.0
    epochs: int = 10
    patience: int = 0
    validate_every: int = 0
    checkpoint_every: int = 1000
    seed: int = 0

    def __post_init__(self):
        check_least(self, "training", batch=1, length=1, epochs=1, checkpoint_every=1, accumulate=1)
        check_least(self, "training", clip=0, patience=0, validate_every=0)
        check_rates(self, "training", "average")
        check_seed(self.seed, "training.seed")
        check_choices(self, "training", state=POLICIES, mean_over=("tokens", "pairs"))
        check_choices(self, "training", compute=("float32", "bfloat16"))
        _check_rates(self.rates)


@dataclasses.dataclass(frozen=True)
class Parallel:
    """How devices share out a model; no result depends on it but for rounding.

    Attributes:
      model: how many devices share out the rows of words of embeddings, heads and what the
        optimiser keeps of them; the others share out the lanes. 1: all of them share out lanes.
    """

    model: int = 1

    def __post_init__(self):
        check_least(self, "parallel", model=1)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How a model is judged.

    Attributes:
      state: "carried" along contiguous lanes, or "sentences", each from an empty state.
      lanes: how many lanes a text is cut into. With a carried state this is a condition of the
        figure, for each lane starts empty; with sentences it does not matter.
      length: positions a step; matters for speed only.
    """

    state: str = "carried"
    lanes: int = 8
    length: int = 64

    def __post_init__(self):
        check_least(self, "evaluation", lanes=1, length=1)
        check_choices(self, "evaluation", state=POLICIES)


def _check_rates(rates):
    """UserError for factors that are no learning rate's, or two of the same name."""
    for name, rate in rates:
        if not 0 < rate < math.inf:
            raise UserError(
                f"training.rates has {rate} for {name!r}: give a number above 0, or name the part "
                "in training.frozen."
            )
    if len(dict(rates)) < len(rates):
        raise UserError(f"training.rates={rates!r} names something twice: leave one out.")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Data, words, model, training and evaluation; what configs/NAME.py returns.

    Attributes:
      data: the source.
      vocabulary: how words are counted and read; of pairs those of the translations.
      model: the components that are trained.
      training: how they are trained.
      evaluation: how they are judged.
      init_from: a work directory of this zoo; the parts of its best parameters that fit this model
        are the values that this one starts with. It is read once, before the first step.
      source_vocabulary: that of the sources of pairs, without boundaries; None for the settings of
        `vocabulary` without its features, its background and its open classes.
      shared_lexicon: whether the words of both sides of pairs are one lexicon, by `vocabulary`.
      parallel: how devices share out the model; it may differ where a run is resumed.

    Raises:
      UserError: for a field that is not of its type, which is named.
    """

    data: Source
    vocabulary: Vocabulary = Vocabulary()
    model: Model = LanguageModel()
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    init_from: str = ""
    source_vocabulary: Vocabulary | None = None
    shared_lexicon: bool = False
    parallel: Parallel = Parallel()

    def __post_init__(self):
        field_types.check(self)

    @property
    def language_model(self) -> LanguageModel:
        """The model, for what only a model of language can do.

        Raises:
          UserError: it is another kind of model.
        """
        if not isinstance(self.model, LanguageModel):
            raise UserError(
                f"model is {type(self.model).__name__}: give a run of a LanguageModel, which says "
                "words without a source."
            )
        return self.model

    @property
    def head(self) -> Head:
        """The head of the model; UserError for a model without one."""
        head = getattr(self.model, "head", None)
        return head if isinstance(head, Head) else self.language_model.head

    @property
    def reading_of_sources(self) -> Vocabulary:
        """How the sources of pairs are read: words alone, for nothing is predicted of them."""
        if self.source_vocabulary is not None and not self.shared_lexicon:
            return dataclasses.replace(self.source_vocabulary, boundary="none")
        return dataclasses.replace(
            self.vocabulary, boundary="none", features=(), background=None, open_classes=()
        )

    def source_of(self, corpus: Corpus) -> Corpus:
        """The sources of a split of pairs, as they are read; UserError if it has none."""
        if corpus.source_text is None:
            raise UserError(
                f"{corpus.name} has no sources, and model is {type(self.model).__name__}: give "
                "data.Pairs."
            )
        lower_case = self.reading_of_sources.lower_case
        return corpus.source_text.lower_cased() if lower_case else corpus.source_text

    def build_sources(self, lexicon: Lexicon, corpora: dict[str, Corpus]) -> Lexicon:
        """The lexicon of the sources of pairs, given that of the translations."""
        if self.shared_lexicon:
            return lexicon
        sources = {split: self.source_of(corpus) for split, corpus in corpora.items()}
        return self.reading_of_sources.build(Held(sources))[0]

    def _words(self) -> tuple[Lexicon, dict[str, Corpus]]:
        """(the lexicon without what the model's background needs, the corpora of all splits)."""
        if not self.shared_lexicon:
            return self.vocabulary.build(self.data)
        corpora = {split: self.vocabulary.read(self.data, split) for split in self.data.splits()}
        both = {split: _both(corpus, self.source_of(corpus)) for split, corpus in corpora.items()}
        return self.vocabulary.build(Held(both, self.data.lexicon_entries()))[0], corpora

    def build(self) -> tuple[Lexicon, dict[str, Corpus]]:
        """(the lexicon with all that the model's background needs, the corpora of all splits)."""
        lexicon, corpora = self._words()
        background = self.model.background
        if background is None:
            return lexicon, corpora
        check_splits(corpora, background.splits)
        texts = {
            split: self.vocabulary.encode(corpora[split], lexicon) for split in background.splits
        }
        prepared = background.prepare(lexicon, texts)
        return dataclasses.replace(lexicon, background_tables=prepared), corpora


def _both(corpus: Corpus, source: Corpus) -> Corpus:
    """The translations and their sources as one text, for a lexicon of both; without features."""
    return Corpus(corpus.name, [*corpus.sentences, *source.sentences])
