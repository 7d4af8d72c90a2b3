"""The training loop: batches in, checkpoints and metrics out; resumable at any step."""

import contextlib
import dataclasses
import math
import pathlib
import signal
import threading
import time
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from zoo.base import distributed, strict_json
from zoo.base.arrays.random_keys import seed_keys
from zoo.errors import Diverged, Interrupted, UserError
from zoo.experiment import Parallel, Training
from zoo.lab.runs.checkpoints import Checkpoints, has_checkpoints
from zoo.lab.runs.training_lock import Ownership
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import average
from zoo.lab.training.devices import choose_devices
from zoo.lab.training.metric_writers import Metrics, NoReports, ProgressBar
from zoo.lab.training.step import TrainState, batch_shapes, settings, train_step
from zoo.lab.training.tasks import Task, check_steps
from zoo.lab.training.updates import choose_updates

# ------------------------------------------------------------ the progress of a run


@dataclasses.dataclass
class Progress:
    """The position of a run in its training, as its checkpoints keep it."""

    epoch: int = 0
    index: int = 0
    loss: float = 0.0  # the sum of the loss since the epoch's start, nats
    tokens: float = 0.0
    best: float = math.inf  # the lowest validation log-perplexity so far, nats
    best_step: int = 0
    stale: int = 0
    # seconds of training steps, over all interruptions; see `Stopwatch`
    seconds: float = 0.0
    finished: bool = False
    data: str = ""
    penalty: float = 0.0
    # all validation log-perplexities, nats, in order
    validations: list[float] = dataclasses.field(default_factory=list)

    @classmethod
    def from_json(cls, record: dict, location: pathlib.Path) -> "Progress":
        """Converts the JSON of a checkpoint to a Progress; errors name its location."""
        types = typing.get_type_hints(cls)
        try:
            values = strict_json.parse(types, record)
            for name, value in values.items():
                if name not in types:
                    raise ValueError(f"{name} is a key that this version does not know")
                if types[name] is int and value < 0:
                    raise ValueError(f"{name} is {value}, where a whole number from 0 should be")
        except ValueError as error:
            raise UserError(
                f"{location} is not as it was written ({error}): put back a copy of it, or resume "
                "with the version of Zoo that wrote it."
            ) from error
        return cls(**values)


