"""From text to words, by hand."""

import collections
import dataclasses
import logging

import numpy as np
import pytest

from zoo.data import Corpus, Source, Text
from zoo.data.vocabulary import BOUNDARY, UNKNOWN, Vocabulary
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors import (
    Background,
    DigitStrings,
    FeaturePrior,
    Morphology,
    Numbers,
    SuffixGuesser,
    TopWords,
    Unigram,
    WordList,
)
from zoo.sources import mapped_text
from zoo.sources.source import InMemory


@dataclasses.dataclass(frozen=True)
class LineSource(Source):
    """Texts as they stand here, a sentence a line; each word's tag is its first letter."""

    train: str = "b b b a a c\nB d"
    validation: str = "a e"
    entries: tuple[str, ...] = ()
    tags: bool = True

    def splits(self):
        return ("train", "validation")

    def read(self, split):
        sentences = [line.split() for line in getattr(self, split).split("\n")]
        tags = [[(f"POS:{word[0]}",) for word in sentence] for sentence in sentences]
        return Corpus(split, sentences, tags if self.tags else None)

    def lexicon_entries(self):
        return dict.fromkeys(self.entries, ("POS:known",))


def words(source=LineSource(), **options):
    return Vocabulary(**options).build(source)[0].words


def encoded(split="validation", source=LineSource(), **options):
    """(spellings, counted, starts) of a split."""
    vocabulary = Vocabulary(**options)
    lexicon, corpora = vocabulary.build(source)
    text = vocabulary.encode(corpora[split], lexicon)
    return [lexicon.words[i] for i in text.words], text.counted.tolist(), text.starts.tolist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Marks, then by count, then by spelling.
        ({}, [BOUNDARY, UNKNOWN, "b", "a", "B", "c", "d"]),
        ({"unknown": "refused"}, [BOUNDARY, "b", "a", "B", "c", "d"]),
        ({"boundary": "none"}, [UNKNOWN, "b", "a", "B", "c", "d"]),
        ({"lower_case": True}, [BOUNDARY, UNKNOWN, "b", "a", "c", "d"]),
        ({"minimum_count": 2}, [BOUNDARY, UNKNOWN, "b", "a"]),
        ({"maximum_size": 1}, [BOUNDARY, UNKNOWN, "b"]),
        ({"splits": ()}, [BOUNDARY, UNKNOWN, "a", "b", "B", "c", "d", "e"]),
        ({"splits": ("validation",)}, [BOUNDARY, UNKNOWN, "a", "e"]),
    ],
)
def test_the_words(options, expected):
    assert list(words(**options)) == expected


def test_words_known_beforehand_are_always_in():
    source = LineSource(entries=("z", "a", BOUNDARY, UNKNOWN))
    assert list(words(source, maximum_size=1)) == [BOUNDARY, UNKNOWN, "b", "a", "z"]


def test_counts_are_of_the_training_text_as_the_model_sees_it():
    lexicon, _ = Vocabulary(minimum_count=2, splits=(), boundary_marks=3).build(LineSource())
    counts = dict(zip(lexicon.words, lexicon.counts.tolist(), strict=True))
    # c, B and d are unknown; each of two sentences ends with three marks.
    assert counts == {BOUNDARY: 6, UNKNOWN: 3, "b": 3, "a": 2}
    assert (lexicon.unknown, lexicon.boundary) == (UNKNOWN, BOUNDARY)


@pytest.mark.parametrize(
    ("options", "spellings", "counted"),
    [
        ({}, ["a", UNKNOWN, BOUNDARY], [True, True, True]),
        ({"unknown": "skipped"}, ["a", UNKNOWN, BOUNDARY], [True, False, True]),
        ({"boundary": "uncounted"}, ["a", UNKNOWN, BOUNDARY], [True, True, False]),
        ({"boundary": "none"}, ["a", UNKNOWN], [True, True]),
        ({"boundary_marks": 2}, ["a", UNKNOWN, BOUNDARY, BOUNDARY], [True] * 4),
    ],
)
def test_encoding(options, spellings, counted):
    assert encoded(**options) == (spellings, counted, [0])


def test_sentences_start_after_their_boundaries():
    _, _, starts = encoded("train", boundary_marks=2)
    assert starts == [0, 8]


