"""Reports of a run while it trains: JSON lines, TensorBoard, and a progress bar."""

import contextlib
import errno
import io
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from zoo.base import lazy, regular_files, strict_json, temporary_files
from zoo.lab.runs import atomic_writes, location, metric_lines
from zoo.lab.runs.workdir import METRICS

# tensorboardX imports each of these that is installed, which takes seconds, and needs none of them
# for numbers; event files in a bucket are written by gcsfs, below.
with lazy.extra(), lazy.without("torch", "boto3", "google.cloud.storage"):
    import tensorboardX
    import tqdm
    from tensorboardX import record_writer

# Steps from one line of metrics to the next.
STEP_INTERVAL = 100
# Seconds from one line of the log to the next, without a terminal.
SECONDS = 60.0
FIRST_SECONDS = 10.0  # until the first of these lines, which tells how long the run will take


class _BucketFile:
    """An event file in a bucket, written whole at each flush: an object cannot be appended to."""

    def __init__(self, address: str):
        self._path, self._buffer = location.to_path(address), io.BytesIO()

    def write(self, data: bytes):
        self._buffer.write(data)

    def flush(self):
        self._path.write_bytes(self._buffer.getvalue())

    def close(self):
        self.flush()


class _BucketFiles:
    """Opens event files for tensorboardX; a bucket does not have folders to be made."""

    open = _BucketFile

    def directory_check(self, address: str):
        pass


record_writer.register_writer_factory("gs", _BucketFiles())


class Metrics(contextlib.AbstractContextManager):
    """`metrics.jsonl` and TensorBoard events in a work directory.

    Training losses are never turned into perplexities, for a head's loss may be sampled. A loss
    with another name than "loss" has its name as "loss_name" in each line, and in the names of
    TensorBoard's curves. A resumed run drops the lines after its checkpoint's step, which will be
    written again, and a last line that a kill cut short. In a bucket the whole file is rewritten
    at each checkpoint.
    """

    def __init__(self, workdir: Any, step: int, loss_name: str = "loss", log=print):
        self._loss_name = loss_name
        path = workdir / METRICS
        text = regular_files.read_bytes(path) if path.exists() else b""
        saved = b"".join(line + b"\n" for line in _lines_until(step, text, path, log))
        if saved != text:
            atomic_writes.write_whole(path, lambda path: path.write_bytes(saved))
        self._path = path
        if location.is_bucket(path):  # kept in memory until a checkpoint
            self._file: Any = io.StringIO()
            self._file.write(saved.decode("utf-8", "replace"))
        else:
            self._file = path.open("a", encoding="utf-8")
        self._board = tensorboardX.SummaryWriter(str(workdir / "tensorboard"), purge_step=step + 1)

    def __exit__(self, *error):
        try:
            with location.convert_errors(self._path):
                if location.is_bucket(self._path) and error[0] is None:
                    self.sync()
                self._file.close()
                self._board.close()
        except OSError:
            if error[0] is None:  # an error that ended the run matters more
                raise

    def _write(self, step, values):
        """Writes a line of values to metrics.jsonl, and finite values to TensorBoard."""
        line = {"step": step, **values}
        if self._loss_name != "loss":
            line["loss_name"] = self._loss_name
        with temporary_files.naming(self._path):
            self._file.write(strict_json.dumps(line) + "\n")
            self._file.flush()
        name_part = self._loss_name.replace(" ", "_")
        for name, value in values.items():
            if math.isfinite(value):
                self._board.add_scalar(name.replace("loss", name_part), value, step)

    def sync(self):
        """Flushes all lines to the disk or the bucket, so that they survive a loss of power."""
        if location.is_bucket(self._path):
            with location.convert_errors(self._path):
                self._path.write_text(self._file.getvalue())
            return
        with temporary_files.naming(self._path):
            os.fsync(self._file.fileno())

    def step(self, step, progress, results):
        """Writes loss and penalty, nats a token, and gradient norm every `STEP_INTERVAL` steps."""
        if step % STEP_INTERVAL == 0:
            values = {
                "epoch": progress.epoch,
                "training_loss": float(results.loss / max(results.tokens, 1)),
                "gradient_norm": float(results.gradient_norm),
            }
            if results.penalty:
                values["penalty"] = float(results.penalty / max(results.tokens, 1))
            self._write(step, values)

    def validation(self, step, progress, figures):
        """Writes a validation's figures, and the mean loss and penalty since the epoch began."""
        tokens = max(progress.tokens, 1)
        values = {"epoch": progress.epoch, "epoch_training_loss": progress.loss / tokens}
        if progress.penalty:
            values["epoch_penalty"] = progress.penalty / tokens
        values |= {**figures, "seconds": progress.seconds}
        self._write(step, values)


