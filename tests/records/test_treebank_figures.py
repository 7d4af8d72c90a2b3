"""Figures of treebanks: contributions of features, and sums that are kept of each sentence."""

import json

import jax
import numpy as np
import pytest

from records import cells, treebank_figures
from tests import passports
from tests.lab.training import small
from zoo.lab.evaluation import best_words, item_scores
from zoo.lab.evaluation.run import Run
from zoo.lab.training import tasks


def test_contributions_are_those_of_each_word_less_those_of_the_background():
    """From the parts of log p of each word, in a loop over tokens, words and features."""
    experiment = small.experiment(**small.MODELS["log-linear"])
    task = tasks.prepare(experiment)
    (lexicon,) = task.lexicons.values()
    params = experiment.model.init(jax.random.key(0), lexicon)
    tables = experiment.model.evaluation_tables(lexicon)
    run = Run("run", experiment, lexicon, params, tables, 0)
    corpus = run.read("validation")
    text, states = best_words.states(run, corpus)
    head, background = experiment.model.head, np.exp(lexicon.background_log_probs)
    expected: dict[str, float] = {}
    known = np.flatnonzero(states.predicted & (text.words != lexicon.unknown_id))
    for position in known:
        hidden = np.repeat(states.hidden[position][None], len(lexicon), 0)
        parts = best_words.word_contributions(
            head, params["head"], tables["head"], lexicon, hidden, np.arange(len(lexicon))
        )
        for word, weight in enumerate(background):
            factor = ((word == text.words[position]) - weight) / len(known)
            for name, nats in parts[word].features:
                kind = name.partition(":")[0]
                expected[kind] = expected.get(kind, 0) + factor * nats
    computed = treebank_figures.contributions(run, corpus)
    assert computed == pytest.approx(expected, abs=1e-5)
    assert [*computed.values()] == sorted(computed.values(), reverse=True)
    assert len(computed) > 1 and max(map(abs, computed.values())) > 0.005


MADE_WITH = {"revision": "abc", "versions": {}}


def write_scores(run, result, log_prob, bands, **fields):
    """A passport of two sentences, of three words and of one, with the scores of the words."""
    arrays = {
        "log_prob": np.array(log_prob, np.float32),
        "band": np.array(bands, np.int8),
        "lengths": np.array([3, 1], np.int32),
    }
    path = run / "results" / f"{result}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    training = {**passports.PERPLEXITY["training"], "made_with": MADE_WITH}
    passport = {**passports.PERPLEXITY, "training": training, **MADE_WITH, "command": ["evaluate"]}
    passport |= {"scores": item_scores.digest(arrays), **fields}
    path.write_text(json.dumps(passport))
    item_scores.write(path, arrays)


def judged_run(folder, unknown, *ways):
    """A run whose second and last word are <unk>, judged in so many ways."""
    write_scores(folder, "test.sentences", [-1, unknown, -2, -3], [1, -1, 0, -1])
    for way, nats in zip(treebank_figures.WAYS, ways, strict=False):
        result = f"test.sentences.lexicon-0123abcd-spread-{way}"
        fields = {"notes": {"words that share the unknown word's probability": 7}}
        write_scores(folder, result, [-1, nats, -2, nats], [1, 0, 0, 1], **fields)
    accuracy = {**passports.PAIRS["figures"], "accuracy": 0.5, "right": 20, "pairs": 40}
    pairs = {**passports.PAIRS, "figures": accuracy}
    (folder / "results" / "pairs_agreement-test-0123.sentences.json").write_text(json.dumps(pairs))
    return folder


def test_sums_of_each_sentence_are_kept_and_other_treebanks_stay(tmp_path, monkeypatch):
    record, sums = tmp_path / "treebanks.json", tmp_path / "treebanks.npz"
    monkeypatch.setattr(treebank_figures, "RECORD", record)
    monkeypatch.setattr(treebank_figures, "SUMS", sums)
    monkeypatch.setattr(cells, "provenance", lambda: {"revision": "abc"})
    names = ("Case:Nom", "Case:Acc", "Word:a")
    run = type("Run", (), {"lexicon": type("Lexicon", (), {"feature_names": names}), "read": str})
    monkeypatch.setattr(Run, "load", lambda path: run())
    monkeypatch.setattr(treebank_figures, "contributions", lambda *_: {"Word": 0.5})
    softmax = [judged_run(tmp_path / f"softmax_{seed}", -5 - seed, -8) for seed in range(2)]
    tags = [judged_run(tmp_path / "tags_0", -4, -8, -9)]
    for treebank in ("one", "other"):
        by_side = {"softmax": softmax, "tags": tags}
        treebank_figures.keep(treebank, by_side, sentences=12)
    contents = json.loads(record.read_text())
    assert contents["revision"] == "abc" and [*contents["treebanks"]] == ["one", "other"]
    assert contents["treebanks"]["one"] == {
        "sentences": 12,
        "accuracies": {"softmax": [0.5, 0.5], "tags": [0.5]},
        "pairs": 40,
        "new_words": 7,
        "values": 2,
        "contributions": {"Word": 0.5},
    }
    with np.load(sums) as archive:
        assert len(archive) == 6
        # Losses of both sentences: all tokens, <unk>, and new words by each way.
        assert archive["one/softmax"].tolist() == [
            [[8, 3], [5, 3], [8, 8]],
            [[9, 3], [6, 3], [8, 8]],
        ]
        assert archive["other/tags"].tolist() == [[[7, 3], [4, 3], [8, 8], [9, 9]]]
        assert archive["one/tokens"].tolist() == [[3, 1], [1, 1]]
