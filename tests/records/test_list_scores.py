"""Lists of translations re-scored: by hand, and as forced decoding scores them."""

import dataclasses

import numpy as np
import pytest

from records import list_scores
from tests.lab.training import small
from tests.lab.training.test_tasks_translation import MODEL, experiment
from zoo.data.batches import source_batch
from zoo.decoding import force, steps
from zoo.errors import UserError
from zoo.lab.evaluation import nbest
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring import Bleu


def test_the_mean_of_models_by_hand():
    probabilities = ([0.5, 0.2], [0.4]), ([0.1, 0.6], [0.8])
    models = [[np.log(tokens) for tokens in model] for model in probabilities]
    expected = [np.log(0.3) + np.log(0.4), np.log(0.6)]
    np.testing.assert_allclose(list_scores.ensemble(models), expected)


@pytest.fixture(scope="module", params=["forward", "source_reversed"])
def run(request, tmp_path_factory):
    """An encoder-decoder of a few steps."""
    folder = tmp_path_factory.mktemp("pairs")
    model = dataclasses.replace(MODEL, order=request.param)
    small.run_in(folder, experiment(model, epochs=1))
    return Run.load(folder)


def numbers(lexicon, words):
    return [lexicon.ids.get(word, lexicon.ids[lexicon.unknown]) for word in words]


@pytest.mark.slow
def test_lists_have_the_log_probabilities_of_forced_decoding(run):
    """A reference and a wrong translation of each sentence, each alone with its source."""
    sources, references = list_scores.pairs(run, "validation")
    lists = [[text.split(), text.split()[::-1]] for text in references]
    hypotheses = [
        (source, words) for source, texts in zip(sources, lists, strict=True) for words in texts
    ]
    ends = np.cumsum([len(words) + 1 for _, words in hypotheses])
    log_probs = np.split(list_scores.token_log_probs(run, sources, lists), ends[:-1])
    model, boundary = run.experiment.model, run.lexicon.boundary_id
    for (source, words), values in zip(hypotheses[:12], log_probs[:12], strict=True):
        ids = numbers(run.source_lexicons[0], source)
        ids = ids[::-1] if model.order == "source_reversed" else ids
        batch = source_batch([ids], len(ids), 1)
        step, carry = steps.from_sequence_to_sequence(model, run.params, run.tables, *batch)
        targets = np.array([[*numbers(run.lexicon, words), boundary]])
        forced = force(step, np.array([boundary]), carry, targets)
        np.testing.assert_allclose(values, np.asarray(forced)[0], atol=1e-5)


def lists_of(texts, features):
    """Lists of hypotheses with log p and length."""
    return [
        nbest.NBestList(
            str(number),
            [
                nbest.Hypothesis(1, text, {"LogProb": log_prob, "Length": len(text.split()) + 1.0})
                for text, log_prob in zip(hypotheses, values, strict=True)
            ],
        )
        for number, (hypotheses, values) in enumerate(zip(texts, features, strict=True))
    ]


def test_ways_to_choose_by_hand():
    references = ["a b c d e", "f g h i j"]
    lists = lists_of(
        [["a b c x y", "a b c d e", "x"], ["f g h i j", "f x h y j", "y"]],
        [[-2.0, -3.0, -1.9], [-2.0, -2.5, -1.9]],
    )
    model_scores = np.array([-5.0, -1.0, -0.9, -6.0, -5.0, -4.0])
    arrays = list_scores.with_scores(list_scores.arrays_of(lists, references), model_scores)
    assert arrays.features[0].tolist() == [-2, 6, -5]
    ways, weights = list_scores.choices(arrays, arrays, 1.0)
    chosen = {way: rows.tolist() for way, rows in ways.items()}
    # by the other score a token: -5/6, -1/6, -0.9/2; -1, -5/6, -2
    assert chosen["alone"] == [1, 4]
    # by both: -7/6, -4/6, -2.8/2; -8/6, -7.5/6, -5.9/2
    assert chosen["even"] == [1, 4]
    assert chosen["untuned"] == [0, 3]
    assert chosen["oracle"] == [1, 3]
    metric = Bleu()
    figures = {way: metric.figure(arrays.statistics[rows].sum(0)) for way, rows in ways.items()}
    assert figures["oracle"] == pytest.approx(100)
    assert figures["tuned"] >= figures["untuned"]
    assert weights.shape == (3,)


@pytest.mark.slow
def test_lists_and_scores_that_do_not_fit(tmp_path, run):
    file = tmp_path / "some.validation.nbest"
    file.write_text(nbest.line(0, ["a"], {"LogProb": -1.0, "Length": 2}, -0.5) + "\n")
    with pytest.raises(UserError, match="has 1 lists, not"):
        list_scores.score([file], [run.path])
    _, lists = nbest.read_lists(str(file))
    np.save(tmp_path / "some.validation.one.npy", np.zeros(3))
    nbest_lists = [*lists]
    with pytest.raises(UserError, match="are of other lists"):
        list_scores.read_scores(file, nbest_lists, ["one"])
    np.save(tmp_path / "some.validation.one.npy", np.log([0.5, 0.25]))
    np.save(tmp_path / "some.validation.two.npy", np.log([0.1, 0.75]))
    ensemble_scores = list_scores.read_scores(file, nbest_lists, ["one", "two"])
    np.testing.assert_allclose(ensemble_scores, [np.log(0.3) + np.log(0.5)])
    assert list_scores.read_scores(file, nbest_lists, []).tolist() == [0]