class NoReports:
    """`Metrics` and `ProgressBar` of processes other than 0, which do not report."""

    def __getattr__(self, name):
        return lambda *arguments: None


def _lines_until(step, text, path, log):
    """Yields the lines of a file up to a step, and logs and skips malformed lines."""
    lines, least_step = text.split(b"\n"), 0
    for number, line in enumerate(lines, 1):
        try:
            line_step = metric_lines.parse(line, least_step)["step"]
        except ValueError:
            if number < len(lines):  # a last line without a newline was cut short
                log(
                    f"{path}, line {number} is not an object with a step of at least {least_step}, "
                    f"and is left out: {line[:80]!r}."
                )
        else:
            if line_step <= step:
                least_step = line_step
                yield line


class ProgressBar(contextlib.AbstractContextManager):
    """A bar of steps, speed, loss and time left on a terminal or in a notebook, else log lines."""

    def __init__(
        self,
        total: int,
        step: int,
        loss_name: str = "loss",
        clock=time.perf_counter,
        log: Callable[[str], Any] = print,
    ):
        """Shows a bar if there is a terminal or a notebook."""
        self._loss_name, self._total, self._clock, self._log = loss_name, total, clock, log
        is_notebook = type(sys.stdout).__module__ == "ipykernel.iostream"
        self._bar = tqdm.tqdm(
            total=total,
            initial=step,
            unit="step",
            disable=False if is_notebook else None,
            file=sys.stdout
            if is_notebook
            else sys.stderr,  # a notebook shows them one below the other
            dynamic_ncols=True,
            leave=False,
        )
        self._tokens, self._since, self._last_refresh = 0.0, clock(), 0.0
        self._start: tuple[int, float] | None = None  # the step that was reported first, and when
        self._has_logged = False  # a line of the log

    def __exit__(self, *error):
        try:
            self._bar.close()
        except OSError as failure:
            _check_unread(failure)

    def step(self, step, share, progress, results):
        """Reports a step on the bar, or in a line of the log from time to time."""
        self._tokens += float(results.tokens)
        now = self._clock()
        if self._bar.disable:
            self._log_step(step, share, progress, now)
            return
        if now - self._last_refresh > 0.5:
            self._last_refresh = now
            rate = self._tokens / (now - self._since)
            self._bar.set_postfix_str(
                f"epoch {progress.epoch + 1}, {rate:,.0f} tokens/s, {self._loss(progress)}",
                refresh=False,
            )
        try:
            self._bar.update(1)
        except OSError as error:
            _check_unread(error)
            self._bar.disable = True

    def exclude(self, seconds: float):
        """Excludes the time of a compilation from rates and from the time left."""
        self._since += seconds
        if self._start is not None:
            step, start = self._start
            self._start = step, start + seconds
        if not self._bar.disable:  # tqdm's own estimate of the time left
            self._bar.start_t += seconds
            self._bar.last_print_t += seconds

    def _log_step(self, step, share, progress, now):
        """Logs loss, tokens per second and the time left, if the last line was long enough ago."""
        if self._start is None:
            self._start = step, now
            self._tokens, self._since = 0.0, now
        elif now - self._since >= (SECONDS if self._has_logged else min(FIRST_SECONDS, SECONDS)):
            self._has_logged = True
            first_step, start = self._start
            rate = self._tokens / (now - self._since)
            steps = max(0, self._total - step)  # of a mixture it is not known exactly
            time_left = tqdm.tqdm.format_interval((now - start) / (step - first_step) * steps)
            self.log(
                f"epoch {progress.epoch + 1}, {share:.0%} of it, step {step} of {self._total}: "
                f"{self._loss(progress)}, {rate:,.0f} tokens/s, {time_left} left"
            )
            self._tokens, self._since = 0.0, now

    def _loss(self, progress):
        """Formats the mean training loss of the epoch so far."""
        return f"training {self._loss_name} {progress.loss / max(progress.tokens, 1):.3f}"

    def log(self, line):
        """Logs a line, above the bar if there is one."""
        try:
            with self._bar.external_write_mode(file=sys.stdout):
                self._log(line)
                sys.stdout.flush()  # so that a file or a pipe has it at once
        except OSError as error:
            _check_unread(error)
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def _check_unread(error):
    """Raises an error again, unless standard output was closed, as by "| head"."""
    if error.errno not in (errno.EPIPE, errno.EIO):
        raise error
