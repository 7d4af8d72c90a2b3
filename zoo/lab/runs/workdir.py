"""The folder of a run: its experiment, its lexicon, its checkpoints and its results.

experiment.json   the resolved experiment        checkpoints/   last (two) and best (two)
lexicon.npz       the words                      results/       figures with their passports
metrics.jsonl, tensorboard/                      metrics of training
start.json        origin of start values, after a warm start
training.lock     the process that trains in the folder
texts.npz         hashes of the sentences that the run is trained and selected on

An exported run has params.safetensors in place of checkpoints.
"""

import contextlib
import dataclasses
import hashlib
import json
import logging
import math
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo import configuration
from zoo.base import lazy, regular_files, strict_json, temporary_files
from zoo.base.arrays import memory
from zoo.base.trust import permissions, user_modules
from zoo.configuration import fields
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.runs import checksums, location
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel
from zoo.sources import files

logger = logging.getLogger(__name__)
METRICS = "metrics.jsonl"
# Files and folders that training writes to in an existing run.
_WRITTEN = ("checkpoints/last", "checkpoints/best", "tensorboard", METRICS, location.FILE)
_START = {"workdir": str, "parts": [str]}


def check_folders(paths: Iterable[str | pathlib.Path]):
    """Checks that no two paths are the same folder, which would count as two runs."""
    first: dict[str, str | pathlib.Path] = {}
    for path in paths:
        whole = location.identity(path)
        if whole in first:
            raise UserError(f"{first[whole]} and {path} are one folder: give each run once.")
        first[whole] = path


