"""The surprisal table adds up to the perplexity."""

import itertools
import pathlib
import types

import numpy as np
import pytest

import zoo
from tests import tables
from tests.trained_run import TEST
from zoo.data import Corpus, Vocabulary
from zoo.errors import UserError
from zoo.lab.commands import command_table
from zoo.lab.comparison import page_text
from zoo.lab.evaluation import best_words, scored_texts, surprisal
from zoo.lab.runs import output_files
from zoo.lexicon import Lexicon
from zoo.sources.tokens import TokenizedText


@pytest.fixture
def table(run, tmp_path):
    corpus = run.read("test")
    text, scores = run.score_corpus(corpus)
    split = scored_texts.split_text(run, "test", corpus)
    return write_table(tmp_path, split, text, scores, run.lexicon), scores


def write_table(folder, tokenized, *scores):
    """The table of surprisal, as R reads it."""
    rows = surprisal.rows(tokenized, *scores)
    output_files.write_table(folder / "s.tsv", surprisal.columns(tokenized), rows)
    return tables.by_r(folder / "s.tsv")


def test_rows_say_which_word_stands_where(table):
    rows, _ = table
    first = [[row[name] for name in surprisal.COLUMNS[:10]] for row in rows[:2]]
    assert first == [
        ["1", "1", "1", "0", "2", "le", "le", "1", "TRUE", "4"],
        ["1", "1", "2", "3", "8", "zèbre", "<unk>", "1", "FALSE", "0"],
    ]
    (capital,) = [row for row in rows if row["word"] == "Les"]
    assert (capital["sentence"], capital["id"], capital["read_as"]) == ("2", "2", "les")
    ends = [(row["sentence"], row["position"]) for row in rows if row["word"] == "</s>"]
    assert ends == [("1", "5"), ("2", "11"), ("3", "7")]
    assert {row["counted"] for row in rows if row["word"] == "</s>"} == {"FALSE"}


def test_the_sum_over_counted_rows_is_the_log_perplexity(table):
    rows, scores = table
    nats = [float(row["surprisal_nats"]) for row in rows if row["counted"] == "TRUE"]
    bits = [float(row["surprisal_bits"]) for row in rows if row["counted"] == "TRUE"]
    assert len(nats) == scores.tokens
    np.testing.assert_allclose(sum(nats) / len(nats), scores.log_perplexity, rtol=1e-12)
    np.testing.assert_allclose(2 ** (sum(bits) / len(bits)), scores.perplexity, rtol=1e-12)


def test_characters_that_would_break_the_table_are_written_as_escapes(tmp_path):
    lexicon = Lexicon(words=("a", "\n", "\t"), counts=np.ones(3, np.int64))
    corpus, boundary = Corpus("text", [["a", "\t", "\n"]]), Vocabulary(boundary="none")
    text = boundary.encode(corpus, lexicon)
    scores = types.SimpleNamespace(log_prob=np.zeros(3), counted=np.ones(3, bool))
    rows = write_table(tmp_path, TokenizedText.from_corpus(corpus, ""), text, scores, lexicon)
    assert [row["word"] for row in rows] == ["a", "\\t", "\\n"]
    assert [(row["start"], row["end"]) for row in rows] == [("0", "1"), ("1", "2"), ("2", "3")]


# ------------ a text that is read on: each word after all words before it, step by step

MODELS = pathlib.Path(__file__).parent.parent.parent.parent / "models"
PLAY = "ROMEO:\nBut soft! What light through yonder window breaks?\nIt is the east, and Juliet "


def stepped(run, words):
    """-log p of each word but the first, which the model only reads, by `step`, nats."""
    states, nats = run.initial_states(), []
    for word, following in itertools.pairwise(words):
        log_probs, states = run.step(word, states)
        nats.append(-float(log_probs[0, run.id(following)]))
    return nats


def nats_of(rows):
    return [row.surprisal_nats for row in rows]


