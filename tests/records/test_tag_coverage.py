"""How far the tags of a treebank reach in a text, counted by hand."""

import pytest

from records import tag_coverage
from tests.lab.runs.test_seen_texts import conllu
from zoo.data import Conllu, Vocabulary
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.runs.workdir import Workdir
from zoo.priors import Morphology, SuffixGuesser

SENTENCES = [["a", "b", "a", "c"], ["d", "a"]]
LEXICON = {"a": 0, "b": 1, "c": 2}


@pytest.mark.parametrize(("has_guesser", "fallback"), [(True, "guessed"), (False, "without tags")])
def test_shares_of_words_and_of_types(has_guesser, fallback):
    shares = tag_coverage.shares(SENTENCES, LEXICON, {"a": ("POS:DET",), "d": ()}, has_guesser)
    assert shares == {
        "tagged there": (3 / 6, 1 / 4),
        fallback: (2 / 6, 2 / 4),
        "read as <unk>": (1 / 6, 1 / 4),
    }


def run_of(folder, *priors):
    """A run of treebanks that is not trained."""
    for name, sentence in {"train": "Le chat dort", "tags": "Le chat", "other": "le chien"}.items():
        (folder / f"{name}.conllu").write_text(conllu(sentence), encoding="utf-8")
    source = Conllu("train.conllu", "train.conllu")
    workdir = Workdir(folder / "run")
    experiment = Experiment(data=source, vocabulary=Vocabulary(lower_case=True, features=priors))
    workdir.claim(experiment)
    workdir.save_lexicon(experiment.build()[0])
    return workdir.path


def test_the_report_of_a_split_and_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_treebank = Morphology(("train",), SuffixGuesser(), treebanks=("tags.conllu",))
    folder = run_of(tmp_path, by_treebank, Morphology(("train",)))
    lines: list = []
    tag_coverage.report(folder, "train", lines.append)
    assert lines == [
        "train: 3 words, 3 types",
        "  tags from tags.conllu:",
        "    tagged there: 66.7% of words, 66.7% of types",
        "    guessed: 33.3% of words, 33.3% of types",
        "  tags from train:",
        "    tagged there: 100.0% of words, 100.0% of types",
    ]
    lines.clear()
    tag_coverage.report(folder, "other.conllu", lines.append)
    assert lines[:4] == [
        "other.conllu: 2 words, 2 types",
        "  tags from tags.conllu:",
        "    tagged there: 50.0% of words, 50.0% of types",
        "    read as <unk>: 50.0% of words, 50.0% of types",
    ]


def test_a_run_without_tags_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="has no tags: give a run with priors"):
        tag_coverage.report(run_of(tmp_path), "train")
