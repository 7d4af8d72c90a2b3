"""Every malformed input of the tables here gets its sentence, in one line, and no traceback.

A table has a line "# NAME" of `CALLS` and then inputs, each a Python literal or what
`NAMES` make of one, with a tab and the sentence after it; "..." in a sentence stands for
what other libraries say, or for what is too long. Inputs below "# NAME (slow)" are tested by `make
test-all` alone. A new kind of input is a module of `doors` with its own `CALLS`, perhaps `NAMES`,
and the table of the same name beside it.
"""

import pathlib
import re

import pytest

from tests.malformed import doors, readers

FOLDER = pathlib.Path(__file__).parent
SLOW = " (slow)"
CALLS, NAMES = dict(readers.CALLS), dict(readers.NAMES)
for door in doors.modules():
    CALLS |= door.CALLS
    NAMES |= getattr(door, "NAMES", {})


def rows():
    """(name of a call, whether it is slow, an input, its sentence) of each line."""
    for table in sorted(FOLDER.rglob("*.tsv")):
        name, slow = None, False
        for line in table.read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                name = line.removeprefix("# ").removesuffix(SLOW)
                slow = line.endswith(SLOW)
            else:
                yield (name, slow, *line.split("\t"))


def pattern(sentence):
    """The regular expression of a sentence."""
    return ".*".join(map(re.escape, sentence.split("...")))


def sentences(name, slow, folder):
    """The inputs of a call that did not get their sentence, with it and with what they got."""
    wrong = []
    for number, (call, is_slow, text, expected) in enumerate(rows()):
        if (call, is_slow) == (name, slow):
            place = folder / str(number)
            place.mkdir()
            message = readers.sentence(CALLS[name], text, NAMES, place)
            if message is None or not re.fullmatch(pattern(expected), message):
                wrong.append((text[:200], expected, message))
    return wrong


# pandas leaves a file open that it cannot read.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", CALLS)
def test_every_input_gets_its_sentence(name, tmp_path):
    assert not sentences(name, False, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", sorted({name for name, slow, _, _ in rows() if slow}))
def test_every_slow_input_gets_its_sentence(name, tmp_path):
    assert not sentences(name, True, tmp_path)


def test_the_inputs_are_many_and_differ():
    inputs = [(name, text) for name, _, text, _ in rows()]
    assert len(inputs) == len({*inputs}) >= 600
    assert {name for name, _ in inputs} == {*CALLS}
    assert all(len(row) == 4 for row in rows())
