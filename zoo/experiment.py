"""Experiments: data, vocabulary, model, training and evaluation in one frozen dataclass."""

import dataclasses
import math

from zoo.configuration import fields
from zoo.data import Buckets, Corpus, Source
from zoo.data.batches import POLICIES, RandomWindows
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError, check_choices, check_least, check_rates, check_seed
from zoo.heads import Head
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel, Model
from zoo.optimizers import Adam, Optimizer
from zoo.priors.prior import check_splits
from zoo.sources.source import InMemory


@dataclasses.dataclass(frozen=True)
class Training:
    """The training of a model.

    Attributes:
      batch: the number of batch rows, or of pairs, of a batch, over all devices.
      length: positions of a batch row in a step; not used for pairs.
      windows: windows of random length, of about `length` positions, whose steps have a rate in
        proportion to their length; None: all have `length` positions. Not for pairs.
      buckets: the length buckets by which pairs are batched.
      state: "carried" along contiguous batch rows, or "sentences", each from an empty state.
      restart: with "carried" state, the probability that a batch row's state is emptied before a
        step. Without it a model begins only once in an epoch, and may fail where generation,
        scoring or a batch row of evaluation begins. Not for pairs.
      shuffle: whether the sentences are shuffled in every epoch.
      optimizer: the recipe of the optimiser.
      clip: greatest norm of the gradient; 0 does not clip.
      mean_over: the loss of a batch is the mean over "tokens", or over "pairs", where the loss of a
        pair is the sum over its target's tokens. Clipping applies to the gradient of this mean.
      accumulate: the number of pieces, one after another, in which the gradients of a batch are
        computed for one update: less memory, and the same result up to rounding. Not with
        row_sparse=True.
      compute: the precision of the operands of matrix products, "float32" or "bfloat16" (16 bits,
        8 of them mantissa). Gradients of matrices are rounded to it, too. Results of products,
        hidden states, losses, parameters, the optimiser, validation and evaluation are float32.
      row_sparse: whether tables of which a step reads only some rows, as embeddings and sampled
        heads do, are updated in these rows only; True needs SGD without momentum, Adagrad or Adam.
        None: where that changes nothing but rounding and is faster, which is with SGD without
        momentum and Adagrad, for tables with at least four rows for each token of a batch.
      frozen: parts of the parameters that keep their values, such as "embedding" and "core". Their
        dropout stays as configured, so that the parts above see states as they were when the
        frozen parts were trained; set model.core.dropout=0 to switch it off. A tied head's weights
        belong to the embedding.
      rates: factors of the learning rate, applied after clipping: (prefix of a parameter's path,
        factor), such as (("head", 0.1), ("head/bias", 1.0)); the longest prefix counts.
      average: decay of a moving average of the parameters, such as 0.999; the average is validated,
        saved as the best checkpoint and evaluated. 0 for none. Not with row_sparse=True.
      average_after: n, a number of validations: as soon as a validation is worse than the best of
        all before it but the last n, training keeps the mean of the parameters after all further
        steps, which is validated, saved as the best checkpoint and evaluated (NT-ASGD). 0: from the
        first step. None: never. Not with row_sparse=True, nor with `average`.
      epochs: the greatest number of epochs.
      steps: the greatest number of steps, over all epochs; 0 for no limit. Schedules of the
        learning rate end with the last step.
      patience: training stops when validation has not improved for this number of validations; 0
        never stops early.
      validate_every: steps between validations; 0 validates at the end of each epoch only.
      checkpoint_every: steps between checkpoints, which are also saved at every validation.
      seed: the seed of parameters, dropout, and the order of sentences.
    """

    batch: int = 32
    length: int = 35
    windows: RandomWindows | None = None
    buckets: Buckets = Buckets()
    state: str = "carried"
    restart: float = 0.0
    shuffle: bool = False
    optimizer: Optimizer = Adam()
    clip: float = 0.0
    mean_over: str = "tokens"
    accumulate: int = 1
    compute: str = "float32"
    row_sparse: bool | None = None
    frozen: tuple[str, ...] = ()
    rates: tuple[tuple[str, float], ...] = ()
    average: float = 0.0
    average_after: int | None = None
    epochs: int = 10
    steps: int = 0
    patience: int = 0
    validate_every: int = 0
    checkpoint_every: int = 1000
    seed: int = 0

    def __post_init__(self):
        """Checks the fields one by one, and the fields that exclude each other."""
        check_least(self, "training", batch=1, length=1, epochs=1, checkpoint_every=1, accumulate=1)
        check_least(self, "training", clip=0, patience=0, validate_every=0, steps=0)
        check_rates(self, "training", "average", "restart")
        check_seed(self.seed, "training.seed")
        check_choices(self, "training", state=("carried", "sentences"))
        check_choices(self, "training", mean_over=("tokens", "pairs"))
        check_choices(self, "training", compute=("float32", "bfloat16"))
        if self.restart and self.state != "carried":
            raise UserError(
                f"training.restart={self.restart} empties a carried state, and training.state is "
                f"{self.state!r}: leave one of them out."
            )
        if self.average_after is not None:
            check_least(self, "training", average_after=0)
            if self.average:
                raise UserError(
                    f"training.average={self.average} and training.average_after="
                    f"{self.average_after} are two averages of the parameters: leave one out."
                )
            if self.average_after and 0 < self.patience < self.average_after + 2:
                raise UserError(
                    f"training.patience={self.patience} stops training before "
                    f"training.average_after={self.average_after} begins: give a patience of at "
                    f"least {self.average_after + 2}, or 0."
                )
        for name, rate in self.rates:
            if not 0 < rate < math.inf:
                raise UserError(
                    f"training.rates has {rate} for {name!r}: give a number above 0, or name the "
                    "part in training.frozen."
                )
        if len(dict(self.rates)) < len(self.rates):
            raise UserError(
                f"training.rates={self.rates!r} names a parameter twice: leave one out."
            )


