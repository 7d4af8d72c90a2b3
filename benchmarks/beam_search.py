"""Beam search in milliseconds a sentence, of many sentences and of wide beams.

A beam of 12, an LSTM of 2 x 512 cells with a softmax over V = 10,000, sentences of 4 to 24 words,
as in Multi30k. A language model with random parameters makes the steps; its distributions are as
peaked as a trained translator's, and it ends a sentence after as many words as its source has.
`benchmarks.pytorch_beam` compares the same search with PyTorch.

    python -m benchmarks.beam_search
    python -m benchmarks.beam_search --sentences 32 --beams 12 50 100 200 300  # and of lists
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from benchmarks.steps import random_model
from zoo.decoding import BeamSearch, steps
from zoo.decoding.batched_search import translate

VOCABULARY, SIZE, LAYERS, BEAM, BATCH, BOUNDARY = 10_000, 512, 2, 12, 32, 0
LONGEST = 60
# Initial scale of the head: the most probable word has p of about 0.5.
SCALE = 12.0
# log p of the boundary before and after the given length.
BEFORE, AFTER = math.log(1e-6), math.log(0.9)


def ending(step, words, carry):
    """Replaces the boundary's probability in a step by one that depends on the length left."""
    carry, remaining = carry
    log_probs, carry = step(words, carry)
    end = jnp.where(remaining > 0, BEFORE, AFTER)[:, None]
    log_scale = jnp.log1p(-jnp.exp(end)) - jnp.log1p(-jnp.exp(log_probs[:, BOUNDARY, None]))
    at_boundary = jnp.arange(VOCABULARY)[None] == BOUNDARY
    return jnp.where(at_boundary, end, log_probs + log_scale), (carry, remaining - 1)


def starting():
    """Returns the model's parameters, and start(sources, lengths) -> (step, carry), as for a
    translator."""
    model, params, tables = random_model(SIZE, LAYERS, VOCABULARY, SCALE)
    inner = steps.from_language_model(model, params, tables)
    step = jax.tree_util.Partial(ending, inner)

    def start(sources, lengths):
        return step, (model.initial_carry(len(sources)), jnp.asarray(lengths))

    return params, start


def main():
    """Prints milliseconds a sentence, of growing numbers of sentences and of wide beams."""
    parser = timing.parser(__doc__, rounds=9, sentences=64)
    parser.add_argument("--beams", type=int, nargs="*", default=(), help="widths of lists to time")
    options = parser.parse_args()
    counts = [options.sentences * times for times in (1, 2, 4)]
    lengths = np.random.default_rng(0).integers(4, 24, size=counts[-1])
    _, start = starting()

    def search(count, beam=BEAM, nbest=1):
        settings = BeamSearch(beam, nbest, longest=LONGEST)
        sources = [[1] * length for length in lengths[:count]]
        return translate(start, sources, settings, boundary=BOUNDARY, batch=BATCH)

    searches = {f"{count} sentences": (count,) for count in counts} | {
        f"lists of a beam of {beam}": (options.sentences, beam, beam) for beam in options.beams
    }
    sides = {name: functools.partial(search, *settings) for name, settings in searches.items()}
    times = timing.medians(sides, options.rounds)
    print(f"milliseconds a sentence, V = {VOCABULARY:,}, LSTM {LAYERS} x {SIZE}, beam of {BEAM}")
    for (name, seconds), (count, *_) in zip(times.items(), searches.values(), strict=True):
        print(f"  {name}: {1e3 * seconds / count:.2f}")


if __name__ == "__main__":
    main()
