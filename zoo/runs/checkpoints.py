"""Checkpoints through orbax: the last two states of a run, and its two best parameters.

A state is everything that a resumed run needs to go on bit for bit: parameters, optimiser state,
carry and step as arrays; cursor, best-so-far and sums as JSON. Digests of all of it are kept in the
same checkpoint and compared when it is read.
"""

import dataclasses
import os
import shutil
from typing import Any

import jax
import numpy as np

from zoo import lazy, temporary_files
from zoo.errors import UserError
from zoo.runs import digests, location

with lazy.extra():
    import orbax.checkpoint as ocp

# Where a checkpoint goes first, by one renaming, that is to be deleted.
DELETED = "deleted"


def any_kept(folder: Any, kind: str = "last") -> bool:
    """Whether there are checkpoints under a folder, which is left as it is."""
    of_kind = folder / kind
    with location.reaching(folder):
        return of_kind.is_dir() and any(path.name.isdecimal() for path in of_kind.iterdir())


class Checkpoints:
    """The checkpoints under one folder, `last` and `best`, two of each kind."""

    def __init__(
        self,
        folder: Any,
        kinds: tuple[str, ...] = ("last", "best"),
        read_only: bool = False,
    ):
        """Opens or makes the folder; if `read_only` it is there, and nothing in it is changed.

        Otherwise the processes of this run alone write there, and process 0 removes what a kill has
        left: a checkpoint that was not yet whole, or that was being deleted.
        """
        self.folder = location.absolute(folder)
        if not read_only and jax.process_index() == 0:
            for kind in kinds:
                _remove_leftovers(self.folder / kind)
        # orbax's own `read_only` has two warnings for each folder that is opened, and holds back
        # what nobody asks for here: nothing is saved or deleted but by `save`.
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None if read_only else 2,
            create=not read_only,
            # In a bucket, where nothing is renamed, orbax deletes objects one by one; a checkpoint
            # that is left in part is known by its digests.
            todelete_subdir=None if read_only or location.is_bucket(folder) else DELETED,
            enable_async_checkpointing=False,
        )
        if read_only and jax.process_count() > 1:
            # This process alone may read another run's: orbax would wait for the others.
            alone = {jax.process_index()}
            multiprocessing = ocp.options.MultiprocessingOptions(
                primary_host=jax.process_index(), active_processes=alone
            )
            options = dataclasses.replace(options, multiprocessing_options=multiprocessing)
        self._managers = {
            kind: ocp.CheckpointManager(self.folder / kind, options=options) for kind in kinds
        }

    def save(self, kind: str, step: int, arrays: Any, progress: dict):
        """Writes a checkpoint whole or not at all; one of the same step is replaced.

        Arrays that several devices share out are written part by part, by all processes together,
        and nowhere put together.
        """
        manager = self._managers[kind]
        if step in manager.all_steps():
            manager.delete(step)
            self._empty(kind)
        parts = jax.tree.map(_parts, arrays)
        arguments = ocp.args.Composite(
            arrays=ocp.args.StandardSave(arrays, save_args=parts),
            progress=ocp.args.JsonSave(progress),
            digests=ocp.args.JsonSave(_digests(arrays, progress)),
        )
        try:
            manager.save(step, args=arguments, force=True)
        except Exception as error:
            number = _full(error)
            if number is None:
                raise
            what, remedy = temporary_files.FULL[number]
            raise UserError(
                f"{what}: the checkpoint of step {step} could not be written to "
                f"{self.folder / kind}; the earlier ones are whole; {remedy} and start again."
            ) from error
        self._empty(kind)

    def _empty(self, kind):
        """Deletes what orbax has put aside to be deleted."""
        if jax.process_index() == 0 and not location.is_bucket(self.folder):
            shutil.rmtree(self.folder / kind / DELETED, ignore_errors=True)

    def steps(self, kind: str) -> list[int]:
        """The steps of the checkpoints that are there, the newest first."""
        return sorted(self._managers[kind].all_steps(), reverse=True)

    def shapes(self, kind: str) -> list[tuple[int, ...]] | None:
        """The shapes of the newest checkpoint's arrays, none of which is read; None if they cannot
        be told: `restore` says why."""
        for step in self.steps(kind):
            try:
                folder = self.folder / kind / str(step) / "arrays"
                metadata = ocp.StandardCheckpointHandler().metadata(folder)
                tree = getattr(metadata, "tree", metadata)
                leaves = digests.leaf_names(tree, is_leaf=lambda x: hasattr(x, "shape"))
                return [tuple(leaf.shape) for leaf in leaves.values()]
            except Exception:  # a damaged file shows itself in many ways
                continue
        return None

    def progress_file(self, kind: str, step: int) -> Any:
        """Where the progress of a checkpoint is kept, for messages."""
        return self.folder / kind / str(step) / "progress" / "metadata"

    def restore(self, kind: str, like: Any, log=print) -> tuple[int, Any, dict] | None:
        """(step, arrays, progress) of the newest checkpoint that can be read; None without any.

        Args:
          like: a pytree of arrays or shapes as they were saved. What has a sharding is read into
            it, each device its part, and the rest onto the host.
          log: told of each checkpoint that is damaged or of another model, and passed over.

        Raises:
          UserError: there are checkpoints, and none of them can be read.
        """
        first = None
        for step in self.steps(kind):
            try:
                return step, *self._read(kind, step, like)
            except Exception as error:  # a damaged file shows itself in many ways
                reason = _reason(error)
                first = first or f"step {step}: {reason}"
                log(
                    f"the checkpoint of step {step} in {self.folder / kind} is damaged and passed "
                    f"over ({reason})."
                )
        if first:
            raise UserError(
                f"none of the checkpoints in {self.folder / kind} can be read ({first}): put back "
                "a copy of one, go on with the version of the zoo that wrote them, or delete "
                f"{self.folder} to begin again."
            )
        return None

    def progress(self, kind: str) -> dict:
        """The progress of the newest checkpoint alone, without its arrays; {} if there is none that
        can be read."""
        for step in self.steps(kind):
            try:
                items = ocp.args.Composite(progress=ocp.args.JsonRestore())
                progress = self._managers[kind].restore(step, args=items)["progress"]
            except Exception:  # damaged: `restore` says so, of the checkpoints that are used
                continue
            if isinstance(progress, dict):
                return progress
        return {}

    def _read(self, kind, step, like):
        """(arrays, progress) of a checkpoint; _Damaged, or any error of orbax, if it is."""
        manager = self._managers[kind]
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype), like)
        wanted = ocp.args.StandardRestore(jax.tree.map(_wanted, like))
        items = ocp.args.Composite(
            arrays=wanted, progress=ocp.args.JsonRestore(), digests=ocp.args.JsonRestore()
        )
        restored = manager.restore(step, args=items)
        arrays, progress = restored["arrays"], restored["progress"]
        if not isinstance(progress, dict):
            raise _Damaged("its progress is no JSON object")
        # orbax gives another shape back as it is, and turns one dtype into another.
        _check_layout(manager.item_metadata(step)["arrays"], shapes)
        if difference := _first_difference(restored["digests"], _digests(arrays, progress)):
            raise _Damaged(f"{difference} is not as it was saved")
        return arrays, progress

    def close(self):
        """Waits for everything to be written."""
        for manager in self._managers.values():
            manager.close()