class Workdir:
    """A run's folder, on a disk or in a bucket."""

    def __init__(self, path: Any):
        """Names a folder, which need not exist yet."""
        self.path: Any = location.path_of(path)

    @property
    def _experiment_file(self):
        return self.path / "experiment.json"

    def name(self, experiment: Experiment):
        """Permits the paths and modules of an experiment that no other person's recipe names."""
        permissions.name_unclosed(permissions.names_in(configuration.to_json(experiment)))

    def check(self, experiment: Experiment):
        """Checks that the folder can hold a run of this experiment, and writes nothing."""
        whole = location.absolute(self.path)
        if set("[]") & set(str(whole)):
            # orbax takes them for glob patterns and leaves checkpoints that cannot be read.
            raise UserError(f"{whole}: checkpoints need a folder without [ or ] in its path.")
        if is_exported(self.path):
            raise UserError(
                f"{self.path} is an exported run, which is not trained further: give another folder"
                f", and --set init_from={self.path} to start from its parameters."
            )
        self.name(experiment)
        new = configuration.to_json(experiment)
        if self.exists():
            # A run may change its devices.
            kept = dataclasses.replace(self.experiment(), parallel=experiment.parallel)
            old = configuration.to_json(kept)
            if difference := configuration.first_difference(old, new):
                further = ""
                if difference.startswith("training."):
                    further = f"; to train its model further, add --set init_from={self.path}"
                raise UserError(
                    f"{self.path} holds another experiment ({difference}): give the settings that "
                    f"it was made with to resume it, or another folder{further}."
                )
            location.check_free(self.path)
            for name in ("", *_WRITTEN):
                location.check_writable(self.path / name)
            return
        with location.reaching(self.path):
            there = self.path.exists()
            if there and not self._is_empty():
                raise UserError(f"{self.path} exists and is not a run of Zoo: give another folder.")
        if there:
            location.check_writable(self.path)
        elif not location.is_bucket(self.path):
            temporary_files.check_place(self.path)
        if experiment.init_from:  # a resumed run does not need it
            files.check_path(experiment.init_from)
            try:
                Workdir(experiment.init_from)._read_experiment()
            except UserError as error:
                raise UserError(f"init_from: {error}") from error

    def _is_empty(self):
        """Whether the folder is empty but for temporary files of a `claim` that was killed."""
        return self.path.is_dir() and all(
            temporary_files.is_of(path, self._experiment_file) for path in self.path.iterdir()
        )

    def claim(self, experiment: Experiment):
        """Makes the folder, writes the experiment there, and notes the run as the user's own."""
        self.check(experiment)
        if not self.exists():
            with location.reaching(self.path):
                self._write(experiment)
        recipe = self._read_experiment()
        if permissions.all_open(permissions.names_in(recipe)):
            note(recipe, self.path)

    def _write(self, experiment):
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if error.errno in temporary_files.FULL:
                raise
            raise UserError(
                f"{self.path} cannot be made ({error.strerror}): give another folder."
            ) from error
        text = json.dumps(configuration.to_json(experiment), indent=2, ensure_ascii=False) + "\n"
        if not location.write_new(
            self._experiment_file, lambda path: path.write_text(text, encoding="utf-8")
        ):
            self.check(experiment)  # another process has just begun a run here

    def _read_experiment(self):
        if location.is_bucket(self.path):
            with location.reaching(self.path):
                is_export = (self.path / RECORD).exists()
            if is_export:
                raise UserError(
                    f"{self.path} is an export in a bucket: fetch it with `zoo pull {self.path} "
                    "DIR`, and give DIR."
                )
        try:
            recipe = strict_json.read(self._experiment_file)
        except UserError as error:
            reason = str(error).removesuffix(": put back a copy of it.")
            raise UserError(
                f"{self.path} does not hold a run that can be read ({reason}): give the folder of "
                "a training run."
            ) from error
        self.file("experiment.json")
        return recipe

    def file(self, name: str) -> Any:
        """Returns the path of a file of the run, whose checksum is compared in an export."""
        if is_exported(self.path):
            check_exported(self.path, name)
        return self.path / name

    def exists(self) -> bool:
        """Whether the folder holds an experiment; UserError if the folder cannot be read."""
        try:
            with location.reaching(self.path):
                return self._experiment_file.exists()
        except OSError as error:  # a name that is too long, or a folder that may not be looked into
            raise UserError(
                f"{self.path} cannot be looked up ({error.strerror}): give another folder."
            ) from error

    def experiment(self) -> Experiment:
        """Reads the experiment of the folder; imports other people's code only where permitted."""
        saved = self._read_experiment()
        modules = noted_modules(saved)
        if modules is not None:  # the run is the user's own; see `zoo.base.trust.permissions`
            permissions.name(permissions.names_in(saved))
            for folder in modules:
                user_modules.look_in(folder)
        return experiment_of(saved, self.path, self._experiment_file)

    def keep_lexicon(self, lexicon: Lexicon, name: str = "lexicon"):
        """Writes a lexicon, or checks that it equals the lexicon of the run."""
        path = self.path / f"{name}.npz"
        if not path.exists():
            location.write_whole(path, lexicon.save)
        elif Lexicon.load(path).digest() != lexicon.digest():
            raise UserError(
                f"the data have changed since {path} was written: words, counts or features "
                "differ; put the data back or give another folder."
            )

    def lexicon(self, name: str = "lexicon") -> Lexicon:
        """Reads a lexicon of the run; a language model has one only, "lexicon"."""
        return Lexicon.load(self.file(f"{name}.npz"))

    def keep_start(self, record: dict):
        """Writes the origin of the run's start values; see `zoo.lab.training.warm_start.Start`."""
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        location.write_text(self.path / "start.json", text)

    def start(self) -> dict | None:
        """Reads the record of `keep_start`; None for a run without a warm start."""
        path = self.file("start.json")
        return strict_json.read(path, _START) if path.exists() else None

    def recipe_digest(self) -> str:
        """Computes the SHA-256 of the file experiment.json; "" without one."""
        path = self._experiment_file
        return hashlib.sha256(read_bytes(path)).hexdigest() if path.exists() else ""

    def recipe_digest_but_seed(self) -> str:
        """Hashes the recipe without its seed and devices: runs of several seeds share it."""
        if not self.exists():
            return ""
        recipe = self._read_experiment()
        recipe = {name: value for name, value in recipe.items() if name != "parallel"}
        training = {**recipe.get("training", {}), "seed": None}
        return checksums.of_json({**recipe, "training": training})

    def data_digest(self) -> str:
        """Reads the digest of the training and validation text from a checkpoint or an export."""
        if is_exported(self.path):
            return export_record(self.path)["data"]
        for kind in ("best", "last"):
            with self._kept(kind) as kept:
                if kept and (data := kept.progress(kind).get("data")):
                    return data
        return ""

    @contextlib.contextmanager
    def _kept(self, kind: str) -> Iterator[Any]:
        """Yields the checkpoints of a kind, to be read; None if there are none."""
        from zoo.lab.runs.checkpoints import (  # orbax, which exports do not need
            Checkpoints,
            any_kept,
        )

        folder = self.path / "checkpoints"
        if not any_kept(folder, kind):
            yield None
            return
        with contextlib.closing(Checkpoints(folder, (kind,), read_only=True)) as kept:
            yield kept

    def params(
        self, experiment: Experiment, lexicon: Lexicon, log=logger.warning
    ) -> tuple[int, Any]:
        """Reads the best parameters of the run."""
        step, params, _ = self.best(experiment, lexicon, log)
        return step, jax.tree.map(jnp.asarray, params)

    def finished(self) -> bool | None:
        """Whether training is complete; None of an export, and where only its best is left."""
        if is_exported(self.path):
            return None
        with self._kept("last") as kept:
            return kept.progress("last").get("finished") if kept else None

    def other_lexicons(self, experiment: Experiment) -> tuple[Lexicon, ...]:
        """Reads the lexicons of the run beside the first; a language model has none."""
        return tuple(map(self.lexicon, experiment.model.lexicon_names[1:]))

    def best(
        self, experiment: Experiment, lexicon: Lexicon, log=logger.warning
    ) -> tuple[int, Any, dict]:
        """Reads (step, parameters on the host, progress) of the best checkpoint; see `params`."""
        lexicons = lexicon, *self.other_lexicons(experiment)

        def like():
            model = experiment.model
            return jax.eval_shape(lambda key: model.init(key, *lexicons), jax.random.key(0))

        if is_exported(self.path):
            arrays = read_arrays(self.path)
            check_sizes(experiment, [one.shape for one in arrays.values()], str(self.path))
            return *read_params(self.path, arrays, like()), {}
        restored = None
        with self._kept("best") as kept:
            if kept:
                check_sizes(experiment, kept.shapes("best"), str(kept.folder / "best"))
                restored = kept.restore("best", {"params": like()}, log)
        if restored is None:
            raise UserError(
                f"{self.path} has no checkpoint of a validated model yet: train it further."
            )
        step, arrays, progress = restored
        return step, jax.tree.map(np.asarray, arrays["params"]), progress


