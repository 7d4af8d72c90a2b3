"""Language models against numpy: words -> embedding -> core -> head."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo.base.arrays.random_keys import Keys, fold_in_rows
from zoo.cores import LSTM
from zoo.embeddings import Features, Lookup
from zoo.errors import UserError
from zoo.heads import LogLinear, MixtureOfSoftmaxes, Softmax
from zoo.layers import dropout
from zoo.models import LanguageModel, language_model

SIZE = 4
WORDS = np.array([[1, 12, 0, 3], [5, 5, 2, 9]])
TARGETS = np.array([[12, 0, 3, 4], [5, 2, 9, 11]])
RESET = np.array([[False, False, True, False], [True, False, False, False]])


def phi():
    return references.feature_matrix(examples.FEATURES, examples.lexicon().feature_names)


def embed(embedding, params, words):
    table = np.asarray(params["embedding"]["table"])
    if isinstance(embedding, Features):
        table = references.feature_sums(phi(), table)
    return table[words]


def log_probs(head, params, hidden):
    weights = params["embedding"]["table"] if head.tied else params["head"]["weights"]
    if isinstance(head, LogLinear):
        weights, bias = np.asarray(weights), np.asarray(params["head"]["bias"])
        adaptors = [weights @ h + bias for h in hidden]
        return references.log_linear_log_probs(adaptors, phi(), examples.log_background())
    return references.softmax_log_probs(hidden, weights, params["head"]["bias"])


MODELS = {
    "softmax": LanguageModel(Lookup(3), LSTM(SIZE, layers=2), Softmax()),
    "tied softmax": LanguageModel(Lookup(SIZE), LSTM(SIZE), Softmax(tied=True)),
    "log-linear": LanguageModel(Features(3), LSTM(SIZE), LogLinear()),
    "tied log-linear": LanguageModel(Features(SIZE), LSTM(SIZE), LogLinear(tied=True)),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", MODELS)
def test_log_prob_and_loss_along_a_sequence(name, lexicon, random):
    model = MODELS[name]
    tables = model.tables(lexicon)
    params = examples.random_params(model, random, lexicon)
    carry = examples.randomised(model.core.initial_carry(2), random)
    token_weights = random.uniform(size=(2, 4))

    @jax.jit
    def evaluate(params, carry):
        arguments = params, tables, jnp.asarray(WORDS), jnp.asarray(TARGETS)
        log_prob, end = model.log_prob(*arguments, carry, reset=RESET)
        loss, _, loss_end = model.weighted_loss(*arguments, token_weights, carry, reset=RESET)
        return log_prob, loss, end, loss_end

    log_prob, loss, end, loss_end = evaluate(params, carry)
    inputs = embed(model.embedding, params, WORDS)
    hidden, expected_end = references.lstm(inputs, params["core"], carry, RESET)
    for row in range(2):
        expected = log_probs(model.head, params, hidden[row])[np.arange(4), TARGETS[row]]
        np.testing.assert_allclose(log_prob[row], expected, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(loss, -np.sum(token_weights * log_prob), rtol=1e-10)
    for carry_leaves in (end, loss_end):
        for leaf, expected_leaf in zip(
            jax.tree.leaves(carry_leaves), jax.tree.leaves(expected_end), strict=True
        ):
            np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-9)


def test_a_tied_table_learns_from_both_ends(lexicon):
    model = MODELS["tied softmax"]
    params = jax.jit(lambda key: model.init(key, lexicon))(jax.random.key(0))
    assert set(params["head"]) == {"bias"}

    @jax.jit
    def gradient(params):
        def loss(params):
            # One word in, another out: of the last, only the output's weights are touched.
            words, targets = jnp.asarray([[1]]), jnp.asarray([[2]])
            carry = model.core.initial_carry(1)
            return model.weighted_loss(
                params, examples.NO_TABLES, words, targets, jnp.ones((1, 1)), carry
            )[0]

        return jax.grad(loss)(params)["embedding"]["table"]

    table_gradient = np.asarray(gradient(params))
    hidden, _ = references.lstm(
        [[params["embedding"]["table"][1]]],
        params["core"],
        model.core.initial_carry(1),
    )
    weights, bias = params["embedding"]["table"], params["head"]["bias"]
    _, expected, _ = references.softmax_gradients(hidden[0], weights, bias, [2], [1], [0])
    np.testing.assert_allclose(table_gradient[2:], expected[2:], rtol=1e-4, atol=1e-8)
    # The first word's row has the input's gradient as well.
    assert np.abs(table_gradient[1] - expected[1]).max() > 1e-4


TIED = Softmax(tied=True)
# {case: (embedding, core, head, the size that the embedding needs, what helps besides)}
UNLIKE = {
    "narrow": (Lookup(3), LSTM(SIZE), TIED, 4, ", a core with model.core.last_size=3"),
    "features for words": (Features(SIZE), LSTM(SIZE), TIED, 4, ""),
    "words for features": (Lookup(SIZE), LSTM(SIZE), LogLinear(tied=True), 4, ""),
    "a mixture": (
        Lookup(3),
        LSTM(SIZE),
        MixtureOfSoftmaxes(size=6, tied=True),
        6,
        ", a head with model.head.size=3",
    ),
    "all layers": (Lookup(3), LSTM(SIZE, layers=2, last_size=3, skip=True), TIED, 7, ""),
    "a projection": (Lookup(3), LSTM(9, projection=5), TIED, 5, ""),
}


@pytest.mark.parametrize(
    ("embedding", "core", "head", "size", "alternative"), UNLIKE.values(), ids=UNLIKE
)
def test_a_tied_head_needs_a_table_of_its_shape(embedding, core, head, size, alternative, lexicon):
    model = LanguageModel(embedding, core, head)
    message = rf"model\.embedding\.size={size}{alternative}, or set model\.head"
    with pytest.raises(UserError, match=message):
        model.init(jax.random.key(0), lexicon)


class Doubled(Lookup):
    """Vectors of twice the size that the embedding states."""

    def apply(self, params, tables, words):
        return jnp.repeat(super().apply(params, tables, words), 2, axis=-1)


class Halved(LSTM):
    """Hidden states of fewer numbers than the core states."""

    def _apply(self, *arguments):
        hidden, carry = super()._apply(*arguments)
        return hidden[..., :3], carry


@pytest.mark.parametrize(
    ("embedding", "core", "message"),
    [
        (
            Doubled(5),
            LSTM(SIZE),
            r"Doubled\.apply returns vectors .*\(2, 4, 10\): return \(2, 4, 5\)",
        ),
        (Lookup(5), Halved(SIZE), r"Halved\._apply returns .*\(2, 4, 3\): return \(2, 4, 4\)"),
    ],
)
def test_sizes_of_components_are_as_stated(embedding, core, message, lexicon):
    model = LanguageModel(embedding, core, Softmax())
    params, tables = model.init(jax.random.key(0), lexicon), model.tables(lexicon)
    with pytest.raises(UserError, match=message):
        model.log_prob(params, tables, WORDS, TARGETS, model.initial_carry(2))


def test_components_get_keys_of_their_own(lexicon):
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE), Softmax())
    params = jax.jit(lambda key: model.init(key, lexicon))(jax.random.key(0))
    difference = np.abs(params["embedding"]["table"] - params["head"]["weights"])
    assert difference.max() > 0.01


def test_a_tied_head_needs_the_features_of_its_table(lexicon):
    features = Features(SIZE, kinds=("length",))
    key = jax.random.key(0)
    LanguageModel(features, LSTM(SIZE), LogLinear(tied=True, kinds=("length",))).init(key, lexicon)
    for kinds, kind_names in (((), "of all kinds"), (("twins",), "twins")):
        model = LanguageModel(features, LSTM(SIZE), LogLinear(tied=True, kinds=kinds))
        with pytest.raises(
            UserError, match=f"whose features are length, and the head's are {kind_names}:"
        ):
            model.init(key, lexicon)


LAST = 5
REGULARISED = LanguageModel(
    Lookup(3),
    LSTM(
        SIZE,
        layers=2,
        last_size=LAST,
        input_dropout=0.2,
        dropout=0.25,
        last_dropout=0.0,
        recurrent_dropout=0.4,
        variational=True,
    ),
    Softmax(),
    word_dropout=0.4,
    output_dropout=0.3,
    activation_penalty=2.0,
    temporal_penalty=0.5,
)


def regularised_loss(model, params, lexicon, carry, token_weights, key):
    arguments = jnp.asarray(WORDS), jnp.asarray(TARGETS), jnp.asarray(token_weights)
    loss = jax.jit(functools.partial(model.weighted_loss, reset=RESET))
    return loss(params, model.tables(lexicon), *arguments, carry, key=key)


@pytest.mark.usefixtures("float64")
def test_regularised_losses_by_a_loop_over_the_same_masks(lexicon, random):
    model = REGULARISED
    params = examples.random_params(model, random, lexicon)
    carry = examples.randomised(model.core.initial_carry(2), random)
    token_weights = random.uniform(size=(2, 4))
    keys = Keys.from_key(jax.random.key(8), 2)
    loss, penalty, end = regularised_loss(model, params, lexicon, carry, token_weights, keys)

    # The masks: what dropout does to ones.
    word_key = jax.random.fold_in(keys.batch, language_model._WORDS)
    inputs = jnp.ones((2, 4, 1))
    drop_words = jax.jit(dropout.drop_words, static_argnums=2)
    words = np.asarray(drop_words(inputs, jnp.asarray(WORDS), 0.4, word_key))

    def row_mask(use, size, rate):
        def draw(rows):
            return dropout.masks(fold_in_rows(rows, use), (size,), rate, jnp.float64)

        return np.asarray(jax.jit(draw)(keys.rows))

    outputs = row_mask(language_model._OUTPUTS, LAST, 0.3)
    assert 0 < (words == 0).sum() < 8 and 0 < (outputs == 0).sum() < 10

    hidden = params["embedding"]["table"][WORDS] * words * row_mask(0, 3, 0.2)[:, None]
    expected_end = []
    for layer, weights in enumerate(params["core"]):
        masked = dict(weights)
        weight_key = jax.random.fold_in(keys.batch, 0x75736561 + layer)

        @jax.jit
        def drop(recurrent, weight_key):
            return dropout.drop_weights(recurrent, dropout.weight_mask(recurrent, 0.4, weight_key))

        masked["recurrent"] = drop(weights["recurrent"], weight_key)
        assert 0.2 < (masked["recurrent"] == 0).mean() < 0.6
        if layer:
            hidden = hidden * row_mask(1, SIZE, 0.25)[:, None]
        hidden, end_of_layer = references.lstm(hidden, (masked,), (carry[layer],), RESET)
        expected_end += end_of_layer
    total = state_penalty = 0.0
    for row in range(2):
        head_inputs = hidden[row] * outputs[row]
        log_p = log_probs(model.head, params, head_inputs)
        for position in range(4):
            weight, h = token_weights[row, position], hidden[row, position]
            total -= weight * log_p[position, TARGETS[row, position]]
            state_penalty += weight * 2.0 * (head_inputs[position] ** 2).mean()
            if position and not RESET[row, position]:
                state_penalty += weight * 0.5 * ((h - hidden[row, position - 1]) ** 2).mean()
    np.testing.assert_allclose(penalty, state_penalty, rtol=1e-12)
    np.testing.assert_allclose(loss, total + state_penalty, rtol=1e-12)
    for leaf, expected_leaf in zip(
        jax.tree.leaves(end), jax.tree.leaves(expected_end), strict=True
    ):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-12)


def test_penalties_stand_without_dropout_and_scores_have_neither(lexicon, random):
    model = REGULARISED
    params = examples.random_params(model, random, lexicon)
    plain = dataclasses.replace(model, activation_penalty=0.0, temporal_penalty=0.0)
    carry, weights = model.core.initial_carry(2), np.ones((2, 4))
    loss, penalty, _ = regularised_loss(model, params, lexicon, carry, weights, None)
    without, none, _ = regularised_loss(plain, params, lexicon, carry, weights, None)
    assert penalty > 0 and none == 0
    np.testing.assert_allclose(loss - penalty, without, rtol=1e-5)
    arguments = model.tables(lexicon), jnp.asarray(WORDS), jnp.asarray(TARGETS), carry
    scores, _ = jax.jit(functools.partial(model.log_prob, reset=RESET))(params, *arguments)
    np.testing.assert_allclose(-scores.sum(), without, rtol=1e-5)


def test_rates_and_penalties_that_cannot_be_are_refused():
    for name, value in (("word_dropout", 1.0), ("output_dropout", -0.5)):
        with pytest.raises(UserError, match=f"{name} of LanguageModel is {value}"):
            LanguageModel(**{name: value})
    with pytest.raises(UserError, match="temporal_penalty"):
        LanguageModel(temporal_penalty=-1.0)
