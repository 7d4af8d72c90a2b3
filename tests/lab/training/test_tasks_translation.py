"""Encoder-decoders train in the one loop, on pairs in buckets, under every head."""

import dataclasses
import re

import jax
import numpy as np
import pytest

from tests.lab.training import small
from zoo.attention import Bahdanau, Luong
from zoo.cores import GRU, LSTM, Bidirectional
from zoo.data import Buckets, Corpus, MicroPairs, Pairs, Source, Vocabulary
from zoo.embeddings import Features, Lookup
from zoo.errors import UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import AdaptiveSoftmax, CharLSTM, ImportanceSampling, LogLinear, Softmax
from zoo.lab.evaluation import scored_texts
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.scored_texts import ScoredText
from zoo.lab.training import tasks
from zoo.lexicon import Spelling
from zoo.models import SequenceToSequence
from zoo.optimizers import SGD, Adam
from zoo.priors import Morphology, TopWords

LANGUAGE = dataclasses.replace(
    MicroPairs().language, train_sentences=60, validation_sentences=30, test_sentences=20
)
MODEL = SequenceToSequence(
    embedding=Lookup(size=6, initial_scale=0.5),
    core=LSTM(size=7, dropout=0.3),
    head=Softmax(initial_scale=0.5),
    order="forward",
)


def experiment(model=MODEL, vocabulary=None, **training) -> Experiment:
    """Some thirty pairs in batches of four."""
    settings = {"batch": 4, "epochs": 2, "shuffle": True, "optimizer": SGD(learning_rate=1.0)}
    return Experiment(
        data=MicroPairs(LANGUAGE, longest=12),
        vocabulary=vocabulary or Vocabulary(),
        model=model,
        training=Training(**settings | {"buckets": Buckets(padding=0.25)} | training),
        evaluation=Evaluation(state="sentences", batch=3),
    )


MORPHOLOGY = Vocabulary(features=(TopWords(count=9), Morphology()))
HEADS = {
    "log-linear": (LogLinear(), MORPHOLOGY),
    "importance": (ImportanceSampling(samples=5), None),
    "adaptive": (AdaptiveSoftmax(cutoffs=(9,)), None),
    "char-lstm": (CharLSTM(Spelling(longest=12), size=5, letter_size=3), None),
    "tied": (Softmax(tied=True), None),
}


@pytest.mark.parametrize(
    "name",
    [
        "log-linear",
        "importance",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("adaptive", "char-lstm", "tied")),
    ],
)
@pytest.mark.slow
def test_every_head_may_stand_on_the_decoder(tmp_path, name):
    head, vocabulary = HEADS[name]
    model = dataclasses.replace(MODEL, head=head)
    if name == "log-linear":
        model = dataclasses.replace(
            model, embedding=Features(size=6), source_embedding=Lookup(size=5)
        )
    if name == "tied":
        model = dataclasses.replace(model, embedding=Lookup(size=7))
    sparse = name == "importance"
    recipe = experiment(model, vocabulary, epochs=3, optimizer=Adam(0.02), row_sparse=sparse)
    trainer = small.trainer(recipe, tmp_path / "run")
    first = trainer.task.validate(trainer.initial_state().params).value
    assert trainer.train().best < first - 0.05


@dataclasses.dataclass(frozen=True)
class Copies(Source):
    """Random words; a translation is its source, backwards."""

    def splits(self):
        return ("train", "validation", "test")

    def read(self, split):
        generator = np.random.default_rng(len(split))
        sources = [
            [f"w{word}" for word in generator.integers(5, size=generator.integers(1, 5))]
            for _ in range(600 if split == "train" else 50)
        ]
        backwards = [[word.upper() for word in words[::-1]] for words in sources]
        return Corpus(split, backwards, source_text=Corpus(split, sources))


def learner(parts=None, **training):
    model = dataclasses.replace(
        MODEL,
        **{"embedding": Lookup(size=12), "core": LSTM(size=24), "head": Softmax()} | (parts or {}),
    )
    recipe = experiment(model, batch=20, epochs=30, optimizer=Adam(0.02), clip=1.0, **training)
    return dataclasses.replace(recipe, data=Copies())


@pytest.mark.slow
def test_the_mean_may_be_over_pairs(tmp_path):
    """A step of SGD on a mean over pairs is as many times larger as a pair has tokens."""
    ends, losses = [], []
    for mean_over in ("tokens", "pairs"):
        model = dataclasses.replace(MODEL, core=LSTM(size=7))
        recipe = experiment(model, epochs=1, batch=40, mean_over=mean_over, shuffle=False)
        recipe = dataclasses.replace(recipe, data=MicroPairs(LANGUAGE, longest=7))
        recipe = small.with_settings(recipe, "training.buckets.padding=0.9")
        trainer = small.trainer(recipe, tmp_path / mean_over, log=(log := []))
        assert trainer.task.epoch_steps == 1
        start = trainer.initial_state().params
        trainer.train()
        losses += re.findall(r"training loss ([\d.]+)", "\n".join(log))
        ends.append(small.last_state(trainer)[1].params)
    pairs = trainer.task.pairs
    ratio = pairs.tokens / len(pairs.pairs)
    jax.tree.map(
        lambda a, b, c: np.testing.assert_allclose(ratio * (b - a), c - a, rtol=0.02, atol=2e-5),
        start,
        *ends,
    )
    assert losses[0] == losses[1]
    assert len(losses) == 2