@pytest.mark.parametrize("at_once", [1, 7, 1 << 16])
@pytest.mark.parametrize("unknown", ["counted", "skipped"])
@pytest.mark.parametrize(
    ("boundary", "marks"), [("counted", 1), ("uncounted", 3), ("counted", 2), ("none", 1)]
)
def test_encoding_is_that_of_a_loop_over_words(
    random, monkeypatch, at_once, unknown, boundary, marks
):
    monkeypatch.setattr(mapped_text, "_AT_ONCE", at_once)
    letters = [*"abcdefghijkl" * 2, UNKNOWN, BOUNDARY, "12", "3"]
    train, validation = (
        [random.choice(letters, random.integers(0, 9)).tolist() for _ in range(count)] + [[UNKNOWN]]
        for count in (40, 23)
    )
    prefixes = [int(random.integers(0, len(sentence) + 1)) for sentence in validation]
    corpora = {
        "train": Corpus("a", train),
        "validation": Corpus("b", validation, prefixes=prefixes),
    }
    digits = DigitStrings(("Word:@not_top",))
    vocabulary = Vocabulary(
        minimum_count=12,
        unknown=unknown,
        boundary=boundary,
        boundary_marks=marks,
        features=(TopWords(3),),
        open_classes=(digits,),
    )
    lexicon, _ = vocabulary.build(InMemory(corpora))
    counts = collections.Counter(word for sentence in train for word in sentence)
    types = {word for word, count in counts.items() if count >= 12}
    assert 3 < len(types) < 14 and not types & {"12", "3"}
    words, in_lexicon, counted, trained, starts, strings = [], [], [], [], [], []
    for sentence, prefix in zip(validation, prefixes, strict=True):
        starts.append(len(words))
        for number, word in enumerate(sentence):
            is_string = word.isdigit()
            is_word = word in types or (word in (UNKNOWN, BOUNDARY) and word in lexicon.ids)
            words.append(digits.name if is_string else word if is_word else UNKNOWN)
            in_lexicon.append(is_string or is_word)
            trained.append(number >= prefix)
            counted.append(trained[-1] and not (unknown == "skipped" and words[-1] == UNKNOWN))
            strings.append(counts[word] if is_string else -1)
        for _ in range(marks if boundary != "none" else 0):
            words.append(BOUNDARY)
            in_lexicon.append(True)
            trained.append(True)
            counted.append(boundary == "counted")
            strings.append(-1)
    text = vocabulary.encode(corpora["validation"], lexicon)
    assert [lexicon.words[word_id] for word_id in text.words] == words
    assert text.words.dtype == np.int32
    for array, expected in (
        (text.known, in_lexicon),
        (text.counted, counted),
        (text.trained, trained),
        (text.starts, starts),
        (text.strings.counts, strings),
    ):
        np.testing.assert_array_equal(array, expected)
    log_within = text.strings.log_within
    assert ((log_within < 0) == (text.strings.counts >= 0)).all()


def test_sentences_within_a_text_are_encoded_as_if_alone(tmp_path):
    (tmp_path / "a").write_text("a b c\nd\na a\nb d e\nc\n")
    vocabulary, source = Vocabulary(boundary_marks=2), Text(f"{tmp_path}/a", f"{tmp_path}/a")
    lexicon, corpora = vocabulary.build(source)
    within = Corpus("b", corpora["train"].sentences[2:4])
    text = vocabulary.encode(within, lexicon)
    spellings = [lexicon.words[word_id] for word_id in text.words]
    assert spellings == ["a", "a", BOUNDARY, BOUNDARY, "b", "d", "e", BOUNDARY, BOUNDARY]
    assert text.starts.tolist() == [0, 4] and within.token_counts()["a"] == 2


def test_unknown_words_are_refused_by_name():
    with pytest.raises(
        UserError, match=r"1 distinct word of .* is not in the lexicon: 'e'; leave it"
    ):
        encoded(unknown="refused")
    # The most frequent come first, ten of them.
    source = LineSource(validation="a zz b y\nzz " + " ".join(map(str, range(10))))
    with pytest.raises(UserError) as refusal:
        encoded(source=source, unknown="refused")
    assert str(refusal.value).startswith(
        "12 distinct words of validation are not in the lexicon: 'zz', 'y', '0', '1', '2', "
        "'3', '4', '5', '6', '7', ...; leave them out, give --add-words FILE"
    )


