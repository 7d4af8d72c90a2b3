"""Arrays in files, whose sizes are checked before any data is read.

A header of a few bytes may claim more than any memory holds, and a compressed archive of a few
kilobytes may unpack to that much.
"""

import contextlib
import math
import os
import pathlib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from zoo.base import regular_files

# An archive may unpack to at most _TIMES its size, or to _BYTES if that is more. Words, counts and
# scores are compressed to a third to a twentieth of their size; zeros to a thousandth.
_TIMES, _BYTES = 100, 2**28
# Characters of numpy's types of numbers up to 8 bytes, and of text.
_TYPES = np.typecodes["AllInteger"] + "?efdU"


def map_array(path: pathlib.Path) -> np.ndarray:
    """Maps the array of a file; ValueError if it is damaged."""
    with regular_files.open_regular(path) as file, _reading():
        _check_header(file, os.fstat(file.fileno()).st_size, path.name)
        return np.lib.format.open_memmap(path, mode="r")


def read_arrays(path: Any, valid: Callable[[str], bool], prefix: str = "") -> dict[str, np.ndarray]:
    """Reads the arrays of an archive, by name without the prefix; ValueError if it is damaged."""
    path = pathlib.Path(path) if isinstance(path, str) else path
    with regular_files.open_regular(path) as file, _reading():
        size = file.seek(0, os.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            members = {
                member.filename.removesuffix(".npy"): member for member in archive.infolist()
            }
            if len(members) < len(archive.infolist()):
                raise ValueError("it has two arrays with the same name")
            members = {
                name.removeprefix(prefix): member
                for name, member in members.items()
                if name.startswith(prefix)
            }
            unknown = sorted(name for name in members if not valid(name))
            if unknown:
                raise ValueError(f"it has {unknown[0][:60]!r}, which does not belong there")
            total = sum(member.file_size for member in members.values())
            if total > max(_BYTES, _TIMES * size):
                raise ValueError(f"it has {size:,} bytes and would unpack to {total:,}")
            for name, member in members.items():
                with archive.open(member) as file:
                    _check_header(file, member.file_size, name)
            arrays = {}
            for name, member in members.items():
                with archive.open(member) as file:
                    arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
                    if file.read(1):  # to its end, where its checksum is compared
                        raise ValueError(f"{name} is longer than the size in its header")
            return arrays


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Raises ValueError for what zipfile and numpy raise within its context."""
    try:
        yield
    except (MemoryError, OSError, ValueError):
        raise
    except Exception as error:  # a damaged archive or header shows itself in many ways
        raise ValueError(str(error) or type(error).__name__) from error


def write(path: Any, arrays: Mapping[str, np.ndarray], compressed: bool = True):
    """Writes arrays to one archive."""
    with open(path, "wb") as file:  # numpy would add .npz to a path without it
        (np.savez_compressed if compressed else np.savez)(file, **arrays)  # type: ignore[arg-type]


def check(array: np.ndarray, kind: type, name: str):
    """Raises ValueError unless an array that was read has one axis and numbers of a kind."""
    if not np.issubdtype(array.dtype, kind) or array.ndim != 1:
        raise ValueError(f"{name} is {array.dtype}{[*array.shape]}, not {kind.__name__}[n]")


def check_offsets(offsets: np.ndarray, name: str):
    """Raises ValueError unless offsets that were read start at 0 and never fall."""
    # Compared: a difference of unsigned or of large numbers wraps.
    falls = offsets[1:] < offsets[:-1]
    if offsets[0] or falls.any():
        position = int(falls.argmax()) + 1 if falls.any() else 0
        raise ValueError(
            f"{name} has {offsets[position]} at {position}: offsets start at 0 and never fall"
        )


def offsets(lengths: np.ndarray, size: int, name: str, array_name: str) -> np.ndarray:
    """Returns the offsets, int64 [n + 1], of parts whose lengths were read; ValueError unless the
    lengths add up to the `size` items of an array, which errors call `array_name`."""
    check(lengths, np.integer, name)
    # A sum that wraps, like a length below 0, is a fall.
    sums = np.concatenate([[0], np.cumsum(lengths.astype(np.int64))])
    if sums[-1] != size or (sums[1:] < sums[:-1]).any():
        raise ValueError(f"{name} do not add up to {array_name}")
    return sums


def _check_header(file, size, name):
    try:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError("another version of headers")
        read = np.lib.format.read_array_header_1_0
        shape, _, dtype = (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)
        # Also of another order of bytes, which JAX does not take.
        if dtype.char not in _TYPES or not dtype.isnative:
            raise ValueError(f"{'objects' if dtype.hasobject else dtype.str}, not numbers")
    except Exception as error:  # numpy parses a header as Python, which may raise any
        raise ValueError(f"{name} is not an array of numbers: {error}") from error
    if min(shape, default=0) < 0 or file.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{name} has {size:,} bytes, and its header is of {dtype}{[*shape]}")
