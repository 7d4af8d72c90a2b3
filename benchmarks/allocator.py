"""Training steps with freed memory kept for the next step, against glibc's default.

Steps of ptb_softmax (LSTM of 256 cells, V = 10,000, B T = 20 x 35) and of ptb_char_lstm with the
same batch. The C library's behaviour is fixed when a process starts to allocate, so that each side
is timed in its own processes; the sides take turns.

    python -m benchmarks.allocator
"""

import argparse
import dataclasses
import statistics
import subprocess
import sys
import time

from benchmarks import timing

BATCH, LENGTH, VOCABULARY = 20, 35, 10_000
CONFIGS = ("ptb_softmax", "ptb_char_lstm")


def time_steps(name: str, steps: int):
    """Prints the median seconds of a step of a config."""
    import configs
    from benchmarks.steps import one_step
    from zoo.commands.program import keep_memory
    from zoo.optimizers import Constant

    keep_memory()
    experiment = configs.load(name)
    optimizer = dataclasses.replace(experiment.training.optimizer, schedule=Constant())
    clip = experiment.training.clip
    run = one_step(experiment.model, optimizer, clip, VOCABULARY, BATCH, LENGTH)
    times = []
    for _ in range(steps + 2):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    print(statistics.median(times[2:]))


def main():
    """Prints a table a config."""
    parser = timing.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="processes for each side")
    parser.add_argument("--steps", type=int, default=30, help="steps in each process")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        time_steps(arguments.inside, arguments.steps)
        return
    sides = {memory: timing.environment(memory) for memory in timing.MEMORY}
    for name in CONFIGS:
        times = {side: [] for side in sides}
        command = [sys.executable, "-m", "benchmarks.allocator", "--inside", name]
        for _ in range(arguments.rounds):
            for side, environment in sides.items():
                found = subprocess.run(
                    [*command, "--steps", str(arguments.steps)],
                    env=environment,
                    check=True,
                    capture_output=True,
                )
                times[side].append(float(found.stdout))
        timing.print_table(
            f"{name}: a training step, medians of {arguments.rounds} x {arguments.steps}",
            {side: statistics.median(values) for side, values in times.items()},
            "glibc's own way",
        )


if __name__ == "__main__":
    main()
