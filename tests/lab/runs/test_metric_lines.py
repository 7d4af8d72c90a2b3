"""Lines of metrics.jsonl: which are whole, which a kill cut short, and which are damaged."""

import pytest

from zoo.lab.runs import metric_lines


def test_a_whole_line_is_parsed():
    line = b'{"step": 7, "gradient_norm": "inf"}'
    assert metric_lines.parse(line, 7) == {"step": 7, "gradient_norm": "inf"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"step": -10}', "step is -10, where at least 0 should be"),
        (b'{"step": true}', "step is true, where a whole number should be"),
        (b'{"step": 1.5}', "step is 1.5, where a whole number should be"),
        (b'{"step": 1, "training_loss": NaN}', "it has NaN, which is not a finite number"),
        (b"[1,2]", "it is a list, where an object should be"),
        (b"\xff", "can't decode byte 0xff"),
    ],
)
def test_a_damaged_line_is_refused(line, message):
    with pytest.raises(ValueError, match=message):
        metric_lines.parse(line)


@pytest.mark.parametrize("line", [b"", b'{"st', b'{"step": ', b'{"step": 4, "epo'])
def test_a_line_that_was_cut_short_is_the_beginning_of_a_line(line):
    assert metric_lines.is_cut(line)


@pytest.mark.parametrize("line", [b'{"step": 4}', b"12", b"\x00\x00", b'{"epoch": 4, "st'])
def test_other_text_was_not_cut_short(line):
    assert not metric_lines.is_cut(line)
