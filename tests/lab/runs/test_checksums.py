"""Checksums of arrays: by a loop over bits, wherever the arrays lie, and changed by every bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from zoo.lab.runs import checksums

MASK = 2**32 - 1


def mixed(x):
    x = (x ^ (x >> 16)) * 0x85EBCA6B & MASK
    x = (x ^ (x >> 13)) * 0xC2B2AE35 & MASK
    return x ^ (x >> 16)


def by_loop(array):
    """The two sums of an array, element by element."""
    size = min(array.itemsize, 4)
    words = np.ascontiguousarray(array).reshape(-1).view(f"uint{8 * size}")
    return [
        sum(mixed(int(word) ^ mixed(i ^ seed)) for i, word in enumerate(words)) & MASK
        for seed in (0x9E3779B9, 0x85EBCA77)
    ]


@pytest.mark.parametrize(
    "array",
    [
        np.linspace(-3, 5, 35, dtype=np.float32).reshape(5, 7),
        np.arange(13, dtype=np.int32),
        np.float32(2.5),
        np.array([True, False, True]),
        np.linspace(-3, 5, 6).astype(jnp.bfloat16).reshape(2, 1, 3),
        np.linspace(-3, 5, 7),
        np.int64(2**40 + 3),
        np.arange(5, dtype=np.uint8),
    ],
    ids=lambda array: f"{array.dtype}{[*array.shape]}",
)
def test_a_checksum_is_a_sum_over_elements(array):
    (checksum,) = checksums.checksums([array]).values()
    first, second = by_loop(array)
    assert checksum == f"{checksums.layout(array)} {first:08x}{second:08x}"


def test_small_and_large_arrays_have_one_kind_of_checksum(monkeypatch, random):
    arrays = {
        "a": random.normal(size=(5, 7)).astype(np.float32),
        "b": np.array([True, False, True]),
        "c": random.normal(size=6).astype(jnp.bfloat16),
        "d": random.normal(size=5),
        "e": np.int32(-3),
    }
    small = checksums.checksums(arrays)
    monkeypatch.setattr(checksums, "_SMALL", 0)
    assert checksums.checksums(arrays) == small


def test_an_empty_array_has_a_checksum():
    assert checksums.checksums({"a": np.zeros((0, 3), np.float32)}) == {
        "a": f"float32[0, 3] {'0' * 16}"
    }


@pytest.mark.parametrize(
    "spec", [(None, None), ("a", None), (None, "b"), ("a", "b"), (("a", "b"),)]
)
def test_the_layout_over_devices_does_not_matter(spec, random):
    array = random.normal(size=(8, 6)).astype(np.float32)
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    shared = jax.device_put(array, NamedSharding(mesh, PartitionSpec(*spec)))
    assert checksums.checksums(shared) == checksums.checksums(array)


def test_every_bit_changes_a_checksum(random):
    array = random.normal(size=(3, 5)).astype(np.float32)
    checksum_set = {checksums.checksums(array)[""]}
    for bit in range(32 * array.size):
        flipped = array.copy()
        flipped.reshape(-1).view(np.uint32)[bit // 32] ^= np.uint32(1 << bit % 32)
        checksum_set.add(checksums.checksums(flipped)[""])
    assert len(checksum_set) == 1 + 32 * array.size


def test_the_order_of_elements_and_the_shape_change_a_checksum():
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    variants = array[::-1], array[:, ::-1], array.T, array.reshape(3, 2), array.reshape(6)
    checksum_set = {
        checksums.checksums(np.ascontiguousarray(variant))[""] for variant in (array, *variants)
    }
    assert len(checksum_set) == 6
