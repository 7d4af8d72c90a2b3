"""Tasks: the data, batches and losses of each kind of model, for the one trainer.

    task = tasks.prepare(experiment)

makes the task of `experiment.model`. To train a new kind of model, register its task:

    @tasks.task_of.register
    def _(model: MyModel, experiment, device_count=0):
        return MyTask(model, experiment)
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo.data.batches import Batches, batch_count
from zoo.data.encoded_text import EncodedText
from zoo.data.pair_batches import BucketedPairs, PairBatches
from zoo.errors import UserError
from zoo.evaluation import perplexity
from zoo.experiment import Experiment
from zoo.heads import distributions
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel, SequenceToSequence
from zoo.runs import word_sources
from zoo.training import average, devices, memory_needs, warm_start
from zoo.training.task import Batch, Task, Validation, check_steps, total_steps

# ------ language modelling: the next word of a text, validated by its exact log-perplexity

# The most epochs whose steps are counted one by one, where epochs differ in steps.
COUNTED_EPOCHS = 1000


class Words(NamedTuple):
    """The inputs of a batch, [B, T] each."""

    words: np.ndarray
    targets: np.ndarray
    reset: np.ndarray


class LanguageModelling(Task):
    """The task of a language model, on the texts of an experiment.

    The weights of a batch are 1 for targets that have a loss in training. A batch row's carry
    passes from each batch to the next.
    """

    def __init__(self, experiment, lexicon, corpora: dict):
        """Encodes the texts."""
        if experiment.training.mean_over != "tokens":
            raise UserError(
                f"training.mean_over is {experiment.training.mean_over!r}, but a text does not "
                "have pairs: give 'tokens'."
            )
        self.experiment, self.corpora = experiment, corpora
        self.model, self.recipe = experiment.model, experiment.training
        self.lexicon, self.lexicons = lexicon, {"lexicon": lexicon}
        self.loss_name = self.model.head.loss_name
        self.tables = self.model.tables(lexicon)
        distributions.check_untrained(self.model, self.tables, lexicon)
        self.boundary = lexicon.ids.get(lexicon.boundary)
        vocabulary, evaluation = experiment.vocabulary, experiment.evaluation
        self.text = vocabulary.encode(corpora["train"], lexicon)
        self.mixture = corpora["train"].mixture
        self.validation = vocabulary.encode(corpora["validation"], lexicon)
        self.validation_rows = Batches(
            self.validation, evaluation.batch, evaluation.length, evaluation.state, self.boundary
        )
        if not self.validation.counted.any():
            raise UserError(f"no token of {corpora['validation'].name} is counted: give another.")
        self.data = f"{self.text.digest()}-{self.validation.digest()}"
        self.usual_length = self.recipe.length if self.recipe.windows else 0
        first = self.batches(0)
        self.epoch_steps = len(first)
        self.usual_weight = max(1.0, first.trained_tokens / len(first))
        self.total_steps = total_steps(self._count_steps(), self.recipe.steps)

    def _count_steps(self) -> int:
        """Counts the steps of all epochs; UserError if they are more than a run can number."""
        recipe, epochs = self.recipe, self.recipe.epochs
        check_steps(self.epoch_steps, epochs)
        shuffled = recipe.shuffle and recipe.state == "sentences"
        if not (self.mixture or shuffled or recipe.windows):
            return self.epoch_steps * epochs
        # Steps depend on the sentences that are drawn, on how well they fill the batch rows in
        # their order, and on the windows. Epochs after COUNTED_EPOCHS are taken to have the mean
        # number of steps.
        counted = min(epochs, COUNTED_EPOCHS)
        steps = 0
        for epoch in range(counted):
            order = self._order(epoch)
            lengths = self.text.lengths if order is None else self.text.lengths[order]
            steps += batch_count(lengths, *self._layout(), self._windows(epoch))
        return steps * epochs // counted

    def init(self, key):
        """Returns the parameters of the components, {"embedding", "core", "head"}."""
        return self.model.init(key, self.lexicon)

    def loss(self, params, tables, inputs, weights, carry, key):
        """Computes the model's `weighted_loss` of `Words`; see Task.loss."""
        return words_loss(self.model, params, tables, inputs, weights, carry, key)

    def carry(self):
        """Returns the core's and the background's state before the first word."""
        return self.model.initial_carry(self.recipe.batch)

    def epoch(self, number):
        """Returns the batches of an epoch."""
        return WordBatches(self.batches(number))

    def part(self, batches, index, rows):
        """Reads some batch rows of a batch."""
        return batches.part(index, rows)

    def batches(self, epoch: int) -> Batches:
        """Lays out an epoch's sentences, in their order, in batch rows."""
        order = self._order(epoch)
        text = self.text if order is None else self.text.reordered(order)
        return Batches(text, *self._layout(), self._windows(epoch), self._restarts(epoch))

    def _layout(self) -> tuple[int, int, str, int | None]:
        """Returns the arguments of `Batches` that are the same in all epochs."""
        recipe = self.recipe
        return recipe.batch, recipe.length, recipe.state, self.boundary

    def _windows(self, epoch: int):
        recipe = self.recipe
        if not recipe.windows:
            return None
        generator = np.random.default_rng((recipe.seed, epoch, 1))  # 1: not the order's stream
        return functools.partial(recipe.windows.starts, length=recipe.length, generator=generator)

    def _restarts(self, epoch: int):
        if not self.recipe.restart:
            return None
        generator = np.random.default_rng((self.recipe.seed, epoch, 2))
        return lambda shape: generator.random(shape) < self.recipe.restart

    def _order(self, epoch: int) -> np.ndarray | None:
        """Returns the numbers of an epoch's sentences in their order; None for the text's order."""
        generator = np.random.default_rng((self.recipe.seed, epoch))
        if self.mixture:
            return self.mixture.order(generator)
        return generator.permutation(len(self.text.starts)) if self.recipe.shuffle else None

    def validate(self, params, mesh=None):
        """Computes the exact log-perplexity of the validation text, nats per counted token."""
        scores = perplexity.score(
            self.model, params, self.tables, self.validation, self.validation_rows, mesh
        )
        return validation_of(scores, self.validation, self.lexicon)

    @property
    def parameter_axes(self):
        """Axis names of the embedding's and the head's parameters."""
        return average.axes_of(self.model, ("embedding", "head"))

    def row_tables(self, shapes):
        """Returns the paths of the word tables of which one step reads only some rows."""
        return self.model.row_tables(shapes)

    def summary(self):
        """Describes the data: words, training tokens and steps."""
        words = "characters" if self.lexicon.of_characters else "words"
        return (
            f"{len(self.lexicon):,} {words}, {len(self.text.words):,} training tokens, "
            f"{self.epoch_steps:,} steps an epoch"
        )

    def seen_texts(self, made_with):
        """Returns a record of this run's texts and of texts that the model's parts saw before."""
        return word_sources.inherited(self.experiment, self.corpora, self.data, made_with)

    def start(self, path, frozen):
        """Reads the parts of another run that fit, such as its core; see training.warm_start."""
        return warm_start.read(path, self.model, self.lexicon, frozen)


