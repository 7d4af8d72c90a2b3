"""Recipes of optimisers and learning-rate schedules, which build optax's.

The examples begin with

    >>> import jax.numpy as jnp
    >>> from zoo import optimizers
    >>> def first_update(optimizer):  # of the parameters (1, 1)
    ...     transformation = optimizer.build(epoch_steps=10, total_steps=20)
    ...     params, gradients = jnp.ones(2), jnp.array([1.0, -2.0])
    ...     return transformation.update(gradients, transformation.init(params), params)[0]
"""

import ast
import contextlib
import dataclasses
import difflib
import functools
import inspect
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax
import optax.contrib

from zoo.base.component_registry import Component
from zoo.errors import UserError, check_above, check_least, check_rates


class Schedule(Component):
    """A learning-rate schedule. Subclasses are frozen dataclasses.

    build(peak, epoch_steps, total_steps) -> optax schedule, from step to learning rate
    """

    def build(self, peak: float, epoch_steps: int, total_steps: int) -> optax.Schedule:
        """Builds the function from step to learning rate, at most `peak`; subclasses do this."""
        raise self._unwritten("build")

    def check_length(self, total_steps: int, setting: str = "total_steps"):
        """Checks that a training is long enough; `setting` is what bounds its steps."""


@dataclasses.dataclass(frozen=True)
class Constant(Schedule):
    """A constant learning rate.

    Example:
      >>> schedule = optimizers.Constant().build(0.5, epoch_steps=10, total_steps=20)
      >>> [float(schedule(step)) for step in (0, 10, 20)]
      [0.5, 0.5, 0.5]
    """

    def build(self, peak: float, epoch_steps: int, total_steps: int) -> optax.Schedule:
        """Builds a schedule that is `peak` at every step."""
        return optax.constant_schedule(peak)


@dataclasses.dataclass(frozen=True)
class Cosine(Schedule):
    """Linear warm-up, then half a cosine down over all epochs.

    Attributes:
      warmup: steps from 0 to the peak.
      final: the last learning rate, as a fraction of the peak.

    Example:
      >>> schedule = optimizers.Cosine(warmup=2).build(0.5, epoch_steps=10, total_steps=20)
      >>> [round(float(schedule(step)), 3) for step in (0, 1, 2, 11, 20)]
      [0.0, 0.25, 0.5, 0.25, 0.0]
    """

    warmup: int = 0
    final: float = 0.0

    def __post_init__(self):
        check_least(self, "training.optimizer.schedule", warmup=0, final=0)

    def build(self, peak: float, epoch_steps: int, total_steps: int) -> optax.Schedule:
        """Builds a schedule: up to `peak` in `warmup` steps, down to final peak at the end."""
        self.check_length(total_steps)
        return optax.warmup_cosine_decay_schedule(
            0.0 if self.warmup else peak, peak, self.warmup, total_steps, self.final * peak
        )

    def check_length(self, total_steps: int, setting: str = "total_steps"):
        """Checks that the warm-up ends before the training does."""
        if self.warmup >= total_steps:
            raise UserError(
                f"training.optimizer.schedule.warmup={self.warmup} steps leave nothing of the "
                f"{total_steps} steps of this training: lower it, or raise {setting}."
            )


@dataclasses.dataclass(frozen=True)
class Decay(Schedule):
    """Constant for some epochs, then divided periodically.

    Zaremba et al. (2014) divide after every epoch, Sutskever et al. (2014) after every half epoch
    (after=5, factor=2, every=0.5).

    Attributes:
      after: epochs at the full rate.
      factor: the rate is divided by this number after these epochs, and after each further period.
      every: epochs of a period.

    Example:
      >>> schedule = optimizers.Decay(after=2, factor=2).build(1.0, epoch_steps=10, total_steps=50)
      >>> [float(schedule(jnp.array(step))) for step in (0, 19, 20, 30, 40)]
      [1.0, 1.0, 0.5, 0.25, 0.125]
    """

    after: int = 6
    factor: float = 1.2
    every: float = 1.0

    def __post_init__(self):
        check_above(self, "training.optimizer.schedule", factor=0, every=0)

    def build(self, peak: float, epoch_steps: int, total_steps: int) -> optax.Schedule:
        """Builds peak / factor^max(0, floor((epoch - after) / every) + 1), epochs from 0."""
        # Steps are int32: a later time is never reached.
        last = jnp.iinfo(jnp.int32).max
        period = min(max(1, round(self.every * epoch_steps)), last)
        after = min(self.after * epoch_steps, last)

        def schedule(step):
            past = jnp.maximum((step - after) // period + 1, 0)
            return peak * self.factor ** -past.astype(jnp.float32)

        return schedule


class Optimizer(Component):
    """An optimiser. Subclasses are frozen dataclasses.

    build(epoch_steps, total_steps) -> optax.GradientTransformation
    """

    learning_rate: float
    schedule: Schedule
    # Fields that are at least 0, and fields in [0, 1), besides the learning rate.
    nonnegative_fields: ClassVar[tuple[str, ...]] = ()
    fraction_fields: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self):
        nonnegative = ("learning_rate", *self.nonnegative_fields)
        check_least(self, "training.optimizer", **dict.fromkeys(nonnegative, 0))
        check_rates(self, "training.optimizer", *self.fraction_fields)

    def build(self, epoch_steps: int, total_steps: int) -> optax.GradientTransformation:
        """Builds the optax transformation from gradients to updates; subclasses override this."""
        raise self._unwritten("build")

    def rate(self, epoch_steps: int, total_steps: int) -> optax.Schedule:
        """Builds the optax schedule of the learning rate."""
        return self.schedule.build(self.learning_rate, epoch_steps, total_steps)


