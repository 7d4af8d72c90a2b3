"""Subwords: learnt and split as by hand, and words again in every figure."""

import dataclasses
import math

import numpy as np
import pytest

from tests.lab.training import small
from tests.lab.training.test_tasks_translation import MODEL, MORPHOLOGY
from tests.marks import slow
from zoo.alignment import PositionalUnknown
from zoo.attention import Luong
from zoo.data import Buckets, Corpus, Pairs, Text, Vocabulary
from zoo.data.open_words import Subwords, learn_subwords
from zoo.decoding import BeamSearch
from zoo.errors import UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import CharLSTM
from zoo.lab.evaluation import exact_match, perplexity, results, scored_texts, translators
from zoo.lab.evaluation.passport import data_of
from zoo.lab.evaluation.perplexity import Scores
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.translators import Translator
from zoo.lab.export import folder as exported
from zoo.optimizers import SGD
from zoo.sources.source import InMemory

pytest.importorskip("tokenizers")

COUNTS = {"aa": 5, "ab": 3, "aab": 2}


def test_the_most_frequent_pairs_are_merged():
    """Pairs of neighbours: ▁ a 10 times, then ▁a a 7 times, then ▁a b 3 times."""
    assert learn_subwords(COUNTS, 6) == {"▁aa": 7, "▁ab": 3, "b": 2, "▁": 0, "a": 0}
    # Room for no pair: letters stay.
    assert learn_subwords(COUNTS, 2) == {"a": 17, "▁": 10, "b": 5}


def test_a_word_is_split_from_the_left_into_its_longest_pieces():
    subwords = Subwords(("▁", "▁a", "▁ab", "b", "bc", "c", "</s>"), ("</s>", None))
    assert subwords.split("abbcb") == ("▁ab", "bc", "b")
    assert subwords.split("bcc") == ("▁", "bc", "c")
    assert subwords.split("</s>") == ("</s>",)
    assert subwords.split("abd") == ("▁abd",)  # no piece has a d
    assert subwords.split("a▁b") == ("▁a_b",)  # ▁a and ▁b would be two words
    assert subwords.split("a" * 300 + "d") == ("▁" + "a" * 300 + "d",)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ("▁ab bc ▁ bc c", [("abbc", 2), ("bcc", 3)]),
        ("c b ▁a", [("cb", 2), ("a", 1)]),  # a model may begin with any piece
        ("▁ ▁a <unk> b ▁", [("▁", 1), ("a", 1), ("<unk>", 1), ("b", 1), ("▁", 1)]),
        ("", []),
    ],
)
def test_pieces_are_joined_to_words(pieces, expected):
    subwords = Subwords(pieces.split(), ("<unk>", "</s>"))
    assert [
        (word, len(word_pieces)) for word, word_pieces in subwords.words_of(pieces.split())
    ] == expected


TRAIN = ["aa ab aab aa", "aa aa ab", "ab aab aa"]
VALIDATION = ["aab bb xa", "ab"]


@pytest.fixture
def encoded():
    """(vocabulary, lexicon, the validation text as word ids)"""
    corpora = {
        "train": Corpus("train", [line.split() for line in TRAIN]),
        "validation": Corpus("validation", [line.split() for line in VALIDATION]),
    }
    vocabulary = Vocabulary(subwords=6)
    lexicon, read = vocabulary.build(InMemory(corpora))
    return vocabulary, lexicon, vocabulary.encode(read["validation"], lexicon)


def test_a_text_is_encoded_in_pieces(encoded):
    vocabulary, lexicon, text = encoded
    assert lexicon.words == ("</s>", "<unk>", "▁aa", "▁ab", "b", "a", "▁")
    assert lexicon.counts.tolist() == [3, 0, 7, 3, 2, 0, 0]
    spelled = [lexicon.words[word] for word in text.words]
    assert spelled == ["▁aa", "b", "▁", "b", "b", "<unk>", "</s>", "▁ab", "</s>"]
    assert text.known.tolist() == [True] * 5 + [False] + [True] * 3
    assert text.starts.tolist() == [0, 7]
    assert text.counted.all() and text.pieces is None
    assert vocabulary.missing([["aab", "xa", "xa", "bb"]], lexicon) == {"xa": 2}