class WordBatches:
    """Batches of a text in batch rows; `batches[i]` is the i-th, in any order of access."""

    def __init__(self, batches: Batches):
        """Wraps the batch rows of an epoch."""
        self.batches = batches
        self.numbers = np.arange(batches.batch, dtype=np.int32)

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        return self.part(index)

    def part(self, index: int, rows: slice = slice(None)) -> Batch:
        """Returns some batch rows of a batch."""
        batch = self.batches.part(index, rows)
        inputs = Words(batch.words, batch.targets, batch.reset)
        return Batch(inputs, batch.trained, self.numbers[rows])


def validation_of(scores: perplexity.Scores, text: EncodedText, lexicon: Lexicon) -> Validation:
    """Makes a Validation of the exact log-perplexity of a text."""
    impossible = perplexity.impossible_words(scores, text, lexicon)
    bits = scores.log_perplexity / math.log(2)
    of_characters = f", {bits:.4f} bits per character" if lexicon.of_characters else ""
    return Validation(
        scores.log_perplexity,
        {
            "validation_log_perplexity": scores.log_perplexity,
            "validation_perplexity": scores.perplexity,
        },
        f"validation log-perplexity {scores.log_perplexity:.4f}, perplexity "
        f"{scores.perplexity:.2f}{of_characters}",
        [f"  {impossible.sentence}"] if impossible else [],
    )


