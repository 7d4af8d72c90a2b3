"""The parts of the page: curves, passports, bands, words, judgements, differences."""

import json
import math
import re

import numpy as np
import pytest

from tests.lab.comparison.test_comparison import PASSPORT
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.lab.comparison import learning_curves, page_differences, page_figures, page_text
from zoo.lab.comparison.comparison import Comparison, Group, in_texts
from zoo.lab.comparison.learning_curves import Curve
from zoo.lab.comparison.page_differences import Attended
from zoo.lab.evaluation.best_words import Contributions, KeptWords
from zoo.lab.evaluation.results import Column
from zoo.lab.evaluation.surprisal import Row
from zoo.lexicon import Lexicon


def test_curves_are_the_validations_of_the_metrics(tmp_path):
    lines = [
        {"step": 100, "training_loss": 3.0},
        {"step": 150, "epoch": 0, "validation_log_perplexity": 4.0, "epoch_training_loss": 5.0},
        {"step": 300, "epoch": 1, "validation_log_perplexity": "inf"},
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines) + '{"step": 4'
    metrics = tmp_path / "m.jsonl"
    metrics.write_text(content)
    fields = learning_curves.FIELDS["step"]
    found = learning_curves.read(metrics, fields)
    recipe = Group("a", 3, ())
    validation, training = page_figures.lines_of(Curve.of(recipe, [found]))
    assert validation == (3, [(150, 4.0), (300, math.inf)], False, [])
    assert training == (3, [(150, 5.0)], True, [])
    # Of two seeds the mean, and the least and the greatest.
    other = [{"step": 150, "validation_log_perplexity": 3.0}]
    validation, _ = page_figures.lines_of(Curve.of(recipe, [found, other]))
    assert validation == (3, [(150, 3.5)], False, [(150, 3.0, 4.0)])
    metrics.write_text('{"step": "x", "validation_log_perplexity": 1}')
    with pytest.raises(UserError, match=r"m\.jsonl, line 1, is not of a validation"):
        learning_curves.read(metrics, fields)


def test_what_is_not_comparable_is_told_with_its_reason():
    other = {**PASSPORT, "tokens": 99}
    groups = {"test (a)": {"a": PASSPORT}, "test (b)": {"b": other}}
    said = page_figures.comparability("test (a)", groups)
    assert "a and b cannot be compared on test, because tokens differs: 100 against 99" in said
    alike = page_figures.comparability("test", {"test": {"a": PASSPORT, "b": PASSPORT}})
    assert alike.startswith("These runs are comparable with each other.")


def groups_of(**passports):
    found = Comparison({name: name for name in passports})
    columns = {name: {Column.of(one): one for one in of} for name, of in passports.items()}
    vars(found).update(judged=(columns, {}), recipes={name: {} for name in passports})
    return in_texts(found)


def test_figures_of_one_quantity_are_a_group():
    other = {**PASSPORT, "data": {"path": "other.txt", "sha256": "def"}}
    carried = {**PASSPORT, "policies": {**PASSPORT["policies"], "state": "sentences"}}
    found = groups_of(a=[PASSPORT], b=[PASSPORT])
    assert {name: [*runs] for name, runs in found.items()} == {"test": ["a", "b"]}
    found = groups_of(a=[PASSPORT], b=[other])
    assert {name: [*runs] for name, runs in found.items()} == {"test (a)": ["a"], "test (b)": ["b"]}
    found = groups_of(a=[PASSPORT, carried])
    assert [*found] == ["test, carried (a)", "test, sentences (a)"]


def test_bands_in_words():
    names = ["unknown", "unseen", "1-9", "1000-9999", "10000+"]
    assert [page_figures.label(name) for name in names] == [
        "<unk>: unknown words",
        "never in training",
        "1 to 9 times",
        "1,000 to 9,999 times",
        "10,000 times or more",
    ]


def row(word, nats, **changed):
    bits = nats / math.log(2)
    return Row(1, "1", 1, 0, 3, word, word, 1, True, 12, nats, bits, True)._replace(**changed)


