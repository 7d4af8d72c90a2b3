"""Scores of sentences against a loop over words, and n-best lists in their order."""

import dataclasses
import math
import os
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import scored_sentences
from tests.lab.training import small
from zoo import __main__ as commands
from zoo.cores import LSTM
from zoo.data import Characters, Mixed, Prefixed, Text
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.lab.commands import program
from zoo.lab.evaluation import score_stream, sentence_scores, unknown_words
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files
from zoo.models import LanguageModel
from zoo.sources import table_rows
from zoo.sources.tokens import Reading

# A blank line, an unknown word, a sentence twice, capitals; the third has more words than a batch.
TEXT = "le chat dort\n\n" + "le chien voit " * 12 + "\nLe zèbre dort\nle chat dort\n"
NBEST = """7 ||| le chat dort ||| a= -1 -2 ||| -3.5
7 ||| le zèbre dort ||| a= -1 -2 ||| -1.5
7 |||  ||| a= -1 -2 ||| -4
7 ||| le chat dort
x-2 ||| les chats dorment |||
"""


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


@pytest.fixture
def nbest(tmp_path):
    path = tmp_path / "dev.nbest"
    path.write_text(NBEST, encoding="utf-8")
    return str(path)


@pytest.fixture
def call(monkeypatch, capsys):
    """call(*arguments) -> (exit code, rows of the table that was printed, errors)."""

    def calling(*arguments):
        monkeypatch.setattr(sys, "argv", ["zoo", "score", *map(str, arguments)])
        code = program.run(commands.main)
        output, errors = capsys.readouterr()
        return code, [row for _, row in table_rows.lines(output, "it")] if output else [], errors

    return calling


def by_words(run, words):
    """[log p of each word and of the boundary], word by word from an empty state, float64."""
    ids = [run.lexicon.ids.get(word, run.lexicon.ids["<unk>"]) for word in words]
    boundary = run.lexicon.ids["</s>"]
    model = run.experiment.model
    step = jax.jit(model.log_prob)
    carry, log_probs = model.initial_carry(1), []
    for previous, word in zip([boundary, *ids], [*ids, boundary], strict=True):
        inputs, targets = (jnp.array([[x]], jnp.int32) for x in (previous, word))
        log_prob, carry = step(run.params, run.tables, inputs, targets, carry)
        log_probs.append(float(log_prob[0, 0]))
    return log_probs


def test_scores_are_sums_of_the_words_and_the_boundary_from_an_empty_state(run, text):
    sentences, scores = scored_sentences.scored(run, text)
    assert scores.words.tolist() == [3, 0, 36, 3, 3]
    assert scores.unknown.tolist() == [0, 0, 0, 1, 0]
    for place, sentence in enumerate(sentences):
        words = sentence.words
        log_probs = by_words(run, words)
        np.testing.assert_allclose(scores.log_prob[place], sum(log_probs), rtol=1e-5)
        known_log_probs = [
            x for x, word in zip(log_probs, [*words, "</s>"], strict=True) if word != "zèbre"
        ]
        np.testing.assert_allclose(scores.log_prob_known[place], sum(known_log_probs), rtol=1e-5)
        np.testing.assert_allclose(
            scores.word_log_prob[place], sum(log_probs[:-1]), rtol=1e-5, atol=1e-6
        )
    assert scores.log_prob[0] == scores.log_prob[4]


