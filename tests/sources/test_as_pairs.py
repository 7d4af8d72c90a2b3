"""Questions and answers as pairs of an encoder-decoder, and as one sequence."""

import dataclasses

import numpy as np
import pytest

from zoo.data import AsPairs, Characters, Corpus, Mixed, Prefixed, Source, Text, Vocabulary
from zoo.data.batches import Batches
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


def test_a_mixture_and_a_text_without_prefixes_are_refused(tmp_path):
    path = tmp_path / "asked.txt"
    path.write_text("who ?\tall\n", encoding="utf-8")
    asked = Prefixed(str(path), str(path))
    with pytest.raises(UserError, match=r"asked\.txt: sentence 1 has no prefix"):
        AsPairs(Text(str(path), str(path))).read("train")
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


# ------------------------------------------------------------ questions and answers as one sequence


@pytest.fixture
def source(tmp_path):
    (tmp_path / "pairs.tsv").write_text("what is it ?\tit ( A )\n\nwho ?\tme\n", encoding="utf-8")
    path = str(tmp_path / "pairs.tsv")
    return Prefixed(path, path + "[1:]", (path,))


def test_a_pair_is_a_sentence_with_a_prefix(source):
    corpus = source.read("train")
    assert corpus.sentences == [
        ["what", "is", "it", "?", "|||", "it", "(", "A", ")"],
        ["who", "?", "|||", "me"],
    ]
    assert corpus.prefixes == [5, 3]
    assert source.read("validation").prefixes == [3]
    assert source.splits() == ("train", "validation", "test")


def test_a_prefix_is_neither_trained_nor_counted(source):
    vocabulary = Vocabulary()
    lexicon, corpora = vocabulary.build(source)
    text = vocabulary.encode(corpora["train"], lexicon)
    expected = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1]
    np.testing.assert_array_equal(text.trained, expected)
    np.testing.assert_array_equal(text.counted, expected)
    reordered = text.reordered(np.array([1, 0]))
    np.testing.assert_array_equal(reordered.trained, expected[10:] + expected[:10])
    batches = Batches(reordered, 2, 12, "sentences", lexicon.ids["</s>"])
    batch = batches[0]
    np.testing.assert_array_equal((batch.positions >= 0).sum(1), [5, 10])
    np.testing.assert_array_equal(batch.trained[0], expected[10:] + [0] * 7)
    np.testing.assert_array_equal(batch.trained[1], expected[:10] + [0] * 2)
    whole = vocabulary.encode(dataclasses.replace(corpora["train"], prefixes=None), lexicon)
    assert whole.trained.all()
    assert whole.digest() != text.digest()
