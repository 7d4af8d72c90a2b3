"""Lists as arrays, MERT against grids, MIRA by hand, oracles, intervals."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest

from zoo.lab.evaluation import significance
from zoo.lab.evaluation.bleu_chrf_wer import Bleu, WordErrorRate
from zoo.lab.rescoring import tune
from zoo.lab.rescoring.model_features import Lists, fit_system_weights


def lists(seed=0, count=7, features=3, longest=5, statistics=4, metric=None):
    """Random lists of 1 to `most` hypotheses, with statistics as `metric` has them."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, longest + 1, count)
    sizes[0] = longest
    total = int(sizes.sum())
    counts = generator.integers(0, 4, (total, statistics)).astype(float)
    if metric == "wer":  # the words of a reference are those of its list
        counts[:, 3] = np.repeat(generator.integers(3, 9, count), sizes)
    elif metric == "bleu":
        matched = generator.integers(1, 6, (total, 4))
        counts = np.column_stack([np.full(total, 8.0), np.full(total, 9.0), matched, matched + 2])
    return Lists(
        tuple(map(str, range(count))),
        tuple(f"f{n}" for n in range(features)),
        np.cumsum([0, *sizes]),
        generator.normal(size=(total, features)),
        counts,
        generator.normal(size=total),
    )


def one_list(features, errors, names=("f", "g"), **fields):
    """A list of hypotheses with some word errors, of four words each."""
    features = np.array(features, np.float64).reshape(len(errors), -1)
    statistics = np.array([[error, 0, 0, 4] for error in errors], np.float64)
    bounds = np.array([0, len(errors)])
    return Lists(("a",), names[: features.shape[1]], bounds, features, statistics, **fields)


def value(nbest_lists, metric, weights):
    """The figure of weights, larger is better, list by list."""
    total = 0
    for start, stop in itertools.pairwise(nbest_lists.starts):
        scores = [float(row @ weights) for row in nbest_lists.features[start:stop]]
        total = total + nbest_lists.statistics[start + scores.index(max(scores))]
    return metric.sign * float(metric.figure(total))


def test_best_chosen_some_and_padded():
    nbest_lists = lists()
    scores = np.round(nbest_lists.features[:, 0])  # with equal ones
    expected = [
        start + int(np.argmax(scores[start:stop]))
        for start, stop in itertools.pairwise(nbest_lists.starts)
    ]
    assert nbest_lists.best_rows(scores).tolist() == expected
    assert nbest_lists.first_rows().tolist() == nbest_lists.starts[:-1].tolist()
    part = nbest_lists.subset(np.array([1, 4]))
    assert part.ids == ("1", "4")
    for position, index in enumerate((1, 4)):
        part_rows, rows = (
            slice(*part.starts[position : position + 2]),
            slice(*nbest_lists.starts[index : index + 2]),
        )
        np.testing.assert_array_equal(part.features[part_rows], nbest_lists.features[rows])
        np.testing.assert_array_equal(
            part.system_scores[part_rows], nbest_lists.system_scores[rows]
        )
    padded = nbest_lists.padded(nbest_lists.features, -7.0)
    assert padded.shape == (7, 5, 3)
    for index, (start, stop) in enumerate(itertools.pairwise(nbest_lists.starts)):
        np.testing.assert_array_equal(
            padded[index, : stop - start], nbest_lists.features[start:stop]
        )
        assert (padded[index, stop - start :] == -7).all()


def test_the_weights_of_a_decoder_are_found():
    nbest_lists = lists(count=30)
    weights = np.array([2.0, -1.0, 0.25])
    # A score that is shifted from list to list has the same order within.
    scores = nbest_lists.features @ weights + nbest_lists.owners
    fitted = fit_system_weights(dataclasses.replace(nbest_lists, system_scores=scores))
    np.testing.assert_allclose(fitted, weights, rtol=1e-9)
    assert not fit_system_weights(dataclasses.replace(nbest_lists, system_scores=None)).any()
    constant = dataclasses.replace(nbest_lists, features=np.full_like(nbest_lists.features, 0.3))
    np.testing.assert_array_equal(constant.scales(), 1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["wer", "bleu"])
