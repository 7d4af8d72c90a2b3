"""The small run that tests of this folder take, and a reader of texts to be judged."""

import pytest

from tests.trained_run import run, trained, workdir
from zoo.sources import text_formats
from zoo.sources.tokens import PLAIN

__all__ = ["run", "trained", "workdir"]


@pytest.fixture
def read(tmp_path):
    """read(text, name, reading) -> the text as given, with the line breaks of the string."""

    def reading(text, name="text.txt", reading=PLAIN, part="", column="text", blank="skipped"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return text_formats.read_tokens(f"{path}{part}", reading, column, blank)

    return reading
