"""Tasks: the data, batches, losses and validation of each kind of model, for the one trainer.

    task = tasks.prepare(experiment)

makes the task of `experiment.model`. The trainer owns devices, keys, the optimiser, checkpoints,
signals and the position in the data. It knows neither words nor perplexity: these are a task's. To
train a new kind of model, register its task:

    @tasks.task_of.register
    def _(model: MyModel, experiment, device_count=0):
        return MyTask(model, experiment)
"""

import abc
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from zoo.base.arrays.parameter_sharding import Axes
from zoo.data import Corpus
from zoo.data.batches import Batches, BucketedPairs, batch_count
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.experiment import Experiment, Training
from zoo.heads import distributions
from zoo.lab.evaluation import perplexity
from zoo.lab.runs import seen_texts
from zoo.lab.runs.provenance import Code
from zoo.lab.runs.seen_texts import SeenTexts
from zoo.lab.training import average, costs, devices, warm_start
from zoo.lab.training.step import Batch
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel, SequenceToSequence

# The number of a step is an int32 on the devices.
MAX_STEPS = 2**31 - 1


def check_steps(epoch_steps: int, recipe: Training):
    """Raises UserError if an int32 cannot number all steps of a run."""
    if min(epoch_steps * recipe.epochs, recipe.steps or math.inf) > MAX_STEPS:
        raise UserError(
            f"training.epochs={recipe.epochs} of {epoch_steps:,} steps each are more than the "
            f"{MAX_STEPS:,} steps that a run can count: give at most {MAX_STEPS // epoch_steps}."
        )


class Validation(NamedTuple):
    """The result of a validation."""

    value: float
    figures: dict[str, float]
    summary: str
    lines: Sequence[str] = ()


class Task(abc.ABC):
    """A model and its data, ready to be trained.

    Attributes:
      data: a digest of the texts; a run is not resumed on other texts.
      loss_name: the name of the loss in logs and metrics.
      lexicons: {name: Lexicon} that the run keeps.
      corpora: {split: text}, with "train" and "validation"; a task without `seen_texts` needs none.
      tables: a pytree of arrays, an argument of the loss, the same for all steps.
      epoch_steps: steps of the first epoch.
      total_steps: steps of all epochs, at most `training.steps`.
      usual_weight: the sum of a usual batch's weights. The loss of a batch whose weights sum to
        less is divided by `usual_weight`, so that two tokens do not move the parameters as far as
        a full batch does.
      usual_length: the number of positions of a usual batch. The learning rate of a step, and the
        `usual_weight` of its batch, are multiplied by its own number of positions, the second axis
        of its weights, over this number; 0: by 1.
    """

    data: str
    loss_name: str = "loss"
    lexicons: Mapping[str, Lexicon]
    corpora: dict[str, Corpus]
    tables: Any
    epoch_steps: int
    total_steps: int
    usual_weight: float = 1.0
    usual_length: int = 0

    @abc.abstractmethod
    def init(self, key: jax.Array) -> dict[str, Any]:
        """Returns the parameters before the first step, {part: pytree}."""

    @abc.abstractmethod
    def epoch(self, number: int) -> Sequence:
        """Returns the batches of an epoch, in order, for `part`; the same at each call."""

    def part(self, batches: Sequence, index: int, rows: slice = slice(None)) -> Batch:
        """Returns some rows of a batch: one process's share, here cut out of the whole batch.

        A task that can read parts of its batches overrides this and reads no other rows.
        """
        return jax.tree.map(lambda leaf: leaf[rows], batches[index])

    @abc.abstractmethod
    def loss(self, params, tables, inputs, weights, carry, key) -> tuple[jax.Array, jax.Array, Any]:
        """Computes (total, penalty, carry) of a `Batch`, as a pure function.

        The total is the scalar sum of weights * loss, penalties included, whose gradient is taken;
        the penalty is the penalties' share of it; the carry is the one after the batch. `key` is a
        `zoo.base.arrays.random_keys.Keys`, one key for the batch and one for each row.
        """

    @abc.abstractmethod
    def validate(self, params, mesh: jax.sharding.Mesh | None = None) -> Validation:
        """Validates parameters on the validation data.

        All processes of a mesh with a data axis validate together; None: one device.
        """

    def carry(self) -> Any:
        """Returns the carry before the first batch of an epoch, leaves [B, ...].

        `loss` maps the carry before a batch to the carry before the next batch.
        """
        return ()

    @property
    def parameter_axes(self) -> Axes:
        """Names of the parameters' axes, {path such as "head/bias": names}.

        Axes of words and features may be sharded over devices. No axis has a name by default.
        """
        return {}

    def row_tables(self, shapes) -> list[tuple[str, ...]]:
        """Returns the paths of the tables of which one step reads only some rows.

        `training.row_sparse` updates only these rows.
        """
        return []

    def summary(self) -> str:
        """Describes the data, for the log."""
        return f"{self.epoch_steps:,} steps an epoch"

    def seen_texts(self, made_with: Code) -> SeenTexts | None:
        """Returns the record of the texts that this task trains on; None if none is kept."""
        return None

    def start(self, path: str, frozen: tuple[str, ...]) -> warm_start.Start:
        """Reads start values from another run: the fitting parts, among them all in `frozen`."""
        raise UserError(
            f"init_from={path}: a {type(self).__name__} cannot start from another run: leave it "
            "out."
        )