def experiment_of(recipe: dict, origin: Any, file: Any) -> Experiment:
    """Makes the experiment of a recipe in JSON; errors name its run and its file."""
    try:
        experiment = configuration.from_json(recipe, origin=origin)
    except UserError as error:
        raise UserError(f"{file}: {error}") from error
    if not isinstance(experiment, Experiment):
        raise UserError(
            f"{file} holds a {type(experiment).__name__}, not an Experiment: put back a copy of it,"
            " or give the folder of a training run."
        )
    return experiment


# ---- checks of a recipe's sizes against stored parameters and memory, before its model is built
# A recipe may come from somebody else: a zero too many, or a billion layers, would take hours or
# all memory before its parameters are found not to fit. All sizes here are lower bounds.

# Fields that count layers. Each layer has parameters of its own.
_REPEATS = ("layers", "highway")
# Bytes of the host's memory that tracing and compiling a layer takes at least (measured: 2.6 MB for
# each layer of an LSTM of 8 cells).
_PROGRAM = 10**6
# Fields that are the length of an axis of parameters, or of a sum of several axes.
_OF_PARAMETERS = (
    *("size", "units", "projection", "letter_size", "correction", "components", "filters"),
    *("widths", "order", "words"),
)
# Fields that are at most the length of some array of float32 or int32.
_LENGTHS = (*_OF_PARAMETERS, "samples", "classes", "most", "stacks", "depth", "longest")
_NUMBER = 4  # bytes of a float32 or an int32


