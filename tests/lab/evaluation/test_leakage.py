"""A figure names the priors that had seen its text."""

import dataclasses

import pytest

from tests import examples
from zoo.data import Conllu, Micro, Mixed, Text, Vocabulary
from zoo.experiment import Experiment
from zoo.heads import LogLinear
from zoo.lab.adaptation import WithWordsOf
from zoo.lab.evaluation.leakage import priors_that_saw
from zoo.models import LanguageModel
from zoo.priors import (
    Arpa,
    Background,
    FeaturePrior,
    KneserNey,
    Morphology,
    TopWords,
    Uniform,
    Unigram,
)

FILES = Conllu(
    train="bank.conllu[:-9]", validation="bank.conllu[-9:]", tests=("one.conllu", "two.conllu")
)


def saw(split, path="", source=FILES, lexicon=None, model=None, **vocabulary):
    """The priors that saw a text; the lexicon has a background unless another is given."""
    lexicon = lexicon or examples.lexicon()
    model = model or LanguageModel()
    experiment = Experiment(data=source, vocabulary=Vocabulary(**vocabulary), model=model)
    return priors_that_saw(experiment, lexicon, split, path)


def test_priors_of_the_training_text_saw_no_other():
    priors = {
        "splits": ("train",),
        "features": (TopWords(2, splits=("train",)), Morphology(splits=("train",))),
        "background": Unigram(splits=("train",), smoothing=1.0),
    }
    assert saw("test1", **priors) == saw("validation", **priors) == []
    assert saw("train", **priors) == [
        *("vocabulary", "features: TopWords", "features: Morphology", "background: Unigram")
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"splits": ()}, ["vocabulary"]),
        ({"splits": ("train", "test2")}, ["vocabulary"]),
        ({"splits": ("train", "test1")}, []),
        ({"features": (TopWords(2), Morphology(splits=("train",)))}, ["features: TopWords"]),
        ({"features": (TopWords(2), TopWords(2, splits=("train",)))}, ["features: TopWords"]),
        ({"features": (TopWords(1000),)}, []),  # each word is on top, whatever its count
        ({"features": (Morphology(("train",), treebanks=("one.conllu",)),)}, []),
        (
            {"features": (Morphology(("train",), treebanks=("a", "two.conllu[3:]")),)},
            ["features: Morphology"],
        ),
        ({"source": dataclasses.replace(FILES, words=("one.conllu",))}, []),
        ({"source": dataclasses.replace(FILES, words=("two.conllu",))}, ["vocabulary"]),
        ({"background": Unigram()}, ["background: Unigram"]),
        ({"background": Uniform()}, []),
    ],
)
def test_no_split_named_is_all_of_them(changes, expected):
    assert saw("test2", **{"background": Uniform(), **changes}) == expected


def test_a_background_that_the_lexicon_has_not_saw_nothing():
    assert saw("test1", lexicon=examples.plain_lexicon(), background=Unigram()) == []


def test_a_text_given_by_path_is_known_by_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.conllu").write_text("x")
    for path in ("two.conllu", "two.conllu[:3]", str(tmp_path / "two.conllu")):
        for source in (FILES, WithWordsOf(FILES, "run")):
            chosen = {"splits": ("test2",), "background": Uniform()}
            assert saw("data:two.conllu", path, source, **chosen) == ["vocabulary"]
        assert saw("data:two.conllu", path, splits=("train",), background=Uniform()) == []
    # In part from the same file: the range is not looked at.
    assert saw("data:bank", "bank.conllu[-3:]", splits=("train",), background=Uniform()) == [
        "vocabulary"
    ]
    assert saw("data:x", "x.conllu", splits=(), background=Uniform()) == []


@pytest.mark.parametrize(
    ("path", "expected_split"),
    [
        ("a.txt", "train"),
        ("b.txt", "train"),
        ("a.dev", "validation"),
        ("b.dev", "b.validation"),  # not validated: a test
        ("b.test", "b.test"),
    ],
)
def test_a_file_of_a_mixture_is_of_the_split_that_reads_it(path, expected_split):
    corpora = tuple(Text(f"{name}.txt", f"{name}.dev", (f"{name}.test",)) for name in "ab")
    source = Mixed(("a", "b"), corpora, validated=("a",))
    for split in source.splits():
        priors = saw("data:x", path, source, splits=(split,), background=Uniform())
        assert priors == (["vocabulary"] if split == expected_split else [])


def test_a_text_given_by_path_is_known_by_its_content(tmp_path):
    for name, text in {"train": "le chat .", "two": "une porte verte .", "three": "oui ."}.items():
        (tmp_path / f"{name}.txt").write_text(text + "\n")
    paths = {name: str(tmp_path / f"{name}.txt") for name in ("train", "two", "three")}
    source = Text(paths["train"], str(tmp_path / "gone.txt"), (paths["two"], paths["three"]))
    experiment = Experiment(data=source, vocabulary=Vocabulary(splits=("train", "test1")))
    lexicon = examples.plain_lexicon()

    def saw_sentences(*sentences):
        sentences = [sentence.split() for sentence in sentences]
        return priors_that_saw(experiment, lexicon, "data:copy", "copy.txt", sentences)

    assert saw_sentences("Une porte verte .", "non .") == ["vocabulary"]
    assert saw_sentences("le chat .") == ["vocabulary"]
    assert saw_sentences("oui .") == saw_sentences("non .") == []


def test_a_generated_language_has_splits_without_files():
    assert saw("test", "micro", source=Micro(), splits=(), background=Uniform()) == ["vocabulary"]
    assert saw("data:x", "x", source=Micro(), splits=(), background=Uniform()) == []


@pytest.mark.parametrize(
    ("background", "expected"),
    [
        (KneserNey(splits=("train", "test1")), ["background: KneserNey"]),
        (KneserNey(splits=("train",)), []),
        (Arpa("news.arpa"), []),  # estimated elsewhere
    ],
)
def test_a_background_with_a_context_is_the_heads(background, expected):
    model = LanguageModel(head=LogLinear(background=background))
    assert saw("test1", model=model, background=Uniform()) == expected


@dataclasses.dataclass(frozen=True)
class Compound(FeaturePrior, Background):
    """A prior made of others."""

    parts: tuple = ()


def test_a_prior_of_priors_saw_what_they_saw():
    mixed = Compound(parts=(Uniform(), Compound(parts=(Unigram(splits=("test1",)),))))
    assert saw("test1", features=(mixed,), background=mixed) == [
        "features: Compound",
        "background: Compound",
    ]
    assert saw("test2", features=(mixed,), background=mixed) == []
