"""The end of a line is one rule for all readers: what `wc -l` counts, or that of an old Mac."""

import pytest

from zoo.sources import characters, files, nbest, streams
from zoo.sources.pairs import Pairs
from zoo.sources.text import Text

# White space and separators of Unicode that end no line.
INSIDE = ["\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"]
ENDS = {"line feeds": "\n", "Windows": "\r\n"}


def written(path, lines, end):
    path.write_bytes("".join(line + end for line in lines).encode())
    return str(path)


READERS = {
    "text": lambda path: Text(path, path).read("train").sentences,
    "stream": lambda path: [*streams.read_lines(path)],
    "characters": lambda path: characters.lines_of(files.read_text(files.find(path))),
    "pairs": lambda path: Pairs((path, path), (path, path)).read("train").sentences,
    "n-best lists": lambda path: [*nbest.lines_of(path)],
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("inside", INSIDE, ids=ascii)
@pytest.mark.parametrize("reader", READERS)
def test_lines_are_as_many_as_wc_counts(tmp_path, reader, inside, end):
    lines = ["one two", f"three{inside}four", "five", f"six{inside}", f"{inside}seven"]
    path = written(tmp_path / "text.txt", lines, ENDS[end])
    with open(path, "rb") as file:
        assert len(READERS[reader](path)) == file.read().count(b"\n") == len(lines)


@pytest.mark.parametrize("reader", READERS)
def test_a_text_of_an_old_mac_has_lines(tmp_path, reader):
    path = written(tmp_path / "text.txt", ["one two", "three", "four"], "\r")
    assert len(READERS[reader](path)) == 3


def test_a_carriage_return_within_a_line_is_white_space():
    assert files.with_line_feeds("a\rb\r\nc\n") == "a b\nc\n"
    assert files.with_line_feeds("a\rb\r") == "a\nb\n"


def test_parallel_lines_stay_beside_each_other(tmp_path):
    """Of 120 lines, one with a carriage return on either side and one on the left alone."""
    lines = [f"number {n}" for n in range(120)]
    left, right = [*lines], [*lines]
    left[10], right[50], left[70], right[70] = "number\r 10", "number 50\r", "num\rber", "num\rber"
    paths = written(tmp_path / "a.en", left, "\n"), written(tmp_path / "a.fr", right, "\n")
    corpus = Pairs(paths, paths).read("train")
    sources = corpus.source_text.sentences
    assert len(corpus.sentences) == 120
    for first, second in zip(sources, corpus.sentences, strict=True):
        assert [*first][-1] == [*second][-1]
