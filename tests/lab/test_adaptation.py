"""A model over a trained background: equal to it before the first step, and trained beside it."""

import dataclasses
import shutil

import jax
import numpy as np
import pytest

from tests import examples
from tests.lab.training import small
from zoo.alignment import Copyable
from zoo.data import Characters, Pairs
from zoo.data.batches import Batches
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lab.adaptation import Trained, WithWordsOf
from zoo.lab.evaluation import perplexity
from zoo.lab.evaluation.run import Run
from zoo.lab.runs.workdir import Workdir
from zoo.priors import DigitStrings, Numbers, TopWords


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run over eleven words."""
    folder = tmp_path_factory.mktemp("background") / "run"
    recipe = small.experiment(epochs=1)
    return small.run_in(folder, recipe)


def adapted(trained, seed=5, **training):
    """Other sentences of the same words, over the run as background."""
    recipe = small.experiment(epochs=1, **training)
    return dataclasses.replace(
        recipe,
        data=WithWordsOf(small.RandomWords(seed=seed), str(trained)),
        vocabulary=Vocabulary(minimum_count=10**6, features=(TopWords(20, ("train",)),)),
        model=dataclasses.replace(
            recipe.model,
            embedding=Lookup(size=6),
            head=LogLinear(initial_scale=0.0, background=Trained(str(trained))),
        ),
    )


def log_probs(model, params, lexicon, recipe, text):
    batch_rows = Batches(text, 3, 6, "carried", lexicon.ids[lexicon.boundary])
    return perplexity.score(model, params, model.tables(lexicon), text, batch_rows).log_prob


def test_before_the_first_step_the_model_is_its_background(trained):
    recipe = adapted(trained)
    lexicon, corpora = recipe.build()
    run = Run.load(trained)
    assert set(lexicon.words) == set(run.lexicon.words)
    params = recipe.model.init(jax.random.key(0), lexicon)
    text = recipe.vocabulary.encode(corpora["validation"], lexicon)
    start_log_probs = log_probs(recipe.model, params, lexicon, recipe, text)
    run_text = run.experiment.vocabulary.encode(corpora["validation"], run.lexicon)
    expected = log_probs(run.experiment.model, run.params, run.lexicon, recipe, run_text)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(start_log_probs, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.slow
def test_the_adaptor_learns_and_the_background_stays(trained, tmp_path):
    recipe = adapted(trained, batch=4)
    single_trainer, double_trainer = (small.trainer(recipe, tmp_path / str(n), n) for n in (1, 2))
    tables = recipe.model.head.background.tables(recipe.build()[0])
    before = jax.tree.map(np.array, tables["params"])
    for trainer in (single_trainer, double_trainer):
        trainer.train()
    _, single_state, _ = small.last_state(single_trainer)
    _, double_state, _ = small.last_state(double_trainer)
    assert np.abs(single_state.params["head"]["weights"]).max() > 1e-3
    for a, b in zip(jax.tree.leaves(single_state), jax.tree.leaves(double_state), strict=True):
        np.testing.assert_allclose(a, b, atol=3e-6)
    jax.tree.map(np.testing.assert_array_equal, before, tables["params"])


def test_new_words_share_the_probability_of_the_unknown_one(trained):
    recipe = adapted(trained)
    recipe = dataclasses.replace(recipe, data=WithWordsOf(NewWords(), str(trained)))
    recipe = small.with_settings(recipe, "vocabulary.minimum_count=1")
    lexicon, _ = recipe.build()
    background = recipe.model.head.background
    tables = background.tables(lexicon)
    words = np.array([[lexicon.ids["</s>"], lexicon.ids["new1"], lexicon.ids["word3"]]])
    contexts, _ = background.apply(tables, words, background.initial_carry(1))
    probs = np.exp(background.log_probs(tables, contexts))
    np.testing.assert_allclose(probs.sum(-1), np.ones((1, 3)), rtol=1e-5)
    ids = [lexicon.ids[word] for word in ("<unk>", "new0", "new1")]
    np.testing.assert_allclose(probs[..., ids], probs[..., ids[:1]].repeat(3, -1))
    log_prob = background.log_prob(tables, contexts, words)
    expected = np.take_along_axis(probs, words[..., None], -1)[..., 0]
    np.testing.assert_allclose(np.exp(log_prob), expected, rtol=1e-5)


class NewWords(small.RandomWords):
    def read(self, split):
        corpus = super().read(split)
        sentences = [["new0", "new1"], *corpus.sentences]
        features = [[("POS:NEW",), ("POS:NEW",)], *corpus.features]
        return dataclasses.replace(corpus, sentences=sentences, features=features)


def test_a_background_that_has_changed_is_refused(trained):
    lexicon, _ = adapted(trained).build()
    background_tables = {**lexicon.background_tables, "digest": np.zeros(32, np.uint8)}
    with pytest.raises(UserError, match="has changed since it became a background"):
        Trained(str(trained)).tables(
            dataclasses.replace(lexicon, background_tables=background_tables)
        )


def test_a_run_with_classes_of_strings_is_no_background(tmp_path):
    classes = (DigitStrings(("Number:digits",)),)
    vocabulary = Vocabulary(features=(TopWords(4), Numbers()), open_classes=classes)
    folder = tmp_path / "run"
    Workdir(folder).claim(small.experiment(small.LOG_LINEAR, vocabulary=vocabulary))
    with pytest.raises(UserError, match=r"run has strings .*open_classes.*: take a run without"):
        Trained(str(folder)).prepare(examples.lexicon(), {})


@pytest.mark.slow
def test_a_wrapper_tells_what_its_source_tells():
    letters = WithWordsOf(Characters("a.txt", "a.txt"), "run")
    assert letters.is_character_level and letters.as_written() == letters
    marked = Pairs(("a", "b"), ("a", "b"), unknowns=Copyable())
    wrapped = WithWordsOf(marked, "run")
    assert wrapped.unknowns == Copyable() and not wrapped.is_character_level
    assert wrapped.as_written() == WithWordsOf(marked.as_written(), "run")


def test_the_same_words_are_not_gathered(trained):
    recipe = adapted(trained)
    vocabulary = Vocabulary(features=(TopWords(20, ("train",)),))
    recipe = dataclasses.replace(recipe, data=small.RandomWords(20), vocabulary=vocabulary)
    lexicon, _ = recipe.build()
    background = recipe.model.head.background
    tables = background.tables(lexicon)
    assert tables["place"] is None
    gathered = {**tables, "place": np.arange(len(lexicon))}
    words = np.array([[0, 3, 5], [7, 2, 4]])
    signature = lexicon.signatures[0]
    assert signature.tolist() == list(range(len(lexicon)))

    @jax.jit
    def evaluate(word_tables):
        contexts, _ = background.apply(word_tables, words, background.initial_carry(2))
        masses = background.log_masses(word_tables, contexts, signature, len(lexicon))
        return background.log_prob(word_tables, contexts, words), masses

    results = []
    for word_tables in (tables, gathered):
        log_prob, masses = evaluate(word_tables)
        results.append((log_prob, masses))
        np.testing.assert_allclose(np.exp(masses).sum(-1), np.ones((2, 3)), rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, *results)


@pytest.mark.slow
def test_a_damaged_best_of_the_background_is_said(tmp_path, caplog):
    folder = small.run_in(tmp_path / "run", small.experiment(epochs=4))
    older, newer = sorted(int(path.name) for path in (folder / "checkpoints/best").iterdir())
    metadata = folder / "checkpoints" / "best" / str(newer) / "progress" / "metadata"
    metadata.write_text("{}")
    recipe = adapted(folder)
    recipe.build()
    assert f"the checkpoint of step {newer} in " in caplog.text
    assert "passed over (its progress is not as it was saved)" in caplog.text
    assert older < newer


@pytest.mark.slow
def test_a_built_model_reads_no_disk(trained, tmp_path):
    """Over a run that is over a run."""
    folder = small.run_in(tmp_path / "run", adapted(trained))
    recipe = adapted(folder)
    lexicon, _ = recipe.build()
    background = recipe.model.head.background
    shutil.rmtree(folder)
    tables = background.tables(lexicon)
    words = np.array([[0, 3, 5], [7, 2, 4]])
    contexts, _ = background.apply(tables, words, background.initial_carry(2))
    log_prob = background.log_prob(tables, contexts, words)
    log_probs = background.log_probs(tables, contexts)
    expected = np.take_along_axis(np.asarray(log_probs), words[..., None], -1)[..., 0]
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="has not been read yet; build the experiment"):
        Trained(str(folder)).initial_carry(2)
