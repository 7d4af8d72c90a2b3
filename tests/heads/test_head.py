"""What heads get of the base: the best words and draws, some tokens at a time."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import examples
from tests.heads.test_with_expert import StubExpert
from tests.marks import slow
from zoo import heads
from zoo.heads import (
    AdaptiveSoftmax,
    CharLSTM,
    HierarchicalSoftmax,
    HuffmanSoftmax,
    LogLinear,
    MixtureOfSoftmaxes,
    Softmax,
    SpreadUnknown,
    WithCache,
    WithExpert,
)
from zoo.lexicon.spelling import Spelling
from zoo.losses import softmax

SIZE = 5
HEADS = {
    "log-linear": LogLinear(),
    "Huffman": HuffmanSoftmax(),
    "mixture": MixtureOfSoftmaxes(components=2),
    "adaptive": AdaptiveSoftmax(cutoffs=(3, 8), division=2),
    "hierarchical": HierarchicalSoftmax(classes=5),
}


def problem(head, random, tokens, words=13):
    """(params, tables, hidden)."""
    lexicon = examples.lexicon() if words == 13 else examples.plain_lexicon(words)
    params = examples.random_params(head, random, SIZE, lexicon)
    return params, head.tables(lexicon), jnp.asarray(random.normal(size=(*tokens, SIZE)))


@pytest.mark.parametrize("blocks", [True, *slow(False)])
@pytest.mark.parametrize("name", HEADS)
def test_the_best_words_are_those_of_all_log_probabilities(name, blocks, monkeypatch, random):
    """Also of heads whose words are in another order than their parameters."""
    if blocks:  # of two classes or rows, which do not divide them
        monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 64)
        monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 2)
        monkeypatch.setattr(softmax, "MOST_ROWS_AT_A_TIME", 6)
        monkeypatch.setattr(softmax, "NARROW", 1)
    head = HEADS[name]
    lexicon = dataclasses.replace(examples.lexicon(), counts=random.permutation(13))
    params, tables = examples.random_params(head, random, SIZE, lexicon), head.tables(lexicon)
    hidden = jnp.asarray(random.normal(size=(3, 5, SIZE)))

    @jax.jit
    def evaluate(params, hidden):
        best_words = [head.top_k(params, tables, hidden, k) for k in (1, 7, 13)]
        return best_words, head.log_probs(params, tables, hidden)

    best_words, log_probs = jax.device_get(evaluate(params, hidden))
    order = np.argsort(-log_probs, axis=-1)
    for values, ids in best_words:
        expected_ids = order[..., : ids.shape[-1]]
        np.testing.assert_array_equal(ids, expected_ids)
        assert ids.dtype == np.int32
        expected = np.take_along_axis(log_probs, expected_ids, axis=-1)
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)


def test_the_best_words_of_one_state(random):
    params, tables, hidden = problem(LogLinear(), random, ())
    log_probs = np.asarray(jax.jit(LogLinear().log_probs)(params, tables, hidden))
    values, words = jax.jit(LogLinear().top_k, static_argnums=3)(params, tables, hidden, 2)
    np.testing.assert_array_equal(words, np.argsort(-log_probs)[:2])
    np.testing.assert_allclose(values, -np.sort(-log_probs)[:2], rtol=1e-5)


def test_draws_in_blocks_of_tokens(random, monkeypatch):
    """Of the declared probabilities, and each block's are its own."""
    head, block = LogLinear(), 2000
    params, tables, hidden = problem(head, random, ())
    (log_probs,) = np.asarray(jax.jit(head.log_probs)(params, tables, hidden))[None]
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", block * 13)
    states = jnp.broadcast_to(hidden, (5 * block, SIZE))
    words = np.asarray(jax.jit(head.sample)(params, tables, states, jax.random.key(1)))
    observed = np.bincount(words, minlength=13)
    expected = np.exp(np.float64(log_probs))
    expected *= 5 * block / expected.sum()
    assert scipy.stats.chisquare(observed, expected).pvalue > 1e-3
    assert (words[:block] != words[block : 2 * block]).mean() > 0.5


LARGE_HEADS = {
    "Huffman": HuffmanSoftmax(),
    "mixture": MixtureOfSoftmaxes(components=15),
    "speller": CharLSTM(Spelling("characters"), size=4, letter_size=2, renormalised=True),
    "expert": WithExpert(StubExpert(), Softmax()),
    "expert of a mixture": WithExpert(StubExpert(), MixtureOfSoftmaxes(components=15)),
}


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("Huffman", "top_k"),
        ("Huffman", "sample"),
        ("speller", "top_k"),
        ("speller", "log_prob"),
        ("expert", "sample"),
        ("expert of a mixture", "top_k"),
        *slow(("mixture", "top_k"), ("speller", "sample"), ("expert", "top_k")),
    ],
)
def test_no_array_is_of_all_tokens_and_words(random, monkeypatch, name, method):
    head, tokens, words = LARGE_HEADS[name], 256, 999
    params, tables, hidden = problem(head, random, (tokens,), words)
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 8 * words)

    def function(params, tables, hidden):
        places = jnp.arange(tokens)
        keywords = {"context": places} if head.background else {}
        if method == "top_k":
            return head.top_k(params, tables, hidden, 3, **keywords)
        if method == "log_prob":
            return head.log_prob(params, tables, hidden, places, **keywords)
        return head.sample(params, tables, hidden, jax.random.key(0), **keywords)

    memory = jax.jit(function).lower(params, tables, hidden).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4 * tokens * words / 2


# Heads that stand before another one, which is their field `head`.
WRAPPED = {
    WithCache: WithCache,
    WithExpert: lambda head: WithExpert(StubExpert(), head),
    SpreadUnknown: lambda head: SpreadUnknown(head, examples.plain_lexicon()),
}


def test_a_head_before_another_does_not_hide_what_that_one_is():
    classes = [value for value in vars(heads).values() if isinstance(value, type)]
    wrappers = {kind for kind in classes if "head" in getattr(kind, "__dataclass_fields__", {})}
    assert wrappers == {*WRAPPED}
    for wrap in WRAPPED.values():
        for head in (Softmax(), HuffmanSoftmax(), AdaptiveSoftmax(), MixtureOfSoftmaxes()):
            outer = wrap(head)
            assert outer.ordered_by_frequency == head.ordered_by_frequency
            assert outer.scores_per_token(13) == head.scores_per_token(13)
            assert outer.loss_name == "loss"  # its own, which is exact
