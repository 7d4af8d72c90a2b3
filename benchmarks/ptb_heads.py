"""One training step of each Penn Treebank recipe with the same core: what each head costs.

The recipes `ptb_softmax`, `ptb_is`, `ptb_nce`, `ptb_adaptive`, `ptb_hierarchical` and `ptb_mixture`
as they stand, V = 10,000, on words by Zipf's law.

    python -m benchmarks.ptb_heads [--rounds N]
"""

import argparse
import importlib

from benchmarks import steps, timing

VOCABULARY = 10_000
RECIPES = ("softmax", "is", "nce", "adaptive", "hierarchical", "mixture")


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    sides = {}
    for name in RECIPES:
        experiment = importlib.import_module(f"configs.ptb_{name}").get_config()
        training = experiment.training
        sides[f"ptb_{name}"] = steps.one_step(
            experiment.model,
            training.optimizer,
            training.clip,
            VOCABULARY,
            training.batch,
            training.length,
            training.row_sparse,
        )
    title = f"a training step, LSTM-256, B = 20, T = 35, V = {VOCABULARY:,}"
    timing.print_table(title, timing.medians(sides, rounds), "ptb_softmax")


if __name__ == "__main__":
    main()
