"""What is particular to embeddings of features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo.embeddings import Features
from zoo.errors import UserError


def test_words_with_the_same_features_have_the_same_vector(lexicon):
    embedding = Features(5)
    tables = embedding.tables(lexicon)
    params = embedding.init(jax.random.key(0), lexicon)
    vectors = jax.jit(embedding.apply)(params, tables, jnp.arange(13))
    np.testing.assert_array_equal(vectors[3], vectors[4])
    np.testing.assert_array_equal(vectors[5], vectors[6])
    assert np.abs(vectors[3] - vectors[5]).max() > 1e-3
    # A word without features has nothing to be known by.
    np.testing.assert_array_equal(vectors[0], 0)


def test_the_features_of_the_input_may_be_chosen(lexicon):
    embedding = Features(5, kinds=("length",))
    params = embedding.init(jax.random.key(0), lexicon)
    vectors = jax.jit(embedding.apply)(params, embedding.tables(lexicon), jnp.arange(13))
    lengths = [features.get("length", 0) for features in examples.FEATURES]
    np.testing.assert_allclose(vectors, np.outer(lengths, params["table"][0]), rtol=1e-6)


def test_a_lexicon_without_features_is_an_error():
    with pytest.raises(UserError, match=r"embeddings\.Features needs words with features"):
        Features(5).init(jax.random.key(0), examples.plain_lexicon())