class TextTask(Task):
    """What the tasks of Zoo's own models share: texts that are encoded, and their perplexity.

    The weights of a batch are 1 for targets that have a loss in training.
    """

    sharded: tuple[str, ...] = ("embedding", "head")  # parts with axes of words or features
    inputs: ClassVar[Any]  # a named tuple of some fields of a batch of zoo.data

    def __init__(self, experiment, lexicons: Sequence[Lexicon], corpora: dict):
        """Builds the tables of a model."""
        self.experiment, self.corpora = experiment, corpora
        self.model, self.recipe = experiment.model, experiment.training
        self.lexicon, self._all_lexicons = lexicons[0], tuple(lexicons)
        self.lexicons = dict(zip(self.model.lexicon_names, lexicons, strict=True))
        self.loss_name = self.model.head.loss_name
        self.tables = self.model.tables(*lexicons)
        distributions.check_untrained(self.model, self.tables, *lexicons)

    def _check_counted(self, text: EncodedText):
        """Raises UserError if no token of the validation text is counted."""
        if not text.counted.any():
            name = self.corpora["validation"].name
            raise UserError(f"no token of {name} is counted: give another.")

    def init(self, key):
        return self.model.init(key, *self._all_lexicons)

    def part(self, batches, index, rows=slice(None)):
        batch = batches.part(index, rows)
        inputs = self.inputs(*(getattr(batch, name) for name in self.inputs._fields))
        return Batch(inputs, batch.trained, np.arange(self.recipe.batch, dtype=np.int32)[rows])

    @property
    def parameter_axes(self):
        return average.collect_axes(self.model, self.sharded)

    def row_tables(self, shapes):
        return self.model.row_tables(shapes)

    def seen_texts(self, made_with):
        return seen_texts.collect_seen_texts(self.experiment, self.corpora, self.data, made_with)

    def start(self, path, frozen):
        return warm_start.read(path, self.model, self._all_lexicons, frozen)


# ------ language modelling: the next word of a text, validated by its exact log-perplexity

# The most epochs whose steps are counted one by one, where epochs differ in steps.
COUNTED_EPOCHS = 1000


class Words(NamedTuple):
    """The inputs of a batch, [B, T] each."""

    words: np.ndarray
    targets: np.ndarray
    reset: np.ndarray


