"""Word vectors by character convolution: each distinct word once, against every position.

`CharCNN.apply` against the same network over the padded spelling of every position; forward and
backward with gradients of all parameters. B = 32, T = 35, with the sizes of Labeau and Allauzen
(mean) and the small sizes of Kim et al. (maximum), on a batch of the Penn Treebank in $ZOO_DATA, or
of words drawn by Zipf's law without it.

    python -m benchmarks.char_cnn
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from zoo.data import Text, Vocabulary
from zoo.embeddings import CharCNN
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon
from zoo.sources import files

BATCH, LENGTH = 32, 35
NETWORKS = {
    "one width, mean": Convolution(),
    "six widths, maximum, a highway": Convolution(
        letter_size=15,
        widths=(1, 2, 3, 4, 5, 6),
        filters=(25, 50, 75, 100, 125, 150),
        pooling="max",
        activation="tanh",
        highway=1,
    ),
}


def batch_of_words(random, length=LENGTH):
    """Returns (lexicon, words [B, T], description) of a batch of the Penn Treebank if it is there,
    else of Zipf's law.

    Args:
      random: a generator of numpy.
      length: T.
    """
    data = files.data_folder()
    has_treebank = data is not None and (data / "ptb" / "ptb.train.txt").exists()
    return treebank(length) if has_treebank else zipf(random, length)


def treebank(length):
    """Returns (lexicon, words [B, T], description) for a batch of the Penn Treebank."""
    source = Text(train="ptb/ptb.train.txt", validation="ptb/ptb.valid.txt")
    vocabulary = Vocabulary()
    lexicon, corpora = vocabulary.build(source)
    words = vocabulary.encode(corpora["train"], lexicon).words
    batch_rows = words[: len(words) // BATCH * BATCH].reshape(BATCH, -1)
    return lexicon, batch_rows[:, 1000 : 1000 + length], "of the Penn Treebank"


def zipf(random, length, size=10_000):
    """Returns the same for generated words of 1 to 18 letters, frequent words being short."""
    lengths = np.minimum(1 + np.log2(1 + np.arange(size)) / 2 + random.poisson(1, size), 18)
    words = {}
    for place, letters in enumerate(lengths.astype(int)):
        while len(words) <= place:
            words["".join(map(chr, random.integers(97, 123, letters)))] = None
    mass = 1 / np.arange(1, size + 1)
    batch = random.choice(size, (BATCH, length), p=mass / mass.sum())
    return Lexicon(tuple(words), np.ones(size, np.int64)), batch, "of Zipf's law"


def main():
    """Prints the table."""
    rounds = timing.parser(__doc__, rounds=15).parse_args().rounds

    random = np.random.default_rng(0)
    lexicon, words, description = batch_of_words(random)
    print(f"B = {BATCH}, T = {LENGTH} {description}, {len(np.unique(words))} distinct words")
    for name, network in NETWORKS.items():
        compare(name, network, lexicon, jnp.asarray(words, jnp.int32), random, rounds)


def compare(name, network, lexicon, words, random, rounds):
    """Prints the times of a network, and the largest difference between the gradients."""
    embedding = CharCNN(size=128, network=network)
    params, tables = embedding.init(jax.random.key(0), lexicon), embedding.tables(lexicon)
    cotangent = jnp.asarray(random.normal(size=(BATCH, LENGTH, embedding.size)), jnp.float32)

    def everywhere(params, tables, words):
        flat = words.ravel()
        vectors = network.apply(params, tables["letters"][flat], tables["lengths"][flat])
        return vectors.reshape(*words.shape, -1)

    sides, gradients = {}, {}
    for side, function in (("distinct words", embedding.apply), ("all positions", everywhere)):

        def objective(params, tables, words, function=function):
            return jnp.sum(cotangent * function(params, tables, words))

        sides[side] = timing.compiled_side(jax.value_and_grad(objective), params, tables, words)
        gradients[side] = sides[side]()[1]

    title = f"{name}, spellings of up to {tables['letters'].shape[1]} letters; forward and backward"
    timing.compare(title, sides, rounds, "distinct words")
    differences = jax.tree.map(lambda x, y: jnp.max(jnp.abs(x - y)), *gradients.values())
    print(f"  gradients differ by {max(jax.tree.leaves(differences)):.1e} at most")


if __name__ == "__main__":
    main()
