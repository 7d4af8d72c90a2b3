"""Damaged exports: read by `zoo.load`, by their own load.py, or exported again."""

import contextlib
import hashlib
import json
import pathlib
import shutil

import numpy as np
import safetensors.numpy

import zoo
from zoo.errors import UserError
from zoo.lab.commands import command_table
from zoo.lab.export import standalone

MODELS = pathlib.Path(__file__).parent.parent.parent.parent / "models"
MODEL = MODELS / "micro"


def _damaged(use):
    """`use` of an export of which one file has another content, or is gone."""

    def call(damage, folder):
        name, change = damage
        export = folder / "export"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(MODEL, export, copy_function=shutil.copyfile, ignore=ignored)
        file = export / name
        content = change(file.read_bytes()) if callable(change) else change
        file.unlink()
        if content is FOLDER:
            file.mkdir()
        elif content is not None:
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        with contextlib.chdir(folder):
            use(pathlib.Path("export"))

    return call


def _load_and_score(texts, folder):
    """load.py, which knows no UserError, of an export and texts."""
    try:
        return standalone._log_probs(folder, texts)
    except ValueError as error:
        raise UserError(str(error)) from error


def _pairs(sides, _):
    try:
        standalone.Translator.log_prob(None, *sides)
    except ValueError as error:
        raise UserError(str(error)) from error


def _words(arguments, _):
    lexicon, words = arguments
    try:
        standalone.Words(lexicon).ids(words)
    except ValueError as error:
        raise UserError(str(error)) from error


def _export(line, folder):
    """zoo export, beside a folder `whole`, a file and a folder that is not a run."""
    (folder / "whole").symlink_to(MODEL)
    (folder / "file").write_text("")
    (folder / "folder").mkdir()
    with contextlib.chdir(folder):
        command_table.main(["export", *line])


def _arrays(change):
    """The parameters with some arrays others."""

    def change_content(content):
        arrays = safetensors.numpy.load(content)
        return safetensors.numpy.save(change(dict(arrays)))

    return change_content


def _json(**fields):
    """A JSON object with fields changed; None takes one out."""

    def change_content(content):
        record = json.loads(content) | fields
        gone = {name for name, value in fields.items() if value is None}
        return json.dumps({name: value for name, value in record.items() if name not in gone})

    return change_content


def _sealed(change):
    """The record with its checksums changed, and the digest that it would be written with."""

    def change_content(content):
        record = json.loads(content)
        del record["digest"]
        record["sha256"] = change(record["sha256"])
        text = json.dumps(record, sort_keys=True)
        return json.dumps({**record, "digest": hashlib.sha256(text.encode()).hexdigest()})

    return change_content


FOLDER = object()
NAMES = {
    "GONE": None,
    "FOLDER": FOLDER,
    "cut": lambda size: lambda content: content[:size],
    "flip": lambda place: lambda c: c[:place] + bytes([c[place] ^ 1]) + c[place:][1:],
    "more": lambda end: lambda content: content + end,
    "head": lambda begin: lambda content: begin + content[len(begin) :],
    "other": lambda name: (MODELS / "shakespeare" / name).read_bytes(),
    "without": lambda name: _arrays(lambda arrays: arrays.pop(name) is None or arrays),
    "array": lambda name, value: _arrays(lambda arrays: arrays | {name: np.asarray(value)}),
    "turned": lambda name: _arrays(lambda a: a | {name: np.ascontiguousarray(a[name].T)}),
    "halves": lambda name: _arrays(lambda a: a | {name: a[name].astype(np.float16)}),
    "fields": _json,
    "unsummed": lambda name: _sealed(lambda sums: sums | {name: None}),
    "sums": lambda value: _sealed(lambda sums: value),
}
CALLS = {
    "load.py: words": _words,
    "zoo.load of an export": _damaged(zoo.load),
    "load.py of an export": _damaged(lambda path: _load_and_score(["la souleur"], path)),
    "load.py: texts": lambda texts, _: _load_and_score(texts, MODELS / "shakespeare"),
    "load.py: pairs": _pairs,
    "export of an export": _damaged(
        lambda path: command_table.main(["export", str(path), "out", "--no-compilation-cache"])
    ),
    "zoo export": _export,
}
