"""Files of PyTorch are read without running them, and refused where they are damaged or hostile."""

import io
import os
import pathlib
import pickle
import struct
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from tests.interop import torch_writer
from tests.interop.torch_writer import Part, named
from zoo.errors import UserError
from zoo.interop import torch_files

NUMBERS = np.arange(24, dtype=np.float32)


def state():
    """Tensors of several types, of which two are parts of one storage."""
    return {
        "whole": NUMBERS[:12].reshape(3, 4).copy(),
        "half": np.array([0.5, -2.0], np.float16),
        "brain": np.array([1.5, -3.0], jnp.bfloat16),
        "scalar": np.array(7.0, np.float32),
        "column": Part(NUMBERS, 1, (5,), (4,)),
        "transposed": Part(NUMBERS, 0, (4, 6), (1, 4)),
        "empty": np.zeros((0, 3), np.float32),
    }


def check_state(arrays):
    expected = {
        "whole": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]],
        "half": [0.5, -2],
        "brain": [1.5, -3],
        "scalar": 7,
        "column": [1, 5, 9, 13, 17],
        "transposed": NUMBERS.reshape(6, 4).T,
        "empty": np.zeros((0, 3)),
    }
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(np.asarray(array, np.float32), expected[name], name)


@pytest.mark.parametrize("legacy", [False, True], ids=["archive", "before 1.6"])
def test_tensors_are_read(tmp_path, legacy):
    check_state(torch_files.read(torch_writer.save(tmp_path / "model.pt", state(), legacy)))


def test_safetensors_are_read(tmp_path):
    array, bits = NUMBERS.reshape(4, 6), np.array([0x3FC0, 0xC040], "<u2")  # 1.5 and -3
    header = (
        b'{"a":{"dtype":"F32","shape":[4,6],"data_offsets":[0,96]},'
        b'"b":{"dtype":"BF16","shape":[2],"data_offsets":[96,100]}}'
    )
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + array.tobytes() + bits.tobytes())
    arrays = torch_files.read(path)
    np.testing.assert_array_equal(arrays["a"], array)
    np.testing.assert_array_equal(np.asarray(arrays["b"], np.float32), [1.5, -3])


def test_a_pickle_of_words_is_read(tmp_path):
    path = tmp_path / "itos.pkl"
    path.write_bytes(pickle.dumps(["_unk_", "été"]))
    assert torch_files.read(path) == ["_unk_", "été"]