def test_a_word_is_a_button_with_its_colour():
    shown = page_text.word(0, row("<unk>", 1.5), "s1")
    assert 'class="w s1"' in shown and 'tabindex="0"' in shown and ">&lt;unk&gt;<" in shown
    boundary = page_text.word(4, row("\n", 1.5, counted=False), "s1")
    assert 'class="w s1 uncounted"' in boundary and 'tabindex="-1"' in boundary and "⏎" in boundary


def test_what_is_told_of_a_word():
    told = page_text.about(row("Chat", math.log(4), read_as="chat", training_count=1))
    assert told == [
        "surprisal 1.39 nats, 2.00 bits; probability 0.25",
        "read as chat",
        "once in training",
    ]
    unknown = page_text.about(row("x", 2.0, read_as="<unk>", known=False, training_count=0))
    assert unknown[1:] == ["read as an unknown word", "never in training"]
    assert page_text.about(row("x", math.nan)) == ["not predicted: the text begins with it"]


def test_features_are_listed_until_the_sum():
    features = tuple((f"f{number}", 10.0 - number) for number in range(10))  # 10, 9, ... 1
    lines = page_text.contributions(Contributions(-3.0, features, 54.0))
    assert lines[:2] == [["background, log b(x)", "−3.00"], ["f0", "10.00"]]
    assert lines[-3:] == [
        ["2 further features", "3.00"],
        ["− log Z", "−54.00"],
        ["sum, log p(x | h)", "−2.00"],  # -3 + 55 - 54
    ]


def test_kinds_of_pairs_end_with_all():
    figures = {
        "pairs": 10,
        "right": 6,
        "cases": {"number, 1": {"right": 4, "pairs": 5}, "all": {"right": 6, "pairs": 10}},
        "groups": {"field": {"syntax": {"right": 2, "pairs": 5}}},
    }
    found = page_figures.cases(figures)
    assert [*found] == ["number, 1", "field: syntax", "all"]
    assert (found["all"]["right"], found["all"]["pairs"]) == (6, 10)
    assert [*page_figures.cases({"right": 1, "pairs": 2, "cases": {"a": 0.5}})] == ["all"]


def kept(log_prob):
    words = np.array([0, 1, 2, 0, 1, 3], np.int32)
    every = np.ones(6, bool)
    text = EncodedText(words, every, every, np.array([0, 3]))
    return KeptWords(text, np.arange(6), np.array(log_prob, np.float32))


@pytest.mark.parametrize("rows", [None, 8])
def test_the_rows_in_which_a_carried_state_begins_empty_are_told(rows):
    scores = [kept([-1, -2, -3, -4, -5, -6]), kept([-2, -1, -3, -9, -9, -9])]
    told = page_differences._shares("a", "b", scores, rows)
    assert "Of 6 counted words a predicts 4 better (66.7%), and b 1 (16.7%)." in told
    assert ("the state begins empty in each of 8 rows of the text" in told) == bool(rows)


def test_words_that_differ_most():
    lexicon = Lexicon(("le", "chat", "dort", "rit"), np.ones(4, np.int64))
    one = kept([-1, -2, -3, -1, -2, -9])
    other = kept([-1, -4, -2.5, -1, -3, -1])
    found = page_differences.differences(one, other, lexicon)
    first, second = ([(row.sentence, row.before, row.word) for row in of] for of in found)
    assert first == [(1, "le", "chat")]  # +2, and after the same word again +1
    assert second == [(2, "le chat", "rit"), (1, "le chat", "dort")]  # -8, -0.5
    assert (found[1][0].one, found[1][0].other) == (-9, -1)


def test_attention_is_drawn_by_area():
    weights = np.array([[1.0, 0.0], [0.25, 0.75]])
    drawn = page_differences.drawing(Attended(["a", "b"], ["x", "y"], [], weights), "about <it>")
    sizes = re.findall(r'class="weight"[^>]* width="([\d.]+)"', drawn)
    assert [float(size) for size in sizes] == pytest.approx([18, 0, 9, 15.6], abs=0.05)
    assert "<title>y ← b: 0.75</title>" in drawn and "about &lt;it&gt;" in drawn
