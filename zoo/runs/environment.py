"""What figures were made with: versions, revision and machine, for their passports."""

import contextlib
import functools
import importlib.metadata
import os
import pathlib
import platform
import re
import subprocess

import jax

from zoo import version

PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


@functools.cache
def versions() -> dict[str, str]:
    """The versions of Python, of this zoo and of the packages that compute."""
    packages = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # flax need not be there
            packages[name] = importlib.metadata.version(name)
    return {"python": platform.python_version(), "zoo": version.VERSION, **packages}


@functools.cache
def revision() -> str | None:
    """The git revision of this zoo, with "-dirty" if files were changed; None if it has none."""
    folder = pathlib.Path(version.__file__).resolve().parent.parent

    def git(*arguments):
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # An installed zoo may lie within a checkout of something else: that has no say here.
        if pathlib.Path(git("rev-parse", "--show-toplevel")).resolve() != folder:
            return None
        return git("rev-parse", "HEAD") + ("-dirty" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


@functools.cache
def machine() -> dict:
    """The kind of machine: processor, cores, and the devices that JAX sees."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    devices = jax.devices()
    return {
        "processor": model[1] if model else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "device": devices[0].device_kind,
        "platform": devices[0].platform,
        "devices": len(devices),
    }
