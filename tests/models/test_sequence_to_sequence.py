"""Encoder-decoders against a loop over words in numpy, whatever is padded beside them."""

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
from zoo.models import SequenceToSequence

SOURCE, TARGET = 11, 13  # words
SENTENCES = ([3, 9, 1], [7], [5, 2, 10, 8, 8])
MODEL = SequenceToSequence(
    embedding=Lookup(size=4),
    core=LSTM(size=7, layers=2),
    head=Softmax(),
    source_embedding=Lookup(size=3),
    order="forward",
)


@pytest.fixture
def problem(random):
    """(parameters, tables, words, targets) of `MODEL`."""
    lexicons = examples.plain_lexicon(TARGET), examples.plain_lexicon(SOURCE)
    params = examples.random_params(MODEL, random, *lexicons, scale=0.7)
    words, targets = random.integers(0, TARGET, size=(2, 3, 4), dtype=np.int32)
    return params, MODEL.tables(*lexicons), words, targets


def expected_log_probs(params, source, words):
    """log p of every target word after each word, [T, V], of one pair."""
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    empty = [(np.zeros((1, 7)), np.zeros((1, 7)))] * 2
    inputs = params["source_embedding"]["table"][source][None]
    _, carry = references.lstm(inputs, params["encoder"], empty)
    inputs = params["embedding"]["table"][words][None]
    hidden, _ = references.lstm(inputs, params["core"], carry)
    head = params["head"]
    return references.softmax_log_probs(hidden[0], head["weights"], head["bias"])


def test_log_probs_are_those_of_a_loop_over_words(problem):
    params, tables, words, targets = problem
    log_prob, _ = jax.jit(MODEL.log_prob_and_log_z)(
        params, tables, *source_batch(SENTENCES, longest=6), words, targets
    )
    for row, source in enumerate(SENTENCES):
        log_probs = expected_log_probs(params, source, words[row])
        expected = log_probs[np.arange(4), targets[row]]
        np.testing.assert_allclose(log_prob[row], expected, atol=1e-5)


@pytest.mark.slow
def test_padding_has_no_part_in_the_loss(problem):
    params, tables, words, targets = problem
    weights = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]], np.float32)
    arrays = words, targets, weights

    def loss(params, longest, words, targets, weights):
        return MODEL.weighted_loss(
            params, tables, *source_batch(SENTENCES, longest), words, targets, weights
        )[0]

    value_and_gradient = jax.jit(jax.value_and_grad(loss), static_argnums=1)
    value, gradient = value_and_gradient(params, 5, *arrays)
    wider = [np.pad(array, ((0, 0), (0, 3)), constant_values=0) for array in arrays]
    wider[0][:2, 4:] = 3
    wider_value, wider_gradient = value_and_gradient(params, 9, *wider)
    assert float(value) == pytest.approx(float(wider_value), abs=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), gradient, wider_gradient)
    log_prob, _ = MODEL.log_prob_and_log_z(params, tables, *source_batch(SENTENCES), words, targets)
    assert float(value) == pytest.approx(-float((log_prob * weights).sum()), abs=1e-4)


@pytest.mark.parametrize("attention", [*slow(None), Luong(), *slow(Bahdanau(size=3, units=5))])
@pytest.mark.parametrize("beams", [*slow(1), 3])
def test_step_functions_say_what_log_prob_says(problem, random, attention, beams):
    model = dataclasses.replace(MODEL, attention=attention)
    lexicons = examples.plain_lexicon(TARGET), examples.plain_lexicon(SOURCE)
    params = examples.random_params(model, random, *lexicons, scale=0.7)
    _, tables, words, targets = problem
    source = source_batch(SENTENCES)
    expected, _ = jax.jit(model.log_prob_and_log_z)(params, tables, *source, words, targets)
    step, carry = steps.from_sequence_to_sequence(model, params, tables, *source)
    carry = jax.tree.map(lambda leaf: np.repeat(leaf, beams, axis=0), carry)
    call_step = jax.jit(lambda step, words, carry: step(words, carry))
    for position in range(words.shape[1]):
        log_probs, carry = call_step(step, jnp.repeat(words[:, position], beams), carry)
        assert log_probs.shape == (3 * beams, TARGET)
        beam_targets = np.repeat(targets[:, position], beams)
        log_prob = np.asarray(log_probs)[np.arange(3 * beams), beam_targets]
        np.testing.assert_allclose(log_prob, np.repeat(expected[:, position], beams), atol=1e-5)


