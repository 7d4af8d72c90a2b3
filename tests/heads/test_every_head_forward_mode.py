"""Whether a head has a forward mode depends on the head, never on how much it is given.

Where it has none it is a TypeError of jax's, which says so.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.heads import test_checks_targets
from tests.layers import test_every_core as cores
from zoo import losses
from zoo.attention import Bahdanau
from zoo.base.arrays import row_blocks
from zoo.losses import hierarchical, log_linear, softmax, weighted_softmax

NONE = "forward-mode"


def small_blocks(monkeypatch):
    """Sizes that make blocks of what the tests hold."""
    for module, sizes in (
        (softmax, {"LOGITS_AT_A_TIME": 32, "LEAST_ROWS_AT_A_TIME": 2, "MOST_ROWS_AT_A_TIME": 4}),
        (softmax, {"NARROW": 1}),
        (weighted_softmax, {"LEAST_SENT_AT_A_TIME": 4}),
        (hierarchical, {"GATHERED_AT_A_TIME": 64}),
        (log_linear, {"MOST_TOKENS": 4, "LEAST_TOKENS": 2}),
        (row_blocks, {"BLOCK": 4}),
    ):
        for name, value in sizes.items():
            monkeypatch.setattr(module, name, value)


def functions(name):
    """{method: a function of (params, hidden)}, and these."""
    head, params, tables, _ = test_checks_targets.problem(name)
    hidden, targets = test_checks_targets.batch(3, 5)
    keywords = test_checks_targets.options(head, targets)
    loss_keywords = keywords | {"key": jax.random.key(0)}
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), params)
    return {
        "loss": lambda p, h: head.loss(p, tables, h, targets, **loss_keywords),
        "weighted_loss": lambda p, h: head.weighted_loss(
            p, tables, h, targets, 1.0, **loss_keywords
        ),
        "log_prob": lambda p, h: head.log_prob(p, tables, h, targets, **keywords),
        "log_probs": lambda p, h: head.log_probs(p, tables, h, **keywords),
    }, (params, hidden)


def has_forward_mode(function, *arguments, at=0) -> bool:
    """Whether function(*arguments) has one in the argument `at`; where not, jax says so."""

    def call(x):
        return function(*arguments[:at], x, *arguments[at + 1 :])

    try:
        jax.jit(lambda x: jax.jvp(call, (x,), (x,))).lower(arguments[at])
    except TypeError as error:
        assert NONE in str(error)
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", test_checks_targets.HEADS)
def test_it_does_not_depend_on_the_size(name, monkeypatch):
    def forward_modes():
        """{method: whether it has one in the parameters, and in the hidden states}."""
        methods, inputs = functions(name)
        return {
            method: [has_forward_mode(function, *inputs, at=at) for at in (0, 1)]
            for method, function in methods.items()
        }

    unblocked = forward_modes()
    assert unblocked["log_prob"] == [name == "Huffman"] * 2
    small_blocks(monkeypatch)
    assert forward_modes() == unblocked


@pytest.mark.parametrize("block", [pytest.param(13, marks=pytest.mark.slow), 4, None])
def test_a_softmax_has_none(block):
    arguments = jnp.ones((3, 5)), jnp.ones((13, 5)), jnp.ones(13)
    targets = jnp.zeros(3, jnp.int32)
    loss = functools.partial(losses.softmax_loss, targets=targets, block=block)
    assert not any(has_forward_mode(loss, *arguments, at=at) for at in range(3))
    with pytest.raises(TypeError, match=NONE):
        jax.jvp(lambda h: loss(h, *arguments[1:]), arguments[:1], arguments[:1])
    with pytest.raises(TypeError, match=NONE):
        jax.hessian(lambda h: loss(h, *arguments[1:])[0].sum())(arguments[0])
    slopes = jax.grad(lambda h: loss(h, *arguments[1:])[0].sum())
    twice = jax.jit(jax.jacrev(slopes))(arguments[0])
    np.testing.assert_allclose(twice, np.zeros((3, 5, 3, 5)), atol=1e-6)  # all rows are alike


@pytest.mark.slow
@pytest.mark.parametrize("name", cores.CORES)
def test_cores_have_none(name, random):
    core = cores.CORES[name]
    params, inputs, carry = cores.core_problem(core, random)
    is_differentiable = has_forward_mode(lambda x: core.apply(params, x, carry)[0], inputs)
    assert is_differentiable == ("grams" in name)  # of few words before, nothing is recurrent


@pytest.mark.parametrize("time", [1, 2])
def test_additive_attention_has_none(time, random):
    component = Bahdanau()
    params = component.init(jax.random.key(0), 5, 4)
    memory, mask = jnp.ones((3, 2, 4)), jnp.ones((3, 2), bool)
    function = functools.partial(component.apply, params, memory=memory, mask=mask)
    assert not has_forward_mode(function, jnp.ones((3, time, 5)))