def test_words_have_the_sums_of_their_pieces(encoded):
    vocabulary, lexicon, text = encoded
    log_prob = -np.arange(1, 10, dtype=np.float32)
    counted = np.array([False] * 2 + [True] * 7)
    scores = Scores(log_prob, counted)
    words, scores = perplexity.merge_subwords(text, scores, vocabulary, lexicon)
    assert scores.log_prob.tolist() == [-1 - 2, -3 - 4 - 5, -6, -7, -8, -9]
    assert scores.counted.tolist() == [False] + [True] * 5
    assert scores.log_perplexity == (12 + 6 + 7 + 8 + 9) / 5  # nats per word
    assert (words.starts.tolist(), words.lengths.tolist()) == ([0, 4], [4, 2])
    # In training aab occurs twice, bb and xa never, ab three times; </s> ends three sentences.
    assert words.occurrences(lexicon).tolist() == [2, 0, 0, 3, 3, 3]
    assert words.unknown(lexicon).tolist() == [False, False, True, False, False, False]
    assert words.read_as(lexicon, 0, 2) == "▁aa b ▁ b b"
    assert words.read_as(lexicon, 5, 6) == "</s>"


def test_words_with_the_mark_of_pieces_were_seen_as_their_pieces_spell_them():
    """They have the pieces and the count of the word with _ in the place of the mark."""
    corpora = {
        "train": Corpus("train", [["a▁b", "a_b", "a▁b", "▁"], ["a▁b", "b"]]),
        "validation": Corpus("validation", [["b", "a▁b", "▁", "a_b", "ab"]]),
    }
    vocabulary = Vocabulary(subwords=20)
    lexicon, read = vocabulary.build(InMemory(corpora))
    text = vocabulary.encode(read["validation"], lexicon)
    scores = Scores(np.zeros(len(text.words), np.float32), np.ones(len(text.words), bool))
    words, _ = perplexity.merge_subwords(text, scores, vocabulary, lexicon)
    assert words.occurrences(lexicon).tolist() == [1, 4, 1, 4, 0, 2]


def test_a_text_of_words_stays_as_it_is():
    vocabulary = Vocabulary()
    corpus = Corpus("text", [["aa", "ab"], ["aab"]])
    lexicon, _ = vocabulary.build(InMemory({"train": corpus}))
    text = vocabulary.encode(corpus, lexicon)
    scores = Scores(np.zeros(5, np.float32), text.counted)
    assert perplexity.merge_subwords(text, scores, vocabulary, lexicon) == (text, scores)
    assert text.read_as(lexicon, 0, 2) == "aa ab"


# ------------------------------------------------------------ a translator

SOURCES = "the cat sleeps\nthe cats sleep here\na dog barks\nthe dogs bark\na cat barks here too\n"
TARGETS = "le chat dort\nles chats dorment ici\nun chien aboie\nles chiens aboient\n"
TARGETS += "un chat aboie ici aussi\n"


