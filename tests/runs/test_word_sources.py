"""Texts that gave words, features and backgrounds are recorded with what they gave."""

import dataclasses
import hashlib
import json

import pytest

from zoo.data import Conllu, Vocabulary
from zoo.evaluation.leakage import priors_that_saw
from zoo.experiment import Experiment
from zoo.heads import LogLinear, WithExpert
from zoo.models import LanguageModel
from zoo.priors import (
    Arpa,
    FeaturePrior,
    KnowledgeBase,
    Morphology,
    SuffixGuesser,
    TopWords,
    Unigram,
    WordList,
    WordTable,
)
from zoo.runs import seen_texts
from zoo.runs.seen_texts import SeenTexts
from zoo.sources.source import Held


def conllu(*sentences):
    """A treebank of sentences of words, all nouns."""
    lines = []
    for sentence in sentences:
        for number, word in enumerate(sentence.split(), 1):
            lines.append("\t".join([str(number), word, "_", "NOUN", *"_" * 6]))
        lines.append("")
    return "\n".join([*lines, ""])


TEXTS = {
    "train.conllu": ("Le chat dort", "le chien dort"),
    "validation.conllu": ("le chat voit",),
    "test.conllu": ("Une longue phrase que personne ne pouvait jamais oublier",),
    "tags.conllu": ("Le zèbre", "Une longue phrase que personne ne pouvait jamais oublier"),
}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The files, and a source of the first three."""
    monkeypatch.chdir(tmp_path)
    for name, sentences in TEXTS.items():
        (tmp_path / name).write_text(conllu(*sentences), encoding="utf-8")
    (tmp_path / "places.txt").write_text("chat\n")
    (tmp_path / "table.tsv").write_text("form\tPOS\nchat\tNOUN\n")
    (tmp_path / "news.arpa").write_text("\\data\\\n")
    (tmp_path / "facts.tsv").write_text("a\tb\n")
    return Conllu("train.conllu", "validation.conllu", ("test.conllu",))


def digest(*sentences):
    """SHA-256 of the sentences as JSON, by hand."""
    words = [sentence.lower().split() for sentence in sentences]
    return hashlib.sha256(json.dumps(words, ensure_ascii=False).encode()).hexdigest()


def recorded(experiment):
    corpora = {
        split: experiment.vocabulary.read(experiment.data, split)
        for split in experiment.data.splits()
    }
    return seen_texts.inherited(experiment, corpora)


def test_each_text_is_recorded_once_with_all_that_it_gave(data, tmp_path):
    train = ("train",)
    vocabulary = Vocabulary(
        lower_case=True,
        features=(
            TopWords(2, splits=train),
            Morphology(train, guesser=SuffixGuesser(), treebanks=("tags.conllu[:1]",)),
            WordList("places.txt"),
            WordTable("table.tsv"),
        ),
        background=Unigram(splits=("train", "validation")),
    )
    model = LanguageModel(head=LogLinear(background=Arpa("news.arpa")))
    experiment = Experiment(data=data, vocabulary=vocabulary, model=model)
    found = recorded(experiment).knowledge
    assert [(text["text"], text["gave"], text["sentences"], text["tokens"]) for text in found] == [
        (
            "train.conllu",
            ["vocabulary", "features: TopWords", "features: Morphology", "background: Unigram"],
            2,
            6,
        ),
        ("tags.conllu[:1]", ["features: Morphology"], 1, 2),
        ("places.txt", ["features: WordList"], None, None),
        ("table.tsv", ["features: WordTable"], None, None),
        ("validation.conllu", ["background: Unigram"], 1, 3),
        ("news.arpa", ["background: Arpa"], None, None),
    ]
    assert found[0]["digest"] == digest(*TEXTS["train.conllu"])
    assert found[1]["digest"] == digest("le zèbre")
    assert found[2]["digest"] == hashlib.sha256(b"chat\n").hexdigest()
    assert {text["by"] for text in found} == {"this run"}
    model = LanguageModel(head=WithExpert(KnowledgeBase("facts.tsv"), LogLinear()))
    (_, fact) = recorded(Experiment(data=data, model=model)).knowledge
    assert (fact["text"], fact["gave"]) == ("facts.tsv", ["expert: KnowledgeBase"])


def test_words_and_tags_that_a_source_knows_are_recorded(data):
    source = Held({split: data.read(split) for split in ("train", "validation")}, {"zut": ("X:y",)})
    found = recorded(Experiment(data=source, vocabulary=Vocabulary(features=(Morphology(),))))
    last = found.knowledge[-1]
    assert (last["text"], last["gave"], last["sentences"]) == (
        *("the dictionary of Held", ["vocabulary", "features: Morphology"], None),
    )
    assert last["digest"] == hashlib.sha256(b'[["zut", "X:y"]]').hexdigest()


def test_all_splits_and_words_of_files_are_recorded(data):
    source = dataclasses.replace(data, words=("tags.conllu",))
    experiment = Experiment(data=source, vocabulary=Vocabulary(splits=()))
    found = recorded(experiment).knowledge
    assert [text["text"] for text in found] == [
        *("train.conllu", "validation.conllu", "test.conllu", "tags.conllu")
    ]
    assert all(text["gave"] == ["vocabulary"] for text in found)


def test_the_record_is_kept_and_joined(data, tmp_path):
    seen = recorded(Experiment(data=data))
    seen.save(tmp_path / "texts.npz")
    assert SeenTexts.load(tmp_path / "texts.npz").knowledge == seen.knowledge
    (own, other) = seen.joined(seen, "init_from runs/a").knowledge
    assert (own["by"], other["by"]) == ("this run", "init_from runs/a")
    unrecorded = dataclasses.replace(seen, knowledge=None)
    unrecorded.save(tmp_path / "texts.npz")
    assert SeenTexts.load(tmp_path / "texts.npz").knowledge is None
    assert seen.joined(unrecorded, "init_from runs/a").knowledge is None


@dataclasses.dataclass(frozen=True)
class Own(FeaturePrior):
    """A prior that is not a part of Zoo."""


def test_texts_of_a_prior_of_the_users_own_are_not_known(data):
    experiment = Experiment(data=data, vocabulary=Vocabulary(features=(Own(),)))
    assert recorded(experiment).not_known == ("the features Own, which is not a part of Zoo",)


@pytest.mark.parametrize(
    ("treebank", "expected"),
    [("tags.conllu", ["features: Morphology"]), ("tags.conllu[:1]", []), ("gone.conllu", [])],
)
def test_tags_of_a_treebank_with_the_judged_sentences_saw_them(data, treebank, expected):
    prior = Morphology(("train",), guesser=SuffixGuesser(), treebanks=(treebank,))
    experiment = Experiment(data=data, vocabulary=Vocabulary(features=(prior,)))
    plain = Experiment(data=data, vocabulary=Vocabulary())
    lexicon, _ = plain.vocabulary.build(data)
    sentences = data.read("test").sentences
    assert priors_that_saw(experiment, lexicon, "test", "test.conllu", sentences) == expected


def test_splits_count_only_where_tags_are_guessed():
    prior = Morphology(("train",), treebanks=("tags.conllu",))
    (_, part) = seen_texts.of_experiment(
        Experiment(data=Conllu("a", "b"), vocabulary=Vocabulary(features=(prior,)))
    )
    assert (part.splits, part.treebanks) == ((), ("tags.conllu",))
