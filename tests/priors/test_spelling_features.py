"""What the spelling of a number says, and affixes and letter n-grams by hand."""

import pytest

from tests.priors.test_morphology import CORPORA, WORDS
from zoo.errors import UserError
from zoo.priors import Affixes, LetterNgrams, Numbers, TopWords


def features(word, **options):
    (word_features,) = Numbers(**options).features((word,), {}, {})
    return {name.removeprefix("Number:"): value for name, value in word_features.items()}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("37", {"any": 1, "digits": 1, "length": 0.2, "small": 0.63}),
        ("0", {"any": 1, "digits": 1, "length": 0.1, "small": 1.0}),
        ("100", {"any": 1, "digits": 1, "length": 0.3}),
        ("1999", {"any": 1, "digits": 1, "length": 0.4, "year": 1}),
        ("1,999", {"any": 1, "digits": 1, "length": 0.4}),
        ("2101", {"any": 1, "digits": 1, "length": 0.4}),
        ("-12.5", {"any": 1, "digits": 1, "length": 0.3}),
        ("12345678901234", {"any": 1, "digits": 1, "length": 1.0}),
        ("Forty-two", {"any": 1, "spelled": 1}),
        ("million", {"any": 1, "spelled": 1}),
        ("0" * 5000 + "7", {"any": 1, "digits": 1, "length": 1.0, "small": 0.93}),
        ("7" * 5000, {"any": 1, "digits": 1, "length": 1.0}),
        ("Grenoble", {}),
        ("B2", {}),
        ("-", {}),
        ("", {}),
        ("1,2,", {}),
    ],
)
def test_features_of_a_word(word, expected):
    assert features(word) == pytest.approx(expected)


def test_the_language_and_the_limits_can_be_chosen():
    assert features("vingt-deux", language="fr") == {"any": 1, "spelled": 1}
    assert features("twenty", language="") == {}
    assert "year" in features("0800", first_year=700, last_year=900)
    assert "small" not in features("0", small_below=0)


@pytest.mark.parametrize("options", [{"language": "la"}, {"first_year": 9, "last_year": 8}])
def test_bad_options(options):
    with pytest.raises(UserError, match=r"priors\.Numbers"):
        Numbers(**options)


def test_affixes_are_shorter_than_the_word():
    prior = Affixes(prefixes=(1, 3), suffixes=(2,), minimum_words=1)
    assert prior.features(("chat", "été", "a", "on"), {}, {}) == [
        {"Prefix:c": 1.0, "Prefix:cha": 1.0, "Suffix:at": 1.0},
        {"Prefix:é": 1.0, "Suffix:té": 1.0},
        {},
        {"Prefix:o": 1.0},
    ]


def test_affixes_of_few_words_are_left_out():
    prior = Affixes(prefixes=(2,), suffixes=(2,), minimum_words=2)
    word_features = prior.features(("chats", "chiens", "rats"), {}, {})
    assert word_features == [
        {"Prefix:ch": 1.0, "Suffix:ts": 1.0},
        {"Prefix:ch": 1.0},
        {"Suffix:ts": 1.0},
    ]


def test_letter_ngrams_are_counted_with_the_ends_of_the_word():
    prior = LetterNgrams(sizes=(2, 6), minimum_words=1)
    assert prior.features(("nana", "n", ""), {}, {}) == [
        {"Letters:^n": 1, "Letters:na": 2, "Letters:an": 1, "Letters:a$": 1, "Letters:^nana$": 1},
        {"Letters:^n": 1, "Letters:n$": 1},
        {"Letters:^$": 1},
    ]


def test_scaled_letter_ngrams_sum_to_one_before_rare_ones_go():
    prior = LetterNgrams(sizes=(2,), minimum_words=2, scaled=True)
    counts = prior.features(("nana", "na"), {}, {})
    assert counts[0] == pytest.approx({"Letters:^n": 0.2, "Letters:na": 0.4, "Letters:a$": 0.2})
    assert counts[1] == pytest.approx(
        dict.fromkeys(["Letters:^n", "Letters:na", "Letters:a$"], 1 / 3)
    )


@pytest.mark.parametrize("prior", [Affixes, LetterNgrams])
def test_bad_lengths(prior):
    lengths = {"suffixes" if prior is Affixes else "sizes": (0,)}
    with pytest.raises(UserError, match="give 1 or more each"):
        prior(**lengths)
    with pytest.raises(UserError, match="minimum_words"):
        prior(minimum_words=0)


def test_top_words_have_features_of_their_own():
    # ferme 3, le 3, chat 2, la 1 over all splits.
    features = TopWords(3).features(WORDS, CORPORA, {})
    not_top = {"Word:@not_top": 1.0}
    assert features == [not_top, not_top, {"Word:chat": 1.0}, {"Word:ferme": 1.0}, {"Word:le": 1.0}]
    # chat 2, ferme 2 in train, where chat stands first in the lexicon.
    features = TopWords(2, splits=("train",)).features(WORDS, CORPORA, {})
    assert features == [not_top, not_top, {"Word:chat": 1.0}, not_top, {"Word:le": 1.0}]
