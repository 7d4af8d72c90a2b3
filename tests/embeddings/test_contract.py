"""What is promised of every embedding. A new one joins by a line in EMBEDDINGS."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo.embeddings import Embedding, Features, Lookup

SIZE = 5


def lookup_reference(table, words):
    return np.array([table[word] for word in words])


def features_reference(table, words):
    matrix = references.feature_matrix(examples.FEATURES, examples.lexicon().feature_names)
    return references.feature_sums(matrix, table)[words]


@dataclasses.dataclass(frozen=True)
class EmbeddingCase:
    """An embedding, and its vectors [N, E] by numpy, of its table and words [N]."""

    embedding: Embedding
    vectors: Callable


EMBEDDINGS = {
    "lookup": EmbeddingCase(Lookup(SIZE), lookup_reference),
    "features": EmbeddingCase(Features(SIZE), features_reference),
}


@pytest.fixture(params=EMBEDDINGS.values(), ids=EMBEDDINGS.keys())
def embedding_case(request):
    return request.param


WORDS = np.array([[0, 2, 2], [12, 9, 5]])


@pytest.mark.usefixtures("float64")
def test_vectors_and_gradients_of_an_embedding(embedding_case, lexicon, random):
    embedding = embedding_case.embedding
    tables = embedding.tables(lexicon)
    params = examples.randomised(embedding.init(jax.random.key(0), lexicon), random)
    cotangent = random.normal(size=(2, 3, SIZE))

    @jax.jit
    def apply(params):
        vectors, transposed = jax.vjp(lambda p: embedding.apply(p, tables, WORDS), params)
        return vectors, transposed(jnp.asarray(cotangent))[0]

    vectors, gradients = apply(params)
    expected = embedding_case.vectors(np.asarray(params["table"]), WORDS.ravel())
    np.testing.assert_allclose(vectors, expected.reshape(2, 3, SIZE), rtol=1e-10, atol=1e-12)

    def objective(arrays):
        return np.sum(
            embedding_case.vectors(arrays["table"], WORDS.ravel()) * cotangent.reshape(-1, SIZE)
        )

    wanted = references.finite_differences(objective, params)
    np.testing.assert_allclose(gradients["table"], wanted["table"], rtol=1e-6, atol=1e-8)


def test_new_embeddings(embedding_case, lexicon):
    embedding = embedding_case.embedding
    table = embedding.init(jax.random.key(0), lexicon)["table"]
    assert table.dtype == jnp.float32
    assert 0.04 < np.abs(table).max() <= 0.05
    smaller = dataclasses.replace(embedding, initial_scale=0.01)
    assert np.abs(smaller.init(jax.random.key(0), lexicon)["table"]).max() <= 0.01
