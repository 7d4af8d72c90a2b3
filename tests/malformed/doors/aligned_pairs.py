"""Pairs that are aligned, and the sources, alignments and dictionaries of translations."""

import argparse
import io
import sys
import types
import unittest.mock

from zoo.lab.commands import options, translate


def _write(content, path):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def _aligned(sides, folder):
    """Two files, of sources and of targets."""
    source, target = (
        _write(side, folder / name) for side, name in zip(sides, ("a.en", "a.fr"), strict=True)
    )
    parser = argparse.ArgumentParser()
    options.add_to(parser, translate.ALIGN, "align")
    translate.run_align(parser.parse_args([source, target, "--iterations", "1"]))


_TRANSLATOR = types.SimpleNamespace(read=str.split)


def _sources(content, folder):
    """A file that is to be translated."""
    for _ in translate._sources(_TRANSLATOR, _write(content, folder / "file"), None):
        pass


def _standard_input(content, folder):
    """Sources through a pipe."""
    with unittest.mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(content))):
        for _ in translate._sources(_TRANSLATOR, "-", None):
            pass


CALLS = {
    "align": _aligned,
    "sources": _sources,
    "sources of standard input": _standard_input,
}
