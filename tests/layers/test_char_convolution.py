"""The convolution over letters against its formula, a loop a sum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from tests.marks import slow
from zoo.errors import UserError
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon
from zoo.lexicon.spelling import Spelling

WORDS = (
    "</s>",
    "a",
    "ab",
    "",
    "abcdefghijklmnop",
    "abd",
    "\u017elu\u0165ou\u010dk\u00fd",
    "x" * 70,
)
LEXICON = Lexicon(words=WORDS, counts=np.ones(len(WORDS), np.int64), boundary="</s>")
SIZE = 5

NETWORKS = {
    "labeau": Convolution(Spelling(longest=12), letter_size=3, widths=(3,)),
    "full padding": Convolution(Spelling(padding="full", longest=4), letter_size=3, widths=(3,)),
    "fixed padding": Convolution(
        Spelling(padding="fixed", longest=4),
        letter_size=3,
        widths=(3, 2),
        filters=(3, 4),
        pooling="max",
    ),
    "characters": Convolution(Spelling(unit="characters", longest=12), letter_size=3, widths=(2,)),
    "kim": Convolution(
        Spelling(longest=6),
        letter_size=3,
        widths=(1, 4),
        filters=(2, 4),
        pooling="max",
        activation="tanh",
        highway=2,
    ),
}


@pytest.fixture(params=[*slow("labeau", "characters"), "full padding", "kim"])
def network(request):
    return NETWORKS[request.param]


def problem(network, random):
    return network.tables(LEXICON), examples.random_params(network, random, SIZE, LEXICON)


@pytest.mark.usefixtures("float64")
def test_vectors_and_gradients_are_those_of_the_formula(network, random):
    tables, params = problem(network, random)
    words = jnp.asarray([[2, 0, 2], [7, 6, 3]])
    cotangent = random.normal(size=(2, 3, SIZE))

    @jax.jit
    def apply(params):
        vectors, transposed = jax.vjp(lambda p: network.distinct_vectors(p, tables, words), params)
        return vectors, transposed(jnp.asarray(cotangent))[0]

    vectors, gradients = apply(params)
    expected = references.convolution(network, params, tables, np.ravel(words))
    np.testing.assert_allclose(vectors, expected.reshape(2, 3, SIZE), rtol=1e-10, atol=1e-12)

    # By differences in one letter, by the plain network in all of them.
    letter = int(tables["letters"][2, tables["lengths"][2] // 2])

    def objective(arrays):
        changed_params = {**params, "letters": np.array(params["letters"])}
        changed_params["letters"][letter] = arrays["letter"]
        vectors = references.convolution(network, changed_params, tables, np.ravel(words))
        return np.sum(vectors * cotangent.reshape(-1, SIZE))

    expected = references.finite_differences(objective, {"letter": params["letters"][letter]})
    np.testing.assert_allclose(
        gradients["letters"][letter], expected["letter"], rtol=1e-5, atol=1e-7
    )

    @jax.jit
    def plain(params):
        letters, lengths = (tables[name][words.ravel()] for name in ("letters", "lengths"))
        return jnp.sum(network.apply(params, letters, lengths) * cotangent.reshape(-1, SIZE))

    expected_gradients = jax.grad(plain)(params)
    for actual_leaf, expected_leaf in zip(
        jax.tree.leaves(gradients), jax.tree.leaves(expected_gradients), strict=True
    ):
        np.testing.assert_allclose(actual_leaf, expected_leaf, rtol=1e-9, atol=1e-12)


def test_vectors_do_not_depend_on_the_lexicon(network, random):
    tables, params = problem(network, random)
    words = ("zlom", "ab", "\u017elu\u0165ou\u010dk\u00fd", "abd")
    spelled_lexicon = Lexicon(words=words, counts=np.zeros(4, np.int64), alphabet=LEXICON.letters)
    vectors = jax.jit(network.vectors)
    actual = vectors(params, network.tables(spelled_lexicon), jnp.arange(4))
    trained = vectors(params, tables, jnp.asarray([2, 6, 5]))
    np.testing.assert_allclose(actual[1:], trained, rtol=1e-4, atol=1e-5)
    assert np.isfinite(actual[0]).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pooling": "sum"}, "pooling of Convolution is 'sum': give one of"),
        ({"activation": "gelu"}, "activation of Convolution is 'gelu': give one of"),
        ({"widths": (0,)}, "widths of Convolution are .* all should be 1 or more"),
        ({"widths": (2, 3)}, "a number for each of the widths"),
        ({"widths": (2, 3), "filters": (4,)}, "a number for each of the widths"),
        ({"letter_size": 0}, "letter_size of Convolution is 0: give at least 1"),
    ],
    ids=str,
)
def test_wrong_recipes_are_refused(fields, message):
    with pytest.raises(UserError, match=message):
        Convolution(**fields)
