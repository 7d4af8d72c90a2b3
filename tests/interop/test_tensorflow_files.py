"""TensorFlow's first checkpoints are read without it, and refused where damaged or hostile."""

import base64
import struct

import numpy as np
import pytest

from tests.interop import tensorflow_writer
from tests.interop.tensorflow_writer import block, field, messages, table, tensor
from zoo.errors import UserError
from zoo.interop import tensorflow_files

# Written by TensorFlow 2.21: tf.compat.v1.train.Saver(write_version=SaverDef.V1).
WRITTEN_BY_TENSORFLOW = """
AACUAQqRAQoTCgtnbG9iYWxfc3RlcBIAGAkiAAonCg1sc3RtL2xzdG1fMC9CEgwSAggBEgIIAhICCAEYASIGCgAKAAoACh8K
C3NvZnRtYXgvV18wEggSAggDEgIIBRgBIgQKAAoAChMKC3NvZnRtYXgvV18xEgAYASIAChcKCXNvZnRtYXgvYhIEEgIIAxgB
IgIKABICCAEADxkAZ2xvYmFsX3N0ZXAAAQASFwoLZ2xvYmFsX3N0ZXASABoGUgSmj90GARclbHN0bS9sc3RtXzAvQgABAQOA
f4B/gH8SIwoNbHN0bS9sc3RtXzAvQhIGCgAKAAoAGgoqCAAAAAAAAIA/ARNVc29mdG1heC9XXzAAAQECgH+AfxJTCgtzb2Z0
bWF4L1dfMBIECgAKABo+KjwAAOC/AADAvwAAoL8AAIC/AABAvwAAAL8AAIC+AAAAAAAAgD4AAAA/AABAPwAAgD8AAKA/AADA
PwAA4D8LBBkxAAEAEhcKC3NvZnRtYXgvV18xEgAaBioEAAAAvwkHIWIAAQEBgH8SHwoJc29mdG1heC9iEgIKABoOKgwAAMA/
AAAAwAAAAAAAAAAAAQAAAAA8jFa4AAAAAAEAAAAAwPKhsAABAwEAwAMAAAAAAQAAAAB7JpUCxQMI0gMPAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAFf7gIskdUfb
"""
SAVED = {
    "softmax/W_0": (np.arange(15).reshape(3, 5) - 7) / 4,
    "softmax/W_1": -0.5,
    "softmax/b": [1.5, -2, 0],
    "lstm/lstm_0/B": [[[0], [1]]],
}


def example(random):
    """Tensors in several blocks, with keys that begin alike, and two that are not of float32."""
    arrays = {f"lstm/W_{n}": random.normal(size=(n % 4, 3)).astype("f4") for n in range(20)}
    arrays |= {"scalar": np.float32(1.5), "step": np.int64(-(2**40)), "double": np.array([0.5])}
    return arrays | {"large": random.normal(size=(31, 41, 1)).astype("f4")}


def check(actual, expected):
    expected = {name: x for name, x in expected.items() if np.asarray(x).dtype == "f4"}
    assert actual.keys() == expected.keys()
    for name, array in actual.items():
        assert array.dtype == np.float32
        assert array.shape == np.shape(expected[name])
        np.testing.assert_array_equal(array, expected[name])


def test_a_file_of_tensorflow_is_read(tmp_path):
    (tmp_path / "ckpt").write_bytes(base64.b64decode(WRITTEN_BY_TENSORFLOW))
    expected = {name: np.float32(numbers) for name, numbers in SAVED.items()}
    check(tensorflow_files.read(tmp_path / "ckpt"), expected)


def test_a_file_of_tensorflow_is_as_the_tests_write_it(tmp_path):
    """But for the versions that it tells, and the keys, which its reader does not need."""
    arrays = {name: np.float32(numbers) for name, numbers in SAVED.items()}
    written = base64.b64decode(WRITTEN_BY_TENSORFLOW)
    for name, array in arrays.items():
        assert tensor(name, array) in written


@pytest.mark.parametrize("block_entries", [1, 3, 20, 99])
def test_tensors_are_read(tmp_path, random, block_entries):
    arrays = example(random)
    path = tensorflow_writer.save(tmp_path / "ckpt", arrays, block_entries)
    check(tensorflow_files.read(path), arrays)


def test_numbers_stay_in_the_file_until_they_are_used(tmp_path, random):
    arrays = tensorflow_files.read(tensorflow_writer.save(tmp_path / "ckpt", example(random)))
    assert not any(array.flags.owndata or array.flags.writeable for array in arrays.values())


def test_files_of_a_folder_are_read_together(tmp_path, random):
    arrays = example(random)
    names = sorted(arrays)
    for number in range(3):
        part = {name: arrays[name] for name in names[number::3]}
        tensorflow_writer.save(tmp_path / f"ckpt-part{number}", part)
    (tmp_path / "graph.pbtxt").write_text("node {}")
    check(tensorflow_files.read_folder(tmp_path), arrays)


