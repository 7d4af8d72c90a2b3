"""Words of generated texts a second, against a loop in PyTorch.

An LSTM of 2 x 256 cells with a softmax over V = 10,000 and random parameters; a batch of texts, 50
words each, drawn at temperature 0.8 or most probable first (greedy). PyTorch draws in a loop under
`inference_mode` from cumulative probabilities, with one random number a text: a word costs a
twentieth of `torch.multinomial`, which draws V numbers. Greedy texts are equal on both sides; drawn
ones have the same mean log p, to within three standard errors.

    pip install torch==2.13.0
    python -m benchmarks.generation [--texts 32]
"""

import argparse
import functools

import jax
import numpy as np
import torch

from benchmarks import pytorch
from zoo.commands import allocator
from zoo.cores import LSTM
from zoo.decoding import sample, steps
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel

SIZE, LAYERS, VOCABULARY, WORDS, BOUNDARY = 256, 2, 10_000, 50, 0
TEMPERATURES = 0.8, 0.0
# Initial scale of the head: the most probable word has p of about 0.1.
SCALE = 8.0


def zoo_side(model, params, tables, texts, temperature):
    """Returns a function that draws texts and returns (words [texts, n], log p [texts, n])."""
    step, keys = steps.of_language_model(model, params, tables), iter(range(2**31))
    words, carry = np.full(texts, BOUNDARY, np.int32), model.initial_carry(texts)

    def run():
        key = jax.random.key(next(keys))
        return [*map(np.asarray, sample(step, words, carry, key, WORDS, temperature=temperature))]

    return run


def torch_side(params, texts, temperature, through):
    """Returns the same in PyTorch."""
    embedding = pytorch.embedding(params["embedding"])
    core = pytorch.recurrent("LSTM", params["core"])
    head = pytorch.linear(params["head"])

    @through
    def distributions(hidden):
        log_probs = torch.log_softmax(head(hidden), dim=1)
        if not temperature:
            return log_probs, log_probs
        return log_probs, torch.softmax(log_probs / temperature, dim=1)

    @torch.inference_mode()
    def run():
        words, carry = torch.full((texts, 1), BOUNDARY), None
        drawn = torch.empty(texts, WORDS, dtype=torch.int64)
        log_prob = torch.empty(texts, WORDS)
        for position in range(WORDS):
            hidden, carry = core(embedding(words), carry)
            log_probs, probs = distributions(hidden[:, 0])
            if temperature:
                sums = probs.cumsum(dim=1)
                words = torch.searchsorted(sums, torch.rand(texts, 1) * sums[:, -1:])
            else:
                words = probs.argmax(dim=1, keepdim=True)
            drawn[:, position] = words[:, 0]
            log_prob[:, position] = log_probs.gather(1, words)[:, 0]
        return drawn.numpy(), log_prob.numpy()

    return run


def equal_texts(one, other):
    """Raises AssertionError unless words are equal, and log p in float32."""
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_allclose(one[1], other[1], rtol=1e-4, atol=1e-5)


def alike(one, other):
    """Raises AssertionError unless mean log p of a text's word is alike."""
    one, other = (log_prob.mean(axis=1) for _, log_prob in (one, other))
    error = np.sqrt(one.var() / len(one) + other.var() / len(other))
    np.testing.assert_allclose(one.mean(), other.mean(), rtol=0, atol=3 * error)


def main():
    """Prints a table a temperature."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--texts", type=int, default=32, help="of a batch")
    chosen = parser.parse_args()
    allocator.keep_memory()
    where = pytorch.use_all_cores()
    lexicon = Lexicon(tuple(map(str, range(VOCABULARY))), np.ones(VOCABULARY, np.int64))
    model = LanguageModel(
        Lookup(SIZE, initial_scale=1.0), LSTM(SIZE, LAYERS), Softmax(initial_scale=SCALE)
    )
    params, tables = model.init(jax.random.key(0), lexicon), model.tables(lexicon)
    for temperature in TEMPERATURES:
        build = functools.partial(torch_side, params, chosen.texts, temperature)
        sides = pytorch.eager_and_compiled(build)
        sides[pytorch.ZOO] = zoo_side(model, params, tables, chosen.texts, temperature)
        times = pytorch.compare(
            f"{chosen.texts} texts of {WORDS} words, temperature {temperature}, V = "
            f"{VOCABULARY:,}, LSTM {LAYERS} x {SIZE}, {where}",
            sides,
            chosen.rounds,
            alike if temperature else equal_texts,
        )
        for name, seconds in times.items():
            print(f"  {name}: {chosen.texts * WORDS / seconds:,.0f} words a second")


if __name__ == "__main__":
    main()
