"""The time from the command to the first step needs a corpus."""

import pytest

from benchmarks import start


def test_the_folder_of_corpora_is_asked_for(monkeypatch):
    monkeypatch.setenv("ZOO_DATA", "corpora")
    assert start.texts() == ["corpora/ptb/ptb.train.txt", "corpora/ptb/ptb.valid.txt"]
    monkeypatch.delenv("ZOO_DATA")
    with pytest.raises(SystemExit, match=r"^ZOO_DATA is not set: set it to the folder that has"):
        start.texts()
