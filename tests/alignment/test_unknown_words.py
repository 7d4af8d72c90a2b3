"""Unknown words annotated and put in: the example of Luong et al. 2015, and others by hand."""

import numpy as np
import pytest

from zoo.alignment import (
    STRATEGIES,
    Copyable,
    PositionalAll,
    PositionalUnknown,
    in_sentence_order,
    learn_dictionary,
    most_attended,
    restore_by_attention,
)

# Figure 1 of the paper, with one word left out of each lexicon besides.
SOURCE = ["The", "ecotax", "portico", "in", "Pont-de-Buis", ",", "was"]
TARGET = ["Le", "portique", "écotaxe", "de", "Pont-de-Buis", ",", "était"]
LINKS = [(0, 0), (2, 1), (1, 2), (3, 3), (4, 4), (5, 5), (6, 6)]
LEXICONS = {*["The", "in", ",", "was"]}, {*["Le", "de", ","]}
DICTIONARY = {"ecotax": "écotaxe", "portico": "portique"}


def test_copyable():
    strategy = Copyable(numbers=3)
    source, target = strategy.annotate(SOURCE, TARGET, LINKS, *LEXICONS)
    assert source == ["The", "<unk_1>", "<unk_2>", "in", "<unk_3>", ",", "was"]
    # The last word is aligned with a known one.
    assert target == ["Le", "<unk_2>", "<unk_1>", "de", "<unk_3>", ",", "<unk_null>"]
    assert source == strategy.annotate_source(SOURCE, LEXICONS[0])
    restored = strategy.restore(target, SOURCE, DICTIONARY, LEXICONS[0])
    assert restored == [*TARGET[:-1], "<unk>"]
    assert strategy.marks() == ("<unk_1>", "<unk_2>", "<unk_3>", "<unk_null>")


def test_copyable_numbers_equal_words_alike_and_only_so_many():
    strategy = Copyable(numbers=1)
    source, target = strategy.annotate([*"xyx"], [*"abc"], [(0, 0), (1, 1), (2, 2)], {}, {})
    assert source == ["<unk_1>", "<unk>", "<unk_1>"]
    assert target == ["<unk_1>", "<unk_null>", "<unk_1>"]
    # The translator may write any mark, <unk_2> too, though no word has that number.
    assert strategy.restore(["<unk_1>", "<unk_2>"], [*"xyx"], {}, {}) == ["x", "<unk>"]


def test_positional_all():
    strategy = PositionalAll(reach=2)
    source, target = strategy.annotate(SOURCE, TARGET, LINKS[1:], *LEXICONS)
    assert source == ["The", "<unk>", "<unk>", "in", "<unk>", ",", "was"]
    assert " ".join(target) == (
        "Le <p_null> <unk> <p_-1> <unk> <p_1> de <p_0> <unk> <p_0> , <p_0> <unk> <p_0>"
    )
    restored = strategy.restore(target, SOURCE, {**DICTIONARY, "was": "était"}, LEXICONS[0])
    assert restored == TARGET
    assert strategy.marks() == ("<p_-2>", "<p_-1>", "<p_0>", "<p_1>", "<p_2>", "<p_null>")


def test_positional_unknown():
    strategy = PositionalUnknown(reach=1)
    source, target = strategy.annotate(SOURCE, TARGET, LINKS[:-1], *LEXICONS)
    assert source == ["The", "<unk>", "<unk>", "in", "<unk>", ",", "was"]
    assert target == ["Le", "<unkpos_-1>", "<unkpos_1>", "de", "<unkpos_0>", ",", "<unkpos_null>"]
    assert strategy.restore(target, SOURCE, DICTIONARY, LEXICONS[0]) == [*TARGET[:-1], "<unk>"]
    assert len(PositionalUnknown().marks()) == 16  # -7 to 7, and null


def test_links_beyond_reach_are_none_and_the_nearest_of_several_counts():
    strategy = PositionalUnknown(reach=2)
    links = [(0, 3), (2, 1), (0, 1), (3, 2), (1, 2)]
    _, target = strategy.annotate([*"abcd"], [*"wxyz"], links, {}, {})
    # Of (2, 1) and (0, 1) both one away, the earlier source word; the same of (1, 2) and (3, 2).
    assert target == ["<unkpos_null>", "<unkpos_1>", "<unkpos_1>", "<unkpos_null>"]


def test_marks_that_lead_out_of_the_source_stay_unknown():
    output = ["a", "<unkpos_5>", "<unkpos_-5>", "<unkpos_null>"]
    assert PositionalUnknown().restore(output, ["b", "c"], {}, {}) == ["a", *["<unk>"] * 3]