@pytest.mark.parametrize(
    ("unknown", "counted"),
    [("counted", [True, True]), ("refused", [True, True]), ("skipped", [True, False])],
)
def test_a_text_that_has_marks_of_its_own(unknown, counted):
    """As the Penn Treebank does: they are the marks, once each in the lexicon."""
    source = LineSource(train=f"a {UNKNOWN} a", validation=f"a {UNKNOWN}")
    lexicon_words = words(source, unknown=unknown)
    assert sorted(lexicon_words) == sorted([BOUNDARY, UNKNOWN, "a"])
    spellings, is_counted, _ = encoded(source=source, unknown=unknown, boundary="none")
    assert (spellings, is_counted) == (["a", UNKNOWN], counted)


def test_a_lexicon_has_marks_of_its_own():
    words = ("a", "<eos>", "<UNK>")
    lexicon = Lexicon(words, np.zeros(3, np.int64), unknown="<UNK>", boundary="<eos>")
    text = Vocabulary(unknown="skipped").encode(Corpus("a text", [["a", "b"], ["a"]]), lexicon)
    assert text.words.tolist() == [0, 2, 1, 0, 1]
    assert text.known.tolist() == [True, False, True, True, True]
    assert text.counted.tolist() == [True, False, True, True, True]
    assert text.occurrences(lexicon).tolist() == [-1] * 5  # not known
    with pytest.raises(UserError, match=r"1 distinct word of a text is not in the lexicon: 'b'"):
        Vocabulary().encode(Corpus("a text", [["a", "b"]]), Lexicon(("a",), np.array([1])))


def test_a_boundary_in_the_text_is_a_word_where_the_vocabulary_adds_none():
    source = LineSource(train=f"a b {BOUNDARY}\nb {BOUNDARY}", validation=f"b {BOUNDARY}")
    lexicon, _ = Vocabulary(boundary="none").build(source)
    assert lexicon.boundary is None and BOUNDARY in lexicon.words
    assert encoded(source=source, boundary="none") == (["b", BOUNDARY], [True, True], [0])


def features_of(lexicon, word):
    return set(lexicon.features_of(lexicon.ids[word]))


def test_features_and_background_of_words_and_marks():
    vocabulary = Vocabulary(
        minimum_count=2,
        lower_case=True,
        features=(TopWords(count=1, splits=("train",)), Morphology()),
        background=Unigram(splits=("train",), smoothing=1.0),
    )
    lexicon, _ = vocabulary.build(LineSource())
    # b occurs 4 times in lower case, c and d are unknown, so their tags are not those of <unk>.
    assert features_of(lexicon, "b") == {"Word:b", "POS:b", "POS:B"}
    assert features_of(lexicon, "a") == {"Word:@not_top", "POS:a"}
    assert features_of(lexicon, UNKNOWN) == {"Word:@not_top", "POS:NIL"}
    assert features_of(lexicon, BOUNDARY) == {"Word:@not_top", "POS:NIL"}
    counts = dict(zip(lexicon.words, lexicon.counts.tolist(), strict=True))
    assert counts == {BOUNDARY: 2, UNKNOWN: 2, "b": 4, "a": 2}
    expected = np.log((lexicon.counts + 1) / (lexicon.counts + 1).sum())
    np.testing.assert_allclose(lexicon.log_background, expected)


def test_morphology_needs_tags():
    with pytest.raises(UserError, match=r"priors.Morphology needs tags, and train has none"):
        Vocabulary(features=(Morphology(),)).build(LineSource(tags=False))


@pytest.mark.parametrize("lines", [1, 3])
def test_tags_of_fewer_or_more_sentences_than_a_text_has_are_refused(lines):
    sentences, tags = [["a"], ["b"]], [("POS:a",)]
    corpora = dict.fromkeys(("train", "validation"), Corpus("it", sentences, [tags] * lines))
    with pytest.raises(ValueError, match=r"shorter|longer"):
        Vocabulary(features=(Morphology(),)).build(InMemory(corpora))


