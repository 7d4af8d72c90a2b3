"""Lists of translations that language models re-rank: gains and their groups by hand."""

import dataclasses
import functools
import json
import types

import jax
import numpy as np
import pytest

from records import cells, translation_lists
from zoo import changed
from zoo.cores import NGram
from zoo.errors import UserError
from zoo.lab.evaluation import sentence_scores
from zoo.lab.evaluation.nbest import read_lists
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring.bleu_chrf_wer import WordErrorRate

REFERENCES = ["a b c d e", "a b c d f g", "b c d e a"]
WRONG = ["a b x y e", "a b c x f g", "b c e x"]


def texts(folder, monkeypatch):
    """Writes training text and references, the second of them with two new words."""
    monkeypatch.setenv("ZOO_DATA", str(folder))
    (folder / "multi30k").mkdir()
    for name in ("val", "test_2016_flickr"):
        path = folder / translation_lists.TEXTS.format(name)
        path.write_text("".join(f"{text}\n" for text in REFERENCES), encoding="utf-8")
    path = folder / translation_lists.TEXTS.format("train")
    path.write_text("a b c d e\nx y e\n", encoding="utf-8")


def lists(folder, words=lambda text: text):
    """Writes lists of two translations, the wrong one before the right one."""
    folder.mkdir()
    lines = []
    for id, (right, wrong) in enumerate(zip(REFERENCES, WRONG, strict=True)):
        lines += [f"{id} ||| {words(wrong)} ||| LogProb= -1.0 ||| -1.0\n"]
        lines += [f"{id} ||| {words(right)} ||| LogProb= -2.0 ||| -2.0\n"]
    for name in ("val", "test_2016_flickr"):
        (folder / f"{name}.nbest").write_text("".join(lines), encoding="utf-8")
    return folder


def test_words_that_training_never_saw():
    known = {"a", "b", "c"}
    assert translation_lists.has_new(["a b", "a d", "c"], known).tolist() == [False, True, False]
    assert translation_lists.new_share(["a d <unk>", "c e"], known) == 2 / 4


def test_seeds_of_a_model():
    runs = ["we_3_captions_0", "we_3_captions_12", "ce_3_captions_0", "none"]
    assert translation_lists.models_of(runs) == {
        "we_3_captions": ["we_3_captions_0", "we_3_captions_12"],
        "ce_3_captions": ["ce_3_captions_0"],
        "none": ["none"],
    }


def test_a_difference_by_hand():
    one = np.array([[1.0, 0, 0, 4], [0, 0, 0, 6]])
    other = np.array([[2.0, 0, 0, 4], [0, 1, 0, 6]])
    gain, low, high, p = translation_lists.difference(WordErrorRate(), one, other)
    assert gain == pytest.approx(10 - 30)
    # samples draw the first sentence twice (25 - 50), the second twice (0 - 17) or both
    assert (low, high) == pytest.approx((-25, -100 / 6))
    assert p > 0.4  # two of four exchanges have as large a difference
    assert translation_lists.difference(WordErrorRate(), one, one)[::3] == [0, 1]


@pytest.mark.slow
def test_a_model_that_knows_the_references(tmp_path, monkeypatch):
    texts(tmp_path, monkeypatch)
    folder = lists(tmp_path / "lists")
    knows = np.array([0.0, 1, 0, 1, 0, 1])
    columns = {"knows_0": knows, "knows_1": knows, "misleads_0": 0 * knows}

    def scores(run, folder, parts, of_history):
        return dict.fromkeys(parts, columns[run.name])

    monkeypatch.setattr(translation_lists, "scores", scores)
    runs = [tmp_path / name for name in columns]
    monkeypatch.setattr(translation_lists, "BASELINE", "misleads")
    monkeypatch.setattr(translation_lists, "FEW", 1)
    of_lists = translation_lists.of_translator(folder, runs)
    found = of_lists["all"]
    test = found["test_2016_flickr"]
    assert (test["lists"], test["hypotheses"], test["unseen"]) == (3, 6, 1)
    assert test["new"] == [2 / 16, 2 / 15, 4 / 31]  # f and g
    assert test["oracle"]["BLEU"][0] == pytest.approx(100)
    untuned = test["untuned"]["BLEU"][0]
    for method in translation_lists.METHODS:
        of = test[method]
        assert of["figures"]["knows_0"]["BLEU"][0] == pytest.approx(100)
        gains = of["gains"]
        assert gains["knows | untuned"]["all"]["BLEU"][0] == pytest.approx(100 - untuned)
        assert {*gains["knows | misleads"]} == {"all", "unseen", "seen"}
        assert "misleads | misleads" not in gains
        assert "none | misleads" not in gains
    # Lists of one translation leave nothing to choose.
    few = of_lists["few"]["test_2016_flickr"]
    assert (few["lists"], few["hypotheses"], few["unseen"]) == (3, 3, 1)
    assert few["oracle"] == few["untuned"] == test["untuned"]
    assert few["mira"]["gains"]["knows | untuned"]["all"]["BLEU"][0] == 0


