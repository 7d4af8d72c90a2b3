"""Plain text and tables of text, through `datasets`."""

import gc
import gzip
import json

import pytest

from zoo.data import Text
from zoo.errors import UserError

EXPECTED = [["one", "two"], ["three"], ["four", "été"]]


def sentences(path, **options):
    return Text(train=str(path), validation="", **options).read("train").sentences


CONTENTS = {
    "a.txt": "one two\n\n three \nfour\tété\n",
    "windows.txt": "one two\r\n\r\nthree\r\nfour été\r\n",
    "marked.txt": "\ufeffone two\nthree\nfour été",
    "no_suffix": "one two\nthree\nfour été\n",
    "a.jsonl": '{"text": "one two"}\n{"text": null}\n{"text": "three\\nfour été"}\n',
    "a.json": '[{"text": "one two"}, {"text": "three"}, {"text": "four été"}]',
    "a.csv": 'text,other\none two,1\n"three\nfour été",2\n,3\n',
    "a.tsv": "other\ttext\n1\tone two\n2\tthree\n3\tfour été\n",
    "odd [name]*.txt": "one two\nthree\nfour été\n",
}


@pytest.mark.parametrize("name", CONTENTS)
def test_each_kind_of_file(tmp_path, name):
    (tmp_path / name).write_text(CONTENTS[name], encoding="utf-8", newline="")
    assert sentences(tmp_path / name) == EXPECTED


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.json", "a.csv", "a.tsv"])
def test_a_suffix_is_known_in_capitals_and_before_gz(tmp_path, name):
    content = CONTENTS[name].encode()
    (tmp_path / name.upper()).write_bytes(content)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    assert sentences(tmp_path / name.upper()) == EXPECTED
    assert sentences(tmp_path / f"{name}.gz") == EXPECTED


@pytest.mark.parametrize("streaming", [False, True])
def test_parquet_and_another_column(tmp_path, streaming):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"body": ["one two", "three", "four été"], "text": ["x", "y", "z"]})
    table.to_parquet(tmp_path / "a.parquet")
    path = tmp_path / "a.parquet"
    assert sentences(path, column="body", streaming=streaming) == EXPECTED
    assert sentences(path) == [["x"], ["y"], ["z"]]


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "late.txt").write_text("four été\n")
    (tmp_path / "a.json").write_text(json.dumps([{"text": "one two"}, {"text": "three"}]))
    assert sentences(tmp_path) == EXPECTED
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="is a folder without files"):
        sentences(tmp_path / "empty")


def test_a_quotation_mark_is_text_where_tabs_separate(tmp_path):
    (tmp_path / "a.tsv").write_text('other\ttext\n1\t"one two\n2\tthree\n3\t"four" été\n')
    assert sentences(tmp_path / "a.tsv") == [['"one', "two"], ["three"], ['"four"', "été"]]


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("one\n")

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(UserError, match=r"a\.txt cannot be read: Permission denied"):
        sentences(tmp_path / "a.txt")


def test_cells_are_text_and_not_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("text\n007\n2.50\nNA\nnull\n")
    assert sentences(tmp_path / "a.csv") == [["007"], ["2.50"], ["NA"], ["null"]]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("[:-2]", EXPECTED[:1]),
        ("[-2:]", EXPECTED[1:]),
        ("[1:2]", EXPECTED[1:2]),
        ("[:]", EXPECTED),
    ],
)
def test_a_range_of_lines(tmp_path, part, expected):
    (tmp_path / "a.txt").write_text(CONTENTS["a.txt"])
    assert sentences(f"{tmp_path / 'a.txt'}{part}") == expected


def test_splits_and_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ZOO_DATA", str(tmp_path))
    for name in ("t", "v", "x", "y"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    source = Text(train="t.txt", validation="v.txt", tests=("x.txt", "y.txt"))
    assert source.splits() == ("train", "validation", "test1", "test2")
    assert [source.read(split).sentences for split in source.splits()] == [
        [["t"]],
        [["v"]],
        [["x"]],
        [["y"]],
    ]
    assert Text("t.txt", "v.txt", ("x.txt",)).splits() == ("train", "validation", "test")
    assert source.read("train").features is None
    with pytest.raises(UserError, match="no split 'dev': the data have train, validation, test1"):
        source.read("dev")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b"a\0b", "is a binary file"),
        ("a.json", b"a\nb\xe9", "line 2: not UTF-8 .byte 0xe9."),
        ("a.csv", b"words\none\n", "has no column 'text': set data.column to one of words"),
        ("a.jsonl", b'{"text" "a"}\n', "cannot be read by datasets"),
        ("a.csv", b"text\n1,2,3\n4,5\n6,7,8,9\n", "cannot be read by datasets"),
        ("a.parquet", b"not parquet", "cannot be read by datasets"),
        ("a.jsonl", b'{"text": ""}\n', "has no words"),
    ],
)
# pandas leaves a file open that it cannot read.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_is_wrong_with_a_file(tmp_path, capfd, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        sentences(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""  # nothing but our own sentence
    # datasets leaves the file that it failed on open: close it here, not in some later test.
    del caught
    gc.collect()


def test_a_file_that_is_not_there_and_a_hub_name_that_is_none(tmp_path):
    with pytest.raises(UserError, match=r"there is no file .*set ZOO_DATA"):
        sentences(tmp_path / "a.txt")
    with pytest.raises(UserError, match="should read hub:NAME:SPLIT"):
        sentences("hub:wikitext")


def test_a_range_that_takes_nothing_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b\nc\n\n")
    for part in ("[:-500]", "[2:]", "[1:1]"):
        with pytest.raises(UserError) as refusal:
            Text(train=f"{path}{part}", validation=str(path)).read("train")
        assert str(refusal.value) == (
            f"{path}{part} has no words, for {path} has 2 sentences, and the range takes none of "
            "them: give another."
        )
    assert Text(train=f"{path}[-500:]", validation="").read("train").sentences == [
        ["a", "b"],
        ["c"],
    ]
