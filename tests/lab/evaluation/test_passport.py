"""Passports say what a figure is of."""

import dataclasses
import errno
import hashlib
import json
import math
import pathlib
import sys

import numpy as np
import pytest

import zoo
from zoo.data import Conllu, Corpus
from zoo.errors import UserError
from zoo.lab.evaluation import passport, results, scored_texts
from zoo.lab.evaluation.figures import Overlap, OverlapCounts, Policies
from zoo.lab.evaluation.scored_texts import ScoredText
from zoo.lab.runs.workdir import WarmStart, Workdir


@pytest.fixture(scope="module")
def judged(run):
    corpus = run.read("test")
    text, scores = run.score_corpus(corpus)
    return scored_texts.passport_of(ScoredText(run, "test", corpus, text, scores)), scores


def with_vocabulary(run, **changes):
    """The run with another vocabulary."""
    vocabulary = dataclasses.replace(run.experiment.vocabulary, **changes)
    experiment = dataclasses.replace(run.experiment, vocabulary=vocabulary)
    return dataclasses.replace(run, experiment=experiment)


def test_it_has_the_figures_and_their_denominators(judged):
    record, scores = judged
    assert record.figures.log_perplexity == scores.log_perplexity
    assert record.tokens == 20
    # The boundaries are predicted and not counted: 3 more tokens where they are.
    assert record.figures.tokens_with_boundaries == 23
    mean = -scores.log_prob.mean(dtype=np.float64)
    assert record.figures.log_perplexity_with_boundaries == pytest.approx(mean)
    assert record.out_of_vocabulary == 2  # "zèbre" and ","
    assert record.normalised_over == "the 13 words of the lexicon"
    assert record.form is None


def test_it_warns_of_many_unknown_words(judged, run):
    record, _ = judged
    assert "easy to predict" not in scored_texts.describe(record)  # 10 %
    corpus = Corpus("new words", [["Le", "zèbre", "dort", ",", "le", "chat", "voit"]])
    unknown_record = scored_texts.passport_of(
        ScoredText(run, "data:new", corpus, *run.score_corpus(corpus))
    )
    warning = "<unk>, which is easy to predict, is 43% of the tokens"
    assert warning in scored_texts.describe(unknown_record)


def test_it_says_how_the_figure_was_made(judged, run):
    record, _ = judged
    assert record.policies == Policies(
        state="carried",
        batch=3,
        boundary="uncounted",
        boundary_marks=1,
        unknown="counted",
        lower_case=True,
        fused=None,
        blank_lines=None,
    )
    # Embedding 13 x 5; LSTM 4 gates of 7 cells from 5 + 7 inputs and a bias; softmax 13 x (7 + 1).
    assert record.parameters == 13 * 5 + 28 * (5 + 7 + 1) + 13 * 8
    assert record.precision == "float32"
    assert record.checkpoint == run.checkpoint > 0
    assert record.versions["zoo"] == zoo.__version__
    assert record.command == tuple(sys.argv)
    assert record.machine.platform == "cpu"


def test_it_says_whether_training_was_finished(judged):
    record, _ = judged
    assert record.training.finished is True
    assert "finished" not in scored_texts.describe(record)
    training = dataclasses.replace(record.training, finished=False)
    early = dataclasses.replace(record, training=training, checkpoint=1234)
    warning = "\n  ! judged at step 1,234, before its training was finished\n"
    assert warning in scored_texts.describe(early)


def test_it_names_the_run_that_this_one_started_from(judged, run, workdir):
    record, scores = judged
    assert record.started_from is None
    assert "started from" not in scored_texts.describe(record)
    start = WarmStart("runs/first", ("core", "embedding"), 7)
    Workdir(workdir).save_start(start)
    started_run = dataclasses.replace(run, path=workdir)
    corpus = run.read("test")
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    record = scored_texts.passport_of(ScoredText(started_run, "test", corpus, text, scores))
    assert record.started_from == start
    assert "\n  started from runs/first: its core, embedding\n" in scored_texts.describe(record)


def test_it_says_which_priors_saw_the_text(judged, run):
    record, scores = judged
    assert record.priors_saw_this_text == ()
    assert "\n  priors that saw this text: none\n" in scored_texts.describe(record)
    all_words = with_vocabulary(run, splits=())
    corpus = run.read("test")
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    for split in ("test", "data:test.txt"):  # by its name, and by its path
        words_record = scored_texts.passport_of(ScoredText(all_words, split, corpus, text, scores))
        assert words_record.priors_saw_this_text == ("vocabulary",)
        assert "\n  priors that saw this text: vocabulary\n" in scored_texts.describe(words_record)
    assert "priors_saw_this_text" not in results.PERPLEXITY_FIELDS


def test_it_says_what_the_run_saw_of_the_text(judged, run):
    record, _ = judged
    description = scored_texts.describe(record)
    assert [text.sentences for text in record.trained_on] == [5]
    assert record.selected_on[0].digest == record.trained_on[0].digest
    assert record.training.seed == 0
    experiment = (run.path / "experiment.json").read_bytes()
    assert record.training.recipe_sha256 == hashlib.sha256(experiment).hexdigest()
    # "Les chiens dorment , le chat voit les chats ." has 36 letters, the others have less.
    assert record.overlap.trained_on == Overlap(
        all=OverlapCounts(sentences=0, of_sentences=3, tokens=0, of_tokens=20),
        long=OverlapCounts(sentences=0, of_sentences=1, tokens=0, of_tokens=10),
    )
    assert "\n  in the training text: none of its sentences found\n" in description
    # The training text under another name, in another order, with a sentence of another text.
    lines = [run.read("train").sentences[place] for place in (3, 1, 0, 4, 2)] + [["dort", "."]]
    corpus = Corpus("elsewhere", lines)
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    scored = ScoredText(run, "data:elsewhere", corpus, *run.score_corpus(corpus))
    copy_record = scored_texts.passport_of(scored)
    assert text.known.all()
    assert copy_record.overlap.trained_on.all == OverlapCounts(
        sentences=5, of_sentences=6, tokens=24, of_tokens=26
    )
    assert (
        "\n  not a figure of unseen text: it was trained on this text (92.31% of its tokens in "
        "sentences found there)\n"
    ) in scored_texts.describe(copy_record)


