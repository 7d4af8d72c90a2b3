"""Words that share the probability of the unknown word, by hand."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.marks import slow
from zoo.errors import UserError
from zoo.heads import (
    AdaptiveSoftmax,
    CharLSTM,
    LogLinear,
    Softmax,
    SpreadUnknown,
    WithCache,
    spread_unknown,
)
from zoo.lexicon import Lexicon, with_features
from zoo.priors import KneserNey, strings

TRAINING_LEXICON, NEW_LEXICON = examples.trained_and_other()
SIZE = 5


@pytest.mark.parametrize("head", [Softmax(), *slow(AdaptiveSoftmax(cutoffs=(2,), division=2))])
def test_probabilities_are_those_of_the_head_and_even_parts_of_the_unknown_word_s(head, random):
    spread = SpreadUnknown(head, TRAINING_LEXICON)
    inner = examples.random_params(head, random, SIZE, TRAINING_LEXICON)
    params = {"head": inner}
    tables, hidden = spread.tables(NEW_LEXICON), jnp.asarray(random.normal(size=(3, 2, SIZE)))
    head_log_probs = np.asarray(
        head.log_probs(inner, head.tables(TRAINING_LEXICON), hidden), np.float64
    )
    part = head_log_probs[..., 1] - np.log(4)  # x, y, z and the unknown word itself
    log_p_by_word = {
        **dict.fromkeys(("x", "y", "z", "?"), part),
        "<s>": head_log_probs[..., 0],
        "b": head_log_probs[..., 2],
        "a": head_log_probs[..., 3],
        "c": head_log_probs[..., 4],
    }
    expected = np.stack([log_p_by_word[word] for word in NEW_LEXICON.words], axis=-1)
    log_probs = spread.log_probs(params, tables, hidden)
    np.testing.assert_allclose(log_probs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), np.ones((3, 2)), rtol=1e-5)
    targets = jnp.asarray([[0, 2], [7, 3], [5, 1]])
    log_prob, log_z = spread.log_prob_and_log_z(params, tables, hidden, targets)
    target_log_probs = np.take_along_axis(expected, np.asarray(targets)[..., None], -1)[..., 0]
    np.testing.assert_allclose(log_prob, target_log_probs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(spread.loss(params, tables, hidden, targets), -log_prob)
    _, head_log_z = head.log_prob_and_log_z(
        inner, head.tables(TRAINING_LEXICON), hidden, targets * 0
    )
    np.testing.assert_allclose(log_z, head_log_z)
    assert spread.warnings(NEW_LEXICON) == {"words that share the unknown word's probability": 4}


def spread_by_hand(log_probs, q):
    """log p' of NEW_LEXICON, [3, 8], from log p of TRAINING_LEXICON, [3, 5], and q of (x, y, ?, z),
    [3, 4]."""
    columns = {"<s>": 0, "b": 2, "a": 3, "c": 4}
    expected = np.zeros((3, 8))
    for token, position in itertools.product(range(3), range(8)):
        word = NEW_LEXICON.words[position]
        if word in columns:
            expected[token, position] = log_probs[token, columns[word]]
        else:
            share = q[token, "xy?z".index(word)]
            expected[token, position] = log_probs[token, 1] + np.log(share)
    return expected


def log_linear_by_hand(params, hidden, features):
    """q of words with these features, [tokens, words]: exp((W h + c) . phi), normalised."""
    weights, bias = (np.asarray(params[name], np.float64) for name in ("weights", "bias"))
    q = np.zeros((len(hidden), len(features)))
    for token, word in itertools.product(range(len(hidden)), range(len(features))):
        adaptor = weights @ np.asarray(hidden[token], np.float64) + bias
        q[token, word] = np.exp(adaptor @ features[word])
    return q / q.sum(1, keepdims=True)


def with_three_features(lexicon):
    """Words with the features f, g and h, by their spelling."""
    rows = [
        {name: 1.0 for name in "fgh" if ord(word[0]) % (ord(name) - 100)} for word in lexicon.words
    ]
    return with_features(lexicon, rows, np.log(np.arange(1.0, len(lexicon) + 1)), tuple("fgh"))


@pytest.mark.parametrize("head", [LogLinear(), *slow(Softmax())])
@pytest.mark.parametrize("by_features", [False, True])
def test_words_compete_by_features_within_the_class(head, by_features, random):
    training_lexicon, new_lexicon = map(with_three_features, (TRAINING_LEXICON, NEW_LEXICON))
    spread = SpreadUnknown(head, training_lexicon, by_features=by_features)
    params = examples.random_params(spread, random, SIZE, new_lexicon)
    hidden = jnp.asarray(random.normal(size=(3, SIZE)))
    log_probs = jax.jit(head.log_probs)(params["head"], head.tables(training_lexicon), hidden)
    q = np.full((3, 4), 1 / 4)
    if by_features:
        words = [NEW_LEXICON.ids[word] for word in "xy?z"]
        features = [
            [new_lexicon.features_of(word).get(name, 0) for name in "fgh"] for word in words
        ]
        assert len({*map(tuple, features)}) > 2
        q = log_linear_by_hand(params["within"], hidden, features)
    expected = spread_by_hand(np.asarray(log_probs, np.float64), q)
    tables = spread.tables(new_lexicon)
    actual = jax.jit(spread.log_probs)(params, tables, hidden)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.exp(actual).sum(-1), 1, rtol=1e-5)
    compute_log_prob = jax.jit(spread.log_prob)
    for word in range(8):
        log_prob = compute_log_prob(params, tables, hidden, jnp.full(3, word))
        np.testing.assert_allclose(log_prob, expected[:, word], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [1, *slow(2)])
def test_words_compete_by_letters_and_length(order, random):
    """log q by its formula, in a loop: p(c | d) = (n(dc) + s p(c | d')) / (n(d) + s)."""
    training_lexicon = Lexicon(
        ("<s>", "?", "ab", "b", "ba"), np.zeros(5, int), boundary="<s>", unknown="?"
    )
    words = ("<s>", "?", "abx", "ba", "b", "ab", "bb")
    new_lexicon = Lexicon(words, np.zeros(7, int), boundary="<s>", unknown="?")
    training_spellings, letters = ["ab#", "b#", "ba#"], "?abx#"
    strength = 0.1 * len(letters)

    def letter_probability(context, letter):
        if order == 1 or not context:
            count = sum(word.count(letter) for word in training_spellings)
            return (count + strength / len(letters)) / (
                sum(map(len, training_spellings)) + strength
            )
        padded = ["^" + word for word in training_spellings]
        pairs = [pair for word in padded for pair in itertools.pairwise(word)]
        context_count = sum(first == context for first, _ in pairs)
        shorter = letter_probability("", letter)
        if not context_count:
            return shorter
        return (pairs.count((context, letter)) + strength * shorter) / (context_count + strength)

    def spelling_probability(word):
        first = {letter: letter_probability("^", letter) for letter in "?abx"}
        p = first[word[0]] / sum(first.values())
        for before, letter in zip(word, word[1:] + "#", strict=True):
            p *= letter_probability(before, letter)
        return p

    exponent, by_length = 0.7, 0.2
    q = {
        w: spelling_probability(w) ** exponent * np.exp(by_length * len(w))
        for w in ("?", "abx", "bb")
    }
    head = SpreadUnknown(Softmax(), training_lexicon, letters=order)
    params = examples.random_params(head, random, SIZE, new_lexicon)
    # Features are sorted by their names: length, letters.
    params["within"] = {"weights": jnp.zeros((2, SIZE)), "bias": jnp.array([by_length, exponent])}
    tables, hidden = head.tables(new_lexicon), jnp.asarray(random.normal(size=(3, SIZE)))
    head_log_probs = np.asarray(
        Softmax().log_probs(params["head"], Softmax().tables(training_lexicon), hidden), np.float64
    )
    log_probs = np.asarray(head.log_probs(params, tables, hidden))
    for word, part in q.items():
        np.testing.assert_allclose(
            log_probs[:, words.index(word)],
            head_log_probs[:, 1] + np.log(part / sum(q.values())),
            rtol=1e-4,
        )
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=1e-5)


@pytest.mark.parametrize("options", [{"by_features": True}, *slow({"letters": 2})])
def test_weights_are_those_of_the_least_loss_on_the_words_seen(options, random, monkeypatch):
    """The loss in float64: the mean of -log q plus 0.3 times the squares of the adaptor."""
    monkeypatch.setattr(spread_unknown, "_PENALTIES", (0.3,))
    members = ("xab", "y", "?", "zz")
    new_lexicon = Lexicon((*members, *"abc"), np.zeros(7, int), unknown="?")
    training_lexicon = Lexicon(("<unk>", *"abc"), np.zeros(4, int), unknown="<unk>")
    training_lexicon, new_lexicon = map(with_three_features, (training_lexicon, new_lexicon))
    head = SpreadUnknown(Softmax(), training_lexicon, **options)
    hidden = random.normal(size=(41, 2))
    # "xab" where the first number is above 0, else one of the others.
    words = [members[0 if h[0] > 0 else 1 + 2 * (n % 2)] for n, h in enumerate(hidden)]
    ids = np.array([new_lexicon.ids[word] for word in words])
    fitted = head.fit(new_lexicon, jnp.asarray(hidden), jnp.asarray(ids))
    seen = hidden if "by_features" in options else 0 * hidden
    if "letters" in options:
        model = strings.letter_model("bac", 2, extra_words=members)
        features = [[len(word), model.log_prob(word)] for word in members]
        assert not np.asarray(fitted["weights"]).any()
    else:
        features = [
            [new_lexicon.features_of(new_lexicon.ids[word]).get(name, 0) for name in "fgh"]
            for word in members
        ]

    def loss(weights, bias):
        q = log_linear_by_hand({"weights": weights, "bias": bias}, seen, features)
        likely = [np.log(q[token, members.index(word)]) for token, word in enumerate(words)]
        adaptors = seen @ weights.T + bias
        return -np.mean(likely) + 0.3 * (adaptors**2).sum(1).mean()

    weights, bias = (np.asarray(fitted[name], np.float64) for name in ("weights", "bias"))
    least = loss(weights, bias)
    assert least < loss(0 * weights, 0 * bias) - (0.02 if "by_features" in options else 0)
    for index, step in itertools.product(range(len(bias)), (-0.01, 0.01)):
        moved = bias + step * np.eye(len(bias))[index]
        assert least < loss(weights, moved)
    if "by_features" in options:
        for index, step in itertools.product(np.ndindex(weights.shape), (-0.01, 0.01)):
            moved = weights.copy()
            moved[index] += step
            assert least < loss(moved, bias)


@pytest.mark.parametrize("learnable", [*slow(True), False])
def test_the_penalty_is_that_of_the_best_log_prob_of_words_held_out(learnable, random):
    """The least where states tell the last six of 60 words, the most where they mislead."""
    members = ("xab", "y", "?", "zz")
    new_lexicon = Lexicon((*members, *"abc"), np.zeros(7, int), unknown="?")
    training_lexicon = Lexicon(("<unk>", *"abc"), np.zeros(4, int), unknown="<unk>")
    training_lexicon, new_lexicon = map(with_three_features, (training_lexicon, new_lexicon))
    head = SpreadUnknown(Softmax(), training_lexicon, by_features=True)
    hidden = random.normal(size=(60, 2))
    told = (hidden[:, 0] > 0) ^ (not learnable and np.arange(60) >= 54)
    words = np.where(told, new_lexicon.ids["xab"], new_lexicon.ids["y"])
    arguments = new_lexicon, jnp.asarray(hidden), jnp.asarray(words)
    fitted = head.fit(*arguments)
    sizes = {}
    for penalty in spread_unknown._PENALTIES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spread_unknown, "_PENALTIES", (penalty,))
            sizes[penalty] = float(np.abs(np.asarray(head.fit(*arguments)["weights"])).sum())
    size = float(np.abs(np.asarray(fitted["weights"])).sum())
    # The penalties before it are another start.
    assert size == pytest.approx(sizes[0.1 if learnable else 10.0], rel=1e-3)
    assert sizes[0.1] > 2 * sizes[1.0] > 4 * sizes[10.0]


