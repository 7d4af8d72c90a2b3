"""Peak memory of `train.py --config ptb_softmax` against a script in PyTorch of the same training.

Both are processes that train 50 steps of the recipe (one LSTM layer of 256 cells, B = 20, T = 35,
V = 10,000). Linux's greatest resident size of each (ru_maxrss) includes libraries and texts.
PyTorch's side is the script of `benchmarks.start`, eager; the zoo's compiles, with an empty cache
of programs, validates and saves the best checkpoint after the last step besides.

    pip install torch==2.13.0
    ZOO_DATA=... python -m benchmarks.start_memory
"""

import statistics
import sys
import tempfile

from benchmarks import start, timing

STEPS = 50


def peak(command: list[str], until: str, **environment: str) -> int:
    """Returns the greatest resident size of a command when it prints a line, in bytes."""
    return timing.run_process(command, until, **environment)[1].ru_maxrss * 1024


def main():
    """Prints a table of medians."""
    rounds = timing.parser(__doc__, rounds=3).parse_args().rounds
    pytorch_command = [sys.executable, "-m", "benchmarks.start", "--pytorch", *start.texts()]
    pytorch_command += ["--layers", "1", "--steps", str(STEPS)]
    sizes: dict[str, list[int]] = {"zoo": [], "PyTorch": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-u", "train.py", "--config", "ptb_softmax", f"{folder}/run"]
            command += ["--set", f"training.validate_every={STEPS}"]
            command += ["--set", f"training.checkpoint_every={STEPS}"]
            sizes["zoo"].append(peak(command, f"step {STEPS}: ", XDG_CACHE_HOME=f"{folder}/cache"))
        sizes["PyTorch"].append(peak(pytorch_command, start.FIRST))
    medians = {name: statistics.median(values) for name, values in sizes.items()}
    timing.print_table(f"peak memory of {STEPS} steps on the CPU", medians, "PyTorch", "MB")


if __name__ == "__main__":
    main()