def test_the_words_of_a_text_that_is_read_on_are_those_of_step(trained, tmp_path):
    """The run's evaluation cuts a text into 3 rows of steps of 4 positions."""
    run, file = zoo.load(trained), tmp_path / "text.txt"
    file.write_text(TEST, encoding="utf-8")
    words = [word for line in TEST.lower().splitlines() for word in [*line.split(), run.boundary]]
    expected = stepped(run, [run.boundary, *words])
    np.testing.assert_allclose(nats_of(run.surprisal(TEST, "carried")), expected, rtol=1e-5)
    table = tmp_path / "words.tsv"
    for text in ([str(file), "--state", "carried"], ["--split", "test"]):
        command_table.run("score", [str(trained), *text, "--words", "--output", str(table)])
        columns = [float(row["surprisal_nats"]) for row in tables.by_r(table)]
        np.testing.assert_allclose(columns, expected, rtol=1e-5)
    scored_text = page_text.score_text("run", 0, run, "test", None, 3)
    np.testing.assert_allclose(nats_of(scored_text.rows), expected, rtol=1e-5)
    encoded, states = best_words.states(run, run.read("test"))
    log_prob = best_words.best_words(run, encoded, states).log_prob
    np.testing.assert_allclose(-log_prob, expected, rtol=1e-5)
    _, scores = run.score_corpus(run.read("test"))  # a perplexity is of three rows
    assert not np.allclose(-scores.log_prob, expected, rtol=1e-3)


def test_the_characters_of_a_text_are_those_of_step_and_do_not_change_when_text_follows():
    run = zoo.load(MODELS / "shakespeare")
    nats = nats_of(run.surprisal(PLAY))
    assert np.isnan(nats[0])  # it has no boundary before it
    np.testing.assert_allclose(nats[1:], stepped(run, PLAY), rtol=1e-4, atol=1e-5)
    longer = nats_of(run.surprisal(PLAY + "is the sun.\n" + 3 * PLAY))
    np.testing.assert_allclose(longer[1 : len(nats)], nats[1:], rtol=1e-4, atol=1e-5)


def test_a_text_without_a_second_character_is_too_short_without_boundary():
    run = zoo.load(MODELS / "shakespeare")
    with pytest.raises(UserError, match=r"^the text is too short: .* has no boundary"):
        run.surprisal("a")
    assert [row.counted for row in run.surprisal("ab")] == [False, True]


# ------------ a table of the readers of a text


def test_every_reader_of_a_word_has_its_surprisal_and_a_page_shows_it_once(trained, tmp_path):
    run, file, words = zoo.load(trained), tmp_path / "times.tsv", ["le", "chat", "les"]
    cells = [("A", 1), ("A", 2), ("A", 3), ("B", 1), ("B", 3)]
    rows = "".join(f"{reader}\t7\t{zone}\t{words[zone - 1]}\n" for reader, zone in cells)
    file.write_text(f"WorkerId\titem\tzone\tword\n{rows}")
    expected = nats_of(run.surprisal("le chat les\n", "sentences"))
    table = tmp_path / "words.tsv"
    command_table.run("score", [str(trained), str(file), "--words", "--output", str(table)])
    written = tables.by_r(table)
    readers = [(row["WorkerId"], row["word"]) for row in written]
    assert readers == [
        ("A", "le"), ("B", "le"), ("A", "chat"), ("A", "les"), ("B", "les"), (None, "</s>")
    ]  # fmt: skip
    nats = [float(row["surprisal_nats"]) for row in written]
    np.testing.assert_allclose(nats, [expected[at] for at in (0, 0, 1, 2, 2, 3)], rtol=1e-5)
    page_rows = page_text.score_text("run", 0, run, None, str(file), 3).rows
    assert [row.word for row in page_rows] == ["le", "chat", "les", "</s>"]
    np.testing.assert_allclose(nats_of(page_rows), expected, rtol=1e-5)
