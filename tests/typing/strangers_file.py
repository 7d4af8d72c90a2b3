"""What somebody may write who imports zoo: it type-checks, and is not run."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from zoo import Evaluation, Experiment, Lexicon, Training
from zoo.base.arrays.types import Context, Key, Params, Prepared, Tables
from zoo.cores import LSTM, Core
from zoo.data import Text
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Embedding, Lookup
from zoo.heads import NCE, Head, LogLinear, Softmax
from zoo.losses import softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adagrad
from zoo.priors import Morphology, Unigram


@dataclasses.dataclass(frozen=True)
class Cosines(Head):
    """A head of the stranger's own: a softmax over cosines."""

    sharpness: float = 10.0

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        return {"weights": jax.random.normal(key, (len(lexicon), hidden_size))}

    def _loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        key: Key | None,
        context: Context,
    ) -> jax.Array:
        return -self._log_prob_and_log_z(params, tables, hidden, targets, context, None)[0]

    def _log_prob_and_log_z(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        context: Context,
        prepared: Prepared,
    ) -> tuple[jax.Array, jax.Array]:
        loss, log_z = softmax.softmax_loss(
            self.sharpness * hidden, params["weights"], jnp.zeros(len(params["weights"])), targets
        )
        return -loss, log_z


def lexicon() -> Lexicon:
    """Words of the stranger's own."""
    return Lexicon(words=("a", "b", "</s>"), counts=np.array([3, 2, 1]), boundary="</s>")


def mean_loss(head: Head, words: Lexicon, hidden: jax.Array, targets: jax.Array) -> jax.Array:
    """The mean loss of any head."""
    key = jax.random.key(0)
    params, tables = head.init(key, hidden.shape[-1], words), head.tables(words)
    losses: jax.Array = head.loss(params, tables, hidden, targets, key=key)
    log_probs, best = head.top_k(params, tables, hidden, 3)
    assert log_probs.shape == best.shape
    return losses.mean()


def hidden_states(embedding: Embedding, core: Core, words: Lexicon, text: jax.Array) -> jax.Array:
    """The states of any core over any embedding."""
    embedding_key, core_key = jax.random.split(jax.random.key(0))
    vectors = embedding.apply(embedding.init(embedding_key, words), embedding.tables(words), text)
    params = core.init(core_key, embedding.size)
    hidden, _ = core.apply(params, vectors, core.initial_carry(len(text)))
    return hidden


def losses() -> list[jax.Array]:
    """The losses of some heads."""
    heads: tuple[Head, ...] = (Softmax(), NCE(samples=2), LogLinear(penalty=0.1), Cosines())
    return [mean_loss(head, lexicon(), jnp.ones((2, 4)), jnp.array([0, 2])) for head in heads]


def experiment() -> Experiment:
    """A recipe."""
    return Experiment(
        data=Text(train="train.txt", validation="validation.txt"),
        vocabulary=Vocabulary(features=(Morphology(),), background=Unigram(smoothing=0.5)),
        model=LanguageModel(Lookup(12), LSTM(size=12, layers=2), LogLinear(kinds=("POS",))),
        training=Training(batch=8, optimizer=Adagrad(learning_rate=0.1), rates=(("head", 0.5),)),
        evaluation=Evaluation(batch=4),
    )


def head_of(recipe: Experiment) -> Head:
    """The head of a language model."""
    return recipe.language_model.head