def recipe(place, subwords=29, **model) -> Experiment:
    for name, text in (("x.en", SOURCES), ("x.fr", TARGETS)):
        (place / name).write_text(text, encoding="utf-8")
    paths = str(place / "x.en"), str(place / "x.fr")
    training = Training(
        batch=2, epochs=2, optimizer=SGD(learning_rate=0.5), buckets=Buckets(padding=0.5)
    )
    return Experiment(
        data=Pairs(train=paths, validation=paths, tests=(paths,)),
        vocabulary=Vocabulary(subwords=subwords),
        model=dataclasses.replace(MODEL, attention=Luong(), **model),
        training=training,
        evaluation=Evaluation(state="sentences", batch=3),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("subwords")
    return small.run_in(place / "run", recipe(place))


@pytest.fixture(scope="module")
def run(folder):
    return Run.load(folder)


def test_a_run_is_judged_in_words(run):
    (scored,) = scored_texts.score(run, ["test"])
    record = scored_texts.passport_of(scored)
    assert record.tokens == scored.scores.tokens == len(TARGETS.split()) + 5
    pieces = run.experiment.vocabulary.encode(scored.corpus, run.lexicon)
    assert len(pieces.words) > record.tokens
    assert len(scored.scores.log_prob) == len(scored.text.words) == record.tokens
    assert record.data == data_of(scored.corpus.name, scored.corpus.sentences)
    assert record.out_of_vocabulary == record.source.out_of_vocabulary == 0
    # Other pieces, and the same words: one quantity.
    lexicon = dataclasses.replace(record.lexicon, words="others")
    rival = dataclasses.replace(record, lexicon=lexicon)
    results.check_comparable(record, rival, ("one", "other"))
    total = record.tokens * record.figures.log_perplexity
    pairs = perplexity.read(run.experiment, run.lexicon, run.source_lexicons[0], scored.corpus)
    model = run.experiment.model
    raw = perplexity.score_pairs(model, run.params, run.tables, pairs, batch=4).log_prob
    assert math.isclose(total, -raw.sum(dtype=np.float64), rel_tol=1e-5)
    piece_figures = record.figures.per_subword
    assert piece_figures.tokens == len(pieces.words) and math.isclose(
        piece_figures.log_perplexity, -raw.mean(dtype=np.float64), rel_tol=1e-5
    )
    assert f"over {len(pieces.words):,}; a word" in scored_texts.describe(record)
    assert record.figures.strings is None


@pytest.mark.parametrize("order", ["forward", *slow("target_reversed", "source_reversed")])
def test_translations_and_attention_are_of_words(tmp_path, order):
    experiment = recipe(tmp_path, order=order)
    translator = Translator((Run.load(small.run_in(tmp_path / "run", experiment)),))
    source = translator.read("the dogs sleep")
    ((best,),) = translator.translate([source], BeamSearch(1, longest=9))
    words, pieces = translator.words(best), best.words
    assert 0 < len(words) < len(pieces) and not any(word.startswith("▁") for word in words[:-1])
    weights = translators.attention_weights(translator, best, source)
    assert weights.shape == (len(words), 3)
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)  # the pieces of a source are summed
    assert translator.unknown([["the", "éa", "dogs"]]) == {"éa": 1}


def test_answers_are_compared_in_words(run):
    corpus = run.read("test")
    answers = exact_match.answer(run, corpus, length=7)
    assert len(answers) == 5 and not any("▁" in word[1:] for words, _ in answers for word in words)


def test_the_lexicon_is_learnt_alike_again(folder, run):
    lexicon, _ = run.experiment.build()
    assert lexicon.digest() == run.lexicon.digest()


def test_both_sides_may_share_their_pieces(tmp_path):
    experiment = dataclasses.replace(recipe(tmp_path), shared_lexicon=True)
    lexicon, corpora = experiment.build()
    assert experiment.build_source_lexicon(lexicon, corpora) is lexicon
    assert experiment.source_side_vocabulary.missing([SOURCES.split()], lexicon) == {}
    assert not experiment.vocabulary.missing([TARGETS.split()], lexicon)


def test_what_subwords_cannot_do_is_told(folder, tmp_path):
    text = Text(train=str(folder.parent / "x.en"), validation=str(folder.parent / "x.en"))
    language = dataclasses.replace(small.experiment(vocabulary=Vocabulary(subwords=9)), data=text)
    experiment = recipe(tmp_path)
    marked = dataclasses.replace(experiment.data, unknowns=PositionalUnknown())
    refused = dataclasses.replace(experiment.vocabulary, unknown="refused")
    for name, invalid in {
        "a LanguageModel": language,
        r"data\.unknowns": dataclasses.replace(experiment, data=marked),
        r"model\.head\.renormalised": recipe(tmp_path, head=CharLSTM(renormalised=True)),
        r"vocabulary\.unknown=refused": dataclasses.replace(experiment, vocabulary=refused),
        r"vocabulary\.features": dataclasses.replace(
            experiment, source_vocabulary=refused, vocabulary=MORPHOLOGY
        ),
    }.items():
        with pytest.raises(UserError, match=f"^{name} needs whole words"):
            invalid.build()
    with pytest.raises(UserError, match="an exported program needs whole words, and vocab"):
        exported.write(folder, tmp_path / "out")
    with pytest.raises(UserError, match=r"vocabulary\.subwords is 0"):
        Vocabulary(subwords=0)