PARTS = {
    "lstm": {},
    "gru, luong": {"core": GRU(size=24), "attention": Luong()},
    "bidirectional, bahdanau": {"encoder": Bidirectional(LSTM(24)), "attention": Bahdanau()},
    "input feeding": {
        **{"encoder": Bidirectional(GRU(8), layers=2), "attention": Luong()},
        **{"input_feeding": True, "bridge": "projection", "source_boundary": True},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS.keys())
def test_it_learns_what_a_decoder_alone_cannot(tmp_path, parts):
    run = small.trainer(learner(parts), tmp_path / "run")
    # A decoder that knows no source has log 5 nats a word and more at the boundary.
    assert run.train().best < 0.5


def test_the_log_says_words_shapes_padding_and_what_is_left_out():
    recipe = experiment(buckets=Buckets(padding=0.3, longest=9))
    summary = tasks.prepare(recipe).summary()
    assert "pairs with more than training.buckets.longest=9 words on a side are left out" in summary
    assert "% padding" in summary


def test_figures_are_exact_and_have_passports(tmp_path):
    recipe = experiment(epochs=1)
    folder = small.run_in(tmp_path / "run", recipe)
    run = Run.load(folder)
    corpus = run.read("test")
    text, scores = run.score_corpus(corpus)
    assert scores.tokens == len(text.words) == sum(len(s) + 1 for s in corpus.sentences)
    second_run = dataclasses.replace(
        run,
        experiment=dataclasses.replace(
            run.experiment, evaluation=Evaluation(state="sentences", batch=7)
        ),
    )
    np.testing.assert_allclose(
        second_run.score_corpus(corpus)[1].log_prob, scores.log_prob, atol=1e-5
    )
    passport = scored_texts.passport_of(ScoredText(run, "test", corpus, text, scores))
    assert passport.tokens == scores.tokens
    assert passport.source_lexicon.size == len(run.source_lexicons[0])
    assert passport.source.words == sum(map(len, corpus.source_text.sentences))
    assert passport.source.sha256 != passport.data.sha256
    assert passport.model["order"] == "forward"
    assert "  given: micro-test" in scored_texts.describe(passport)
    assert len(passport.trained_on) == 2
    # The same pairs, from two files and from a table.
    sides = [corpus.source_text.sentences, corpus.sentences]
    lines = [[" ".join(words) for words in side] for side in sides]
    for name, side in zip("ab", lines, strict=True):
        (tmp_path / name).write_text("\n".join(side) + "\n")
    (tmp_path / "c").write_text("\n".join(map("\t".join, zip(*lines, strict=True))))
    file_run = dataclasses.replace(
        run, experiment=dataclasses.replace(run.experiment, data=Pairs(("a", "b"), ("a", "b")))
    )
    for path in (f"{tmp_path}/a,{tmp_path}/b", f"{tmp_path}/c"):
        for model_run in (run, file_run):  # trained without files, and with some
            read = model_run.read_file(path).corpus
            np.testing.assert_array_equal(model_run.score_corpus(read)[1].log_prob, scores.log_prob)
    with pytest.raises(UserError, match="has 3 paths: give two files"):
        run.read_file("a,b,c")


def test_a_target_said_backwards_is_scored_where_it_stands(tmp_path):
    recipe = experiment(dataclasses.replace(MODEL, order="target_reversed"), epochs=1)
    task = tasks.prepare(recipe)
    text = task.validation.target
    batch = task.pairs.epoch()[0]
    is_target = batch.positions >= 0
    np.testing.assert_array_equal(
        task.pairs.text.target.words[batch.positions[is_target]], batch.targets[is_target]
    )
    assert text.words[text.lengths[0] - 1] == task.lexicon.boundary_id


def test_one_lexicon_may_be_shared():
    recipe = dataclasses.replace(experiment(), shared_lexicon=True)
    task = tasks.prepare(recipe)
    assert task.lexicon.words == task.source_lexicon.words
    separate = tasks.prepare(experiment())
    assert set(task.lexicon.words) == {*separate.lexicon.words, *separate.source_lexicon.words[1:]}
    contradiction = dataclasses.replace(recipe, source_vocabulary=Vocabulary(maximum_size=5))
    with pytest.raises(UserError, match=r"shared_lexicon is True, .* and source_vocabulary is set"):
        tasks.prepare(contradiction)


def test_sources_have_a_vocabulary_of_their_own():
    recipe = dataclasses.replace(
        experiment(), source_vocabulary=Vocabulary(maximum_size=5, boundary="counted")
    )
    source = tasks.prepare(recipe).source_lexicon
    assert len(source) == 6  # and <unk>
    assert source.boundary is None
    reading = dataclasses.replace(MODEL, source_boundary=True)
    with_boundary = tasks.prepare(dataclasses.replace(recipe, model=reading))
    assert with_boundary.source_lexicon.words == ("</s>", *source.words)
    words = with_boundary.pairs.text.source.words
    assert with_boundary.source_lexicon.boundary_id not in words


@pytest.mark.slow
def test_a_run_starts_with_the_parts_of_another(tmp_path):
    folder = small.run_in(tmp_path / "first", experiment(epochs=1))
    second_model = dataclasses.replace(MODEL, head=LogLinear(), embedding=MODEL.embedding)
    recipe = experiment(second_model, MORPHOLOGY, frozen=("encoder",))
    recipe = dataclasses.replace(recipe, init_from=str(folder))
    with pytest.raises(UserError, match="features or letters of this run differ"):
        small.trainer(recipe, tmp_path / "second")
    recipe = dataclasses.replace(
        experiment(dataclasses.replace(MODEL, head=ImportanceSampling(samples=5))),
        init_from=str(folder),
    )
    start = small.trainer(recipe, tmp_path / "third")._start
    assert {"embedding", "core", "encoder", "source_embedding"} <= start.params.keys()


def test_what_cannot_be_translated_is_said():
    with pytest.raises(UserError, match=r"has no sources, but model is SequenceToSequence"):
        tasks.prepare(dataclasses.replace(experiment(), data=small.RandomWords()))
