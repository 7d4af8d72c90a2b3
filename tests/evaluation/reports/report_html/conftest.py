"""Two tiny runs of one text that have been judged, and a translator with attention."""

import dataclasses

import pytest

from tests.training import small
from tests.training.test_translation import experiment as translation
from zoo.attention import Luong
from zoo.evaluation import item_scores, passport
from zoo.evaluation.judgements import minimal_pairs
from zoo.evaluation.run import Run

PAIRS = [(["word1", f"word{n}"], ["word1", f"word{n + 1}"]) for n in range(2, 9)]


def judge(folder):
    """Keeps what `evaluate` and `agreement` keep."""
    run = Run.load(folder)
    corpus = run.read("validation")
    text, scores = run.score(corpus)
    record = passport.of_text(run, "validation", corpus, text, scores)
    passport.write(run, record, item_scores.of_text(text, scores, run.lexicon))
    model, vocabulary = run.experiment.language_model, run.experiment.vocabulary
    arguments = model, run.params, run.tables, run.lexicon, vocabulary, PAIRS
    answers = minimal_pairs.score_pairs(*arguments)
    record = passport.of_pairs(run, "agreement-validation", PAIRS, answers)
    cases = {"number, 1": answers.figures()}
    record = {**record, "figures": {**record["figures"], "cases": cases}}
    passport.write(run, record, answers.answers())


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory):
    """Folders of a softmax and of a log-linear model; do not write to them."""
    folder = tmp_path_factory.mktemp("runs")
    paths = []
    for name, settings in small.MODELS.items():
        path = small.run_in(folder / name, small.experiment(**settings))
        judge(path)
        paths.append(str(path))
    return paths


@pytest.fixture(scope="session")
def translator(tmp_path_factory):
    """The folder of an encoder-decoder with attention, which has not been judged."""
    recipe = translation()
    recipe = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, attention=Luong()))
    return str(small.run_in(tmp_path_factory.mktemp("pairs") / "translator", recipe))
