"""Features of words that a file lists."""

import dataclasses

import pytest

from zoo.data import Corpus, Source, Vocabulary
from zoo.errors import UserError
from zoo.priors import WordList


def listed(folder, text, words=("Lyon", "lyon", "Nice", "37"), **options):
    path = folder / "places.txt"
    path.write_text(text, encoding="utf-8")
    return WordList(str(path), **options).features(words, {}, {})


def test_words_of_the_list_have_the_feature(tmp_path):
    found = listed(tmp_path, "# cities\nLyon\n\n Nice \t0.25\r\n", name="place")
    assert found == [{"List:place": 1.0}, {}, {"List:place": 0.25}, {}]


def test_case_is_no_matter_if_so_asked(tmp_path):
    found = listed(tmp_path, "LYON\n", name="place", lower_case=True)
    assert found == [{"List:place": 1.0}, {"List:place": 1.0}, {}, {}]


def test_without_a_name_the_path_is_the_name(tmp_path):
    assert listed(tmp_path, "37\n")[3] == {f"List:{tmp_path}/places.txt": 1.0}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Lyon\nNew York\n", 2),
        ("Lyon\tmany\n", 1),
        ("a\n\nb\tnan\n", 3),
        ("a\tinf\n", 1),
        ("a\n\t2\n", 2),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, line):
    with pytest.raises(UserError, match=rf"places\.txt, line {line}:"):
        listed(tmp_path, text)


def test_a_list_without_a_word_of_the_lexicon_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"none of the 2 words of .*places\.txt.*lower_case=True"):
        listed(tmp_path, "Lyon\nNice\n", words=("lyon", "nice"))
    with pytest.raises(UserError, match="none of the 0 words"):
        listed(tmp_path, "# nothing yet\n")


@dataclasses.dataclass(frozen=True)
class Cities(Source):
    """A sentence that has a city."""

    def splits(self):
        return ("train",)

    def read(self, split):
        return Corpus(split, [["à", "Lyon"]])


@pytest.mark.parametrize(("new", "has"), [("Nice", True), ("zébu", False)])
def test_words_that_come_later_may_be_in_the_list_or_not(new, has, tmp_path):
    path = tmp_path / "places.txt"
    path.write_text("Lyon\nNice\n", encoding="utf-8")
    vocabulary = Vocabulary(features=(WordList(str(path), name="place"),))
    lexicon, _ = vocabulary.build(Cities())
    larger = vocabulary.extended(Cities(), lexicon, (new,))
    assert list(larger.features_of(larger.ids[new])) == ["List:place"] * has