@dataclasses.dataclass(frozen=True)
class Parallel:
    """The sharding of a model over devices, which changes results by rounding only.

    Attributes:
      model: the number of devices over which the rows of words of embeddings, heads and the
        optimiser's state are sharded. Batch rows are sharded over device count / `model`. 1: only
        batch rows are sharded.
      fsdp: whether all devices together hold the large parameters and their optimiser's state
        once between steps (fully sharded data parallelism). Each step gathers the parameters.
    """

    model: int = 1
    fsdp: bool = False

    def __post_init__(self):
        check_least(self, "parallel", model=1)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The evaluation of a model.

    Attributes:
      state: "carried" along contiguous batch rows, or "sentences", each from an empty state, or
        "items", each from an empty state, with the state carried over an item's sentences.
      batch: the number of batch rows a text is cut into. With a carried state it changes the
        perplexity, for each batch row starts from an empty state; with sentences it does not.
      length: positions of a batch row in a step; changes the speed only.
    """

    state: str = "carried"
    batch: int = 8
    length: int = 64

    def __post_init__(self):
        check_least(self, "evaluation", batch=1, length=1)
        check_choices(self, "evaluation", state=POLICIES)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A whole recipe, as configs/NAME.py returns it.

    Attributes:
      data: the source.
      vocabulary: the vocabulary of the text, or of the targets of pairs.
      model: the components that are trained.
      training: the training.
      evaluation: the evaluation.
      init_from: the work directory of another run, for a warm start: the parts of its best
        parameters that fit this model are the start values. It is read once, before the first step.
      source_vocabulary: the vocabulary of the sources of pairs, without boundaries; None: the
        settings of `vocabulary` without features, background and open classes.
      shared_lexicon: whether both sides of pairs share one lexicon, built by `vocabulary`.
      parallel: the sharding of the model over devices; a resumed run may change it.

    Raises:
      UserError: a field does not have its type; names the field.
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
        fields.check_types(self)

    @property
    def language_model(self) -> LanguageModel:
        """The model, where a language model is needed.

        Raises:
          UserError: it is another kind of model.
        """
        if not isinstance(self.model, LanguageModel):
            raise UserError(
                f"model is {type(self.model).__name__}: give a run of a LanguageModel, which "
                "predicts words without a source."
            )
        return self.model

    @property
    def head(self) -> Head:
        """The head of the model; UserError for a model without one."""
        head = getattr(self.model, "head", None)
        return head if isinstance(head, Head) else self.language_model.head

    @property
    def source_side_vocabulary(self) -> Vocabulary:
        """The vocabulary of the sources of pairs, without boundaries, which are not needed there.

        If it is not given, it has the settings of `vocabulary` for words only.
        """
        if self.source_vocabulary is not None and not self.shared_lexicon:
            return dataclasses.replace(self.source_vocabulary, boundary="none")
        return dataclasses.replace(
            self.vocabulary, boundary="none", features=(), background=None, open_classes=()
        )

    def check_whole_words(self, setting: str):
        """Raises UserError if words are split into subwords, which `setting` does not allow."""
        if any(
            side.subwords is not None for side in (self.vocabulary, self.source_side_vocabulary)
        ):
            raise UserError(
                f"{setting} needs whole words, and vocabulary.subwords splits them: leave one of "
                "them out."
            )

    def source_corpus(self, corpus: Corpus) -> Corpus:
        """Returns the sources of a split of pairs, in lower case if the vocabulary asks for it.

        Raises:
          UserError: the corpus does not have sources.
        """
        if corpus.source_text is None:
            raise UserError(
                f"{corpus.name} has no sources, but model is {type(self.model).__name__}: give "
                "data.Pairs."
            )
        lower_case = self.source_side_vocabulary.lower_case
        return corpus.source_text.lower_cased() if lower_case else corpus.source_text

    def build_source_lexicon(self, lexicon: Lexicon, corpora: dict[str, Corpus]) -> Lexicon:
        """Builds the lexicon of the sources of pairs; they may share the lexicon of the targets."""
        if self.shared_lexicon:
            return lexicon
        sources = {split: self.source_corpus(corpus) for split, corpus in corpora.items()}
        vocabulary = self.source_side_vocabulary
        if getattr(self.model, "source_boundary", False):
            vocabulary = dataclasses.replace(vocabulary, boundary="uncounted")
        return vocabulary.build(InMemory(sources))[0]

    def _words(self) -> tuple[Lexicon, dict[str, Corpus]]:
        """Returns (lexicon, corpora of all splits), without the tables of a background."""
        if self.shared_lexicon and self.source_vocabulary is not None:
            raise UserError(
                "shared_lexicon is True, so that `vocabulary` reads the sources, too, and "
                "source_vocabulary is set: leave one of them out."
            )
        if not self.shared_lexicon:
            return self.vocabulary.build(self.data)
        corpora = {split: self.vocabulary.read(self.data, split) for split in self.data.splits()}
        joint = {  # one text without features
            split: Corpus(corpus.name, [*corpus.sentences, *self.source_corpus(corpus).sentences])
            for split, corpus in corpora.items()
        }
        return self.vocabulary.build(InMemory(joint, self.data.lexicon_entries()))[0], corpora

    def build(self) -> tuple[Lexicon, dict[str, Corpus]]:
        """Reads the data and builds the lexicon.

        Returns:
          (the lexicon with the tables of the model's background, {split: Corpus}).

        Raises:
          UserError: the data cannot be read, or do not fit the recipe.
        """
        sides = self.vocabulary, self.source_side_vocabulary
        head = getattr(self.model, "head", None)
        for setting, is_set in {
            f"a {type(self.model).__name__}": isinstance(self.model, LanguageModel),
            "data.unknowns": self.data.unknowns is not None,
            "model.head.renormalised": getattr(head, "renormalised", False),
            "vocabulary.features": any(side.features for side in sides),
            "vocabulary.unknown=refused": any(side.unknown == "refused" for side in sides),
        }.items():
            if is_set:
                self.check_whole_words(setting)
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
