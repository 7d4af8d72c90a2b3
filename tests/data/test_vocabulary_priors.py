"""Lexicons of counts, tokenizers and data sets, and prior knowledge on them."""

import collections

import jax.numpy as jnp
import numpy as np
import pytest

from zoo import priors
from zoo.data import with_background, with_priors
from zoo.errors import UserError
from zoo.lexicon import Lexicon

TEXT = ("the", "cat", "sat", "on", "the", "mat", "and", "the", "cat", "slept")
COUNTS = collections.Counter(TEXT)
SENTENCES = [["the", "cat", "sat"], ["the", "mat"], ["the", "cat", "slept", "on", "the", "mat"]]


def test_counts_are_words_by_frequency():
    lexicon = Lexicon.from_counts(COUNTS, unknown="<unk>", boundary="</s>")
    expected = ("</s>", "<unk>", "the", "cat", "sat", "on", "mat", "and", "slept")
    assert lexicon.words == expected  # equal counts in the order of the text
    assert lexicon.counts.tolist() == [0, 0, 3, 2, 1, 1, 1, 1, 1]
    assert (lexicon.unknown, lexicon.boundary) == ("<unk>", "</s>")


def test_what_is_left_out_is_unknown():
    counts = {**COUNTS, "<unk>": 4, "</s>": 5, "never": 0}
    lexicon = Lexicon.from_counts(counts, unknown="<unk>", boundary="</s>", minimum_count=2)
    assert lexicon.words == ("</s>", "<unk>", "the", "cat")
    assert lexicon.counts.tolist() == [5, 4 + 5, 3, 2]
    assert lexicon.left_out == dict.fromkeys(("sat", "on", "mat", "and", "slept"), 1)
    smaller = Lexicon.from_counts(counts, unknown="<unk>", maximum_size=3)
    assert smaller.words == ("<unk>", "</s>", "the")
    # Without an unknown word nothing stands for the others.
    assert Lexicon.from_counts(COUNTS, maximum_size=2).counts.tolist() == [3, 2]


def test_words_become_ids():
    lexicon = Lexicon.from_counts(COUNTS, unknown="<unk>")
    ids = lexicon.encode(["cat", "dog", "<unk>", "the"])
    assert ids.dtype == np.int32 and ids.tolist() == [2, 0, 0, 1]
    with pytest.raises(ValueError, match="'dog' is not in the lexicon, which has"):
        Lexicon.from_counts(COUNTS).encode(["cat", "dog"])


class Tokenizer:
    """As those of `transformers`: special tokens are attributes."""

    unk_token, eos_token, sep_token, pad_token = "[UNK]", None, "[SEP]", "[PAD]"

    def get_vocab(self):
        return {"cat": 4, "[PAD]": 0, "[UNK]": 1, "the": 3, "[SEP]": 6}


def test_a_tokenizer_keeps_its_ids():
    lexicon = Lexicon.from_tokenizer(Tokenizer())
    assert lexicon.words == ("[PAD]", "[UNK]", "<id 2>", "the", "cat", "<id 5>", "[SEP]")
    assert (lexicon.unknown, lexicon.boundary) == ("[UNK]", "[SEP]")
    assert not lexicon.counts.any()
    ids = [3, 4, 3, 6]
    counted = Lexicon.from_tokenizer(Tokenizer(), counts=np.bincount(ids, minlength=7))
    assert counted.counts.tolist() == [0, 0, 0, 2, 1, 0, 1]
    chosen = Lexicon.from_tokenizer(Tokenizer(), boundary="[PAD]")
    assert chosen.boundary == "[PAD]"


def test_a_tokenizer_whose_model_knows_the_unknown_token():
    class Model:
        unk_token = "[UNK]"

    class OfTokenizers(Tokenizer):
        unk_token = sep_token = None
        model = Model()

    lexicon = Lexicon.from_tokenizer(OfTokenizers())
    assert (lexicon.unknown, lexicon.boundary) == ("[UNK]", None)


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        ({"a": 0, "b": 0}, "tokens 'a' and 'b' with the same id, 0"),
        ({"a": 0, "b": -1}, r"^the tokenizer has 'b' with the id -1: ids must be at least 0$"),
    ],
)
def test_wrong_tokenizers_and_counts_are_named(vocabulary, message, monkeypatch):
    with pytest.raises(ValueError, match=r"counts has the shape \(3,\), and the tokenizer 7 ids"):
        Lexicon.from_tokenizer(Tokenizer(), counts=[1, 2, 3])
    monkeypatch.setattr(Tokenizer, "get_vocab", lambda self: vocabulary)
    with pytest.raises(ValueError, match=message):
        Lexicon.from_tokenizer(Tokenizer())