def test_a_line_search_finds_the_best_of_all_intervals(seed, name):
    metric = {"wer": WordErrorRate(), "bleu": Bleu()}[name]
    nbest_lists = lists(seed, metric=name)
    search = tune.Search(nbest_lists, metric)
    weights, direction = np.random.default_rng(seed).normal(size=(2, 3))
    step, best = search.best_step(weights, direction)
    # Choices change at most where two hypotheses of a list have equal scores.
    heights, slopes = nbest_lists.features @ weights, nbest_lists.features @ direction
    corners = [
        (heights[first] - heights[second]) / (slopes[second] - slopes[first])
        for start, stop in itertools.pairwise(nbest_lists.starts)
        for first, second in itertools.combinations(range(start, stop), 2)
    ]
    bounds = np.sort([min(corners) - 2, *corners, max(corners) + 2])
    grid = [
        value(nbest_lists, metric, weights + x * direction) for x in (bounds[1:] + bounds[:-1]) / 2
    ]
    assert best == pytest.approx(value(nbest_lists, metric, weights + step * direction), abs=1e-9)
    assert best == pytest.approx(max(grid), abs=1e-9)


def test_of_equal_intervals_the_widest_is_taken_and_then_the_nearest():
    # A list of six lines, whose envelope has corners at -7, -3, -1, 2 and 6. The first hypothesis,
    # the fourth and the sixth have an error each. The intervals from -7 to -3 and from 2 to 6 are
    # the widest without one, the second of them is nearer to 0; from -3 to -1 is nearer still.
    slopes, heights = np.arange(6.0), -np.cumsum([0.0, -7, -3, -1, 2, 6])
    nbest_lists = one_list(np.column_stack([slopes, heights]), [1, 0, 0, 1, 0, 1])
    search = tune.Search(nbest_lists, WordErrorRate())
    assert search.best_step(np.array([0.0, 1]), np.array([1.0, 0])) == (4.0, 0.0)


@pytest.mark.parametrize("method", ["mert", "mira"])
@pytest.mark.parametrize("name", ["wer", "bleu"])
@pytest.mark.parametrize("seed", range(2))
def test_tuning_never_ends_worse_and_repeats_itself(method, name, seed):
    metric = {"wer": WordErrorRate(), "bleu": Bleu()}[name]
    nbest_lists = lists(seed, count=20, metric=name)
    start = np.array([1.0, 0.5, -0.5])
    settings = {"mert": tune.Mert(starts=2, rounds=3), "mira": tune.Mira(epochs=4)}[method]
    tuned, retuned = (settings.tune(nbest_lists, metric, start, seed=3) for _ in range(2))
    assert tuned.tobytes() == retuned.tobytes()
    assert value(nbest_lists, metric, tuned) >= value(nbest_lists, metric, start) - 1e-9
    if method == "mira":
        objective, scales = tune.Objective(nbest_lists, metric), nbest_lists.scales()
        assert objective.value(tuned * scales) <= objective.value(start * scales) + 1e-9


@pytest.mark.parametrize("method", ["mert", "mira"])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_tuning_finds_the_feature_that_counts_errors(method, scale):
    nbest_lists = lists(count=30, metric="wer")
    features = nbest_lists.features.copy()
    features[:, 1] = -scale * nbest_lists.statistics[:, :3].sum(1)
    nbest_lists = dataclasses.replace(nbest_lists, features=features)
    metric = WordErrorRate()
    tuned = tune.tune(nbest_lists, metric, method, seed=0, start=np.zeros(3))
    best = metric.figure(nbest_lists.statistics[tune.oracle_rows(nbest_lists, metric)].sum(0))
    assert -value(nbest_lists, metric, tuned) <= best * 1.02