class LanguageModelling(TextTask):
    """The task of a language model. A batch row's carry passes from each batch to the next."""

    inputs = Words

    def __init__(self, experiment, lexicon, corpora: dict):
        """Encodes the texts and counts the steps."""
        if experiment.training.mean_over != "tokens":
            raise UserError(
                f"training.mean_over is {experiment.training.mean_over!r}, but a text does not "
                "have pairs: give 'tokens'."
            )
        super().__init__(experiment, (lexicon,), corpora)
        self.boundary = lexicon.ids.get(lexicon.boundary)
        vocabulary, evaluation = experiment.vocabulary, experiment.evaluation
        self.text = vocabulary.encode(corpora["train"], lexicon)
        self.mixture = corpora["train"].mixture
        self.validation = vocabulary.encode(corpora["validation"], lexicon)
        self.validation_rows = Batches(
            self.validation, evaluation.batch, evaluation.length, evaluation.state, self.boundary
        )
        self._check_counted(self.validation)
        self.data = f"{self.text.digest()}-{self.validation.digest()}"
        self.usual_length = self.recipe.length if self.recipe.windows else 0
        first = self.epoch(0)
        self.epoch_steps = len(first)
        self.usual_weight = max(1.0, first.trained_tokens / len(first))
        steps = self._count_steps()
        self.total_steps = min(steps, self.recipe.steps or steps)

    def _count_steps(self) -> int:
        """Counts the steps of all epochs, whatever training.steps is."""
        recipe, epochs = self.recipe, self.recipe.epochs
        check_steps(self.epoch_steps, recipe)  # before any epoch is laid out
        shuffled = recipe.shuffle and recipe.state == "sentences"
        if not (self.mixture or shuffled or recipe.windows):
            return self.epoch_steps * epochs
        # Steps depend on the sentences that are drawn, on how well they fill the batch rows in
        # their order, and on the windows. Epochs after COUNTED_EPOCHS are taken to have the mean
        # number of steps.
        counted_epochs = min(epochs, COUNTED_EPOCHS)
        steps = 0
        for epoch in range(counted_epochs):
            order = self._order(epoch)
            lengths = self.text.lengths if order is None else self.text.lengths[order]
            steps += batch_count(lengths, *self._layout(), self._windows(epoch))
        return steps * epochs // counted_epochs

    def loss(self, params, tables, inputs, weights, carry, key):
        return words_loss(self.model, params, tables, inputs, weights, carry, key)

    def carry(self):
        return self.model.initial_carry(self.recipe.batch)

    def epoch(self, number: int) -> Batches:
        """Arranges the sentences of an epoch, in their order, in batch rows."""
        order = self._order(number)
        text = self.text if order is None else self.text.reordered(order)
        return Batches(text, *self._layout(), self._windows(number), self._restarts(number))

    def _layout(self) -> tuple[int, int, str, int | None]:
        """Returns the arguments of `Batches` that are the same in all epochs."""
        recipe = self.recipe
        return recipe.batch, recipe.length, recipe.state, self.boundary

    def _windows(self, epoch: int):
        """Returns the function that draws an epoch's window starts; None without windows."""
        recipe = self.recipe
        if not recipe.windows:
            return None
        generator = np.random.default_rng((recipe.seed, epoch, 1))  # 1: not the order's stream
        return functools.partial(recipe.windows.starts, length=recipe.length, generator=generator)

    def _restarts(self, epoch: int):
        """Returns the function that draws where states are reset; None without restarts."""
        if not self.recipe.restart:
            return None
        generator = np.random.default_rng((self.recipe.seed, epoch, 2))
        return lambda shape: generator.random(shape) < self.recipe.restart

    def _order(self, epoch: int) -> np.ndarray | None:
        """Returns the indices of an epoch's sentences in their order; None for the text's order."""
        generator = np.random.default_rng((self.recipe.seed, epoch))
        if self.mixture:
            return self.mixture.order(generator)
        return generator.permutation(len(self.text.starts)) if self.recipe.shuffle else None

    def validate(self, params, mesh=None):
        scores = perplexity.score(
            self.model, params, self.tables, self.validation, self.validation_rows, mesh
        )
        return make_validation(scores, self.validation, self.lexicon)

    def summary(self):
        words = "characters" if self.lexicon.is_character_level else "words"
        return (
            f"{len(self.lexicon):,} {words}, {len(self.text.words):,} training tokens, "
            f"{self.epoch_steps:,} steps an epoch"
        )


def make_validation(scores: perplexity.Scores, text: EncodedText, lexicon: Lexicon) -> Validation:
    """Summarises the exact log-perplexity of a text as a Validation."""
    impossible = perplexity.impossible_words(scores, text, lexicon)
    bits = perplexity.bits(scores.log_perplexity)
    bits_note = f", {bits:.4f} bits per character" if lexicon.is_character_level else ""
    return Validation(
        scores.log_perplexity,
        {
            "validation_log_perplexity": scores.log_perplexity,
            "validation_perplexity": scores.perplexity,
        },
        f"validation log-perplexity {scores.log_perplexity:.4f}, perplexity "
        f"{scores.perplexity:.2f}{bits_note}",
        [f"  {impossible.sentence}"] if impossible else [],
    )


def words_loss(model, params, tables, inputs, weights, carry, key):
    """Computes the loss of a language model on `Words`; see `Task.loss`."""
    words, targets, reset = inputs
    return model.weighted_loss(params, tables, words, targets, weights, carry, reset=reset, key=key)