class Trainer:
    """Trains one task in one work directory."""

    def __init__(
        self,
        task: Task,
        recipe: Training,
        workdir: Any,
        device_count: int = 0,
        log=print,
        init_from: str = "",
        parallel: Parallel | None = None,
    ):
        """Reads the start values of a new run, and compiles nothing yet."""
        self.task, self.recipe, self.workdir, self.log = task, recipe, workdir, log
        self.init_from = init_from
        check_steps(task.epoch_steps, recipe)
        self._shapes = jax.eval_shape(lambda: task.init(jax.random.key(0)))
        average.check_frozen(self._shapes, recipe.frozen)
        average.check_rates(self._shapes, recipe.frozen, recipe.rates)
        self.optimizer = choose_updates(
            recipe, self._shapes, task.row_tables(self._shapes), task.epoch_steps, task.total_steps
        )
        parallel = parallel or Parallel()
        words = [*map(len, task.lexicons.values())]
        self.devices = choose_devices(
            *(device_count, recipe.batch, parallel, words, task.parameter_axes),
            self.initial_state,
        )
        batch_rows = recipe.batch * parallel.model // self.devices.count
        if batch_rows % recipe.accumulate:
            raise UserError(
                f"training.accumulate={recipe.accumulate} does not divide the {batch_rows} rows "
                f"of a device, of training.batch={recipe.batch}: give one that does, or another "
                "batch."
            )
        self._stop: signal.Signals | None = None
        self._signals: jax.Array | None = None
        # No other reference to the state may exist while `train` runs: each step donates it.
        self.state: Any = None
        # A resumed run has its values already, and the other run may be gone.
        self._start = None
        if init_from and not has_checkpoints(workdir / "checkpoints"):
            self._start = task.start(init_from, recipe.frozen)

    def summary(self) -> str:
        """Describes the data, the number of parameters and the devices, in one line."""
        frozen = self.recipe.frozen
        shapes = self._shapes, average.split(self._shapes, frozen)[0]
        leaves = map(jax.tree.leaves, shapes)
        count, trained_count = (sum(math.prod(leaf.shape) for leaf in tree) for tree in leaves)
        trained_note = f" ({trained_count:,} of them trained)" if frozen else ""
        return f"{self.task.summary()}, {count:,} parameters{trained_note}, {self.devices.summary}"

    def initial_state(self, key: jax.Array | None = None, values: dict | None = None) -> TrainState:
        """Returns the state before the first step; random values are drawn with a key, by default
        of the recipe's seed."""
        key = seed_keys(self.recipe.seed).start if key is None else key
        params = {**self.task.init(key), **(values or {})}
        optimizer_state = self.optimizer.init(average.split(params, self.recipe.frozen)[0])
        return TrainState(params, optimizer_state, self.task.carry(), jnp.zeros((), jnp.int32))

    def train(self) -> Progress:
        """Trains from the last checkpoint, or from the start, to the end."""
        with contextlib.ExitStack() as stack:
            ownership = None
            if distributed.is_first_process():
                ownership = stack.enter_context(Ownership(self.workdir, self.log))
            checkpoints = Checkpoints(self.workdir / "checkpoints")
            stack.callback(checkpoints.close)
            stack.callback(setattr, self, "state", None)  # frees its memory
            progress = self._begin(checkpoints)
            if progress.finished:
                return progress
            step, loss_name = int(self.devices.to_host(self.state.step)), self.task.loss_name
            metrics: Any = NoReports()
            bar: Any = NoReports()
            if ownership:
                metrics = stack.enter_context(Metrics(self.workdir, step, loss_name, self.log))
                bar = ProgressBar(self.task.total_steps, step, loss_name, log=self.log)
                stack.enter_context(bar)
            stack.enter_context(handle_signals(self._remember_signal))
            Pass(self, progress, step, checkpoints, ownership, metrics, bar).run()
            return progress

    def _begin(self, checkpoints: Checkpoints) -> Progress:
        """Puts the last checkpoint's state, or a new state, on the devices; none if finished."""
        shapes = self.devices.with_layouts(jax.eval_shape(self.initial_state))
        restored = checkpoints.restore("last", shapes, self.log)
        if not restored:
            values = {}
            if self.init_from:
                start = self._start or self.task.start(self.init_from, self.recipe.frozen)
                self._start = None
                for line in start.lines:
                    self.log(line)
                if distributed.is_first_process():
                    Workdir(self.workdir).save_start(start.record)
                values = start.params
            self.state = self.draw_state(values)
            return Progress(data=self.task.data)
        step, state, record = restored
        progress = Progress.from_json(record, checkpoints.progress_file("last", step))
        if progress.data and progress.data != self.task.data:
            raise UserError(
                f"the training or validation text has changed since {self.workdir} was begun: "
                "put it back or give another folder."
            )
        if progress.finished:
            self.log(f"this run is finished, at step {step}; nothing is left to train.")
        else:
            self.log(f"resuming after step {step} (epoch {progress.epoch + 1}).")
            self.state = self.devices.copy_state(TrainState(*state))
        return progress

    def _remember_signal(self, number, frame):
        """Handles a signal: training stops after the current step."""
        self._stop = signal.Signals(number)

    def step_function(self) -> Callable:
        """Returns the step for the devices, (state, tables, batch, key) -> (state, metrics)."""
        return self.devices.compile(train_step, **self.step_settings())

    def step_settings(self) -> dict[str, Any]:
        """Returns the arguments of `train_step` that are the same at every step."""
        return {
            "loss": self.task.loss,
            "usual_weight": self.task.usual_weight,
            "usual_length": self.task.usual_length,
            **settings(self.recipe, self.optimizer),
        }

    def step_key(self) -> jax.Array:
        """Returns the data of the key of all steps, on the devices."""
        return self.devices.place(jax.random.key_data(seed_keys(self.recipe.seed).steps))

    def draw_state(self, values: dict) -> TrainState:
        """Draws the state before the first step on the devices."""
        return self.devices.draw_state(
            self.initial_state, seed_keys(self.recipe.seed).start, values
        )

    def agreed_stop(self) -> signal.Signals | None:
        """Returns the signal after which all processes stop at this step, or None.

        At every step each of several processes sends the signal that it has received, and one step
        later it reads the signals of all processes. So all stop at the same step.
        """
        if jax.process_count() == 1:
            return self._stop
        previous, self._signals = self._signals, distributed.maximum(self._stop or 0)
        number = int(previous) if previous is not None else 0
        return signal.Signals(number) if number else None


