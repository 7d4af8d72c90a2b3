"""Readers take time and memory in proportion to their input, also where it is of the worst shape.

A text of n units, such as marks, rows or links, is read beside one of 16 n. Memory is counted by
the allocator. Time is the least of many runs on the process's own clock, and a reader is measured
again before it is found too slow: a reader that is linear may take three times as long for a unit
of the longer text, which leaves the processor's caches; of a quadratic one each takes 16 times.
"""

import gc
import json
import math
import pathlib
import time
import tracemalloc
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from zoo.data import Characters, Conllu, Pairs, RawPairs, RawText, Text
from zoo.errors import UserError
from zoo.lab.evaluation import minimal_pairs, nbest, references
from zoo.lab.papers import Overnight, Realisations
from zoo.lab.rescoring import lattices, reranking
from zoo.priors import arpa, grammar_rules
from zoo.sources import files, moses, text, text_formats

TIMES = 16
# The largest powers of the size with which memory and time may grow; 1 is proportional.
MOST_MEMORY = TIMES**1.2
MOST_TIME = TIMES**1.4
RUNS = 5
ROUNDS = 20


SUITE_ITEM = (
    '{"item_number": {}, "conditions": [{"condition_name": "a", "regions": '
    '[{"region_number": 1, "content": "a b"}, {"region_number": 2, "content": ""}]}]}'
)


class Reader(NamedTuple):
    """A reader, the text of n units that is hardest for it, and a number of units to begin with."""

    read: Callable[[str], object]
    text: Callable[[int], str]
    units: int
    suffix: str = ".txt"


def source(kind, **options):
    """Returns a function that reads a file as the training text of a source."""
    return lambda path: kind(train=path, validation=path, **options).read("train")


def both_sides(kind, **options):
    """Returns a function that reads a file as both sides of parallel text."""
    return lambda path: kind((path, path), (path, path), **options).read("train")


def table(kind, **options):
    """Returns a function that reads a file as a table of pairs."""
    return lambda path: kind((path,), (path,), **options).read("train")


def lines(line, before="", after=""):
    """Returns a function that makes n lines of a line with its number for {}."""
    return lambda n: before + "".join(line.replace("{}", str(i)) for i in range(n)) + after


def token(number, form, feats="_", deps="_", misc="_"):
    return f"{number}\t{form}\t{form}\tNOUN\t_\t{feats}\t0\troot\t{deps}\t{misc}\n"


def joined(*parts):
    """Returns a function that joins parts, of which the functions make n units."""
    return lambda n: "".join(part(n) if callable(part) else part for part in parts)


def items(item, between=""):
    """Returns a function that joins n items, each with its number for {}."""
    return lambda n: between.join(item.replace("{}", str(i)) for i in range(n))


def short_rows(n, delimiter):
    """Returns a table of n columns whose n rows end after the first."""
    names = delimiter.join(("text", *(f"c{i}" for i in range(n - 1))))
    return names + "\n" + "word\n" * n


def rows_of_other_names(n):
    return "".join(json.dumps({"text": "a b", f"name{i}": 1}) + "\n" for i in range(n))


def arpa_of(n):
    """Returns a model of n words and n bigrams."""
    head = f"\\data\\\nngram 1={n}\nngram 2={n}\n\n\\1-grams:\n"
    bigrams = items("-1\tw{} w0\n")(n)
    return f"{head}{items('-1 w{} -0.1' + chr(10))(n)}\n\\2-grams:\n{bigrams}\n\\end\\\n"


def slf_of(n):
    """Returns a lattice of a chain of n links, with another link beside each."""
    nodes = items("I={}\n")(n + 1)
    links = "".join(
        f"J={2 * i + k} S={i} E={i + 1} W=w{i} a=-1 l=-2\n" for i in range(n) for k in (0, 1)
    )
    return f"N={n + 1} L={2 * n}\n{nodes}{links}"


def kaldi_of(n):
    """Returns a lattice of a chain of n arcs."""
    return "name\n" + "".join(f"{i} {i + 1} w{i} 1,2\n" for i in range(n)) + f"{n}\n\n"


def judged(path):
    """Reads minimal pairs, and tells the figures of their groups."""
    pairs = minimal_pairs.read(path)
    good = np.zeros(len(pairs))
    scores = minimal_pairs.PairScores(
        good, good, good == 0, groups=tuple(pair.groups for pair in pairs)
    )
    return minimal_pairs.describe(path, scores), scores.figures()


