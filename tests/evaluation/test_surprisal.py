"""The surprisal table adds up to the perplexity."""

import csv
import types

import numpy as np
import pytest

from zoo.data import Corpus, Vocabulary
from zoo.errors import UserError
from zoo.evaluation import surprisal
from zoo.lexicon import Lexicon


@pytest.fixture
def table(run, tmp_path):
    corpus = run.read("test")
    text, scores = run.score(corpus)
    surprisal.write(tmp_path / "s.tsv", corpus, text, scores, run.lexicon)
    with open(tmp_path / "s.tsv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return rows, scores


def test_rows_say_which_word_stands_where(table):
    rows, _ = table
    first = [{name: row[name] for name in surprisal.COLUMNS[:5]} for row in rows[:2]]
    expected = [
        {"sentence": "1", "position": "1", "word": "le", "known": "yes", "training_count": "4"},
        {"sentence": "1", "position": "2", "word": "zèbre", "known": "no", "training_count": "0"},
    ]
    assert first == expected
    ends = [(row["sentence"], row["position"]) for row in rows if row["word"] == "</s>"]
    assert ends == [("1", "5"), ("2", "11"), ("3", "7")]
    assert {row["counted"] for row in rows if row["word"] == "</s>"} == {"no"}


def test_the_sum_over_counted_rows_is_the_log_perplexity(table):
    rows, scores = table
    nats = [float(row["surprisal_nats"]) for row in rows if row["counted"] == "yes"]
    bits = [float(row["surprisal_bits"]) for row in rows if row["counted"] == "yes"]
    assert len(nats) == scores.tokens
    np.testing.assert_allclose(sum(nats) / len(nats), scores.log_perplexity, atol=1e-6)
    np.testing.assert_allclose(2 ** (sum(bits) / len(bits)), scores.perplexity, rtol=1e-5)


def test_characters_that_would_break_the_table_are_written_as_escapes():
    lexicon = Lexicon(words=("a", "\n", "\t"), counts=np.ones(3, np.int64))
    corpus, boundary = Corpus("text", [["a", "\t", "\n"]]), Vocabulary(boundary="none")
    text = boundary.encode(corpus, lexicon)
    scores = types.SimpleNamespace(log_prob=np.zeros(3), counted=np.ones(3, bool))
    words = [row[2] for row in surprisal.rows(corpus, text, scores, lexicon)]
    assert words == ["a", "\\t", "\\n"]


def test_a_path_that_cannot_be_written_is_named(run, tmp_path):
    corpus = run.read("test")
    text, scores = run.score(corpus)
    with pytest.raises(UserError, match="nowhere"):
        surprisal.write(tmp_path / "nowhere" / "s.tsv", corpus, text, scores, run.lexicon)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file"):
        surprisal.write(tmp_path / "file" / "s.tsv", corpus, text, scores, run.lexicon)