def _full(error: Exception) -> int | None:
    """Which of `temporary_files.FULL` an error is; None if none.

    orbax and tensorstore wrap the system's error in their own; only its text remains.
    """
    text = str(error).lower()
    return next((n for n in temporary_files.FULL if os.strerror(n).lower() in text), None)


def _remove_leftovers(folder: Any):
    """Removes what a killed process left among checkpoints, as far as that can be."""
    if location.is_bucket(folder):
        _remove_uncommitted(folder)
        return
    for pattern in (DELETED, "*.orbax-checkpoint-tmp*"):
        for path in folder.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


def _remove_uncommitted(folder):
    """Removes the checkpoints of a bucket to which orbax did not add its last object."""
    for path in folder.iterdir() if folder.exists() else ():
        if path.name.isdecimal() and not (path / "commit_success.txt").exists():
            path.rmtree()


def _parts(leaf) -> ocp.SaveArgs:
    """Of which size a leaf is written: in one, or in parts of a device's, not to be read whole."""
    if not digests.is_shared(leaf) or leaf.is_fully_replicated:
        return ocp.SaveArgs()
    return ocp.SaveArgs(chunk_byte_size=max(1, leaf.addressable_shards[0].data.nbytes))


def _wanted(leaf):
    """What orbax is told of a leaf: its sharding, or by an array of NumPy's, which takes no memory,
    that it is to be read onto the host, however it was saved."""
    if getattr(leaf, "sharding", None) is not None:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    return np.broadcast_to(np.zeros((), leaf.dtype), np.shape(leaf))


class _Damaged(Exception):
    """A checkpoint that orbax can read and that is not what was saved, or not for this model."""


def _reason(error):
    """One line on an error."""
    text = str(error).strip()
    if isinstance(error, _Damaged):
        return text
    return f"{type(error).__name__}: {text.splitlines()[0][:200] if text else error!r}"


def _digests(arrays, progress):
    """What is kept in a checkpoint to know it again."""
    return {"arrays": digests.checksums(arrays), "progress": digests.of_json(progress)}


def _first_difference(kept, read) -> str | None:
    """The first array in which two of `_digests` differ, or the progress; None if none does."""
    for name, digest in read["arrays"].items():
        if kept["arrays"].get(name) != digest:
            return name
    return "its progress" if kept["progress"] != read["progress"] else None


def _check_layout(metadata, shapes):
    """Raises _Damaged unless the arrays on the disk have these shapes and dtypes."""
    there = digests.leaf_names(metadata.tree, is_leaf=lambda x: hasattr(x, "shape"))
    here = digests.leaf_names(shapes)
    for name in [*here, *there]:
        saved, expected = (
            digests.layout(leaves[name]) if name in leaves else "missing"
            for leaves in (there, here)
        )
        if saved != expected:
            raise _Damaged(f"{name} is {saved} there, and {expected} in the model")
