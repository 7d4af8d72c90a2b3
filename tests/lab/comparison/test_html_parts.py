"""Text is escaped, and numbers have the digits that tell something."""

import json
import math

import pytest

from zoo.lab import table
from zoo.lab.comparison import html_parts


def test_text_cannot_become_html():
    markup = table.escape('<b> & "a"\x1b[31m')
    assert markup == "&lt;b&gt; &amp; &quot;a&quot;\\x1b[31m"


def test_data_cannot_end_its_element():
    value = {"word": "</script><script>alert(1)</script>&"}
    plain = html_parts.json_data(value)
    assert "<" not in plain and ">" not in plain and "&" not in plain
    assert json.loads(plain) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1234.5678, "1,234.57"), (-0.5, "−0.50"), (-0.001, "0.00"), (math.inf, "∞"), (math.nan, "–")],
)
def test_numbers(value, expected):
    assert html_parts.number(value, 2) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.0, "1"), (0.0421, "0.042"), (0.00012, "1.2e−4"), (3.21e-12, "3.2e−12")],
)
def test_probabilities(value, expected):
    assert html_parts.probability(math.log(value)) == expected


def test_reasons_are_told_once():
    lines = html_parts.omissions([("a", "no file."), ("b", "too old."), ("c", "no file.")])
    assert lines == (
        '<p class="missing"><strong>a, c</strong>: left out: no file.</p>'
        '<p class="missing"><strong>b</strong>: left out: too old.</p>'
    )
