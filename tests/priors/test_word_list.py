"""Features of words that a file lists."""

import pytest

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


def test_a_missing_file_is_an_error_of_the_user(tmp_path):
    with pytest.raises(UserError, match="there is no file"):
        WordList(str(tmp_path / "none.txt")).features(("a",), {}, {})
