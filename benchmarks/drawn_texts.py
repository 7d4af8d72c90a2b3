"""Texts that zoo draws, for `benchmarks.generation` and `benchmarks.on_gpu`: words side by side."""

import jax
import numpy as np

from zoo.cores import LSTM
from zoo.decoding import sample, steps
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel

SIZE, LAYERS, VOCABULARY, WORDS, BOUNDARY = 256, 2, 10_000, 50, 0
# Initial scale of the head: the most probable word has p of about 0.1.
SCALE = 8.0


def starting():
    """Returns a model with random parameters, its parameters and tables."""
    lexicon = Lexicon(tuple(map(str, range(VOCABULARY))), np.ones(VOCABULARY, np.int64))
    model = LanguageModel(
        Lookup(SIZE, initial_scale=1.0), LSTM(SIZE, LAYERS), Softmax(initial_scale=SCALE)
    )
    return model, model.init(jax.random.key(0), lexicon), model.tables(lexicon)


def zoo_side(model, params, tables, texts, temperature):
    """Returns a function that draws texts and returns (words [texts, n], log p [texts, n])."""
    step, keys = steps.from_language_model(model, params, tables), iter(range(2**31))
    words, carry = np.full(texts, BOUNDARY, np.int32), model.initial_carry(texts)

    def run():
        key = jax.random.key(next(keys))
        return [*map(np.asarray, sample(step, words, carry, key, WORDS, temperature=temperature))]

    return run
