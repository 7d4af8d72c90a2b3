"""Versions, git revision and machine of a run, for passports."""

import contextlib
import dataclasses
import functools
import importlib.metadata
import os
import pathlib
import platform
import re
import subprocess
from collections.abc import Mapping
from typing import Any

import jax

from zoo import version
from zoo.errors import UserError


@dataclasses.dataclass(frozen=True)
class Code:
    """The code that trained a run."""

    revision: str | None = None
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    # {the user's module: SHA-256}
    sources: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Machine:
    """The machine on which a figure was computed."""

    processor: str
    cores: int | None
    device: str  # the first of JAX's devices
    platform: str
    devices: int


PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


@functools.cache
def versions() -> dict[str, str]:
    """Returns {name: version} of Python, Zoo and the installed ones of `PACKAGES`."""
    packages = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # flax need not be there
            packages[name] = importlib.metadata.version(name)
    return {"python": platform.python_version(), "zoo": version.VERSION, **packages}


def check_version(versions: Mapping[str, Any], file: Any):
    """Raises UserError for the versions of a file that a later 0.X of Zoo wrote, where the same
    fields may mean other things."""
    saved = str(versions.get("zoo", ""))
    later, own = (re.findall(r"\d{1,9}", text)[:2] for text in (saved, version.VERSION))
    if [*map(int, later)] > [*map(int, own)]:
        raise UserError(f"{file} is of Zoo {saved}: read it with that version, or a later one.")


@functools.cache
def revision() -> str | None:
    """Returns Zoo's git revision, with "-dirty" after changes; None outside a git checkout."""
    folder = pathlib.Path(version.__file__).resolve().parent.parent
    outputs = []
    for command in (
        ("rev-parse", "--show-toplevel"),
        ("rev-parse", "HEAD"),
        ("status", "--porcelain", "--untracked-files=no"),
        ("ls-files", "--others", "--exclude-standard", "--", "*.py"),  # added modules
    ):
        git = ["git", "-C", str(folder), *command]
        try:
            result = subprocess.run(git, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        outputs.append(result.stdout.strip())
        # An installed Zoo may lie within the checkout of another project.
        if pathlib.Path(outputs[0]).resolve() != folder:
            return None
    _, revision, *changes = outputs
    return f"{revision}-dirty" if any(changes) else revision


@functools.cache
def machine() -> Machine:
    """Describes this machine."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    devices = jax.devices()
    return Machine(
        processor=model[1] if model else platform.processor() or platform.machine(),
        cores=os.cpu_count(),
        device=devices[0].device_kind,
        platform=devices[0].platform,
        devices=len(devices),
    )
