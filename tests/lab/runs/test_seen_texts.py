"""A text is known again by its content, however it is cut, ordered, cased or named."""

import dataclasses
import hashlib
import importlib
import json
import types

import numpy as np
import pytest

from tests.lab.training import small
from zoo.data import Conllu, Vocabulary
from zoo.experiment import Experiment
from zoo.heads import LogLinear, WithExpert
from zoo.lab.adaptation import Trained
from zoo.lab.evaluation import leakage
from zoo.lab.evaluation.figures import Overlap, OverlapByRole, OverlapCounts
from zoo.lab.evaluation.leakage import priors_that_saw
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import seen_texts
from zoo.lab.runs.checkpoints import Checkpoints
from zoo.lab.runs.provenance import Code
from zoo.lab.runs.seen_texts import KnowledgeText, SeenTexts, Texts, load_seen_texts
from zoo.lab.runs.seen_texts import collect_seen_texts as of_experiment
from zoo.lab.runs.workdir import Workdir
from zoo.models import LanguageModel
from zoo.priors import (
    Arpa,
    ContextualBackground,
    FeaturePrior,
    Grammar,
    KneserNey,
    KnowledgeBase,
    Morphology,
    SuffixGuesser,
    TopWords,
    Unigram,
    WordList,
    WordTable,
)
from zoo.sources.source import InMemory

TEXT = [
    ["Les", "chats", "dorment", "toujours", "devant", "la", "porte", "verte", "."],  # 42 letters
    ["le", "chien", "dort", "."],
    [],
    [
        "il",
        "est",
        "interdit",
        "de",
        "marcher",
        "sur",
        "la",
        "pelouse",
        "du",
        "jardin",
    ],  # 42 letters
]


def hash_by_hand(letters):
    return int.from_bytes(hashlib.blake2b(letters.encode(), digest_size=8).digest(), "little")


def test_sentences_are_kept_as_hashes_of_their_letters_each_once():
    assert seen_texts.letters(["E\u0301TE\u0301 ", "ß"]) == "étéss"
    texts = Texts.from_text("a.txt", [*TEXT, ["Le", "chien", "DORT", "."]])
    expected = ["leschatsdormenttoujoursdevantlaporteverte.", "lechiendort."]
    expected.append("ilestinterditdemarchersurlapelousedujardin")
    assert texts.hashes.tolist() == sorted(map(hash_by_hand, expected))
    assert texts.hashes.dtype == np.uint64
    (about,) = texts.about
    assert about.sentences == 5 and about.tokens == 9 + 4 + 0 + 10 + 4
    assert about.text == "a.txt" and about.by == "this run"


def test_the_digest_of_a_text_is_that_of_its_words_and_sentences():
    expected = hashlib.sha256(json.dumps(TEXT, ensure_ascii=False).encode()).hexdigest()
    assert seen_texts.digest_text(TEXT) == (expected, sum(map(len, TEXT)))
    assert seen_texts.digest_text(TEXT[::-1])[0] != expected


def counts(sentences, all_sentences, tokens, all_tokens):
    return OverlapCounts(sentences, all_sentences, tokens, all_tokens)


def seen_by_sentences(*trained, selected=()):
    return SeenTexts(
        Texts.from_text("train", [*trained]), Texts.from_text("validation", [*selected])
    )


def test_overlap_is_found_in_any_order_case_and_cut():
    shuffled = [[*" ".join(TEXT[3]).upper()], ["un", "autre", "."], TEXT[0]]
    overlap = leakage.overlap_by_role(TEXT, seen_by_sentences(*shuffled, selected=TEXT[1:2]))
    assert overlap == OverlapByRole(
        letters=30,
        trained_on=Overlap(all=counts(2, 3, 19, 23), long=counts(2, 2, 19, 19)),
        selected_on=Overlap(all=counts(1, 3, 4, 23), long=counts(0, 2, 0, 19)),
    )
    # Characters as words, a line break at the end, found among words.
    characters = [[*"le chien dort .\n"], [*"\n"], [*"un chat .\n"]]
    overlap = leakage.overlap_by_role(characters, seen_by_sentences(*TEXT))
    assert overlap.trained_on.all == counts(1, 2, 16, 26)


