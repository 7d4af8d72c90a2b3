"""Words of a text on the page: their colours, and what is told of them."""

import math

from zoo.lab.comparison import page_text
from zoo.lab.evaluation.best_words import Contributions
from zoo.lab.evaluation.surprisal import Row


def row(word, nats, **changes):
    bits = nats / math.log(2)
    return Row(1, "1", 1, 0, 3, word, word, 1, True, 12, nats, bits, True)._replace(**changes)


def test_a_word_is_a_button_with_its_colour():
    span = page_text.word_span(0, row("<unk>", 1.5), "s1")
    assert 'class="w s1"' in span and 'tabindex="0"' in span and ">&lt;unk&gt;<" in span
    boundary = page_text.word_span(4, row("\n", 1.5, counted=False), "s1")
    assert 'class="w s1 uncounted"' in boundary and 'tabindex="-1"' in boundary and "⏎" in boundary


def test_what_is_told_of_a_word():
    lines = page_text.describe_word(row("Chat", math.log(4), read_as="chat", training_count=1))
    assert lines == [
        "surprisal 1.39 nats, 2.00 bits; probability 0.25",
        "read as chat",
        "once in training",
    ]
    unknown = page_text.describe_word(row("x", 2.0, read_as="<unk>", known=False, training_count=0))
    assert unknown[1:] == ["read as an unknown word", "never in training"]
    assert page_text.describe_word(row("x", math.nan)) == ["not predicted: the text begins with it"]


def test_features_are_listed_until_the_sum():
    features = tuple((f"f{number}", 10.0 - number) for number in range(10))  # 10, 9, ... 1
    lines = page_text.contribution_rows(Contributions(-3.0, features, 54.0))
    assert lines[:2] == [["background, log b(x)", "−3.00"], ["f0", "10.00"]]
    assert lines[-3:] == [
        ["2 further features", "3.00"],
        ["− log Z", "−54.00"],
        ["sum, log p(x | h)", "−2.00"],  # -3 + 55 - 54
    ]
