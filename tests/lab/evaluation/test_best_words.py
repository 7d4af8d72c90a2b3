"""The best words of a text are the first of all words in the order of their probabilities."""

import dataclasses
import pathlib

import jax
import numpy as np
import pytest

from tests.lab.training import small
from tests.lab.training.test_tasks_translation import experiment as translation
from zoo.attention import Luong
from zoo.data import Corpus
from zoo.heads import CharLSTM
from zoo.lab.evaluation import best_words, sentence_scores
from zoo.lab.evaluation.run import Run
from zoo.lab.training import tasks
from zoo.lexicon import Spelling


@pytest.mark.parametrize("state", ["sentences", "carried"])
def test_each_position_by_steps_from_word_to_word(run, state):
    run = run.with_state(state)
    corpus = run.read("test")
    text, states = best_words.states(run, corpus)
    best = best_words.best_words(run, text, states, 3)
    model, before, carry = run.experiment.language_model, run.lexicon.boundary_id, None

    @jax.jit
    def step(params, tables, inputs, carry):
        hidden, _, carry = model.states(params, tables, inputs, carry)
        head_params = model.head_params(params)
        return model.head.log_probs(head_params, tables["head"], hidden)[0, 0], carry

    for position, word in enumerate(text.words.tolist()):
        if carry is None or (state == "sentences" and position in text.starts):
            carry = model.initial_carry(1)
            before = run.lexicon.boundary_id
        inputs = np.array([[before]], np.int32)
        log_probs, carry = step(run.params, run.tables, inputs, carry)
        log_probs = np.asarray(log_probs)
        order = np.argsort(-log_probs, kind="stable")[:3]
        np.testing.assert_allclose(best.log_prob[position], log_probs[word], rtol=1e-4)
        np.testing.assert_allclose(best.log_probs[position], log_probs[order], rtol=1e-4)
        assert best.words[position].tolist() == order.tolist()
        before = word
    assert states.predicted.all() and len(text.words) == 5 + 11 + 7


def test_a_small_lexicon_has_fewer_words(run):
    text, states = best_words.states(run, Corpus("a text", [["le", "chat"]]))
    best = best_words.best_words(run, text, states, 1000)
    assert best.words.shape == (3, len(run.lexicon))
    np.testing.assert_allclose(np.exp(best.log_probs).sum(-1), 1, rtol=1e-5)


def untrained(experiment):
    task = tasks.prepare(experiment)
    lexicons = [*task.lexicons.values()]
    model = experiment.model
    params = model.init(jax.random.key(1), *lexicons)
    tables = model.evaluation_tables(*lexicons)
    path = pathlib.Path("nowhere")
    source_lexicons = tuple(lexicons[1:])
    return Run(path, experiment, lexicons[0], params, tables, 0, source_lexicons=source_lexicons)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["forward", "source_reversed", "target_reversed"])
def test_translations_have_the_scores_of_evaluation(order):
    recipe = translation()
    model = dataclasses.replace(recipe.model, attention=Luong(), order=order)
    run = untrained(dataclasses.replace(recipe, model=model))
    corpus = run.read("test").select(range(9))
    assert len(corpus.sentences) == len(corpus.source_text.sentences) == 9
    text, scores = run.score_corpus(corpus)
    state_text, states = best_words.states(run, corpus)
    best = best_words.best_words(run, state_text, states)
    np.testing.assert_array_equal(state_text.words, text.words)
    np.testing.assert_allclose(best.log_prob, scores.log_prob, rtol=1e-4, atol=1e-5)
    assert best.words.shape == (len(text.words), 5)


@pytest.mark.slow
def test_a_head_that_spells_has_no_list_of_words():
    model = dataclasses.replace(
        small.MODEL, head=CharLSTM(Spelling(longest=4), size=3, letter_size=2)
    )
    run = untrained(small.experiment(model))
    corpus = run.read("validation").select(range(2))
    text, states = best_words.states(run, corpus)
    best = best_words.best_words(run, text, states)
    assert best.words.shape == best.log_probs.shape == (len(text.words), 0)
    expected, _ = sentence_scores.word_log_probs(run, corpus.sentences, "the text")
    assert np.isfinite(best.log_prob).all() and len(best.log_prob) == len(expected)
