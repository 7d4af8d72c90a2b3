"""The end of a line is one rule for all readers: what `wc -l` counts, or that of an old Mac."""

import json

import pytest

from zoo.priors import arpa
from zoo.rescoring import lattices
from zoo.sources import conllu, evaluation_texts, files, nbest, text
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
    "stream": lambda path: [*files.read_lines(path)],
    "pieces": lambda path: [*files.lines_in(files.find(path))],
    "characters": lambda path: text.lines_of(files.read_text(files.find(path))),
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


def of_texts(reader):
    """The number of sentences that a source of texts reads in a file."""
    return lambda path: len(reader(path).sentences)


# {format: (suffix, lines before, what a line of text becomes, count of what is read)}
FORMATS = {
    "CoNLL-U": (
        ".conllu",
        (),
        lambda text: f"# text = {text}|1\tword" + 8 * "\t_" + "|",
        lambda path: len([*conllu.parse(files.lines_in(files.find(path)), path)]),
    ),
    "items": (
        ".tsv",
        ("sentence\tnumber",),
        lambda text: f"{text}\t1",
        of_texts(lambda path: evaluation_texts.read(path, evaluation_texts.Reading())),
    ),
    "csv": (
        ".csv",
        ("text,number",),
        lambda text: f"{text},1",
        of_texts(lambda path: Text(path, path).read("train")),
    ),
    "JSON": (
        ".jsonl",
        (),
        lambda text: "\r".join((json.dumps({"text": text}, ensure_ascii=False)[:-1], "}")),
        of_texts(lambda path: Text(path, path).read("train")),
    ),
    "ARPA": (
        ".arpa",
        ("\\data\\", "ngram 1=5", "", "\\1-grams:"),
        lambda text: f"-1.0\tword{text[0]}" + text[-1],
        lambda path: len(arpa.read(files.read_text(files.find(path)) + "\\end\\\n", path)[0]),
    ),
    "lattices": (
        ".slf",
        ("N=2 L=5", "I=0", "I=1"),
        lambda text: f"# {text}|J={'abcde'.index(text[0])} S=0 E=1 W=word",
        lambda path: len(next(lattices.read_lattices(path)).links),
    ),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("inside", INSIDE, ids=ascii)
@pytest.mark.parametrize("form", FORMATS)
def test_a_format_has_a_row_for_each_line(tmp_path, form, inside, end):
    suffix, before, made, count = FORMATS[form]
    lines = [f"{word} three{inside}four {word}{inside}" for word in "abcde"]
    rows = [row for line in lines for row in made(line).split("|")]
    assert count(written(tmp_path / f"it{suffix}", [*before, *rows], ENDS[end])) == 5


@pytest.mark.parametrize("reader", READERS)
def test_a_text_of_an_old_mac_has_lines(tmp_path, reader):
    path = written(tmp_path / "text.txt", ["one two", "three", "four"], "\r")
    assert len(READERS[reader](path)) == 3


def test_a_carriage_return_within_a_line_is_white_space():
    assert files.with_line_feeds("a\rb\r\nc\n") == "a b\nc\n"
    assert files.with_line_feeds("a\rb\r") == "a\nb\n"
