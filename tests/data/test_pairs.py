"""Pairs of sentences from two files or a table; what is wrong with them is said with its line."""

import dataclasses
import json

import pytest

from zoo.data import MicroPairs, Pairs
from zoo.errors import UserError

TEXTS = ["a b\nc\nd e f\n", "A\nB C\nD\n"]


def files(tmp_path, *texts):
    paths = []
    for name, text in zip(("x.en", "x.fr"), texts, strict=False):
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    return tuple(paths)


def read(*paths, **options):
    return Pairs(paths, paths, **options).read("train")


def test_two_files_belong_together_line_by_line(tmp_path):
    corpus = read(*files(tmp_path, *TEXTS))
    assert corpus.sentences == [["A"], ["B", "C"], ["D"]]
    assert corpus.source_text.sentences == [["a", "b"], ["c"], ["d", "e", "f"]]
    assert corpus.name.endswith("x.fr")
    assert corpus.source_text.name.endswith("x.en")


def test_a_range_is_of_both_sides(tmp_path):
    paths = files(tmp_path, *TEXTS)
    corpus = read(*(f"{path}[1:]" for path in paths))
    assert corpus.sentences == [["B", "C"], ["D"]]
    with pytest.raises(UserError, match=r"take different ranges of their lines"):
        read(f"{paths[0]}[1:]", paths[1])
    with pytest.raises(UserError, match=r"has no pairs, of 3 in all"):
        read(*(f"{path}[7:]" for path in paths))


TABLES = {
    "a.tsv": "a b\tA\nc\tB C\n",
    "b.tsv": "source\tnumber\ttarget\na b\t1\tA\nc\t2\tB C\n",
    "c.csv": 'target,source\nA,"a b"\nB C,c\n',
    "d.jsonl": '{"source": ["a", "b"], "target": "A"}\n{"source": "c", "target": "B C"}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_both_sides(tmp_path, name):
    (tmp_path / name).write_text(TABLES[name])
    corpus = read(str(tmp_path / name))
    assert corpus.source_text.sentences == [["a", "b"], ["c"]]
    assert corpus.sentences == [["A"], ["B", "C"]]


def test_a_column_may_be_within_another(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"translation": {"en": "a b", "fr": "A"}}]))
    corpus = read(str(path), columns=("translation.en", "translation.fr"))
    assert (corpus.source_text.sentences, corpus.sentences) == ([["a", "b"]], [["A"]])


def test_parquet_is_read_through_datasets(tmp_path):
    datasets = pytest.importorskip("datasets")
    path = tmp_path / "a.parquet"
    datasets.Dataset.from_dict({"source": ["a b", "c"], "target": ["A", "B C"]}).to_parquet(path)
    assert read(str(path)).sentences == [["A"], ["B", "C"]]


WRONG = {
    "fewer lines": (
        (TEXTS[0], "A\nB C\n"),
        r"x\.en, line 3: .*x\.fr has no such line, for it has 2 and this file 3",
    ),
    "more lines": (("a\n", "A\nB\n"), r"x\.fr, line 2: .*x\.en has no such line"),
    "empty source": (("a\n \nb\n", "A\nB\nC\n"), r"x\.en, line 2: the source is empty"),
    "empty translation": (("a\nb\n", "A\n\n"), r"x\.fr, line 2: the translation is empty"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_line(tmp_path, name):
    texts, message = WRONG[name]
    with pytest.raises(UserError, match=message):
        read(*files(tmp_path, *texts))


def test_wrong_tables_and_recipes_are_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\tA\nb\n")
    with pytest.raises(UserError, match=r"a\.tsv, line 2: 1 cells, where a source, one tab"):
        read(str(path))
    path = tmp_path / "a.jsonl"
    path.write_text('{"source": "a"}\n')
    with pytest.raises(UserError, match=r"has no column 'target', but source: set data\.columns"):
        read(str(path))
    path.write_text('{"source": "a", "target": 3}\n')
    with pytest.raises(UserError, match=r"row 1: the column 'target' has a value of type int"):
        read(str(path))
    with pytest.raises(UserError, match=r"^data\.train has 3 paths: give two files"):
        Pairs(("a", "b", "c"), ("a", "b"))


def test_micro_translations_are_their_sources_backwards():
    source = MicroPairs()
    source = dataclasses.replace(
        source, language=dataclasses.replace(source.language, train_sentences=30), longest=7
    )
    corpus = source.read("train")
    entries = source.lexicon_entries()
    assert 0 < len(corpus.sentences) < 30
    for sentence, given, features in zip(
        corpus.sentences, corpus.source_text.sentences, corpus.features, strict=True
    ):
        assert " ".join(sentence) == " ".join(given)[::-1]
        assert len(given) <= 7
        assert features == [entries[word] for word in sentence]
    with pytest.raises(UserError, match=r"longest=1: no sentence"):
        dataclasses.replace(source, longest=1).read("train")
