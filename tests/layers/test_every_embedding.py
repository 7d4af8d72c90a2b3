"""What is promised of every embedding, which joins by a line in EMBEDDINGS, and of some."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo.base.arrays.parameter_sharding import FEATURES, HIDDEN
from zoo.base.arrays.parameter_sharding import WORDS as OF_WORDS
from zoo.embeddings import CharCNN, Concat, Embedding, Features, Lookup
from zoo.errors import UserError
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon
from zoo.lexicon.spelling import Spelling

SIZE = 5


NETWORK = Convolution(Spelling(unit="characters"), letter_size=2, widths=(3,))


def lookup_reference(params, words):
    return np.array([params["table"][word] for word in words])


def features_reference(params, words):
    matrix = references.feature_matrix(examples.FEATURES, examples.lexicon().feature_names)
    return references.feature_sums(matrix, params["table"])[words]


def char_cnn_reference(params, words):
    return references.convolution(NETWORK, params, NETWORK.tables(examples.lexicon()), words)


def concat_reference(params, words):
    parts = lookup_reference(params["0"], words), features_reference(params["1"], words)
    return np.concatenate(parts, axis=1)


@dataclasses.dataclass(frozen=True)
class EmbeddingCase:
    """An embedding, and its vectors [N, E] by numpy, of its params and words [N]."""

    embedding: Embedding
    vectors: Callable


EMBEDDINGS = {
    "lookup": EmbeddingCase(Lookup(SIZE), lookup_reference),
    "features": EmbeddingCase(Features(SIZE), features_reference),
    "letters": EmbeddingCase(CharCNN(SIZE, NETWORK), char_cnn_reference),
    "words and features": EmbeddingCase(Concat((Lookup(3), Features(2))), concat_reference),
}


@pytest.fixture(params=EMBEDDINGS.values(), ids=EMBEDDINGS.keys())
def embedding_case(request):
    return request.param


WORDS = np.array([[0, 2, 2], [12, 9, 5]])


@pytest.mark.usefixtures("float64")
def test_vectors_and_gradients_of_an_embedding(embedding_case, lexicon, random):
    embedding = embedding_case.embedding
    tables = embedding.tables(lexicon)
    params = examples.random_params(embedding, random, lexicon)
    cotangent = random.normal(size=(2, 3, SIZE))

    @jax.jit
    def apply(params):
        vectors, transposed = jax.vjp(lambda p: embedding.apply(p, tables, WORDS), params)
        return vectors, transposed(jnp.asarray(cotangent))[0]

    vectors, gradients = apply(params)
    expected = embedding_case.vectors(params, WORDS.ravel())
    np.testing.assert_allclose(vectors, expected.reshape(2, 3, SIZE), rtol=1e-10, atol=1e-12)

    assert embedding.size == SIZE

    leaves, structure = jax.tree.flatten(params)

    def objective(arrays):
        changed_params = jax.tree.unflatten(structure, arrays.values())
        return np.sum(
            embedding_case.vectors(changed_params, WORDS.ravel()) * cotangent.reshape(-1, SIZE)
        )

    expected = references.finite_differences(objective, dict(enumerate(leaves)))
    for place, gradient in enumerate(jax.tree.leaves(gradients)):
        np.testing.assert_allclose(gradient, expected[place], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("embedding", [Lookup(SIZE), Features(SIZE)], ids=["lookup", "features"])
def test_new_embeddings(embedding, lexicon):
    table = embedding.init(jax.random.key(0), lexicon)["table"]
    assert table.dtype == jnp.float32
    assert 0.04 < np.abs(table).max() <= 0.05
    smaller = dataclasses.replace(embedding, initial_scale=0.01)
    assert np.abs(smaller.init(jax.random.key(0), lexicon)["table"]).max() <= 0.01


@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0)])
def test_no_words_have_no_vectors(embedding_case, lexicon, random, shape):
    embedding = embedding_case.embedding
    params, tables = examples.random_params(embedding, random, lexicon), embedding.tables(lexicon)
    words = jnp.zeros(shape, jnp.int32)

    @jax.jit
    def apply(params):
        vectors, back = jax.vjp(lambda params: embedding.apply(params, tables, words), params)
        return vectors, back(vectors)[0]

    vectors, gradients = apply(params)
    assert (vectors.shape, vectors.dtype) == ((*shape, SIZE), jnp.float32)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(gradients))


def test_sizes_that_a_recipe_need_not_say():
    assert (Lookup().size, Features().size, CharCNN().size) == (256, 256, 128)


def test_words_outside_a_table_are_refused(lexicon):
    embedding = Lookup(4)
    params, tables = embedding.init(jax.random.key(0), lexicon), embedding.tables(lexicon)
    for word in (len(lexicon), -1):
        with pytest.raises(ValueError, match=f"words has {word} at "):
            embedding.apply(params, tables, jnp.array([0, word]))


# ---- what is particular to embeddings of features, and to several side by side


def test_the_features_of_the_input_may_be_chosen(lexicon):
    embedding = Features(5, kinds=("length",))
    params = embedding.init(jax.random.key(0), lexicon)
    vectors = jax.jit(embedding.apply)(params, embedding.tables(lexicon), jnp.arange(13))
    lengths = [features.get("length", 0) for features in examples.FEATURES]
    np.testing.assert_allclose(vectors, np.outer(lengths, params["table"][0]), rtol=1e-6)


def test_a_lexicon_without_features_is_an_error():
    with pytest.raises(UserError, match=r"embeddings\.Features needs words with features"):
        Features(5).init(jax.random.key(0), examples.plain_lexicon())


NOTED = Lexicon(("a", "abc", "abcd"), np.ones(3, np.int64))


def letters(longest):
    return CharCNN(size=2, network=Convolution(Spelling(longest=longest), widths=(2,)))


def test_notes_of_one_part_are_as_they_are():
    assert Concat((Lookup(2), letters(3))).warnings(NOTED) == {"words cut by the embedding": 1}
    assert Concat((Lookup(2),)).warnings(NOTED) == {}


def test_notes_of_several_parts_do_not_hide_each_other():
    assert Concat((letters(2), Lookup(2), letters(9))).warnings(NOTED) == {
        "words cut by the embedding, part 0": 2,
        "words cut by the embedding, part 2": 0,
    }


def test_axes_are_named_by_the_part_that_has_them():
    assert Concat((Lookup(2), letters(3), Features(size=2))).parameter_axes == {
        "0/table": (OF_WORDS, HIDDEN),
        "2/table": (FEATURES, HIDDEN),
    }
