"""What is promised of every head. A new one joins by a line in HEADS."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import examples, references
from tests.heads import head_references
from zoo import heads
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import (
    NCE,
    AdaptiveSoftmax,
    BlackOut,
    CNNSoftmax,
    Head,
    HierarchicalSoftmax,
    HuffmanSoftmax,
    ImportanceSampling,
    LogLinear,
    MixtureOfContexts,
    MixtureOfSoftmaxes,
    SampledLogLinear,
    SelfNormalisedSoftmax,
    Softmax,
    SplitSoftmax,
)
from zoo.losses import huffman_paths
from zoo.models import LanguageModel

SIZE = 5


def rows(array):
    """[..., D] as [N, D]."""
    return np.reshape(array, (-1, array.shape[-1]))


@dataclasses.dataclass(frozen=True)
class HeadCase:
    """A head, and log p of every word [N, V] by numpy, of a dict of params and hidden [N, D].

    exact: whether its loss is -log p.
    """

    head: Head
    log_probs: Callable
    exact: bool = True


CAP = 0.8  # which many scores are near
HEADS = {
    "softmax": HeadCase(Softmax(), head_references.softmax),
    "softmax without bias": HeadCase(Softmax(bias=False), head_references.softmax),
    "tied softmax": HeadCase(Softmax(tied=True), head_references.softmax),
    "capped softmax": HeadCase(
        Softmax(tied=True, soft_cap=CAP), functools.partial(head_references.softmax, soft_cap=CAP)
    ),
    "capped mixture": HeadCase(
        MixtureOfSoftmaxes(components=3, soft_cap=CAP),
        functools.partial(head_references.mixture, soft_cap=CAP),
    ),
    "capped letters": HeadCase(
        CNNSoftmax(head_references.NETWORK, soft_cap=CAP),
        functools.partial(head_references.cnn_softmax, soft_cap=CAP),
    ),
    "log-linear": HeadCase(LogLinear(), head_references.log_linear),
    "adaptive": HeadCase(AdaptiveSoftmax(cutoffs=(3, 8), division=2), head_references.adaptive),
    "split": HeadCase(SplitSoftmax(cutoffs=(3, 8)), head_references.split_softmax),
    "tied split": HeadCase(SplitSoftmax(cutoffs=(3, 8), tied=True), head_references.split_softmax),
    "hierarchical": HeadCase(HierarchicalSoftmax(), head_references.hierarchical),
    "Huffman": HeadCase(HuffmanSoftmax(), head_references.huffman),
    "mixture": HeadCase(MixtureOfSoftmaxes(components=3), head_references.mixture),
    "small mixture": HeadCase(MixtureOfSoftmaxes(components=2, size=3), head_references.mixture),
    "contexts": HeadCase(MixtureOfContexts(components=3), head_references.mixture_of_contexts),
    "letters": HeadCase(CNNSoftmax(head_references.NETWORK), head_references.cnn_softmax),
    "corrected letters": HeadCase(
        CNNSoftmax(head_references.NETWORK, correction=2), head_references.cnn_softmax
    ),
    "self-normalised": HeadCase(SelfNormalisedSoftmax(z_loss=0.0), head_references.softmax),
    "NCE": HeadCase(NCE(samples=4), head_references.softmax, exact=False),
    "NCE of another log Z": HeadCase(
        NCE(samples=4, learned_partition=True), head_references.softmax, exact=False
    ),
    "NCE of letters": HeadCase(
        CNNSoftmax(head_references.NETWORK, sampled=NCE(samples=4, log_partition=2.0)),
        head_references.cnn_softmax,
        exact=False,
    ),
    "importance sampling": HeadCase(
        ImportanceSampling(samples=4), head_references.softmax, exact=False
    ),
    "sampled log-linear": HeadCase(
        SampledLogLinear(samples=4), head_references.log_linear, exact=False
    ),
    "contrastive divergence": HeadCase(
        SampledLogLinear(estimate="contrastive", samples=4),
        head_references.log_linear,
        exact=False,
    ),
    "BlackOut": HeadCase(BlackOut(samples=4), head_references.softmax, exact=False),
}


def training_key():
    """Of a loss that draws noise: the same noise wherever it is used. Others take no notice."""
    return jax.random.key(3)


class HeadOnTrial:
    """A head with random parameters in float64, and all that it says of six tokens [2, 3]."""

    def __init__(self, case: HeadCase):
        random = np.random.default_rng(11)
        self.case, self.head, self.lexicon = case, case.head, examples.lexicon()
        self.tables = self.head.tables(self.lexicon)
        model = LanguageModel(Lookup(SIZE), LSTM(SIZE), case.head)
        params = examples.random_params(model, random, self.lexicon, scale=0.8)
        self.params = model.head_params(params)
        self.hidden = jnp.asarray(random.normal(size=(2, 3, SIZE)))
        self.targets = jnp.asarray([[0, 4, 12], [9, 10, 6]])
        self.weights = jnp.asarray([[1.0, 0.5, 2.0], [0.3, 0.0, 1.0]])
        self.expected = self.reference(self.params, self.hidden)
        self.results = jax.jit(self.evaluate)(self.params, self.hidden)

    @functools.cached_property
    def expected_gradients(self):
        """Of the weighted loss, by params and hidden, from differences of the reference."""

        leaves, structure = jax.tree.flatten(self.params)

        def weighted_loss(arrays):
            params = jax.tree.unflatten(structure, [arrays[index] for index in range(len(leaves))])
            log_probs = rows(self.reference(params, arrays["hidden"]))
            tokens = zip(log_probs, np.ravel(self.targets), np.ravel(self.weights), strict=True)
            return -sum(weight * word_log_probs[word] for word_log_probs, word, weight in tokens)

        arrays = {**dict(enumerate(leaves)), "hidden": self.hidden}
        gradients = references.finite_differences(weighted_loss, arrays)
        return jax.tree.unflatten(structure, [*gradients.values()][:-1]), gradients["hidden"]

    def reference(self, params, hidden):
        """log p of every word by numpy, [..., V]."""
        params = jax.tree.map(lambda value: np.asarray(value, np.float64), params)
        log_probs = self.case.log_probs(params, rows(np.asarray(hidden)))
        return log_probs.reshape(*hidden.shape[:-1], -1)

    def evaluate(self, params, hidden):
        """Every method of the head, and the gradients of its losses."""
        head, tables, targets, weights = self.head, self.tables, self.targets, self.weights

        def summed(params, hidden):
            losses = head.loss(params, tables, hidden, targets, key=training_key())
            return jnp.sum(weights * losses)

        def weighted(params, hidden, weights=weights):
            arguments = params, tables, hidden, targets, weights
            return head.weighted_loss(*arguments, key=training_key())

        def gathered(params, hidden):
            log_probs = head.log_probs(params, tables, hidden)
            return -jnp.sum(
                weights * jnp.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
            )

        forms = {"loss": summed, "log_probs": gathered}
        *gradients, weights_gradient = jax.grad(weighted, argnums=(0, 1, 2))(
            params, hidden, weights
        )
        return {
            "log_probs": head.log_probs(params, tables, hidden),
            "log_prob": head.log_prob(params, tables, hidden, targets),
            "log_prob_and_log_z": head.log_prob_and_log_z(params, tables, hidden, targets),
            "target_scores": head.target_scores(
                params, tables, rows(hidden), targets.ravel(), None, None
            ),
            "loss": head.loss(params, tables, hidden, targets, key=training_key()),
            "weighted_loss": weighted(params, hidden),
            "slopes_of_weights": weights_gradient,
            "top_k": head.top_k(params, tables, hidden, 4),
            "gradients": {
                "weighted_loss": tuple(gradients),
                **{n: jax.grad(form, argnums=(0, 1))(params, hidden) for n, form in forms.items()},
            },
        }


@functools.cache
def on_trial(name):
    return HeadOnTrial(HEADS[name])


# Heads whose code others run, too. NCE runs that of all sampled heads, which differ in their
# samples; letters with corrections run that of letters without; the capped softmax, which is tied,
# runs that of softmaxes with fewer parts.
LIKE_OTHERS = {
    *("softmax without bias", "tied softmax", "self-normalised", "tied split"),
    *("importance sampling", "BlackOut", "sampled log-linear", "contrastive divergence"),
    *(
        "letters",
        "capped letters",
        "capped mixture",
        "small mixture",
        "NCE of another log Z",
        "NCE of letters",
    ),
}
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if name in LIKE_OTHERS else name for name in HEADS
]


# Where a claim needs programs of its own, and its code is shared by most heads: these are of a
# single table, of features, of classes, of noise.
REPRESENTATIVES = ("softmax", "log-linear", "hierarchical", "NCE")
representative_heads = pytest.mark.parametrize(
    "trial",
    [
        name if name in REPRESENTATIVES else pytest.param(name, marks=pytest.mark.slow)
        for name in HEADS
    ],
    indirect=True,
)


@pytest.fixture(params=NAMES)
def trial(request, float64):
    return on_trial(request.param)


# Tables are float32, so that log-probabilities differ from float64's in the eighth place.
CLOSE = {"rtol": 2e-6, "atol": 2e-7}


def test_log_probs_are_those_of_the_formula(trial):
    assert trial.results["log_probs"].shape == (2, 3, 13)
    np.testing.assert_allclose(trial.results["log_probs"], trial.expected, **CLOSE)


def test_a_score_less_log_z_is_the_log_probability(trial):
    """So that log Z is computed once for several words after one state (prefix_sharing)."""
    scores, (log_prob, log_z) = (
        trial.results[name] for name in ("target_scores", "log_prob_and_log_z")
    )
    if scores is not None:
        np.testing.assert_allclose(scores - log_z.ravel(), log_prob.ravel(), **CLOSE)


def test_probabilities_sum_to_one(trial):
    sums = np.exp(trial.results["log_probs"]).sum(-1)
    np.testing.assert_allclose(sums, np.ones((2, 3)), rtol=1e-6)


def test_log_prob_is_an_entry_of_log_probs(trial):
    for place in np.ndindex(2, 3):
        entry = trial.results["log_probs"][place][trial.targets[place]]
        np.testing.assert_allclose(trial.results["log_prob"][place], entry, rtol=1e-10)


def test_loss_is_minus_log_prob_or_has_a_name_of_its_own(trial):
    if trial.case.exact:
        np.testing.assert_array_equal(trial.results["loss"], -trial.results["log_prob"])
    else:
        assert trial.head.loss_name != "loss"
        assert np.abs(trial.results["loss"] + trial.results["log_prob"]).min() > 1e-3


def test_weighted_loss_is_the_weighted_sum(trial):
    expected = np.sum(np.asarray(trial.weights) * np.asarray(trial.results["loss"]))
    np.testing.assert_allclose(trial.results["weighted_loss"], expected, rtol=1e-10)


def test_the_gradient_of_the_weights_is_the_losses(trial):
    """Also of the token whose weight is 0."""
    expected = trial.results["loss"]
    if trial.case.exact:
        places = np.asarray(trial.targets)[..., None]
        expected = -np.take_along_axis(trial.expected, places, axis=-1)[..., 0]
    np.testing.assert_allclose(trial.results["slopes_of_weights"], expected, **CLOSE)


@pytest.mark.parametrize("form", ["loss", "weighted_loss", "log_probs"])
def test_gradients_are_those_of_the_formula(trial, form):
    gradients, expected_gradients = trial.results["gradients"][form], trial.expected_gradients
    if not trial.case.exact and form == "loss":
        pytest.skip("no formula over all words: tests/heads/test_sampled.py has the one over draws")
    if not trial.case.exact and form == "weighted_loss":
        expected_gradients = trial.results["gradients"]["loss"]
    assert jax.tree.structure(gradients) == jax.tree.structure(expected_gradients)
    for (path, gradient), expected in zip(
        jax.tree.leaves_with_path(gradients), jax.tree.leaves(expected_gradients), strict=True
    ):
        name = jax.tree_util.keystr(path)
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6, err_msg=name)


@representative_heads
def test_parameters_of_64_bits_take_states_of_32_bits(trial):
    """And the other way round, with targets and weights of 64 bits, as numpy makes them."""
    head, targets = trial.head, np.asarray(trial.targets, np.int64)
    narrow = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), trial.params)

    @jax.jit
    def evaluate(params, states, weights):
        inputs, key = (params, trial.tables, states), {"key": training_key()}
        slopes = jax.grad(head.weighted_loss, argnums=(0, 2, 4))(*inputs, targets, weights, **key)
        words = head.sample(*inputs, jax.random.key(0))
        scores = head.top_k(*inputs, 4)[0], head.log_prob(*inputs, targets)
        return slopes, words, scores, head.loss(*inputs, targets, **key)

    for params, states in ((trial.params, jnp.float32(trial.hidden)), (narrow, trial.hidden)):
        inputs = params, states, trial.weights
        slopes, words, scores, losses = evaluate(*inputs)
        for slope, x in zip(jax.tree.leaves(slopes), jax.tree.leaves(inputs), strict=True):
            assert slope.dtype == x.dtype and np.isfinite(slope).all()
        assert words.shape == targets.shape and words.dtype == jnp.int32
        expected = trial.results["top_k"][0], trial.results["log_prob"]
        for score, expected_score in zip(scores, expected, strict=True):
            np.testing.assert_allclose(score, expected_score, rtol=1e-4, atol=1e-5)
        assert jnp.isfinite(losses).all()


def test_top_k_sorts_log_probs(trial):
    values, words = trial.results["top_k"]
    log_probs = np.asarray(trial.results["log_probs"])
    np.testing.assert_array_equal(words, np.argsort(-log_probs, axis=-1, stable=True)[..., :4])
    np.testing.assert_allclose(values, -np.sort(-log_probs, axis=-1)[..., :4], rtol=1e-12)


def test_padding_changes_nothing(trial):
    """Positions without weight, whatever they hold, leave the sum and every gradient alone."""
    hidden = [trial.hidden, *(factor * trial.hidden[:, :1] for factor in (1e3, 1e200))]
    hidden = jnp.concatenate([*hidden, jnp.full((2, 2, SIZE), jnp.nan)], axis=1)
    hidden = hidden.at[0, 5, 1].set(jnp.inf)
    padding = jnp.asarray([[2, 3, 9, -100], [7, -100, 10**6, -1]])
    targets = jnp.concatenate([trial.targets, padding], axis=1)
    weights = jnp.concatenate([trial.weights, jnp.zeros((2, 4))], axis=1)

    @jax.jit
    def padded(params, hidden):
        function = jax.value_and_grad(trial.head.weighted_loss, argnums=(0, 2, 4))
        return function(params, trial.tables, hidden, targets, weights, key=training_key())

    value, (params_gradient, hidden_gradient, weights_gradient) = padded(trial.params, hidden)
    np.testing.assert_allclose(value, trial.results["weighted_loss"], rtol=1e-10)
    expected_params_gradient, expected_hidden_gradient = trial.results["gradients"]["weighted_loss"]
    pairs = zip(
        jax.tree.leaves(params_gradient), jax.tree.leaves(expected_params_gradient), strict=True
    )
    for gradient, expected in pairs:
        np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(
        hidden_gradient[:, :3], expected_hidden_gradient, rtol=1e-8, atol=1e-12
    )
    np.testing.assert_array_equal(hidden_gradient[:, 3:], 0)
    expected = trial.results["slopes_of_weights"]
    np.testing.assert_allclose(weights_gradient[:, :3], expected, rtol=1e-8, atol=1e-12)
    assert np.isfinite(weights_gradient).all()
    np.testing.assert_array_equal(weights_gradient[:, 5:], 0)  # of tokens that are none


def test_samples_have_the_declared_probabilities(trial):
    draws = 10_000
    hidden = jnp.broadcast_to(trial.hidden[0, :2], (draws, 2, SIZE))
    words = jax.jit(trial.head.sample)(trial.params, trial.tables, hidden, jax.random.key(5))
    assert words.shape == (draws, 2)
    for column in range(2):
        observed = np.bincount(words[:, column], minlength=13)
        expected = np.exp(trial.expected[0, column])
        result = scipy.stats.chisquare(observed, draws * expected / expected.sum())
        assert result.pvalue > 1e-3


@representative_heads
def test_reports_of_tokens(trial):
    """Log p, log Z and the best word beside the loss."""
    head, arrays = trial.head, (trial.params, trial.tables, trial.hidden, trial.targets)

    @jax.jit
    def evaluate(*arrays):
        options = {"key": training_key()}
        return (
            head.weighted_loss_and_report(*arrays, trial.weights, **options),
            head.weighted_loss(*arrays, trial.weights, **options),
            head.log_prob_and_log_z(*arrays),
        )

    (loss, report), plain_loss, (log_prob, log_z) = evaluate(*arrays)
    np.testing.assert_allclose(loss, plain_loss, rtol=1e-10)
    np.testing.assert_allclose(report.log_prob, log_prob, **CLOSE)
    np.testing.assert_allclose(report.log_z, log_z, **CLOSE)
    best = trial.expected.argmax(-1)
    np.testing.assert_array_equal(report.best_word, best)
    np.testing.assert_array_equal(report.correct, best == np.asarray(trial.targets))


@representative_heads
@pytest.mark.parametrize("temperature", [0.6, np.linspace(0.6, 1.7, 6).reshape(2, 3)], ids=str)
def test_at_a_temperature(trial, temperature):
    """p^(1/T) over its sum, its entropy, and whether a target is its best word: of all tokens, or
    of each its own."""
    powers = np.exp(trial.expected) ** (1 / np.reshape(temperature, (*np.shape(temperature), 1)))
    expected = np.log(powers / powers.sum(-1, keepdims=True))
    target_log_probs = np.take_along_axis(expected, np.asarray(trial.targets)[..., None], -1)[
        ..., 0
    ]
    best = expected.argmax(-1)
    draws, head, tables = 10_000, trial.head, trial.tables
    states = jnp.broadcast_to(trial.hidden[0, 0], (draws, SIZE))
    chosen_words = expected.argsort(-1)[..., [0, -1, 5]]

    @jax.jit
    def evaluate(params, hidden, states):
        inputs, options = (params, tables, hidden), {"temperature": temperature}
        return (
            head.log_prob(*inputs, trial.targets, **options),
            head.statistics(*inputs, trial.targets, **options),
            head.statistics(*inputs, jnp.asarray(best)),
            head.word_log_probs(*inputs, chosen_words, **options),
            head.sample(
                *(params, tables, states, jax.random.key(6)),
                temperature=jnp.full(draws, np.ravel(temperature)[0]),
            ),
        )

    results = evaluate(trial.params, trial.hidden, states)
    log_prob, statistics, best_statistics, word_log_probs, words = results
    chosen = np.take_along_axis(expected, chosen_words, -1)
    np.testing.assert_allclose(word_log_probs, chosen, **CLOSE)
    np.testing.assert_allclose(log_prob, target_log_probs, **CLOSE)
    np.testing.assert_allclose(statistics.log_prob, target_log_probs, **CLOSE)
    entropies = -(np.exp(expected) * expected).sum(-1)
    np.testing.assert_allclose(statistics.entropy, entropies, **CLOSE)
    np.testing.assert_array_equal(statistics.correct, best == np.asarray(trial.targets))
    assert best_statistics.correct.all()
    np.testing.assert_allclose(best_statistics.log_prob, trial.expected.max(-1), **CLOSE)
    observed = np.bincount(words, minlength=13)
    assert scipy.stats.chisquare(observed, draws * np.exp(expected[0, 0])).pvalue > 1e-3


# Where a head without knowledge starts: uniform over its classes, and over the words of a class; a
# log-linear one at its background.
UNEVEN = {
    **dict.fromkeys(
        ("log-linear", "sampled log-linear", "contrastive divergence"), examples.log_background()
    ),
    **dict.fromkeys(("adaptive", "split", "tied split"), np.log([1 / 5] * 3 + [1 / 25] * 10)),
    "hierarchical": np.log([1 / 15] * 10 + [1 / 9] * 3),
    "Huffman": np.log(0.5) * np.abs(huffman_paths(examples.lexicon().counts)[1]).sum(1),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_new_heads_know_nothing_yet_in_float32(name, lexicon):
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE), HEADS[name].head)
    params = model.head_params(model.init(jax.random.key(0), lexicon))
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype(jnp.float32)}
    head = HEADS[name].head
    hidden = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, (2, SIZE)), jnp.float32)
    log_probs = np.asarray(head.log_probs(params, head.tables(lexicon), hidden))
    start = UNEVEN.get(name, np.full(13, -np.log(13)))
    assert np.abs(log_probs - start).max() < 0.4


# Heads that need more than a lexicon, or say more than its words: they have tests of their own.
APART = {"CharLSTM", "WithCache", "WithExpert", "SpreadUnknown"}


def test_every_head_is_on_trial():
    exported = {
        name
        for name in heads.__all__
        if isinstance(kind := getattr(heads, name), type) and issubclass(kind, Head)
    }
    tried = {type(case.head).__name__ for case in HEADS.values()}
    assert tried | APART | {"Head"} == exported
