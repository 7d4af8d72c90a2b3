"""Every malformed input of the tables here gets its sentence, in one line, and no traceback.

A table has a line "# NAME" of `readers.CALLS` and then inputs, each a Python literal or what
`readers.NAMES` make of one, with a tab and the sentence after it; "..." in a sentence stands for
what other libraries say, or for what is too long.
"""

import pathlib
import re

import pytest

from tests.malformed import readers

FOLDER = pathlib.Path(__file__).parent


def rows():
    """(name of a call, an input as it is written, its sentence), one for each line."""
    for table in sorted(FOLDER.glob("*.tsv")):
        name = None
        for line in table.read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                name = line.removeprefix("# ")
            else:
                yield (name, *line.split("\t"))


def pattern(sentence):
    """The regular expression of a sentence."""
    return ".*".join(map(re.escape, sentence.split("...")))


# pandas leaves a file open that it cannot read.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", readers.CALLS)
def test_every_input_gets_its_sentence(name, tmp_path):
    wrong = []
    for number, (of, text, expected) in enumerate(rows()):
        if of == name:
            folder = tmp_path / str(number)
            folder.mkdir()
            found = readers.sentence(name, text, folder)
            if found is None or not re.fullmatch(pattern(expected), found):
                wrong.append((text[:200], expected, found))
    assert not wrong


def test_the_inputs_are_many_and_differ():
    found = [(name, text) for name, text, _ in rows()]
    assert len(found) == len({*found}) >= 600
    assert {name for name, _ in found} == {*readers.CALLS}
    assert all(len(line.split("\t")) == 3 for line in map("\t".join, rows()))
