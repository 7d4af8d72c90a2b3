"""The text of a model that was trained elsewhere."""

import pytest

from zoo.data import Characters, Text, Unknown
from zoo.errors import UserError


@pytest.mark.parametrize("split", Unknown().splits())
def test_no_split_can_be_read(split):
    with pytest.raises(UserError, match=f"the {split} text is not known.*--data FILE"):
        Unknown().read(split)


def test_another_text_is_read_as_words_or_characters(tmp_path):
    path = str(tmp_path / "text.txt")
    (tmp_path / "text.txt").write_text("a b\n")
    assert isinstance(Unknown().with_test(path), Text)
    assert Unknown().with_test(path).read("test").sentences == [["a", "b"]]
    characters = Unknown(is_character_level=True).with_test(path)
    assert isinstance(characters, Characters)
    assert characters.read("test").sentences == [["a", " ", "b", "\n"]]
