"""The char-LSTM head at growing vocabularies: the time of a training step does not depend on them.

A step of loss and gradients on the same tokens, for lexicons of 10,000, 100,000 and 1,000,000 words
that begin with the same words: B T = 640, D = 256, 128 cells. Then the scores of all of 10,000
words, as needed for renormalisation: with shared prefixes computed once, against each word alone.

    python -m benchmarks.char_lstm [--text ptb/ptb.train.txt]

With a text, the second table scores its words instead of random ones.
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import steps, timing
from zoo.heads import CharLSTM
from zoo.lexicon import Lexicon
from zoo.sources import files

TOKENS, SIZE = 640, 256
VOCABULARIES = (10_000, 100_000, 1_000_000)
POSITIONS = 4


def main():
    """Prints the table."""
    parser = timing.parser(__doc__, rounds=11)
    parser.add_argument("--text", help="a text whose words the second table scores")
    options = parser.parse_args()
    rounds = options.rounds

    random = np.random.default_rng(0)
    # Spellings of 1 to 15 letters, and one of 40 that makes every table as wide.
    lengths = 1 + random.poisson(6, 2 * max(VOCABULARIES)).clip(0, 14)
    text = "".join(map(chr, random.integers(97, 123, lengths.sum())))
    ends = np.cumsum(lengths)
    different = dict.fromkeys(text[end - n : end] for end, n in zip(ends, lengths, strict=True))
    words = ["x" * 40, *different][: max(VOCABULARIES)]
    head = CharLSTM()
    hidden = jnp.asarray(random.normal(size=(TOKENS, SIZE)), jnp.float32)
    targets = jnp.asarray(random.integers(0, min(VOCABULARIES), TOKENS))

    sides = {}
    for size in VOCABULARIES:
        lexicon = Lexicon(tuple(words[:size]), np.ones(size, np.int64))
        sides[f"V = {size:,}"] = steps.head_step(head, lexicon, hidden, targets)
    title = f"{TOKENS} tokens, D = {SIZE}, {head.size} cells; forward and backward"
    timing.compare(title, sides, rounds, f"V = {VOCABULARIES[0]:,}")
    text_words = files.read_text(files.find(options.text)).split() if options.text else words
    all_words = list(dict.fromkeys(text_words))[: VOCABULARIES[0]]
    _all_words(head, all_words, hidden[:POSITIONS], rounds)


def _all_words(head, words, hidden, rounds):
    lexicon = Lexicon(tuple(words), np.ones(len(words), np.int64))
    params, tables = head.init(jax.random.key(0), SIZE, lexicon), head.tables(lexicon)

    def one_by_one(params, tables, hidden):
        def log_probs_after(state):
            states = jnp.repeat(state[None], len(words), axis=0)
            letters, lengths = tables["letters"], tables["lengths"]
            return head.spelled_log_prob(params, states, letters, lengths)

        return jax.lax.map(log_probs_after, hidden)

    sides = {
        "each word by itself": timing.compiled_side(one_by_one, params, tables, hidden),
        "beginnings once": timing.compiled_side(head.log_probs, params, tables, hidden),
    }
    np.testing.assert_allclose(*(side() for side in sides.values()), rtol=1e-4)
    title = f"\nlog p of {len(words):,} words at {len(hidden)} positions"
    timing.compare(title, sides, rounds, "each word by itself")


if __name__ == "__main__":
    main()