# ---- translation: target sentences given sources, validated by their exact log-perplexity


class SourcesAndTargets(NamedTuple):
    """The inputs of a batch; see `zoo.data.batches.PairBatch`."""

    source: np.ndarray  # int32 [B, S]
    lengths: np.ndarray  # int32 [B]
    words: np.ndarray  # int32 [B, T]
    targets: np.ndarray  # int32 [B, T]


class Translation(TextTask):
    """The task of a `SequenceToSequence` model. Batches of pairs do not have a carry."""

    sharded = ("source_embedding", "embedding", "head")
    inputs = SourcesAndTargets

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
        super().__init__(experiment, (lexicon, source_lexicon), corpora)
        self.source_lexicon = source_lexicon
        train, self.validation = (
            perplexity.read(experiment, lexicon, source_lexicon, corpora[split])
            for split in ("train", "validation")
        )
        self._check_counted(self.validation.target)
        buckets = self.recipe.buckets
        self.pairs = BucketedPairs(train, self.recipe.batch, buckets.padding, buckets.longest)
        texts = train.target, self.validation.target, train.source, self.validation.source
        self.data = "-".join(text.digest() for text in texts)
        self.epoch_steps = self.pairs.steps
        steps = self.epoch_steps * self.recipe.epochs
        self.total_steps = min(steps, self.recipe.steps or steps)
        total = len(self.pairs.pairs) if self.recipe.mean_over == "pairs" else self.pairs.tokens
        self.usual_weight = max(1.0, total / self.epoch_steps)

    def epoch(self, number):
        generator = np.random.default_rng((self.recipe.seed, number))
        return self.pairs.epoch(generator if self.recipe.shuffle else None)

    def loss(self, params, tables, inputs, weights, carry, key):
        return *self.model.weighted_loss(params, tables, *inputs, weights, key=key), carry

    def validate(self, params, mesh=None):
        scores = perplexity.score_pairs(
            self.model, params, self.tables, self.validation, self.experiment.evaluation.batch, mesh
        )
        text, scores = perplexity.merge_subwords(
            self.validation.target, scores, self.experiment.vocabulary, self.lexicon
        )
        return make_validation(scores, text, self.lexicon)

    def summary(self):
        pairs, shapes = self.pairs, self.pairs.shapes
        longest = self.recipe.buckets.longest
        dropped = (
            f"{pairs.dropped:,} pairs with more than training.buckets.longest={longest} words on a "
            "side are left out of training; "
            if pairs.dropped
            else ""
        )
        shape_list = ", ".join(f"{source} x {target}" for source, target in shapes)
        noun = "shapes" if len(shapes) > 1 else "shape"
        sizes = f"{len(shapes)} {noun} (source x target: {shape_list})"
        return (
            f"{dropped}{len(self.source_lexicon):,} source words, {len(self.lexicon):,} target "
            f"words, {len(pairs.pairs):,} pairs, {pairs.tokens:,} target tokens, "
            f"{self.epoch_steps:,} steps an epoch in {sizes}, {pairs.padding:.1%} padding"
        )


def prepare(experiment: Experiment, device_count: int = 0) -> Task:
    """Reads an experiment's data and makes its task."""
    return task_of(experiment.model, experiment, device_count)


@functools.singledispatch
def task_of(model, experiment: Experiment, device_count: int = 0) -> Task:
    """Makes the task of a model, by the model's class."""
    raise UserError(
        f"model is {type(model).__name__}, a class without a task: register one with "
        "zoo.lab.training.tasks.task_of."
    )


@task_of.register
def _(model: LanguageModel, experiment: Experiment, device_count: int = 0) -> Task:
    devices_used = devices.select_devices(device_count)
    lexicon, corpora = experiment.build()
    costs.check(experiment, (lexicon,), devices_used)
    return LanguageModelling(experiment, lexicon, corpora)


@task_of.register
def _(model: SequenceToSequence, experiment: Experiment, device_count: int = 0) -> Task:
    devices_used = devices.select_devices(device_count)
    lexicon, corpora = experiment.build()
    lexicons = lexicon, experiment.build_source_lexicon(lexicon, corpora)
    costs.check(experiment, lexicons, devices_used)
    return Translation(experiment, *lexicons, corpora)
