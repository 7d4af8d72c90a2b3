"""The micro language: its probabilities are exact, and its words agree."""

import math
from collections import Counter

import numpy as np
import pytest

from zoo.errors import UserError
from zoo.sources.micro import VANISH, Grammar, Micro, Option

SMALL = {"train_sentences": 300, "validation_sentences": 200, "test_sentences": 200}


@pytest.fixture(scope="module")
def micro():
    return Micro(**SMALL)


@pytest.fixture(scope="module")
def sample(micro):
    return micro.read("train").sentences


def value(entries, word, name):
    """The value of a feature of a word, or None."""
    values = [feature for feature in entries[word] if feature.startswith(f"{name}:")]
    return values[0].split(":")[1] if values else None


def tiny_grammar(*, recursion):
    """Sentences x y* z with an optional w, all of whose probabilities are simple."""
    start, repeated, optional, stop = ("start",), ("many",), ("optional",), ("stop",)
    return Grammar(
        start,
        {
            start: {"x": Option(0.75, (repeated, stop)), "v": Option(0.25, (optional, stop))},
            repeated: {VANISH: Option(1 - recursion), "y": Option(recursion, (repeated,))},
            optional: {VANISH: Option(0.5), "w": Option(0.5)},
            stop: {"z": Option(1.0)},
        },
    )


def test_tiny_grammar_matches_enumeration():
    recursion = 0.3
    grammar = tiny_grammar(recursion=recursion)
    sentences = [["v", "z"], ["v", "w", "z"]]
    sentences += [["x"] + ["y"] * count + ["z"] for count in range(60)]
    log_probs = [grammar.log_prob(sentence) for sentence in sentences]
    probabilities = np.exp(log_probs)
    assert probabilities[0] == pytest.approx(0.125)
    assert probabilities[4] == pytest.approx(0.75 * 0.3**2 * 0.7)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert grammar.entropy() == pytest.approx(-(probabilities @ log_probs), rel=1e-12)
    lengths = [len(sentence) for sentence in sentences]
    assert grammar.expected_length() == pytest.approx(probabilities @ lengths, rel=1e-12)


def test_the_grammar_is_deterministic(micro):
    """Probabilities sum to 1, and of two ways to go on after a word there is one (LL(1))."""
    rules = micro.grammar.rules
    words = {symbol: {*options} - {VANISH} for symbol, options in rules.items()}
    for options in rules.values():
        assert math.fsum(option.probability for option in options.values()) == pytest.approx(1)
        assert min(option.probability for option in options.values()) > 0
    following = {symbol: set() for symbol in rules}
    following[micro.grammar.start] = {VANISH}  # the end
    size = None
    while size != (size := sum(map(len, following.values()))):
        for symbol, options in rules.items():
            for option in options.values():
                after = {*following[symbol]}
                for part in reversed(option.continuation):
                    following[part] |= after
                    after = words[part] | (after if VANISH in rules[part] else set())
    for symbol, options in rules.items():
        if VANISH in options:
            assert not {VANISH, *words[symbol]} & following[symbol]


def test_exact_entropy_and_length_match_monte_carlo(micro):
    generator = np.random.default_rng(7)
    sentences = [micro.grammar.sample(generator) for _ in range(8000)]
    for values, exact in (
        ([-micro.grammar.log_prob(sentence) for sentence in sentences], micro.grammar.entropy()),
        ([len(sentence) for sentence in sentences], micro.grammar.expected_length()),
    ):
        error = np.std(values) / math.sqrt(len(values))
        assert abs(np.mean(values) - exact) < 3 * error


def test_entropy_rate_counts_the_boundary(micro):
    entropy, length = micro.grammar.entropy(), micro.grammar.expected_length()
    assert micro.entropy_rate() == pytest.approx(entropy / (length + 1))
    assert micro.entropy_rate(boundaries=0) == pytest.approx(entropy / length)
    assert micro.entropy_rate(boundaries=2) == pytest.approx(entropy / (length + 2))
    reseeded = Micro(seed=3)
    assert reseeded.entropy_rate() == pytest.approx(micro.entropy_rate())
    assert reseeded.lexicon_entries() != micro.lexicon_entries()


def test_token_log_probs_sum_to_the_sentence(micro, sample):
    for sentence in sample[:30]:
        log_probs = micro.grammar.token_log_probs(sentence)
        assert len(log_probs) == len(sentence)
        assert math.fsum(log_probs) == pytest.approx(micro.grammar.log_prob(sentence))


def test_what_is_no_sentence_has_no_probability(micro, sample):
    sentence = sample[0]
    for wrong in ([], sentence[:-1], [*sentence, "."], sentence[::-1], [*sentence[:-1], "", "."]):
        assert micro.grammar.log_prob(wrong) == -math.inf
    assert micro.grammar.token_log_probs([sentence[0], ".", "."])[1:] == [-math.inf, -math.inf]


