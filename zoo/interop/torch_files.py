"""Files that PyTorch saves, read without PyTorch and without running them.

`torch.save` writes a pickle, with the numbers of tensors beside it: in a zip archive since PyTorch
1.6, and after the pickle before. A pickle is a program, which may call any function of any module.
Here its instructions are compared with a list first, and every class and function that it names
becomes an inert `Record`, but for those that make tensors. Sizes are compared with the file before
memory is taken for them.
"""

import collections
import contextlib
import io
import math
import os
import pickle
import pickletools
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from zoo.base import lazy, regular_files
from zoo.errors import UserError

# By the names of PyTorch's storages, and of safetensors.
_DTYPES = {
    **{"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8"},
    **{"IntStorage": "<i4", "ByteStorage": "u1", "BoolStorage": "?"},
    **{"F32": "<f4", "F64": "<f8", "F16": "<f2", "I64": "<i8", "BF16": jnp.bfloat16},
    "BFloat16Storage": jnp.bfloat16,
}
# What saves such files, for messages.
PROGRAMS = "PyTorch, a program that uses it, or safetensors"
# The first object of a file before PyTorch 1.6; the first bytes of an archive, and of a pickle.
_MAGIC, _ZIP, _PICKLE = 0x1950A86A20F9469CFC6C, b"PK\x03\x04", b"\x80"
# Most bytes and instructions of a pickle, enough for half a million words; and most tuples, which
# are hashed by recursion, and classes, enough for the parameters of some thousand layers.
_BYTES, _INSTRUCTIONS, _COSTLY = 1 << 25, 1 << 20, 1 << 14
# Of protocols 2 to 5, without those that name a class by a number or take memory before they read.
_ALLOWED = {
    *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "NONE", "NEWTRUE", "NEWFALSE"),
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINSTRING", "SHORT_BINSTRING"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES", "EMPTY_LIST", "APPEND"),
    *("APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_DICT", "SETITEM"),
    *("SETITEMS", "EMPTY_SET", "ADDITEMS", "FROZENSET", "GLOBAL", "STACK_GLOBAL", "REDUCE"),
    *("NEWOBJ", "BUILD", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET", "BINPERSID"),
}


class Record(dict):
    """An object of a class outside the list: its state by name, and nothing that runs."""

    __eq__, __hash__ = object.__eq__, object.__hash__  # type: ignore[assignment]  # it may be a key

    def __init__(self, *arguments):
        super().__init__()

    def __setstate__(self, state):
        self.update(state if isinstance(state, dict) else {})


class Storage:
    """The numbers of a file, which several tensors may share; read after the pickle."""

    def __init__(self, dtype: np.dtype, size: int):
        self.dtype, self.size, self.nbytes = dtype, size, size * dtype.itemsize
        self.numbers = np.zeros(0, dtype)

    def __setstate__(self, state):
        """Leaves out a state, which none has."""

    def read(self, content: bytes):
        """Takes the numbers; ValueError if there are more or fewer."""
        if len(content) != self.nbytes:
            raise ValueError(f"{self.size:,} numbers have {len(content):,} bytes")
        self.numbers = np.frombuffer(content, self.dtype)


class Tensor:
    """A tensor of a file, a part of a storage."""

    def __init__(self, storage: Storage, offset: int, shape: tuple, stride: tuple, *_):
        self.storage, self.offset, self.dtype = storage, offset, storage.dtype
        self.shape, self.stride = tuple(shape), tuple(stride)
        size = math.prod(self.shape)
        self.nbytes = size * storage.dtype.itemsize
        last = offset + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        end = last + 1 if size else 0
        if min((0, offset, *self.shape, *self.stride)) < 0 or max(size, end) > storage.size:
            raise ValueError(f"a tensor {[*self.shape]} is beyond its {storage.size:,} numbers")

    def __setstate__(self, state):
        """Leaves out what PyTorch 0.3 adds to a parameter."""

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        strides = [stride * self.dtype.itemsize for stride in self.stride]
        numbers = self.storage.numbers[self.offset :]
        return np.lib.stride_tricks.as_strided(numbers, self.shape, strides).astype(dtype)


_HARMLESS = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("_codecs", "encode"): lambda text, _: text.encode("latin1"),  # bytes, in protocol 2
    ("torch._utils", "_rebuild_tensor"): Tensor,
    ("torch._utils", "_rebuild_tensor_v2"): Tensor,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
    ("torch.nn.parameter", "Parameter"): lambda tensor, *_: tensor,
}


