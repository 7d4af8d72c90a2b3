"""Public losses called directly with arrays on the explicit axes that jax.make_mesh makes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from zoo import losses
from zoo.losses import softmax, weighted_softmax

TOKENS, SIZE, WORDS, COMPONENTS = 8, 5, 16, 3
RANDOM = np.random.default_rng(4)


def normal(*shape):
    return jnp.asarray(RANDOM.normal(size=shape), jnp.float32)


HIDDEN, TARGETS = normal(TOKENS, SIZE), jnp.asarray(RANDOM.integers(0, WORDS, TOKENS), jnp.int32)
WEIGHTS = jnp.asarray(RANDOM.uniform(size=TOKENS), jnp.float32)
TABLE = normal(WORDS, SIZE), normal(WORDS)
ADAPTIVE = normal(9, SIZE), normal(9), [(normal(SIZE, 2), normal(8, 2))]
CLASSES = normal(4, SIZE), normal(4), normal(4, 4, SIZE), normal(4, 4)
NODES, TURNS = map(jnp.asarray, losses.huffman_paths(np.arange(WORDS, 0, -1)))
MIXTURE = normal(TOKENS, COMPONENTS, SIZE), jax.nn.log_softmax(normal(TOKENS, COMPONENTS))
OTHER_TABLE = normal(WORDS, SIZE), normal(WORDS)
LOG_MEASURE = normal(TOKENS, WORDS)
# The logits of a log-linear layer are a product of three: halves keep them as small as others',
# since the cosine below turns a loss's last bits, the more the larger it is, into its gradient's.
LOG_LINEAR = 0.5 * normal(WORDS, 6), normal(WORDS), 0.5 * normal(6, SIZE), normal(6)


def identity(contexts):
    return contexts


MEASURE = jax.tree_util.Partial(identity)
# {name: (what is of tokens, what is of all, a function of both)}
CASES = {
    "softmax_loss": ((HIDDEN, TARGETS), TABLE, lambda t, a: losses.softmax_loss(t[0], *a, t[1])),
    "weighted_softmax_loss": (
        (HIDDEN, TARGETS, WEIGHTS),
        TABLE,
        lambda t, a: losses.weighted_softmax_loss(t[0], *a, *t[1:]),
    ),
    "capped, at a temperature": (
        (HIDDEN, TARGETS, WEIGHTS),
        TABLE,
        lambda t, a: losses.weighted_softmax_loss(
            t[0], *a, *t[1:], soft_cap=1.5, temperature=jnp.float32(0.7), label_smoothing=0.1
        ),
    ),
    "a learnt cap, and a temperature for each token": (
        (HIDDEN, TARGETS, WEIGHTS, 0.5 + WEIGHTS),
        (*TABLE, jnp.float32(1.5)),
        lambda t, a: losses.weighted_softmax_loss(
            t[0], *a[:2], *t[1:3], soft_cap=a[2], temperature=t[3], report=True
        )[0],
    ),
    "losses at a learnt temperature": (
        (HIDDEN, TARGETS),
        (*TABLE, jnp.float32(0.7)),
        lambda t, a: losses.softmax_loss(t[0], *a[:2], t[1], temperature=a[2]),
    ),
    "a low-rank change": (
        (HIDDEN, TARGETS, WEIGHTS),
        (*TABLE, 0.3 * normal(2, SIZE), 0.3 * normal(WORDS, 2)),
        lambda t, a: losses.weighted_softmax_loss(
            *losses.add_low_rank(t[0], a[0], *a[2:]), a[1], *t[1:]
        ),
    ),
    "softmax_word_log_probs": (
        (HIDDEN, jnp.stack([TARGETS, TARGETS[::-1]], axis=1)),
        TABLE,
        lambda t, a: losses.softmax_word_log_probs(t[0], *a, t[1]),
    ),
    "softmax_js_divergence": (
        (HIDDEN, MIXTURE[0][:, 0]),
        (*TABLE, *OTHER_TABLE),
        lambda t, a: losses.softmax_js_divergence(t[0], *a[:2], t[1], *a[2:]),
    ),
    "softmax_statistics": (
        (HIDDEN, TARGETS),
        TABLE,
        lambda t, a: losses.softmax_statistics(t[0], *a, t[1]).entropy,
    ),
    "softmax_kl_divergence": (
        (HIDDEN, MIXTURE[0][:, 0]),
        (*TABLE, *OTHER_TABLE),
        lambda t, a: losses.softmax_kl_divergence(t[0], *a[:2], t[1], *a[2:]),
    ),
    "softmax_top_k": ((HIDDEN,), TABLE, lambda t, a: losses.softmax_top_k(t[0], *a, 3)[0]),
    "weighted, with a measure": (
        (HIDDEN, TARGETS, WEIGHTS, LOG_MEASURE),
        TABLE,
        lambda t, a: losses.weighted_softmax_loss(
            t[0], *a, *t[1:3], log_measure=MEASURE, contexts=t[3]
        ),
    ),
    "with a measure": (
        (HIDDEN, TARGETS, LOG_MEASURE),
        TABLE,
        lambda t, a: losses.softmax_loss(t[0], *a, t[1], None, MEASURE, t[2]),
    ),
    "mixture_loss": (
        (*MIXTURE, TARGETS),
        TABLE,
        lambda t, a: losses.mixture_loss(*t[:2], *a, t[2]),
    ),
    "weighted_mixture_loss": (
        (*MIXTURE, TARGETS, WEIGHTS),
        TABLE,
        lambda t, a: losses.weighted_mixture_loss(*t[:2], *a, *t[2:]),
    ),
    "adaptive_loss": (
        (HIDDEN, TARGETS),
        ADAPTIVE,
        lambda t, a: losses.adaptive_loss(t[0], *a, t[1]),
    ),
    "weighted_adaptive_loss": (
        (HIDDEN, TARGETS, WEIGHTS),
        ADAPTIVE,
        lambda t, a: losses.weighted_adaptive_loss(t[0], *a, *t[1:]),
    ),
    "hierarchical_loss": (
        (HIDDEN, TARGETS),
        CLASSES,
        lambda t, a: losses.hierarchical_loss(t[0], *a, t[1], WORDS),
    ),
    "hierarchical_log_probs": (
        (HIDDEN,),
        CLASSES,
        lambda t, a: losses.hierarchical_log_probs(t[0], *a, WORDS),
    ),
    "path_loss": (
        (HIDDEN, NODES[TARGETS], TURNS[TARGETS]),
        (normal(WORDS - 1, SIZE), normal(WORDS - 1)),
        lambda t, a: losses.path_loss(t[0], *a, *t[1:]),
    ),
    "log_linear_loss": (
        (HIDDEN, TARGETS),
        LOG_LINEAR,
        lambda t, a: losses.log_linear_loss(t[0], *a, t[1]),
    ),
    "adaptor_penalty": ((HIDDEN,), TABLE, lambda t, a: losses.adaptor_penalty(t[0], *a, 0.1)),
    "importance_loss": (
        (WEIGHTS, normal(TOKENS, 4), normal(TOKENS), normal(TOKENS, 4)),
        jnp.zeros((TOKENS, 4), bool),
        lambda t, a: losses.importance_loss(*t, a),
    ),
    "nce_loss": (
        (WEIGHTS, normal(TOKENS, 4), normal(TOKENS), normal(TOKENS, 4)),
        (),
        lambda t, a: losses.nce_loss(*t),
    ),
}
USUAL = {"softmax_loss", "path_loss"}


@pytest.mark.parametrize(
    "name", [n if n in USUAL else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_values_and_gradients_are_those_of_one_device(name, monkeypatch):
    for module, field, size in (
        (softmax, "LOGITS_AT_A_TIME", 32),
        (softmax, "LEAST_ROWS_AT_A_TIME", 4),
        (softmax, "MOST_ROWS_AT_A_TIME", 8),
        (softmax, "NARROW", 1),
        (weighted_softmax, "LEAST_TOKENS_AT_A_TIME", 4),
        (weighted_softmax, "LEAST_SENT_AT_A_TIME", 4),
        (weighted_softmax, "ENTRIES_AT_A_TIME", 1),
    ):
        monkeypatch.setattr(module, field, size)
    token_arrays, shared_arrays, function = CASES[name]
    mesh = jax.make_mesh((4,), ("data",))  # explicit
    assert mesh.axis_types == (jax.sharding.AxisType.Explicit,)

    def put(tree, *spec):
        return jax.device_put(tree, NamedSharding(mesh, PartitionSpec(*spec)))

    @jax.jit
    def evaluate(token_arrays, shared_arrays):
        def total(hidden, shared_arrays):
            results = function((hidden, *token_arrays[1:]), shared_arrays)
            return sum(jnp.cos(x).sum() for x in jax.tree.leaves(results)), results

        floats = functools.partial(jax.grad, argnums=(0, 1), has_aux=True)
        return floats(total, allow_int=True)(token_arrays[0], shared_arrays)

    (hidden_gradient, params_gradient), results = evaluate(token_arrays, shared_arrays)
    (sharded_hidden, sharded_params), sharded_results = evaluate(
        put(token_arrays, "data"), put(shared_arrays)
    )
    expected = results, hidden_gradient, params_gradient
    for actual, desired in zip(
        jax.tree.leaves((sharded_results, sharded_hidden, sharded_params)),
        jax.tree.leaves(expected),
        strict=True,
    ):
        if desired.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(actual, desired, rtol=2e-5, atol=1e-5)
    for leaf in jax.tree.leaves(sharded_results):
        if leaf.ndim:
            assert jax.typeof(leaf).sharding.spec[0] == "data"
