"""Mistakes of somebody who imports zoo, each of which mypy must find: `expected` says which it is.

It is not run. `check_planted` asserts that exactly the marked lines are found.
"""

import dataclasses

import jax
import jax.numpy as jnp

from zoo import Experiment, Lexicon, Training
from zoo.base.arrays.types import Params
from zoo.cores import LSTM, Core
from zoo.data import Text
from zoo.embeddings import Embedding, Lookup
from zoo.heads import Head, LogLinear, Softmax
from zoo.models import LanguageModel
from zoo.priors import Background, FeaturePrior

head: Head = Softmax()
tied: Head = LSTM()  # expected: assignment
misspelt = Softmax(initial_scael=0.1)  # expected: call-arg
rate = LogLinear(penalty="much")  # expected: arg-type
model = LanguageModel(head=Lookup())  # expected: arg-type
training = Training(batch="many")  # expected: arg-type
experiment = Experiment(data=Text("a", "b"), model=Softmax())  # expected: arg-type
lexicon = Lexicon(words=("a",), count=[1])  # expected: call-arg


def use(head: Head, words: Lexicon, hidden: jax.Array, targets: jax.Array) -> float:
    """Mistakes with a head."""
    head.initialise(jax.random.key(0))  # expected: attr-defined
    params = head.init(jax.random.key(0), words, 5)  # expected: arg-type, arg-type
    head.loss(params, head.tables(words), hidden)  # expected: call-arg
    head.sample(params, {}, hidden, jax.random.key(0), contexts=0)  # expected: call-arg
    head.log_prob(head.tables(words), hidden, targets, {})  # expected: arg-type, arg-type
    head.top_k(params, {}, hidden, 2.5)  # expected: arg-type
    return head.weighted_loss(params, {}, hidden, targets, jnp.ones(1))  # expected: return-value


def look(embedding: Embedding, core: Core, words: Lexicon) -> int:
    """Mistakes with the other components."""
    embedding.apply({}, {}, ("a", "b"))  # expected: arg-type
    core.initial_carry()  # expected: call-arg
    print(core.output_sizes)  # expected: attr-defined
    words.select_words("a", "b")  # expected: call-arg, arg-type
    return words.words  # expected: return-value


@dataclasses.dataclass(frozen=True)
class Wrong(Head):
    """A head whose methods give something else."""

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        return jnp.zeros(hidden_size)  # expected: return-value

    def tables(self, lexicon: Lexicon) -> Params:  # expected: misc
        return {}

    def scores_per_token(self, vocabulary: str) -> int:  # expected: override
        return 1

    def warnings(self, lexicon: Lexicon) -> str:  # expected: override
        return "none"


def prior(features: FeaturePrior, background: Background) -> None:
    """Mistakes with priors."""
    features.feature(("a",), {}, {})  # expected: attr-defined
    background.log_probs(["a"], {})  # expected: arg-type