@pytest.mark.parametrize("count", [3, 40])
def test_many_sentences_have_the_scores_of_few(run, text, count, monkeypatch):
    """Below and above the number from which beginnings are shared."""
    words = [sentence.words for sentence in scored_sentences.scored(run, text)[0] if sentence.words]
    sentences = [[*words[number % 3], *words[0][:1] * (number // 3)] for number in range(count)]
    trees = []
    score_tree = sentence_scores.score_tree
    monkeypatch.setattr(
        sentence_scores, "score_tree", lambda *args: trees.append(1) or score_tree(*args)
    )
    scores = sentence_scores.score(run, sentences, "the text")
    assert len(trees) == (count > sentence_scores.BLOCK)
    expected = [sum(by_words(run, sentence)) for sentence in sentences]
    np.testing.assert_allclose(scores.log_prob, expected, rtol=1e-5)


def test_every_line_has_a_row(call, trained, run, text):
    code, (header, *rows), errors = call(trained, text)
    assert code == 0
    assert header == ["line", "words", "unknown", "log_prob", "log_prob_known"]
    assert [row[:3] for row in rows] == [
        ["1", "3", "0"],
        ["2", "0", "0"],
        ["3", "36", "0"],
        ["4", "3", "1"],
        ["5", "3", "0"],
    ]
    _, scores = scored_sentences.scored(run, text)
    np.testing.assert_allclose([float(row[3]) for row in rows], scores.log_prob, rtol=1e-15)
    np.testing.assert_allclose([float(row[4]) for row in rows], scores.log_prob_known, rtol=1e-15)
    assert f"{text}: 4 sentences, 45 words, 1 of them read as <unk> (2.22%)" in errors
    total = float(re.search(r"log-probability (-[\d.,]+) nats", errors)[1])
    assert total == pytest.approx(scores.log_prob[scores.words > 0].sum(), abs=0.1)
    assert "1 unknown word was scored as <unk>, which the training text never had" in errors


def test_base_10_and_the_sums_of_kenlm(call, trained, run, text):
    """The same scores over ln 10, and sums by hand: 45 words of 4 sentences, one of them <unk>."""
    _, scores = scored_sentences.scored(run, text)
    code, (_, *rows), errors = call(trained, text, "--base", 10)
    assert code == 0
    log_10 = scores.log_prob / 2.302585092994046
    known_log_10 = scores.log_prob_known / 2.302585092994046
    np.testing.assert_allclose([float(row[3]) for row in rows], log_10, rtol=1e-14)
    np.testing.assert_allclose([float(row[4]) for row in rows], known_log_10, rtol=1e-14)
    has_words = scores.words > 0  # blank lines have no words
    total, without = log_10[has_words].sum(), known_log_10[has_words].sum()
    assert errors.splitlines()[-1] == (
        f"Total: {total:.4f}, excluding OOVs: {without:.4f}; Perplexity including OOVs: "
        f"{10 ** (-total / 49):.6g}, excluding OOVs: {10 ** (-without / 48):.6g}; OOVs: 1, "
        "Tokens: 49"
    )
    assert "Total" not in call(trained, text)[2]


@pytest.mark.parametrize("mark", ["{} </s>", "<s> {} </s>", "{} <eos>", "[CLS] {} [SEP]"])
def test_marks_around_a_line_are_the_boundary(call, trained, tmp_path, mark):
    lines = ["le chat dort", "", "le chien voit", "le zèbre dort"]
    plain, marked, lists = (tmp_path / name for name in ("plain.txt", "marked.txt", "lists"))
    plain.write_text("\n".join(lines), encoding="utf-8")
    marked.write_text("\n".join(map(mark.format, lines)), encoding="utf-8")
    lists.write_text("".join(f"0 ||| {mark.format(line)}\n" for line in lines), encoding="utf-8")
    rows = call(trained, plain)[1]
    assert call(trained, marked)[1] == rows
    listed = [row[1:-1] for row in call(trained, lists, "--nbest")[1][1:]]  # no id, no rank
    assert listed == rows[1:]


def test_nbest_lists_keep_their_order_and_rank_their_hypotheses(call, trained, nbest, tmp_path):
    file = tmp_path / "scores.tsv"
    code, printed, errors = call(trained, nbest, "--nbest", "--output", file)
    assert (code, printed) == (0, [])
    header, *rows = [row for _, row in table_rows.lines(file.read_text(), file)]
    assert (header[0], header[-1]) == ("id", "rank")
    assert [row[:4] for row in rows] == [
        ["7", "1", "3", "0"],
        ["7", "2", "3", "1"],
        ["7", "3", "0", "0"],
        ["7", "4", "3", "0"],
        ["x-2", "5", "3", "0"],
    ]
    scores = [float(row[4]) for row in rows]
    places = [0, 1, 2, 3]
    expected = sorted(places, key=lambda place: -scores[place])  # stable: the earlier first
    assert [int(rows[place][-1]) for place in expected] == [1, 2, 3, 4]
    assert rows[4][-1] == "1"
    assert "2 lists, 5 hypotheses, 12 words, 1 of them read as <unk> (8.33%)" in errors


def test_the_sentence_may_stand_in_another_column(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("one\tLe chat\tx\ntwo\t\tx\n", encoding="utf-8")
    sentences = scored_sentences.read(str(path), Reading(lower_case=True), column=2)
    assert [(sentence.words, sentence.id) for sentence in sentences] == [
        (["le", "chat"], None),
        ([], None),
    ]
    path.write_text('one\t"le ""chat"""\n"two"\t"\n', encoding="utf-8")  # as pandas writes it
    first, last = scored_sentences.read(str(path), column=2)
    assert (first.words, last.words) == (["le", '"chat"'], ['"'])
    path.write_text("a ||| 0.5 ||| le chat\n", encoding="utf-8")
    (sentence,) = scored_sentences.read(str(path), nbest=True, column=3)
    assert (sentence.words, sentence.id) == (["le", "chat"], "a")


def test_an_unknown_word_that_was_trained_needs_no_warning(run, text):
    _, scores = scored_sentences.scored(run, text)
    assert "<unk>, which the training text never had" in unknown_words.warning(
        run.lexicon, scores.unknown.sum()
    )
    counts = run.lexicon.counts.copy()
    counts[run.lexicon.ids["<unk>"]] = 1
    trained = dataclasses.replace(run.lexicon, counts=counts)
    assert unknown_words.warning(trained, scores.unknown.sum()) is None
    assert unknown_words.warning(run.lexicon, 0) is None


@pytest.mark.slow
def test_new_words_share_the_probability_of_the_unknown_one(call, tmp_path, run, text):
    experiment = dataclasses.replace(
        run.experiment, vocabulary=Vocabulary(lower_case=True, minimum_count=2)
    )
    workdir = small.run_in(tmp_path / "run", experiment)
    words = tmp_path / "words.txt"
    words.write_text("\n".join((*Run.load(workdir).lexicon.words, "voit", "zèbre", "ours")))
    _, printed, errors = call(workdir, text)
    plain = printed[-5:]  # after what training said
    assert "never had" not in errors
    options = ("--lexicon", words, "--spread-unknown")
    code, (_, *rows), errors = call(workdir, text, *options)
    assert code == 0 and "0 of them read as <unk>" in errors
    # <unk>, voit, zèbre and ours have a quarter each.
    difference = [
        float(row[3]) - float(plain_row[3]) for row, plain_row in zip(rows, plain, strict=True)
    ]
    np.testing.assert_allclose(difference, [0, 0, -12 * math.log(4), -math.log(4), 0], atol=1e-4)
    code, _, errors = call(workdir, text, "--spread-unknown")
    assert code == 2 and "give --add-words FILE or --lexicon FILE" in errors
    code, _, errors = call(workdir, text, "--renormalise")
    assert code == 2 and "leave out --renormalise" in errors


def with_data(run, data):
    return dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, data=data))


def test_runs_that_do_not_model_sentences_of_words_are_refused(run, text, tmp_path):
    answers = Prefixed(train=text, validation=text)
    for data in (answers, Mixed(("a", "b"), (Text(train=text, validation=text), answers))):
        with pytest.raises(UserError, match="trained on what follows a question or a condition"):
            score_stream.Stream(with_data(run, data), text)
    experiment = Experiment(
        data=Characters(train=text, validation=text),
        vocabulary=Vocabulary(boundary="none"),
        model=LanguageModel(Lookup(size=3), LSTM(size=3)),
        training=Training(batch=2, length=4, epochs=1),
        evaluation=Evaluation(batch=2, length=4),
    )
    lexicon, _ = experiment.build()
    characters = dataclasses.replace(run, experiment=experiment, lexicon=lexicon)
    with pytest.raises(UserError, match="are characters, blanks among them"):
        score_stream.Stream(characters, text)


def test_without_a_boundary_there_is_nothing_to_start_from(run, text):
    lexicon = dataclasses.replace(run.lexicon, boundary=None)
    with pytest.raises(UserError, match=r"train with vocabulary\.boundary=counted or uncounted"):
        scored_sentences.scored(dataclasses.replace(run, lexicon=lexicon), text)


def test_a_table_may_go_to_a_pipe(run, text, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output_files.write_lines(pipe, score_stream.Stream(run, text).lines(), "the table")
    assert os.read(reader, 10_000).decode().count("\n") == 6
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "text",
    [
        "u-1 Le chat\nu-2\nv-1 dort\n",
        '{"id": "u", "input": ["Le chat", ""]}\n{"id": "v", "input": ["dort"]}\n',
    ],
)
def test_lists_of_other_forms_are_read(tmp_path, text):
    (tmp_path / "lists").write_text(text)
    sentences = scored_sentences.read(str(tmp_path / "lists"), Reading(lower_case=True), nbest=True)
    assert [sentence.words for sentence in sentences] == [["le", "chat"], [], ["dort"]]
    assert [sentence.id for sentence in sentences] == ["u", "u", "v"]
    lines = [sentence.line for sentence in sentences]
    assert lines == ([1, 2, 3] if text[0] == "u" else [1, 1, 2])


def test_streams_are_scored_in_parts_and_the_same(
    call, trained, nbest, text, tmp_path, monkeypatch
):
    """The parts of two lines are what one of all lines is; lists stay whole."""
    results = [call(trained, nbest, "--nbest"), call(trained, text)]
    monkeypatch.setattr(score_stream, "TOGETHER", 2)
    parts = [call(trained, nbest, "--nbest"), call(trained, text)]
    for (code, rows, errors), (_, expected, notes) in zip(parts, results, strict=True):
        assert (code, errors) == (0, notes)
        assert [row[:4] for row in rows] == [row[:4] for row in expected]
        for row, expected_row in zip(rows[1:], expected[1:], strict=True):
            assert float(row[4]) == pytest.approx(float(expected_row[4]), rel=1e-5)
    hypotheses = score_stream.open_sentences(Run.load(trained), nbest, nbest=True).sentences
    ids = [[sentence.id for sentence in chunk] for chunk in score_stream.chunks(hypotheses, True)]
    assert ids == [["7"] * 4, ["x-2"]]


def test_a_list_that_goes_on_after_another_one_is_refused(call, trained, tmp_path):
    (tmp_path / "l").write_text("7 ||| le\nx ||| le\n7 ||| chat\n")
    code, rows, errors = call(trained, tmp_path / "l", "--nbest", "--output", tmp_path / "t")
    assert (code, rows, (tmp_path / "t").exists()) == (2, [], False)
    assert "l, line 3: the list '7' comes again after another one" in errors


def test_marks_on_unknown_words_are_noted_unless_marks_stand_alone(run, call, trained, tmp_path):
    noted = "'chat.': known without the punctuation marks"
    assert unknown_words.unknown_notes(run, [["le", "chat.", "dort"]])[0].startswith(noted)
    assert unknown_words.unknown_notes(run, [["le", "chat.", "dort", ","]]) == []
    for text, is_noted in (("le chat. dort\n", True), ("le chat. dort\nle chat , dort !\n", False)):
        path = tmp_path / "text.txt"
        path.write_text(text)
        assert (noted in call(trained, path)[2]) == is_noted
