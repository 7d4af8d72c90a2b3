"""Lists of translations that language models re-rank: counts of the choices, and scores."""

import json

import numpy as np
import pytest

from records import cells, translation_lists
from zoo.errors import UserError
from zoo.lab.evaluation import sentence_scores
from zoo.lab.evaluation.bleu_chrf_wer import Bleu
from zoo.lab.evaluation.run import Run

REFERENCES = ["a b c d e", "a b c d f g", "b c d e a"]
WRONG = ["a b x y e", "a b c x f g", "b c e x"]


def texts(folder, monkeypatch):
    """Writes training text and references, the second of them with two new words."""
    monkeypatch.setenv("ZOO_DATA", str(folder))
    for name in ("val", "test_2016_flickr"):
        lines = "".join(f"{text}\n" for text in REFERENCES)
        (folder / f"{name}.cs").write_text(lines, encoding="utf-8")
    (folder / "train.cs").write_text("a b c d e\nx y e\n", encoding="utf-8")


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


def test_words_that_training_never_saw(tmp_path, monkeypatch):
    texts(tmp_path, monkeypatch)
    folder = lists(tmp_path / "lists", lambda text: text.replace("g", "x"))
    part = translation_lists.read_part(folder / "val.nbest", "val.cs", Bleu())
    has_new, is_found = translation_lists.find_new_words(part, set("abcde"))
    assert has_new.tolist() == is_found.tolist() == [False, True, False]  # f, not g
    has_new, is_found = translation_lists.find_new_words(part, set("abcdf"))
    assert has_new.tolist() == [True] * 3
    assert is_found.tolist() == [True, False, True]


@pytest.mark.slow
def test_a_model_that_knows_the_references(tmp_path, monkeypatch):
    texts(tmp_path, monkeypatch)
    folder = lists(tmp_path / "lists")
    columns = {"knows_0": np.array([0.0, 1, 0, 1, 0, 1]), "misleads_0": np.zeros(6)}

    def scores(run, folder, parts):
        return dict.fromkeys(parts, columns[run.name])

    monkeypatch.setattr(translation_lists, "scores", scores)
    monkeypatch.setattr(translation_lists, "LISTS", tmp_path / "records")
    monkeypatch.setattr(cells, "revision", lambda: "1a2b3c")
    runs = [f"runs/{name}" for name in columns]
    texts_of_lists = ["--references", "{}.cs", "--train", "train.cs"]
    monkeypatch.setattr(
        "sys.argv", ["translation_lists", str(folder), "--run", *runs, *texts_of_lists]
    )
    translation_lists.main()
    contents = json.loads((tmp_path / "records" / "lists.json").read_text())
    assert contents["revision"] == "1a2b3c"
    assert contents["hypotheses"] == {"test_2016_flickr": 6, "val": 6}
    tuned = [f"{run}/{method}" for run in ("none", *columns) for method in ("mira", "mert")]
    assert contents["choices"] == ["untuned", "oracle", *tuned]
    assert [*contents["weights"]] == tuned
    assert [*contents["weights"]["none/mira"]] == ["LogProb", "words"]
    with np.load(tmp_path / "records" / "lists.npz") as archive:
        arrays = dict(archive)
    assert arrays["val/new_words"].tolist() == [False, True, False]
    assert arrays["val/found_words"].tolist() == [False, True, False]
    counts = arrays["test_2016_flickr"]
    assert counts.shape == (3, 8, 10) and counts.dtype == np.int16
    texts_by_choice = {"untuned": WRONG} | dict.fromkeys(["oracle", *tuned[2:4]], REFERENCES)
    for choice, hypotheses in texts_by_choice.items():
        expected = Bleu().count_corpus(hypotheses, REFERENCES)
        np.testing.assert_array_equal(counts[:, contents["choices"].index(choice)], expected)
    # A model that scores all alike changes no choice.
    np.testing.assert_array_equal(counts[:, 2:4], counts[:, 6:])
    for choice in tuned[2:4]:
        weights = contents["weights"][choice]
        assert [*weights] == ["LogProb", "words", "other"] and weights["other"] != 0


def test_scores_are_those_of_the_run(tmp_path, monkeypatch, trained):
    run = Run.load(trained)
    words = [word for word in run.lexicon.words if not word.startswith("<")]
    names = dict(zip("abcdefgxy", words, strict=False))
    texts(tmp_path, monkeypatch)
    folder = lists(
        tmp_path / "lists", lambda text: " ".join(names[letter] for letter in text.split())
    )
    part = translation_lists.read_part(folder / "val.nbest", "val.cs", Bleu())
    assert part.references == REFERENCES
    monkeypatch.setattr(translation_lists, "BATCH_SIZE", 4)
    log_prob = translation_lists.scores(trained, folder, {"val": part})["val"]
    sentences = [[names[letter] for letter in text.split()] for text in (WRONG[2], REFERENCES[2])]
    expected = sentence_scores.score(run, sentences, "by the run").log_prob
    np.testing.assert_allclose(log_prob[4:], expected, rtol=1e-5)


def test_references_are_found_by_the_numbers_of_lists(tmp_path, monkeypatch):
    monkeypatch.setenv("ZOO_DATA", str(tmp_path))
    (tmp_path / "texts.zh").write_text("我 要 一 。\n我 要 二 。\n我 要 三 。\n", encoding="utf-8")
    file = tmp_path / "odd.nbest"
    file.write_text("2 ||| 我 要 三 。 ||| -1 ||| -1\n0 ||| 我 ||| -1 ||| -1\n", encoding="utf-8")
    part = translation_lists.read_part(file, "texts.zh", Bleu("zh"))
    assert part.references == ["我 要 三 。", "我 要 一 。"]
    # lengths, and matches of single characters
    assert part.lists.statistics[:, :3].tolist() == [[4, 4, 4], [1, 4, 1]]


def test_arrays_are_made_once(tmp_path):
    file = tmp_path / "kept.npz"
    arrays = translation_lists.cached(file, lambda: {"val": np.arange(3)})
    cached_arrays = translation_lists.cached(file, lambda: {})
    assert arrays["val"].tolist() == cached_arrays["val"].tolist() == [0, 1, 2]


def test_uncommitted_code_is_refused(monkeypatch):
    argv = ["translation_lists", "lists", "--references", "{}.cs", "--train", "train.cs"]
    monkeypatch.setattr("sys.argv", argv)
    monkeypatch.setattr(cells, "revision", lambda: "1a2b3c-dirty")
    with pytest.raises(UserError, match="commit it first"):
        translation_lists.main()
