"""Dynamic evaluation, by a loop in float64 whose gradients are finite differences."""

import dataclasses

import jax
import numpy as np
import pytest

from tests import examples, references
from tests.marks import slow
from zoo.cores import LSTM
from zoo.data.encoded_text import EncodedText
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.heads import Softmax
from zoo.lab.evaluation.changes import dynamic_evaluation
from zoo.lab.evaluation.changes.dynamic_evaluation import RMS, DynamicEvaluation
from zoo.models import LanguageModel

MODEL = LanguageModel(Lookup(2), LSTM(3), Softmax())
WORDS = np.array([1, 4, 2, 0, 3, 1, 1, 0, 4, 4, 2, 3, 0], np.int32)
STARTS = np.array([0, 4, 8])
TEXT = EncodedText(
    words=WORDS,
    counted=WORDS != 0,
    starts=STARTS,
    known=np.ones(len(WORDS), bool),
    trained=np.arange(len(WORDS)) != 5,
)


@pytest.fixture
def problem(random):
    lexicon = examples.plain_lexicon(5)
    params = examples.random_params(MODEL, random, lexicon, scale=0.5)
    return params, MODEL.evaluation_tables(lexicon)


def flat(params):
    return {jax.tree_util.keystr(path): x for path, x in jax.tree.leaves_with_path(params)}


def scored(arrays, params, words, targets, reset, carry):
    """(log p of the targets [T], carry) of one batch row, in float64."""
    tree = jax.tree.structure(params)
    params = jax.tree.unflatten(tree, [arrays[name] for name in flat(params)])
    inputs = params["embedding"]["table"][words][None]
    hidden, carry = references.lstm(inputs, params["core"], carry, reset[None])
    head = params["head"]
    log_probs = references.softmax_log_probs(hidden[0], head["weights"], head["bias"])
    return log_probs[np.arange(len(targets)), targets], carry


def segments(state, length=5):
    """(positions, word before each, reset) of the segments of the text, in one batch row."""
    starts = set(STARTS.tolist()) if state == "sentences" else set()
    for begin in range(0, len(WORDS), length):
        places = np.arange(begin, min(begin + length, len(WORDS)))
        before = [0 if place in starts or place == 0 else WORDS[place - 1] for place in places]
        yield places, np.array(before), np.array([place in starts for place in places])


def mean_squares(params, carry):
    """M over the same text: its three segments in the one batch row."""
    arrays = {name: np.array(x, np.float64) for name, x in flat(params).items()}
    sums = {name: np.zeros_like(x) for name, x in arrays.items()}
    for gradient, _ in gradients(arrays, params, "carried", carry):
        sums = {name: sums[name] + change**2 for name, change in gradient.items()}
    return {name: total / 3 for name, total in sums.items()}


def gradients(arrays, params, state, carry, update=None):
    """Yields (g, log p of the segment); `update` updates the arrays after it."""
    for places, before, reset in segments(state):
        targets, weights = WORDS[places], TEXT.trained[places]

        def loss(arrays, before=before, targets=targets, reset=reset, carry=carry, on=weights):
            log_prob, _ = scored(arrays, params, before, targets, reset, carry)
            return -log_prob[on].mean()

        gradient = references.finite_differences(loss, arrays)
        log_prob, carry = scored(arrays, params, before, targets, reset, carry)
        yield gradient, log_prob
        if update:
            arrays.update(update(arrays, gradient))