def test_new_words_get_features_from_the_same_priors():
    source = LineSource(entries=("ax", "by"))
    vocabulary = Vocabulary(
        features=(TopWords(2), Morphology(guesser=SuffixGuesser()), Numbers()),
        background=Unigram(smoothing=1.0),
        lower_case=True,
    )
    lexicon, _ = vocabulary.build(source)
    larger = vocabulary.extended(source, lexicon, ("Ex", "b", "EX", "37"))
    assert larger.words == (*lexicon.words, "ex", "37")
    assert larger.feature_names == lexicon.feature_names
    for word in range(len(lexicon)):
        assert larger.features_of(word) == lexicon.features_of(word)
    assert list(larger.features_of(len(lexicon))) == ["POS:known", "Word:@not_top"]
    # No word of the lexicon is a number: the features of one have no parameters.
    assert not any("Number" in name for name in larger.features_of(len(lexicon) + 1))
    assert np.exp(larger.log_background).sum() == pytest.approx(1)
    assert larger.counts[-2:].tolist() == [0, 0]


def test_words_of_training_keep_the_features_that_the_model_learnt(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("a\nb\t0.1\n")
    vocabulary = Vocabulary(features=(WordList(str(path), "name"), Morphology()))
    lexicon, _ = vocabulary.build(LineSource())
    path.write_text("c\nx\n")
    larger = vocabulary.extended(LineSource(), lexicon, ("x", "y"))
    for word in range(len(lexicon)):
        assert larger.features_of(word) == lexicon.features_of(word)
    assert larger.features_of(larger.ids["b"])["List:name"] == np.float32(0.1)
    assert "List:name" in larger.features_of(larger.ids["x"])
    assert "List:name" not in larger.features_of(larger.ids["y"])


def test_words_cannot_be_added_without_features():
    lexicon, _ = Vocabulary().build(LineSource())
    with pytest.raises(UserError, match="only to a lexicon with features"):
        Vocabulary().extended(LineSource(), lexicon, ("x",))


@dataclasses.dataclass(frozen=True)
class OwnPrior(FeaturePrior):
    """A user's: gives a value to each word, and loses some words."""

    value: float = 1.0
    lost: int = 0

    def features(self, words, corpora, entries):
        return [{"Own:x": self.value} for _ in words[self.lost :]]


@dataclasses.dataclass(frozen=True)
class OwnBackground(Background):
    """A user's: log-probabilities of the first words."""

    first: tuple[float, ...]
    lost: int = 0

    def log_probs(self, words, corpora):
        return np.array([*self.first, *[-3.0] * len(words)][: len(words) - self.lost])


def test_what_own_priors_give_is_checked():
    Vocabulary(features=(OwnPrior(2.0),), background=OwnBackground((-np.inf,))).build(LineSource())
    with pytest.raises(UserError, match=r"OwnPrior\.features gives \d+ dicts for \d+ words"):
        Vocabulary(features=(OwnPrior(lost=2),)).build(LineSource())
    message = r"OwnPrior\.features gives '</s>' the feature 'Own:x' with the value nan: give"
    with pytest.raises(UserError, match=message):
        Vocabulary(features=(OwnPrior(float("nan")),)).build(LineSource())
    for background, message in (
        (OwnBackground((), lost=1), r"of shape \(\d+,\) for \d+ words"),
        (OwnBackground((-1.0, float("nan"))), "gives nan for '<unk>'"),
        (OwnBackground((float("inf"),)), "gives inf for '</s>'"),
        (OwnBackground((-np.inf,) * 100), "not of 0 for all words"),
    ):
        with pytest.raises(UserError, match=message):
            Vocabulary(features=(OwnPrior(),), background=background).build(LineSource())


@pytest.mark.parametrize(
    ("options", "validation", "warns"),
    [
        ({"splits": ("train",)}, "a e b e", True),
        ({"splits": ("train",)}, "a b", False),  # nothing is unknown
        ({"splits": ("train",), "minimum_count": 2}, "a e", False),  # c, d and B are <unk>
        ({"splits": ("train",), "unknown": "skipped"}, "a e", False),  # not counted
    ],
)
def test_an_unknown_word_that_is_never_trained_is_warned_of(options, validation, warns, caplog):
    with caplog.at_level(logging.WARNING, "zoo"):
        Vocabulary(**options).build(LineSource(validation=validation))
    expected = "<unk> is never trained, and words of validation such as 'e' are read as <unk>"
    assert [expected in record.getMessage() for record in caplog.records] == [True] * warns
