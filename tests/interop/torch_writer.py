"""Files as PyTorch saves them, written without PyTorch.

Arrays of numpy are its tensors, and `module` makes an object of a class of PyTorch or of a program.
"""

import collections
import functools
import io
import pathlib
import pickle
import struct
import types
import zipfile
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

_STORAGES = {
    np.dtype("f4"): "FloatStorage",
    np.dtype("f8"): "DoubleStorage",
    np.dtype("f2"): "HalfStorage",
    np.dtype("i8"): "LongStorage",
    np.dtype(jnp.bfloat16): "BFloat16Storage",
}


@functools.cache
def named(module: str, name: str) -> type:
    """A class of another program, which a pickle names and nobody can import here."""
    return type(name, (), {"__module__": module, "__qualname__": name})


def module(kind: type, parameters=(), modules=(), **attributes):
    """A `torch.nn.Module` with its dict of attributes."""
    value = kind()
    value.__dict__.update(
        training=False,
        _parameters=collections.OrderedDict(parameters),
        _modules=collections.OrderedDict(modules),
        **attributes,
    )
    return value


class Part:
    """A tensor that is a view of an array: a stride counts numbers."""

    def __init__(self, array, offset, shape, stride):
        self.array, self.offset, self.shape, self.stride = array, offset, shape, stride


class OldParameter:
    """A parameter as PyTorch 0.3 saved it."""

    def __init__(self, array):
        self.array = array


class Storage:
    def __init__(self, array, key):
        self.array, self.key = np.ascontiguousarray(array), key


class Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Pickles classes and functions by their names alone."""

    def __init__(self, file, legacy: bool):
        super().__init__(file, protocol=2)
        self.legacy, self.storages = legacy, {}

    def save_global(self, obj, name=None):
        """Saves a name, without looking for it."""
        module = {"builtins": "__builtin__"}.get(obj.__module__, obj.__module__)
        self.write(f"c{module}\n{name or obj.__qualname__}\n".encode())
        self.memoize(obj)

    # Also of types, which dill saves in its own way in a process that has imported it.
    names: ClassVar = dict.fromkeys((type, types.FunctionType), save_global)
    dispatch: ClassVar = pickle._Pickler.dispatch | names  # type: ignore[attr-defined]

    def reducer_override(self, obj):
        """Saves an array as a tensor."""
        if isinstance(obj, OldParameter):
            state = (True, False, collections.OrderedDict())
            return named("torch.nn.parameter", "Parameter"), (obj.array,), state
        if isinstance(obj, np.ndarray):
            strides = tuple(stride // obj.itemsize for stride in obj.strides)
            obj = Part(obj, 0, obj.shape, strides)
        if not isinstance(obj, Part):
            return NotImplemented
        rebuild = named("torch._utils", "_rebuild_tensor_v2")
        storage = self.storages.setdefault(
            id(obj.array), Storage(obj.array, str(len(self.storages)))
        )
        hooks: dict = collections.OrderedDict()
        return rebuild, (storage, obj.offset, obj.shape, obj.stride, False, hooks)

    def persistent_id(self, obj):
        """Saves the place of numbers."""
        if not isinstance(obj, Storage):
            return None
        kind = named("torch", _STORAGES[obj.array.dtype])
        pid = ("storage", kind, obj.key, "cpu", obj.array.size)
        return (*pid, None) if self.legacy else pid


def save(path: pathlib.Path, value, legacy: bool = False) -> pathlib.Path:
    """Writes an object to a file of PyTorch 1.6 or newer, or of an older one."""
    file = io.BytesIO()
    pickler = Pickler(file, legacy)
    if legacy:
        for head in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True, "type_sizes": {}}):
            pickle.dump(head, file, protocol=2)
    pickler.dump(value)
    storages = list(pickler.storages.values())
    if legacy:
        pickle.dump([storage.key for storage in storages], file, protocol=2)
        for storage in storages:
            file.write(struct.pack("<q", storage.array.size) + storage.array.tobytes())
        path.write_bytes(file.getvalue())
        return path
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", file.getvalue())
        archive.writestr("archive/byteorder", "little")
        for storage in storages:
            archive.writestr(f"archive/data/{storage.key}", storage.array.tobytes())
    return path
