"""Exports on the Hugging Face hub, where the package `huggingface_hub` is installed."""

import pathlib
import tempfile
from typing import Any

from zoo import lazy
from zoo.errors import UserError
from zoo.runs import exported, storage

# What an export consists of: nothing else of a repository is fetched.
FILES = ("*.json", "*.md", "*.npz", "*.safetensors", "load.py", "programs/*.jax", "results/*.json")


def _hub() -> Any:
    with lazy.extra():
        import huggingface_hub
    return huggingface_hub


def _refused(repository: str, error: Exception) -> UserError:
    return UserError(
        f"the hub does not give or take {repository} ({type(error).__name__}: {error}): look at "
        "its name, at the network, and at what `hf auth whoami` says."
    )


def push(folder: str | pathlib.Path, repository: str, private: bool = True) -> str:
    """Uploads an export and gives its address.

    Args:
      folder: the export.
      repository: "OWNER/NAME"; made if it is not there.
      private: whether one that is made is seen by its owner alone.

    Raises:
      UserError: the folder is no export, or the hub refuses.
      lazy.MissingExtra: huggingface_hub is not installed.
    """
    folder = pathlib.Path(folder)
    if not exported.is_whole(folder):
        raise UserError(f"{folder} is no export: make one with `zoo export DIR OUT`.")
    hub = _hub()
    try:
        api = hub.HfApi()
        api.create_repo(repository, private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=repository, folder_path=str(folder)))
    except Exception as error:  # of the hub, of HTTP and of the network
        raise _refused(repository, error) from error


def pull(repository: str, out: str | pathlib.Path) -> pathlib.Path:
    """Downloads an export into a folder, which is there whole or not at all.

    Args:
      repository: "OWNER/NAME".
      out: the folder to make.

    Raises:
      UserError: there is something at `out`, the hub refuses, or what is there is no export.
      lazy.MissingExtra: huggingface_hub is not installed.
    """
    out = pathlib.Path(out)
    if out.exists():
        raise UserError(f"{out} is there already: give a folder that is yet to be made.")
    hub = _hub()
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as unfinished:
        whole = pathlib.Path(unfinished) / "export"
        with storage.making(out):
            try:
                hub.snapshot_download(repository, local_dir=str(whole), allow_patterns=list(FILES))
            except Exception as error:
                if isinstance(error, OSError) and error.errno in storage.FULL:
                    raise
                raise _refused(repository, error) from error
            if not exported.is_whole(whole):
                raise UserError(f"{repository} is there and holds no export of this zoo.")
            whole.replace(out)
    return out
