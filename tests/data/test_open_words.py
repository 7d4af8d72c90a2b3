"""Infinitely many words: the mass of longer and longer strings converges to 1."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import examples
from zoo.data import open_words
from zoo.data.open_words import OpenWords
from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lexicon import Lexicon, with_features
from zoo.priors.strings import DigitStrings, LetterStrings

WORDS = ("the", "ab", "ba", "bab", "7", "42")
FEATURES = [
    {"Word:the": 1.0},
    *[{"Class:name": 1.0}] * 3,
    {"Number:any": 1.0, "Number:short": 1.0},
    {"Number:any": 1.0},
]
BACKGROUND = np.log([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
LEXICON = with_features(Lexicon(words=WORDS, counts=np.ones(6, np.int64)), FEATURES, BACKGROUND)
CLASSES = (
    DigitStrings(("Number:any", "Number:short"), 0.1, "<digit>", longest=1),
    DigitStrings(("Number:any",), 0.1, "<digits>", ratio=0.2, shortest=2),
    LetterStrings(("Class:name",), 0.05, "<name>", smoothing=0.5),
)
OPEN = OpenWords.from_lexicon(LEXICON, CLASSES)
HEAD = LogLinear()


@pytest.fixture
def model(random, float64):
    """(params, tables, two hidden states)"""
    params = examples.random_params(HEAD, random, 4, OPEN.lexicon, scale=0.7)
    return params, HEAD.tables(OPEN.lexicon), jnp.asarray(random.normal(size=(2, 4)))


@functools.cache
def compiled():
    return jax.jit(functools.partial(open_words.log_prob, HEAD))


def log_prob(model, strings, state):
    params, tables, hidden = model
    rows = jnp.broadcast_to(hidden[state][None], (len(strings), 4))
    return np.asarray(compiled()(params, tables, rows, *OPEN.candidates(strings)))


def class_log_probs(model):
    """log p of the lexicon's six words and three classes by numpy, [2, 9]."""
    params, _, hidden = model
    weights, bias = np.asarray(params["weights"]), np.asarray(params["bias"])
    adaptors = np.asarray(hidden) @ weights.T + bias
    names = OPEN.lexicon.feature_names
    sets = [*FEATURES, *[dict.fromkeys(kind.features, 1.0) for kind in CLASSES]]
    phi = np.array([[features.get(name, 0) for name in names] for features in sets])
    scores = adaptors @ phi.T + [*(BACKGROUND + math.log(0.75)), *np.log([0.1, 0.1, 0.05])]
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def test_the_mass_of_longer_and_longer_strings_converges_to_one(model):
    """Strings of digits and of the letters a and b, of 1, 2, ... characters; and "the"."""
    spelled = ["the"]
    for size in range(1, 11):
        spelled += map("".join, itertools.product("ab", repeat=size))
        # Of more than three digits one string, for all are as probable.
        digits = itertools.product("0123456789" if size <= 3 else "1", repeat=size)
        spelled += map("".join, digits)
    mass = np.exp(log_prob(model, spelled, 0))
    sizes = np.array([len(string) for string in spelled])
    multiplicity = np.array(
        [10.0 ** len(s) if s.isdigit() and len(s) > 3 else 1.0 for s in spelled]
    )
    word_mass = mass[0]  # "the"
    remaining_mass = (
        1
        - word_mass
        - np.cumsum([(mass * multiplicity)[1:][sizes[1:] == n].sum() for n in range(1, 11)])
    )
    assert (np.diff(remaining_mass) < 0).all()
    assert remaining_mass[0] > 0.05
    assert 0 < remaining_mass[-1] < 2e-3


