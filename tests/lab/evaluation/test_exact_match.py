"""Greedy answers, from training to the figures, with and without a grammar."""

import dataclasses
import json
import pathlib
import sys

import numpy as np
import pytest

import evaluate
from tests import passports
from tests.lab.training import small
from zoo.cores import LSTM
from zoo.data import AsPairs, Corpus, Prefixed
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lab.evaluation import exact_match, passport, significance
from zoo.lab.evaluation.changes.constraint import Constraint
from zoo.lab.evaluation.run import Run
from zoo.lab.papers import Overnight
from zoo.models import LanguageModel, SequenceToSequence
from zoo.optimizers import Adam
from zoo.priors import Grammar, TopWords

# "dbl a b" -> "( a a b b )": the answer doubles each letter.
LETTERS = "abcd"
GRAMMAR = 'form: "(" twice+ ")"\ntwice: "a" "a" | "b" "b" | "c" "c" | "d" "d"\n'


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """A model of a few steps over the grammar; most of its answers are wrong, all parse."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "forms.grammar").write_text(GRAMMAR, encoding="utf-8")
    random = np.random.default_rng(0)
    lines = []
    for _ in range(24):
        letters = random.choice(list(LETTERS), random.integers(1, 4))
        lines.append(f"dbl {' '.join(letters)}\t( {' '.join(x + ' ' + x for x in letters)} )\n")
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    path = str(folder / "pairs.tsv")
    recipe = small.experiment(
        model=LanguageModel(
            Lookup(8),
            LSTM(9),
            LogLinear(background=Grammar(str(folder / "forms.grammar"), "|||", longest=12)),
        ),
        vocabulary=Vocabulary(features=(TopWords(20, ("train",)),)),
        state="sentences",
        length=12,
        epochs=2,
        optimizer=Adam(0.01),
    )
    recipe = dataclasses.replace(recipe, data=Prefixed(path, path, (path,)))
    return small.run_in(folder / "run", recipe)


def most_probable_words(run, words):
    """The most probable word after each of some words, from one pass over them; nothing is carried
    from word to word, nothing padded."""
    lexicon, model = run.lexicon, run.experiment.model
    ids = np.array([[lexicon.ids[word] for word in ["</s>", *words]]])
    hidden, context, _ = model.states(run.params, run.tables, ids, model.initial_carry(1))
    log_probs = model.head.log_probs(
        model.head_params(run.params), run.tables["head"], hidden, context=context
    )
    return [lexicon.words[place] for place in log_probs[0].argmax(-1)]


def figures(run, corpus, grammar):
    """The figures of a run's answers."""
    return exact_match.judge(run, "test", corpus, grammar).passport.figures


@pytest.mark.slow
def test_answers_are_the_most_probable_words(workdir):
    run = Run.load(workdir)
    corpus = run.read("test")
    answers = exact_match.answer(run, corpus)
    assert len(answers) == 24
    assert all(complete for _, complete in answers)
    for row in (0, 7):
        question = corpus.sentences[row][: corpus.prefixes[row]]
        answer, _ = answers[row]
        after = most_probable_words(run, [*question, *answer])
        assert after[len(question) :] == [*answer, "</s>"]


@pytest.mark.slow
def test_an_answer_that_the_grammar_closes_at_its_longest_is_whole(workdir):
    run = Run.load(workdir)
    grammar = run.experiment.model.head.background
    bias = np.asarray(run.params["head"]["bias"]).copy()
    bias[run.lexicon.feature_names.index("Word:a")] = 50  # "( a a a a ..." as long as it may be
    params = {**run.params, "head": {**run.params["head"], "bias": bias}}
    run = dataclasses.replace(run, params=params)
    corpus = run.read("test")
    answers = exact_match.answer(run, corpus)
    assert answers == [(["(", *["a"] * 10, ")"], True)] * 24
    assert len(answers[0][0]) == grammar.longest == 12
    assert figures(run, corpus, grammar.path).well_formed == 24
    assert exact_match.answer(run, corpus, 11)[0] == (["(", *["a"] * 10], False)


@pytest.mark.slow
def test_figures_and_passport(workdir, monkeypatch, capsys):
    grammar = str(workdir.parent / "forms.grammar")
    command = ["evaluate.py", str(workdir), "--split", "test", "--exact-match"]
    monkeypatch.setattr(sys, "argv", [*command, "--grammar", grammar])
    evaluate.main()
    output = capsys.readouterr().out
    assert "of 24 answers; 24 complete, 24 of the grammar)" in output
    (path,) = (workdir / "results").glob("answers*.json")
    passport = json.loads(path.read_text())
    run = Run.load(workdir)
    corpus = run.read("test")
    right = sum(
        answer == sentence[prefix:]
        for (answer, _), sentence, prefix in zip(
            exact_match.answer(run, corpus), corpus.sentences, corpus.prefixes, strict=True
        )
    )
    assert passport["figures"] == {
        "accuracy": right / 24,
        "interval": [*significance.binomial_interval(right, 24)],
        "answers": 24,
        "right": right,
        "complete": 24,
        "well_formed": 24,
    }


def test_only_sentences_with_a_question_are_asked():
    corpus = Corpus("both", [["a", "b"], ["q", "|||", "r"]], prefixes=[0, 2])
    questions = exact_match.questions(corpus)
    assert (questions.sentences, questions.prefixes) == ([["q", "|||", "r"]], [2])
    with pytest.raises(UserError, match="no sentence of both has a question"):
        exact_match.questions(dataclasses.replace(corpus, prefixes=[0, 0]))


