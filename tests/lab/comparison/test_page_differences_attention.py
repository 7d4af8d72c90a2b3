"""Attention in the report: the words of translations as `zoo translate` writes them."""

from types import SimpleNamespace

import numpy as np
import pytest

from zoo.alignment import Copyable, PositionalAll
from zoo.data import Corpus
from zoo.decoding.batched_search import Hypothesis
from zoo.lab.comparison import page_differences

WORDS = ["</s>", "<unk>", "a", "<unk_1>", "<unkpos_0>"]


class Fake:
    """A translator of one sentence whose second word is unknown, and says so."""

    def __init__(self, folder, unknowns, hypothesis):
        data = SimpleNamespace(unknowns=unknowns)
        source = SimpleNamespace(sentences=[["d&apos;", "chien"]])
        self.read = None
        self._hypothesis = [WORDS.index(word) for word in hypothesis]
        experiment = SimpleNamespace(data=data, source_corpus=lambda corpus: source, model=self)
        self.attention = "some"
        self.runs = [
            SimpleNamespace(
                path=folder,
                experiment=experiment,
                lexicon=SimpleNamespace(unknown="<unk>"),
                source_lexicons=[SimpleNamespace(ids={"d&apos;": 0})],
            )
        ]

    def pairs(self, split):
        return Corpus("test", [["a", "&quot;"]])

    def translate(self, sentences, *arguments):
        self.read = sentences
        return [[Hypothesis(self._hypothesis, [], 0.0, 0.0, True)]]

    def words(self, hypothesis):
        return [WORDS[word] for word in hypothesis.words]


@pytest.mark.parametrize(
    ("unknowns", "hypothesis", "dictionary", "expected"),
    [
        (None, ["a", "<unk>"], "chien\tdog\n", ["a", "dog"]),
        (None, ["a", "<unk>"], None, ["a", "<unk>"]),
        (Copyable(), ["a", "<unk_1>"], "chien\tdog\n", ["a", "dog"]),
        (Copyable(), ["a", "<unk_1>"], None, ["a", "chien"]),
        # Its marks take part in attention, a row each.
        (PositionalAll(), ["a", "<unk>"], "chien\tdog\n", ["a", "<unk>"]),
    ],
)
def test_words_are_those_of_the_text(
    unknowns, hypothesis, dictionary, expected, tmp_path, monkeypatch
):
    fake = Fake(tmp_path, unknowns, hypothesis)
    monkeypatch.setattr(page_differences, "Translator", lambda runs: fake)
    monkeypatch.setattr(
        "zoo.lab.evaluation.translators.attention_weights",
        lambda *arguments: np.array([[1, 0], [0, 1]]),
    )
    if dictionary:
        (tmp_path / "dictionary.tsv").write_text(dictionary)
    (translation,) = page_differences.translate_with_attention(fake.runs[0], "test")
    assert translation.translation == expected
    assert (translation.source, translation.reference) == (["d'", "chien"], ["a", '"'])
    if not isinstance(unknowns, PositionalAll):  # which replaces every unknown word alike
        assert fake.read == [["d&apos;", "<unk_1>" if unknowns else "chien"]]