def words_loss(model, params, tables, inputs, weights, carry, key):
    """Computes the `weighted_loss` of a language model on `Words`; see Task.loss."""
    return model.weighted_loss(
        params,
        tables,
        inputs.words,
        inputs.targets,
        weights,
        carry,
        reset=inputs.reset,
        key=key,
    )


# ---- translation: target sentences given sources, validated by their exact log-perplexity


class SourcesAndTargets(NamedTuple):
    """The inputs of a batch; see `zoo.data.pair_batches.PairBatch`."""

    source: np.ndarray  # int32 [B, S]
    lengths: np.ndarray  # int32 [B]
    words: np.ndarray  # int32 [B, T]
    targets: np.ndarray  # int32 [B, T]


class Translation(Task):
    """The task of a `SequenceToSequence` model, on the pairs of an experiment.

    The weights of a batch are 1 for targets that have a loss in training. Batches do not have a
    carry.
    """

    def __init__(self, experiment, lexicon, source_lexicon, corpora: dict):
        """Encodes the pairs and chooses the shapes of their batches."""
        if experiment.training.restart:
            raise UserError(
                "training.restart empties the state along running text, and pairs have none: set "
                "training.restart=0."
            )
        if experiment.training.windows is not None:
            raise UserError(
                "training.windows cuts running text, and pairs are batched whole: set "
                "training.windows=None."
            )
        self.experiment, self.corpora = experiment, corpora
        self.model, self.recipe = experiment.model, experiment.training
        self.lexicon, self.source_lexicon = lexicon, source_lexicon
        self.lexicons = dict(zip(self.model.lexicon_names, (lexicon, source_lexicon), strict=True))
        self.loss_name = self.model.head.loss_name
        self.tables = self.model.tables(lexicon, source_lexicon)
        distributions.check_untrained(self.model, self.tables, lexicon, source_lexicon)
        train, self.validation = (
            perplexity.read(experiment, lexicon, source_lexicon, corpora[split])
            for split in ("train", "validation")
        )
        if not self.validation.target.counted.any():
            raise UserError(f"no token of {corpora['validation'].name} is counted: give another.")
        buckets = self.recipe.buckets
        self.pairs = BucketedPairs(train, self.recipe.batch, buckets.padding, buckets.longest)
        texts = train.target, self.validation.target, train.source, self.validation.source
        self.data = "-".join(text.digest() for text in texts)
        self.epoch_steps = self.pairs.steps
        of_epochs = self.epoch_steps * self.recipe.epochs
        self.total_steps = total_steps(of_epochs, self.recipe.steps)
        counted = len(self.pairs.pairs) if self.recipe.mean_over == "pairs" else self.pairs.tokens
        self.usual_weight = max(1.0, counted / self.epoch_steps)

    def init(self, key):
        """Returns the parameters of each component; see `SequenceToSequence.init`."""
        return self.model.init(key, self.lexicon, self.source_lexicon)

    def epoch(self, number):
        """Returns the batches of an epoch, with pairs bucketed by length."""
        generator = np.random.default_rng((self.recipe.seed, number))
        return PairedBatches(self.pairs.epoch(generator if self.recipe.shuffle else None))

    def part(self, batches, index, rows):
        """Reads some pairs of a batch."""
        return batches.part(index, rows)

    def loss(self, params, tables, inputs, weights, carry, key):
        """Computes the model's `weighted_loss` of `SourcesAndTargets`; see Task.loss."""
        return *self.model.weighted_loss(params, tables, *inputs, weights, key=key), carry

    def validate(self, params, mesh=None):
        """Computes the exact log-perplexity of the validation targets, nats per counted token."""
        batch_rows = self.experiment.evaluation.batch
        scores = perplexity.score_pairs(
            self.model, params, self.tables, self.validation, batch_rows, mesh
        )
        return validation_of(scores, self.validation.target, self.lexicon)

    @property
    def parameter_axes(self):
        """Axis names of the embeddings' and the head's parameters."""
        return average.axes_of(self.model, ("source_embedding", "embedding", "head"))

    def row_tables(self, shapes):
        """Returns the paths of the word tables of which one step reads only some rows."""
        return self.model.row_tables(shapes)

    def summary(self):
        """Describes the data: words, pairs, shapes, padding and pairs that are left out."""
        pairs, shapes = self.pairs, self.pairs.shapes
        longest = self.recipe.buckets.longest
        left_out = (
            f"{pairs.dropped:,} pairs with more than training.buckets.longest={longest} words on a "
            "side are left out of training; "
            if pairs.dropped
            else ""
        )
        named = ", ".join(f"{source} x {target}" for source, target in shapes)
        sizes = f"{len(shapes)} shape{'s' * (len(shapes) > 1)} (source x target: {named})"
        return (
            f"{left_out}{len(self.source_lexicon):,} source words, {len(self.lexicon):,} target "
            f"words, {len(pairs.pairs):,} pairs, {pairs.tokens:,} target tokens, "
            f"{self.epoch_steps:,} steps an epoch in {sizes}, {pairs.padding:.1%} padding"
        )

    def seen_texts(self, made_with):
        """Returns a record of this run's texts and of texts that the model's parts saw before."""
        return word_sources.inherited(self.experiment, self.corpora, self.data, made_with)

    def start(self, path, frozen):
        """Reads the parts of another run that fit; see training.warm_start."""
        return warm_start.read(path, self.model, self.lexicon, frozen, self.source_lexicon)