def test_scores_are_those_of_the_run(tmp_path, monkeypatch, trained):
    run = Run.load(trained)
    known = [word for word in run.lexicon.words if not word.startswith("<")]
    names = dict(zip("abcdefgxy", known, strict=False))
    texts(tmp_path, monkeypatch)
    folder = lists(tmp_path / "lists", lambda text: " ".join(names[one] for one in text.split()))
    _, read = read_lists(str(folder / "val.nbest"))
    part = translation_lists.part_of(read, translation_lists.TEXTS.format("val"), {"a"})
    grams = functools.partial(translation_lists.grams, part.texts)
    found = translation_lists.scores(trained, folder, {"val": part}, grams)["val"]
    sentences = [[names[one] for one in text.split()] for text in (WRONG[0], REFERENCES[0])]
    wanted = sentence_scores.score(run, sentences, "by the run").log_prob
    np.testing.assert_allclose(found[:2], wanted, rtol=1e-5)


def test_each_trigram_is_scored_once(tmp_path, monkeypatch, trained):
    run = Run.load(trained)
    experiment = changed(run.experiment, {"model.core": NGram(size=7, order=3)})
    params = experiment.model.init(jax.random.key(0), run.lexicon)
    trigrams = dataclasses.replace(run, experiment=experiment, params=params)
    monkeypatch.setattr(translation_lists.Run, "load", lambda path: trigrams)
    monkeypatch.setattr(translation_lists.options, "run_with_words", lambda path, words: trigrams)
    texts = ["le chat dort .", "le chien voit le chat .", "chat", "le chat voit le chien dort ."]
    part = types.SimpleNamespace(texts=texts)
    asked = []

    def grams(history):
        asked.append(history)
        return translation_lists.grams(texts, history)

    found = translation_lists.scores(trained, tmp_path, {"val": part}, grams)["val"]
    wanted = sentence_scores.score(trigrams, [text.split() for text in texts], "whole").log_prob
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert asked == [2]


def test_n_grams_by_hand():
    texts = ["a b a b", "c a b", "", "a b c a b"]
    found = translation_lists.grams(texts, 2)
    assert found.distinct == [
        *[("a",), ("a", "b"), ("a", "b", "a"), ("b", "a", "b"), ("a", "b", "")],
        *[("c",), ("c", "a"), ("c", "a", "b"), ("",), ("a", "b", "c"), ("b", "c", "a")],
    ]
    assert found.numbers.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 4, 8, 0, 1, 9, 10, 7, 4]
    assert found.starts.tolist() == [0, 5, 9, 10]
    whole = translation_lists.grams(texts, None)
    assert len(whole.distinct) == 14 and whole.distinct[whole.numbers[-1]] == (*"abcab", "")


def test_arrays_are_made_once(tmp_path):
    file = tmp_path / "kept.npz"
    made = translation_lists.kept(file, lambda: {"val": np.arange(3)})
    again = translation_lists.kept(file, lambda: {})
    assert made["val"].tolist() == again["val"].tolist() == [0, 1, 2]


def test_uncommitted_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["translation_lists", "lists", "--run", "runs/one"])
    monkeypatch.setattr(cells, "revision", lambda: "1a2b3c-dirty")
    with pytest.raises(UserError, match="commit it first"):
        translation_lists.main()


def test_the_file_has_short_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["translation_lists", "one", "--run", "runs/one"])
    monkeypatch.setattr(cells, "revision", lambda: "1a2b3c")
    monkeypatch.setattr(translation_lists, "FILE", tmp_path / "found.json")
    found = {"p": 1 / 3, "whole": 12, "half": 0.5}
    monkeypatch.setattr(translation_lists, "of_translator", lambda *arguments: found)
    translation_lists.main()
    kept = json.loads(translation_lists.FILE.read_text())["translators"]
    assert kept == {"one": {"p": 0.3333, "whole": 12, "half": 0.5}}
