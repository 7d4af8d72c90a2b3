"""A table of facts, and experts that name the words of the context, against what stands there."""

import dataclasses

import jax
import numpy as np
import pytest

from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors import KnowledgeBase, PrefixWords, RecentWords
from zoo.priors.experts import NOTHING
from zoo.sources.table_rows import read_table

TABLE = "land\tcapital\tmoney\nEstonia\tTallinn\teuro\nPeru\tLima\t\nCuba\tHavana\tpeso\n"
WORDS = ("</s>", "the", "capital", "money", "of", "is")
WORDS += ("Estonia", "Peru", "Lima", "Tallinn", "euro")


@pytest.fixture
def base(tmp_path):
    path = tmp_path / "lands.tsv"
    path.write_text(TABLE, encoding="utf-8")
    return KnowledgeBase(str(path))


def read(expert, *texts, words=WORDS, reset=(), pieces=()):
    """What is named after each word of each text, as words, "-" for nothing."""
    tables = expert.tables(lexicon_for(expert, words))
    ids = np.array([[words.index(word) for word in text.split()] for text in texts])
    marks = np.zeros(ids.shape, bool)
    marks[:, list(reset)] = True
    carry, piece_contexts = expert.initial_carry(len(texts)), []
    for piece in np.split(np.arange(ids.shape[1]), pieces):
        arguments = tables, ids[:, piece], carry
        contexts, carry = jax.jit(expert.apply)(*arguments, reset=marks[:, piece])
        piece_contexts.append(np.asarray(contexts))
    return np.array([*words, "-"])[np.concatenate(piece_contexts, axis=1)]  # NOTHING is the last


def lexicon_for(expert, words):
    marks = {"boundary": "</s>", "unknown": "<unk>" if "<unk>" in words else None}
    lexicon = Lexicon(words, np.ones(len(words), np.int64), **marks)
    return dataclasses.replace(lexicon, background_tables=expert.prepare(lexicon, {}))


def read_values(base, text, **options):
    return read(base, text, **options)[0].tolist()


@pytest.mark.parametrize("pieces", [(), (5, 9)])
def test_the_last_relation_of_the_last_subject(base, pieces):
    text = "</s> the capital of Estonia is Tallinn the money of Peru is"
    # No money of Peru is known.
    expected = ["-"] * 4 + ["Tallinn"] * 4 + ["euro"] * 2 + ["-"] * 2
    assert read_values(base, text, pieces=pieces) == expected
    values = read_values(base, "Peru the capital capital of Estonia Peru", pieces=pieces[:1])
    assert values == ["-", "-", "Lima", "Lima", "Lima", "Tallinn", "Lima"]


def test_a_sentence_knows_nothing_of_the_one_before(base):
    values = read_values(base, "capital of Peru </s> of Estonia capital")
    assert values == ["-", "-", "Lima", "-", "-", "-", "Tallinn"]
    values = read_values(base, "capital of Peru is Estonia the capital", reset=(4,))
    assert values == ["-", "-", "Lima", "Lima", "-", "-", "Tallinn"]


def test_values_outside_the_lexicon_are_not_known(base):
    """Cuba is no word there; nor are its values."""
    tables = lexicon_for(base, WORDS).background_tables
    np.testing.assert_array_equal(tables["value"][2], [NOTHING, NOTHING])
    assert np.max(tables["subject"]) == 1


def test_a_table_as_dicts(base):
    relations, facts = read_table(base.path)
    assert relations == ("capital", "money")
    assert facts["Peru"] == {"capital": "Lima"}


BAD = {
    "no relation": ("land\nPeru\n", 1),
    "a relation twice": ("land\ta\ta\nPeru\tx\ty\n", 1),
    "too many": ("land\ta\n\nPeru\tx\ty\n", 3),
    "two words": ("land\ta\nPeru\tx y\n", 2),
    "no subject": ("land\ta\n\tx\n", 2),
    "a subject twice": ("land\ta\nPeru\tx\nPeru\ty\n", 3),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_named_with_their_line(tmp_path, case):
    text, line = BAD[case]
    path = tmp_path / "facts.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=rf"facts\.tsv, line {line}: "):
        read_table(str(path))


def test_a_text_without_subjects_is_refused(base):
    lexicon = Lexicon(("capital", "x"), np.ones(2, np.int64))
    with pytest.raises(UserError, match="has no subject of"):
        base.prepare(lexicon, {})


COPIED = ("</s>", "<unk>", "|||", "a", "b", "c", "d")


def read_copies(expert, *texts, **options):
    """As `read`, the words at a position in one string."""
    rows = read(expert, *texts, words=COPIED, **options)
    return [["".join(at) for at in row] for row in rows]


@pytest.mark.parametrize("pieces", [(), (3,)])
def test_the_last_words(pieces):
    copies = read_copies(RecentWords(3), "a b <unk> c </s>", "d d d a b", pieces=pieces)
    assert copies[0] == ["--a", "-ab", "ab-", "b-c", "-c-"]
    assert copies[1] == ["--d", "-dd", "ddd", "dda", "dab"]
    assert read_copies(RecentWords(2), "a b c d", reset=(2,)) == [["-a", "ab", "-c", "cd"]]


@pytest.mark.parametrize("pieces", [(), (2,)])
def test_the_words_of_the_prefix(pieces):
    texts = "a b ||| c a </s> d ||| a", "a b c d <unk> ||| b </s> b"
    copies = read_copies(PrefixWords(most=3), *texts, pieces=pieces)
    nothing = "---"
    assert copies[0] == [nothing, nothing, *["ab-"] * 3, nothing, nothing, "d--", "d--"]
    assert copies[1] == [*[nothing] * 5, "abc", "abc", nothing, nothing]
    assert read_copies(PrefixWords(most=1), "a ||| b c", reset=(2,)) == [["-", "a", "-", "-"]]


def test_a_text_without_the_separator_is_refused():
    with pytest.raises(UserError, match=r"sentences that end with a boundary and have '=>' after"):
        lexicon_for(PrefixWords(separator="=>"), COPIED)
    with pytest.raises(UserError, match=r"priors\.PrefixWords\.most is 0"):
        PrefixWords(most=0)
    with pytest.raises(UserError, match=r"priors\.RecentWords\.words is 0"):
        RecentWords(words=0)
