"""The contract of a task: the data, batches, loss and validation of a kind of model.

The trainer owns devices, keys, the optimiser, checkpoints, signals and the position in the data. It
knows neither words nor perplexity: these are a task's. Another kind of model is trained by the same
loop as soon as a `Task` is written for it; see zoo.training.tasks.
"""

import abc
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from zoo.arrays.sharded_functions import Axes
from zoo.data import Corpus
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.runs.seen_texts import SeenTexts

# The number of a step is an int32 on the devices.
MOST_STEPS = 2**31 - 1


class Batch(NamedTuple):
    """A batch as a training step sees it: all that the step knows of the data."""

    inputs: Any  # a pytree of arrays [B, ...], the arguments of the task's loss
    # float32 [B, ...], weights of the terms of the loss; the loss is divided by their sum
    weights: np.ndarray
    batch_rows: np.ndarray  # int32 [B], the number of each row, from which its random keys are made


class Validation(NamedTuple):
    """The result of a validation."""

    value: float
    figures: dict[str, float]
    summary: str
    lines: Sequence[str] = ()


class Start(NamedTuple):
    """Start values from another run."""

    params: dict[str, Any]
    record: dict
    lines: list[str]


def check_steps(epoch_steps: int, epochs: int):
    """Checks that an int32 can number all steps of a run."""
    if epoch_steps * epochs > MOST_STEPS:
        raise UserError(
            f"training.epochs={epochs} of {epoch_steps:,} steps each are more than the "
            f"{MOST_STEPS:,} steps that a run can count: give at most {MOST_STEPS // epoch_steps}."
        )


def total_steps(of_epochs: int, most: int) -> int:
    """Returns the steps of a whole training."""
    return min(of_epochs, most) if most else of_epochs


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
        """Returns the parameters before the first step, {part: pytree}.

        Args:
          key: the key of their random values.
        """

    @abc.abstractmethod
    def epoch(self, number: int) -> Sequence[Batch]:
        """Returns the batches of an epoch, in order; the same batches at each call.

        Args:
          number: the epoch, from 0.
        """

    def part(self, batches: Sequence[Batch], index: int, rows: slice) -> Batch:
        """Returns some rows of a batch: one process's share of it.

        By default the rows are cut out of the whole batch. A task that can read parts of its
        batches overrides this and reads no other rows.

        Args:
          batches: the batches of an epoch, as `epoch` returns them.
          index: the batch.
          rows: a slice of the rows of the batch.
        """
        return jax.tree.map(lambda leaf: leaf[rows], batches[index])

    @abc.abstractmethod
    def loss(self, params, tables, inputs, weights, carry, key) -> tuple[jax.Array, jax.Array, Any]:
        """Computes the loss of a batch, as a pure function.

        Args:
          params: parameters, as `init` returns them.
          tables: the task's `tables`.
          inputs: `Batch.inputs`.
          weights: `Batch.weights`.
          carry: the carry before the batch; see `carry`.
          key: a `zoo.arrays.types.Keys`, one key for the batch and one for each row.

        Returns:
          (total, penalty, carry): the scalar sum of weights * loss, penalties included, whose
          gradient is taken; the penalties' share of that sum; the carry after the batch.
        """

    @abc.abstractmethod
    def validate(self, params, mesh: jax.sharding.Mesh | None = None) -> Validation:
        """Validates parameters on the validation data.

        Args:
          params: parameters, on the device or as arrays of the mesh.
          mesh: devices with a data axis, perhaps of several processes, all of which validate
            together; None for one device.
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

        Args:
          shapes: the parameters, or their shapes.
        """
        return []

    def summary(self) -> str:
        """Describes the data, for the log."""
        return f"{self.epoch_steps:,} steps an epoch"

    def seen_texts(self, made_with: dict) -> SeenTexts | None:
        """Returns the record of the texts that this task trains on; None if none is kept.

        Args:
          made_with: revision of Zoo and versions of the packages that train.
        """
        return None

    def start(self, path: str | pathlib.Path, frozen: tuple[str, ...]) -> Start:
        """Reads start values from another run: the parts whose parameters fit this task's.

        Args:
          path: the other run's work directory.
          frozen: parts that must be taken.

        Raises:
          UserError: the task does not support `init_from`, or no part of that run fits.
        """
        raise UserError(
            f"init_from={path}: a {type(self).__name__} cannot start from another run: leave it "
            "out."
        )
