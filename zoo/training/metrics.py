"""What a run tells while it trains: JSON lines, TensorBoard, and a progress bar."""

import json
import math
import os
import pathlib
import sys
import time

import tensorboardX
import tqdm

from zoo import storage, strict_json

# A line of metrics every so many steps.
EVERY = 100


class Metrics:
    """`metrics.jsonl` and TensorBoard events in a work directory.

    Training losses are never turned into perplexities, for a head's loss may be sampled; if it has
    a name of its own, lines have it as "loss_name" and TensorBoard in the name of the curve. Lines
    after the step that a run resumes from are dropped, for they will come again.
    """

    def __init__(self, workdir: pathlib.Path, step: int, loss_name: str = "loss"):
        """Opens both for a run that stands after `step`."""
        self._loss_name = loss_name
        path = workdir / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        kept = [line for line in lines if _step_of(line) <= step]
        if kept != lines:
            text = "".join(line + "\n" for line in kept)
            storage.write_whole(path, lambda path: path.write_text(text))
        self._file = path.open("a")
        self._board = tensorboardX.SummaryWriter(str(workdir / "tensorboard"), purge_step=step + 1)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()
        try:
            self._board.close()
        except OSError:
            if error[0] is None:  # else what ended the run is the thing to tell
                raise

    def _write(self, step, values):
        line = {"step": step, **values}
        if self._loss_name != "loss":
            line["loss_name"] = self._loss_name
        self._file.write(strict_json.dumps(line) + "\n")
        self._file.flush()
        own_name = self._loss_name.replace(" ", "_")
        for name, value in values.items():
            if math.isfinite(value):
                self._board.add_scalar(name.replace("loss", own_name), value, step)

    def step(self, step, progress, results):
        """A line every `EVERY` steps: mean loss of the step, nats per token; gradient norm; the
        mean penalty, where there is one."""
        if step % EVERY == 0:
            values = {
                "epoch": progress.epoch,
                "training_loss": float(results.loss / max(results.tokens, 1)),
                "gradient_norm": float(results.gradient_norm),
            }
            if results.penalty:
                values["penalty"] = float(results.penalty / max(results.tokens, 1))
            self._write(step, values)

    def validation(self, step, progress, log_perplexity, perplexity):
        """A line a validation: mean loss since the epoch's start, and mean penalty, where there is
        one; log-perplexity in nats per token."""
        tokens = max(progress.tokens, 1)
        values = {"epoch": progress.epoch, "epoch_training_loss": progress.loss / tokens}
        if progress.penalty:
            values["epoch_penalty"] = progress.penalty / tokens
        values |= {
            "validation_log_perplexity": log_perplexity,
            "validation_perplexity": perplexity,
            "seconds": progress.seconds,
        }
        self._write(step, values)


def _step_of(line):
    try:
        return json.loads(line)["step"]
    except (json.JSONDecodeError, KeyError):
        return float("inf")  # cut short by a kill: drop it


class ProgressBar:
    """Steps, tokens per second, loss and time left on a terminal; lines of text elsewhere."""

    def __init__(self, total: int, step: int, loss_name: str = "loss"):
        """A bar of `total` steps that stands at `step`."""
        self._loss_name = loss_name
        self._bar = tqdm.tqdm(
            total=total, initial=step, unit="step", disable=None, dynamic_ncols=True, leave=False
        )
        self._tokens, self._since, self._shown = 0.0, time.perf_counter(), 0.0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._bar.close()

    def step(self, step, progress, results):
        """One step further."""
        if self._bar.disable:
            return
        self._tokens += float(results.tokens)
        now = time.perf_counter()
        if now - self._shown > 0.5:
            self._shown = now
            rate = self._tokens / (now - self._since)
            loss = progress.loss / max(progress.tokens, 1)
            self._bar.set_postfix_str(
                f"epoch {progress.epoch + 1}, {rate:,.0f} tokens/s, training {self._loss_name} "
                f"{loss:.3f}",
                refresh=False,
            )
        self._bar.update(1)

    def say(self, line):
        """A line above the bar."""
        try:
            if self._bar.disable:
                print(line, flush=True)
            else:
                self._bar.write(line, file=sys.stdout)
        except BrokenPipeError:  # nobody reads any more, as behind "| head": train on in silence
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