@pytest.mark.parametrize("order", [*slow("forward"), "source_reversed"])
def test_a_share_of_the_source_is_its_first_words(problem, random, order):
    full_model = dataclasses.replace(MODEL, attention=Luong(), order=order)
    model = dataclasses.replace(full_model, source_share=0.5)
    lexicons = examples.plain_lexicon(TARGET), examples.plain_lexicon(SOURCE)
    params = examples.random_params(full_model, random, *lexicons, scale=0.7)
    _, tables, words, targets = problem
    in_order = [
        sentence[::-1] if order == "source_reversed" else sentence for sentence in SENTENCES
    ]
    first_halves = [sentence[: -(-len(sentence) // 2)] for sentence in SENTENCES]
    first_halves = [
        sentence[::-1] if order == "source_reversed" else sentence for sentence in first_halves
    ]
    source, expected = source_batch(in_order, 6), source_batch(first_halves, 6)

    def evaluate(model, source):
        @jax.jit
        def log_prob_and_weights(params):
            log_prob, _ = model.log_prob_and_log_z(params, tables, *source, words, targets)
            return log_prob, model.attention_weights(params, tables, *source, words)

        return map(np.asarray, log_prob_and_weights(params))

    log_prob, weights = evaluate(model, source)
    first_log_prob, first_weights = evaluate(full_model, expected)
    np.testing.assert_allclose(log_prob, first_log_prob, atol=1e-5)
    for row, (sentence, read) in enumerate(zip(in_order, first_halves, strict=True)):
        start = 6 - len(sentence) if order == "forward" else 6 - len(read)
        columns = slice(start, start + len(read))
        np.testing.assert_allclose(weights[row, :, columns], first_weights[row, :, 6 - len(read) :])
        np.testing.assert_allclose(weights[row].sum(axis=-1), 1, atol=1e-6)


@pytest.mark.parametrize("share", [0, -0.5, 1.5, float("nan")])
def test_a_share_of_no_words_is_refused(share):
    with pytest.raises(UserError, match=r"model\.source_share=.* above 0, and at most 1"):
        dataclasses.replace(MODEL, source_share=share)


def test_attentional_log_probs_and_weights_are_those_of_a_loop(problem, random):
    model = dataclasses.replace(MODEL, attention=Luong(size=5), order="source_reversed")
    lexicons = examples.plain_lexicon(TARGET), examples.plain_lexicon(SOURCE)
    params = examples.random_params(model, random, *lexicons, scale=0.7)
    _, tables, words, targets = problem
    arrays = (*source_batch(SENTENCES, longest=6), words)
    log_prob, _ = jax.jit(model.log_prob_and_log_z)(params, tables, *arrays, targets)
    weights = np.asarray(jax.jit(model.attention_weights)(params, tables, *arrays))
    doubles = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    empty, attention = [(np.zeros((1, 7)), np.zeros((1, 7)))] * 2, doubles["attention"]
    for row, source in enumerate(SENTENCES):
        inputs = doubles["source_embedding"]["table"][source][None]
        memory, carry = references.lstm(inputs, doubles["encoder"], empty)
        hidden, _ = references.lstm(
            doubles["embedding"]["table"][words[row]][None], doubles["core"], carry
        )
        states = []
        for time, h in enumerate(hidden[0]):
            scores = [h @ (m @ attention["keys"]) for m in memory[0]]
            expected = np.exp(np.array(scores) - references.log_sum_exp(scores))
            np.testing.assert_allclose(weights[row, time, -len(source) :], expected, atol=1e-5)
            concatenated = np.concatenate([expected @ memory[0], h])
            states.append(np.tanh(concatenated @ attention["state"] + attention["state_bias"]))
        head = doubles["head"]
        log_probs = references.softmax_log_probs(states, head["weights"], head["bias"])
        np.testing.assert_allclose(log_prob[row], log_probs[np.arange(4), targets[row]], atol=1e-5)
        np.testing.assert_array_equal(weights[row, :, : -len(source)], 0)


def test_a_model_without_attention_has_no_weights_of_it(problem):
    params, tables, words, _ = problem
    with pytest.raises(UserError, match="has no attention, and so no attention weights"):
        MODEL.attention_weights(params, tables, *source_batch(SENTENCES), words)


ENCODERS = {
    "bidirectional": {"encoder": Bidirectional(LSTM(size=7, layers=2))},
    "bidirectional, concatenated": {
        "core": GRU(size=8),
        "encoder": Bidirectional(GRU(size=4), merge="concatenate"),
    },
    "skip connections": {
        "core": LSTM(size=7, layers=2, skip=True),
        "encoder": LSTM(size=7, layers=2, skip=True),
    },
    "elman": {"core": Elman(size=6, layers=2, activation="sigmoid")},
}


@pytest.mark.parametrize(
    "name", ["bidirectional", *slow(*(e for e in ENCODERS if e != "bidirectional"))]
)
def test_padding_has_no_part_whatever_encodes(problem, random, name):
    """With attention, and a tied head that sees the attentional states' size."""
    model = dataclasses.replace(
        MODEL, **ENCODERS[name], attention=Luong(size=4), head=Softmax(tied=True)
    )
    lexicons = examples.plain_lexicon(TARGET), examples.plain_lexicon(SOURCE)
    params = examples.random_params(model, random, *lexicons, scale=0.7)
    _, tables, words, targets = problem
    score = jax.jit(model.log_prob_and_log_z)
    batched, _ = score(params, tables, *source_batch(SENTENCES, 8), words, targets)
    for row, source in enumerate(SENTENCES):
        arrays = (np.tile(array[row], (3, 1)) for array in (words, targets))
        single, _ = score(params, tables, *source_batch([source], 5, rows=3), *arrays)
        np.testing.assert_allclose(batched[row], single[0], atol=1e-5)


def test_parameters_start_uniform_within_the_scale():
    model = dataclasses.replace(MODEL, initial_scale=0.08)
    lexicons = examples.plain_lexicon(TARGET), examples.plain_lexicon(SOURCE)
    params = model.init(jax.random.key(0), *lexicons)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(params)]
    assert max(np.abs(leaf).max() for leaf in leaves) <= 0.08
    assert min(np.abs(leaf).max() for leaf in leaves) > 0.04
    assert params.keys() == {"embedding", "core", "head", "source_embedding", "encoder"}
    assert params["source_embedding"]["table"].shape == (SOURCE, 3)
    assert params["embedding"]["table"].shape == (TARGET, 4)


def test_an_encoder_that_cannot_start_the_decoder_is_refused():
    lexicons = examples.plain_lexicon(TARGET), examples.plain_lexicon(SOURCE)
    for encoder in (LSTM(size=7), LSTM(size=6, layers=2), NGram()):
        model = dataclasses.replace(MODEL, encoder=encoder)
        with pytest.raises(UserError, match=r"cannot start model\.core, a .* with \[\("):
            model.init(jax.random.key(0), *lexicons)
    with pytest.raises(
        UserError, match=r"model\.core is Bidirectional, whose hidden states depend"
    ):
        SequenceToSequence(core=Bidirectional())
    with pytest.raises(UserError, match=r"model\.order"):
        SequenceToSequence(order="backwards")