def test_positional_all_takes_odd_outputs_as_they_are():
    restore = PositionalAll().restore
    # A mark at the start, two in a row, an unknown word without one, and one at the end.
    output = ["<p_0>", "a", "<p_0>", "<p_1>", "<unk>", "<unk>", "<p_0>", "<unk>"]
    assert restore(output, [*"xyz"], {}, {}) == ["a", "<unk>", "z", "<unk>"]
    assert restore([], [], {}, {}) == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_wrong_pairs_are_errors(name):
    strategy = STRATEGIES[name]()
    for link in ((2, 0), (0, 1), (-1, 0)):
        with pytest.raises(ValueError, match="lies outside a pair of 2 and 1 words"):
            strategy.annotate(["a", "b"], ["c"], [link], {}, {})
    for mark in strategy.marks():
        with pytest.raises(ValueError, match="is a mark of unknown words"):
            strategy.annotate([mark], ["c"], [], {}, {})
        with pytest.raises(ValueError, match="is a mark of unknown words"):
            strategy.annotate(["c"], [mark], [], {}, {})


@pytest.mark.parametrize("name", STRATEGIES)
def test_known_words_stay_as_they_are_and_unknown_ones_come_back(name):
    generator = np.random.default_rng(4)
    strategy = STRATEGIES[name]()
    for _ in range(30):
        source = [f"w{n}" for n in generator.integers(0, 12, generator.integers(1, 7))]
        order = generator.permutation(len(source)).tolist()
        links = [(i, j) for j, i in enumerate(order)]
        target = [source[i].upper() for i in order]
        lexicon_words = {f"w{n}" for n in range(6)}
        annotated = strategy.annotate(
            source, target, links, lexicon_words, {w.upper() for w in lexicon_words}
        )
        assert {*annotated[1]} <= {*strategy.marks(), "<unk>", *(w.upper() for w in lexicon_words)}
        dictionary = {word: word.upper() for word in source}
        assert strategy.restore(annotated[1], source, dictionary, lexicon_words) == target


def test_attention_puts_in_the_most_attended_word():
    weights = np.array([[0.9, 0.1, 0.0], [0.2, 0.4, 0.4], [0.1, 0.2, 0.7]])
    output, source = ["le", "<unk>", "<unk>"], ["the", "cat", "Pont"]
    expected = ["le", "chat", "Pont"]  # of equal weights the earlier
    assert restore_by_attention(output, source, weights, {"cat": "chat"}) == expected
    with pytest.raises(ValueError, match=r"shape \(3, 2\) for 3 output and 3 source"):
        restore_by_attention(output, source, weights[:, :2], {})
    with pytest.raises(ValueError, match="NaN"):
        restore_by_attention(output, source, weights * np.nan, {})
    assert restore_by_attention(["<unk>"], [], np.zeros((1, 0)), {}) == ["<unk>"]


def test_a_dictionary_has_the_most_frequent_translation():
    sources = [["a", "b"], ["a", "b"], ["a"], ["c", "c"]]
    targets = [["x", "y"], ["x", "z"], ["y"], ["y", "x"]]
    links = [[(0, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0)], [(0, 0), (1, 1)]]
    # b: y and z once each, and z is aligned with nothing else. c: x and y three times each in all.
    assert learn_dictionary(sources, targets, links) == {"a": "x", "b": "z", "c": "x"}
    assert learn_dictionary(sources, targets, links, min_links=2) == {"a": "x"}
    backwards = (sources[::-1], targets[::-1], links[::-1])
    assert learn_dictionary(*backwards) == learn_dictionary(sources, targets, links)
    with pytest.raises(ValueError, match="zip"):
        learn_dictionary(sources, targets, links[:-1])


# Source a b c, target X Y: rows are X and Y, columns a, b and c.
EXPECTED = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])
# As a decoder gives them: two columns of padding on the left, then the boundary's row and padding.
DECODED = {
    "forward": [[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]],
    "source_reversed": [[0.2, 0.7, 0.1], [0.3, 0.2, 0.5]],
    "target_reversed": [[0.5, 0.2, 0.3], [0.1, 0.7, 0.2]],
}


@pytest.mark.parametrize("order", DECODED)
@pytest.mark.parametrize("padding", [0, 2])
def test_rows_and_columns_are_those_of_the_sentences(order, padding):
    weights = np.full((2 + padding, padding + 3), 0.9)
    weights[:2, padding:] = DECODED[order]
    in_order = in_sentence_order(weights, 3, 2, order)
    np.testing.assert_array_equal(in_order, EXPECTED)
    assert most_attended(in_order) == [(1, 0), (0, 1)]
    assert most_attended(np.array([[0.4, 0.4, 0.2]])) == [(0, 0)]  # of equal weights the earlier


def test_too_few_rows_or_columns_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 3\) for 3 target and 3 source words"):
        in_sentence_order(EXPECTED, 3, 3, "forward")
    with pytest.raises(ValueError, match=r"for 2 target and 4 source words"):
        in_sentence_order(EXPECTED, 4, 2, "forward")
