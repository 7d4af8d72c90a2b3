"""Notes of the runs that this user made on this machine: one of each recipe, in a folder of state.

The name of a note is the SHA-256 of the recipe in the run's experiment.json. Another recipe has
another hash, and other users cannot write notes there; a copy of a run counts as the user's own
too. So the paths and modules that a noted recipe names are permitted without being named again.
"""

import json
import logging
import os
import pathlib
from typing import Any

from zoo.base import strict_json
from zoo.base.trust import user_modules
from zoo.lab.runs import atomic_writes, checksums, location

logger = logging.getLogger(__name__)


def note_file(recipe: dict) -> pathlib.Path:
    """Returns the path of the note of a recipe, in zoo/runs of $XDG_STATE_HOME or, by default, of
    ~/.local/state."""
    setting = pathlib.Path(os.environ.get("XDG_STATE_HOME", ""))
    state = setting if setting.is_absolute() else pathlib.Path.home() / ".local" / "state"
    return state / "zoo" / "runs" / f"{checksums.json_digest(recipe)}.json"


def write_note(recipe: dict, workdir: Any):
    """Writes a note that a run is the user's own; logs a warning if it cannot be written."""
    note = {"workdir": str(location.absolute(workdir)), "modules": user_modules.folders()}
    try:
        path = note_file(recipe)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_writes.write_text(path, json.dumps(note, ensure_ascii=False) + "\n")
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        logger.warning(
            "%s is not noted as your own run (%s): to judge it, absolute paths in its recipe need "
            "--trust-paths, and functions and components of your own --trust NAME.",
            workdir,
            error,
        )


def permitted_modules(recipe: dict) -> list[str] | None:
    """Reads the folders of the user's modules from the note of a recipe; None without a note, [] if
    it is damaged."""
    try:
        text = note_file(recipe).read_bytes()
    except (OSError, RuntimeError):
        return None
    note = strict_json.object_or_none(text) or {}
    try:
        return strict_json.parse({"modules": list[str]}, note)["modules"]
    except ValueError:
        return []  # the note exists, although it is damaged