@pytest.mark.parametrize(
    ("all_found", "long_found", "expected"),
    [(672, 0, False), (144, 128, False), (249, 50, False), (251, 0, True), (51, 51, True)],
)
def test_what_recurs_by_nature_is_not_seen(all_found, long_found, expected):
    """Of 1,000 tokens, all in long sentences too; 672 and so on are in ten thousandths there."""
    scale = 10 if all_found in (672, 144) else 1
    overlap = Overlap(
        all=counts(1, 9, all_found, 1000 * scale), long=counts(1, 9, long_found, 1000 * scale)
    )
    nothing = Overlap(all=counts(0, 9, 0, 1000), long=counts(0, 9, 0, 1000))
    trained, chosen = OverlapByRole(30, overlap, nothing), OverlapByRole(30, nothing, overlap)
    assert (trained.leak("test") is not None) == expected
    assert (chosen.leak("data:x") is not None) == expected
    for split in ("validation", "czech.validation"):
        assert chosen.leak(split) is None
    assert (trained.leak("validation") is not None) == expected


# ---- which texts a run has seen, through all that it is built upon, and when nobody can know


@dataclasses.dataclass(frozen=True)
class UserBackground(ContextualBackground):
    """A background that is no part of the zoo: who knows what it read."""


def over(background, data=None):
    """An experiment whose head has a background."""
    recipe = small.experiment(small.LOG_LINEAR, vocabulary=small.WITH_FEATURES)
    head = LogLinear(background=background)
    model = dataclasses.replace(recipe.model, head=head)
    return dataclasses.replace(recipe, model=model, data=data or recipe.data)


def corpora_of(recipe):
    return {split: recipe.vocabulary.read(recipe.data, split) for split in recipe.data.splits()}


def seen_by(recipe):
    return of_experiment(recipe, corpora_of(recipe))


def run_of(folder, recipe, has_record=True, trained=True):
    """A work directory as training leaves it, with a checkpoint of next to nothing."""
    workdir = Workdir(folder)
    workdir.claim(recipe)
    lexicon, corpora = recipe.vocabulary.build(recipe.data)
    workdir.save_lexicon(lexicon)
    texts = (recipe.vocabulary.encode(corpora[s], lexicon) for s in ("train", "validation"))
    data = "-".join(text.digest() for text in texts)
    if has_record:
        seen_texts.write_record(workdir, of_experiment(recipe, corpora, data, Code("abc")))
    checkpoints = Checkpoints(folder / "checkpoints", ("best",))
    checkpoints.save("best", 1, {"params": np.zeros(1)}, {"data": data} if trained else {})
    checkpoints.close()
    return str(folder)


def hashes_of_words(seed, split):
    return Texts.from_text("", small.RandomWords(seed=seed).read(split).sentences).hashes


def test_a_run_keeps_its_own_texts(tmp_path):
    recipe = small.experiment()
    record = load_seen_texts(run_of(tmp_path / "run", recipe))
    np.testing.assert_array_equal(record.trained_on.hashes, hashes_of_words(0, "train"))
    np.testing.assert_array_equal(record.selected_on.hashes, hashes_of_words(0, "validation"))
    assert record.made_with == Code("abc")
    assert record.not_known == ()
    assert [text.text for text in record.trained_on.about] == ["train"]
    judged = Run(tmp_path / "run", recipe, None, None, {}, 1).seen_texts
    np.testing.assert_array_equal(judged.trained_on.hashes, record.trained_on.hashes)


def test_a_run_without_a_record_of_its_texts_is_not_known(tmp_path):
    folder = run_of(tmp_path / "run", small.experiment(), has_record=False)
    assert load_seen_texts(folder) is None
    # Nor is one whose record is of other texts than those of its checkpoints.
    record = dataclasses.replace(seen_by(small.experiment()), data="other")
    seen_texts.write_record(Workdir(folder), record)
    assert load_seen_texts(folder) is None
    assert load_seen_texts(tmp_path / "nothing") is None


