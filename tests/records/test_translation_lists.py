"""Lists of translations that language models re-rank: gains and their groups by hand."""

import json

import numpy as np
import pytest

from records import cells, translation_lists
from zoo.errors import UserError
from zoo.lab.evaluation import sentence_scores
from zoo.lab.evaluation.bleu_chrf_wer import WordErrorRate
from zoo.lab.evaluation.nbest import read_lists
from zoo.lab.evaluation.run import Run

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
    training_words = {"a", "b", "c"}
    new = translation_lists.has_new(["a b", "a d", "c"], training_words)
    assert new.tolist() == [False, True, False]


def test_seeds_of_a_model():
    runs = ["we_3_captions_0", "we_3_captions_12", "ce_3_captions_0", "none"]
    assert translation_lists.group_seeds(runs) == {
        "we_3_captions": ["we_3_captions_0", "we_3_captions_12"],
        "ce_3_captions": ["ce_3_captions_0"],
        "none": ["none"],
    }


def test_a_difference_by_hand():
    model = np.array([[1.0, 0, 0, 4], [0, 0, 0, 6]])
    opponent = np.array([[2.0, 0, 0, 4], [0, 1, 0, 6]])
    gain, low, high, p = translation_lists.difference(WordErrorRate(), model, opponent)
    assert gain == pytest.approx(10 - 30)
    # samples draw the first sentence twice (25 - 50), the second twice (0 - 17) or both
    assert (low, high) == pytest.approx((-25, -100 / 6))
    assert p > 0.4  # two of four exchanges have as large a difference
    assert translation_lists.difference(WordErrorRate(), model, model)[::3] == [0, 1]


@pytest.mark.slow
def test_a_model_that_knows_the_references(tmp_path, monkeypatch):
    texts(tmp_path, monkeypatch)
    folder = lists(tmp_path / "lists")
    knows = np.array([0.0, 1, 0, 1, 0, 1])
    columns = {"knows_0": knows, "knows_1": knows, "misleads_0": 0 * knows}

    def scores(run, folder, parts):
        return dict.fromkeys(parts, columns[run.name])

    monkeypatch.setattr(translation_lists, "scores", scores)
    runs = [tmp_path / name for name in columns]
    parts = translation_lists.read_parts(folder)
    columns = translation_lists.score_runs(folder, runs, parts)
    test = translation_lists.judge(folder, parts, columns, "misleads")["test_2016_flickr"]
    assert (test["lists"], test["hypotheses"], test["unseen"]) == (3, 6, 1)
    assert test["oracle"]["BLEU"][0] == pytest.approx(100)
    untuned = test["untuned"]["BLEU"][0]
    for method in translation_lists.METHODS:
        method_figures = test[method]
        assert method_figures["figures"]["knows_0"]["BLEU"][0] == pytest.approx(100)
        gains = method_figures["gains"]
        assert gains["knows | untuned"]["all"]["BLEU"][0] == pytest.approx(100 - untuned)
        assert {*gains["knows | misleads"]} == {"all", "unseen", "seen"}
        assert "misleads | misleads" not in gains
        assert "none | misleads" not in gains


def test_scores_are_those_of_the_run(tmp_path, monkeypatch, trained):
    run = Run.load(trained)
    words = [word for word in run.lexicon.words if not word.startswith("<")]
    names = dict(zip("abcdefgxy", words, strict=False))
    texts(tmp_path, monkeypatch)
    folder = lists(
        tmp_path / "lists", lambda text: " ".join(names[letter] for letter in text.split())
    )
    _, nbest_lists = read_lists(str(folder / "val.nbest"))
    part = translation_lists.read_part(nbest_lists, translation_lists.TEXTS.format("val"), {"a"})
    monkeypatch.setattr(translation_lists, "BATCH_SIZE", 4)
    log_prob = translation_lists.scores(trained, folder, {"val": part})["val"]
    sentences = [[names[letter] for letter in text.split()] for text in (WRONG[2], REFERENCES[2])]
    expected = sentence_scores.score(run, sentences, "by the run").log_prob
    np.testing.assert_allclose(log_prob[4:], expected, rtol=1e-5)


def test_arrays_are_made_once(tmp_path):
    file = tmp_path / "kept.npz"
    arrays = translation_lists.cached(file, lambda: {"val": np.arange(3)})
    cached_arrays = translation_lists.cached(file, lambda: {})
    assert arrays["val"].tolist() == cached_arrays["val"].tolist() == [0, 1, 2]


def test_uncommitted_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["translation_lists", "lists", "--run", "runs/one"])
    monkeypatch.setattr(cells, "revision", lambda: "1a2b3c-dirty")
    with pytest.raises(UserError, match="commit it first"):
        translation_lists.main()


def test_the_file_has_short_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["translation_lists", "one", "--run", "runs/one"])
    monkeypatch.setattr(cells, "revision", lambda: "1a2b3c")
    monkeypatch.setattr(translation_lists, "FILE", tmp_path / "found.json")
    figures = {"p": 1 / 3, "whole": 12, "half": 0.5}
    for name in ("read_parts", "score_runs"):
        monkeypatch.setattr(translation_lists, name, lambda *arguments: {})
    monkeypatch.setattr(translation_lists, "judge", lambda *arguments: figures)
    translation_lists.main()
    translators = json.loads(translation_lists.FILE.read_text())["translators"]
    assert translators == {"one": {"p": 0.3333, "whole": 12, "half": 0.5}}