def consumed(read):
    """Returns a function that reads all items of an iterator."""
    return lambda path: [*read(path)]


def nbest_lists(path, **options):
    return [*nbest.read_lists(path, **options)[1]]


def references_of(path):
    count = files.read_text(pathlib.Path(path)).count("\n")
    return references.read_references(path, [f"u{i}" for i in range(count)])


def plain_references(path):
    count = files.read_text(pathlib.Path(path)).count("\n")
    return references.read_references(path, [str(i) for i in range(count)])


def refused(read):
    """Returns a function that expects a reader to refuse a file."""

    def call(path):
        with pytest.raises((UserError, ValueError)):
            read(path)

    return call


READERS = {
    **{
        f"raw text, a line of {mark}": Reader(source(RawText), items(mark), 1000)
        for mark in ("!", "… ", '!" ', "'", "a.", "\u0301", "。")
    },
    "raw text, wrapped": Reader(
        lambda path: text.paragraphs(files.read_text(pathlib.Path(path)).split("\n")),
        items("a" * 99, "\n"),
        1000,
    ),
    "text, blank lines": Reader(source(Text, blank_lines="kept"), lines("\n", "a"), 2500),
    "text, a line": Reader(source(Text), items("a b "), 5000),
    "text, marks before it": Reader(source(Text), joined(items("<s> "), "a"), 1000),
    "text, marks after it": Reader(source(Text), joined("a", items(" </s>")), 1000),
    "characters": Reader(source(Characters), items("ab"), 10_000),
    "csv, short rows": Reader(source(Text), lambda n: short_rows(n, ","), 500, ".csv"),
    "tsv, short rows": Reader(source(Text), lambda n: short_rows(n, "\t"), 500, ".tsv"),
    "jsonl, other names": Reader(source(Text), rows_of_other_names, 500, ".jsonl"),
    "json, a list": Reader(
        source(Text), joined("[", items('{"text": "a", "n{}": 1}', ", "), "]"), 500, ".json"
    ),
    "json, an object": Reader(
        source(Text), joined('{"text": "a"', items(', "n{}": 1'), "}"), 1000, ".json"
    ),
    "strict json, a name twice": Reader(
        refused(reranking.Weights.read),
        joined('{"weights": {"n0": 1', items(', "x{}": 1'), ', "twice": 1, "twice": 1}}'),
        1000,
    ),
    "pairs, a column": Reader(table(Pairs), lines("{} a\tb c\n"), 250, ".tsv"),
    "raw pairs": Reader(both_sides(RawPairs), items("!"), 1000),
    "treebank, sentences": Reader(source(Conllu), lines(token(1, "a{}") + "\n"), 125),
    "treebank, a sentence": Reader(
        source(Conllu), lambda n: "".join(token(i + 1, f"w{i}") for i in range(n)), 125
    ),
    "treebank, features": Reader(
        source(Conllu), lambda n: token(1, "a", items("F{}=v", "|")(n)), 1000
    ),
    "treebank, a comment": Reader(
        source(Conllu), joined("# text = a", items(" "), "b\n" + token(1, "a")), 2500
    ),
    "given table": Reader(text_formats.read_tokens, lines("{}\ta b\n", "item\tsentence\n"), 100),
    "given words": Reader(text_formats.read_tokens, lines("{}\tw{}\n", "item\tword\n"), 100),
    "given treebank": Reader(
        text_formats.read_tokens,
        lambda n: "".join(token(i + 1, f"w{i}") for i in range(n)),
        125,
        ".conllu",
    ),
    "n-best, one list": Reader(nbest_lists, lines("0 ||| a{} b ||| f= -1 ||| -{}\n"), 500),
    "n-best, features": Reader(nbest_lists, joined("0 ||| a ||| ", items("f{}= 1 ")), 500),
    "n-best, Kaldi": Reader(
        nbest_lists, lambda n: "".join(f"u-{i + 1} a b\n" for i in range(n)), 500
    ),
    "n-best, JSON": Reader(nbest_lists, lines('{"id": {}, "hypotheses": ["a", "b"]}\n'), 250),
    "n-best, hyphens": Reader(nbest_lists, lambda n: f"u{'-7' * n}-1 a\nu{'-7' * n}-2 b\n", 2500),
    "n-best, alignments": Reader(
        refused(nbest_lists), joined("0 ||| ", items("|{}-1, "), "\n"), 500
    ),
    "hypotheses, trn": Reader(references.read_best, lines("a b (u{})\n"), 250),
    "hypotheses, blanks": Reader(references.read_best, lambda n: f"u1 {' ' * n}a (b\n", 2500),
    "hypotheses, digits": Reader(references.read_best, lambda n: f"u1 A {'7' * n} 1.5\n", 2500),
    "references, brackets": Reader(plain_references, lambda n: (("(a" * n) + "\n") * 3, 500),
    "references": Reader(references_of, lines("u{} a b\n"), 250),
    "lattice, SLF": Reader(consumed(lattices.read_lattices), slf_of, 50),
    "lattice, fields": Reader(
        consumed(lattices.read_lattices),
        joined("N=2 L=1\n", items('f{}=" ', " "), "\nI=0\nI=1\nJ=0 S=0 E=1 W=w\n"),
        1000,
    ),
    "lattice, Kaldi": Reader(consumed(lattices.read_lattices), kaldi_of, 250),
    "lattices": Reader(consumed(lattices.read_lattices), lines("n{}\n0 1 w 1,2\n1\n\n"), 250),
    "ARPA": Reader(lambda path: arpa.read(files.read_text(pathlib.Path(path)), path), arpa_of, 250),
    "minimal pairs, twins": Reader(
        minimal_pairs.read, joined("True\t", items("a "), "\n", items("False\tb\n")), 250
    ),
    "minimal pairs, JSON": Reader(
        judged, lines('{"sentence_good": "a", "sentence_bad": "b", "UID": "u{}"}\n'), 125
    ),
    "test suite in JSON": Reader(
        text_formats.read_tokens,
        joined('{"meta": {}, "predictions": [], "items": [', items(SUITE_ITEM, ", "), "]}"),
        50,
        ".json",
    ),
    "formulas, nested": Reader(
        source(Overnight),
        joined('(example (utterance "a") (targetFormula ', items("("), "x", items(")"), "))"),
        1000,
    ),
    "meanings, slots": Reader(
        source(Realisations, last_first=True),
        joined('mr,ref\n"', items("a[b{}]", ", "), '",word\n'),
        1000,
        ".csv",
    ),
    "grammar, rules": Reader(
        lambda path: grammar_rules.read(files.read_text(pathlib.Path(path)), path),
        lambda n: 'r0: "a"\n' + "".join(f'r{i}: "a" r{i - 1}?\n' for i in range(1, n)),
        50,
    ),
    "grammar, blanks": Reader(
        lambda path: grammar_rules.read(files.read_text(pathlib.Path(path)), path),
        joined('r: "a"', items(" "), "\n"),
        1000,
    ),
    "detokenised": Reader(
        lambda path: moses.text(files.read_text(pathlib.Path(path)).split(), "en"),
        items("' a . "),
        500,
    ),
}


