"""Paths, ranges and bytes of data files."""

import pytest

from zoo.errors import UserError, shortened
from zoo.sources import files
from zoo.sources.files import Part


@pytest.mark.parametrize(
    ("text", "path", "bounds"),
    [
        ("a.txt", "a.txt", (None, None)),
        ("a.txt[3:]", "a.txt", (3, None)),
        ("a.txt[:-12]", "a.txt", (None, -12)),
        ("a[1:2].txt[-5:-2]", "a[1:2].txt", (-5, -2)),
        ("a[b].txt", "a[b].txt", (None, None)),
        ("a[b:c]", "a[b:c]", (None, None)),
        ("hub:a:train[:10%]", "hub:a:train[:10%]", (None, None)),
    ],
)
def test_a_path_and_its_range(text, path, bounds):
    assert Part.parse(text) == Part(path, slice(*bounds))


@pytest.mark.parametrize(
    "given",
    ["[-:]", "[:-]", "[1:2:3]", "[1:+5]", "[1.5:]", "[1_000:]", "[ 1:2]", f"[:{'9' * 5000}]"],
)
def test_a_range_that_is_none(given):
    with pytest.raises(UserError) as caught:
        Part.parse(f"a.txt{given}")
    assert str(caught.value) == (
        f"a.txt: {shortened(given)} is not a range: write [start:stop], [start:] or [:stop] "
        "with whole numbers."
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "a path is empty"),
        ("  ", "a path is empty"),
        ("x" * 300, r"^x{200}\.\.\. cannot be looked up \(File name too long\)"),
        ("a\nb", "does not exist"),
        ("a\0b", "does not exist"),
    ],
)
def test_a_path_that_is_none(path, message):
    with pytest.raises(UserError, match=message) as caught:
        files.find(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 and more", "is a zip archive: unpack it first"),
        (b"\x28\xb5\x2f\xfd and more", "is compressed with zstd: decompress it first"),
        ("wörd".encode("utf-16"), "is UTF-16: convert it with iconv"),
        (b"\x1f\x8b\x08\x00", "cannot be decompressed"),
        (b"a\0b", "is a binary file"),
        (b"a\n\xe9", r"line 2: not UTF-8 \(byte 0xe9\)"),
    ],
)
def test_bytes_that_are_no_text(tmp_path, content, message):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(UserError, match=message):
        files.read_text(tmp_path / "a")
    with pytest.raises(UserError, match="cannot be read: Is a directory: give a file of text"):
        files.read_text(tmp_path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("ud_czech_pdt/train.conllu", "ud_czech_pdt"),
        ("multi30k/val.lc.norm.tok.fr", "multi30k"),
        ("wikitext-2/wiki.train.tokens", "wikitext-2"),
        ("ud_czech_pdt/extra.conllu", None),
        ("ptb/ptb.train.txt", None),
        ("train.conllu", None),
    ],
)
def test_a_missing_file_of_a_free_corpus_names_the_command_that_fetches_it(path, name, monkeypatch):
    monkeypatch.delenv("ZOO_DATA", raising=False)
    fetched = rf", or fetch it by python -m zoo data {name}" if name else ""
    with pytest.raises(UserError, match=rf"to the folder that holds it{fetched}\.$"):
        files.find(path)
