"""Checkpoints through orbax: the last two states of a run, and its two best parameters.

A state is everything that a resumed run needs to continue bit for bit: parameters, optimiser state,
carry and step as arrays; the position in the data, the best figure so far and sums as JSON.
Checksums of all of these are kept in the same checkpoint and compared on reading.
"""

import dataclasses
import logging
import os
import shutil
from typing import Any

import jax
import numpy as np

from zoo.base import lazy, regular_files, temporary_files
from zoo.errors import UserError
from zoo.lab.runs import checksums, location

with lazy.extra():
    import orbax.checkpoint as ocp

logger = logging.getLogger(__name__)
# The folder to which a checkpoint is moved, by one renaming, before it is deleted.
DELETED = "deleted"


def has_checkpoints(folder: Any, kind: str = "last") -> bool:
    """Whether a folder has checkpoints of a kind, "last" or "best", readable or not."""
    kind_folder = folder / kind
    with location.convert_errors(folder):
        return kind_folder.is_dir() and any(path.name.isdecimal() for path in kind_folder.iterdir())


class Checkpoints:
    """The checkpoints under one folder, `last` and `best`, two of each kind."""

    def __init__(
        self, folder: Any, kinds: tuple[str, ...] = ("last", "best"), read_only: bool = False
    ):
        """Opens a folder of checkpoints, or creates it, and removes what a kill left there;
        `read_only` changes nothing. Raises UserError for a pipe or device in it."""
        self.folder = location.absolute(folder)
        # orbax would wait for ever on a pipe or device.
        for path in () if location.is_bucket(folder) else self.folder.rglob("*"):
            try:
                regular_files.open_regular(path).close()
            except OSError as error:
                if error.errno is None:  # not of the system, as for a folder or a file just deleted
                    raise UserError(f"{path.parent}/{error}: put back a copy of it.") from error
        if not read_only and jax.process_index() == 0:
            for kind in kinds:
                _remove_leftovers(self.folder / kind)
        # orbax's own `read_only` logs two warnings for each folder that is opened. It is not
        # needed: only `save` writes and deletes.
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None if read_only else 2,
            create=not read_only,
            # In a bucket, where nothing can be renamed, orbax deletes objects one by one; a half
            # deleted checkpoint is found by its checksums.
            todelete_subdir=None if read_only or location.is_bucket(folder) else DELETED,
            enable_async_checkpointing=False,
        )
        if read_only and jax.process_count() > 1:
            # Perhaps only this process reads: orbax must not wait for the others.
            this_process = {jax.process_index()}
            multiprocessing = ocp.options.MultiprocessingOptions(
                primary_host=jax.process_index(), active_processes=this_process
            )
            options = dataclasses.replace(options, multiprocessing_options=multiprocessing)
        self._managers = {
            kind: ocp.CheckpointManager(self.folder / kind, options=options) for kind in kinds
        }

    def save(self, kind: str, step: int, arrays: Any, progress: dict):
        """Writes a checkpoint atomically, each process its shards; deletes an earlier one of the
        same step before, and all but the last two after. Raises UserError if the disk is full."""
        manager = self._managers[kind]
        if step in manager.all_steps():
            manager.delete(step)
            self._delete_moved(kind)
        save_arguments = jax.tree.map(_save_arguments, arrays)
        digests = {
            "arrays": checksums.checksums(arrays),
            "progress": checksums.json_digest(progress),
        }
        arguments = ocp.args.Composite(
            arrays=ocp.args.StandardSave(arrays, save_args=save_arguments),
            progress=ocp.args.JsonSave(progress),
            digests=ocp.args.JsonSave(digests),
        )
        try:
            manager.save(step, args=arguments, force=True)
        except Exception as error:
            # By its text: orbax and tensorstore wrap the system's error.
            text, full = str(error).lower(), temporary_files.FULL
            code = next((code for code in full if os.strerror(code).lower() in text), None)
            if code is None:
                raise
            reason, remedy = temporary_files.FULL[code]
            raise UserError(
                f"{reason}: the checkpoint of step {step} could not be written to "
                f"{self.folder / kind}; the earlier ones are whole; {remedy} and start again."
            ) from error
        self._delete_moved(kind)

    def _delete_moved(self, kind):
        """Deletes checkpoints that orbax moved to the folder `DELETED`; ignores failures."""
        if jax.process_index() == 0 and not location.is_bucket(self.folder):
            shutil.rmtree(self.folder / kind / DELETED, ignore_errors=True)

    def steps(self, kind: str) -> list[int]:
        """Returns the steps of the checkpoints of a kind, the newest first."""
        return sorted(self._managers[kind].all_steps(), reverse=True)

    def shapes(self, kind: str) -> list[tuple[int, ...]] | None:
        """Returns the shapes of the newest readable checkpoint's arrays, without reading them; None
        if there is none."""
        for step in self.steps(kind):
            try:
                folder = self.folder / kind / str(step) / "arrays"
                metadata = ocp.StandardCheckpointHandler().metadata(folder)
                tree = getattr(metadata, "tree", metadata)
                leaves = checksums.leaf_names(tree, is_leaf=lambda x: hasattr(x, "shape"))
                return [tuple(leaf.shape) for leaf in leaves.values()]
            except Exception:  # a damaged file may raise any
                continue
        return None

    def progress_file(self, kind: str, step: int) -> Any:
        """Returns the path of the file that holds a checkpoint's progress."""
        return self.folder / kind / str(step) / "progress" / "metadata"

    def restore(self, kind: str, like: Any, log=logger.warning) -> tuple[int, Any, dict] | None:
        """Reads (step, arrays, progress) of the newest undamaged checkpoint; None without
        checkpoints, UserError if all are damaged. `like`: a pytree with the arrays' shapes, dtypes
        and shardings."""
        first_failure = None
        for step in self.steps(kind):
            try:
                return step, *self._read(kind, step, like)
            except Exception as error:  # a damaged file may raise any
                reason = _describe_error(error)
                first_failure = first_failure or f"step {step}: {reason}"
                log(
                    f"the checkpoint of step {step} in {self.folder / kind} is damaged and passed "
                    f"over ({reason})."
                )
        if first_failure:
            raise UserError(
                f"none of the checkpoints in {self.folder / kind} can be read ({first_failure}): "
                "put back a copy of one, resume with the version of Zoo that wrote them, or delete "
                f"{self.folder} to begin again."
            )
        return None

    def progress(self, kind: str) -> dict:
        """Reads the progress of the newest checkpoint with a readable progress; {} if none."""
        for step in self.steps(kind):
            try:
                items = ocp.args.Composite(progress=ocp.args.JsonRestore())
                progress = self._managers[kind].restore(step, args=items)["progress"]
            except Exception:  # damaged: `restore` logs it when the arrays are read
                continue
            if isinstance(progress, dict):
                return progress
        return {}

    def _read(self, kind, step, like):
        """Reads (arrays, progress) of a checkpoint; raises _Damaged if layout or checksums differ,
        and orbax's own errors."""
        manager = self._managers[kind]
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype), like)
        targets = ocp.args.StandardRestore(jax.tree.map(_restore_target, like))
        items = ocp.args.Composite(
            arrays=targets, progress=ocp.args.JsonRestore(), digests=ocp.args.JsonRestore()
        )
        restored = manager.restore(step, args=items)
        arrays, progress = restored["arrays"], restored["progress"]
        if not isinstance(progress, dict):
            raise _Damaged("its progress is not a JSON object")
        # orbax ignores the wanted shape, and converts dtypes.
        metadata = manager.item_metadata(step)["arrays"].tree
        saved_leaves = checksums.leaf_names(metadata, is_leaf=lambda x: hasattr(x, "shape"))
        difference = checksums.first_difference(saved_leaves, checksums.leaf_names(shapes))
        if difference:
            name, saved, expected = difference
            raise _Damaged(f"{name} is {saved} there, and {expected} in the model")
        digests = restored["digests"]
        for name, checksum in checksums.checksums(arrays).items():
            if digests["arrays"].get(name) != checksum:
                raise _Damaged(f"{name} is not as it was saved")
        if digests["progress"] != checksums.json_digest(progress):
            raise _Damaged("its progress is not as it was saved")
        return arrays, progress

    def close(self):
        """Closes orbax's managers."""
        for manager in self._managers.values():
            manager.close()


