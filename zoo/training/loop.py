"""The training loop: batches in, checkpoints and metrics out; resumable at any step."""

import contextlib
import dataclasses
import math
import pathlib
import signal
import threading
import time
import typing
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import optax

from zoo import distributed, strict_json
from zoo.errors import Diverged, Interrupted, UserError
from zoo.experiment import Parallel, Training
from zoo.runs.checkpoints import Checkpoints, any_kept
from zoo.runs.location import Ownership
from zoo.runs.workdir import Workdir
from zoo.training import average
from zoo.training.devices import choose_devices
from zoo.training.metric_writers import Metrics, ProgressBar, Unwritten
from zoo.training.step import TrainState, settings, shapes_of, train_step
from zoo.training.tasks import Task, check_steps
from zoo.training.updates import choose_updates

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
    def of(cls, kept: dict, where: pathlib.Path) -> "Progress":
        """Converts the JSON of a checkpoint to a Progress."""
        kinds = typing.get_type_hints(cls)
        shape = {name: [float] if kind == list[float] else kind for name, kind in kinds.items()}
        try:
            strict_json.check(kept, shape)
            for name, value in kept.items():
                if name not in kinds:
                    raise ValueError(f"{name} is a key that this version does not know")
                if kinds[name] is int and value < 0:
                    raise ValueError(f"{name} is {value}, where a whole number from 0 should be")
        except ValueError as error:
            raise UserError(
                f"{where} is not as it was written ({error}): put back a copy of it, or resume "
                "with the version of Zoo that wrote it."
            ) from error
        return cls(**kept)


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
        paths = task.row_tables(self._shapes)
        self.optimizer = choose_updates(
            recipe, self._shapes, paths, task.epoch_steps, task.total_steps
        )
        parallel = parallel or Parallel()
        self.devices = choose_devices(
            device_count, recipe.batch, parallel, task, self.initial_state
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
        self._validated = False
        # No other reference to the state may exist while `train` runs: each step donates it.
        self._state: Any = None
        # A resumed run has its values already, and the other run may be gone.
        self._start = None
        if not any_kept(workdir / "checkpoints"):
            self._start = self._read_start()

    def _read_start(self):
        """Reads the start values from the run of `init_from`; None without one."""
        return self.task.start(self.init_from, self.recipe.frozen) if self.init_from else None

    def summary(self) -> str:
        """Describes the data, the number of parameters and the devices, in one line."""
        frozen = self.recipe.frozen
        shapes = self._shapes, average.split(self._shapes, frozen)[0]
        leaves = map(jax.tree.leaves, shapes)
        count, trained = (sum(math.prod(leaf.shape) for leaf in some) for some in leaves)
        of_them = f" ({trained:,} of them trained)" if frozen else ""
        return f"{self.task.summary()}, {count:,} parameters{of_them}, {self.devices.summary}"

    def initial_state(self, taken: dict | None = None) -> TrainState:
        """Makes the state before the first step."""
        return self._state_of(jax.random.key(self.recipe.seed), taken or {})

    def _state_of(self, key: jax.Array, taken: dict) -> TrainState:
        """Makes the state before the first step; random values are drawn with a key."""
        params = {**self.task.init(key), **taken}
        optimizer_state = self.optimizer.init(average.split(params, self.recipe.frozen)[0])
        return TrainState(params, optimizer_state, self.task.carry(), jnp.zeros((), jnp.int32))

    def train(self) -> Progress:
        """Trains from the last checkpoint, or from the start, to the end."""
        with contextlib.ExitStack() as stack:
            ownership = None
            if distributed.first():
                ownership = stack.enter_context(Ownership(self.workdir, self.log))
            checkpoints = Checkpoints(self.workdir / "checkpoints")
            stack.callback(checkpoints.close)
            stack.callback(self._forget_state)
            progress = self._begin(checkpoints)
            if not progress.finished:
                with self._reports() as (metrics, bar), handled(self._remember_signal):
                    self._run(progress, checkpoints, ownership, metrics, bar)
            return progress

    def _forget_state(self):
        self._state = None

    @contextlib.contextmanager
    def _reports(self) -> Iterator[tuple[Any, Any]]:
        """Yields the metrics and the progress bar, which report in process 0 only."""
        if not distributed.first():
            yield Unwritten(), Unwritten()
            return
        step, loss_name = self._steps_done(), self.task.loss_name
        with (
            Metrics(self.workdir, step, loss_name, self.log) as metrics,
            ProgressBar(self.task.total_steps, step, loss_name, log=self.log) as bar,
        ):
            yield metrics, bar

    def _begin(self, checkpoints: Checkpoints) -> Progress:
        """Puts the last checkpoint's state, or a new state, on the devices; none if finished."""
        shapes = self.devices.laid_out(jax.eval_shape(self.initial_state))
        restored = checkpoints.restore("last", shapes, self.log)
        if not restored:
            taken = self._started() if self.init_from else {}
            self._state = self.drawn_state(taken)
            return Progress(data=self.task.data)
        step, state, kept = restored
        where = checkpoints.progress_file("last", step)
        progress = Progress.of(kept, where)
        if progress.data and progress.data != self.task.data:
            raise UserError(
                f"the training or validation text has changed since {self.workdir} was begun: "
                "put it back or give another folder."
            )
        if progress.finished:
            self.log(f"this run is finished, at step {step}; nothing is left to train.")
        else:
            self.log(f"resuming after step {step} (epoch {progress.epoch + 1}).")
            self._state = self.devices.restored(TrainState(*state))
        return progress

    def _started(self) -> dict:
        """Returns the parameters taken from the other run, logs them, and records their origin."""
        start, self._start = self._start or self._read_start(), None
        for line in start.lines:
            self.log(line)
        if distributed.first():
            Workdir(self.workdir).keep_start(start.record)
        return start.params

    def _remember_signal(self, number, frame):
        self._stop = signal.Signals(number)

    def _steps_done(self) -> int:
        return int(self.devices.first(self._state.step))

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
        return self.devices.place(jax.random.key_data(jax.random.key(self.recipe.seed + 1)))

    def drawn_state(self, taken: dict) -> TrainState:
        """Draws the state before the first step on the devices."""
        return self.devices.drawn(self._state_of, jax.random.key(self.recipe.seed), taken)

    def _run(self, progress, checkpoints, ownership, metrics, bar):
        """Runs all remaining steps; each step donates the state to the next."""
        devices, recipe = self.devices, self.recipe
        step_function = self.step_function()
        tables = devices.place_tables(self.task.tables)
        self.task.tables = devices.everywhere(tables)  # validation shares their memory
        key = self.step_key()
        empty_carry = devices.empty(self.task.carry)
        step = self._steps_done()
        watch = Stopwatch(progress.seconds)
        compiled: set = set()  # shapes of batches
        waiting = None  # `tell`'s arguments of a step that may still be running

        def save(kind="last", params=None):
            """Saves a checkpoint: the state as "last", or parameters to evaluate as "best"."""
            if kind == "last":
                arrays: Any = devices.whole(self._state)
                params = arrays.params
            else:
                arrays = {"params": params}
            if not all(bool(_finite(leaf)) for leaf in jax.tree.leaves(params)):
                self._give_up("the parameters are not finite after", step, checkpoints)
            with ownership.kept() if ownership else contextlib.nullcontext():
                metrics.sync()  # a resumed run writes only the lines after its checkpoint
                checkpoints.save(kind, step, arrays, dataclasses.asdict(progress))

        def tell(step, share, results):
            """Waits for a step and reports it; `share` of the epoch is done after it."""
            results = devices.first(results)
            if not math.isfinite(float(results.loss)):
                self._give_up("the training loss is not finite at", step, checkpoints)
            progress.loss += float(results.loss)
            progress.tokens += float(results.tokens)
            progress.penalty += float(results.penalty)
            bar.step(step, share, progress, results)
            metrics.step(step, progress, results)

        def compile_with(batch):
            """Does the first step with batches of a shape, which the watch does not count."""
            with watch.stopped():
                which = (
                    f"a step of other shapes, after step {step}" if compiled else "the first step"
                )
                bar.log(f"compiling {which}, which takes from seconds to minutes.")
                begun = time.perf_counter()
                self._state, results = step_function(self._state, tables, batch, key)
                jax.block_until_ready(results)
                took = time.perf_counter() - begun
                bar.leave_out(took)
                if not compiled:
                    bar.log(f"first step, with compilation: {took:.1f} s.")
            return results

        while progress.epoch < recipe.epochs and not progress.finished:
            batches = self.task.epoch(progress.epoch)
            if progress.index == 0:
                self._state = self._state._replace(carry=empty_carry())
            while progress.index < len(batches):
                rows = self.task.part(batches, progress.index, devices.rows)
                batch = devices.split(rows)
                shapes = shapes_of(batch)
                if shapes in compiled:
                    self._state, results = step_function(self._state, tables, batch, key)
                else:
                    if waiting:
                        tell(*waiting)
                        waiting = None
                    results = compile_with(batch)
                    compiled.add(shapes)
                step += 1
                progress.index += 1
                # The last step is reported while this step runs, so that no device waits.
                if waiting:
                    tell(*waiting)
                waiting = (step, progress.index / len(batches), results)
                stop = self._agreed_stop()
                ended = progress.index == len(batches)
                last = step == recipe.steps
                every = recipe.validate_every
                validated = ended or last or bool(every and step % every == 0)
                if validated or step % recipe.checkpoint_every == 0 or stop:
                    tell(*waiting)
                    waiting = None
                    progress.seconds = watch.seconds
                    with watch.stopped():
                        if validated:
                            self._validate(step, progress, metrics, bar, save)
                        if ended:
                            progress.epoch, progress.index = progress.epoch + 1, 0
                            progress.loss = progress.tokens = progress.penalty = 0.0
                            progress.finished |= progress.epoch == recipe.epochs
                        progress.finished |= last
                        save()
                if stop:
                    raise Interrupted(f"{stop.name} after step {step}: the state is saved.", stop)
                if ended or progress.finished:
                    break  # the next epoch has batches of its own and an empty carry
        # A signal during the last validation: what would come after the training must not begin.
        self._agreed_stop()
        if stop := self._agreed_stop():
            raise Interrupted(f"{stop.name} at the end, after step {step}: all is saved.", stop)

    def _validate(self, step, progress, metrics, bar, save):
        """Validates, saves the best checkpoint, and decides about early stopping."""
        params = average.params_to_evaluate(self._state.params, self._state.optimizer_state)
        params = self.devices.everywhere(params)
        mesh = self.devices.mesh if self.devices.count > 1 else None
        if not self._validated:
            self._validated = True
            bar.log("compiling the validation.")
        validation = self.task.validate(params, mesh)
        # As long as all values are infinite, the best checkpoint is the last.
        better = validation.value < progress.best or validation.value == progress.best == math.inf
        if better:
            progress.best, progress.best_step, progress.stale = validation.value, step, 0
            save("best", params)
        else:
            progress.stale += 1
        progress.finished = bool(self.recipe.patience) and progress.stale >= self.recipe.patience
        before = tuple(progress.validations)
        progress.validations.append(validation.value)
        metrics.validation(step, progress, validation.figures)
        tokens = max(progress.tokens, 1)
        penalty = f"penalty {progress.penalty / tokens:.4f}, " if progress.penalty else ""
        bar.log(
            f"epoch {progress.epoch + 1}, step {step}: training {self.task.loss_name} "
            f"{progress.loss / tokens:.4f}, {penalty}{validation.summary}"
            f"{' (best)' if better else ''}{'; stopping early' if progress.finished else ''}"
        )
        for line in validation.lines:
            bar.log(line)
        self._begin_average(before, validation.value, bar)

    def _begin_average(self, before, value, bar):
        """Begins the mean of the parameters if validation stops improving and a recipe asks so."""
        after = self.recipe.average_after
        if after and average.stopped_improving(before, value, after):
            state = self._state.optimizer_state
            if not self.devices.first(optax.tree_utils.tree_get(state, "averaging")):
                self._state = self._state._replace(optimizer_state=average.begin(state))
                bar.log("validation has stopped improving: averaging the parameters from here on.")

    def _agreed_stop(self) -> signal.Signals | None:
        """Returns the signal after which all processes stop at this step, or None.

        At every step each of several processes sends the signal that it has received, and one step
        later it reads the signals of all processes. So all stop at the same step.
        """
        if jax.process_count() == 1:
            return self._stop
        before, self._signals = self._signals, distributed.greatest(self._stop or 0)
        number = int(before) if before is not None else 0
        return signal.Signals(number) if number else None

    def _give_up(self, what, step, checkpoints):
        steps = checkpoints.steps("last")
        last = f"the last good checkpoint is of step {steps[0]}" if steps else "none was saved"
        raise Diverged(
            f"{what} step {step}; {last}, in {checkpoints.folder}: "
            f"lower training.optimizer.learning_rate or {'lower' if self.recipe.clip else 'set'} "
            "training.clip, and start a new workdir."
        )


@jax.jit
def _finite(leaf):
    return jnp.isfinite(leaf).all()


# ---- handlers of SIGTERM, SIGHUP and Ctrl-C, by which a run saves its state before it ends

# Not every system has SIGHUP, which is sent when a terminal is closed.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


@contextlib.contextmanager
def handled(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Handles SIGTERM, SIGHUP and the first Ctrl-C within a context.

    A second Ctrl-C raises KeyboardInterrupt at once. A signal that is ignored, as SIGHUP is under
    nohup, stays ignored. Outside the main thread, where Python does not allow handlers, no signal
    is handled.
    """

    def once(number, frame):
        handler(number, frame)
        if signal.SIGINT in previous:  # else it stays ignored
            signal.signal(signal.SIGINT, signal.default_int_handler)

    main_thread = threading.current_thread() is threading.main_thread()
    names = _NAMES if main_thread else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    previous = {
        number: before
        for number in numbers
        if (before := signal.getsignal(number)) is not signal.SIG_IGN
    }
    for number in previous:
        signal.signal(number, once)
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


# ---------------------------------------- the time that a run spends on its training steps
# Neither compilation nor validation nor checkpoints count: they depend on caches, disks and the
# number of validations, not on how fast a model learns.


class Stopwatch:
    """Seconds of training steps."""

    def __init__(self, seconds: float = 0.0, clock: Callable[[], float] = time.perf_counter):
        self._clock = clock
        self._begun = clock() - seconds
        self._stopped: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds so far, without the times within `stopped`."""
        now = self._clock() if self._stopped is None else self._stopped
        return now - self._begun

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        self._stopped = self._clock()
        try:
            yield
        finally:
            self._begun += self._clock() - self._stopped
            self._stopped = None
