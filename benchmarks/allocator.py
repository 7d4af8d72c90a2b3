"""Training steps with freed memory kept for the next step, against glibc's default.

Steps of ptb_softmax (LSTM of 256 cells, V = 10,000, B T = 20 x 35) and of ptb_char_lstm with the
same batch. The C library's behaviour is fixed when a process starts to allocate, so that each side
is timed in its own processes; the sides take turns.

    python -m benchmarks.allocator
"""

import statistics
import time

import configs
from benchmarks import steps, timing
from zoo import changed
from zoo.lab.commands import program
from zoo.optimizers import Constant

VOCABULARY = 10_000
CHANGES = {
    "training.batch": 20,
    "training.length": 35,
    "training.optimizer.schedule": Constant(),
}
CONFIGS = ("ptb_softmax", "ptb_char_lstm")


def time_steps(name: str, count: int) -> float:
    """Returns the median seconds of a step of a config."""
    program.keep_memory()
    run = steps.recipe_step(changed(configs.load(name), CHANGES), steps.zipf_lexicon(VOCABULARY))
    times = []
    for _ in range(count + 2):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times[2:])


def main():
    """Prints a table a config."""
    parser = timing.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="processes for each side")
    parser.add_argument("--steps", type=int, default=30, help="steps in each process")
    arguments = parser.parse_args()
    sides = {memory: timing.environment(memory) for memory in timing.MEMORY}
    for name in CONFIGS:
        times = {side: [] for side in sides}
        for _ in range(arguments.rounds):
            for side, environment in sides.items():
                work = time_steps, name, arguments.steps
                times[side].append(timing.in_own_process(*work, environment=environment))
        timing.print_table(
            f"{name}: a training step, medians of {arguments.rounds} x {arguments.steps}",
            {side: statistics.median(values) for side, values in times.items()},
            "glibc's own way",
        )


if __name__ == "__main__":
    main()