class Pass:
    """The remaining steps of a run, each of which donates the state to the next."""

    def __init__(
        self,
        trainer: Trainer,
        progress: Progress,
        step: int,
        checkpoints: Checkpoints,
        ownership: Ownership | None,
        metrics: Any,
        bar: Any,
    ):
        """Compiles the step and places the tables on the devices."""
        devices = trainer.devices
        self.trainer, self.progress, self.checkpoints = trainer, progress, checkpoints
        self.step, self.ownership, self.metrics, self.bar = step, ownership, metrics, bar
        self.function = trainer.step_function()
        self.tables = devices.place_tables(trainer.task.tables)
        trainer.task.tables = devices.to_mesh(self.tables)  # validation shares their memory
        self.key = trainer.step_key()
        self.empty_carry = devices.carry_function(trainer.task.carry)
        self.watch = Stopwatch(progress.seconds)
        self.compiled_shapes: set = set()  # of batches
        # (step, share of the epoch that is done after it, results) of a step that may still run
        self.unreported: tuple[int, float, Any] | None = None
        self.has_validated = False

    def run(self):
        """Runs the remaining epochs."""
        trainer, progress = self.trainer, self.progress
        while progress.epoch < trainer.recipe.epochs and not progress.finished:
            epoch = progress.epoch
            batches = trainer.task.epoch(epoch)
            if progress.index == 0:
                trainer.state = trainer.state._replace(carry=self.empty_carry())
            while progress.epoch == epoch and not progress.finished:
                self.take_step(batches)
                stop = trainer.agreed_stop()
                self.validate_and_save(progress.index == len(batches), stop is not None)
                if stop:
                    raise Interrupted(
                        f"{stop.name} after step {self.step}: the state is saved.", stop
                    )
        # A signal during the last validation: what would come after the training must not begin.
        trainer.agreed_stop()
        stop = trainer.agreed_stop()
        if stop:
            raise Interrupted(
                f"{stop.name} at the end, after step {self.step}: all is saved.", stop
            )

    def take_step(self, batches: Sequence):
        """Starts the next step; reports the last one while this one runs, so no device waits."""
        trainer, progress = self.trainer, self.progress
        rows = trainer.task.part(batches, progress.index, trainer.devices.rows)
        batch = trainer.devices.split(rows)
        shapes = batch_shapes(batch)
        compiles = shapes not in self.compiled_shapes
        with self.compilation() if compiles else contextlib.nullcontext():
            trainer.state, results = self.function(trainer.state, self.tables, batch, self.key)
            if compiles:
                jax.block_until_ready(results)
                self.compiled_shapes.add(shapes)
        self.step += 1
        progress.index += 1
        self.report()
        self.unreported = self.step, progress.index / len(batches), results

    @contextlib.contextmanager
    def compilation(self) -> Iterator[None]:
        """Reports a step with batches of a new shape, taken within the context, which the watch
        does not count."""
        self.report()
        is_first = not self.compiled_shapes
        name = "the first step" if is_first else f"a step of other shapes, after step {self.step}"
        with self.watch.paused():
            self.bar.log(f"compiling {name}, which takes from seconds to minutes.")
            start = time.perf_counter()
            yield
            seconds = time.perf_counter() - start
            self.bar.exclude(seconds)
            if is_first:
                self.bar.log(f"first step, with compilation: {seconds:.1f} s.")

    def report(self):
        """Waits for the unreported step, if there is one, and reports it."""
        if not self.unreported:
            return
        step, share, results = self.unreported
        self.unreported = None
        results, progress = self.trainer.devices.to_host(results), self.progress
        if not math.isfinite(float(results.loss)):
            self.give_up("the training loss is not finite at", step)
        progress.loss += float(results.loss)
        progress.tokens += float(results.tokens)
        progress.penalty += float(results.penalty)
        self.bar.step(step, share, progress, results)
        self.metrics.step(step, progress, results)

    def validate_and_save(self, ends_epoch: bool, is_stopped: bool):
        """Validates and saves the state after a step at which either is due."""
        progress, recipe = self.progress, self.trainer.recipe
        is_last = self.step == recipe.steps
        validates = ends_epoch or is_last or self.step % (recipe.validate_every or math.inf) == 0
        if not (validates or self.step % recipe.checkpoint_every == 0 or is_stopped):
            return
        self.report()
        progress.seconds = self.watch.seconds
        trainer, devices = self.trainer, self.trainer.devices
        with self.watch.paused():
            trainer.state = devices.state_to_mesh(trainer.state)
            if validates:
                self.validate()
            if ends_epoch:
                progress.epoch, progress.index = progress.epoch + 1, 0
                progress.loss = progress.tokens = progress.penalty = 0.0
                progress.finished |= progress.epoch == recipe.epochs
            progress.finished |= is_last
            self.save("last", trainer.state, trainer.state.params)
            trainer.state = devices.for_steps(trainer.state)

    def save(self, kind: str, arrays: Any, params: Any):
        """Saves the arrays of a checkpoint of a kind, unless the parameters are not finite."""
        if not all(bool(_is_finite(leaf)) for leaf in jax.tree.leaves(params)):
            self.give_up("the parameters are not finite after", self.step)
        with self.ownership.guard() if self.ownership else contextlib.nullcontext():
            self.metrics.sync()  # a resumed run writes only the lines after its checkpoint
            self.checkpoints.save(kind, self.step, arrays, dataclasses.asdict(self.progress))

    def validate(self):
        """Validates, saves the best checkpoint, and decides about early stopping."""
        trainer, progress, bar = self.trainer, self.progress, self.bar
        devices, state = trainer.devices, trainer.state
        params = average.params_to_evaluate(state.params, state.optimizer_state)
        if not self.has_validated:
            self.has_validated = True
            bar.log("compiling the validation.")
        validation = trainer.task.validate(params, devices.mesh if devices.count > 1 else None)
        # As long as all values are infinite, the best checkpoint is the last.
        is_best = validation.value < progress.best or validation.value == progress.best == math.inf
        if is_best:
            progress.best, progress.best_step, progress.stale = validation.value, self.step, 0
            self.save("best", {"params": params}, params)
        else:
            progress.stale += 1
        patience = trainer.recipe.patience
        progress.finished = bool(patience) and progress.stale >= patience
        progress.validations.append(validation.value)
        self.metrics.validation(self.step, progress, validation.figures)
        tokens = max(progress.tokens, 1)
        penalty = f"penalty {progress.penalty / tokens:.4f}, " if progress.penalty else ""
        bar.log(
            f"epoch {progress.epoch + 1}, step {self.step}: training {trainer.task.loss_name} "
            f"{progress.loss / tokens:.4f}, {penalty}{validation.summary}"
            f"{' (best)' if is_best else ''}{'; stopping early' if progress.finished else ''}"
        )
        for line in validation.lines:
            bar.log(line)
        if trainer.recipe.average_after:
            self.begin_average(trainer.recipe.average_after)

    def begin_average(self, patience: int):
        """Begins the mean of the parameters if validation stops improving."""
        trainer, (*previous_values, value) = self.trainer, self.progress.validations
        if average.stopped_improving(previous_values, value, patience):
            state = trainer.state.optimizer_state
            if not trainer.devices.to_host(optax.tree_utils.tree_get(state, "averaging")):
                trainer.state = trainer.state._replace(optimizer_state=average.begin(state))
                self.bar.log(
                    "validation has stopped improving: averaging the parameters from here on."
                )

    def give_up(self, problem: str, step: int):
        """Raises the error of a run that diverged."""
        steps = self.checkpoints.steps("last")
        last = f"the last good checkpoint is of step {steps[0]}" if steps else "none was saved"
        clip = "lower" if self.trainer.recipe.clip else "set"
        raise Diverged(
            f"{problem} step {step}; {last}, in {self.checkpoints.folder}: lower "
            f"training.optimizer.learning_rate or {clip} training.clip, and start a new workdir."
        )


