"""Questions are read and have no loss."""

import dataclasses

import numpy as np
import pytest

from zoo.data import Prefixed, Vocabulary
from zoo.data.batches import Batches


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
