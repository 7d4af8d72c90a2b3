"""Which texts a run has seen, through all that it is built upon, and when nobody can know."""

import dataclasses

import numpy as np
import pytest

from tests.training import small
from zoo.adaptation import Trained
from zoo.evaluation.run import Run
from zoo.heads import LogLinear
from zoo.priors import Arpa, ContextualBackground, Grammar, NGram
from zoo.runs import seen_texts
from zoo.runs.checkpoints import Checkpoints
from zoo.runs.seen_texts import Texts, of_run
from zoo.runs.seen_texts import inherited as of_experiment
from zoo.runs.workdir import Workdir


@dataclasses.dataclass(frozen=True)
class Own(ContextualBackground):
    """A background that is no part of the zoo: who knows what it read."""


def over(background, data=None):
    """An experiment whose head has a background."""
    recipe = small.experiment(small.LOG_LINEAR, vocabulary=small.WITH_FEATURES)
    head = LogLinear(background=background)
    model = dataclasses.replace(recipe.model, head=head)
    return dataclasses.replace(recipe, model=model, data=data or recipe.data)


def corpora_of(recipe):
    return {split: recipe.vocabulary.read(recipe.data, split) for split in recipe.data.splits()}


def seen_by(recipe):
    return of_experiment(recipe, corpora_of(recipe))


def run_of(folder, recipe, kept=True, trained=True):
    """A work directory as training leaves it, with a checkpoint of next to nothing."""
    workdir = Workdir(folder)
    workdir.claim(recipe)
    lexicon, corpora = recipe.vocabulary.build(recipe.data)
    workdir.keep_lexicon(lexicon)
    texts = (recipe.vocabulary.encode(corpora[s], lexicon) for s in ("train", "validation"))
    data = "-".join(text.digest() for text in texts)
    if kept:
        seen_texts.keep(workdir, of_experiment(recipe, corpora, data, {"revision": "abc"}))
    checkpoints = Checkpoints(folder / "checkpoints", ("best",))
    checkpoints.save("best", 1, {"params": np.zeros(1)}, {"data": data} if trained else {})
    checkpoints.close()
    return str(folder)


def of_words(seed, split):
    return Texts.of("", small.RandomWords(seed=seed).read(split).sentences).hashes


def test_a_run_keeps_its_own_texts(tmp_path):
    found = of_run(run_of(tmp_path / "run", small.experiment()))
    np.testing.assert_array_equal(found.trained_on.hashes, of_words(0, "train"))
    np.testing.assert_array_equal(found.selected_on.hashes, of_words(0, "validation"))
    assert found.made_with == {"revision": "abc"}
    assert found.not_known == ()
    assert [text["text"] for text in found.trained_on.about] == ["train"]


def test_a_run_without_a_record_of_its_texts_is_not_known(tmp_path):
    folder = run_of(tmp_path / "run", small.experiment(), kept=False)
    assert of_run(folder) is None
    # Nor is one whose record is of other texts than those of its checkpoints.
    other = dataclasses.replace(seen_by(small.experiment()), data="other")
    seen_texts.keep(Workdir(folder), other)
    assert of_run(folder) is None
    assert of_run(tmp_path / "nothing") is None


def test_what_was_seen_through_other_runs_comes_along(tmp_path):
    first = run_of(tmp_path / "first", small.experiment())
    data = small.RandomWords(seed=3)
    started = dataclasses.replace(small.experiment(), data=data, init_from=first)
    second = run_of(tmp_path / "second", started)
    last = seen_by(over(Trained(second), small.RandomWords(seed=7)))
    for role, split in (("trained_on", "train"), ("selected_on", "validation")):
        expected = np.union1d(
            of_words(0, split), np.union1d(of_words(3, split), of_words(7, split))
        )
        np.testing.assert_array_equal(getattr(last, role).hashes, expected)
    assert [text["by"] for text in last.trained_on.about] == [
        "this run",
        f"the background Trained {second}",
        f"the background Trained {second}, init_from {first}",
    ]
    gone = dataclasses.replace(started, init_from=str(tmp_path / "nothing"))
    assert seen_by(gone).not_known == (f"init_from {tmp_path / 'nothing'}",)


@pytest.mark.parametrize(
    ("background", "unknown", "texts"),
    [
        (None, (), ["train"]),
        (NGram(), (), ["train"]),
        (NGram(splits=("train", "validation")), (), ["train", "validation"]),
        (Grammar("a.grammar", splits=("validation",)), (), ["train"]),
        (Arpa("news.arpa"), ("the background Arpa news.arpa",), ["train"]),
        (Own(), ("the background Own, which is not a part of Zoo",), ["train"]),
    ],
)
def test_a_background_has_seen_what_it_was_estimated_on(
    background, unknown, texts, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("a.grammar", "news.arpa"):
        (tmp_path / name).write_text("it is read elsewhere")
    found = seen_by(over(background))
    assert found.not_known == unknown
    assert [text["text"] for text in found.trained_on.about] == texts
    expected = [of_words(0, split) for split in texts]
    np.testing.assert_array_equal(found.trained_on.hashes, np.unique(np.concatenate(expected)))


def test_a_judged_run_knows_its_texts(tmp_path):
    folder = tmp_path / "run"
    recipe = small.experiment()
    run = Run(folder, recipe, None, None, {}, 1)
    run_of(folder, recipe)
    np.testing.assert_array_equal(run.seen_texts.trained_on.hashes, of_words(0, "train"))