@dataclasses.dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if it is above 0.

    Attributes:
      learning_rate: the peak of the schedule.
      momentum: the decay of the running sum of gradients; 0 for none.
      weight_decay: lambda; lambda times each parameter is added to its gradient, after clipping.
      schedule: the course of the rate over the steps.

    Example:
      >>> print(first_update(optimizers.SGD(0.5)))
      [-0.5  1. ]
    """

    learning_rate: float = 1.0
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: Schedule = Constant()
    nonnegative_fields: ClassVar[tuple[str, ...]] = ("weight_decay",)
    fraction_fields: ClassVar[tuple[str, ...]] = ("momentum",)

    def build(self, epoch_steps: int, total_steps: int) -> optax.GradientTransformation:
        """Builds optax.sgd, after the decay of the weights."""
        sgd = optax.sgd(self.rate(epoch_steps, total_steps), self.momentum or None)
        if not self.weight_decay:
            return sgd
        return optax.chain(optax.add_decayed_weights(self.weight_decay), sgd)


@dataclasses.dataclass(frozen=True)
class RMSProp(Optimizer):
    """Gradients divided by a running root mean square, update = rate * g / (rms(g) + epsilon).

    epsilon is added to the root, as in Keras, not to the square: with optax's default, epsilon
    inside the root, the small gradients of a large softmax hardly change its parameters.

    Attributes:
      learning_rate: the peak of the schedule.
      decay: the decay of the running mean of squares.
      epsilon: added to the root.
      schedule: the course of the rate over the steps.

    Example:
      >>> print(first_update(optimizers.RMSProp(0.5)))
      [-1.5811  1.5811]
    """

    learning_rate: float = 0.001
    decay: float = 0.9
    epsilon: float = 1e-6
    schedule: Schedule = Constant()
    nonnegative_fields: ClassVar[tuple[str, ...]] = ("epsilon",)
    fraction_fields: ClassVar[tuple[str, ...]] = ("decay",)

    def build(self, epoch_steps: int, total_steps: int) -> optax.GradientTransformation:
        """Builds optax.rmsprop."""
        rate = self.rate(epoch_steps, total_steps)
        return optax.rmsprop(rate, self.decay, self.epsilon, eps_in_sqrt=False)


@dataclasses.dataclass(frozen=True)
class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of all squares so far.

    Attributes:
      learning_rate: the peak of the schedule.
      initial_accumulator: the first value of the sum of squares.
      schedule: the course of the rate over the steps.
      reset_every: epochs after which the sum is reset to its first value; 0 for never.
      resets: the greatest number of resets. Labeau and Allauzen (2017), section 4.2, reset twice,
        every 5 epochs.

    Example:
      >>> print(first_update(optimizers.Adagrad(0.5)))
      [-0.4767  0.4939]
    """

    learning_rate: float = 0.1
    initial_accumulator: float = 0.1
    schedule: Schedule = Constant()
    reset_every: int = 0
    resets: int = 2
    nonnegative_fields: ClassVar[tuple[str, ...]] = ("initial_accumulator", "reset_every", "resets")

    def build(self, epoch_steps: int, total_steps: int) -> optax.GradientTransformation:
        """Builds optax.adagrad, with resets if `reset_every` is set."""
        rate = self.rate(epoch_steps, total_steps)
        adagrad = optax.adagrad(rate, self.initial_accumulator)
        if not self.reset_every:
            return adagrad
        return _with_resets(adagrad, self.reset_every * epoch_steps, self.resets)


