"""Words with evidence, against a definition by strings that knows nothing of tries."""

import dataclasses
import re

import jax
import numpy as np
import pytest

from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors import Evidence

CHARACTERS = "abcdén ,.[]|"
LEXICON = Lexicon(("</s>", *CHARACTERS), np.ones(len(CHARACTERS) + 1, np.int64), boundary="</s>")
PENALTY = 3.0
# Without evidence "ab" is there twice, "ca", "b" and "dd" once, "d" never.
TRAINING = ("n[ca]|ab, ca.", "n[b]|ab ca b.", "n[d, bé]|b dd d")
USUAL = {"ab", "b", "ca", "dd"}
TEXTS = (
    "n[bé, adc]|ab adc bé. b ad abc, ddd ad",
    "n[a]|a ab a. n,c",
    "|dd [bé] ca",
)


def ids(text):
    return [LEXICON.ids[character] for character in text]


def encoded(texts):
    words = np.concatenate([[*ids(text), LEXICON.ids["</s>"]] for text in texts])
    starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
    flags = np.ones(len(words), bool)
    return EncodedText(words.astype(np.int32), flags, flags, starts)


def words_of(text):
    return re.findall(r"[a-dén]+", text)


def allowed(text, usual):
    """For each beginning of the text the characters that may come next, as a set."""
    allowed_sets = []
    for length in range(len(text) + 1):
        condition, separator, text_so_far = text[:length].partition("|")
        if not separator:
            allowed_sets.append({*CHARACTERS})
            continue
        words = usual | {*words_of(condition)}
        word = re.search(r"[a-dén]*$", text_so_far)[0]
        if not any(usual_word.startswith(word) for usual_word in words):
            allowed_sets.append({*CHARACTERS})
            continue
        ends = {*CHARACTERS} - {*"abcdén"} if word in words or not word else set()
        letters = {c for c in "abcdén" if any(o.startswith(word + c) for o in words)}
        allowed_sets.append(ends | letters)
    return allowed_sets


def background(**options):
    options = {"penalty": PENALTY, "minimum_count": 1, "longest": 20} | options
    prior = Evidence(**options)
    prepared = prior.prepare(LEXICON, {"train": encoded(TRAINING)})
    return prior, prior.tables(dataclasses.replace(LEXICON, background_tables=prepared))


@pytest.mark.parametrize(("minimum", "usual"), [(1, USUAL), (2, {"ab"}), (3, set())])
def test_words_are_usual_that_are_often_there_without_evidence(minimum, usual):
    prior = Evidence(minimum_count=minimum)
    usual_words = prior.usual_words(LEXICON, {"train": encoded(TRAINING)})
    assert {"".join(LEXICON.words[place] for place in word) for word in usual_words} == usual


def test_characters_without_evidence_are_penalised():
    prior, tables = background()
    width = 1 + max(map(len, TEXTS))
    rows = np.zeros((len(TEXTS), width), np.int32)  # </s> first, and after the end
    for row, text in zip(rows, TEXTS, strict=True):
        row[1 : 1 + len(text)] = ids(text)
    contexts, _ = jax.jit(prior.apply)(tables, rows, prior.initial_carry(len(rows)))
    log_probs = np.asarray(jax.jit(prior.log_probs)(tables, contexts))
    uniform = -np.log(len(LEXICON))
    for row_log_probs, text in zip(log_probs, TEXTS, strict=True):
        for place_log_probs, allowed_next in zip(row_log_probs, allowed(text, USUAL), strict=False):
            expected = [uniform - PENALTY * (c not in allowed_next) for c in CHARACTERS]
            np.testing.assert_allclose(place_log_probs[1:], expected, rtol=1e-6)
            # The end is a character as a full stop is.
            np.testing.assert_allclose(
                place_log_probs[0], expected[CHARACTERS.index(".")], rtol=1e-6
            )


def test_pieces_and_resets_change_nothing():
    prior, tables = background()
    apply = jax.jit(prior.apply)
    first, second = TEXTS[0], TEXTS[1]
    sequence = np.array([[0, *ids(first)]])
    expected, _ = apply(tables, sequence, prior.initial_carry(1))
    carry, piece_contexts = prior.initial_carry(1), []
    for start in range(0, sequence.shape[1], 13):
        contexts, carry = apply(tables, sequence[:, start : start + 13], carry)
        piece_contexts.append(contexts)
    joined = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *piece_contexts)
    jax.tree.map(np.testing.assert_array_equal, joined, jax.tree.map(np.asarray, expected))

    # After a boundary or a reset a new condition is read, and the old one is forgotten.
    second_contexts, _ = apply(tables, np.array([ids(second)]), prior.initial_carry(1))
    for between in ([0], []):
        texts = np.array([[*ids(first), *between, *ids(second)]])
        marks = np.zeros(texts.shape, bool)
        marks[0, len(first)] = not between
        contexts, _ = apply(tables, texts, prior.initial_carry(1), reset=marks)
        last = jax.tree.map(lambda leaf: leaf[:, -len(second) :], contexts)
        jax.tree.map(np.testing.assert_array_equal, last, second_contexts)


def test_a_condition_that_is_too_long_is_cut():
    """Of "n[bé, adc]" the first seven characters are kept: "a" is a word there, "adc" is none."""
    prior, tables = background(longest=7)
    contexts, _ = prior.apply(tables, np.array([ids("n[bé, adc]|b")]), prior.initial_carry(1))
    log_probs = np.asarray(prior.log_probs(tables, contexts))[0, -1] + np.log(len(LEXICON))
    assert log_probs[LEXICON.ids["é"]] == pytest.approx(0, abs=1e-6)
    contexts, _ = prior.apply(tables, np.array([ids("n[bé, adc]|ad")]), prior.initial_carry(1))
    assert np.asarray(contexts["free"])[0, -1]


def test_what_cannot_work_is_refused():
    with pytest.raises(UserError, match="but a finite number"):
        Evidence(penalty=float("inf"))
    for without in (
        Evidence(separator="#").prepare,
        lambda lexicon, _: Evidence("#").tables(lexicon),
    ):
        with pytest.raises(UserError, match="have a condition before '#'"):
            without(LEXICON, {})