def test_log_prob_of_words_and_new_strings(model):
    log_probs = class_log_probs(model)
    # 37 is one of 100 strings of two digits, of which 42 is a word: the class leaves 1 - 0.008.
    digits = math.log(0.8 / 100 / (1 - 0.8 / 100))
    # 7 is one of ten digits.
    expected = [log_probs[1, 3], log_probs[1, 7] + digits, log_probs[1, 6] - math.log(9)]
    string_log_probs = log_prob(model, ["bab", "37", "8", "zz"], 1)
    np.testing.assert_allclose(string_log_probs[:3], expected, rtol=1e-6)
    assert string_log_probs[3] == -np.inf


def test_classes_stand_for_their_strings_in_training():
    assert [OPEN.class_of(string) for string in ("the", "42", "8", "43", "abba")] == [0, 5, 6, 7, 8]
    assert OPEN.class_of("zz") is None
    assert OPEN.lexicon.words[6:] == ("<digit>", "<digits>", "<name>")
    assert OPEN.lexicon.feature_names == LEXICON.feature_names


def test_a_class_has_a_hundredth_of_the_background_unless_told_otherwise():
    classes = DigitStrings(("Number:any",)), LetterStrings(("Class:name",), name="<name>")
    background = np.exp(OpenWords.from_lexicon(LEXICON, classes).lexicon.log_background)
    np.testing.assert_allclose(background, [0.49, *[0.098] * 5, 0.01, 0.01])


def test_new_strings_are_sampled_with_their_probabilities(model):
    params, tables, hidden = model
    draws = 1500
    rows = jnp.broadcast_to(hidden[:1], (draws, 4))
    generator = np.random.default_rng(5)
    words = np.asarray(jax.jit(HEAD.sample)(params, tables, rows, jax.random.key(3)))
    strings = [OPEN.spelled(int(word), generator) for word in words]
    kinds = [*WORDS, "8", "43", "aab"]
    log_probs = log_prob(model, kinds, 0)
    expected = np.exp([*log_probs, 0.0])
    expected[-1] = 1 - expected[:-1].sum()
    observed = [strings.count(kind) for kind in kinds]
    observed.append(draws - sum(observed))
    assert scipy.stats.chisquare(observed, draws * expected).pvalue > 1e-3
    assert len(set(strings) - set(WORDS)) > 20


def test_the_letter_model_by_hand():
    model = LetterStrings(("x",), smoothing=0.5).fit(["ab", "a"])
    # Of three letters, the end among them: s = 1.5. Ends 2, a 2, b 1 in all.
    anywhere = (np.array([2, 2, 1]) + 1.5 / 3) / 6.5
    # First letters: a twice, b never, and no empty word. After a: end 1, b 1; after b: end 1.
    begins = np.array([0, 2, 0]) + 1.5 * anywhere
    first = begins[1] / (begins[1] + begins[2])
    after_a = (np.array([1, 0, 1]) + 1.5 * anywhere) / 3.5
    after_b = (np.array([1, 0, 0]) + 1.5 * anywhere) / 2.5
    assert model.log_prob("ab") == pytest.approx(math.log(first * after_a[2] * after_b[0]))
    assert model.log_prob("aa") == pytest.approx(math.log(first * after_a[1] * after_a[0]))
    assert model.log_prob("") == model.log_prob("ac") == -math.inf


@pytest.mark.parametrize("order", [1, 3, 4])
def test_letters_of_any_order_have_mass_one(order):
    model = LetterStrings(("x",), smoothing=0.5, order=order).fit(["ab", "abb", "b"])
    strings = ["".join(s) for n in range(1, 13) for s in itertools.product("ab", repeat=n)]
    mass = np.array([math.exp(model.log_prob(string)) for string in strings])
    sizes = np.array([len(string) for string in strings])
    remaining_mass = 1 - np.cumsum([mass[sizes == n].sum() for n in range(1, 13)])
    assert (np.diff(remaining_mass) < 0).all() and -1e-12 < remaining_mass[-1] < 0.02
    generator = np.random.default_rng(0)
    samples = [model.sample(generator) for _ in range(2000)]
    for string in ("ab", "b", "a"):
        expected = math.exp(model.log_prob(string))
        assert abs(samples.count(string) / 2000 - expected) < 4 * (expected / 2000) ** 0.5