def whole_numbers(component: Any) -> Iterator[tuple[str, str, int]]:
    """Yields (dotted path, name, value) of each whole number in a component, nested or not."""
    for path, name, value in fields.values(component):
        if isinstance(value, int) and not isinstance(value, bool):
            yield path, name, value


def of_model(model: Any) -> Iterator[tuple[str, int]]:
    """Yields (field, least bytes that its value needs) for the sizes of a model."""
    for path, name, value in whole_numbers(model):
        if name in _LENGTHS:
            yield f"model.{path}={value}", value * _NUMBER
        if name in _REPEATS:
            yield f"model.{path}={value}", value * _PROGRAM


def of_batches(model: Any, recipe: Any, where: str, batch_rows: str) -> tuple[str, int]:
    """Returns (fields, least bytes) of one batch of training or evaluation."""
    count, length, vector = getattr(recipe, batch_rows), 1, _NUMBER  # pairs have a word at least
    of_length = ""
    if isinstance(model, LanguageModel):
        length, vector = recipe.length, _NUMBER * model.embedding.size  # into the core
        of_length = f" x {where}.length={length}"
    # Words, targets, positions and two masks.
    needed = count * length * (4 + 4 + 8 + 1 + 1) + count * length * vector
    return f"{where}.{batch_rows}={count}{of_length}", needed


def check_sizes(experiment: Any, shapes: Sequence[tuple[int, ...]] | None, where: str):
    """Checks the sizes of a recipe against the stored parameters and the memory."""
    model = experiment.model
    if shapes is not None:
        numbers = sum(map(math.prod, shapes))
        for path, name, value in whole_numbers(model):
            most = len(shapes) if name in _REPEATS else numbers
            if name in (*_REPEATS, *_OF_PARAMETERS) and value > most:
                raise UserError(
                    f"{where} has {len(shapes)} arrays of {numbers:,} numbers in all, and the "
                    f"recipe has model.{path}={value}: put back a copy of the run."
                )
    for what, needed in of_model(model):
        memory.check(what, needed, memory.host_memory())
    memory.check(*of_batches(model, experiment.evaluation, "evaluation", "batch"))


# ----- exported runs, whose parameters are one file of safetensors in place of checkpoints
# An exported run does not have an optimiser state and cannot be trained further; everything else
# that reads a run reads it too. The record has the SHA-256 of itself and of all files but the
# results, the model card and load.py. They are compared on reading.

PARAMS = "params.safetensors"
RECORD = "export.json"
_EXPORT_RECORD = {"checkpoint": int, "sha256": dict, "data": str, "digest": str}


