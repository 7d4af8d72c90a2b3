"""Encoded text, damaged in any way their own hashes do not show, and texts that are encoded."""

import hashlib
import io
import json
import zipfile

import numpy as np

from zoo.sources import mapped_text
from zoo.sources.text import Text

TEXT = "a b c\na b\nd a b c\nb\n"


def _npy(values, dtype="int32", shape=None, **options):
    """A .npy file; with `shape`, one whose header claims that shape."""
    file = io.BytesIO()
    array = np.array(values, dtype)
    if shape is None:
        np.save(file, array, **options)
        return file.getvalue()
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def _zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return file.getvalue()


def _read(changes, folder):
    """Reads encoded text with some files, or fields of their record, put in another's place.

    Digests are made anew of what lies there; a field of the record that is ... is taken out, and
    so is a file that is None.
    """
    (folder / "text.txt").write_text(TEXT)
    mapped_text.write([str(folder / "text.txt")], folder / "encoded")
    record_file = folder / "encoded" / mapped_text.RECORD
    record = json.loads(record_file.read_text())
    fields = {}
    for name, value in changes.items():
        path = folder / "encoded" / name
        if "." not in name:
            fields[name] = value
        elif value is None:
            path.unlink()
        else:
            path.write_bytes(value if isinstance(value, bytes) else value.encode())
            record["sha256"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    record = {name: value for name, value in {**record, **fields}.items() if value is not ...}
    record_file.write_text(json.dumps(record))
    _read_folder(folder)


def _read_folder(folder):
    path = str(folder / "encoded")
    Text(train=path, validation=path).read("train")


def _record(content, folder):
    """Reads encoded text whose record is another text."""
    (folder / "text.txt").write_text(TEXT)
    mapped_text.write([str(folder / "text.txt")], folder / "encoded")
    content = content if isinstance(content, bytes) else content.encode()
    (folder / "encoded" / mapped_text.RECORD).write_bytes(content)
    _read_folder(folder)


def _encode(content, folder):
    path = folder / "text"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    mapped_text.write([str(path)], folder / "encoded")


CALLS = {"mapped text": _read, "encoded.json": _record, "encode": _encode}
NAMES = {"npy": _npy, "zipped": _zipped}