class Command:
    """What runs a command when it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.system, (f"touch {self.file}",)


def test_nothing_of_a_pickle_runs(tmp_path):
    module = torch_writer.module(named("program", "Model"), {"weight": NUMBERS}, dropout=0.5)
    module.trap = Command(tmp_path / "ran")
    record = torch_files.read(torch_writer.save(tmp_path / "model.pt", module))
    assert type(record).__name__ == "Model"
    assert record["dropout"] == 0.5
    assert record["trap"] == {} or type(record["trap"]).__name__ == "system"
    assert not (tmp_path / "ran").exists()


def rewritten(change) -> bytes:
    """An archive whose entries were changed: change(name, content) -> (content, compression)."""
    file = io.BytesIO()
    torch_writer.save(path := pathlib.Path("model.pt"), state())
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            content, compression = change(name, old.read(name))
            new.writestr(name, content, compression)
    return file.getvalue()


def of_pickle(content: bytes) -> bytes:
    return rewritten(lambda name, old: (content if name.endswith("pkl") else old, 0))


def tensor_of(offset, shape, stride, size=24) -> bytes:
    """The pickle of a tensor in an archive, whatever it claims."""
    file = io.BytesIO()
    pickler = torch_writer.Pickler(file, legacy=False)
    pickler.dump({"a": Part(NUMBERS, offset, shape, stride)})
    return file.getvalue().replace(b"K\x18", b"J" + struct.pack("<i", size))  # 24


HOSTILE = {
    "compressed": (lambda: rewritten(lambda name, old: (old, zipfile.ZIP_DEFLATED)), "compressed"),
    "short": (
        lambda: rewritten(lambda name, old: (old[:-4] if "data/0" in name else old, 0)),
        "bytes",
    ),
    "of big-endian numbers": (
        lambda: rewritten(lambda name, old: (b"big" if "order" in name else old, 0)),
        "order of bytes",
    ),
    "without its numbers": (
        lambda: of_pickle(tensor_of(0, (24,), (1,)).replace(b"X\x01\0\0\x000", b"X\x01\0\0\x009")),
        "data/9",
    ),
    "beyond its storage": (lambda: of_pickle(tensor_of(20, (5,), (1,))), "beyond its 24"),
    "of a large stride": (lambda: of_pickle(tensor_of(0, (2,), (24,))), "beyond its 24"),
    "repeated": (lambda: of_pickle(tensor_of(0, (9, 24), (0, 1))), "beyond its 24"),
    "of a negative stride": (lambda: of_pickle(tensor_of(5, (3,), (-1,))), "beyond its 24"),
    "of a billion numbers": (
        lambda: of_pickle(tensor_of(0, (1,), (1,), 1 << 30)),
        "larger than the file",
    ),
    "of another type": (
        lambda: of_pickle(tensor_of(0, (1,), (1,)).replace(b"FloatStorage", b"QUInt4Storage")),
        "type QUInt4Storage",
    ),
    "with a far memo": (
        lambda: of_pickle(b"\x80\x02]r\xff\xff\xff\x7f."),
        "is not a language model's",
    ),
    "with an extension": (lambda: of_pickle(b"\x80\x02\x82\x01."), "EXT1"),
    "with a buffer": (lambda: of_pickle(b"\x80\x05\x97."), "NEXT_BUFFER"),
    "nested": (
        lambda: of_pickle(b"\x80\x02]" + b"\x85" * 20000 + b"."),
        "is not a language model's",
    ),
    "of many classes": (
        lambda: of_pickle(b"\x80\x02" + b"ca\nb\n" * 20000 + b"."),
        "is not a language model's",
    ),
    "of protocol 0": (lambda: b"(lp0\n.", "begins"),
    "without an end": (lambda: b"\x80\x02]", "STOP"),
    "an LFS pointer": (lambda: b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
    "empty": (lambda: b"", "begins"),
    "of safetensors of a terabyte": (
        lambda: (
            b"\x48"
            + bytes(7)
            + b'{"a":{"dtype":"F32","shape":[250000000000],"data_offsets":[0,4]}}       '
        ),
        "",
    ),
    "with a header of safetensors beyond its end": (lambda: b"\xff" * 7 + b"\0{}", ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    content, reason = HOSTILE[name]
    path = tmp_path / "hostile.pt"
    path.write_bytes(content())
    with pytest.raises(UserError, match=f"hostile.pt cannot be read .*{reason}"):
        torch_files.read(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"missing.pt cannot be read .No such file"):
        torch_files.read(tmp_path / "missing.pt")


FORMATS = {
    "archive": lambda path: torch_writer.save(path, state()),
    "before 1.6": lambda path: torch_writer.save(path, state(), legacy=True),
    "safetensors": lambda path: path.write_bytes(
        safetensors.numpy.save({"a": NUMBERS, "b": NUMBERS})
    ),
}


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 10))]
)
@pytest.mark.parametrize("form", FORMATS)
def test_random_edits_are_refused_or_harmless(tmp_path, form, seed):
    """Thirty edits of a file: bytes changed, cut out, or put in."""
    path = tmp_path / "model.pt"
    FORMATS[form](path)
    original, random = path.read_bytes(), np.random.default_rng(seed)
    for _ in range(30):
        content = bytearray(original)
        for place in random.integers(len(content), size=random.integers(1, 4)):
            length = int(random.integers(1, 9))
            new = random.bytes(int(random.integers(0, 9)) if random.random() < 0.3 else length)
            content[place : place + length] = new
        path.write_bytes(content)
        try:
            arrays = torch_files.read(path)
        except UserError:
            continue
        if form == "archive":  # which has checksums
            check_state(arrays)
        elif isinstance(arrays, dict):
            for array in arrays.values():
                np.asarray(array)
