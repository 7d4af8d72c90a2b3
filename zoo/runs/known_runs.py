"""Which runs this user made here: a note of each recipe, in the user's own folder of states.

A note is a small file called after the SHA-256 of what the run's experiment.json says. Another
recipe has another hash, and nobody else can write notes there; a copy of a run is the user's as the
run is. So what a noted recipe names may be used as if the user named it again.
"""

import hashlib
import json
import logging
import os
import pathlib
from typing import Any

from zoo import strict_json
from zoo.runs import atomic_files, location
from zoo.trust import user_modules

logger = logging.getLogger(__name__)


def folder() -> pathlib.Path:
    """zoo/runs in $XDG_STATE_HOME, or in ~/.local/state if that is not set to a whole path."""
    given = pathlib.Path(os.environ.get("XDG_STATE_HOME", ""))
    state = given if given.is_absolute() else pathlib.Path.home() / ".local" / "state"
    return state / "zoo" / "runs"


def _note(recipe: dict) -> pathlib.Path:
    content = json.dumps(recipe, sort_keys=True).encode()
    return folder() / f"{hashlib.sha256(content).hexdigest()}.json"


def keep(recipe: dict, workdir: Any):
    """Notes the recipe of a run, as JSON; a warning, and no more, where that cannot be."""
    note = {"workdir": str(location.absolute(workdir)), "modules": user_modules.folders()}
    try:
        path = _note(recipe)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps(note, ensure_ascii=False) + "\n"
        atomic_files.write_whole(path, lambda path: path.write_text(text, encoding="utf-8"))
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        logger.warning(
            "%s is not noted as your own run (%s): to judge it, absolute paths in its recipe need "
            "--trust-paths, and functions and components of your own --trust NAME.",
            workdir,
            error,
        )


def modules(recipe: dict) -> list[str] | None:
    """Where the modules of a noted recipe were when its run was made; None if it is not noted."""
    try:
        text = _note(recipe).read_bytes()
    except (OSError, RuntimeError):
        return None
    note = strict_json.object_or_none(text) or {}
    try:
        strict_json.check(note, {"modules": [str]})
    except ValueError:
        return []  # the note is there, whatever has become of it
    return note["modules"]
