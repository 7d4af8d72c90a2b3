"""The training loop: batches in, checkpoints and metrics out; resumable at any step."""

import dataclasses
import math
import pathlib
import signal
import time

import jax
import jax.numpy as jnp
import numpy as np

from zoo.checkpoints import Checkpoints, any_kept
from zoo.data.lanes import Lanes, batch_count
from zoo.errors import Interrupted, UserError
from zoo.evaluation import perplexity
from zoo.experiment import Experiment
from zoo.ownership import Ownership
from zoo.training import average, demands, parts, placement, start, updates
from zoo.training.devices import Devices
from zoo.training.metrics import Metrics, ProgressBar
from zoo.training.progress import Progress
from zoo.training.signals import handled
from zoo.training.step import Columns, TrainState
from zoo.workdir import Workdir


class Trainer:
    """Trains one experiment in one work directory."""

    def __init__(
        self,
        experiment: Experiment,
        lexicon,
        corpora: dict,
        workdir: pathlib.Path,
        device_count: int = 0,
        say=print,
    ):
        """Encodes the text, reads the start values of a new run, and compiles nothing yet.

        Args:
          corpora: {split: Corpus} with at least "train" and "validation".
          device_count: local devices to use, 0 for all. say: told what goes on, a line at a time.
        """
        self.experiment, self.workdir, self.say = experiment, workdir, say
        self.model, self.recipe = experiment.model, experiment.training
        self.lexicon = lexicon
        self.devices = Devices(device_count, self.recipe.batch)
        demands.check(experiment, lexicon, self.devices.devices)
        self._shapes = jax.eval_shape(lambda key: self.model.init(key, lexicon), jax.random.key(0))
        parts.check_frozen(self._shapes, self.recipe.frozen)
        parts.check_rates(self._shapes, self.recipe.frozen, self.recipe.rates)
        self.boundary = lexicon.ids.get(lexicon.boundary)
        vocabulary, judged = experiment.vocabulary, experiment.evaluation
        self.text = vocabulary.encode(corpora["train"], lexicon)
        self.mixture = corpora["train"].mixture
        self.validation = vocabulary.encode(corpora["validation"], lexicon)
        self.validation_lanes = Lanes(
            self.validation, judged.lanes, judged.length, judged.state, self.boundary
        )
        if not self.validation.counted.any():
            raise UserError(f"no token of {corpora['validation'].name} is counted: give another.")
        self.data = f"{self.text.digest()}-{self.validation.digest()}"
        first = self._lanes(0)
        self.epoch_steps = len(first)
        self.batch_tokens = max(1.0, first.trained_tokens / len(first))
        self.total_steps = self.epoch_steps * self.recipe.epochs
        if self.mixture or (self.recipe.shuffle and self.recipe.state == "sentences"):
            # Which sentences are drawn, or how well they fill the lanes in their order.
            layout = self.recipe.batch, self.recipe.length, self.recipe.state, self.boundary
            orders = map(self._order, range(self.recipe.epochs))
            self.total_steps = sum(batch_count(self.text.lengths[o], *layout) for o in orders)
        self.step, self.optimizer = updates.chosen(
            self.recipe, self.model, self._shapes, self.epoch_steps, self.total_steps
        )
        self._tables = self.model.tables(lexicon)
        self._stop = None
        # On the devices while `train` runs, and nowhere else: each step takes its memory.
        self._state = None
        # A resumed run has its values already, and the other run may be gone.
        self._start = None if any_kept(workdir / "checkpoints") else self._read_start()

    def _read_start(self):
        """What the other run gives; None if the experiment names none."""
        path = self.experiment.init_from
        return start.read(path, self.model, self.lexicon, self.recipe.frozen) if path else None

    def summary(self) -> str:
        """One line: words, parameters, tokens, steps and devices."""
        frozen = self.recipe.frozen
        count, trained = map(_size, (self._shapes, parts.split(self._shapes, frozen)[0]))
        of_them = f" ({trained:,} of them trained)" if frozen else ""
        return (
            f"{len(self.lexicon):,} words, {count:,} parameters{of_them}, "
            f"{len(self.text.words):,} training tokens, {self.epoch_steps:,} steps an epoch, "
            f"{self.devices.count} device(s)"
        )

    def _lanes(self, epoch: int) -> Lanes:
        """The text in lanes, the sentences of this epoch in their order."""
        recipe, order = self.recipe, self._order(epoch)
        text = self.text if order is None else self.text.reordered(order)
        return Lanes(text, recipe.batch, recipe.length, recipe.state, self.boundary)

    def _order(self, epoch: int) -> np.ndarray | None:
        """The places of the epoch's sentences, in their order; None for the text's own."""
        generator = np.random.default_rng((self.recipe.seed, epoch))
        if self.mixture:
            return self.mixture.order(generator)
        return generator.permutation(len(self.text.starts)) if self.recipe.shuffle else None

    def initial_state(self, taken: dict | None = None) -> TrainState:
        """The state before the first step; `taken`, parts from elsewhere, instead of drawn ones."""
        params = self.model.init(jax.random.key(self.recipe.seed), self.lexicon)
        params = {**params, **(taken or {})}  # what was drawn in their place is gone
        optimizer_state = self.optimizer.init(parts.split(params, self.recipe.frozen)[0])
        carry = self.model.initial_carry(self.recipe.batch)
        return TrainState(params, optimizer_state, carry, jnp.zeros((), jnp.int32))

    def train(self) -> Progress:
        """Trains from the last checkpoint, or from the start, to the end.

        Returns:
          The progress at the end.

        Raises:
          UserError: the loss is not finite any more, the disk is full, or the work directory is
            trained by another process, cannot be written to, or is deleted meanwhile.
          Interrupted: SIGTERM, SIGHUP or Ctrl-C; the state is saved.
        """
        with Ownership(self.workdir, self.say) as ownership:
            return self._train(ownership)

    def _train(self, ownership: Ownership) -> Progress:
        checkpoints = Checkpoints(self.workdir / "checkpoints")
        try:
            progress = self._begin(checkpoints)
            if not progress.finished:
                step, loss_name = self._steps_done(), self.model.head.loss_name
                with (
                    Metrics(self.workdir, step, loss_name, self.say) as metrics,
                    ProgressBar(self.total_steps, step, loss_name) as bar,
                    handled(self._remember_signal),
                ):
                    self._run(progress, checkpoints, ownership, metrics, bar)
        finally:
            self._state = None
            checkpoints.close()
        return progress

    def _begin(self, checkpoints: Checkpoints) -> Progress:
        """Puts the state of the last checkpoint, or of the start, on the devices; not that of a
        finished run."""
        shapes = jax.eval_shape(self.initial_state)
        restored = checkpoints.restore("last", shapes, self.say)
        if not restored:
            held = [self._started() if self.experiment.init_from else self.initial_state()]
            self._state = placement.placed(held, self.devices)
            return Progress(data=self.data)
        step, state, kept = restored
        where = checkpoints.progress_file("last", step)
        held, progress = [TrainState(*state)], Progress.of(kept, where)
        del restored, state
        if progress.data and progress.data != self.data:
            raise UserError(
                f"the training or validation text has changed since {self.workdir} was begun: "
                "put it back or give another --workdir."
            )
        if progress.finished:
            self.say(f"this run is finished, at step {step}; nothing is left to train.")
        else:
            self.say(f"resuming after step {step} (epoch {progress.epoch + 1}).")
            self._state = placement.placed(held, self.devices)
        return progress

    def _started(self) -> TrainState:
        """The state before the first step, with the values of the other run; says what they are."""
        found, self._start = self._start or self._read_start(), None
        for line in found.lines:
            self.say(line)
        Workdir(self.workdir).keep_start(found.record)
        return self.initial_state(found.params)

    def _remember_signal(self, number, frame):
        self._stop = signal.Signals(number)

    def _steps_done(self) -> int:
        """How many steps the state has seen."""
        return int(self.devices.first(self._state.step))

    def _run(self, progress, checkpoints, ownership, metrics, bar):
        """The loop itself. The state is donated from step to step."""
        devices, recipe = self.devices, self.recipe
        step_function = devices.compile(
            self.step,
            model=self.model,
            optimizer=self.optimizer,
            frozen=recipe.frozen,
            least_tokens=self.batch_tokens,
        )
        tables = devices.replicate(self._tables)
        key = devices.replicate(jax.random.key_data(jax.random.key(recipe.seed + 1)))
        numbers = np.arange(recipe.batch, dtype=np.int32)
        step = self._steps_done()
        started = time.perf_counter() - progress.seconds
        compiled = False
        waiting = None  # a step that is on the devices, and its results to be

        def save(kind="last", params=None):
            """The state as the last, or parameters that are on the host already as the best."""
            progress.seconds = time.perf_counter() - started
            if kind == "last":
                arrays = placement.gathered(self._state, devices)
                params = arrays.params
            else:
                arrays = {"params": params}
            if not placement.all_finite(params):
                self._give_up("the parameters are not finite after", step, checkpoints)
            metrics.sync()  # a resumed run does not write the lines before its checkpoint again
            with ownership.kept():
                checkpoints.save(kind, step, arrays, dataclasses.asdict(progress))

        def tell(step, results):
            """Waits for a step and reports it."""
            results = devices.first(results)
            if not math.isfinite(float(results.loss)):
                self._give_up("the training loss is not finite at", step, checkpoints)
            progress.loss += float(results.loss)
            progress.tokens += float(results.tokens)
            progress.penalty += float(results.penalty)
            bar.step(step, progress, results)
            metrics.step(step, progress, results)

        while progress.epoch < recipe.epochs and not progress.finished:
            lanes = self._lanes(progress.epoch)
            if progress.index == 0:
                empty = devices.place(self.model.initial_carry(recipe.batch))
                self._state = self._state._replace(carry=empty)
                del empty
            while progress.index < len(lanes):
                batch = lanes[progress.index]
                columns = devices.split(
                    Columns(batch.words, batch.targets, batch.trained, batch.reset, numbers)
                )
                begun = time.perf_counter()
                self._state, results = step_function(self._state, tables, columns, key)
                step += 1
                progress.index += 1
                if not compiled:
                    compiled = True
                    jax.block_until_ready(results)
                    bar.say(f"first step, with compilation: {time.perf_counter() - begun:.1f} s.")
                # The step before is reported while this one runs, so that no device waits.
                if waiting:
                    tell(*waiting)
                waiting = (step, results)
                stop = self._stop
                ended = progress.index == len(lanes)
                every = recipe.validate_every
                validated = ended or bool(every and step % every == 0)
                saved = validated or step % recipe.checkpoint_every == 0 or stop
                if saved:
                    tell(*waiting)
                    waiting = None
                if validated:
                    self._validate(step, progress, metrics, bar, save)
                if ended:
                    progress.epoch, progress.index = progress.epoch + 1, 0
                    progress.loss = progress.tokens = progress.penalty = 0.0
                    progress.finished |= progress.epoch == recipe.epochs
                if saved:
                    save()
                if stop:
                    raise Interrupted(f"{stop.name} after step {step}: the state is saved.", stop)
                if ended or progress.finished:
                    break  # the next epoch has lanes of its own and an empty carry

    def _validate(self, step, progress, metrics, bar, save):
        """Validation, the best checkpoint, and early stopping."""
        params = average.judged(self._state.params, self._state.optimizer_state)
        scores = perplexity.score(
            self.model,
            self.devices.alone(params),
            self._tables,
            self.validation,
            self.validation_lanes,
        )
        log_perplexity = scores.log_perplexity
        # As long as some word is impossible the last parameters are as good as any, not none.
        better = log_perplexity < progress.best or log_perplexity == progress.best == math.inf
        if better:
            progress.best, progress.best_step, progress.stale = log_perplexity, step, 0
            save("best", self.devices.first(params))
        else:
            progress.stale += 1
        progress.finished = bool(self.recipe.patience) and progress.stale >= self.recipe.patience
        metrics.validation(step, progress, log_perplexity, scores.perplexity)
        tokens = max(progress.tokens, 1)
        penalty = f"penalty {progress.penalty / tokens:.4f}, " if progress.penalty else ""
        bar.say(
            f"epoch {progress.epoch + 1}, step {step}: training {self.model.head.loss_name} "
            f"{progress.loss / tokens:.4f}, {penalty}validation log-perplexity "
            f"{log_perplexity:.4f}, perplexity {scores.perplexity:.2f}{' (best)' if better else ''}"
            f"{'; stopping early' if progress.finished else ''}"
        )
        if impossible := perplexity.impossible_words(scores, self.validation, self.lexicon):
            bar.say(f"  {impossible.sentence}")

    def _give_up(self, what, step, checkpoints):
        steps = checkpoints.steps("last")
        last = f"the last good checkpoint is that of step {steps[0]}" if steps else "none was saved"
        raise UserError(
            f"{what} step {step}; {last}, in {checkpoints.folder}: "
            "lower training.optimizer.learning_rate or set training.clip, and start a new workdir."
        )


def _size(tree) -> int:
    """How many numbers there are in a pytree of arrays or shapes."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))