def test_epochs_of_mira_by_a_loop():
    # BLEU, whose gains depend on the statistics of the hopes before.
    nbest_lists, metric = lists(3, count=6, metric="bleu"), Bleu()
    settings = tune.Mira(epochs=3, decay=0.5)
    start = np.array([1.0, 0.5, -0.5])
    means = list(settings._epochs(nbest_lists, metric, start, 1.0, np.random.default_rng(5)))
    generator, weights, background, expected = np.random.default_rng(5), start, np.ones(10), []
    for _ in range(3):
        weights_reached = []
        for index in generator.permutation(6):
            rows = range(nbest_lists.starts[index], nbest_lists.starts[index + 1])
            gain, score = {}, {}
            for row in rows:
                sums = nbest_lists.statistics[row] + background
                gain[row] = sums[1] * float(metric.figure(sums)) / 100
                score[row] = float(nbest_lists.features[row] @ weights)
            hope = max(rows, key=lambda row: score[row] + gain[row])
            fear = max(rows, key=lambda row: score[row] - gain[row])
            difference = nbest_lists.features[hope] - nbest_lists.features[fear]
            loss = gain[hope] - gain[fear] - difference @ weights
            if hope != fear and loss > 0:
                weights = weights + min(1.0, loss / (difference**2).sum()) * difference
            background = 0.5 * background + nbest_lists.statistics[hope]
            weights_reached.append(weights)
        expected.append(np.mean(weights_reached, axis=0))
    np.testing.assert_allclose(means, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "errors, expected", [([1, 0, 2], [0.5, 0]), ([0, 1, 2], [0, 1]), ([1, 1, 2], [0.5, 0])]
)
def test_tuning_begins_with_the_scores_unless_the_order_is_better(errors, expected):
    # The scores are half the feature, and choose the second hypothesis; the rank the first.
    features, scores = [[-1, 0], [1, 0], [0, -1]], np.array([-0.5, 0.5, 0])
    nbest_list = one_list(features, errors, ("f", "rank"), system_scores=scores)
    np.testing.assert_allclose(tune.choose_start(nbest_list, WordErrorRate()), expected, atol=1e-9)


def test_each_nth_list_is_held_out():
    parts = tune.hold_out(lists(), 3)
    assert {name: part.ids for name, part in parts.items()} == {
        "tuned on": ("0", "1", "3", "4", "6"),
        "held out": ("2", "5"),
    }


def test_cross_validation_judges_each_list_by_weights_of_the_others(monkeypatch):
    monkeypatch.setitem(tune.METHODS, "mira", functools.partial(tune.Mira, epochs=2))
    nbest_lists, metric, start = (
        lists(4, count=8, metric="wer"),
        WordErrorRate(),
        np.array([1.0, 0.5, -1]),
    )
    total = np.zeros(4)
    for judged in ([0, 3, 6], [1, 4, 7], [2, 5]):
        training_lists = nbest_lists.subset(
            np.array([number for number in range(8) if number not in judged])
        )
        weights = tune.tune(training_lists, metric, "mira", 0, start)
        for number in judged:
            rows = range(*nbest_lists.starts[number : number + 2])
            total += nbest_lists.statistics[
                max(rows, key=lambda row: nbest_lists.features[row] @ weights)
            ]
    by_others, by_start = tune.cross_validate(nbest_lists, metric, "mira", 0, start, folds=3)
    assert by_others == pytest.approx(100 * total[:3].sum() / total[3])
    assert by_start == pytest.approx(-value(nbest_lists, metric, start))


def test_oracles_are_found_by_trying_all():
    for name, metric in (("wer", WordErrorRate()), ("bleu", Bleu())):
        for seed in (0, 4, 8, 31):  # with BLEU, all need exchanges after the first choice
            nbest_lists = lists(seed, count=5, longest=3, metric=name)
            choices = itertools.product(
                *(range(start, stop) for start, stop in itertools.pairwise(nbest_lists.starts))
            )
            figures = [
                metric.sign * metric.figure(nbest_lists.statistics[[*rows]].sum(0))
                for rows in choices
            ]
            oracle = metric.sign * metric.figure(
                nbest_lists.statistics[tune.oracle_rows(nbest_lists, metric)].sum(0)
            )
            assert oracle == pytest.approx(max(figures), rel=1e-9)


def test_intervals_and_tests_of_equal_and_different_systems():
    metric = WordErrorRate()
    nbest_lists = lists(count=60, metric="wer")
    rows = nbest_lists.first_rows()
    statistics = nbest_lists.statistics[rows]
    low, high = significance.bootstrap_interval(statistics, metric.figure)
    assert low < metric.figure(statistics.sum(0)) < high
    # The standard error of a mean of ratios, roughly.
    errors = statistics[:, :3].sum(1) / statistics[:, 3].mean()
    assert high - low == pytest.approx(100 * 4 * errors.std() / 60**0.5, rel=0.3)
    assert significance.paired_test(statistics, statistics, metric.figure) == 1
    better = statistics * [0.0, 0, 0, 1]
    assert significance.paired_test(statistics, better, metric.figure) == pytest.approx(1 / 10_000)
    assert significance.bootstrap_interval(statistics, metric.figure) == (low, high)
