"""A training step of recipes as they are: seconds, peak memory of the process, parameters.

Words are drawn by Zipf's law, windows have the recipe's full length, and each recipe has a process
of its own, which keeps freed memory as the programs do.

    python -m benchmarks.recipes ptb_awd_lstm ptb_awd_lstm_mixture
    python -m benchmarks.recipes --words 33278 wikitext2_awd_lstm
"""

import resource

import jax

import configs
from benchmarks import steps, timing
from zoo.lab.commands import program


def measure(name: str, words: int, rounds: int):
    """Prints the figures of a recipe."""
    program.keep_memory()
    recipe = configs.load(name)
    training, lexicon = recipe.training, steps.zipf_lexicon(words)
    params = recipe.model.init(jax.random.key(0), lexicon)
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    data = steps.zipf_batch(words, training.batch, training.length)
    step = steps.step_of(recipe.model, params, lexicon, data, training)
    seconds = timing.medians({name: step}, rounds)[name]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{name}: {count:,} parameters, {training.batch} x {training.length} of {words:,} words: "
        f"{seconds:.3f} s a step (median of {rounds}), peak {peak / 1e9:.2f} GB",
        flush=True,
    )


def main():
    """Measures each recipe in a process of its own."""
    parser = timing.parser(__doc__, words=10_000, rounds=9)
    parser.add_argument("names", nargs="+", metavar="CONFIG")
    options = parser.parse_args()
    for name in options.names:
        timing.in_own_process(measure, name, options.words, options.rounds)


if __name__ == "__main__":
    main()
