"""Untokenised text: its paragraphs, sentences, words and characters."""

import pytest

from zoo.data import Characters, RawPairs, RawText, Vocabulary
from zoo.errors import UserError
from zoo.sources.text import split

TEXT = "Mr. Smith came. It's\nlate!\n\n  Really?\nYes."


def source(path, **fields):
    return RawText(train=str(path), validation=str(path), **fields)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks(tmp_path, end, mark):
    path = tmp_path / "my text.txt"
    path.write_bytes(mark + TEXT.replace("\n", end).encode())
    sentences = source(path, lines="wrapped").read("train").sentences
    assert sentences == [
        ["Mr.", "Smith", "came", "."],
        ["It", "'s", "late", "!"],
        ["Really", "?"],
        ["Yes", "."],
    ]


def test_what_a_line_is():
    lines = TEXT.split("\n")
    assert split(lines, "sentences", "en") == [
        "Mr. Smith came. It's",
        "late!",
        "Really?",
        "Yes.",
    ]
    assert split(lines, "paragraphs", "en")[:3] == ["Mr. Smith came.", "It's", "late!"]
    assert split(lines, "wrapped", "en")[:2] == ["Mr. Smith came.", "It's late!"]


def test_a_text_without_full_stops_is_cut():
    line = " ".join(f"w{number}" for number in range(450))
    pieces = split([line], "paragraphs", "en")
    assert [len(piece.split()) for piece in pieces] == [200, 200, 50]
    assert " ".join(pieces) == line
    assert split([line], "sentences", "en") == [line]


def test_ranges_are_of_sentences(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("One. Two. Three.\nFour.\n")
    read = RawText(train=f"{path}[:-2]", validation=f"{path}[-2:]").read
    assert read("train").sentences == [["One", "."], ["Two", "."]]
    assert read("validation").sentences == [["Three", "."], ["Four", "."]]


def test_paragraphs_end_with_their_file(tmp_path):
    (tmp_path / "texts").mkdir()
    for name, text in {"a.txt": "one\ntwo", "b.txt": "three\n"}.items():
        (tmp_path / "texts" / name).write_text(text)
    read = source(tmp_path / "texts", lines="wrapped").read("train")
    assert read.sentences == [["one", "two"], ["three"]]
    letters = Characters(train=str(tmp_path / "texts"), validation="")
    assert ["".join(line) for line in letters.read("train").sentences] == [
        "one\n",
        "two\n",
        "three\n",
    ]


def test_wrong_fields():
    with pytest.raises(UserError, match=r"^data\.language is 'french'"):
        source("a.txt", language="french")
    with pytest.raises(UserError, match=r"^data\.lines is 'verses': give one of sentences"):
        source("a.txt", lines="verses")
    with pytest.raises(UserError, match=r"^data\.languages is .*: give two"):
        RawPairs(train=("a", "b"), validation=("a", "b"), languages=("en",))


def test_long_lines_of_characters_are_cut(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a" * 2000 + "bc\n\nxy")
    lines = Characters(train=str(path), validation="").read("train").sentences
    assert ["".join(line) for line in lines] == ["a" * 1000] * 2 + ["bc\n", "\n", "xy"]


def test_untokenised_pairs(tmp_path):
    paths = tuple(str(tmp_path / name) for name in ("a.en", "a.fr"))
    for path, text in zip(paths, ("He's here.\n", "L'homme, là.\n"), strict=True):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    pairs = RawPairs(train=paths, validation=paths, languages=("en", "fr"))
    corpus = pairs.read("train")
    assert corpus.source_text.sentences == [["He", "'s", "here", "."]]
    assert corpus.sentences == [["L'", "homme", ",", "là", "."]]
    assert (pairs.form.source_language, pairs.form.language) == ("en", "fr")
    assert pairs.with_test(",".join(paths)).read("test").sentences == corpus.sentences


def test_nothing_of_the_text_is_lost(tmp_path):
    text = "To be,\n\n or  not\u00e9\n\U0001f600 end"
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    source = Characters(train=f"{path}[:-1]", validation=f"{path}[-1:]", tests=(str(path),))
    assert source.splits() == ("train", "validation", "test")
    assert ["".join(line) for line in source.read("train").sentences] == [
        "To be,\n",
        "\n",
        " or  not\u00e9\n",
    ]
    assert source.read("validation").sentences == [["\U0001f600", " ", "e", "n", "d"]]
    corpus = source.read("test")
    assert "".join(character for line in corpus.sentences for character in line) == text
    vocabulary = Vocabulary(boundary="none")
    lexicon, corpora = vocabulary.build(source)
    encoded = vocabulary.encode(corpora["train"], lexicon)
    assert (
        "".join(lexicon.words[word] for word in encoded.words)
        == text[: len("To be,\n\n or  not\u00e9\n")]
    )