class PairedBatches(Sequence):
    """Batches of pairs for the trainer."""

    def __init__(self, pairs: PairBatches):
        """Wraps the pairs of an epoch."""
        self.pairs = pairs

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.part(index)

    def part(self, index: int, rows: slice = slice(None)) -> Batch:
        """Returns some pairs of a batch."""
        one = self.pairs.part(index, rows)
        inputs = SourcesAndTargets(one.source, one.lengths, one.words, one.targets)
        batch_rows = np.arange(len(self.pairs.rows[index][0]), dtype=np.int32)[rows]
        return Batch(inputs, one.trained, batch_rows)


def prepare(experiment: Experiment, device_count: int = 0) -> Task:
    """Reads an experiment's data and makes its task."""
    return task_of(experiment.model, experiment, device_count)


@functools.singledispatch
def task_of(model, experiment: Experiment, device_count: int = 0) -> Task:
    """Makes the task of a model, by the model's class."""
    raise UserError(
        f"model is {type(model).__name__}, a class without a task: register one with "
        "zoo.training.tasks.task_of."
    )


@task_of.register
def _(model: LanguageModel, experiment: Experiment, device_count: int = 0) -> Task:
    used = devices.own(devices.chosen(device_count))
    lexicon, corpora = experiment.build()
    memory_needs.check(experiment, (lexicon,), used)
    return LanguageModelling(experiment, lexicon, corpora)


@task_of.register
def _(model: SequenceToSequence, experiment: Experiment, device_count: int = 0) -> Task:
    used = devices.own(devices.chosen(device_count))
    lexicon, corpora = experiment.build()
    lexicons = lexicon, experiment.build_sources(lexicon, corpora)
    memory_needs.check(experiment, lexicons, used)
    return Translation(experiment, *lexicons, corpora)
