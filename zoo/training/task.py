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

from zoo.arrays.partition import Axes
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.runs.seen_texts import SeenTexts

# The number of a step is an int32 on the devices.
MOST_STEPS = 2**31 - 1


class Batch(NamedTuple):
    """A batch as a training step sees it: all that the step knows of the data.

    Attributes:
      inputs: a pytree of arrays [B, ...], what the task's loss reads.
      weights: float32 [B, ...], of the terms of the loss; their sum divides it.
      lanes: int32 [B], the number of each row, from which its random keys are made.
    """

    inputs: Any
    weights: np.ndarray
    lanes: np.ndarray


class Validation(NamedTuple):
    """The result of a validation: how good parameters are.

    Attributes:
      value: the least is the best.
      figures: {name: number} for metrics.jsonl.
      summary: the figures in words, for the log.
      lines: further lines of the log.
    """

    value: float
    figures: dict[str, float]
    summary: str
    lines: Sequence[str] = ()


class Start(NamedTuple):
    """Start values from another run.

    Attributes:
      params: the parts taken, {part: parameters on the host}.
      record: what is to be known of them later, as JSON.
      lines: what was taken and what was not, for the log.
    """

    params: dict[str, Any]
    record: dict
    lines: list[str]


def check_steps(epoch_steps: int, epochs: int):
    """Refuses more steps than a run can number, in int32.

    Args:
      epoch_steps: steps of an epoch.
      epochs: `training.epochs`.

    Raises:
      UserError: there are 2**31 or more; names the epochs.
    """
    if epoch_steps * epochs > MOST_STEPS:
        raise UserError(
            f"training.epochs={epochs} of {epoch_steps:,} steps each are more than the "
            f"{MOST_STEPS:,} steps that a run can count: give at most {MOST_STEPS // epoch_steps}."
        )


class Task(abc.ABC):
    """A model and its data, ready to be trained.

    Attributes:
      data: a digest of the texts; a run is not resumed on others.
      loss_name: what the loss is called where it is shown.
      lexicons: {name: Lexicon} that the run keeps.
      tables: a pytree of arrays, an argument of the loss, the same for all steps.
      epoch_steps: steps of the first epoch.
      total_steps: of all epochs.
      usual_weight: the sum of a usual batch's weights. The loss of a batch with less is divided by
        this, so that two tokens do not move the parameters as far as a full batch does.
    """

    data: str
    loss_name: str = "loss"
    lexicons: Mapping[str, Lexicon]
    tables: Any
    epoch_steps: int
    total_steps: int
    usual_weight: float = 1.0

    @abc.abstractmethod
    def init(self, key: jax.Array) -> dict[str, Any]:
        """Parameters before the first step, {part: pytree}."""

    @abc.abstractmethod
    def epoch(self, number: int) -> Sequence[Batch]:
        """The batches of an epoch, from 0, in their order: the same whenever they are asked for."""

    def part(self, batches: Sequence[Batch], index: int, rows: slice) -> Batch:
        """Some rows of a batch of an epoch, for a process that has no others.

        By default they are cut out of the whole batch; a task whose batches can be read in parts
        reads no more than that.
        """
        return jax.tree.map(lambda leaf: leaf[rows], batches[index])

    @abc.abstractmethod
    def loss(self, params, tables, inputs, weights, carry, key) -> tuple[jax.Array, jax.Array, Any]:
        """(sum of weights * loss, the part of it that is penalty, the carry after the batch).

        A pure function. The sums are scalars; the first is what is trained, penalties and all.

        Args:
          params: of `init`.
          tables: the task's.
          inputs: of a batch.
          weights: of a batch.
          carry: of `carry`.
          key: an `arrays.keys.Keys`, one key for the batch and one for each row.
        """

    @abc.abstractmethod
    def validate(self, params, mesh: jax.sharding.Mesh | None = None) -> Validation:
        """Validates parameters on the validation data.

        Args:
          params: on the device, or arrays of the mesh.
          mesh: devices with a data axis, perhaps of several processes, all of which validate
            together; None for one device.
        """

    def carry(self) -> Any:
        """The carry before the first batch of an epoch, which each batch hands to the next; leaves
        [B, ...]."""
        return ()

    @property
    def parameter_axes(self) -> Axes:
        """Names of the axes of the parameters, by their paths with the part, "head/bias"; what is
        of words or features may be shared out over devices. None has a name by default."""
        return {}

    def row_tables(self, shapes) -> list[tuple[str, ...]]:
        """Paths of the parameters of which a loss reads some rows alone; see training.row_sparse.

        Args:
          shapes: the parameters, or their shapes.
        """
        return []

    def summary(self) -> str:
        """The data in words, for the log."""
        return f"{self.epoch_steps:,} steps an epoch"

    def seen_texts(self, made_with: dict) -> SeenTexts | None:
        """The texts that a run of this task sees, for its passports; None where no record is kept.

        Args:
          made_with: revision and versions of the zoo that trains.
        """
        return None

    def start(self, path: str | pathlib.Path, frozen: tuple[str, ...]) -> Start:
        """The parts of another run's parameters that fit this task's.

        Args:
          path: the run's work directory.
          frozen: parts that have to be taken.

        Raises:
          UserError: nothing can be taken from there.
        """
        raise UserError(f"init_from={path}: a {type(self).__name__} starts with values of its own.")