def test_reading_is_deterministic_and_splits_differ(micro):
    assert micro.splits() == ("train", "validation", "test")
    corpora = {split: micro.read(split) for split in micro.splits()}
    for split, corpus in corpora.items():
        assert len(corpus.sentences) == SMALL[f"{split}_sentences"]
        assert Micro(**SMALL).read(split) == corpus
        assert Micro(**SMALL, seed=1).read(split) != corpus
    assert corpora["validation"].sentences != corpora["test"].sentences
    with pytest.raises(UserError, match="unknown split 'dev'"):
        micro.read("dev")
    with pytest.raises(UserError, match=r"data\.nouns is 1: give at least 2"):
        Micro(nouns=1)
    with pytest.raises(UserError, match=r"data\.exponent is 10000\.0, which leaves rare words not"):
        Micro(**SMALL, exponent=1e4).read("train")


def test_every_word_has_its_features(micro):
    entries = micro.lexicon_entries()
    for split in micro.splits():
        corpus = micro.read(split)
        for sentence, features in zip(corpus.sentences, corpus.features, strict=True):
            assert [entries[word] for word in sentence] == features
            assert sentence.index(".") == len(sentence) - 1
    assert all(features[0].startswith("POS:") for features in entries.values())
    generated = set().union(*micro.grammar.rules.values()) - {VANISH}
    assert generated == set(entries)


def check_agreement(entries, sentence):
    """Parse a sentence by its features alone, and assert each agreement; return their number.

    A verb agrees with the noun waiting for one: the subjects are kept on a stack, which a
    relative clause pushes to and a verb pops from.
    """
    waiting, checks, expected = [], 0, None
    role, noun, previous = "subject", None, None
    for position, word in enumerate(sentence):
        tag, number, gender = (value(entries, word, name) for name in ("POS", "Number", "Gender"))
        if tag == "DET":
            expected = (gender, number)
        elif tag in ("NOUN", "ADJ") and previous in ("DET", "PRENOMINAL"):
            assert expected[0] in (None, gender)
            assert expected[1] == number
            expected, checks = (gender, number), checks + 1
            if tag == "ADJ":
                previous = "PRENOMINAL"
                continue
            noun = (gender, number)
            if role == "subject":
                waiting.append(noun)
            role = "other"
        elif tag == "ADJ":
            assert (gender, number) == noun
            checks += 1
        elif word == "qui":
            waiting.append(noun)
        elif word == "que":
            role = "subject"
        elif tag in ("VERB", "AUX"):
            subject = waiting.pop()
            assert number == subject[1]
            checks += 1
            # Only a copula is followed at once by an adjective, which agrees with its subject.
            noun = subject
        elif tag == "PUNCT" and position < len(sentence) - 1:
            role = "subject"
        previous = tag
    assert not waiting
    return checks


def test_words_agree_by_their_features(micro, sample):
    entries = micro.lexicon_entries()
    checks = [check_agreement(entries, sentence) for sentence in sample]
    assert min(checks) >= 2
    assert max(checks) >= 8


def test_minimal_pairs(micro):
    entries = micro.lexicon_entries()
    pairs = micro.minimal_pairs(80, seed=5)
    assert pairs == micro.minimal_pairs(80, seed=5)
    assert pairs != micro.minimal_pairs(80, seed=6)
    cells = Counter((facts["phenomenon"], facts["attractor"]) for _, _, facts in pairs)
    assert set(cells.values()) == {20}
    for sentence, twin, facts in pairs:
        assert math.isfinite(micro.grammar.log_prob(sentence))
        assert micro.grammar.log_prob(twin) == -math.inf
        positions = [
            i for i, words in enumerate(zip(sentence, twin, strict=True)) if len({*words}) > 1
        ]
        assert len(positions) == 1
        right, wrong = entries[sentence[positions[0]]], entries[twin[positions[0]]]
        differing = {feature.split(":")[0] for feature in set(right) ^ set(wrong)}
        assert differing == {facts["phenomenon"].capitalize()}
        assert right[0] in ("POS:ADJ", "POS:VERB", "POS:AUX")
        check_agreement(entries, sentence)
        with pytest.raises(AssertionError):
            check_agreement(entries, twin)
        name = facts["phenomenon"].capitalize()
        controller = positions[0] - facts["distance"]
        assert "POS:NOUN" in entries[sentence[controller]]
        between = [
            value(entries, word, name)
            for word in sentence[controller + 1 : positions[0]]
            if "POS:NOUN" in entries[word]
        ]
        feature = value(entries, sentence[positions[0]], name)
        assert value(entries, sentence[controller], name) == feature
        assert facts["attractor"] == any(noun_feature != feature for noun_feature in between)
