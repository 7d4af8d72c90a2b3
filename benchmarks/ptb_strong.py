"""Time and memory of a training step of each head on the core of `ptb_awd_small`.

The recipes of records/ptb_strong, whose perplexities stand beside these figures in README, on the
words of the Penn Treebank. Heads take turns, and the time is the median of the CPU time, which
other work on the machine changes little, where the process has one core. The memory is
what the compiled step takes beside its arguments (parameters, the optimiser's state, the batch).

    taskset -c 0 python -m benchmarks.ptb_strong records/ptb_steps.json [--rounds N]
"""

import json
import os
import pathlib

import configs
from benchmarks import steps, timing
from records.cells import FOLDER, provenance
from records.rows import PTB_STRONG
from zoo import Experiment, changed, configuration
from zoo.optimizers import Constant


def recipe_of(file: str) -> Experiment:
    """Returns the recipe of a head.

    Args:
      file: the name of its record in records/ptb_strong.
    """
    record = json.loads((FOLDER / "ptb_strong" / f"{file}.json").read_text())
    rate = next(iter(record["variants"].values()))["settings"]["training.optimizer.learning_rate"]
    settings = [*record["set"], f"training.optimizer.learning_rate={rate}"]
    recipe = configuration.apply_settings(configs.load(record["config"]), settings)
    # A schedule needs more steps than one.
    return changed(recipe, {"training.optimizer.schedule": Constant()})


def main():
    """Writes the figures."""
    parser = timing.parser(__doc__, rounds=15)
    parser.add_argument("output", type=pathlib.Path)
    arguments = parser.parse_args()
    sides = {}
    for file in PTB_STRONG.values():
        recipe = recipe_of(file)
        sides[file] = steps.zipf_step(recipe.model, recipe.build()[0], recipe.training)
    seconds = timing.medians(sides, arguments.rounds)
    record = provenance()
    record |= {
        "device": record["machine"]["processor"],
        "cores": len(os.sched_getaffinity(0)),
        "heads": {
            file: {"seconds": round(seconds[file], 4), "bytes": side.memory()}
            for file, side in sides.items()
        },
    }
    arguments.output.write_text(json.dumps(record, indent=1) + "\n")
    for file, figures in record["heads"].items():
        print(f"{file:12} {figures['seconds'] * 1e3:8.1f} ms {figures['bytes'] / 1e6:8.1f} MB")


if __name__ == "__main__":
    main()
