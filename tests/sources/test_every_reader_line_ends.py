"""The end of a line is one rule for all readers: what `wc -l` counts, or that of an old Mac."""

import json
import pathlib
import sys
import unittest.mock

import numpy as np
import pytest

from zoo import priors
from zoo.lab.commands import translate
from zoo.lab.evaluation import minimal_pairs, nbest, references
from zoo.lab.evaluation.changes.new_lexicon import listed_words
from zoo.lab.papers import Realisations
from zoo.lab.rescoring import lattices
from zoo.lexicon import Lexicon
from zoo.priors import arpa, grammar_rules
from zoo.sources import conllu, files, pairs, table_rows, text, text_formats
from zoo.sources.pairs import Pairs, Prefixed, RawPairs
from zoo.sources.text import RawText, Text
from zoo.sources.tokens import PLAIN

# White space and separators of Unicode that end no line.
INSIDE = ["\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"]
ENDS = {"line feeds": "\n", "Windows": "\r\n"}


def write_lines(path, lines, end):
    path.write_bytes("".join(line + end for line in lines).encode())
    return str(path)


READERS = {
    "text": lambda path: Text(path, path).read("train").sentences,
    "stream": lambda path: [*files.read_lines(path)],
    "pieces": lambda path: [*files.lines_in(files.find(path))],
    "characters": lambda path: text.lines_of(files.read_text(files.find(path))),
    "pairs": lambda path: Pairs((path, path), (path, path)).read("train").sentences,
    "n-best lists": lambda path: [*nbest.read_lines(path)],
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("inside", INSIDE, ids=ascii)
@pytest.mark.parametrize("reader", READERS)
def test_lines_are_as_many_as_wc_counts(tmp_path, reader, inside, end):
    lines = ["one two", f"three{inside}four", "five", f"six{inside}", f"{inside}seven"]
    path = write_lines(tmp_path / "text.txt", lines, ENDS[end])
    with open(path, "rb") as file:
        assert len(READERS[reader](path)) == file.read().count(b"\n") == len(lines)


def count_sentences(reader):
    """The number of sentences that a source of texts reads in a file."""
    return lambda path: len(reader(path).sentences)


def read_string(path):
    """Sentences of the text that `zoo.load(DIR).surprisal` takes, or such a one."""
    with open(path, newline="", encoding="utf-8") as file:
        text = files.with_line_feeds(file.read())
    return [
        *text_formats.parse_tokens(files.lines(text), pathlib.Path(path), path, PLAIN).sentences
    ]


def read_standard_input(path):
    """Lines that `zoo translate` reads from a pipe."""
    with open(path, encoding="utf-8") as file, unittest.mock.patch.object(sys, "stdin", file):
        return [*translate._standard_input()]


EMPTY = Lexicon(("<unk>", "</s>"), np.ones(2, int), unknown="<unk>", boundary="</s>")

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
        count_sentences(text_formats.read_tokens),
    ),
    "csv": (
        ".csv",
        ("text,number",),
        lambda text: f"{text},1",
        count_sentences(lambda path: Text(path, path).read("train")),
    ),
    "JSON": (
        ".jsonl",
        (),
        lambda text: "\r".join((json.dumps({"text": text}, ensure_ascii=False)[:-1], "}")),
        count_sentences(lambda path: Text(path, path).read("train")),
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
    "Kaldi's lattices": (
        ".lat",
        ("one",),
        # The last state is a link, too.
        lambda text: "1" if text[0] == "e" else f"0 1 {text[0]}{text[-1]}1,1,",
        lambda path: len(next(lattices.read_lattices(path)).links),
    ),
    "symbols": (
        ".txt",
        (),
        lambda text: f"{text[0]}{text[-1]}{'abcde'.index(text[0])}",
        lambda path: len(lattices.read_symbols(path)),
    ),
    "Kaldi's lists": (
        ".txt",
        (),
        lambda text: f"one-{'abcde'.index(text[0]) + 1}{text[-1]}{text}",
        lambda path: len(next(nbest.read_lists(path)[1]).hypotheses),
    ),
    "references": (
        ".txt",
        (),
        lambda text: f"{text[0]}\t{text}",
        lambda path: len(references.read_references(path, "abcde")),
    ),
    "pairs in a table": (
        ".tsv",
        (),
        lambda text: f"{text}\t{text}",
        lambda path: len(Pairs((path,), (path,)).read("train").sentences),
    ),
    "raw pairs": (
        ".txt",
        (),
        lambda text: text,
        lambda path: len(RawPairs((path, path), (path, path)).read("train").sentences),
    ),
    "raw text": (
        ".txt",
        (),
        lambda text: text,
        lambda path: len([*RawText(path, path).raw_sentences(path)]),
    ),
    "questions": (
        ".tsv",
        (),
        lambda text: f"{text}\t{text}",
        count_sentences(lambda path: Prefixed(path, path).read("train")),
    ),
    "realisations": (
        ".csv",
        ("mr,ref",),
        lambda text: f"{text},{text}",
        count_sentences(lambda path: Realisations(path, path).read("train")),
    ),
    "alignments": (
        ".txt",
        (),
        lambda text: f"0-0{text[-1]}1-1",
        lambda path: len(pairs.read_alignments(path, 5 * [["a", "b"]], 5 * [["c", "d"]])),
    ),
    "dictionary": (
        ".tsv",
        (),
        lambda text: f"{text[0]}{text[-1]}\tword",
        lambda path: len(pairs.read_dictionary(path)),
    ),
    "facts": (
        ".tsv",
        ("subject\trelation",),
        lambda text: f"{text[0]}{text[-1]}\tword",
        lambda path: len(table_rows.read_table(path)[1]),
    ),
    "table of features": (
        ".tsv",
        ("form\tPOS",),
        lambda text: f"{text[0]}\t{text}",
        lambda path: len(priors.WordTable(path)._read(files.find(path))),
    ),
    "list of words": (
        ".txt",
        (),
        lambda text: f"{text[0]}{text[-1]}",
        lambda path: len(priors.WordList(path)._read(files.find(path))),
    ),
    "lexicon": (
        ".txt",
        (),
        lambda text: f"{text[0]}{text[-1]}",
        lambda path: len(listed_words(path, EMPTY)),
    ),
    "grammar": (
        ".grammar",
        (),
        lambda text: f'{text[0]}: "{text}"',
        lambda path: len(grammar_rules.read(files.read_text(files.find(path)), path).starts),
    ),
    **{
        f"minimal pairs, {name}": (
            ".txt",
            before,
            make_rows,
            lambda path: len(minimal_pairs.read(path)),
        )
        for name, before, make_rows in (
            ("columns", ("sentence_good\tsentence_bad",), lambda text: f"{text}\tthe {text}"),
            ("commas", ("good,bad",), lambda text: f"{text},the {text}"),
            ("JSON", (), lambda text: json.dumps({"sentence_good": text, "sentence_bad": "a"})),
            ("labels", (), lambda text: f"True\t{text}|False\tthe {text}"),
        )
    },
    "a string": (".txt", (), lambda text: text, lambda path: len(read_string(path))),
    "standard input": (".txt", (), lambda text: text, lambda path: len(read_standard_input(path))),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("inside", INSIDE, ids=ascii)
@pytest.mark.parametrize("form", FORMATS)
def test_a_format_has_a_row_for_each_line(tmp_path, form, inside, end):
    suffix, before, make_rows, count = FORMATS[form]
    lines = [f"{word} three{inside}four {word}{inside}" for word in "abcde"]
    rows = [row for line in lines for row in make_rows(line).split("|")]
    assert count(write_lines(tmp_path / f"it{suffix}", [*before, *rows], ENDS[end])) == 5


@pytest.mark.parametrize("reader", READERS)
def test_a_text_of_an_old_mac_has_lines(tmp_path, reader):
    path = write_lines(tmp_path / "text.txt", ["one two", "three", "four"], "\r")
    assert len(READERS[reader](path)) == 3


def test_a_carriage_return_within_a_line_is_white_space():
    assert files.with_line_feeds("a\rb\r\nc\n") == "a b\nc\n"
    assert files.with_line_feeds("a\rb\r") == "a\nb\n"
