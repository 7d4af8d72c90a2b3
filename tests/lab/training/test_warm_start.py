"""Stages of training: values from another run, and parts that keep them."""

import dataclasses
import functools
import shutil

import jax
import numpy as np
import pytest

from tests.lab.training import small
from tests.lab.training.test_loop_resume import assert_same_end, stop_at
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import CharCNN, Concat, Lookup
from zoo.errors import Interrupted, UserError
from zoo.heads import NCE, CharLSTM, HuffmanSoftmax, LogLinear
from zoo.lab.runs.checkpoints import Checkpoints
from zoo.lab.runs.workdir import WarmStart, Workdir
from zoo.lab.training import warm_start
from zoo.lab.training.step import train_step
from zoo.lexicon.spelling import Spelling
from zoo.optimizers import SGD, Adagrad, Adam
from zoo.priors import TopWords

SPELLER = CharLSTM(Spelling(longest=6), size=4, letter_size=3)
FROZEN = ("core", "embedding")


def saved(folder, recipe):
    """The folder of a run; its best parameters are as they were drawn, and those of step 7."""
    lexicon, _ = recipe.build()
    Workdir(folder).claim(recipe)
    Workdir(folder).save_lexicon(lexicon)
    params = recipe.model.init(jax.random.key(9), lexicon)
    checkpoints = Checkpoints(folder / "checkpoints")
    checkpoints.save("best", 7, {"params": params}, {"data": "digest"})
    checkpoints.close()
    return folder


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The folder of the first stage: a softmax."""
    return saved(tmp_path_factory.mktemp("start") / "first", small.experiment())


@pytest.fixture(scope="module")
def first_params(first):
    workdir = Workdir(first)
    return workdir.best(workdir.experiment(), [workdir.lexicon()])[1]


def second(first, head=SPELLER, frozen=FROZEN, vocabulary=None, **training):
    """The second stage, with another head."""
    settings = {"epochs": 1, "seed": 4, "frozen": frozen, "optimizer": Adam(0.05), "clip": 0.5}
    recipe = small.experiment(vocabulary=vocabulary, **(settings | training))
    model = dataclasses.replace(recipe.model, head=head)
    data = small.RandomWords()  # with the words of the first stage
    return dataclasses.replace(recipe, data=data, model=model, init_from=str(first))


def assert_equal(tree, expected):
    jax.tree.map(np.testing.assert_array_equal, tree, expected)


def read(first, recipe):
    lexicon, _ = recipe.build()
    return warm_start.read(str(first), recipe.model, (lexicon,), recipe.training.frozen)


@pytest.mark.slow
def test_a_head_is_trained_on_a_frozen_model_on_one_device_or_several(
    first, first_params, tmp_path
):
    ends = []
    for devices in (1, 2):
        trainer = small.trainer(second(first), tmp_path / str(devices), devices, log := [])
        trainer.train()
        assert log[:2] == [f"{part}: taken from {first}, step 7." for part in FROZEN]
        assert log[2].startswith("head: initialised anew (bias is float32[13] there, ")
        ends.append(small.last_state(trainer)[1])
        for part in FROZEN:
            assert_equal(ends[-1].params[part], first_params[part])
    start_params = trainer.initial_state().params
    changes = jax.tree.map(
        lambda start_leaf, end_leaf: np.abs(start_leaf - end_leaf).max(),
        start_params["head"],
        ends[0].params["head"],
    )
    assert min(jax.tree.leaves(changes)) > 1e-3
    for single_leaf, double_leaf in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(single_leaf, double_leaf, atol=2e-5)
    # Nothing is kept for the frozen parts: Adam's two moments are of the head alone.
    head_size = sum(leaf.size for leaf in jax.tree.leaves(start_params["head"]))
    optimizer_leaves = jax.tree.leaves(ends[0].optimizer_state)
    assert sum(leaf.size for leaf in optimizer_leaves if leaf.ndim) == 2 * head_size
    numbers = sum(leaf.size for leaf in jax.tree.leaves(start_params))
    assert f"{numbers:,} parameters ({head_size:,} of them trained)" in trainer.summary()


@pytest.mark.slow
def test_only_gradients_that_are_needed_are_formed_and_clipped(first, tmp_path):
    """One step of SGD on the head is that of a model whose other parts have the rate 0."""
    ends = []
    for frozen in (FROZEN, ()):
        # So low a bound that every gradient is clipped to it.
        recipe = second(first, small.MODEL.head, frozen, optimizer=SGD(1.0), clip=1e-3)
        trainer = small.trainer(recipe, tmp_path / str(len(frozen)))
        before = trainer.initial_state(values=read(first, recipe).params)
        task = trainer.task
        step = functools.partial(
            train_step, loss=task.loss, optimizer=trainer.optimizer, frozen=frozen
        )
        key = jax.random.key_data(jax.random.key(3))
        after, results = jax.jit(step)(before, task.tables, task.part(task.epoch(0), 0), key)
        changes = jax.tree.map(np.subtract, after.params, before.params)
        ends.append((changes, float(results.gradient_norm)))
    (head_changes, norm), (all_changes, whole_norm) = ends
    assert 1e-3 < norm < whole_norm
    for leaf, other_leaf in zip(
        *(jax.tree.leaves(m["head"]) for m in (head_changes, all_changes)), strict=True
    ):
        np.testing.assert_allclose(leaf / 1e-3 * norm, other_leaf / 1e-3 * whole_norm, atol=2e-4)
    length = np.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(head_changes)))
    assert length == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.slow
def test_row_sparse_training_of_a_head_alone_is_the_dense_one(first, tmp_path):
    ends = []
    for sparse, devices in ((False, 1), (True, 2)):
        recipe = second(first, NCE(samples=3), row_sparse=sparse, optimizer=Adagrad(0.3))
        trainer = small.trainer(recipe, tmp_path / str(sparse), devices)
        trainer.train()
        ends.append(small.last_state(trainer)[1])
    dense, sparse = ends
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=5e-6), dense[0], sparse[0])
    assert sorted(sparse.optimizer_state["rows"]) == ["head.bias", "head.weights"]
    assert not [leaf for leaf in jax.tree.leaves(sparse.optimizer_state["dense"]) if leaf.ndim]


@pytest.mark.slow
def test_a_resumed_run_needs_the_other_no_more(first, tmp_path, monkeypatch):
    shutil.copytree(first, tmp_path / "first")
    recipe = second(tmp_path / "first", small.MODEL.head, checkpoint_every=3)
    uninterrupted = small.trainer(recipe, tmp_path / "whole")
    uninterrupted.train()
    pieces = small.trainer(recipe, tmp_path / "pieces")
    with monkeypatch.context() as patch:
        stop_at(patch, pieces, 2)
        with pytest.raises(Interrupted):
            pieces.train()
    shutil.rmtree(tmp_path / "first")
    pieces = small.trainer(recipe, tmp_path / "pieces", log=(log := []))
    pieces.train()
    assert log[0].startswith("resuming after step 2")
    assert_same_end(uninterrupted, pieces)
    with pytest.raises(UserError, match=r"init_from: .* does not hold a run that can be read"):
        small.trainer(recipe, tmp_path / "another")


def test_what_a_run_started_from_is_kept(first, tmp_path):
    lexicon, first_lexicon = second(first).build()[0], Workdir(first).lexicon()
    record = warm_start.read(str(first), second(first).model, (lexicon,)).record
    Workdir(tmp_path).save_start(record)
    assert Workdir(tmp_path).start() == WarmStart(
        workdir=str(first),
        parts=("core", "embedding"),
        checkpoint=7,
        lexicon={"hash": first_lexicon.digest(), "words_hash": first_lexicon.words_digest()},
        data="digest",
        init_from=None,
    )


def test_the_whole_model_is_taken_where_it_fits(first, first_params):
    start = read(first, second(first, small.MODEL.head, frozen=()))
    assert list(start.params) == ["core", "embedding", "head"]
    assert_equal(start.params, first_params)


def test_parts_of_other_sizes_are_new(first):
    recipe = small.with_settings(second(first, small.MODEL.head, ()), "model.embedding.size=5")
    start = read(first, recipe)
    assert list(start.params) == ["head"]
    assert start.lines[1] == (
        "embedding: initialised anew (table is float32[13, 6] there, float32[13, 5] here)."
    )
    assert start.lines[2].startswith("head: taken from ")
    with pytest.raises(UserError, match=r"frozen names 'embedding', which cannot be taken .*6\]"):
        warm_start.read(str(first), recipe.model, recipe.build()[:1], ("embedding",))


def test_rows_of_features_are_no_rows_of_words(tmp_path):
    """As many features as words: all shapes are equal, and each row is of something else."""
    vocabulary = Vocabulary(features=(TopWords(count=20),))
    recipe = small.experiment(small.LOG_LINEAR, vocabulary=vocabulary)
    lexicon, _ = recipe.build()
    assert len(lexicon) == len(lexicon.feature_names)
    assert lexicon.feature_names != tuple(f"Word:{word}" for word in lexicon.words)
    folder = str(saved(tmp_path / "first", recipe))
    assert len(warm_start.read(folder, small.LOG_LINEAR, (lexicon,)).params) == 3
    start = warm_start.read(folder, small.MODEL, (lexicon,))
    assert list(start.params) == ["core"]
    anew = "initialised anew (its rows are of features there, of words here)."
    assert start.lines[1:] == [f"embedding: {anew}", f"head: {anew}"]
    second_model = dataclasses.replace(small.LOG_LINEAR, head=LogLinear(kinds=("Word",)))
    with pytest.raises(UserError, match="rows are of features there, of features Word here"):
        warm_start.read(folder, second_model, (lexicon,), frozen=("head",))


def test_a_model_of_which_nothing_fits(first):
    recipe = small.with_settings(
        second(first, frozen=()), "model.embedding.size=5", "model.core.size=5"
    )
    with pytest.raises(UserError, match=r"no part of that model fits this model \(core: ") as e:
        read(first, recipe)
    assert "\n" not in str(e.value)


def with_data(recipe, data):
    return dataclasses.replace(recipe, data=data)


def test_other_words_have_other_vectors(first):
    with pytest.raises(UserError, match=r"its embedding has parameters of its words, but .*differ"):
        read(first, with_data(second(first), Replaced(before="word3", after="new")))
    # A core sees no words.
    recipe = small.with_settings(
        with_data(second(first, frozen=()), Replaced(before="word3", after="new")),
        "model.embedding.size=5",
    )
    with pytest.raises(UserError, match="no part of that model fits"):
        read(first, recipe)  # its core reads vectors of another size
    recipe = dataclasses.replace(
        recipe, model=dataclasses.replace(recipe.model, embedding=CharCNN(size=6))
    )
    assert list(read(first, recipe).params) == ["core"]


@dataclasses.dataclass(frozen=True)
class Replaced(small.RandomWords):
    """The same text with one string in the place of another in its words."""

    before: str = "w"
    after: str = "v"

    def read(self, split):
        corpus = super().read(split)
        sentences = [[w.replace(self.before, self.after) for w in s] for s in corpus.sentences]
        return dataclasses.replace(corpus, sentences=sentences)


@pytest.mark.parametrize("unit", ["bytes", "characters"])
def test_letters_go_to_other_words_where_they_are_the_same_letters(tmp_path, unit):
    network = dataclasses.replace(CharCNN().network, spelling=Spelling(unit=unit))
    head = dataclasses.replace(SPELLER, spelling=Spelling(unit=unit, longest=6))
    model = dataclasses.replace(small.MODEL, embedding=CharCNN(6, network), head=head)
    recipe = small.experiment(model)
    folder = saved(tmp_path / "first", recipe)
    same_letters = with_data(recipe, Replaced(before="word", after="drow"))
    assert list(read(folder, same_letters).params) == ["core", "embedding", "head"]
    other_letters = with_data(recipe, Replaced())  # as many
    if unit == "bytes":
        assert "head" in read(folder, other_letters).params
    else:
        with pytest.raises(UserError, match=r"embedding has parameters of its .* letters of"):
            read(folder, other_letters)


def test_vectors_of_words_beside_those_of_letters_go_to_no_other_words(tmp_path):
    model = dataclasses.replace(
        small.MODEL, embedding=Concat((Lookup(3), CharCNN(3))), head=SPELLER
    )
    recipe = small.experiment(model)
    folder = saved(tmp_path / "first", recipe)
    second_recipe = with_data(recipe, small.RandomWords(seed=3))
    words, second_words = recipe.build()[0].words, second_recipe.build()[0].words
    assert words != second_words and sorted(words) == sorted(second_words)
    with pytest.raises(UserError, match="its embedding has parameters of its words"):
        read(folder, second_recipe)


@dataclasses.dataclass(frozen=True)
class KnownWords(small.RandomWords):
    """A source that has its words beforehand, so that their order is not that of the counts."""

    def lexicon_entries(self):
        return {f"word{number}": () for number in range(11)}


def test_parameters_that_lie_by_frequency_need_the_same_frequencies(tmp_path):
    model = dataclasses.replace(small.MODEL, head=HuffmanSoftmax())
    recipe = small.experiment(model, vocabulary=Vocabulary(minimum_count=10**6))
    recipe = with_data(recipe, KnownWords())
    folder = saved(tmp_path / "first", recipe)
    assert "head" in read(folder, recipe).params
    second_recipe = with_data(recipe, KnownWords(seed=3))
    assert second_recipe.build()[0].words == recipe.build()[0].words
    with pytest.raises(UserError, match="its head orders words by their frequencies"):
        read(folder, second_recipe)


def test_a_run_without_a_checkpoint(tmp_path):
    recipe = small.experiment()
    Workdir(tmp_path / "first").claim(recipe)
    Workdir(tmp_path / "first").save_lexicon(recipe.build()[0])
    with pytest.raises(UserError, match=r"init_from: .* has no checkpoint of a validated"):
        small.trainer(second(tmp_path / "first"), tmp_path / "second")


@pytest.mark.slow
def test_a_damaged_best_is_said(first, tmp_path):
    """The one before is taken."""
    folder = tmp_path / "first"
    small.run_in(folder, small.experiment(epochs=4, patience=0))
    steps = sorted(int(path.name) for path in (folder / "checkpoints" / "best").iterdir())
    assert len(steps) == 2
    best = folder / "checkpoints" / "best" / str(steps[1])
    (best / "progress" / "metadata").write_text('{"epoch": 0}')
    start = read(folder, second(folder, small.MODEL.head, ()))
    assert start.record.checkpoint == steps[0]
    assert f"init_from: the checkpoint of step {steps[1]} in " in start.lines[0]
    assert "its progress is not as it was saved" in start.lines[0]
