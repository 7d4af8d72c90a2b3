"""Evaluation with a CNN softmax against a softmax.

log p of 512 tokens over V = 10,000 words, D = 256, with the CNN softmax's word vectors prepared
once, and with the vectors computed anew for each batch.

    python -m benchmarks.cnn_softmax
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from zoo.heads import CNNSoftmax, Softmax
from zoo.lexicon import Lexicon

TOKENS, SIZE, VOCABULARY = 512, 256, 10_000


def main():
    """Prints the table."""
    rounds = timing.parser(__doc__, rounds=21).parse_args().rounds

    random = np.random.default_rng(0)
    words = {}
    while len(words) < VOCABULARY:
        words["".join(map(chr, random.integers(97, 123, 1 + random.poisson(6))))] = None
    lexicon = Lexicon(tuple(words), np.ones(VOCABULARY, np.int64))
    hidden = jnp.asarray(random.normal(size=(TOKENS, SIZE)), jnp.float32)
    targets = jnp.asarray(random.integers(0, VOCABULARY, TOKENS))

    sides = {}

    def add(name, head, params, prepared=None):
        def score(params, tables, hidden, targets, prepared):
            return head.log_prob_and_log_z(params, tables, hidden, targets, prepared=prepared)

        arguments = params, head.tables(lexicon), hidden, targets, prepared
        sides[name] = timing.compiled_side(score, *arguments)

    softmax, letters = Softmax(bias=False), CNNSoftmax()
    add("softmax", softmax, softmax.init(jax.random.key(0), SIZE, lexicon))
    params = letters.init(jax.random.key(0), SIZE, lexicon)
    prepared = jax.jit(letters.prepared)(params, letters.tables(lexicon))
    add("CNN softmax, prepared", letters, params, prepared)
    add("CNN softmax, anew", letters, params)
    title = f"{TOKENS} tokens, V = {VOCABULARY:,}, D = {SIZE}; log p and log Z"
    timing.compare(title, sides, rounds, "softmax")


if __name__ == "__main__":
    main()
