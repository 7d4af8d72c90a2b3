"""Words of classes of strings, from the text to the figures and to new text."""

import dataclasses
import json
import math
import sys

import numpy as np
import pytest

import evaluate
from tests.data.test_vocabulary import LineSource
from tests.lab.training import small
from zoo import __main__ as commands
from zoo import priors
from zoo.cores import NGram
from zoo.data import Corpus, Text, Vocabulary
from zoo.data.vocabulary import BOUNDARY, UNKNOWN
from zoo.embeddings import Features
from zoo.errors import UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import LogLinear
from zoo.lab.commands import program
from zoo.lab.evaluation import minimal_pairs
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
from zoo.lab.evaluation.run import Run
from zoo.models import LanguageModel

TRAIN = "le chat vaut 7 euros .\nle rat vaut 7 euros .\nla rose , chat , vaut 12 sous .\n"
TEST = "le chat vaut 37 euros .\nla zèbre vaut .\nle lacet vaut 12 euros .\n"
OPEN = {
    "minimum_count": 2,
    "features": (priors.TopWords(count=1), priors.Numbers()),
    "open_classes": (
        priors.DigitStrings(("Number:any", "Number:digits"), share=0.3, name="<digits>", ratio=0.5),
        priors.LetterStrings(("Word:@not_top",), share=0.3, name="<letters>", first="other"),
    ),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run over an open lexicon, trained for an epoch."""
    folder = tmp_path_factory.mktemp("open")
    (folder / "train.txt").write_text(TRAIN, encoding="utf-8")
    (folder / "test.txt").write_text(TEST, encoding="utf-8")
    train = str(folder / "train.txt")
    experiment = Experiment(
        data=Text(train=train, validation=train, tests=(str(folder / "test.txt"),)),
        vocabulary=Vocabulary(**OPEN),
        model=LanguageModel(Features(size=3), NGram(size=5), LogLinear()),
        training=Training(batch=2, length=4, epochs=1),
        evaluation=Evaluation(state="sentences", batch=2, length=6),
    )
    return Run.load(small.run_in(folder / "workdir", experiment))


def test_strings_outside_the_lexicon_are_of_their_classes(run):
    lexicon, vocabulary = run.lexicon, run.experiment.vocabulary
    assert lexicon.words[-2:] == ("<digits>", "<letters>")
    # Once each in the training text: 12; rat, la, rose and sous.
    assert dict(zip(lexicon.words[-2:], lexicon.counts[-2:], strict=True)) == {
        "<digits>": 1,
        "<letters>": 4,
    }
    assert lexicon.counts[lexicon.ids[UNKNOWN]] == 0
    text = vocabulary.encode(run.read("test"), lexicon)
    spelled = [lexicon.words[word] for word in text.words]
    assert " ".join(spelled) == (
        f"le chat vaut <digits> euros . {BOUNDARY} <letters> {UNKNOWN} vaut . {BOUNDARY} "
        f"le <letters> vaut <digits> euros . {BOUNDARY}"
    )
    # No word of the lexicon has a z: "zèbre" is unknown. "7" is the one digit string that is known.
    assert (~text.known).sum() == 1
    outside = 1 - 0.5 * 0.1
    place = spelled.index("<digits>")
    assert text.strings.log_within[place] == pytest.approx(math.log(0.25 * 0.01 / outside))
    np.testing.assert_array_equal(text.strings.counts[[3, 7, 13, 15]], [0, 1, 0, 1])
    assert (text.strings.counts >= 0).sum() == 4
    np.testing.assert_array_equal(text.occurrences(lexicon)[[0, 3, 7, 8]], [2, 0, 1, 0])
    # The unknown word is none of the strings.
    np.testing.assert_array_equal(np.flatnonzero(text.unknown(lexicon)), [8])
    last = text.reordered(np.array([2]))
    np.testing.assert_array_equal(last.strings.log_within, text.strings.log_within[12:])
    np.testing.assert_array_equal(last.strings.counts, text.strings.counts[12:])


def test_the_name_of_a_class_in_a_text_is_a_string_as_any_other(run):
    lexicon, vocabulary = run.lexicon, run.experiment.vocabulary
    text = vocabulary.encode(Corpus("text", [["le", "<digits>", "<letters>"]]), lexicon)
    assert text.known.tolist() == [True, False, False, True]
    assert [lexicon.words[word] for word in text.words[1:3]] == [UNKNOWN, UNKNOWN]
    assert not vocabulary.has("<digits>", lexicon)
    assert vocabulary.has("le", lexicon) and vocabulary.has("37", lexicon)


def test_a_figure_counts_the_probability_of_the_string(run, monkeypatch, capsys):
    text, scores = run.score_corpus(run.read("test"))
    closed = dataclasses.replace(text, strings=None)
    vocabulary = dataclasses.replace(run.experiment.vocabulary)
    monkeypatch.setattr(type(vocabulary), "encode", lambda *_: closed)
    _, class_scores = run.score_corpus(run.read("test"))
    monkeypatch.undo()
    difference = scores.log_prob - class_scores.log_prob
    np.testing.assert_allclose(difference, text.strings.log_within, atol=1e-5)

    monkeypatch.setattr(sys, "argv", ["evaluate.py", str(run.path)])
    assert program.run(evaluate.main) == 0
    assert "strings outside the lexicon, of its classes: 4 tokens" in capsys.readouterr().out
    record = json.loads((run.path / "results" / "test.sentences.json").read_text())
    strings = text.strings.counts >= 0
    mean = -scores.log_prob[strings].mean()
    assert record["figures"]["strings"]["log_perplexity"] == pytest.approx(mean)
    assert record["figures"]["unseen"]["tokens"] == 2  # 37 and lacet
    assert record["out_of_vocabulary"] == record["out_of_vocabulary_types"] == 1
    assert "<digits>, <letters> stand for all their strings" in record["normalised_over"]
    assert record["form"] == "dense_sums"


def test_pairs_of_new_strings_can_be_scored(run):
    pairs = [(["le", "chat", "vaut", "37"], ["le", "chat", "vaut", "373737"])]
    scores = minimal_pairs.score_pairs(run, pairs)
    # The same class; four digits more, of a tenth and with the ratio of a half each.
    np.testing.assert_allclose(scores.good - scores.bad, 4 * math.log(20), rtol=1e-5)
    unknown = minimal_pairs.score_pairs(run, [(["zèbre"], ["chat"])])
    assert unknown.skipped == 1


def test_new_strings_are_generated_with_their_features(run, monkeypatch, capsys):
    command = ["zoo", "generate", str(run.path), "--count", "30", "--features"]
    monkeypatch.setattr(sys, "argv", command)
    assert program.run(commands.main) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line]
    features_by_word = {line[0]: line[1] for line in lines if line[0] not in run.lexicon.ids}
    digits = {features for word, features in features_by_word.items() if word.isdigit()}
    assert digits == {"Number:any, Number:digits"}
    assert {features for word, features in features_by_word.items() if not word.isdigit()} == {
        "Word:@not_top"
    }
    assert "<digits>" not in features_by_word and "<letters>" not in features_by_word


def test_what_an_open_lexicon_refuses(run, tmp_path):
    (tmp_path / "words.txt").write_text("le\n")
    with pytest.raises(UserError, match=r"words already .*: leave --lexicon out"):
        NewLexicon(str(tmp_path / "words.txt")).apply(run)
    with pytest.raises(UserError, match="words already"):
        run.experiment.vocabulary.extended(run.experiment.data, run.lexicon, ("x",))
    letters = priors.LetterStrings(("Word:@not_top",), name="<others>")
    with pytest.raises(UserError, match="<letters> and <others>, which have strings in common"):
        Vocabulary(open_classes=(OPEN["open_classes"][1], letters))
    with pytest.raises(UserError, match=r"which needs features: set vocabulary\.features"):
        Vocabulary(open_classes=(letters,)).build(LineSource())


def test_an_open_lexicon_need_not_have_an_unknown_word():
    vocabulary = Vocabulary(**OPEN | {"unknown": "refused"})
    lexicon, corpora = vocabulary.build(
        LineSource(train="a a b b 7 7 ab", validation="ba 8", tags=False)
    )
    assert lexicon.unknown is None
    text = vocabulary.encode(corpora["validation"], lexicon)
    assert text.known.all()
    with pytest.raises(UserError, match="not in the lexicon: 'é'; leave it out, or train with"):
        vocabulary.encode(Corpus("new", [["é"]]), lexicon)