def test_text_without_answers_is_refused(run):
    with pytest.raises(UserError, match=r"not of a data\.Prefixed source"):
        exact_match.answer(run, run.read("test"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "refusal"),
    [([], "needs a grammar: give --grammar"), (["--grammar", "forms"], "leave --constrain out")],
)
def test_constrain_wants_a_grammar_and_a_head_that_can_take_it(
    workdir, monkeypatch, options, refusal
):
    """The head of this run has its grammar already."""
    grammar = str(workdir.parent / "forms.grammar")
    words = [grammar if word == "forms" else word for word in options]
    monkeypatch.setattr(sys, "argv", ["evaluate", str(workdir), "--constrain", *words])
    with pytest.raises(UserError, match=refusal):
        evaluate.main()


@pytest.mark.slow
def test_a_grammar_can_be_put_over_a_trained_model(workdir):
    grammar = str(workdir.parent / "forms.grammar")
    run = Run.load(workdir)
    with pytest.raises(UserError, match="leave --constrain out"):
        Constraint(grammar).apply(run)
    model = dataclasses.replace(run.experiment.model, head=LogLinear())
    plain = dataclasses.replace(
        run,
        experiment=dataclasses.replace(run.experiment, model=model),
        tables=model.tables(run.lexicon),
    )
    corpus = run.read("test")
    constrained = Constraint(grammar).apply(plain)
    (change,) = constrained.changes
    file = passport.file_of(constrained, passports.make())
    assert file.name == f"test.carried.constrained-{change.digest[:8]}.json"
    assert change == Constraint(grammar, change.digest) and len(change.digest) == 16
    assert Constraint.from_recipe(plain) is None
    copy = workdir.parent / "other.grammar"
    copy.write_text(pathlib.Path(grammar).read_text() + "# the same forms\n")
    assert Constraint(str(copy)).apply(plain).changes[0].digest == change.digest
    assert figures(plain, corpus, grammar).well_formed < 24
    assert figures(constrained, corpus, grammar).well_formed == 24
    question = corpus.sentences[3][: corpus.prefixes[3]]
    answer, _ = exact_match.answer(constrained, corpus)[3]
    after = most_probable_words(constrained, [*question, *answer])
    assert after[len(question) : len(question) + len(answer)] == answer


@pytest.mark.slow
@pytest.mark.parametrize("trained", [False, True], ids=["put over", "trained with"])
def test_an_encoder_decoder_answers_as_the_grammar_allows(workdir, tmp_path, trained):
    grammar = str(workdir.parent / "forms.grammar")
    path = str(workdir.parent / "pairs.tsv")
    background = Grammar(grammar, longest=12) if trained else None
    recipe = small.experiment(
        model=SequenceToSequence(Lookup(8), LSTM(9), LogLinear(background=background)),
        vocabulary=Vocabulary(features=(TopWords(20, ("train",)),)),
        epochs=2,
        optimizer=Adam(0.01),
    )
    recipe = dataclasses.replace(recipe, data=AsPairs(Prefixed(path, path, (path,))))
    run = Run.load(small.run_in(tmp_path / "run", recipe))
    corpus = run.read("test")
    if not trained:
        free = figures(run, corpus, grammar)
        assert free.answers == 24 and free.well_formed < 24
        run = Constraint(grammar).apply(run)
    # A file is read as those of the recipe are.
    example = '(example (utterance "all two") (original "x y") (targetFormula (string a b)))'
    (tmp_path / "forms.examples").write_text(example, encoding="utf-8")
    overnight = dataclasses.replace(recipe, data=AsPairs(Overnight("a", "b")))
    text = dataclasses.replace(run, experiment=overnight).read_file(
        str(tmp_path / "forms.examples")
    )
    assert text.corpus.sentences == [["(", "string", "a", "b", ")"]]
    assert text.corpus.source_text.sentences == [["all", "two"]]
    with pytest.raises(UserError, match="searched for and not drawn"):
        exact_match.answer(run, corpus, temperature=0.5)
    answers = exact_match.answer(run, corpus)
    if not trained:
        short = exact_match.answer(run, corpus, 2)
        assert [words for words, _ in short] == [words[:2] for words, _ in answers]
        assert not all(complete for _, complete in short)
    scores = figures(run, corpus, grammar)
    assert scores.well_formed == scores.complete == 24
    assert scores.right == sum(
        words == sentence for (words, _), sentence in zip(answers, corpus.sentences, strict=True)
    )
    # Every word is the most probable one after those before, all at once and one by one.
    model, words = run.experiment.model, answers[3][0]
    source = run.experiment.source_corpus(corpus).sentences[3]
    read = np.array([[run.source_lexicons[0].ids[word] for word in source[::-1]]])
    ids = np.array([[run.lexicon.ids[word] for word in ["</s>", *words]]])
    encoded = model.encode(run.params, run.tables, read, np.array([len(source)]))
    hidden, context = model.states(run.params, run.tables, encoded, ids)
    log_probs = model.head.log_probs(
        model.head_params(run.params), run.tables["head"], hidden, context=context
    )
    assert [run.lexicon.words[word] for word in log_probs[0].argmax(-1)] == [*words, "</s>"]


TURNED = SequenceToSequence(Lookup(8), LSTM(9), LogLinear(), order="target_reversed")


@pytest.mark.slow
def test_a_grammar_does_not_read_what_is_said_backwards(workdir):
    run = Run.load(workdir)
    run = dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, model=TURNED))
    with pytest.raises(UserError, match="a grammar reads from the first"):
        Constraint(str(workdir.parent / "forms.grammar")).apply(run)


def test_a_background_of_a_grammar_does_not_either(tmp_path):
    (tmp_path / "forms.grammar").write_text(GRAMMAR, encoding="utf-8")
    with pytest.raises(UserError, match="background reads from the first"):
        dataclasses.replace(
            TURNED, head=LogLinear(background=Grammar(str(tmp_path / "forms.grammar")))
        )
