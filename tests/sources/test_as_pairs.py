"""Questions and answers as pairs of an encoder-decoder."""

import dataclasses

import pytest

from zoo.data import AsPairs, Characters, Corpus, Mixed, Prefixed, Source, Text
from zoo.errors import UserError
from zoo.papers import Realisations


def test_a_question_is_the_source_of_its_answer(tmp_path):
    path = tmp_path / "asked.tsv"
    path.write_text("how many cats ?\tcount ( cat )\nwho ?\tall\n", encoding="utf-8")
    source = AsPairs(Prefixed(f"{path}[:1]", f"{path}[1:]", (str(path),)))
    assert source.splits() == ("train", "validation", "test")
    corpus = source.read("test")
    assert corpus.source_text.sentences == [["how", "many", "cats", "?"], ["who", "?"]]
    assert corpus.sentences == [["count", "(", "cat", ")"], ["all"]]
    assert source.read("validation").sentences == [["all"]]
    assert corpus.prefixes is None


@pytest.mark.parametrize("source", [Realisations, Characters])
def test_characters_are_refused(source):
    with pytest.raises(UserError, match=f"sentences of words, and {source.__name__} reads char"):
        AsPairs(source("meanings.csv", "meanings.csv"))


def test_a_text_without_given_words_is_refused(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one two\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"text\.txt: sentence 1 has no prefix"):
        AsPairs(Text(str(path), str(path))).read("train")


def test_a_mixture_is_refused(tmp_path):
    path = tmp_path / "asked.tsv"
    path.write_text("who ?\tall\n", encoding="utf-8")
    asked = Prefixed(str(path), str(path))
    with pytest.raises(UserError, match="is a mixture"):
        AsPairs(Mixed(("a", "b"), (asked, asked))).read("train")


@dataclasses.dataclass(frozen=True)
class Short(Source):
    """A source of one's own with two sentences, which says of one how much is given."""

    def read(self, split):
        return Corpus("mine", [["who", "all"], ["what", "none"]], prefixes=[1])


def test_no_sentence_is_dropped_where_lengths_of_what_is_given_are_missing():
    with pytest.raises(ValueError, match="shorter"):
        AsPairs(Short()).read("train")