def test_where_words_cannot_share_it_is_said():
    closed_lexicon = dataclasses.replace(TRAINING_LEXICON, unknown=None)
    with pytest.raises(UserError, match="no unknown word whose probability"):
        SpreadUnknown(Softmax(), closed_lexicon).tables(NEW_LEXICON)
    with pytest.raises(UserError, match="a CharLSTM can score new words by itself"):
        SpreadUnknown(CharLSTM(), TRAINING_LEXICON)
    for head in (WithCache(Softmax()), LogLinear(background=KneserNey(order=2))):
        with pytest.raises(
            UserError, match=r"put the cache around, WithCache\(SpreadUnknown\(head"
        ):
            SpreadUnknown(head, TRAINING_LEXICON)
    with pytest.raises(UserError, match="needs words with features, and this lexicon has none"):
        SpreadUnknown(Softmax(), TRAINING_LEXICON, by_features=True).fit(
            NEW_LEXICON, jnp.zeros((1, SIZE)), jnp.zeros(1, int)
        )
    incomplete_lexicon = Lexicon(
        ("a", "<s>", "x", "?", "c"), np.zeros(5, np.int64), boundary="<s>", unknown="?"
    )
    with pytest.raises(UserError, match="1 are missing, such as 'b'"):
        SpreadUnknown(Softmax(), TRAINING_LEXICON).tables(incomplete_lexicon)