def memory(read, path) -> int:
    """Returns the most bytes of Python's objects at a time during a call."""
    gc.collect()
    tracemalloc.start()
    try:
        read(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def seconds(read, path) -> float:
    """Returns the least time of the process that a call takes."""
    gc.collect()
    gc.disable()  # its walks over all objects of the process are not the reader's
    try:
        times = []
        for _ in range(RUNS):
            begin = time.process_time()
            read(path)
            times.append(time.process_time() - begin)
        return min(times)
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_growth(name, tmp_path):
    read, text, units, suffix = READERS[name]
    small, large = (str(tmp_path / f"{factor}{suffix}") for factor in (1, TIMES))
    pathlib.Path(small).write_text(text(units), encoding="utf-8", newline="")
    pathlib.Path(large).write_text(text(TIMES * units), encoding="utf-8", newline="")
    read(small)  # imports and caches
    small_peak, large_peak = (min(memory(read, path) for _ in range(3)) for path in (small, large))
    assert large_peak <= MOST_MEMORY * small_peak, f"{small_peak:,} and {large_peak:,} bytes"
    fast = slow = math.inf
    for _ in range(ROUNDS):
        fast, slow = min(fast, seconds(read, small)), min(slow, seconds(read, large))
        if slow <= MOST_TIME * fast:
            break
    assert slow <= MOST_TIME * fast, f"{fast:.4f} and {slow:.4f} seconds"