def test_what_was_seen_through_other_runs_comes_along(tmp_path):
    first = run_of(tmp_path / "first", small.experiment())
    data = small.RandomWords(seed=3)
    started = dataclasses.replace(small.experiment(), data=data, init_from=first)
    second = run_of(tmp_path / "second", started)
    last = seen_by(over(Trained(second), small.RandomWords(seed=7)))
    for role, split in (("trained_on", "train"), ("selected_on", "validation")):
        expected = np.union1d(
            hashes_of_words(0, split),
            np.union1d(hashes_of_words(3, split), hashes_of_words(7, split)),
        )
        np.testing.assert_array_equal(getattr(last, role).hashes, expected)
    assert [text.by for text in last.trained_on.about] == [
        "this run",
        f"the background Trained {second}",
        f"the background Trained {second}, init_from {first}",
    ]
    last.save(tmp_path / "texts.npz")
    loaded = SeenTexts.load(tmp_path / "texts.npz")
    np.testing.assert_array_equal(loaded.trained_on.hashes, last.trained_on.hashes)
    assert loaded.trained_on.about == last.trained_on.about
    recipe_of_nothing = dataclasses.replace(started, init_from=str(tmp_path / "nothing"))
    assert seen_by(recipe_of_nothing).not_known == (f"init_from {tmp_path / 'nothing'}",)


