"""Checkpoints of TensorFlow's first format, written without TensorFlow."""

import math
import pathlib
import struct

import numpy as np

_TYPES = {np.dtype("f4"): 1, np.dtype("f8"): 2, np.dtype("i8"): 9}
# The number of the field of the numbers of a type.
_FIELDS = {1: 5, 2: 6, 9: 10}
RESTART = 16  # entries from one key that is written whole to the next


def crc32c(content: bytes) -> int:
    """Computes a CRC-32C bit by bit."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def number(value: int) -> bytes:
    """Writes seven bits a byte, the lowest first; a bit tells that more follow."""
    value %= 1 << 64
    content = bytearray()
    while value > 127:
        content.append(value & 127 | 128)
        value >>= 7
    return bytes([*content, value])


def field(key: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return number(8 * key) + number(content)
    return number(8 * key + 2) + number(len(content)) + content


def contents(arrays: dict) -> bytes:
    """The first message of a file: name, shape, type and slices of each tensor."""
    message = b""
    for name, array in arrays.items():
        sizes = b"".join(field(2, field(1, size) if size else b"") for size in np.shape(array))
        slices = b"".join(field(1, b"") for _ in np.shape(array))
        kind = _TYPES[np.asarray(array).dtype]
        message += field(
            1, field(1, name.encode()) + field(2, sizes) + field(3, kind) + field(4, slices)
        )
    return field(1, message + field(2, field(1, 1)))


def tensor(name: str, array) -> bytes:
    """A message of the numbers of a tensor."""
    array = np.asarray(array)
    packed = array.tobytes()
    if array.dtype == "i8":
        packed = b"".join(map(number, array.ravel().tolist()))
    values = field(_FIELDS[_TYPES[array.dtype]], packed) if packed else b""
    slices = b"".join(field(1, b"") for _ in array.shape)
    return field(2, field(1, name.encode()) + field(2, slices) + field(3, values))


def messages(arrays: dict) -> dict[bytes, bytes]:
    """The messages of a file by their keys."""
    named = {b"\0" + name.encode(): tensor(name, array) for name, array in sorted(arrays.items())}
    return {b"": contents(arrays), **named}


def block(entries: dict[bytes, bytes]) -> bytes:
    """Entries, of whose keys what the key before has is left out; and the places of whole keys."""
    content, restarts, before = b"", [], b""
    for position, (key, value) in enumerate(entries.items()):
        shared = 0
        if position % RESTART == 0:
            restarts.append(len(content))
        else:
            while shared < len(key) and key[: shared + 1] == before[: shared + 1]:
                shared += 1
        content += number(shared) + number(len(key) - shared) + number(len(value))
        content += key[shared:] + value
        before = key
    restarts = restarts or [0]
    return content + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def sealed(content: bytes, kind: int = 0) -> bytes:
    """A block with its kind and checksum."""
    content += bytes([kind])
    crc = crc32c(content)
    return content + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % (1 << 32))


def table(blocks: list[bytes], kind: int = 0, handles: list | None = None) -> bytes:
    """A file of blocks; `handles` are (start, size) in place of those that are right."""
    content, right = b"", []
    for part in [*blocks, block({})]:
        right.append((len(content), len(part)))
        content += sealed(part, kind)
    *right, other = right
    pairs = right if handles is None else handles
    entries = {
        b"key %d" % position: number(start) + number(size)
        for position, (start, size) in enumerate(pairs)
    }
    index = block(entries)
    footer = b"".join(map(number, (*other, len(content), len(index))))
    return content + sealed(index) + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def save(path: pathlib.Path, arrays: dict, block_entries: int = 3) -> pathlib.Path:
    """Writes a file of tensors, some in each block."""
    entries = [*messages(arrays).items()]
    count = math.ceil(len(entries) / block_entries)
    parts = [dict(entries[block_entries * n :][:block_entries]) for n in range(count)]
    path.write_bytes(table([block(part) for part in parts]))
    return path
