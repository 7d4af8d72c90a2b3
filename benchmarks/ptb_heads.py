"""The cost of each head: a training step of each Penn Treebank recipe with the same core.

The recipes `ptb_softmax`, `ptb_is`, `ptb_nce`, `ptb_adaptive`, `ptb_hierarchical` and `ptb_mixture`
as they are, V = 10,000, on words drawn by Zipf's law; `ptb_nce` with noise words drawn for the
whole batch or for each token, instead of for each batch row; and `ptb_char_lstm` with the same
batch. Once with freed memory kept for the next step, once without.

    python -m benchmarks.ptb_heads [--rounds N]
"""

import configs
from benchmarks import steps, timing
from zoo import changed
from zoo.optimizers import Constant

VOCABULARY = 10_000
RECIPES = {
    "ptb_softmax": {},
    "ptb_is": {},
    "ptb_nce": {},
    "ptb_nce, a draw a batch": {"model.head.noise_per": "batch"},
    "ptb_nce, a draw a token": {"model.head.noise_per": "token"},
    "ptb_adaptive": {},
    "ptb_hierarchical": {},
    "ptb_mixture": {},
    "ptb_char_lstm": {"training.length": 35, "training.optimizer.schedule": Constant()},
}


def main():
    """Prints a table."""
    rounds = timing.parser(__doc__, rounds=9).parse_args().rounds
    sides = {}
    for name, changes in RECIPES.items():
        recipe = changed(configs.load(name.partition(",")[0]), changes)
        sides[name] = steps.recipe_step(recipe, steps.zipf_lexicon(VOCABULARY))
    title = f"a training step, LSTM-256, B = 20, T = 35, V = {VOCABULARY:,}"
    timing.compare(title, sides, rounds, "ptb_softmax")


if __name__ == "__main__":
    timing.in_each_memory(main)