def test_checksums_are_those_of_rfc_3720():
    for content, crc in {
        bytes(32): 0x8A9136AA,
        b"\xff" * 32: 0x62A8AB43,
        bytes(range(32)): 0x46DD794E,
        b"123456789": 0xE3069283,
    }.items():
        assert tensorflow_files.crc32c(memoryview(content)) == crc


def test_checksums_of_any_length_are_those_of_single_bits(monkeypatch, random):
    monkeypatch.setattr(tensorflow_files, "_PART", 32)
    for length in range(4, 140):
        content = random.bytes(length)
        crc = tensorflow_writer.crc32c(content)
        assert tensorflow_files.crc32c(memoryview(content)) == crc


ARRAYS = {"a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.zeros(5, "f4")}


def changed(name: str, message: bytes) -> bytes:
    """A file with another message in place of one."""
    return table([block({**messages(ARRAYS), name.encode(): message})])


def shaped(*sizes: int) -> bytes:
    """A file whose tensor claims a shape."""
    shape = b"".join(field(2, field(1, size)) for size in sizes)
    tensors = field(1, field(1, b"a") + field(2, shape) + field(3, 1))
    return changed("", field(1, tensors))


def flipped() -> bytes:
    content = bytearray(table([block(messages(ARRAYS))]))
    content[content.index(struct.pack("<f", 5)) + 2] ^= 1
    return content


HOSTILE = {
    "compressed": (lambda: table([block(messages(ARRAYS))], kind=1), "compressed"),
    "with another number": (flipped, "not as it was written"),
    "without its first half": (lambda: table([block(messages(ARRAYS))])[99:], ""),
    "without its last byte": (lambda: table([block(messages(ARRAYS))])[:-1], "does not end"),
    "of the second format": (lambda: b"\x0a\x0f" * 40, "does not end as"),
    "of a terabyte": (lambda: shaped(500_000, 500_000), "size 6 into shape .500000,500000."),
    "of a negative size": (lambda: shaped(-1, -6), ""),
    "without a tensor": (lambda: shaped(7), "size 6 into shape .7,."),
    "without the numbers of a tensor": (
        lambda: table([block({b"": messages(ARRAYS)[b""], b"a": tensor("a", ARRAYS["a"])})]),
        "b",
    ),
    "of a short message": (lambda: changed("x", b"\x12\x7f"), "ends too early"),
    "of a group": (lambda: changed("x", b"\x0b"), ""),
    "of a long number": (lambda: changed("x", b"\xff" * 11), "more than 64 bits"),
    "of the same tensor twice": (
        lambda: changed("x", tensor("a", ARRAYS["a"])),
        "a is in it twice",
    ),
    "of many fields": (lambda: changed("x", b"\x08\x01" * 200_000), "more parts than a model"),
    "of overlapping blocks": (
        lambda: table([block(messages(ARRAYS))], handles=[(0, 20), (10, 20)]),
        "not as it was written",
    ),
    "of a block read again": (
        lambda: table([block({}), block({})], handles=[(0, 8), (0, 8)]),
        "blocks are not one after another",
    ),
    "of a block beyond its end": (
        lambda: table([block(messages(ARRAYS))], handles=[(0, 1 << 60)]),
        "ends too early",
    ),
    "of many restarts": (lambda: table([b"\xff" * 12]), "ends too early"),
    "of a block without a number": (lambda: table([b"\0"]), ""),
    "an LFS pointer": (lambda: b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
    "empty": (lambda: b"", ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(tmp_path, name):
    content, reason = HOSTILE[name]
    path = tmp_path / "ckpt-hostile"
    path.write_bytes(content())
    with pytest.raises(UserError, match=f"ckpt-hostile cannot be read .*{reason}.*TensorFlow"):
        tensorflow_files.read(path)


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 10))]
)
def test_random_edits_are_refused_or_harmless(tmp_path, random, seed):
    """Thirty edits of a file: bytes changed, cut out, or put in; each block has its checksum."""
    arrays, edits = example(random), np.random.default_rng(seed)
    path = tensorflow_writer.save(tmp_path / "ckpt", arrays)
    original, refused = path.read_bytes(), 0
    for _ in range(30):
        content = bytearray(original)
        for place in edits.integers(len(content), size=edits.integers(1, 4)):
            length = int(edits.integers(1, 9))
            new = edits.bytes(int(edits.integers(0, 9)) if edits.random() < 0.3 else length)
            content[place : place + length] = new
        path.write_bytes(content)
        try:
            check(tensorflow_files.read(path), arrays)
        except UserError:
            refused += 1
    assert refused > 20