class _Unpickler(pickle.Unpickler):
    """Unpickles harmless classes; every other becomes a `Record` of its name."""

    def __init__(self, file, storages: dict[Any, Storage]):
        super().__init__(file, encoding="latin1")
        self.storages = storages

    def find_class(self, module, name):
        return _HARMLESS.get((module, name)) or type(name, (Record,), {"__module__": module})

    def persistent_load(self, pid):
        if pid[0] == "module":  # (class, file, source text), which old files have
            return pid[1]
        _, kind, key, _, size, *part = pid
        if kind.__name__ not in _DTYPES or part not in ([], [None]):
            raise ValueError(f"numbers of the type {kind.__name__} are not read")
        return self.storages.setdefault(key, Storage(np.dtype(_DTYPES[kind.__name__]), size))


def _unpickle(file, storages: dict[Any, Storage]) -> Any:
    """Reads the next pickle of a file."""
    start, costly = file.tell(), 0
    content = io.BytesIO(file.read(_BYTES))
    for count, (instruction, argument, _) in enumerate(pickletools.genops(content)):
        name = instruction.name
        costly += name.startswith(("TUPLE", "FROZENSET", "GLOBAL", "STACK_GLOBAL"))
        # A memo takes memory up to its number.
        is_far = name.endswith("PUT") and (argument or 0) > count
        if name not in _ALLOWED or is_far or count > _INSTRUCTIONS or costly > _COSTLY:
            raise ValueError(f"instruction {count:,}, {name}, is not a language model's")
    file.seek(start + content.tell())
    content.seek(0)
    return _Unpickler(content, storages).load()


def _read_archive(file, size: int) -> Any:
    """Reads a file of PyTorch 1.6 or newer."""
    storages: dict[Any, Storage] = {}
    with zipfile.ZipFile(file) as archive:
        (pickled,) = (name for name in archive.namelist() if name.endswith("data.pkl"))

        def open_member(name):
            member = archive.getinfo(pickled.removesuffix("data.pkl") + name)
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{name} is compressed")
            return archive.open(member)

        value = _unpickle(open_member("data.pkl"), storages)
        order = pickled.replace("data.pkl", "byteorder")
        if order in archive.namelist() and archive.open(order).read(9) != b"little":
            raise ValueError("its numbers have the other order of bytes")
        if sum(abs(storage.nbytes) for storage in storages.values()) > size:
            raise ValueError("its tensors are larger than the file")
        for key, storage in storages.items():
            storage.read(open_member(f"data/{key}").read())
    return value


def _read_sequence(file, size: int) -> Any:
    """Reads a pickle, or a file before PyTorch 1.6: pickles, then the storages that they name."""
    storages: dict[Any, Storage] = {}
    value = _unpickle(file, storages)
    if value != _MAGIC:
        return value
    _, machine, value, keys = (_unpickle(file, storages) for _ in range(4))
    if {*keys} != {*storages} or not machine["little_endian"]:
        raise ValueError("the numbers of its tensors are missing, or have the other order of bytes")
    for key in keys:
        (numbers,) = struct.unpack("<q", file.read(8))
        if numbers != storages[key].size:
            raise ValueError(f"{storages[key].size:,} numbers are {numbers:,} in the file")
        storages[key].read(file.read(min(storages[key].nbytes, size)))
    return value


def _read_safetensors(file) -> dict[str, np.ndarray]:
    """Reads a file of safetensors."""
    content = file.read(9)
    if content[8:] != b"{":
        raise ValueError("it begins otherwise")
    with lazy.extra():
        import safetensors
    return {
        name: np.frombuffer(array["data"], _DTYPES[array["dtype"]]).reshape(array["shape"])
        for name, array in safetensors.deserialize(content + file.read())
    }


@contextlib.contextmanager
def naming(path: Any, programs: str = PROGRAMS) -> Iterator[None]:
    """Raises UserError with the path of a file for an error within its context."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except Exception as error:  # a damaged file shows itself in many ways
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UserError(
            f"{path} cannot be read ({reason}): give a whole copy of a file that {programs} saved."
        ) from error


def is_pickled(path: str) -> bool:
    """Whether a file begins as one of `torch.save`, or as a pickle."""
    with regular_files.open_regular(path) as file:
        return file.read(len(_ZIP)).startswith((_ZIP, _PICKLE))


def read(path: str) -> Any:
    """Reads a file of `torch.save`, a pickle, or safetensors; tensors are `Tensor` or arrays."""
    with naming(path), regular_files.open_regular(path) as file:
        head, size = file.read(len(_ZIP)), file.seek(0, os.SEEK_END)
        file.seek(0)
        if head == _ZIP:
            return _read_archive(file, size)
        if head.startswith(_PICKLE):
            return _read_sequence(file, size)
        return _read_safetensors(file)