def test_a_real_tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"[UNK]": 0, "the": 1, "cat": 2}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.add_special_tokens(["</s>"])
    lexicon = Lexicon.from_tokenizer(tokenizer, boundary="</s>")
    assert lexicon.words == ("[UNK]", "the", "cat", "</s>")
    assert (lexicon.unknown, lexicon.boundary) == ("[UNK]", "</s>")


ROWS = [{"text": "the cat sat", "other": 1}, {"text": "the cat", "other": 2}]


def test_a_data_set_is_counted():
    lexicon = Lexicon.from_dataset(ROWS, "text", minimum_count=2)
    assert lexicon.words == ("</s>", "<unk>", "the", "cat")
    assert lexicon.counts.tolist() == [2, 1, 2, 2]
    letters = Lexicon.from_dataset(ROWS, "text", split=list, unknown=None, boundary=None)
    assert dict(zip(letters.words, letters.counts.tolist(), strict=True))["t"] == 5
    with pytest.raises(ValueError, match="no column 'words': text, other"):
        Lexicon.from_dataset(ROWS, "words")


def test_priors_count_in_the_lexicon_or_in_a_text():
    counts = {"mat": 7, "the": 5, "cat": 1, "<unk>": 2}
    lexicon = Lexicon.from_counts(counts, unknown="<unk>")
    features = (priors.TopWords(1),)
    by_counts = with_priors(lexicon, features, priors.Unigram())
    assert by_counts.features_of(1) == {"Word:mat": 1.0}
    np.testing.assert_allclose(np.exp(by_counts.log_background), np.array([2, 7, 5, 1]) / 15)
    in_text = with_priors(lexicon, features, priors.Unigram(), sentences=SENTENCES)
    assert in_text.features_of(2) == {"Word:the": 1.0}
    # "sat", "slept" and "on" are unknown words.
    np.testing.assert_allclose(np.exp(in_text.log_background), np.array([3, 2, 4, 2]) / 11)


def test_no_words_are_taken_for_frequent_without_counts():
    nothing = Lexicon(words=("a", "b", "c"), counts=np.zeros(3, np.int64))
    with pytest.raises(UserError, match=r"priors\.TopWords needs to know which words are frequent"):
        with_priors(nothing, (priors.TopWords(1),))


@pytest.mark.slow
def test_a_background_learns_from_a_text():
    lexicon = Lexicon.from_counts(COUNTS, boundary="</s>", unknown="<unk>")
    background = priors.KneserNey(order=2)
    lexicon_with_background = with_background(lexicon, background, SENTENCES)
    tables = background.tables(lexicon_with_background)
    words = jnp.asarray(lexicon.encode(["</s>", "the"]))[None]
    context, _ = background.apply(tables, words, background.initial_carry(1))
    probabilities = np.exp(background.log_probs(tables, context))[0]
    np.testing.assert_allclose(probabilities.sum(-1), [1, 1], rtol=1e-5)
    # Every sentence begins with "the"; "cat" and "mat" stand after it.
    assert lexicon.words[probabilities[0].argmax()] == "the"
    assert {lexicon.words[place] for place in np.argsort(probabilities[1])[-2:]} == {"cat", "mat"}


@pytest.mark.parametrize(
    ("counts", "limits", "message"),
    [
        ({"a": 2, "b": -1}, {}, r"^counts has -1 for 'b': give whole numbers, at least 0$"),
        ({"a": 2.5}, {}, r"^counts has 2.5 for 'a': give whole"),
        ({"a": 2}, {"minimum_count": -1}, r"^minimum_count is -1: give at least 0$"),
        ({"a": 2}, {"maximum_size": -1}, r"^maximum_size is -1: give at least 0$"),
    ],
)
def test_what_is_no_count_is_named(counts, limits, message):
    with pytest.raises(ValueError, match=message):
        Lexicon.from_counts(counts, **limits)


def test_words_of_another_lexicon_are_named():
    with pytest.raises(ValueError, match=r"^'dog': not in the lexicon, so leave them out$"):
        Lexicon.from_counts({"cat": 2}).select_words(("cat", "dog"))