def test_first_letters_share_out_strings():
    names = LetterStrings(("x",), first="capital").fit(["Ab", "aB", "B2", "B"])
    uncapitalised = LetterStrings(("x",), first="other").fit(["Ab", "aB", "b2", "ba"])
    assert names.letters == ("", "A", "B", "b")
    assert uncapitalised.letters == ("", "B", "a", "b")
    assert names.log_prob("bB") == uncapitalised.log_prob("Ba") == -math.inf
    assert names.log_prob("Bb") > -math.inf < uncapitalised.log_prob("bB")
    kinds = [LetterStrings(("x",), first=first) for first in ("any", "capital", "other")]
    assert kinds[1].is_disjoint(kinds[2]) and not kinds[0].is_disjoint(kinds[1])
    digits = [DigitStrings(("x",), shortest=a, longest=b) for a, b in ((1, 3), (4, 0), (3, 5))]
    assert digits[0].is_disjoint(digits[1]) and digits[1].is_disjoint(digits[0])
    assert not digits[0].is_disjoint(digits[2]) and not digits[1].is_disjoint(digits[2])
    assert digits[0].is_disjoint(kinds[0]) and kinds[0].is_disjoint(digits[0])
    with pytest.raises(UserError, match="capital, other or any"):
        LetterStrings(("x",), first="upper")


def test_digit_strings_have_mass_one():
    limited = DigitStrings(("x",), ratio=0.4, shortest=2, longest=4)
    total = sum(10**n * math.exp(limited.log_prob("0" * n)) for n in range(2, 5))
    assert total == pytest.approx(1)
    assert limited.log_prob("1") == limited.log_prob("12345") == -math.inf
    assert limited.log_prob("٣٣") == -math.inf
    generator = np.random.default_rng(0)
    assert {len(limited.sample(generator)) for _ in range(200)} == {2, 3, 4}


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ((), "at least one"),
        ((DigitStrings(("Number:any",), 0.6), LetterStrings(("Class:name",), 0.5)), "sum to 1"),
        ((DigitStrings(("Number:any",), name="42"),), "42 is already a word"),
        ((DigitStrings(("Number:none",)),), "'Number:none', which no word"),
        ((LetterStrings(("Class:name", "Number:any")),), "no word of the lexicon has"),
        ((LetterStrings(("Number:none",)),), "not be learnt: add the prior that gives it"),
        ((DigitStrings(("Word:@not_top",)),), "give TopWords a count below"),
    ],
)
def test_classes_that_cannot_be(classes, message):
    with pytest.raises(UserError, match=message):
        OpenWords.from_lexicon(LEXICON, classes)


def test_a_class_without_strings_outside_the_lexicon_is_refused():
    words = tuple("0123456789")
    lexicon = with_features(Lexicon(words, np.ones(10, np.int64)), [{"Number:any": 1.0}] * 10)
    with pytest.raises(UserError, match="all strings of <digits>, or nearly all, are words"):
        OpenWords.from_lexicon(lexicon, (DigitStrings(("Number:any",), longest=1),))
    larger = OpenWords.from_lexicon(lexicon, (DigitStrings(("Number:any",), longest=2, ratio=0.3),))
    # Of two digits are 0.3 / 1.3 of the mass.
    np.testing.assert_allclose(larger.log_outside, [math.log(0.3 / 1.3)], rtol=1e-9)


@pytest.mark.parametrize(
    "options", [{"share": 0.0}, {"share": 1.0}, {"ratio": 1.0}, {"shortest": 0}]
)
def test_bad_options(options):
    for kind in (DigitStrings, LetterStrings) if "share" in options else (DigitStrings,):
        with pytest.raises(UserError):
            kind(("x",), **options)
    with pytest.raises(UserError):
        DigitStrings(("x",), shortest=3, longest=2)
