"""zoo align, and files of alignments and dictionaries."""

import re
import sys

import pytest

from zoo import __main__ as commands
from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.sources import pairs


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """call(*arguments) -> (exit code, what was printed, errors), in a folder of pairs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.en").write_text("the house\nThe book\na book\n\nhouse\n")
    (tmp_path / "b.fr").write_text("la maison\nle livre\nun livre\n\nmaison\n")

    def calling(*arguments):
        monkeypatch.setattr(sys, "argv", ["zoo", "align", *map(str, arguments)])
        code = program.run(commands.main)
        return code, *capsys.readouterr()

    return calling


def test_alignments_are_written_and_read_again(call, tmp_path):
    code, printed, errors = call("a.en", "b.fr", "--lower-case", "--dictionary", "d.tsv")
    assert (code, printed) == (0, "0-0 1-1\n0-0 1-1\n0-0 1-1\n\n0-0\n")
    log_likelihoods = re.findall(
        r"target given source, step \d of 5: (-\d\.\d{4}) nats per word", errors
    )
    assert len(log_likelihoods) == 6 and log_likelihoods == sorted(log_likelihoods, reverse=True)
    code, printed, _ = call("a.en", "b.fr", "--lower-case", "--output", "al")
    assert (code, printed) == (0, "")
    words = [["the", "house"], ["the", "book"], ["a", "book"], [], ["house"]]
    links = [[(0, 0), (1, 1)]] * 3 + [[], [(0, 0)]]
    assert pairs.read_alignments("al", words, words) == links
    dictionary = pairs.read_dictionary("d.tsv")
    assert dictionary["book"] == "livre" and dictionary["house"] == "maison"


def test_two_outputs_are_two_files(call, tmp_path, monkeypatch):
    """Whatever they are called; else the second takes the place of the first."""
    (tmp_path / "link").symlink_to("x")
    for output, dictionary in (("x", "x"), ("x", "./x"), ("link", "x")):
        code, printed, errors = call("a.en", "b.fr", "--output", output, "--dictionary", dictionary)
        assert (code, printed) == (2, "") and not (tmp_path / "x").exists()
        assert f"{dictionary} is named for two outputs, and the second would overwrite" in errors
    outputs = ("--output", "/dev/null", "--dictionary", "/dev/null")
    assert call("a.en", "b.fr", *outputs)[0] == 0
    line = "translate x --output t.png --alignments t.png"
    monkeypatch.setattr(sys, "argv", ["zoo", *line.split()])
    with pytest.raises(UserError, match=r"^t.png is named for two outputs, and the second"):
        commands.main()
