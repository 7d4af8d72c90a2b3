"""Exports on the Hugging Face hub, where the package `huggingface_hub` is installed."""

import os
import pathlib
import re
import shutil
from typing import Any

from zoo.base import lazy, temporary_files
from zoo.base.trust import permissions
from zoo.errors import UserError, shortened
from zoo.lab.runs import exported_run

# Files of an export; other files of a repository are not fetched.
FILES = (
    *("*.json", "*.md", "*.npz", "*.safetensors", "load.py"),
    *("programs/*.jax", "results/*.json", "results/*.txt"),
)
_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def pull(repository: str, out: str | pathlib.Path) -> pathlib.Path:
    """Downloads an exported run from the hub into a new folder, completely or not at all."""
    with temporary_files.folder(out) as folder:
        _download(repository, local_dir=str(folder))
        shutil.rmtree(folder / ".cache", ignore_errors=True)  # huggingface_hub's own notes
    return pathlib.Path(out)


def local_folder(path: str | os.PathLike[str]) -> str:
    """Downloads "hub:OWNER/NAME" and returns its folder in the cache; other paths are unchanged."""
    repository = os.fspath(path)
    if not repository.startswith("hub:"):
        return repository
    return _download(repository.removeprefix("hub:"))


def _download(repository, **snapshot_options) -> str:
    """Downloads the newest commit of an exported run and returns its folder; raises UserError for
    unsafe file names, failed requests and other repositories."""
    if not _NAME.fullmatch(repository):
        raise UserError(
            f"{shortened(repository)} is neither OWNER/NAME on the hub nor an address: give one of "
            "these, as in gs://BUCKET/RUN."
        )
    with lazy.extra():
        import huggingface_hub
    try:
        info: Any = huggingface_hub.HfApi().repo_info(repository)
        permissions.check_remote([file.rfilename for file in info.siblings], repository)
        options = {"revision": info.sha, "allow_patterns": list(FILES), **snapshot_options}
        folder = str(huggingface_hub.snapshot_download(repository, **options))
    except UserError:
        raise
    except Exception as error:  # errors of the hub, of HTTP and of the network
        if isinstance(error, OSError) and error.errno in temporary_files.FULL:
            raise
        raise UserError(
            f"the hub refused {repository} ({type(error).__name__}: {error}): check its name, the "
            "network and the output of `hf auth whoami`."
        ) from error
    if not exported_run.is_complete(pathlib.Path(folder)):
        raise UserError(
            f"{repository} exists and does not hold an export of this zoo: name one that "
            "`zoo export` made."
        )
    return folder