def history_ends(step, period: int, resets: int):
    """Whether Adagrad's sum of squares is reset before a step."""
    return (step > 0) & (step % period == 0) & (step // period <= resets)


def _with_resets(transformation, period: int, resets: int):
    """Resets the sum of squares of optax.adagrad before the steps period, 2 period, ...

    The learning rate's schedule is not reset.
    """

    def init(params):
        return jnp.zeros((), jnp.int32), transformation.init(params)

    def update(updates, state, params=None):
        step, inner_state = state
        is_reset = history_ends(step, period, resets)
        sums, later_states = inner_state[0], inner_state[1:]
        initial_sums = transformation.init(updates)[0]
        sums = jax.tree.map(functools.partial(jnp.where, is_reset), initial_sums, sums)
        updates, inner_state = transformation.update(updates, (sums, *later_states), params)
        return updates, (step + 1, inner_state)

    return optax.GradientTransformation(init, update)


@dataclasses.dataclass(frozen=True)
class Adam(Optimizer):
    """Adam, with decoupled weight decay if it is above 0.

    Attributes:
      learning_rate: the peak of the schedule.
      beta1: the decay of the running mean of gradients.
      beta2: the decay of the running mean of squares.
      epsilon: added to the root of the mean of squares.
      weight_decay: the share of each parameter, times the rate, that a step takes off.
      schedule: the course of the rate over the steps.

    Example:
      >>> print(first_update(optimizers.Adam(0.5)))
      [-0.5  0.5]
    """

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    schedule: Schedule = Constant()
    nonnegative_fields: ClassVar[tuple[str, ...]] = ("epsilon", "weight_decay")
    fraction_fields: ClassVar[tuple[str, ...]] = ("beta1", "beta2")

    def build(self, epoch_steps: int, total_steps: int) -> optax.GradientTransformation:
        """Builds optax.adamw."""
        rate = self.rate(epoch_steps, total_steps)
        return optax.adamw(
            rate, self.beta1, self.beta2, self.epsilon, weight_decay=self.weight_decay
        )


@dataclasses.dataclass(frozen=True)
class Optax(Optimizer):
    """Any optimiser of optax or optax.contrib that takes a learning rate, such as adafactor, lion.

    Left out are those that need the loss at each step (lbfgs, momo), or other parameters for
    evaluation than for training (schedule_free_adamw).

    Attributes:
      learning_rate: the peak of the schedule.
      name: optax's function.
      settings: its other arguments, each written "argument=value".
      schedule: the course of the rate over the steps.

    Raises:
      UserError: optax does not have the optimiser, or it refuses a setting.

    Example:
      >>> print(first_update(optimizers.Optax(0.5, "lion", ("b1=0.9", "weight_decay=0"))))
      [-0.5  0.5]
    """

    learning_rate: float = 0.001
    name: str = "adafactor"
    settings: tuple[str, ...] = ()
    schedule: Schedule = Constant()

    def __post_init__(self):
        super().__post_init__()
        params = {"vector": jnp.ones(2), "matrix": jnp.ones((2, 3))}
        try:
            optimizer = self.build(1, 1)
            jax.eval_shape(lambda: optimizer.update(params, optimizer.init(params), params))
        except Exception as error:  # optax raises many kinds of errors
            raise UserError(
                f"training.optimizer: optax.{self.name} does not work with settings="
                f"{self.settings} ({error}): give another name, or other arguments of this one."
            ) from error

    def build(self, epoch_steps: int, total_steps: int) -> optax.GradientTransformation:
        """Builds the optimiser by optax's function."""
        constructors: dict[str, Any] = {**vars(optax.contrib), **vars(optax)}
        constructor = constructors.get(self.name)
        if constructor is None or not _takes_rate(self.name, constructor):
            names = [name for name, function in constructors.items() if _takes_rate(name, function)]
            nearest = difflib.get_close_matches(self.name, names, 3, 0)
            raise ValueError(f"not an optimiser of a rate; the nearest are {', '.join(nearest)}")
        settings = {}
        for setting in self.settings:
            name, _, value = map(str.strip, setting.partition("="))
            settings[name] = value
            with contextlib.suppress(ValueError, SyntaxError):  # a string without quotes
                settings[name] = ast.literal_eval(value)
        return constructor(learning_rate=self.rate(epoch_steps, total_steps), **settings)


def _takes_rate(name, function) -> bool:
    """Whether a function of optax makes an optimiser whose parameters are evaluated as trained."""
    is_excluded = name.startswith(("schedule_free", "scale_by")) or not inspect.isfunction(function)
    return not is_excluded and "learning_rate" in inspect.signature(function).parameters


def build(optimizer: Optimizer, clip: float, epoch_steps: int, total_steps: int):
    """Builds an optax transformation: clipping of the gradient's global norm unless `clip`, the
    greatest, is 0, then an optimiser.

    Example:
      >>> transformation = optimizers.build(optimizers.SGD(1.0), 1.0, 10, 20)
      >>> gradients = jnp.array([3.0, 4.0])  # of norm 5
      >>> updates, _ = transformation.update(gradients, transformation.init(gradients))
      >>> print(updates)
      [-0.6 -0.8]
    """
    transformation = optimizer.build(epoch_steps, total_steps)
    if not clip:
        return transformation
    return optax.chain(optax.clip_by_global_norm(clip), transformation)
