"""What the check of planted mistakes reads; `make lint` runs the check itself."""

import pytest

from tests.typing import check_planted


def test_marks_and_reports_are_read():
    text = "x = 1\nf(x, y)  # expected: call-arg, arg-type\n"
    output = (
        'tests/typing/planted_mistakes.py:2: error: Too many arguments for "f"  [call-arg]\n'
        "tests/typing/planted_mistakes.py:2: note: no mistake  [note]\n"
        "tests/typing/planted_mistakes.py:2: error: Argument 1  [arg-type]\n"
    )
    assert check_planted.expected(text) == {2: ["arg-type", "call-arg"]}
    assert check_planted.reported(output) == {2: ["arg-type", "call-arg"]}
    assert len(check_planted.expected(check_planted.FILE.read_text())) == 25


@pytest.mark.slow
def test_mypy_finds_the_planted_mistakes_and_no_others():
    pytest.importorskip("mypy")
    assert check_planted.main() == 0