def test_a_run_that_cannot_know_what_it_saw_says_so(judged, run, workdir):
    _, scores = judged
    (workdir / "texts.npz").unlink()
    corpus = run.read("test")
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    copy = dataclasses.replace(run, path=workdir)
    record = scored_texts.passport_of(ScoredText(copy, "test", corpus, text, scores))
    assert record.overlap is record.trained_on is None
    assert "\n  trained on, selected on: not recorded\n" in scored_texts.describe(record)


def test_the_hash_of_a_text_is_that_of_its_words(run, tmp_path):
    copy = tmp_path / "elsewhere.txt"
    corpus = run.read("test")
    copy.write_text("\n\n".join(" ".join(s).upper() for s in corpus.sentences), encoding="utf-8")
    data = passport.data_of(corpus.name, corpus.sentences)
    copy_data = passport.data_of("elsewhere", run.read_file(str(copy)).corpus.sentences)
    assert data.sha256 == copy_data.sha256
    assert (copy_data.sentences, copy_data.words) == (3, 20)
    # The ends of sentences are part of a text.
    joined = [[word for sentence in corpus.sentences for word in sentence]]
    assert passport.data_of("joined", joined).sha256 != data.sha256


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "words; the boundary after each sentence predicted but not counted; unknown words"),
        ({"boundary": "counted", "boundary_marks": 3}, "the 3 boundaries after each sentence coun"),
        ({"boundary": "none"}, "no boundaries, and the first word"),
        ({"unknown": "skipped"}, "unknown words read as <unk> and not counted"),
        ({"unknown": "refused"}, "no unknown words"),
    ],
)
def test_what_counts_is_said_in_words(run, changes, expected):
    assert expected in passport.counts_sentence(with_vocabulary(run, **changes))


@pytest.mark.parametrize(
    ("fused", "expected"),
    [
        ("split", "syntactic words (a fused"),
        ("surface", "words as they are written (a fused form is one)"),
        ("kept", "syntactic words, and fused forms"),
    ],
)
def test_fused_forms_are_named(run, fused, expected):
    source = Conllu(train="", validation="", fused=fused)
    experiment = dataclasses.replace(run.experiment, data=source)
    sentence = passport.counts_sentence(dataclasses.replace(run, experiment=experiment))
    assert sentence.startswith(expected)


def test_blank_lines_that_are_counted_are_named(run):
    data = dataclasses.replace(run.experiment.data, blank_lines="kept")
    experiment = dataclasses.replace(run.experiment, data=data)
    blank_run = dataclasses.replace(run, experiment=experiment)
    assert passport.policies(blank_run).blank_lines == "kept"
    assert "not counted, blank lines being sentences without words;" in (
        passport.counts_sentence(blank_run)
    )
    assert "blank" not in passport.counts_sentence(with_vocabulary(blank_run, boundary="none"))
    assert "blank" not in passport.counts_sentence(run)


def test_it_is_kept_as_strict_json(judged, run, tmp_path):
    record, _ = judged
    elsewhere = dataclasses.replace(run, path=tmp_path)
    losses = {"perplexity": math.inf, "log_perplexity": np.float64("nan")}
    figures = dataclasses.replace(record.figures, **losses)
    path = passport.write(elsewhere, dataclasses.replace(record, figures=figures))
    assert path == tmp_path / "results" / "test.carried.json"

    def refuse(name):
        raise ValueError(name)

    saved = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert float(saved["figures"]["perplexity"]) == math.inf
    assert saved["data"] == dataclasses.asdict(record.data)


def test_texts_given_by_path_do_not_overwrite_each_other(judged, run):
    record, _ = judged
    texts = (
        dataclasses.replace(record.data, sha256=digest) for digest in ("0123456789", "9876543210")
    )
    names = {
        passport.file_of(run, dataclasses.replace(record, split="data:x.txt[:9]", data=text)).name
        for text in texts
    }
    assert names == {
        "data_x.txt_9_-01234567.carried.json",
        "data_x.txt_9_-98765432.carried.json",
    }


def test_a_result_is_replaced_only_by_a_whole_one(judged, run, tmp_path, monkeypatch):
    record, _ = judged
    elsewhere = dataclasses.replace(run, path=tmp_path)
    path = passport.write(elsewhere, record)
    content = path.read_text(encoding="utf-8")

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(UserError, match="cannot be written"):
        passport.write(elsewhere, dataclasses.replace(record, tokens=1))
    assert path.read_text(encoding="utf-8") == content
    assert list(path.parent.iterdir()) == [path]
    # A killed process does not tidy up: what it leaves is no result.
    monkeypatch.setattr(pathlib.Path, "unlink", refuse)
    with pytest.raises(UserError, match="cannot be written"):
        passport.write(elsewhere, dataclasses.replace(record, tokens=1))
    assert len(list(path.parent.iterdir())) == 2
    assert list(path.parent.glob("*.json")) == [path]
