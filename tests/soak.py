"""Kills trainings at random moments, and compares their ends bit for bit with undisturbed ones.

    python -m tests.soak [--kills 100] [--seed 0]

A training is killed with SIGKILL a few times, each time while it starts, trains, saves or
validates, then left to its end; on one and two devices in turn, two trainings side by side. What is
compared: arrays and progress of the last and the best checkpoint, and the metrics. Prints a line a
training; exit code 1 if any has ended otherwise.

This program never computes with JAX while it forks: the trainings are copies of it that have
imported everything, so that a start takes a second and not five.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
import traceback
from typing import NamedTuple

import jax
import orbax.checkpoint as ocp

import train
from tests.lab.training.small import metrics, timeless
from tests.lab.training.test_train_interruption import command, newest_step
from zoo.lab.commands import program
from zoo.lab.runs import checksums

# Kills of one training, at most; trainings at the same time; seconds that are too many for one.
MAX_KILLS, SIDE_BY_SIDE, STUCK = 8, 2, 300
# The last checkpoints before the ends of epochs, of 23 steps, where a validation is.
BEFORE_VALIDATIONS = [7 * (23 * epoch // 7) for epoch in range(1, 13)]


class Kill(NamedTuple):
    """When to kill: `seconds` after the start, or after `name` is there, under the work directory,
    as nothing was at the start."""

    kind: str
    name: str
    seconds: float


def moments(generator: random.Random, start: float, last_step: int) -> list[Kill]:
    """Returns a kill of each kind; `start`: seconds of a training until its first step."""
    validations = [step for step in BEFORE_VALIDATIONS if step > last_step]
    step = generator.choice(validations) if validations else last_step
    return [
        Kill("start", "", generator.uniform(0, start)),
        Kill("step", "last/[0-9]*", generator.uniform(0, 0.5)),
        # orbax gives a checkpoint that is being written a longer name.
        Kill("save", "last/*tmp*", generator.uniform(0, 0.06)),
        Kill("best", "best/*tmp*", generator.uniform(0, 0.06)),
        Kill("validation", f"last/{step}", generator.uniform(0, 0.15)),
    ]


class Training:
    """One work directory, killed again and again."""

    def __init__(self, folder: pathlib.Path, devices: int):
        self.folder, self.devices = folder, devices
        self.log = folder.with_suffix(".log")
        self.kills, self.kill, self.pid, self.code = [], None, 0, None

    def start(self, kill: Kill | None):
        """Starts or resumes it; `kill` is for `turn`."""
        self.kill, self.begun, self.due = kill, time.monotonic(), None
        self.before = self._files()
        self.pid = os.fork()
        if not self.pid:
            self._train()

    def _train(self):
        """In a process of its own, which ends here: what is around it is its parent's."""
        code = 1
        try:
            with self.log.open("ab", buffering=0) as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            sys.argv = command(self.folder)
            sys.argv[sys.argv.index("--devices") + 1] = str(self.devices)
            code = program.run(train.main)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _files(self):
        if self.kill is None or not self.kill.name:
            return set()
        return set(self.folder.glob(f"checkpoints/{self.kill.name}"))

    def turn(self) -> bool:
        """Kills it if it is time; whether it has ended."""
        now = time.monotonic()
        if self.kill and self.due is None and (not self.kill.name or self._files() - self.before):
            self.due = (now if self.kill.name else self.begun) + self.kill.seconds
        if (self.due is not None and now >= self.due) or now > self.begun + STUCK:
            os.kill(self.pid, signal.SIGKILL)  # not yet waited for: the number is still its own
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return False
        self.code = os.waitstatus_to_exitcode(status)
        if self.code == -signal.SIGKILL and self.kill:
            self.kills.append(self.kill.kind)
        return True

    def run(self):
        """To its end."""
        self.start(None)
        while not self.turn():
            time.sleep(0.01)
        return self

    def end(self) -> tuple:
        """Digests and progress of the newest last and best checkpoint; metrics."""
        results = [metrics(self.folder)]
        for kind in ("last", "best"):
            folder = self.folder / "checkpoints" / kind
            step = max(int(path.name) for path in folder.iterdir() if path.name.isdecimal())
            arrays = ocp.StandardCheckpointer().restore((folder / str(step) / "arrays").absolute())
            progress = json.loads((folder / str(step) / "progress" / "metadata").read_text())
            results.append((step, checksums.array_digests(arrays), timeless(progress)))
        return tuple(results)


def main():
    """Prints what came of it."""
    jax.config.update("jax_num_cpu_devices", 2)  # as checkpoints of two are read here, too
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed
    print(f"{arguments.kills} kills, seed {seed}", flush=True)
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="zoo-soak-") as folder:
        folder = pathlib.Path(folder)
        # Filled by the undisturbed trainings, and no more written to: a kill may tear a file in it.
        jax.config.update("jax_compilation_cache_dir", str(folder / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        start_time = time.monotonic()
        undisturbed = {count: Training(folder / f"whole-{count}", count).run() for count in (1, 2)}
        if any(training.code for training in undisturbed.values()):
            sys.exit("".join(training.log.read_text() for training in undisturbed.values()))
        # With compiled steps a start takes about this long.
        start = 0.25 * (time.monotonic() - start_time)
        killed = _run_killed(folder, arguments.kills, generator, start)
        expected = {count: training.end() for count, training in undisturbed.items()}
        right = sum(_judge(training, expected[training.devices]) for training in killed)
        kinds = [kind for training in killed for kind in training.kills]
        counts = ", ".join(f"{kinds.count(kind)} at a {kind}" for kind in sorted({*kinds}))
        print(
            f"{right} of {len(killed)} trainings ended bit for bit as undisturbed ones, after "
            f"{len(kinds)} kills ({counts}) in {time.monotonic() - start_time:.0f} s"
        )
        sys.exit(right < len(killed))


def _run_killed(folder, kills, generator, start) -> list[Training]:
    """Trainings that were killed so many times in all, at their ends."""
    finished, running, kills_left = [], {}, kills
    while kills_left or running:
        while kills_left and len(running) < SIDE_BY_SIDE:
            count = len(finished) + len(running)
            training = Training(folder / f"run-{count}", count % 2 + 1)
            running[training] = generator.randint(2, MAX_KILLS)
            training.start(generator.choice(moments(generator, start, 0)))
            kills_left -= 1
        for training in list(running):
            if not training.turn():
                continue
            was_killed = training.code == -signal.SIGKILL and training.kill is not None
            if training.kill is not None and not was_killed:
                kills_left += 1  # it came to its end before its time
            if not was_killed:
                del running[training]
                finished.append(training)
                continue
            running[training] -= 1
            is_killed_again = bool(kills_left and running[training] > 0)
            kills_left -= is_killed_again
            kinds = moments(generator, start, newest_step(training.folder))
            training.start(generator.choice(kinds) if is_killed_again else None)
        time.sleep(0.001)
    return finished


def _judge(training, expected) -> bool:
    """Whether it has ended as expected; says so."""
    kills = " ".join(training.kills)
    name = f"{training.folder.name} on {training.devices} device(s), killed at {kills or 'none'}"
    if training.code:
        print(f"{name}: exit code {training.code}\n{training.log.read_text()[-3000:]}")
        return False
    results = training.end()
    parts = ("metrics", "last", "best")
    wrong = [part for part, a, b in zip(parts, expected, results, strict=True) if a != b]
    print(f"{name}: {', '.join(wrong) + ' differ' if wrong else 'bit for bit'}", flush=True)
    return not wrong


if __name__ == "__main__":
    main()
