"""Checkpoints through orbax: the last two states of a run, and its two best parameters.

A state is everything that a resumed run needs to go on bit for bit: parameters, optimiser state,
carry and step as arrays; cursor, best-so-far and sums as JSON.
"""

import pathlib
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from zoo.errors import UserError


def any_kept(folder: pathlib.Path, kind: str = "last") -> bool:
    """Whether there are checkpoints under a folder, which is left as it is."""
    of_kind = folder / kind
    return of_kind.is_dir() and any(path.name.isdecimal() for path in of_kind.iterdir())


class Checkpoints:
    """The checkpoints under one folder, `last` and `best`, two of each kind."""

    def __init__(self, folder: pathlib.Path):
        """Opens or makes the folder."""
        self.folder = folder.absolute()
        self._managers = {
            kind: ocp.CheckpointManager(
                self.folder / kind,
                options=ocp.CheckpointManagerOptions(
                    max_to_keep=2, create=True, enable_async_checkpointing=False
                ),
            )
            for kind in ("last", "best")
        }

    def save(self, kind: str, step: int, arrays: Any, progress: dict):
        """Writes a checkpoint whole or not at all; one of the same step is replaced."""
        manager = self._managers[kind]
        if step in manager.all_steps():
            manager.delete(step)
        arguments = ocp.args.Composite(
            arrays=ocp.args.StandardSave(jax.tree.map(np.asarray, arrays)),
            progress=ocp.args.JsonSave(progress),
        )
        try:
            manager.save(step, args=arguments, force=True)
        except Exception as error:
            # orbax and tensorstore wrap the system's error in their own; only its text remains.
            if not any(text in str(error).lower() for text in ("no space left", "quota exceeded")):
                raise
            raise UserError(
                f"the disk is full: the checkpoint of step {step} could not be written to "
                f"{self.folder / kind}; the earlier ones are whole; make room and start again."
            ) from error

    def steps(self, kind: str) -> list[int]:
        """The steps of the checkpoints that are there, the newest first."""
        return sorted(self._managers[kind].all_steps(), reverse=True)

    def restore(self, kind: str, like: Any, say=print) -> tuple[int, Any, dict] | None:
        """(step, arrays, progress) of the newest checkpoint that can be read; None without any.

        Args:
          like: a pytree of arrays or shapes as they were saved.
          say: told of each checkpoint that is cut short and passed over.

        Raises:
          UserError: there are checkpoints, and none of them can be read.
        """
        manager = self._managers[kind]
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype), like)
        for step in self.steps(kind):
            arguments = ocp.args.Composite(
                arrays=ocp.args.StandardRestore(shapes), progress=ocp.args.JsonRestore()
            )
            try:
                restored = manager.restore(step, args=arguments)
                return step, restored["arrays"], restored["progress"]
            except Exception as error:  # a damaged file shows itself in many ways
                reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else error
                say(
                    f"the checkpoint of step {step} in {self.folder / kind} is damaged and passed "
                    f"over ({type(error).__name__}: {reason})."
                )
        if self.steps(kind):
            raise UserError(
                f"none of the checkpoints in {self.folder / kind} can be read: put back a copy of "
                f"one, go on with the version of the zoo that wrote them, or delete {self.folder} "
                "to begin again."
            )
        return None

    def close(self):
        """Waits for everything to be written."""
        for manager in self._managers.values():
            manager.close()
