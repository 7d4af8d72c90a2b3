"""The end of a line is one rule for all readers: what `wc -l` counts, or that of an old Mac."""

import io
import json
import sys

import pytest

from zoo.commands import translation_input
from zoo.evaluation import minimal_pairs
from zoo.priors import arpa
from zoo.sources import characters, evaluation_texts, files, lattices, nbest, shards, streams
from zoo.sources.evaluation_texts import Reading
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


def treebank(first, second):
    rows = ["# text = {}", "1\tone\tone" + "\t_" * 7, "2\ttwo\ttwo" + "\t_" * 7, ""]
    return [row.format(text) for text in (first, second) for row in rows]


def slf(first, second):
    return [
        *("VERSION=1.0", f"# {first}", f"# {second}", "N=2 L=1", "I=0 t=0.0", "I=1 t=0.5"),
        "J=0 S=0 E=1 W=yes a=-1.0 l=-1.0",
    ]


def given(path):
    return evaluation_texts.read(path, Reading()).sentences


def in_shards(path):
    return shards.write([path], f"{path}.shards")["sentences"]


# {format: (lines that hold two texts, what reads them, how many it finds)}
FORMATS = {
    "treebank": (treebank, given, 2),
    "table of items": (lambda *texts: ["item\tsentence", *map("7\t{}".format, texts)], given, 2),
    "table of words": (lambda *texts: ["item\tword", *map("7\t{}".format, texts)], given, 1),
    "lines to judge": (lambda *texts: [*texts], given, 2),
    "table of texts": (
        lambda *texts: ["n\ttext", *map("7\t{}".format, texts)],
        lambda path: Text(path, path).read("train").sentences,
        2,
    ),
    "twins": (lambda *texts: [f"True\t{texts[0]}", f"False\t{texts[1]}"], minimal_pairs.read, 1),
    "n-grams": (
        lambda *texts: [
            *texts,
            "\\data\\",
            "ngram 1=2",
            "",
            "\\1-grams:",
            "-1\ta",
            "-1\tb",
            "\\end\\",
        ],
        lambda path: arpa.read(files.read_text(files.find(path)), path)[0],
        2,
    ),
    "lattice": (slf, lambda path: [*lattices.read_lattices(path)], 1),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("inside", INSIDE, ids=ascii)
@pytest.mark.parametrize("name", FORMATS)
def test_records_are_as_many_as_lines_with_feeds(tmp_path, name, inside, end):
    lines, reader, count = FORMATS[name]
    texts = f"three{inside}four", f"three{inside}five"
    suffix = {"table of texts": ".tsv", "lattice": ".slf"}.get(name, "")
    assert len(reader(written(tmp_path / f"text{suffix}", lines(*texts), ENDS[end]))) == count


@pytest.mark.parametrize("inside", INSIDE, ids=ascii)
def test_shards_and_lists_have_a_line_each(tmp_path, inside):
    path = written(tmp_path / "text", [f"one{inside}two", "three"], "\n")
    assert in_shards(path) == 2


@pytest.mark.parametrize("inside", ["\x85", "\u2028", "\u2029"], ids=ascii)
def test_json_holds_separators_as_they_are(tmp_path, inside):
    lines = [json.dumps({"text": f"one{inside}{n}"}, ensure_ascii=False) for n in range(3)]
    path = written(tmp_path / "text.jsonl", lines, "\n")
    assert len(Text(path, path).read("train").sentences) == 3


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("inside", INSIDE, ids=ascii)
def test_standard_input_has_as_many_lines(monkeypatch, inside, end):
    content = f"one{inside}two{ENDS[end]}three{ENDS[end]}".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    lines = [*translation_input._standard_input()]
    assert [line.split()[0] for line in lines] in (["one", "three"], [f"one{inside}two", "three"])


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
