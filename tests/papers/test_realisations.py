"""Meanings and sentences as characters."""

import pytest

from zoo.errors import UserError
from zoo.papers import Realisations


def source(folder, text, **options):
    path = folder / "pairs.csv"
    path.write_text(text, encoding="utf-8")
    return Realisations(str(path), str(path) + "[1:]", (str(path),), **options)


def test_a_row_is_a_sentence_of_characters_with_a_prefix(tmp_path):
    found = source(tmp_path, 'mr,ref\r\n"name[Ä], x[y]",It is Ä.\r\nname[B],"B, it is"\r\n')
    corpus = found.read("train")
    assert ["".join(sentence) for sentence in corpus.sentences] == [
        "name[Ä], x[y]|It is Ä.",
        "name[B]|B, it is",
    ]
    assert corpus.prefixes == [14, 8]
    assert found.read("validation").prefixes == [8]
    assert found.splits() == ("train", "validation", "test")


def test_spaces_of_tokenisers_are_taken_out(tmp_path):
    text = 'mr,ref\n"price[£ 20 - 25]","It \'s £ 20 - 25 , is n\'t it ? ( No . )"\n'
    (sentence,) = source(tmp_path, text).read("train").sentences
    assert "".join(sentence) == "price[£20-25]|It's £20-25, isn't it? (No.)"


def test_slots_from_the_last_to_the_first(tmp_path):
    text = 'mr,ref\n"name[The A, B], customer rating[5 out of 5], near[C]",It.\nname[B],Is.\n'
    corpus = source(tmp_path, text, last_first=True).read("train")
    assert ["".join(sentence) for sentence in corpus.sentences] == [
        "near[C], customer rating[5 out of 5], name[The A, B]|It.",
        "name[B]|Is.",
    ]
    with pytest.raises(UserError, match=r"row 1: 'a, b' is not of the form a\[b\]"):
        source(tmp_path, 'mr,ref\n"a, b",It.\n', last_first=True).read("train")


BAD = {
    "mr,text\na,b\n": "has no column 'ref', but mr, text",
    "mr,ref\na,b\nc,\n": "row 2: write a meaning and a sentence",
    "mr,ref\na,b|c\n": "row 1: the separator '|' is in the question",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_are_named(tmp_path, text):
    with pytest.raises(UserError, match=BAD[text].replace("|", r"\|")):
        source(tmp_path, text).read("train")


def test_a_separator_is_one_character(tmp_path):
    with pytest.raises(UserError, match="give a single character"):
        source(tmp_path, "mr,ref\na,b\n", separator="||")