PLAIN = DynamicEvaluation("sgd", rate=0.8, decay=0.1)
SCALED = DynamicEvaluation("rms", rate=0.05, decay=0.3, epsilon=0.01)
WITHOUT_DECAY = DynamicEvaluation("rms", rate=0.05, decay=0.0, epsilon=0.01)


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        *((PLAIN, "sentences"), (SCALED, "carried")),
        *slow((PLAIN, "carried"), (SCALED, "sentences")),
        *slow((WITHOUT_DECAY, "sentences"), (WITHOUT_DECAY, "carried")),
    ],
)
def test_scores_are_those_of_the_published_rules(problem, state, settings):
    params, tables = problem
    empty = jax.tree.map(np.asarray, MODEL.core.initial_carry(1))
    squares = mean_squares(params, empty)
    first = {name: np.array(x, np.float64) for name, x in flat(params).items()}
    roots = {name: np.sqrt(x) for name, x in squares.items()}
    mean = np.mean([root.mean() for root in roots.values()])  # of the arrays' means

    def update(arrays, gradient):
        updated = {}
        for name, x in arrays.items():
            step, back = gradient[name], first[name] - x
            if settings.rule == "rms":
                step = step / (roots[name] + settings.epsilon)
                ceiling = 1 / settings.decay if settings.decay else 0
                back = back * np.minimum(roots[name] / mean, ceiling)
            updated[name] = x - settings.rate * step + settings.decay * back
        return updated

    arrays = {name: x.copy() for name, x in first.items()}
    expected = np.concatenate(
        [log_prob for _, log_prob in gradients(arrays, params, state, empty, update)]
    )
    scale = jax.tree.unflatten(jax.tree.structure(params), [squares[name] for name in flat(params)])
    scale = jax.tree.map(np.float32, scale)
    arguments = MODEL, params, tables, TEXT, settings, state, 0
    scores = dynamic_evaluation.score(*arguments, scale if settings.rule == "rms" else None)
    np.testing.assert_allclose(scores.log_prob, expected, rtol=2e-4, atol=2e-5)
    assert scores.counted.tolist() == (WORDS != 0).tolist()
    plain = dynamic_evaluation.score(*arguments[:4], DynamicEvaluation("sgd", 1e-12, 0.0), state, 0)
    # The first segment is scored by the trained parameters, the second is not.
    np.testing.assert_allclose(scores.log_prob[:5], plain.log_prob[:5], rtol=1e-6)
    assert abs(scores.log_prob[5:] - plain.log_prob[5:]).max() > 0.01


def test_the_scale_is_the_mean_of_the_squares_of_gradients(problem, monkeypatch):
    params, tables = problem
    monkeypatch.setattr(dynamic_evaluation, "ROWS", 1)
    settings = RMS
    squares_tree = dynamic_evaluation.mean_squares(MODEL, params, tables, TEXT, settings, 0)
    expected = mean_squares(params, jax.tree.map(np.asarray, MODEL.core.initial_carry(1)))
    for name, squares in flat(squares_tree).items():
        np.testing.assert_allclose(squares, expected[name], rtol=1e-4, atol=1e-8, err_msg=name)
    # Of many segments some are read, evenly spread.
    monkeypatch.setattr(dynamic_evaluation, "SEGMENTS", 1)
    (first,) = [flat(dynamic_evaluation.mean_squares(MODEL, params, tables, TEXT, settings, 0))]
    assert np.abs(first["['head']['bias']"] - expected["['head']['bias']"]).max() > 1e-4


def test_the_given_parameters_are_left_as_they_are(problem):
    params, tables = problem
    before = jax.tree.map(np.array, params)
    settings = DynamicEvaluation("sgd", 1.0, 0.0)
    for _ in range(2):
        dynamic_evaluation.score(MODEL, params, tables, TEXT, settings, "carried", 0)
    jax.tree.map(np.testing.assert_array_equal, params, before)


def test_a_model_that_diverges_is_no_figure(problem):
    params, tables = problem
    settings = DynamicEvaluation("sgd", 3e38, 0.0, length=1)
    with pytest.raises(UserError, match=r"diverges under dynamic evaluation \(sgd, rate 3e\+38"):
        dynamic_evaluation.score(MODEL, params, tables, TEXT, settings, "carried", 0)


def test_settings_that_cannot_be_are_refused():
    for settings, message in (
        ({"rule": "adam"}, "dynamic.rule is 'adam': give one of rms, sgd"),
        ({"rate": 0.0}, r"rate is 0\.0"),
        ({"decay": 1.0}, r"decay is 1\.0"),
        ({"length": 0}, "length is 0"),
    ):
        with pytest.raises(UserError, match=message):
            dataclasses.replace(RMS, **settings)


def test_passports_tell_another_epsilon():
    assert "epsilon" not in RMS.description
    ending = "(rms, rate 5e-05, decay 0.002, epsilon 0.01, segments of 5)"
    assert dataclasses.replace(RMS, epsilon=0.01).description.endswith(ending)


def test_without_gradients_there_is_no_scale(problem):
    params, tables = problem
    nothing = EncodedText(WORDS, np.ones(13, bool), WORDS != 0, STARTS, np.zeros(13, bool))
    with pytest.raises(UserError, match=r"sum to 0\.0 over the training text.* give --dynamic sgd"):
        dynamic_evaluation.mean_squares(MODEL, params, tables, nothing, RMS, 0)
