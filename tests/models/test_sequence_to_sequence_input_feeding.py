"""Input feeding, bridges and boundaries of sources against a loop over words in numpy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from tests.marks import slow
from zoo.attention import Bahdanau, Luong
from zoo.cores import GRU, LSTM, Bidirectional, Elman, NGram
from zoo.data.batches import source_batch
from zoo.decoding import steps
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.heads import Softmax
from zoo.layers.attention import PreparedMemory
from zoo.layers.input_feeding import InputFed
from zoo.models import SequenceToSequence

SOURCE, TARGET = 11, 13  # words
SENTENCES = ([3, 9, 1], [7], [5, 2, 10, 8, 8])
BOUNDARY = 4  # of the sources' words
LEXICONS = (
    examples.plain_lexicon(TARGET),
    dataclasses.replace(examples.plain_lexicon(SOURCE), boundary=f"word {BOUNDARY}"),
)
MODEL = SequenceToSequence(
    embedding=Lookup(size=4),
    core=GRU(size=7, layers=2),
    source_embedding=Lookup(size=3),
    encoder=Bidirectional(GRU(size=5, layers=1), layers=2),
    attention=Luong(size=6),
    input_feeding=True,
    bridge="projection",
    source_boundary=True,
    order="forward",
)
WORDS, TARGETS = np.random.default_rng(7).integers(0, TARGET, size=(2, 3, 4), dtype=np.int32)


def drawn(model, random):
    """(parameters, tables) of a model."""
    return examples.random_params(model, random, *LEXICONS, scale=0.7), model.tables(*LEXICONS)


def expected_log_probs(params, source, words):
    """log p of every target word after each word, [T, V], of one pair, by `MODEL`."""
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    memory, zeros = params["source_embedding"]["table"][[*source, BOUNDARY]][None], np.zeros((1, 5))
    for layer in params["encoder"]:
        forward, last = references.gru_layer(memory, layer["forward"][0], zeros)
        backward, first = references.gru_layer(memory[:, ::-1], layer["backward"][0], zeros)
        memory = np.concatenate([forward, backward[:, ::-1]], axis=-1)
    start = np.tanh((last + first) @ params["bridge"]["weights"] + params["bridge"]["bias"])
    states, fed, outputs = [start, start], np.zeros(6), []
    attention, head = params["attention"], params["head"]
    for word in words:
        x = np.concatenate([params["embedding"]["table"][word], fed])[None, None]
        for number, layer in enumerate(params["core"]):
            x, states[number] = references.gru_layer(x, layer, states[number])
        scores = [x[0, 0] @ (m @ attention["keys"]) for m in memory[0]]
        context = np.exp(np.array(scores) - references.log_sum_exp(scores)) @ memory[0]
        joined = np.concatenate([context, x[0, 0]])
        fed = np.tanh(joined @ attention["state"] + attention["state_bias"])
        outputs.append(fed)
    return references.softmax_log_probs(np.array(outputs), head["weights"], head["bias"])


def test_log_probs_are_those_of_a_loop_over_words(random):
    params, tables = drawn(MODEL, random)
    score = jax.jit(MODEL.log_prob_and_log_z)
    log_prob, _ = score(params, tables, *source_batch(SENTENCES, longest=6), WORDS, TARGETS)
    for row, source in enumerate(SENTENCES):
        log_probs = expected_log_probs(params, source, WORDS[row])
        np.testing.assert_allclose(log_prob[row], log_probs[np.arange(4), TARGETS[row]], atol=1e-5)


BRIDGES = {
    "projection": {"core": LSTM(size=2, layers=2), "encoder": LSTM(size=3)},
    "last": {"core": LSTM(size=3, layers=2), "encoder": Bidirectional(GRU(size=3), "forward")},
    "zeros": {"core": GRU(size=3), "encoder": NGram(size=2)},
    "carry": {"core": GRU(size=2), "encoder": Elman(size=2)},
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("bridge", ["projection", *slow("last", "zeros", "carry")])
def test_gradients_are_those_of_finite_differences(random, bridge):
    parts = {"attention": Bahdanau(size=3, units=2), "head": Softmax(tied=True), **BRIDGES[bridge]}
    parts |= {"embedding": Lookup(size=3), "source_embedding": Lookup(size=2)}
    model = dataclasses.replace(MODEL, bridge=bridge, **parts)
    params, tables = drawn(model, random)
    batch = source_batch(SENTENCES[:2])
    weights = np.array([[1, 0.5, 0], [1, 1, 2]])

    @jax.jit
    def loss(params):
        arrays = *batch, WORDS[:2, :3], TARGETS[:2, :3], weights
        return model.weighted_loss(params, tables, *arrays)[0]

    gradient = jax.jit(jax.grad(loss))(params)
    expected = examples.finite_differences_of_tree(loss, params)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8), gradient, expected
    )


@pytest.mark.parametrize("beams", [*slow(1), 3])
def test_step_functions_say_what_log_prob_says(random, beams):
    params, tables = drawn(MODEL, random)
    source = source_batch(SENTENCES)
    expected, _ = MODEL.log_prob_and_log_z(params, tables, *source, WORDS, TARGETS)
    step, carry = steps.from_sequence_to_sequence(MODEL, params, tables, *source)
    carry = jax.tree.map(lambda leaf: jnp.repeat(leaf, beams, axis=0), carry)
    call_step = jax.jit(lambda step, words, carry: step(words, carry))
    for position in range(4):
        log_probs, carry = call_step(step, jnp.repeat(WORDS[:, position], beams), carry)
        log_prob = log_probs[np.arange(3 * beams), np.repeat(TARGETS[:, position], beams)]
        np.testing.assert_allclose(log_prob, np.repeat(expected[:, position], beams), atol=1e-5)


def test_weights_of_attention_are_those_of_the_words(random):
    """Of the boundary, which is at the end, there is no column."""
    params, tables = drawn(MODEL, random)
    weights = jax.jit(MODEL.attention_weights)(params, tables, *source_batch(SENTENCES, 6), WORDS)
    assert weights.shape == (3, 4, 6)
    for row, source in enumerate(SENTENCES):
        np.testing.assert_array_equal(weights[row, :, : -len(source)], 0)
        assert (weights[row, :, -len(source) :] > 0).all()
    assert (weights.sum(-1) < 1).all()


@pytest.mark.parametrize("variational", [False, True])
def test_masks_differ_between_positions_unless_they_are_variational(variational):
    core = InputFed(
        Elman(size=64, dropout=0.5, variational=variational),
        Luong(),
        {name: jnp.zeros(shape) for name, shape in {"keys": (1, 64), "state": (65, 64)}.items()}
        | {"state_bias": jnp.zeros(64)},
        PreparedMemory(jnp.zeros((3, 1, 1)), jnp.zeros((3, 1, 64)), jnp.ones((3, 1), bool)),
    )
    params = (
        {"input": jnp.ones((66, 64)), "recurrent": jnp.zeros((64, 64)), "bias": jnp.zeros(64)},
    )
    inputs, carry = jnp.ones((3, 5, 2)), core.initial_carry(3)
    outputs, _ = jax.jit(core.apply)(params, inputs, carry, key=jax.random.key(3))
    kept = np.asarray(outputs[..., :64] != 0)
    assert 0.3 < kept.mean() < 0.7
    assert (kept[:, 1:] == kept[:, :-1]).all() == variational
    assert (kept[0] != kept[1]).any()


def test_what_does_not_fit_is_refused():
    with pytest.raises(UserError, match=r"model\.input_feeding feeds .* model\.attention=Luong"):
        dataclasses.replace(MODEL, attention=None)
    with pytest.raises(UserError, match=r"model\.bridge=last reads .* model\.encoder is NGram"):
        dataclasses.replace(MODEL, bridge="last", encoder=NGram())
    with pytest.raises(UserError, match=r"model\.bridge"):
        dataclasses.replace(MODEL, bridge="linear")
    for bridge, core in (("last", GRU(size=7)), ("projection", GRU(size=7, layers=2, last_size=3))):
        model = dataclasses.replace(MODEL, bridge=bridge, core=core)
        with pytest.raises(UserError, match=r"cannot start model\.core, a GRU with \[\(7,\)"):
            model.init(jax.random.key(0), *LEXICONS)
    with pytest.raises(UserError, match=r"model\.source_boundary reads a boundary that"):
        MODEL.tables(*map(examples.plain_lexicon, (TARGET, SOURCE)))
