"""The surprisal table adds up to the perplexity."""

import types

import numpy as np
import pytest

from tests import tables
from zoo.data import Corpus, Vocabulary
from zoo.evaluation import surprisal
from zoo.lexicon import Lexicon
from zoo.runs import output_files
from zoo.sources import evaluation_texts


@pytest.fixture
def table(run, tmp_path):
    corpus = run.read("test")
    text, scores = run.score_corpus(corpus)
    split = run.given_split("test", corpus)
    return written(tmp_path, split, text, scores, run.lexicon), scores


def written(folder, given, *scores):
    """The table of surprisal, as R reads it."""
    rows = surprisal.rows(given, *scores)
    output_files.write_table(folder / "s.tsv", surprisal.columns(given), rows)
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
    rows = written(tmp_path, evaluation_texts.of_corpus(corpus, ""), text, scores, lexicon)
    assert [row["word"] for row in rows] == ["a", "\\t", "\\n"]
    assert [(row["start"], row["end"]) for row in rows] == [("0", "1"), ("1", "2"), ("2", "3")]
