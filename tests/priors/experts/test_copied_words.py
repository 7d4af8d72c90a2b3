"""Experts that name the words of the context, against what stands there."""

import dataclasses

import jax
import numpy as np
import pytest

from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors import PrefixWords, RecentWords
from zoo.priors.experts import NOTHING

WORDS = ("</s>", "<unk>", "|||", "a", "b", "c", "d")


def a_lexicon(expert, words=WORDS):
    marks = {"boundary": "</s>", "unknown": "<unk>"}
    lexicon = Lexicon(words, np.ones(len(words), np.int64), **marks)
    return dataclasses.replace(lexicon, background_tables=expert.prepare(lexicon, {}))


def named(expert, *texts, reset=(), pieces=None):
    """What is named after each word of each text, as strings, "-" for nothing."""
    lexicon = a_lexicon(expert)
    words = np.array([[WORDS.index(word) for word in text.split()] for text in texts])
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
        ["".join(WORDS[word] if word != NOTHING else "-" for word in at) for at in row]
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
