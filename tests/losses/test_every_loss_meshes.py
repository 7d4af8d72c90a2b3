"""Losses on meshes of tokens x words, beside one device."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.marks import slow
from zoo import losses
from zoo.lab.training import compiled_programs
from zoo.losses import adaptive, hierarchical, softmax

TOKENS, SIZE = 24, 5


def softmax_problem(random, ragged):
    """28 words, or 13, of which the last runs have fewer."""
    words = 13 if ragged else 28
    table = normal(random, words, SIZE), normal(random, words)

    def loss(*arguments, **options):
        return losses.softmax_loss(*arguments, **options)[0]

    return table, random.integers(0, words, TOKENS), loss, losses.weighted_softmax_loss


def smoothed_problem(random, ragged):
    table, targets, *functions = softmax_problem(random, ragged)
    smoothed = (functools.partial(function, label_smoothing=0.2) for function in functions)
    return table, targets, *smoothed


def adaptive_problem(random, ragged):
    """Tails of 12 and 16 words, or of 11 words and of 3, which are fewer than the devices."""
    sizes = (11, 3) if ragged else (12, 16)
    tails = [
        (normal(random, SIZE, d), normal(random, v, d)) for d, v in zip((3, 2), sizes, strict=True)
    ]
    table = normal(random, 8, SIZE), normal(random, 8), tails
    ranks = random.integers(0, 6 + sum(sizes), TOKENS)
    return table, ranks, losses.adaptive_loss, losses.weighted_adaptive_loss


def hierarchical_problem(random, ragged):
    """8 classes, or 7, of 3 words, without the last word."""
    classes = 7 if ragged else 8
    table = normal(random, classes, SIZE), normal(random, classes)
    table = *table, normal(random, classes, 3, SIZE), normal(random, classes, 3)
    words = 3 * classes - 1

    def loss(hidden, class_weights, class_bias, weights, bias, ranks):
        arrays = hidden, class_weights, class_bias, weights, bias
        return losses.hierarchical_loss(*arrays, ranks, words)

    def weighted_loss(*arguments):
        *arguments, u = arguments
        return losses.weighted_sum(loss(*arguments), u)

    return table, random.integers(0, words, TOKENS), loss, weighted_loss


PROBLEMS = {
    "softmax": softmax_problem,
    "softmax with smoothed labels": smoothed_problem,
    "adaptive": adaptive_problem,
    "adaptive, scores computed twice": adaptive_problem,
    "hierarchical": hierarchical_problem,
}


def normal(random, *shape):
    return jnp.asarray(random.normal(size=shape), jnp.float32)


def placed(mesh, tokens, table):
    """Tokens along the first axis, and words along the last where it divides them."""
    words = mesh.axis_names[-1]

    def place(x, *names):
        return jax.device_put(x, NamedSharding(mesh, P(*names)))

    def place_words(x):
        return place(x, *[words] if x.ndim and x.shape[0] % mesh.shape[words] == 0 else [])

    names = [mesh.axis_names[0]] if len(mesh.axis_names) > 1 else []
    return [place(x, *names) for x in tokens], jax.tree.map(place_words, table)


@pytest.mark.parametrize("kind", [AxisType.Auto, *slow(AxisType.Explicit)])
@pytest.mark.parametrize("shape", [(2, 2), *slow(((1, 4),), ((4, 1),), ((4,),))])
@pytest.mark.parametrize("ragged", [True, *slow(False)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_on_a_mesh_nothing_is_sent_in_loops(random, monkeypatch, name, ragged, shape, kind):
    monkeypatch.setattr(adaptive, "MOST_TOKENS_ON_CPU", 3)
    if name.endswith("twice"):
        monkeypatch.setattr(adaptive, "LOGITS_HELD", 0)
    monkeypatch.setattr(hierarchical, "GATHERED_AT_A_TIME", 60)
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 12)
    monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 2)
    table, ranks, loss, weighted_loss = PROBLEMS[name](random, ragged)
    u = jnp.asarray(random.uniform(size=TOKENS) * (np.arange(TOKENS) % 5 > 0), jnp.float32)
    tokens = normal(random, TOKENS, SIZE), jnp.asarray(ranks, jnp.int32), u

    def compute(tokens, table):
        hidden, ranks, u = tokens

        def weighted(hidden, table, u):
            return weighted_loss(hidden, *table, ranks, u)

        def of_losses(hidden, table):
            return losses.weighted_sum(loss(hidden, *table, ranks), u + 0.1)

        return (
            jax.value_and_grad(weighted, (0, 1, 2))(hidden, table, u),
            jax.value_and_grad(of_losses, (0, 1))(hidden, table),
        )

    expected = jax.jit(compute)(tokens, table)
    names = ("data", "words")[-len(shape) :]
    mesh = jax.make_mesh(shape, names, axis_types=(kind,) * len(shape))
    program = jax.jit(compute).lower(*placed(mesh, tokens, table)).compile()
    results = program(*placed(mesh, tokens, table))
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6), results, expected
    )
    collectives, products = compiled_programs.read(program.as_text())
    assert len(shape) == 1 or not [each for each in collectives if each.in_loop]
    assert max(products.values()) > 1  # there are loops
