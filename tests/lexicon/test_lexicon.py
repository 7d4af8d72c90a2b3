"""The lexicon: grouping by features, tables, sums of feature vectors, storage, other words."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo.errors import UserError
from zoo.lexicon import Lexicon, feature_signatures, with_features
from zoo.lexicon.feature_signatures import Form, sum_features
from zoo.lexicon.lexicon import NoUnknownWord, shares

ONLY_SHARED = [{"a": 1.0}, {"a": 1.0, "b": 2.0}, {"b": 0.5}, {"a": 1.0}]
ONLY_PRIVATE = [{f"word {place}": 1.0 + place, "own": 0.0} for place in range(3)]
FEATURE_SETS = {
    "overlapping": list(examples.FEATURES),
    "only shared": ONLY_SHARED,
    "only private": [{"x": 1.0}, {"y": 2.0, "z": -1.0}, {}],
    "one signature": [{"x": 1.0}, {"x": 1.0}],
    "zeros": ONLY_PRIVATE,
}


def test_words_with_the_same_features_and_values_are_one_signature(lexicon):
    signatures, members = lexicon.signatures
    expected, features = references.signatures(examples.FEATURES)
    assert signatures.tolist() == expected
    # Of thirteen words, three pairs have the same features.
    assert len(members) == len(features) == 10
    for (ids, values), expected_features in zip(members, features, strict=True):
        member_features = {lexicon.feature_names[f]: v for f, v in zip(ids, values, strict=True)}
        assert member_features == {
            name: np.float32(value) for name, value in expected_features.items()
        }


def test_a_feature_of_value_0_distinguishes_words():
    lexicon = with_features(examples.plain_lexicon(3), [{"a": 0.0, "b": 1.0}, {"b": 1.0}, {}])
    assert lexicon.signatures[0].tolist() == [0, 1, 2]


def test_the_features_of_a_word(lexicon):
    for word, features in enumerate(examples.FEATURES):
        assert lexicon.features_of(word) == {f: np.float32(v) for f, v in features.items()}
    assert examples.plain_lexicon().features_of(3) == {}


def test_features_of_some_kinds():
    features = [{"Word:a": 1.0, "POS:X": 2.0}, {"POS:Y": 3.0}, {"Word:c": 4.0, "Own": 5.0}, {}]
    lexicon = with_features(examples.plain_lexicon(4), features)
    chosen = lexicon.with_kinds(("POS", "Own"))
    assert chosen.feature_names == ("Own", "POS:X", "POS:Y")
    word_features = [chosen.features_of(word) for word in range(4)]
    assert word_features == [{"POS:X": 2}, {"POS:Y": 3}, {"Own": 5}, {}]
    assert chosen.feature_values.tolist() == [2, 3, 5]
    assert lexicon.with_kinds(()) is lexicon
    with pytest.raises(UserError, match="kind 'Pos': the lexicon has the kinds Own, POS, Word"):
        lexicon.with_kinds(("Pos",))


def test_tables_by_hand():
    features = [{"tag": 1.0}, {"tag": 1.0, "own": 2.0}, {"tag": 1.0}]
    background = np.log([0.5, 0.3, 0.2])
    tables = feature_signatures.tables(
        with_features(examples.plain_lexicon(3), features, background)
    )
    assert tables["signature"].tolist() == [0, 1, 0]
    np.testing.assert_allclose(tables["log_mass"], np.log([0.7, 0.3]), rtol=1e-6)
    np.testing.assert_allclose(
        tables["log_within"], np.log([5 / 7, 1, 2 / 7]), rtol=1e-6, atol=1e-7
    )


def test_masses_below_any_float_and_of_no_words():
    background = np.array([-1.0, -800.0, -np.inf, -801.0, -np.inf])
    features = [{"a": 1.0}, {"b": 1.0}, {}, {"b": 1.0}, {}]
    tables = with_features(examples.plain_lexicon(5), features, background).tables()
    log_mass = -800 + np.log1p(np.exp(-1))
    np.testing.assert_allclose(tables["log_mass"], [-1, log_mass, -np.inf], rtol=1e-6)
    within = [0, -800 - log_mass, -np.inf, -801 - log_mass, -np.inf]
    np.testing.assert_allclose(tables["log_within"], within, rtol=1e-6, atol=1e-6)


@functools.cache
def compiled_sum():
    """Jitted: the sums, and what their cotangent becomes."""

    def forward_and_backward(vectors, tables, cotangent):
        sums, transposed = jax.vjp(lambda vectors: sum_features(tables, vectors), vectors)
        return sums, transposed(cotangent)[0]

    return jax.jit(forward_and_backward)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("name", FEATURE_SETS)
def test_sums_of_feature_vectors_and_their_gradient(random, name, form):
    features = FEATURE_SETS[name]
    lexicon = with_features(examples.plain_lexicon(len(features)), features)
    _, members = references.signatures(features)
    matrix = references.feature_matrix(members, lexicon.feature_names)
    vectors = random.normal(size=(len(lexicon.feature_names), 3))
    cotangent = random.normal(size=(len(members), 3))
    tables = lexicon.tables(form)
    sums, gradient = compiled_sum()(jnp.asarray(vectors), tables, jnp.asarray(cotangent))
    np.testing.assert_allclose(
        sums, references.feature_sums(matrix, vectors), rtol=1e-12, atol=1e-12
    )
    # The transpose of a product with a matrix is the product with its transpose.
    np.testing.assert_allclose(
        gradient, references.feature_sums(matrix.T, cotangent), rtol=1e-12, atol=1e-12
    )


def test_sums_of_narrow_vectors_are_float32(lexicon):
    shape = (len(lexicon.feature_names), 3)
    vectors = jax.ShapeDtypeStruct(shape, jnp.bfloat16)
    assert jax.eval_shape(sum_features, lexicon.tables(), vectors).dtype == jnp.float32


# ---------------------------------------------------------------- storage

FULL = dataclasses.replace(
    examples.lexicon(),
    words=("é", "“", *examples.lexicon().words[2:]),
    unknown="é",
    boundary="“",
    background_tables={"states": np.arange(5, dtype=np.int32)},
    left_out={"naïf": 2},
    fused={"du": ("de", "le")},
)


@pytest.mark.parametrize("original", [FULL, examples.plain_lexicon()], ids=["full", "plain"])
def test_what_is_saved_is_loaded(tmp_path, original):
    original.save(tmp_path / "lexicon.npz")
    loaded = Lexicon.load(tmp_path / "lexicon.npz")
    for field in dataclasses.fields(Lexicon):
        value, expected = getattr(loaded, field.name), getattr(original, field.name)
        assert type(value) is type(expected)
        if isinstance(expected, np.ndarray):
            assert value.dtype == expected.dtype
            np.testing.assert_array_equal(value, expected)
        elif field.name == "background_tables":
            assert {name: array.dtype for name, array in value.items()} == {
                name: array.dtype for name, array in expected.items()
            }
            for name, array in expected.items():
                np.testing.assert_array_equal(value[name], array)
        else:
            assert value == expected
    assert loaded.digest() == original.digest()
    assert loaded.words_digest() == original.words_digest()


CHANGES = {
    "words": lambda words: (*words[:-1], "another"),
    "counts": lambda counts: counts + (np.arange(13) == 5),
    "feature_names": lambda names: ("another", *names[1:]),
    "feature_offsets": lambda offsets: offsets + (np.arange(14) == 1),
    "feature_ids": lambda ids: ids - (np.arange(len(ids)) == 0).astype(np.int32),
    "feature_values": lambda values: values * np.float32(1.001),
    "log_background": lambda log_background: log_background - 1e-12,
    "unknown": lambda _: None,
    "boundary": lambda _: "word 3",
    "background_tables": lambda tables: {"states": tables["states"] + 1},
    "alphabet": lambda _: ("a", "z"),
    "left_out": lambda _: {},
    "fused": lambda _: {},
}


def test_every_field_can_be_changed():
    assert list(CHANGES) == [field.name for field in dataclasses.fields(Lexicon)]


@pytest.mark.parametrize("field", CHANGES)
def test_the_digest_changes_with_all_that_a_model_depends_on(field):
    variant = dataclasses.replace(FULL, **{field: CHANGES[field](getattr(FULL, field))})
    # No model depends on the words that were left out, nor on what stood in their place.
    assert (variant.digest() != FULL.digest()) == (field not in ("left_out", "fused"))
    assert (variant.words_digest() != FULL.words_digest()) == (field == "words")
    is_word_field = field in ("words", "unknown", "boundary")
    assert (variant.words_set_digest() != FULL.words_set_digest()) == is_word_field


def test_the_digest_knows_none_from_something():
    assert dataclasses.replace(FULL, log_background=None).digest() != FULL.digest()
    swapped = dataclasses.replace(FULL, unknown=FULL.boundary, boundary=FULL.unknown)
    assert swapped.digest() != FULL.digest()


def test_occurrences_of_words_in_the_lexicon_and_left_out():
    occurrences = FULL.occurrences(("naïf", "word 3", "never"))
    np.testing.assert_array_equal(occurrences, [2, FULL.counts[3], 0])


def test_a_lexicon_of_some_words_knows_of_them_what_it_knew():
    full = examples.lexicon()
    words = ("word 9", "word 0", "word 2")
    selected = full.select_words(words)
    assert selected.words == words
    for place, word in enumerate(words):
        word_id = full.ids[word]
        assert selected.counts[place] == full.counts[word_id]
        assert selected.log_background[place] == full.log_background[word_id]
        expected = {name: np.float32(value) for name, value in examples.FEATURES[word_id].items()}
        assert selected.features_of(place) == full.features_of(word_id) == expected
    marked = dataclasses.replace(full, unknown="word 9", boundary="word 1").select_words(words)
    assert (marked.unknown, marked.boundary) == ("word 9", None)
    full.check_same_features(selected)
    with pytest.raises(UserError, match="do not have the features of training"):
        full.check_same_features(full.with_kinds(("tag a", "length")))


TRAINED, NEW_LEXICON = examples.trained_and_other()


def test_marks_stand_for_marks_and_new_words_for_the_unknown_one():
    new_shares = shares(TRAINED, NEW_LEXICON)
    assert new_shares.word_ids.tolist() == [1, 3, 0, 2, 1, 1, 4, 1]
    assert new_shares.shared.tolist() == [True, False, False, False, True, True, False, True]
    evenly = np.where(new_shares.shared, -np.log(4), 0)  # x, y, z and the unknown word itself
    np.testing.assert_allclose(new_shares.log_share, evenly, rtol=1e-6)
    without = dataclasses.replace(TRAINED, unknown=None)
    with pytest.raises(NoUnknownWord, match="x"):
        shares(without, NEW_LEXICON)
    assert shares(without, without).word_ids.tolist() == [0, 1, 2, 3, 4]