@pytest.mark.parametrize(
    ("background", "unknown", "texts"),
    [
        (None, (), ["train"]),
        (KneserNey(), (), ["train"]),
        (KneserNey(splits=("train", "validation")), (), ["train", "validation"]),
        (Grammar("a.grammar", splits=("validation",)), (), ["train"]),
        (Arpa("news.arpa"), ("the background Arpa news.arpa",), ["train"]),
        (
            UserBackground(),
            ("the background UserBackground, which is not a part of Zoo",),
            ["train"],
        ),
    ],
)
def test_a_background_has_seen_what_it_was_estimated_on(
    background, unknown, texts, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("a.grammar", "news.arpa"):
        (tmp_path / name).write_text("it is read elsewhere")
    record = seen_by(over(background))
    assert record.not_known == unknown
    assert [text.text for text in record.trained_on.about] == texts
    expected = [hashes_of_words(0, split) for split in texts]
    np.testing.assert_array_equal(record.trained_on.hashes, np.unique(np.concatenate(expected)))


# -------- texts that gave words, features and backgrounds are recorded with what they gave


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
    knowledge = seen_by(experiment).knowledge
    assert [(text.text, text.gave, text.sentences, text.tokens) for text in knowledge] == [
        (
            "train.conllu",
            ("vocabulary", "features: TopWords", "features: Morphology", "background: Unigram"),
            2,
            6,
        ),
        ("tags.conllu[:1]", ("features: Morphology",), 1, 2),
        ("places.txt", ("features: WordList",), None, None),
        ("table.tsv", ("features: WordTable",), None, None),
        ("validation.conllu", ("background: Unigram",), 1, 3),
        ("news.arpa", ("background: Arpa",), None, None),
    ]
    assert knowledge[0].digest == digest(*TEXTS["train.conllu"])
    assert knowledge[1].digest == digest("le zèbre")
    assert knowledge[2].digest == hashlib.sha256(b"chat\n").hexdigest()
    assert {text.by for text in knowledge} == {"this run"}
    model = LanguageModel(head=WithExpert(KnowledgeBase("facts.tsv"), LogLinear()))
    (_, fact) = seen_by(Experiment(data=data, model=model)).knowledge
    assert (fact.text, fact.gave) == ("facts.tsv", ("expert: KnowledgeBase",))


def test_words_and_tags_that_a_source_knows_are_seen_by(data):
    source = InMemory(
        {split: data.read(split) for split in ("train", "validation")}, {"zut": ("X:y",)}
    )
    record = seen_by(Experiment(data=source, vocabulary=Vocabulary(features=(Morphology(),))))
    last = record.knowledge[-1]
    assert (last.text, last.gave, last.sentences) == (
        *("the dictionary of InMemory", ("vocabulary", "features: Morphology"), None),
    )
    assert last.digest == hashlib.sha256(b'[["zut", "X:y"]]').hexdigest()


def test_all_splits_and_words_of_files_are_seen_by(data):
    source = dataclasses.replace(data, words=("tags.conllu",))
    experiment = Experiment(data=source, vocabulary=Vocabulary(splits=()))
    knowledge = seen_by(experiment).knowledge
    assert [text.text for text in knowledge] == [
        *("train.conllu", "validation.conllu", "test.conllu", "tags.conllu")
    ]
    assert all(text.gave == ("vocabulary",) for text in knowledge)


def test_the_record_is_kept_and_joined(data, tmp_path):
    record = seen_by(Experiment(data=data))
    record.save(tmp_path / "texts.npz")
    assert SeenTexts.load(tmp_path / "texts.npz").knowledge == record.knowledge
    (first_text, second_text) = record.join(record, "init_from runs/a").knowledge
    assert (first_text.by, second_text.by) == ("this run", "init_from runs/a")
    unrecorded = dataclasses.replace(record, knowledge=None)
    unrecorded.save(tmp_path / "texts.npz")
    assert SeenTexts.load(tmp_path / "texts.npz").knowledge is None
    assert record.join(unrecorded, "init_from runs/a").knowledge is None


@dataclasses.dataclass(frozen=True)
class OwnFeatures(FeaturePrior):
    """A prior that is not a part of Zoo."""


def test_sources_of_components_outside_zoo_are_hashed(data, tmp_path, monkeypatch):
    file = tmp_path / "my_priors.py"
    file.write_text("from zoo.priors import TopWords\nclass Own(TopWords):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    prior = importlib.import_module("my_priors").Own(3)
    experiment = Experiment(data=data, vocabulary=Vocabulary(features=(prior,)))
    then = hashlib.sha256(file.read_bytes()).hexdigest()
    assert seen_texts.module_digests(experiment) == {"my_priors": then}
    assert seen_texts.module_digests(Experiment(data=data, vocabulary=Vocabulary())) == {}
    made_with = Code(sources={"my_priors": then, "gone": "0" * 64})
    run = types.SimpleNamespace(
        experiment=experiment, seen_texts=types.SimpleNamespace(made_with=made_with)
    )
    assert Run.changed_sources.fget(run) == []
    file.write_text("# changed")
    (note,) = Run.changed_sources.fget(run)
    assert note.startswith("! my_priors has changed since training, and computes by its new code")


def test_texts_of_a_prior_of_the_users_own_are_not_known(data):
    experiment = Experiment(data=data, vocabulary=Vocabulary(features=(OwnFeatures(),)))
    assert seen_by(experiment).not_known == (
        "the features OwnFeatures, which is not a part of Zoo",
    )


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


def test_a_missing_treebank_is_known_by_its_digest_alone(data):
    prior = Morphology(("train",), guesser=SuffixGuesser(), treebanks=("gone.conllu",))
    experiment = Experiment(data=data, vocabulary=Vocabulary(features=(prior,)))
    lexicon, _ = Experiment(data=data, vocabulary=Vocabulary()).vocabulary.build(data)
    sentences = [*map(list, data.read("test").sentences)]
    digest = hashlib.sha256(json.dumps(sentences, ensure_ascii=False).encode()).hexdigest()
    gave = ["features: Morphology", "features: another prior"]
    knowledge = [KnowledgeText("gone.conllu", digest, None, None, "this run", gave)]

    def saw(sentences):
        return priors_that_saw(experiment, lexicon, "data:x", "x.conllu", sentences, knowledge)

    assert saw(sentences) == ["features: Morphology"]
    assert saw([*sentences, ["non"]]) == []


def test_splits_count_only_where_tags_are_guessed():
    prior = Morphology(("train",), treebanks=("tags.conllu",))
    (_, part) = seen_texts.word_sources(
        Experiment(data=Conllu("a", "b"), vocabulary=Vocabulary(features=(prior,)))
    )
    assert (part.splits, part.treebanks) == ((), ("tags.conllu",))
