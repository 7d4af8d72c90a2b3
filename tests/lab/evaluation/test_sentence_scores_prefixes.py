"""Scores of a tree of prefixes are those of its sentences, one by one."""

import dataclasses

import numpy as np
import pytest

from tests import examples
from tests.marks import slow
from zoo.cores import GRU, LSTM, NGram
from zoo.data.batches import Batches
from zoo.data.encoded_text import EncodedText, Strings
from zoo.embeddings import Lookup
from zoo.heads import (
    AdaptiveSoftmax,
    CharLSTM,
    CNNSoftmax,
    HierarchicalSoftmax,
    HuffmanSoftmax,
    LogLinear,
    MixtureOfContexts,
    MixtureOfSoftmaxes,
    Softmax,
    WithCache,
)
from zoo.lab.evaluation import perplexity, sentence_scores
from zoo.models import LanguageModel

BOUNDARY = 12
MODELS = {
    "softmax": LanguageModel(Lookup(5), LSTM(5, layers=2), Softmax(tied=True)),
    "log-linear": LanguageModel(Lookup(4), GRU(6), LogLinear()),
    "letters": LanguageModel(Lookup(4), LSTM(5), CharLSTM(size=3, letter_size=2)),
    "mixture": LanguageModel(Lookup(4), LSTM(5), MixtureOfSoftmaxes(components=2)),
    "contexts": LanguageModel(Lookup(4), LSTM(5), MixtureOfContexts(components=3)),
    "adaptive": LanguageModel(Lookup(4), LSTM(5), AdaptiveSoftmax((3, 8), division=2)),
    "hierarchical": LanguageModel(Lookup(4), LSTM(5), HierarchicalSoftmax()),
    "Huffman": LanguageModel(Lookup(4), NGram(size=5, order=3), HuffmanSoftmax()),
    "CNN": LanguageModel(Lookup(4), LSTM(5), CNNSoftmax()),
    "cache": LanguageModel(Lookup(4), LSTM(5), WithCache(Softmax(), 6, flatness=0.8, weight=0.3)),
}
USUAL = ("softmax", "log-linear")


def text_of(sentences):
    """Sentences of ids, each with the boundary at its end."""
    words = [word for sentence in sentences for word in (*sentence, BOUNDARY)]
    lengths = [len(sentence) + 1 for sentence in sentences]
    all_true = np.ones(len(words), bool)
    starts = np.cumsum([0, *lengths[:-1]])
    return EncodedText(np.array(words, np.int32), all_true, all_true, starts)


def sentences_of(random, count=23):
    """Lists of sentences that begin alike, some of them twice, one empty, one long."""
    stems = [random.integers(12, size=size).tolist() for size in (0, 2, 5, 31)]
    sentences = [
        [*stems[number % 4], *random.integers(3, size=number % 5).tolist()]
        for number in range(count)
    ]
    return [*sentences, [], [1], [1]]


@pytest.mark.parametrize("name", [*USUAL, *slow(*(name for name in MODELS if name not in USUAL))])
def test_sentences_have_the_scores_that_they_have_alone(name, random, monkeypatch):
    lexicon, model = examples.lexicon(), MODELS[name]
    params = examples.random_params(model, random, lexicon, scale=0.6)
    tables = model.evaluation_tables(lexicon)
    text = text_of(sentences_of(random))
    batches = Batches(text, 1, 8, "sentences", BOUNDARY)
    expected = perplexity.score(model, params, tables, text, batches).log_prob
    monkeypatch.setattr(sentence_scores, "BLOCK", 4)
    log_prob = sentence_scores.score_tree(model, params, tables, text, BOUNDARY)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(
        sentence_scores, "TOGETHER", 5
    )  # several trees, one of long sentences alone
    monkeypatch.setattr(sentence_scores, "WORDS", 60)
    if name == "softmax":
        small_trees = sentence_scores.score_tree(model, params, tables, text, BOUNDARY)
        np.testing.assert_allclose(small_trees, expected, rtol=1e-5, atol=1e-5)


def test_strings_of_classes_are_scored_too(random):
    lexicon, model = examples.lexicon(), MODELS["softmax"]
    params = examples.random_params(model, random, lexicon)
    tables = model.evaluation_tables(lexicon)
    text = text_of([[3, 4], [3]])
    plain = sentence_scores.score_tree(model, params, tables, text, BOUNDARY)
    strings = Strings(np.array([-1.5, 0, 0, -2.0, 0]), np.full(5, -1))
    log_prob = sentence_scores.score_tree(
        model, params, tables, dataclasses.replace(text, strings=strings), BOUNDARY
    )
    np.testing.assert_allclose(log_prob - plain, [-1.5, 0, 0, -2, 0], atol=1e-5)


def test_what_sentences_begin_with_is_computed_once(random, monkeypatch):
    """Ten sentences of six words that differ in the last: five nodes, ten words after the last."""
    monkeypatch.setattr(sentence_scores, "BLOCK", 1)
    monkeypatch.setattr(sentence_scores, "LARGE", 1)
    read, scored = [], []

    def compile_steps(model):
        def advance(params, tables, prepared, above, level, rows, words, start):
            read.append(int(words[0]))
            return level

        def log_prob(params, tables, prepared, states, rows, targets):
            scored.append(int(targets[0]))
            return np.zeros(1, np.float32)

        return advance, log_prob

    monkeypatch.setattr(sentence_scores, "compile_steps", compile_steps)
    lexicon, model = examples.lexicon(), MODELS["softmax"]
    params = examples.random_params(model, random, lexicon)
    text = text_of([[7, 1, 2, 3, 4, last] for last in range(10)])
    sentence_scores.score_tree(model, params, model.evaluation_tables(lexicon), text, BOUNDARY)
    assert read == [BOUNDARY, 7, 1, 2, 3, 4, *range(10)]
    assert sorted(scored) == sorted([7, 1, 2, 3, 4, *range(10), *[BOUNDARY] * 10])