def _remove_leftovers(folder: Any):
    """Deletes half written and half deleted checkpoints, left by a kill, of a kind's folder or
    bucket; ignores failures in folders only."""
    if location.is_bucket(folder):
        for path in folder.iterdir() if folder.exists() else ():
            # orbax's last object is missing in those that are half written.
            if path.name.isdecimal() and not (path / "commit_success.txt").exists():
                path.rmtree()
        return
    for pattern in (DELETED, "*.orbax-checkpoint-tmp*"):
        for path in folder.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


def _save_arguments(leaf) -> ocp.SaveArgs:
    """Returns orbax's arguments to save a leaf: chunks of a shard's bytes, if it is sharded."""
    if not checksums.is_shared(leaf) or leaf.is_fully_replicated:
        return ocp.SaveArgs()
    return ocp.SaveArgs(chunk_byte_size=max(1, leaf.addressable_shards[0].data.nbytes))


def _restore_target(leaf):
    """Returns the target into which orbax restores a leaf: its sharding, or the host."""
    if getattr(leaf, "sharding", None) is not None:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    # A numpy array asks for the host, however it was sharded; a broadcast zero takes no memory.
    return np.broadcast_to(np.zeros((), leaf.dtype), np.shape(leaf))


class _Damaged(Exception):
    """A checkpoint that orbax can read, but whose content is damaged or of another model."""


def _describe_error(error):
    """Formats why a checkpoint could not be read: the first line of the error, for a message."""
    text = str(error).strip()
    if isinstance(error, _Damaged):
        return text
    return f"{type(error).__name__}: {text.splitlines()[0][:200] if text else error!r}"
