"""Log-probabilities against a numpy loop, under both state policies."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from tests import references
from zoo.data import Corpus, Vocabulary
from zoo.data.batches import Batches
from zoo.errors import UserError
from zoo.lab.evaluation import perplexity
from zoo.lab.evaluation.perplexity import Scores
from zoo.lexicon import Lexicon

SPELLINGS = [
    ["le", "<unk>", "dort", ".", "</s>"],
    ["les", "chiens", "dorment", "<unk>", "le", "chat", "voit", "les", "chats", ".", "</s>"],
    ["le", "chat", "voit", "le", "chien", ".", "</s>"],
]


def loop(run, words, first):
    """log p of each word given those before it, `first` before the first, from an empty state."""
    params = jax.tree.map(np.asarray, run.params)
    inputs = params["embedding"]["table"][[first, *words[:-1]]][None]
    carry = tuple((np.zeros((1, 7)), np.zeros((1, 7))) for _ in params["core"])
    hidden, _ = references.lstm(inputs, params["core"], carry)
    head = params["head"]
    log_probs = references.softmax_log_probs(hidden[0], head["weights"], head["bias"])
    return log_probs[np.arange(len(words)), words]


@pytest.fixture(scope="module")
def sentences(run):
    return [[run.lexicon.ids[word] for word in sentence] for sentence in SPELLINGS]


@pytest.fixture(scope="module")
def boundary(run):
    return run.lexicon.ids["</s>"]


def test_sentences_policy_equals_a_loop_over_sentences(run, sentences, boundary):
    expected = np.concatenate([loop(run, sentence, boundary) for sentence in sentences])
    text, scores = run.with_state("sentences").score_corpus(run.read("test"))
    assert text.words.tolist() == np.concatenate(sentences).tolist()
    np.testing.assert_allclose(scores.log_prob, expected, rtol=1e-5)
    # 20 words are counted, 3 boundaries are not.
    counted = [word != "</s>" for sentence in SPELLINGS for word in sentence]
    assert scores.tokens == 20
    np.testing.assert_allclose(scores.log_perplexity, -expected[counted].mean(), rtol=1e-6)
    np.testing.assert_allclose(scores.perplexity, np.exp(-expected[counted].mean()), rtol=1e-5)


@pytest.mark.parametrize(("batch_rows", "length"), [(1, 3), (2, 64), (5, 7)])
def test_sentences_policy_does_not_depend_on_rows_or_length(run, batch_rows, length, boundary):
    corpus = run.read("test")
    text, expected = run.with_state("sentences").score_corpus(corpus)
    laid = Batches(text, batch_rows, length, "sentences", boundary)
    scores = perplexity.score(run.experiment.model, run.params, run.tables, text, laid)
    np.testing.assert_allclose(scores.log_prob, expected.log_prob, rtol=1e-5)


def test_carried_policy_equals_a_loop_over_rows(run, sentences, boundary):
    words = np.concatenate(sentences).tolist()  # 23 words in 3 batch rows: 8, 8 and 7
    batch_rows = [(words[:8], boundary), (words[8:16], words[7]), (words[16:], words[15])]
    expected = np.concatenate([loop(run, batch_row, first) for batch_row, first in batch_rows])
    _, scores = run.score_corpus(run.read("test"))
    np.testing.assert_allclose(scores.log_prob, expected, rtol=1e-5)


@pytest.mark.parametrize(("batch_rows", "devices"), [(8, 4), (3, 1)])
def test_a_run_shares_its_rows_out_over_the_devices(run, monkeypatch, batch_rows, devices):
    """Over all four where they divide the batch rows; the figures are those of one device."""
    device_counts, step = [], perplexity.compiled_score_step

    def compiled(model, mesh=None, pairs=False):
        def watched(*arguments):
            results = step(model, mesh, pairs)(*arguments)
            device_counts.append(len(jax.tree.leaves(results[1])[0].sharding.device_set))
            return results

        return watched

    monkeypatch.setattr(perplexity, "compiled_score_step", compiled)
    evaluation = dataclasses.replace(run.experiment.evaluation, batch=batch_rows)
    run = dataclasses.replace(
        run, experiment=dataclasses.replace(run.experiment, evaluation=evaluation)
    )
    text, scores = run.score_corpus(run.read("test"))
    assert {*device_counts} == {devices}
    recipe, boundary = run.experiment.evaluation, run.lexicon.boundary_id
    laid = Batches(text, batch_rows, recipe.length, recipe.state, boundary)
    expected = perplexity.score(run.experiment.model, run.params, run.tables, text, laid)
    np.testing.assert_allclose(scores.log_prob, expected.log_prob, rtol=1e-5)


def test_bands_put_words_by_their_count_in_training():
    scores = Scores(
        log_prob=np.log(np.array([0.5, 0.25, 0.125, 0.5, 0.01], np.float32)),
        counted=np.array([True, True, True, True, False]),
    )
    bands = scores.bands(np.array([0, 9, 9, 10, 10]), np.zeros(5, bool))
    assert [(row.band, row.tokens) for row in bands] == [
        ("unseen", 1),
        ("1-9", 2),
        ("10-99", 1),
    ]
    expected = [math.log(2), 2.5 * math.log(2), math.log(2)]
    np.testing.assert_allclose([row.log_perplexity for row in bands], expected, rtol=1e-6)
    np.testing.assert_allclose([row.perplexity for row in bands], np.exp(expected), rtol=1e-6)


def test_unknown_words_are_one_band_written_so_or_not():
    lexicon = Lexicon(("</s>", "<unk>", "le"), np.array([2, 7, 40]), unknown="<unk>")
    vocabulary = Vocabulary(boundary="none")
    text = vocabulary.encode(Corpus("x", [["le", "<unk>", "zèbre", "</s>"]]), lexicon)
    np.testing.assert_array_equal(text.unknown(lexicon), [False, True, True, False])
    np.testing.assert_array_equal(text.occurrences(lexicon), [40, 7, 7, 2])
    scores = Scores(np.log([0.5, 0.25, 0.125, 0.5]), np.ones(4, bool))
    bands = scores.bands(text.occurrences(lexicon), text.unknown(lexicon))
    assert [(row.band, row.tokens) for row in bands] == [
        ("unknown", 2),
        ("1-9", 1),
        ("10-99", 1),
    ]
    np.testing.assert_allclose(bands[0].log_perplexity, 2.5 * math.log(2), rtol=1e-12)
    closed = dataclasses.replace(lexicon, unknown=None)
    assert not text.unknown(closed).any()


def test_an_impossible_word_makes_the_perplexity_infinite_without_an_error():
    scores = Scores(np.array([-np.inf, -1.0], np.float32), np.ones(2, bool))
    assert scores.log_perplexity == scores.perplexity == math.inf


def test_a_model_that_is_nan_keeps_its_tokens_and_shows_nan(run):
    broken = dataclasses.replace(run, params=jax.tree.map(lambda x: x * np.nan, run.params))
    _, scores = broken.score_corpus(run.read("test"))
    assert scores.tokens == 20
    assert math.isnan(scores.log_perplexity)


def test_without_a_counted_token_there_is_no_perplexity(run):
    scores = Scores(np.zeros(2, np.float32), np.zeros(2, bool))
    assert math.isnan(scores.log_perplexity) and math.isnan(scores.perplexity)
    vocabulary = dataclasses.replace(run.experiment.vocabulary, unknown="skipped")
    experiment = dataclasses.replace(run.experiment, vocabulary=vocabulary)
    with pytest.raises(UserError, match="no token of strange is counted"):
        dataclasses.replace(run, experiment=experiment).score_corpus(Corpus("strange", [["zèbre"]]))


def test_a_bit_is_log_2_nats():
    assert perplexity.bits(math.log(8)) == pytest.approx(3)
