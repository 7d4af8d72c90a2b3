"""Plain text and tables of text, through `datasets`."""

import bz2
import gzip
import http.server
import json
import logging
import lzma
import threading
import tracemalloc

import datasets
import pyarrow as pa
import pyarrow.parquet
import pytest

from zoo.data import Characters, RawText, Text, Vocabulary
from zoo.data.batches import Batches
from zoo.errors import UserError
from zoo.sources import files, mapped_text
from zoo.sources.files import Part

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
def test_a_suffix_is_known_in_capitals_and_before_that_of_compression(tmp_path, name):
    content = CONTENTS[name].encode()
    (tmp_path / name.upper()).write_bytes(content)
    assert sentences(tmp_path / name.upper()) == EXPECTED
    for suffix, compress in {"gz": gzip, "bz2": bz2, "xz": lzma}.items():
        (tmp_path / f"{name}.{suffix}").write_bytes(compress.compress(content))
        assert sentences(tmp_path / f"{name}.{suffix}") == EXPECTED


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compression_is_known_by_content(tmp_path, compress):
    path = tmp_path / "a.txt"
    path.write_bytes(compress(CONTENTS["a.txt"].encode() * 9))
    assert sentences(path) == EXPECTED * 9


def test_a_data_set_saved_to_disk(tmp_path):
    rows = {"text": ["one two", None, "three\nfour été"], "other": ["x", "y", "z"]}
    split = datasets.Dataset.from_dict(rows)
    split.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": split, "test": split}).save_to_disk(str(tmp_path / "two"))
    assert sentences(tmp_path / "one") == sentences(tmp_path / "two" / "train") == EXPECTED
    assert sentences(f"{tmp_path / 'one'}[1:]") == EXPECTED[1:]
    with pytest.raises(UserError, match=r"two has the splits test, train .*, as in \S*two/test\."):
        sentences(tmp_path / "two")
    next((tmp_path / "one").glob("*.arrow")).write_bytes(b"damage")
    with pytest.raises(UserError, match="one cannot be read"):
        sentences(tmp_path / "one")


@pytest.mark.parametrize("name", ["../secret.arrow", "{far}/secret.arrow", "", "missing.arrow"])
def test_a_saved_data_set_has_files_of_its_folder_only(tmp_path, name):
    datasets.Dataset.from_dict({"text": ["one two"]}).save_to_disk(str(tmp_path / "saved"))
    next((tmp_path / "saved").glob("*.arrow")).rename(tmp_path / "secret.arrow")
    state = {"_data_files": [{"filename": name.format(far=tmp_path)}]}
    (tmp_path / "saved" / "state.json").write_text(json.dumps(state))
    with pytest.raises(UserError, match=r"state\.json names '.*', which is not a file in its fol"):
        sentences(tmp_path / "saved")


@pytest.fixture
def pictures(tmp_path):
    """A text beside pictures at an address and at a path, in Parquet, saved, and as of a hub."""
    requests = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        places = [f"http://127.0.0.1:{server.server_port}/a.png", str(tmp_path / "a.png"), None]
        features = {
            "text": datasets.Value("string"),
            "image": datasets.Image(),
            "audio": datasets.Audio(),
            "pair": datasets.Translation(["en", "fr"]),
        }
        metadata = datasets.Features(features).arrow_schema.metadata
        pictures = pa.array(
            [{"bytes": None, "path": place} for place in places],
            pa.struct({"bytes": pa.binary(), "path": pa.string()}),
        )
        columns = {
            "text": ["one two", None, "three\nfour été"],
            "image": pictures,
            "audio": pictures,
            "pair": [{"en": "yes", "fr": "oui"}] * 3,
        }
        table = pa.table(columns).replace_schema_metadata(metadata)
        (tmp_path / "hub").mkdir()
        for path in (tmp_path / "a.parquet", tmp_path / "hub" / "train.parquet"):
            pyarrow.parquet.write_table(table, path)
        (tmp_path / "saved").mkdir()
        with pa.ipc.new_stream(tmp_path / "saved" / "data.arrow", table.schema) as stream:
            stream.write_table(table)
        state = '{"_data_files": [{"filename": "data.arrow"}]}'
        (tmp_path / "saved" / "state.json").write_text(state)
        yield
        assert not requests
        server.shutdown()


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("path", ["a.parquet", "saved", "hub:./hub:train"])
def test_columns_other_than_the_text_are_not_decoded(
    tmp_path, monkeypatch, pictures, path, streaming
):
    """`datasets` would open the files and addresses that an image names."""
    monkeypatch.chdir(tmp_path)
    assert sentences(path, streaming=streaming) == EXPECTED
    assert sentences(path, column="pair.fr", streaming=streaming) == [["oui"]] * 3
    with pytest.raises(UserError, match=r"no column 'no': set data.column to one of 'text', 'im"):
        sentences(path, column="no", streaming=streaming)
    with pytest.raises(UserError, match=r"row 1: the column 'image' has a value of type dict"):
        sentences(path, column="image", streaming=streaming)