@jax.jit
def _is_finite(leaf):
    return jnp.isfinite(leaf).all()


# ---- handlers of SIGTERM, SIGHUP and Ctrl-C, by which a run saves its state before it ends

# Not every system has SIGHUP, which is sent when a terminal is closed.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


@contextlib.contextmanager
def handle_signals(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Handles SIGTERM, SIGHUP and the first Ctrl-C within a context.

    A second Ctrl-C raises KeyboardInterrupt at once. A signal that is ignored, as SIGHUP is under
    nohup, stays ignored. Outside the main thread, where Python does not allow handlers, no signal
    is handled.
    """

    def handle_once(number, frame):
        handler(number, frame)
        if signal.SIGINT in previous_handlers:  # else it stays ignored
            signal.signal(signal.SIGINT, signal.default_int_handler)

    names = _SIGNALS if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    handlers = {number: signal.getsignal(number) for number in numbers}
    previous_handlers = {n: x for n, x in handlers.items() if x is not signal.SIG_IGN}
    for number in previous_handlers:
        signal.signal(number, handle_once)
    try:
        yield
    finally:
        for number, previous_handler in previous_handlers.items():
            signal.signal(number, previous_handler)


# ---------------------------------------- the time that a run spends on its training steps
# Neither compilation nor validation nor checkpoints count: they depend on caches, disks and the
# number of validations, not on how fast a model learns.


class Stopwatch:
    """Seconds of training steps."""

    def __init__(self, seconds: float = 0.0, clock: Callable[[], float] = time.perf_counter):
        self._clock = clock
        self._start = clock() - seconds
        self._pause_start: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds so far, without the times within `stopped`."""
        now = self._clock() if self._pause_start is None else self._pause_start
        return now - self._start

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stops the watch within a context."""
        self._pause_start = self._clock()
        try:
            yield
        finally:
            self._start += self._clock() - self._pause_start
            self._pause_start = None
