"""A log-linear head over a contextual background against the same head over a unigram background.

One step forward and backward on words of the Penn Treebank, V = 10,000, in a batch of 20 x 35
positions, D = 256. The features are the identity of the M most frequent words, and one tag for all
other words.

    python -m benchmarks.contextual_background [--text ptb/ptb.train.txt]
    python -m benchmarks.contextual_background --trained        over a softmax LSTM of 256 cells
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import LogLinear, Softmax
from zoo.lab.adaptation import Static, Trained
from zoo.models import LanguageModel
from zoo.priors import KneserNey, TopWords, Unigram

BATCH, TIME, SIZE, VOCABULARY = 20, 35, 256, 10_000


@dataclasses.dataclass(frozen=True)
class Untrained(Trained):
    """A background that takes as long as a trained model, with random parameters."""

    model: LanguageModel = LanguageModel(Lookup(SIZE), LSTM(SIZE), Softmax())

    def initial_carry(self, batch):
        """Returns the model's initial carry."""
        return self.model.initial_carry(batch)

    def prepare(self, lexicon, texts):
        """Returns no tables."""
        return {}

    def tables(self, lexicon):
        """Returns random parameters; the words are the same as in `adaptation.WithWordsOf`."""
        return {
            "model": Static(self.model),
            "params": self.model.init(jax.random.key(0), lexicon),
            "tables": self.model.evaluation_tables(lexicon),
            "place": None,
            "log_share": jnp.zeros(len(lexicon)),
        }


def main():
    """Prints a table for each M."""
    parser = timing.parser(__doc__, rounds=9, order=3)
    parser.add_argument("--trained", action="store_true", help="over a trained model, no n-grams")
    parser.add_argument("--text", default="ptb/ptb.train.txt", help="the words")
    arguments = parser.parse_args()
    source = Text(arguments.text, arguments.text)
    background, name = KneserNey(arguments.order), f"{arguments.order}-gram background"
    if arguments.trained:
        background, name = Untrained(""), "trained background"
    for top_words in (VOCABULARY, 2_500):
        vocabulary = Vocabulary(
            features=(TopWords(top_words, ("train",)),),
            background=Unigram(("train",), smoothing=0.5),
        )
        compare(source, vocabulary, name, background, top_words, arguments.rounds)


def compare(source, vocabulary, contextual, background, top_words, rounds):
    """Prints one table."""
    lexicon, corpora = vocabulary.build(source)
    text = vocabulary.encode(corpora["train"], lexicon)
    prepared = background.prepare(lexicon, {"train": text})
    lexicon = dataclasses.replace(lexicon, background_tables=prepared)
    stream = text.words[: BATCH * (TIME + 1)].reshape(BATCH, TIME + 1)
    words, targets = jnp.asarray(stream[:, :-1]), jnp.asarray(stream[:, 1:])
    hidden = jnp.asarray(np.random.default_rng(1).normal(size=(*words.shape, SIZE)), jnp.float32)
    weights = jnp.full(words.shape, 1 / words.size)

    def loss(head, params, hidden, tables, words):
        context = None
        if head.background is not None:
            carry = head.background.initial_carry(BATCH)
            context, _ = head.background.apply(tables["background"], words, carry)
        return head.weighted_loss(params, tables, hidden, targets, weights, context=context)

    heads = {"unigram background": LogLinear(), contextual: LogLinear(background=background)}
    steps = {}
    for name, head in heads.items():
        tables = head.tables(lexicon)
        params = head.init(jax.random.key(0), SIZE, lexicon)
        step = jax.value_and_grad(functools.partial(loss, head), argnums=(0, 1))
        steps[name] = timing.compiled_side(step, params, hidden, tables, words)
    signatures = len(tables["log_mass"])
    title = (
        f"N = {BATCH} x {TIME}, D = {SIZE}, V = {len(lexicon):,}, M = {top_words:,}, "
        f"S = {signatures:,}; forward and backward"
    )
    timing.compare(title, steps, rounds, "unigram background")


if __name__ == "__main__":
    main()
