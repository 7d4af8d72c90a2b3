"""Temperatures of trained models, beside a numpy loop over the words."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evaluate
from tests import examples, passports
from tests.marks import slow
from zoo.errors import UserError
from zoo.heads import AdaptiveSoftmax, CharLSTM, Softmax, WithCache
from zoo.heads.with_cache import MemoryContext
from zoo.lab.evaluation import passport
from zoo.lab.evaluation.changes import registry, temperature
from zoo.lab.evaluation.changes.temperature import Temperature, Tempered
from zoo.lexicon.spelling import Spelling

SIZE, WORDS = 3, 7


def by_hand(log_probs, power):
    """log p^power / sum p^power of each row, a word at a time, in float64."""
    rows = []
    for row in np.asarray(log_probs, np.float64):
        powers = [np.exp(log_prob) ** power for log_prob in row]
        rows.append([np.log(p / sum(powers)) for p in powers])
    return np.array(rows)


@pytest.mark.parametrize(
    "inner",
    [
        Softmax(),
        *slow(Softmax(soft_cap=2.0), AdaptiveSoftmax(cutoffs=(3,))),
        WithCache(Softmax(), 2),
    ],
    ids=["softmax", "capped", "adaptive", "cache"],
)
def test_probabilities_are_those_of_a_loop(inner, random):
    lexicon = examples.plain_lexicon(WORDS)
    params = examples.random_params(inner, random, SIZE, lexicon)
    hidden = jnp.asarray(random.normal(size=(4, SIZE)), jnp.float32)
    context = None
    if inner.background is not None:
        scores = jnp.asarray(random.normal(size=(4, 2)), jnp.float32)
        context = MemoryContext(scores, jnp.asarray(random.integers(0, WORDS, (4, 2))))
    plain = jax.jit(inner.log_probs)(params, inner.tables(lexicon), hidden, context=context)
    for value in (0.7, 1.0, 2.5):
        head = Tempered(inner, value)
        tables = head.evaluation_tables(lexicon)
        inputs = params, tables, hidden
        log_probs = jax.jit(head.log_probs)(*inputs, context=context)
        expected = by_hand(plain, 1 / value)
        np.testing.assert_allclose(log_probs, expected, rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=1e-5)
        targets = jnp.array([0, 6, 3, 3])
        log_prob = jax.jit(head.log_prob)(*inputs, targets, context=context)
        np.testing.assert_allclose(log_prob, expected[np.arange(4), targets], rtol=2e-5, atol=2e-6)


def test_the_temperature_that_validation_gives_is_known_of_powers_of_its_frequencies(run):
    """p proportional to u^3, u the words' shares of the text: at T = 3 it is u, which is best."""
    corpus = run.read("validation")
    text, scores = run.score_corpus(corpus)
    counts = np.bincount(text.words[scores.counted], minlength=len(run.lexicon))
    shares = np.maximum(counts / counts.sum(), 1e-9)
    head = {
        "weights": jnp.zeros_like(run.params["head"]["weights"]),
        "bias": jnp.asarray(3 * np.log(shares), jnp.float32),
    }
    sure = dataclasses.replace(run, params={**run.params, "head": head})
    tuned = temperature.tune(sure)
    assert tuned.temperature == pytest.approx(3, rel=2e-3) and tuned.tuned_on == "validation"
    _, best = Temperature(3.0).apply(sure).score_corpus(corpus)
    seen = shares[counts > 0]
    assert best.log_perplexity == pytest.approx(-(seen * np.log(seen)).sum(), rel=1e-5)
    _, same = Temperature(1.0).apply(sure).score_corpus(corpus)
    assert same.log_perplexity == pytest.approx(sure.score_corpus(corpus)[1].log_perplexity)


def test_a_passport_and_a_file_name_tell_it(run):
    change = Temperature(1.25, "validation")
    changed = change.apply(run)
    assert passport.file_of(changed, passports.make()).name == "test.carried.temperature.json"
    assert registry.changes_of(changed) == (change,)
    assert registry.from_json(change.to_json()) == change
    assert change.sentence == "probabilities to the power of 1/1.25, divided by their sum"


@pytest.mark.slow
def test_a_command_sets_it_and_tells_it(call, workdir):
    code, tuned, errors = call(evaluate, workdir, "--split", "test", "--temperature", "tune")
    assert code == 0 and ", set on validation" in errors
    number = errors.partition("temperature: ")[2].partition(",")[0]
    code, repeated, errors = call(evaluate, workdir, "--split", "test", "--temperature", number)
    assert (code, repeated) == (0, tuned) and "set on" not in errors
    assert f"probabilities to the power of 1/{number}, divided by their sum" in tuned
    assert (workdir / "results" / "test.carried.temperature.json").exists()


def test_a_head_that_spells_has_no_list_of_words(run):
    model = dataclasses.replace(
        run.experiment.model, head=CharLSTM(Spelling(unit="characters", longest=5), size=6)
    )
    spelling = dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, model=model))
    with pytest.raises(UserError, match="give --renormalise, too, or leave --temperature out"):
        Temperature(2.0).apply(spelling)
