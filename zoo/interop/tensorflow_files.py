"""Checkpoints of TensorFlow's first format, read without TensorFlow and without protobuf.

A file is a table of LevelDB: blocks of entries, an index of the blocks, and a footer that tells
where the index is. Each block has a checksum. The value of an entry is a message of protobuf: the
first lists the names, types and shapes of all tensors, and each other has the numbers of one
tensor. The file is mapped to memory, so that numbers are read where they are used.
"""

import functools
import itertools
import mmap
import pathlib
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from zoo.base import regular_files
from zoo.interop.torch_files import naming

_FOOTER, _MAGIC = 48, struct.pack("<Q", 0xDB4775248B80FB57)
# Most numbers of a file that are not a tensor's, enough for several thousand tensors.
_NUMBERS = 1 << 18
_FLOAT = 1  # the type of tensors of float32
# Castagnoli's polynomial with its bits reversed; bytes of which the checksum is computed at once.
_POLYNOMIAL, _PART = 0x82F63B78, 1 << 20


class _Bytes:
    """A part of a file, read from its start; all parts of a file count their numbers together."""

    def __init__(self, content: memoryview, count: Iterator[int]):
        self.content, self.count, self.position = content, count, 0

    def __bool__(self):
        return self.position < len(self.content)

    def take(self, size: int) -> "_Bytes":
        if not 0 <= size <= len(self.content) - self.position:
            raise ValueError("it ends too early")
        self.position += size
        return _Bytes(self.content[self.position - size : self.position], self.count)

    def number(self) -> int:
        """Reads a number of seven bits a byte, the lowest first."""
        if next(self.count) > _NUMBERS:
            raise ValueError("it has more parts than a model")
        number = 0
        for shift in range(0, 64, 7):
            (byte,) = self.take(1).content
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("a number has more than 64 bits")


def paths(folder: str) -> list[pathlib.Path]:
    """Returns the files of the checkpoint of a folder."""
    return sorted(pathlib.Path(folder).glob("ckpt-*"))


def read_folder(folder: str) -> dict[str, np.ndarray]:
    """Reads the tensors of float32 of all files of a folder's checkpoint, by name."""
    return {name: array for path in paths(folder) for name, array in read(path).items()}


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads the tensors of float32 of a file, by name; others, such as the step, are left out."""
    with naming(path, "TensorFlow"), regular_files.open_regular(path) as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        blocks = _Bytes(content, itertools.count())
        footer = _Bytes(content[-_FOOTER:], blocks.count)
        if footer.content[-len(_MAGIC) :] != _MAGIC:
            raise ValueError("it does not end as a checkpoint of the first format")
        footer.number(), footer.number()  # an index of another kind, which is empty
        index = _Bytes(content[footer.number() :], blocks.count)
        shapes: dict[bytes, list[int]] = {}
        numbers: dict[bytes, np.ndarray] = {}
        for handle in _entries(index, footer.number()):
            if handle.number() != blocks.position:
                raise ValueError("its blocks are not one after another")
            for entry in _entries(blocks, handle.number()):
                message = dict(_fields(entry))
                if 1 in message:
                    shapes.update(_shapes(message[1]))
                    continue
                tensor = dict(_fields(message[2]))
                name, data = bytes(tensor[1].content), dict(_fields(tensor[3]))
                if name in numbers:
                    raise ValueError(f"{name.decode()} is in it twice")
                numbers[name] = np.frombuffer(data[5].content if 5 in data else b"", "<f4")
        return {name.decode(): numbers[name].reshape(shape) for name, shape in shapes.items()}


def _entries(blocks: _Bytes, size: int) -> Iterator[_Bytes]:
    """Yields the values of the entries of the next block, whose checksum it compares."""
    block, checksum = blocks.take(size + 1).content, blocks.take(4).content
    crc = crc32c(block)
    if struct.unpack("<I", checksum) != (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF,):
        raise ValueError("a block is not as it was written")
    if block[size]:
        raise ValueError("a block is compressed")  # which TensorFlow itself did not do
    (restarts,) = struct.unpack("<I", block[size - 4 : size])
    entries = _Bytes(block, blocks.count).take(size - 4 * restarts - 4)
    while entries:
        _, unshared, length = (entries.number() for _ in range(3))
        entries.take(unshared)  # the rest of the key, of which the value tells all
        yield entries.take(length)


def _fields(message: _Bytes) -> Iterator[tuple[int, Any]]:
    """Yields (number, value) of the fields of a message of protobuf."""
    while message:
        number, kind = divmod(message.number(), 8)
        if kind == 0:
            yield number, message.number()
        else:
            yield number, message.take(message.number() if kind == 2 else {1: 8, 5: 4}[kind])


def _shapes(contents: _Bytes) -> Iterator[tuple[bytes, list[int]]]:
    """Yields the name and the shape of each tensor of float32."""
    for number, tensor in _fields(contents):
        fields: dict[int, Any] = dict(_fields(tensor)) if number == 1 else {3: None}
        if fields[3] == _FLOAT:
            sizes = [dict(_fields(size)).get(1, 0) for _, size in _fields(fields[2])]
            yield bytes(fields[1].content), sizes


# ---------------- CRC-32C, a remainder of polynomials: the words of a message are folded in halves


def crc32c(content: memoryview) -> int:
    """Computes the CRC-32C of at least four bytes."""
    crc, start = 0xFFFFFFFF, 0
    for end in range((len(content) - 4) % _PART + 4, len(content) + 1, _PART):
        part = np.frombuffer(content[start:end], np.uint8)
        # Zeros before a message do not change its remainder.
        padded = np.zeros(1 << (len(part) - 1).bit_length(), np.uint8)
        padded[-len(part) :] = part
        padded[-len(part) :][:4] ^= np.array([crc], "<u4").view(np.uint8)
        words = padded.view("<u4")
        while len(words) > 1:
            first, last = np.split(words, 2)
            words = _multiply(first, _tables(len(first))) ^ last
        crc, start = int(_multiply(words, _tables(1))[0]), end
    return crc ^ 0xFFFFFFFF


def _multiply(words: np.ndarray, tables: np.ndarray) -> np.ndarray:
    return tables[0][words & 0xFFFF] ^ tables[1][words >> 16]


@functools.cache
def _tables(distance: int) -> np.ndarray:
    """Computes the products, uint32 [2, 2^16], of the low and of the high half of a word and
    x^(32 distance), for a distance that is a power of two."""
    products: np.ndarray = np.uint32(1) << np.arange(32, dtype=np.uint32)
    if distance == 1:
        for _ in range(32):
            products = products >> 1 ^ (products & 1) * np.uint32(_POLYNOMIAL)
    else:
        tables = _tables(distance // 2)
        products = _multiply(_multiply(products, tables), tables)
    table = np.zeros((2, 1 << 16), np.uint32)
    for bit in range(16):
        table[:, 1 << bit : 2 << bit] = table[:, : 1 << bit] ^ products[[bit, 16 + bit], None]
    return table
