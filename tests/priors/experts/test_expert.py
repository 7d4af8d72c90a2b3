"""A table of facts, and experts that name the words of the context, against what stands there."""

import dataclasses

import jax
import jax.numpy as jnp
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


@pytest.fixture
def tables(base):
    lexicon = Lexicon(WORDS, np.ones(len(WORDS), np.int64), boundary="</s>")
    prepared = base.prepare(lexicon, {})
    return base.tables(dataclasses.replace(lexicon, background_tables=prepared))


def read(base, tables, text, carry=None, reset=()):
    """What the base says after each word of one row, as words, and the carry."""
    words = np.array([[WORDS.index(word) for word in text.split()]])
    marks = np.zeros(words.shape, bool)
    marks[0, list(reset)] = True
    carry = base.initial_carry(1) if carry is None else carry
    found, carry = jax.jit(base.apply)(tables, words, carry, reset=marks)
    return [WORDS[word] if word != NOTHING else "-" for word in np.asarray(found)[0]], carry


def test_the_last_relation_of_the_last_subject(base, tables):
    said, _ = read(base, tables, "</s> the capital of Estonia is Tallinn the money of Peru is")
    # No money of Peru is known.
    assert said == ["-"] * 4 + ["Tallinn"] * 4 + ["euro"] * 2 + ["-"] * 2
    said, _ = read(base, tables, "Peru the capital capital of Estonia Peru")
    assert said == ["-", "-", "Lima", "Lima", "Lima", "Tallinn", "Lima"]


def test_a_sentence_knows_nothing_of_the_one_before(base, tables):
    said, _ = read(base, tables, "capital of Peru </s> of Estonia capital")
    assert said == ["-", "-", "Lima", "-", "-", "-", "Tallinn"]
    said, _ = read(base, tables, "capital of Peru is Estonia the capital", reset=(4,))
    assert said == ["-", "-", "Lima", "Lima", "-", "-", "Tallinn"]


def test_a_text_in_pieces(base, tables):
    pieces = ("</s> the capital of Peru", "is Lima the money", "of Estonia is")
    whole, _ = read(base, tables, " ".join(pieces))
    found, carry = [], None
    for piece in pieces:
        said, carry = read(base, tables, piece, carry)
        found += said
    assert found == whole


def test_values_outside_the_lexicon_are_not_known(base, tables):
    """Cuba is no word there; nor are its values."""
    np.testing.assert_array_equal(tables["value"][2], [NOTHING, NOTHING])
    assert jnp.max(tables["subject"]) == 1


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


def a_lexicon(expert, words=COPIED):
    marks = {"boundary": "</s>", "unknown": "<unk>"}
    lexicon = Lexicon(words, np.ones(len(words), np.int64), **marks)
    return dataclasses.replace(lexicon, background_tables=expert.prepare(lexicon, {}))


def named(expert, *texts, reset=(), pieces=None):
    """What is named after each word of each text, as strings, "-" for nothing."""
    lexicon = a_lexicon(expert)
    words = np.array([[COPIED.index(word) for word in text.split()] for text in texts])
    marks = np.zeros(words.shape, bool)
    marks[:, list(reset)] = True
    tables, carry, found = expert.tables(lexicon), expert.initial_carry(len(texts)), []
    for piece in np.split(np.arange(words.shape[1]), [pieces or words.shape[1]]):
        if len(piece):
            given = tables, words[:, piece], carry
            contexts, carry = jax.jit(expert.apply)(*given, reset=marks[:, piece])
            found.append(np.asarray(contexts))
    rows = np.concatenate(found, axis=1)
    return [
        ["".join(COPIED[word] if word != NOTHING else "-" for word in at) for at in row]
        for row in rows
    ]


@pytest.mark.parametrize("pieces", [None, 3])
def test_the_last_words(pieces):
    found = named(RecentWords(3), "a b <unk> c </s>", "d d d a b", pieces=pieces)
    assert found[0] == ["--a", "-ab", "ab-", "b-c", "-c-"]
    assert found[1] == ["--d", "-dd", "ddd", "dda", "dab"]
    assert named(RecentWords(2), "a b c d", reset=(2,)) == [["-a", "ab", "-c", "cd"]]


@pytest.mark.parametrize("pieces", [None, 2])
def test_the_words_of_the_prefix(pieces):
    texts = "a b ||| c a </s> d ||| a", "a b c d <unk> ||| b </s> b"
    found = named(PrefixWords(most=3), *texts, pieces=pieces)
    nothing = "---"
    assert found[0] == [nothing, nothing, *["ab-"] * 3, nothing, nothing, "d--", "d--"]
    assert found[1] == [*[nothing] * 5, "abc", "abc", nothing, nothing]
    assert named(PrefixWords(most=1), "a ||| b c", reset=(2,)) == [["-", "a", "-", "-"]]


def test_a_text_without_the_separator_is_refused():
    with pytest.raises(UserError, match=r"sentences that end with a boundary and have '=>' after"):
        a_lexicon(PrefixWords(separator="=>"))
    with pytest.raises(UserError, match=r"priors\.PrefixWords\.most is 0"):
        PrefixWords(most=0)
    with pytest.raises(UserError, match=r"priors\.RecentWords\.words is 0"):
        RecentWords(words=0)
