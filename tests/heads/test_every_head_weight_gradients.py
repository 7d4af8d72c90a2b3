"""d weighted_loss / d u_n = loss_n in every form of the sum, against float64 loops."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.heads import head_references
from tests.marks import slow
from zoo.base.arrays import sharded_functions
from zoo.heads import (
    AdaptiveSoftmax,
    HierarchicalSoftmax,
    LogLinear,
    MixtureOfSoftmaxes,
    SelfNormalisedSoftmax,
    Softmax,
)
from zoo.lexicon.feature_signatures import Form
from zoo.losses import adaptive, hierarchical, softmax, weighted_softmax

SIZE, BATCH, TIME = 7, 3, 5
LOGITS, LEAST_SENT = (softmax, "LOGITS_AT_A_TIME"), (weighted_softmax, "LEAST_SENT_AT_A_TIME")


def self_normalised(params, hidden):
    """The penalty is no log-probability, but it is a part of the loss of every word."""
    scores = hidden @ params["weights"].T + params["bias"]
    log_z = np.log(np.exp(scores).sum(-1, keepdims=True))
    return scores - log_z - 0.3 * log_z**2


def penalised(params, hidden):
    adaptors = hidden @ params["weights"].T + params["bias"]
    return head_references.log_linear(params, hidden) - 0.2 * (adaptors**2).sum(-1)[:, None]


@dataclasses.dataclass(frozen=True)
class Case:
    """A head, minus its loss of every word [N, V] by numpy, and what chooses the form."""

    head: object
    reference: object
    settings: tuple = ()
    signatures: Form = Form.DENSE_SUMS


# Blocks of four tokens, of which fifteen make four, of the vocabulary, and both: within the blocks
# of tokens on one device, blocks of four words.
BY_TOKENS = ((*LOGITS, 4 * 13), (*LEAST_SENT, 1))
BY_WORDS = ((*LOGITS, 4 * 13),)
BY_BOTH = (
    (*LOGITS, 4 * 13),
    (weighted_softmax, "ENTRIES_AT_A_TIME", 1),
    (softmax, "LEAST_ROWS_AT_A_TIME", 4),
    (sharded_functions, "is_local", lambda tree: True),
)
SOFTMAX = head_references.softmax
PENALTY = LogLinear(penalty=0.2)
FORMS = {
    "softmax, of tokens": Case(Softmax(), SOFTMAX, BY_TOKENS),
    "softmax, of words": Case(Softmax(), SOFTMAX, BY_WORDS),
    "softmax, of both": Case(Softmax(), SOFTMAX, BY_BOTH),
    "self-normalised, of tokens": Case(
        SelfNormalisedSoftmax(z_loss=0.3), self_normalised, BY_TOKENS
    ),
    "self-normalised, of words": Case(SelfNormalisedSoftmax(z_loss=0.3), self_normalised, BY_WORDS),
    "mixture, of tokens": Case(
        MixtureOfSoftmaxes(components=2), head_references.mixture, ((*LOGITS, 8 * 13), BY_TOKENS[1])
    ),
    "mixture, of words": Case(
        MixtureOfSoftmaxes(components=2), head_references.mixture, ((*LOGITS, 13),)
    ),
    "adaptive": Case(
        AdaptiveSoftmax(cutoffs=(3, 8), division=2),
        head_references.adaptive,
        ((adaptive, "TOKENS_AT_A_TIME", 4),),
    ),
    "hierarchical": Case(
        HierarchicalSoftmax(),
        head_references.hierarchical,
        ((hierarchical, "GATHERED_AT_A_TIME", 4 * 5 * SIZE),),
    ),
    "log-linear, sparse scores": Case(PENALTY, penalised, BY_TOKENS, Form.PRODUCT),
    "log-linear, sparse sums": Case(PENALTY, penalised, BY_TOKENS, Form.SPARSE_SUMS),
}


# Each has what one of the others has as well.
REDUNDANT = ("self-normalised, of words", "mixture, of tokens", "log-linear, sparse scores")


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    "name", [*[name for name in FORMS if name not in REDUNDANT], *slow(*REDUNDANT)]
)
def test_it_is_the_loss(name, monkeypatch):
    form, random = FORMS[name], np.random.default_rng(8)
    for module, constant, value in form.settings:
        monkeypatch.setattr(module, constant, value)
    lexicon = examples.lexicon()
    lexicon.__dict__["signature_form"] = form.signatures
    tables = form.head.tables(lexicon)
    params = examples.random_params(form.head, random, SIZE, lexicon, scale=0.6)
    hidden = random.normal(size=(BATCH, TIME, SIZE))
    targets = random.integers(0, 13, (BATCH, TIME))
    weights = np.resize([0.5, 0.0, 2.0, 0.0], (BATCH, TIME))

    numpy_params = {key: np.asarray(value) for key, value in params.items()}
    minus_losses = form.reference(numpy_params, hidden.reshape(-1, SIZE))
    expected = np.zeros((BATCH, TIME))
    for n, place in enumerate(np.ndindex(BATCH, TIME)):
        expected[place] = -minus_losses[n][targets[place]]

    @jax.jit
    def slopes(weights):
        def summed(weights):
            return 3 * form.head.weighted_loss(params, tables, hidden, targets, weights)

        return jax.value_and_grad(summed)(weights)

    value, gradient = slopes(jnp.asarray(weights))
    np.testing.assert_allclose(value, 3 * np.sum(weights * expected), rtol=2e-6)
    np.testing.assert_allclose(gradient, 3 * expected, rtol=2e-6)
