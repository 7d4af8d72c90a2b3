"""bfloat16 in a training step: in products alone, and in no figure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.heads.test_every_head import HEADS
from tests.lab.training import small
from tests.marks import slow
from zoo import heads
from zoo.base.arrays import products
from zoo.base.arrays.row_lookup import Watched
from zoo.cores import GRU, LSTM, Bidirectional, Elman, NGram
from zoo.embeddings import Lookup
from zoo.lab.training.step import round_matrices
from zoo.models import LanguageModel

CORES = (LSTM(6, projection=4), GRU(6), Elman(6), NGram(6), Bidirectional(GRU(6)))


def test_matrices_are_rounded_and_vectors_are_not():
    table = jnp.full((3, 2), 1 + 2.0**-9)
    params = {"embedding": {"table": table}, "head": {"weights": table, "bias": table[0]}}
    params["core"] = ({"bias": table[0]},)
    rounded = round_matrices(params, "bfloat16")
    assert rounded["core"][0]["bias"].dtype == jnp.float32
    assert rounded["embedding"]["table"].dtype == rounded["head"]["weights"].dtype == jnp.bfloat16
    np.testing.assert_array_equal(rounded["head"]["weights"], np.ones((3, 2)))
    assert rounded["head"]["bias"].dtype == jnp.float32
    np.testing.assert_array_equal(rounded["head"]["bias"], table[0])
    assert round_matrices(params, "float32") is params
    watched = Watched(table)
    rows = round_matrices({"head": {"weights": watched}}, "bfloat16")["head"]["weights"].take(
        [2, 0]
    )
    assert rows.dtype == jnp.bfloat16 and rows.shape == (2, 2)
    assert [[*ids] for ids in watched.ids] == [[2, 0]]


AT_ONCE = ("softmax", "log-linear", "adaptive", "mixture", "NCE")


@pytest.mark.parametrize(
    "name", [*AT_ONCE, *slow(*(name for name in HEADS if name not in AT_ONCE))]
)
def test_every_head_adds_up_in_float32(name):
    """By the types of what it gives: states are bfloat16, losses and log Z float32."""
    head, lexicon = HEADS[name].head, examples.lexicon()
    shapes = jax.eval_shape(lambda: head.init(jax.random.key(0), 5, lexicon))
    if head.tied:
        shapes["weights"] = jax.ShapeDtypeStruct((13, 5), jnp.float32)
    hidden = jax.ShapeDtypeStruct((2, 3, 5), jnp.bfloat16)
    tables, targets = head.tables(lexicon), np.array([[0, 4, 12], [9, 10, 6]])

    def loss(params, hidden):
        params = round_matrices({"head": params}, "bfloat16")["head"]
        arguments = params, tables, hidden, targets
        value = head.weighted_loss(*arguments, jnp.ones((2, 3)), key=jax.random.key(1))
        return value, (
            head.log_prob_and_log_z(*arguments),
            head.loss(*arguments, key=jax.random.key(1)),
        )

    values, gradients = jax.eval_shape(
        jax.value_and_grad(loss, argnums=(0, 1), has_aux=True), shapes, hidden
    )
    assert {leaf.dtype for leaf in jax.tree.leaves(values)} == {jnp.dtype("float32")}
    assert {leaf.dtype for leaf in jax.tree.leaves(gradients[0])} == {jnp.dtype("float32")}
    assert gradients[1].dtype == jnp.bfloat16


@pytest.mark.parametrize("core", CORES, ids=lambda core: type(core).__name__)
def test_every_core_has_float32_states_and_keeps_its_carry(core):
    params = jax.eval_shape(lambda: core.init(jax.random.key(0), 4))
    params = jax.eval_shape(lambda tree: round_matrices({"core": tree}, "bfloat16")["core"], params)
    carry = jax.eval_shape(lambda: core.initial_carry(2))
    for dtype in (jnp.bfloat16, jnp.float32):
        inputs = jax.ShapeDtypeStruct((2, 3, 4), dtype)
        hidden, last = jax.eval_shape(core.apply, params, inputs, carry)
        assert hidden.dtype == jnp.float32
        assert jax.tree.map(str, last) == jax.tree.map(str, carry)


def test_gradients_of_matrices_are_bfloat16_numbers_in_float32(random):
    """Summed in float64 and rounded once; gradients of vectors keep float32."""
    inputs, cotangent = (random.normal(size=(11, columns)).astype(np.float32) for columns in (3, 5))
    params = {"head": {"weights": jnp.ones((3, 5)), "bias": jnp.zeros(5)}}

    def loss(params):
        head = round_matrices(params, "bfloat16")["head"]
        return (products.affine(jnp.asarray(inputs), **head) * cotangent).sum()

    gradients = jax.grad(loss)(params)["head"]
    narrow = lambda x: np.asarray(jnp.asarray(x, jnp.bfloat16), np.float64)  # noqa: E731
    expected = narrow(inputs).T @ narrow(cotangent)
    assert {leaf.dtype for leaf in gradients.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(gradients["weights"], narrow(gradients["weights"]))
    error = np.abs(gradients["weights"] - expected) / np.abs(expected)
    assert 2**-12 < error.max() <= 2**-8
    np.testing.assert_allclose(gradients["bias"], cotangent.sum(0), rtol=1e-5)


def small_model(head):
    return LanguageModel(Lookup(6, initial_scale=0.5), LSTM(7), head)


@pytest.mark.parametrize(
    ("head", "training"),
    [
        (heads.Softmax(initial_scale=0.5), {}),
        (heads.NCE(samples=5), {"row_sparse": True}),
    ],
)
@pytest.mark.slow
def test_a_run_in_bfloat16_keeps_float32_and_ends_nearby(tmp_path, head, training):
    ends = []
    for compute in ("float32", "bfloat16"):
        recipe = small.experiment(small_model(head), epochs=1, compute=compute, **training)
        trainer = small.trainer(recipe, tmp_path / compute)
        trainer.train()
        ends.append(small.last_state(trainer)[1])
    exact, rounded = ends
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(rounded.params)} == {"float32"}
    assert jax.tree.map(lambda x: x.dtype, rounded) == jax.tree.map(lambda x: x.dtype, exact)
    differences = jax.tree.map(lambda a, b: np.abs(a - b).max(), exact.params, rounded.params)
    # Rounded to 8 bits, and not by another path: a few thousandths of weights of a half.
    assert 1e-5 < max(jax.tree.leaves(differences)) < 0.02
    # Validation is of float32 parameters in float32 products.
    validation = trainer.task.validate(jax.tree.map(jnp.asarray, rounded.params))
    best = small.last_state(trainer)[2]["best"]
    assert validation.value == pytest.approx(best, abs=1e-6)
