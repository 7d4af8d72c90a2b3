"""The adaptive softmax against PyTorch's, and in blocks of tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, layouts
from tests.marks import slow
from zoo import losses
from zoo.errors import UserError
from zoo.heads import AdaptiveSoftmax
from zoo.lexicon import Lexicon
from zoo.losses import adaptive

HEAD = AdaptiveSoftmax(cutoffs=(4, 9), division=2.0)


def test_losses_are_those_of_pytorch(random):
    torch = pytest.importorskip("torch")
    lexicon = examples.plain_lexicon()  # ranks are ids
    params = examples.random_params(HEAD, random, 8, lexicon)
    torch_head = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 13, [4, 9], div_value=2.0, head_bias=True)
    with torch.no_grad():
        torch_head.head.weight[:] = torch.tensor(np.asarray(params["head"]))
        torch_head.head.bias[:] = torch.tensor(np.asarray(params["head_bias"]))
        for tail in range(2):
            projection, weights = torch_head.tail[tail]
            projection.weight[:] = torch.tensor(np.asarray(params[f"projection_{tail}"]).T)
            weights.weight[:] = torch.tensor(np.asarray(params[f"tail_{tail}"]))
        hidden = random.normal(size=(13, 8)).astype(np.float32)
        expected = torch_head(torch.tensor(hidden), torch.arange(13)).output.numpy()
        all_expected = torch_head.log_prob(torch.tensor(hidden)).numpy()
    tables = HEAD.tables(lexicon)
    log_prob = HEAD.log_prob(params, tables, jnp.asarray(hidden), jnp.arange(13))
    np.testing.assert_allclose(log_prob, expected, rtol=1e-4, atol=1e-5)
    log_probs = HEAD.log_probs(params, tables, jnp.asarray(hidden))
    np.testing.assert_allclose(log_probs, all_expected, rtol=1e-4, atol=1e-5)


def test_clusters_follow_frequency_not_the_order_of_the_lexicon(random):
    counts = random.permutation(13)
    lexicon = Lexicon(words=tuple(map(str, range(13))), counts=counts)
    tables = HEAD.tables(lexicon)
    np.testing.assert_array_equal(tables["rank"], 12 - counts)
    np.testing.assert_array_equal(tables["word"][tables["rank"]], np.arange(13))
    params = examples.random_params(HEAD, random, 8, lexicon)
    hidden = jnp.asarray(random.normal(size=(13, 8)), jnp.float32)
    log_probs = HEAD.log_probs(params, tables, hidden)
    sorted_lexicon = examples.plain_lexicon()
    sorted_log_probs = HEAD.log_probs(params, HEAD.tables(sorted_lexicon), hidden)
    np.testing.assert_allclose(log_probs, np.asarray(sorted_log_probs)[:, 12 - counts], rtol=1e-6)


@pytest.mark.parametrize("tokens", [1, 6, 10])
@pytest.mark.slow
def test_blocks_of_tokens_change_nothing(random, monkeypatch, tokens):
    lexicon = examples.plain_lexicon()
    params = examples.random_params(HEAD, random, 8, lexicon)
    tables, hidden = HEAD.tables(lexicon), jnp.asarray(random.normal(size=(tokens, 8)), jnp.float32)
    targets = jnp.asarray(random.integers(13, size=tokens))
    weights = jnp.asarray(random.uniform(size=tokens), jnp.float32)

    def results(params):
        function = jax.value_and_grad(
            lambda params: HEAD.weighted_loss(params, tables, hidden, targets, weights)
        )
        return jax.jit(function)(params)

    unblocked = results(params)
    monkeypatch.setattr(adaptive, "TOKENS_AT_A_TIME", 4)
    for leaf, expected in zip(
        jax.tree.leaves(results(params)), jax.tree.leaves(unblocked), strict=True
    ):
        np.testing.assert_allclose(leaf, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("is_sum", [False, *slow(True)])
def test_memory_does_not_grow_with_tokens(random, is_sum):
    """Neither logits nor tails are kept for the backward pass of every block of tokens, be the loss
    a weighted sum or of each token."""
    size, words = 32, 5000
    head, lexicon = AdaptiveSoftmax((20, 50), division=1.0), examples.plain_lexicon(words)
    params = examples.random_params(head, random, size, lexicon)
    tables = head.tables(lexicon)

    def sum_of_losses(params, tables, hidden, targets, weights):
        return head.loss(params, tables, hidden, targets) @ weights

    def memory(tokens):
        shape = jax.ShapeDtypeStruct
        columns = shape((tokens,), jnp.int32), shape((tokens,), jnp.float32)
        loss = head.weighted_loss if is_sum else sum_of_losses
        gradient = jax.jit(jax.grad(loss, argnums=(0, 2)))
        arguments = params, tables, shape((tokens, size), jnp.float32), *columns
        return gradient.lower(*arguments).compile().memory_analysis().temp_size_in_bytes

    small_memory, large_memory = (memory(blocks * adaptive.TOKENS_AT_A_TIME) for blocks in (8, 40))
    # Some vectors a token may stay, but not a tail a block.
    assert large_memory - small_memory < 32 * 4 * words * size / 4


def test_a_training_step_computes_the_scores_of_a_tail_once(monkeypatch):
    """Three products of matrices for each: the scores, and gradients for either factor."""
    monkeypatch.setattr(
        adaptive, "_filled_range", lambda filled: (0, filled.shape[0])
    )  # as for all words
    tokens, size, frequent, rare = 64, 8, 20, 600
    head, lexicon = AdaptiveSoftmax((frequent,), division=2.0), examples.plain_lexicon(620)
    params = jax.eval_shape(lambda: head.init(jax.random.key(0), size, lexicon))
    tables = head.tables(lexicon)

    def weighted_loss(params, hidden, targets, weights):
        return head.weighted_loss(params, tables, hidden, targets, weights)

    shape = jax.ShapeDtypeStruct
    program = layouts.run(
        jax.jit(jax.value_and_grad(weighted_loss, argnums=(0, 1))),
        params,
        shape((tokens, size), jnp.float32),
        shape((tokens,), jnp.int32),
        shape((tokens,), jnp.float32),
    )
    products = size * (frequent + 1) + size * size // 2 + size // 2 * rare
    assert program.flops == 3 * 2 * tokens * products


@pytest.mark.parametrize("cutoffs", [(), (0, 3), (5, 5), (7, 3)])
def test_cutoffs_must_rise(cutoffs):
    with pytest.raises(UserError, match=r"cutoffs of AdaptiveSoftmax are "):
        AdaptiveSoftmax(cutoffs=cutoffs)


def test_cutoffs_must_leave_words():
    with pytest.raises(UserError, match=r"no words for the last cluster: .* lexicon's 13 words"):
        AdaptiveSoftmax(cutoffs=(4, 13)).init(jax.random.key(0), 8, examples.plain_lexicon())


def test_narrow_ranks_are_those_of_int32(random):
    """A cutoff of 300, which uint8 does not hold."""
    weights, bias = random.normal(size=(301, 4)), random.normal(size=301)
    tails = [(random.normal(size=(4, 2)), random.normal(size=(5, 2)))]
    table = jax.tree.map(jnp.float32, (random.normal(size=(2, 4)), weights, bias, tails))
    ranks = np.array([7, 250])
    loss = jax.jit(losses.adaptive_loss)
    token_losses = (loss(*table, ranks.astype(dtype)) for dtype in (np.uint8, np.int32))
    np.testing.assert_array_equal(*token_losses)