def test_a_cell_is_a_string_or_a_list_of_strings(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": ["one", "two"]}\n{"text": []}\n{"text": null}\n{"text": ["three"]}\n')
    assert sentences(path) == EXPECTED[:2]


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


def test_what_is_beside_the_text_of_a_folder_is_left_out(tmp_path, caplog):
    for name in (".hidden.txt", ".git/a.txt", "a.txt~", "b.txt.bak", "#c.txt#", ".a.txt.swp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("wrong\n")
    for name in ("README.md", "README.txt", "readme", "LICENSE", "COPYING.txt", "notes.md"):
        (tmp_path / name).write_text("wrong\n")
    with pytest.raises(UserError, match="a folder without files of text but '#c"):
        sentences(tmp_path)
    for name, line in {"readmes.txt": "one two", "b.txt": "three", "a.txt": "four été"}.items():
        (tmp_path / name).write_text(f"{line}\n")
    with caplog.at_level(logging.INFO, "zoo"):
        assert sentences(tmp_path) == [EXPECTED[2], EXPECTED[1], EXPECTED[0]]
    names = ", ".join(repr(str(tmp_path / name)) for name in ("a.txt", "b.txt", "readmes.txt"))
    assert caplog.messages == [f"{tmp_path}: 3 files: {names}"]


def test_a_folder_of_shards_and_one_of_several_kinds(tmp_path):
    for number, line in enumerate(("one two", "three", "four été")):
        (tmp_path / f"news.en-0000{number}-of-00100").write_text(f"{line}\n")
    assert sentences(tmp_path) == EXPECTED
    (tmp_path / "news.de-00000-of-00100").write_text("eins\n")
    with pytest.raises(UserError, match=r"several kinds \('\.de', '\.en'\): .* '\S*/\*\.en'"):
        sentences(tmp_path)
    assert sentences(tmp_path / "*.en-*") == EXPECTED
    assert sentences(f"{tmp_path}/*.en-*[:-1]") == EXPECTED[:2]


def test_a_pattern(tmp_path, monkeypatch):
    monkeypatch.setenv("ZOO_DATA", str(tmp_path))
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.txt").write_text("three\n")
    (tmp_path / "a.txt").write_text("one two\n")
    (tmp_path / "deep" / "c.txt").write_text("four été\n")
    monkeypatch.chdir(tmp_path / "deep")
    assert sentences("c*") == EXPECTED[2:]  # of the working folder first
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert sentences("*.txt") == EXPECTED[:2]
    assert sentences("**/*.txt") == EXPECTED
    assert sentences("[b-z].txt") == EXPECTED[1:2]
    with pytest.raises(UserError, match=r"no file matches the pattern \*\.json"):
        sentences("*.json")


@pytest.mark.parametrize("pattern", ["**/" * 40 + "*.txt", "a/" + "**/" * 40 + "*", "**/*/**/*"])
def test_a_pattern_names_a_file_once(tmp_path, monkeypatch, pattern):
    """However many ways there are to match it, one after 40 others of 12 folders each."""
    folder = tmp_path.joinpath("a", *"bcdefghijklm")
    folder.mkdir(parents=True)
    (folder / "n.txt").write_text("one two\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ZOO_DATA", raising=False)
    assert sentences(pattern) == EXPECTED[:1]


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("one\n")

    def refuse(path, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(UserError, match=r"a\.txt cannot be read: Permission denied"):
        sentences(tmp_path / "a.txt")


def test_cells_are_text_and_not_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("text\n007\n2.50\nNA\nnull\n")
    assert sentences(tmp_path / "a.csv") == [["007"], ["2.50"], ["NA"], ["null"]]


def test_splits_and_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ZOO_DATA", str(tmp_path))
    for name in ("t", "v", "x", "y"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    source = Text(train="t.txt", validation="v.txt", tests=("x.txt", "y.txt"))
    assert source.splits() == ("train", "validation", "test1", "test2")
    assert [source.read(split).sentences for split in source.splits()] == [
        [[letter]] for letter in "tvxy"
    ]
    assert Text("t.txt", "v.txt", ("x.txt",)).splits() == ("train", "validation", "test")
    assert source.read("train").features is None
    with pytest.raises(
        UserError, match="unknown split 'dev': the data have train, validation, test1"
    ):
        source.read("dev")


def test_an_error_of_the_library_is_one_sentence_of_our_own(tmp_path, capfd):
    (tmp_path / "a.parquet").write_bytes(b"not parquet")
    with pytest.raises(UserError, match=r"^\S*/a\.parquet cannot be read: \S") as caught:
        sentences(tmp_path / "a.parquet")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


# As WikiText has it: a title, blank lines between all paragraphs. 8 words in 7 lines.
WIKI = " \n = T = \n\n a b c \n\n\n d e"


@pytest.mark.parametrize("name", ["a.txt", "windows.txt", "whole.txt", "rows.jsonl", "list.jsonl"])
def test_blank_lines_may_count_as_everybody_counts_them(tmp_path, name):
    lines = WIKI.split("\n")
    contents = {
        "a.txt": WIKI + "\n",
        "windows.txt": WIKI.replace("\n", "\r\n"),
        "whole.txt": WIKI,
        # Each row with its line break, but for blank ones: so the data set of a hub has them.
        "rows.jsonl": [line + "\n" if line.strip() else "" for line in lines],
        "list.jsonl": [line.split() for line in lines],
    }[name]
    if not isinstance(contents, str):
        contents = "".join(json.dumps({"text": row}) + "\n" for row in contents)
    path = tmp_path / name
    path.write_text(contents, encoding="utf-8", newline="")
    all_sentences = sentences(path, blank_lines="kept")
    assert all_sentences == [[], ["=", "T", "="], [], ["a", "b", "c"], [], [], ["d", "e"]]
    assert sentences(path) == [words for words in all_sentences if words]
    assert sentences(f"{path}[1:4]", blank_lines="kept") == all_sentences[1:4]


def test_blank_lines_count_one_boundary_each(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(WIKI + "\n", encoding="utf-8")
    usual = 0
    for line in WIKI.split("\n"):
        usual += len([*line.split(), "<eos>"])
    assert usual == 8 + 7
    for blank_lines, count in (("kept", usual), ("skipped", 8 + 3)):
        source, vocabulary = Text(str(path), str(path), blank_lines=blank_lines), Vocabulary()
        lexicon, corpora = vocabulary.build(source)
        text = vocabulary.encode(corpora["train"], lexicon)
        assert text.counted.sum() == count
        assert lexicon.counts[lexicon.ids["</s>"]] == (7 if blank_lines == "kept" else 3)
        for state in ("carried", "sentences"):
            batch_rows = Batches(text, 3, 4, state, lexicon.ids["</s>"])
            places = [
                place for i in range(len(batch_rows)) for place in batch_rows[i].positions.ravel()
            ]
            assert sorted(place for place in places if place >= 0) == [*range(count)]
        # Without boundaries a blank line is nothing.
        plain = Vocabulary(boundary="none")
        assert plain.encode(corpora["train"], plain.build(source)[0]).counted.sum() == 8


def test_an_unknown_way_with_blank_lines_is_refused(tmp_path):
    with pytest.raises(UserError, match="blank_lines is 'counted': give one of skipped, kept"):
        sentences(tmp_path / "a.txt", blank_lines="counted")


# ------------------------------------------------------------ paths and ranges


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


@pytest.mark.parametrize("piece", [1, 2, 7, 64, 1 << 18])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_text_is_read_in_pieces(tmp_path, monkeypatch, piece, compress):
    """Pieces end within characters of several bytes, between \\r and \\n, and within long lines."""
    monkeypatch.setattr(files, "_PIECE", piece)
    content = "\ufeffun été\r\n\n" + "déjà\rvu \r\r\n \u2028\n" * 3 + "long " * 40 + "\ndernier\r"
    (tmp_path / "a").write_bytes(compress(content.encode()))
    assert files.read_text(tmp_path / "a") == files.with_line_feeds(content[1:])
    expected = [["un", "été"], [], *([["déjà", "vu"], []] * 3), ["long"] * 40, ["dernier"]]
    assert sentences(tmp_path / "a", blank_lines="kept") == expected
    (tmp_path / "mac").write_bytes(compress("un\r\rété\r".encode()))
    assert sentences(tmp_path / "mac", blank_lines="kept") == [["un"], [], ["été"]]


@pytest.mark.parametrize("piece", [1, 5, 1 << 18])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b\n\nc\n" + "été".encode("latin1") + b" d\n", "a, line 4: not UTF-8 .byte 0xe9.: "),
        (b"a\nb\n\x89PNG\n\0", "a, line 3: not UTF-8|a is a binary file: give"),
        (b"a b\n" * 9 + b"a\0b\n", "a is a binary file: give a UTF-8 text file"),
        (b"\n \t\r\n\n  \n", "a is empty: give a file with text"),
    ],
)
def test_errors_of_pieces_are_those_of_the_text(tmp_path, monkeypatch, piece, content, message):
    monkeypatch.setattr(files, "_PIECE", piece)
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(UserError, match=message):
        sentences(tmp_path / "a")


def test_sentences_are_a_sequence_of_lists(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_text, "_AT_ONCE", 4)  # ids in pieces of one or several sentences
    lines = ["a b c d e f", "b", "", "c c", "d e a", "b a", "", "g"]
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    text, expected = sentences(tmp_path / "a", blank_lines="kept"), [*map(str.split, lines)]
    assert text == expected == [*text] and expected == text and repr(text) == repr(expected)
    assert [text[n] for n in range(-8, 8)] == expected * 2
    for part in (slice(2, 6), slice(None, -3), slice(5, 2), slice(None, None, 3), slice(6, 1, -2)):
        assert [*text[part]] == expected[part] and len(text[part]) == len(expected[part])
    assert text[1:7][1:][2] == expected[4] and text[:2] != expected and text != "a"
    assert list(reversed(text)) == expected[::-1] and ["b"] in text
    with pytest.raises(IndexError):
        text[8]
    ranged = Text(f"{tmp_path}/a[3:6]", "").read("train")
    assert [*ranged.token_counts().items()] == [("d", 1), ("e", 1), ("a", 2), ("b", 1), ("g", 1)]


@pytest.mark.parametrize("at_once", [3, 100])
@pytest.mark.parametrize("lines", [["abcd", "", "ef", "gh", "", ""], ["a b", ""]])
def test_sentences_without_words_may_end_a_text(tmp_path, monkeypatch, lines, at_once):
    monkeypatch.setattr(mapped_text, "_AT_ONCE", at_once)
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    text, expected = sentences(tmp_path / "a", blank_lines="kept"), [*map(str.split, lines)]
    assert [*text] == expected and text[-1] == [] and [*text[-1:]] == [[]]
    assert [text[n] for n in range(len(lines))] == expected


@pytest.mark.parametrize("kind", [Text, RawText, Characters])
def test_a_text_takes_little_more_than_its_ids(tmp_path, kind):
    """Of 4 bytes a token, in the corpus and for the model; lists took 8 and 8 for the sentence."""
    (tmp_path / "a").write_text("a bc a d\n" * 20_000)
    options = {"language": "", "lines": "sentences"} if kind is RawText else {}
    source, vocabulary = kind(f"{tmp_path}/a", f"{tmp_path}/a[:9]", **options), Vocabulary()
    vocabulary.build(source)
    tracemalloc.start()
    try:
        lexicon, corpora = vocabulary.build(source)
        encoded = vocabulary.encode(corpora["train"], lexicon)
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # 8 bytes for each start of a sentence, twice, and 4 for its length.
    assert size < 8 * len(encoded.words) + 20 * len(encoded.starts) + 500_000