def is_exported(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run, whole or damaged."""
    # Not by pathlib, which raises an error for a name that is too long. Buckets hold no exports.
    return os.path.exists(path / RECORD) or os.path.exists(path / PARAMS)


def is_whole(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run with its record and its parameters."""
    return os.path.isfile(path / RECORD) and os.path.isfile(path / PARAMS)


def safetensors() -> Any:
    """Imports the module `safetensors.numpy`."""
    with lazy.extra():
        import safetensors.numpy
    return safetensors.numpy


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Copies the leaves of a pytree to the host, {path such as "head/bias": array}."""
    leaves = checksums.leaf_names(tree)
    return {name: np.ascontiguousarray(np.asarray(leaf)) for name, leaf in leaves.items()}


def export_record(path: pathlib.Path) -> dict:
    """Reads the record of an export: its checkpoint's step, SHA-256 of files, and more."""
    kept = strict_json.read(path / RECORD, _EXPORT_RECORD)
    _compare_digest(path / RECORD, kept.pop("digest"), checksums.of_json(kept))
    return kept


def check_exported(path: pathlib.Path, name: str):
    """Checks the SHA-256 of a file of an exported run, unless neither it nor the file exists."""
    known, file = export_record(path)["sha256"].get(name), path / name
    if known is None:
        if file.exists():
            raise UserError(
                f"{path / RECORD} has no checksum of {name}: put back a copy of the export, or "
                "export the run again."
            )
        return
    _compare_digest(file, known, hashlib.sha256(read_bytes(file)).hexdigest())


def _compare_digest(file, known, digest):
    if known != digest:
        raise UserError(f"{file} is not as it was written: put back a copy of it.")


def read_bytes(file: Any) -> bytes:
    """Reads a file of a run."""
    try:
        return regular_files.read_bytes(file)
    except OSError as error:
        raise UserError(
            f"{file} cannot be read ({error.strerror or error}): put back a copy of it."
        ) from error


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads the arrays of an exported run's parameters, whose digest `read_params` compares."""
    file, load = path / PARAMS, safetensors().load
    content = read_bytes(file)
    try:
        return load(content)
    except Exception as error:  # safetensors has errors of its own
        raise UserError(f"{file} cannot be read ({error}): put back a copy of it.") from error


def read_params(path: pathlib.Path, arrays: dict[str, np.ndarray], like: Any) -> tuple[int, Any]:
    """Returns (checkpoint, parameters) of an exported run, made of its arrays."""
    kept, names = export_record(path), checksums.leaf_names(like)
    if difference := checksums.first_difference(arrays, names):
        name, there, here = difference
        raise UserError(
            f"{path / PARAMS} is of another model: {name} is {there} there, and {here} in the "
            "recipe; put back a copy of the export."
        )
    check_exported(path, PARAMS)
    leaves = [arrays[name] for name in names]
    return kept["checkpoint"], jax.tree.unflatten(jax.tree.structure(like), leaves)


# ---- the runs that this user made on this machine: a note of each recipe, in a folder of state
# The name of a note is the SHA-256 of the recipe in the run's experiment.json. Another recipe has
# another hash, and other users cannot write notes there; a copy of a run counts as the user's own
# too. So the paths and modules that a noted recipe names are permitted without being named again.


def notes_folder() -> pathlib.Path:
    """Returns zoo/runs in $XDG_STATE_HOME, or in ~/.local/state unless that is an absolute path."""
    given = pathlib.Path(os.environ.get("XDG_STATE_HOME", ""))
    state = given if given.is_absolute() else pathlib.Path.home() / ".local" / "state"
    return state / "zoo" / "runs"


def _note(recipe: dict) -> pathlib.Path:
    return notes_folder() / f"{checksums.of_json(recipe)}.json"


def note(recipe: dict, workdir: Any):
    """Notes the recipe of a run; logs a warning if the note cannot be written."""
    note = {"workdir": str(location.absolute(workdir)), "modules": user_modules.folders()}
    try:
        path = _note(recipe)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        location.write_text(path, json.dumps(note, ensure_ascii=False) + "\n")
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        logger.warning(
            "%s is not noted as your own run (%s): to judge it, absolute paths in its recipe need "
            "--trust-paths, and functions and components of your own --trust NAME.",
            workdir,
            error,
        )


def noted_modules(recipe: dict) -> list[str] | None:
    """Returns the folders of modules that were permitted when a run was made."""
    try:
        text = _note(recipe).read_bytes()
    except (OSError, RuntimeError):
        return None
    note = strict_json.object_or_none(text) or {}
    try:
        strict_json.check(note, {"modules": [str]})
    except ValueError:
        return []  # the note exists, although it is damaged
    return note["modules"]
