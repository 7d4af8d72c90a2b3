"""The folder of a run: its experiment, its lexicon, its checkpoints and its results.

experiment.json   the resolved experiment        checkpoints/   last (two) and best (two)
lexicon.npz       the words                      results/       figures with their passports
metrics.jsonl, tensorboard/                      metrics of training
start.json        origin of start values, after a warm start
training.lock     the process that trains in the folder
texts.npz         hashes of the sentences that the run is trained and selected on

An exported run has params.safetensors in place of checkpoints (`zoo.runs.exported`).
"""

import contextlib
import dataclasses
import hashlib
import json
import logging
import math
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo import configuration, strict_json, temporary_files
from zoo.arrays import memory
from zoo.configuration import fields
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel
from zoo.runs import checksums, exported, known_runs, location
from zoo.runs.seen_texts import SeenTexts
from zoo.sources import files
from zoo.trust import permissions, user_modules

logger = logging.getLogger(__name__)
METRICS = "metrics.jsonl"
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
        """Permits the paths and modules of an experiment that no other person's recipe names.

        See `zoo.trust.permissions`.
        """
        permissions.name_unclosed(permissions.names_in(configuration.to_json(experiment)))

    def check(self, experiment: Experiment):
        """Checks that the folder can hold a run of this experiment, and writes nothing."""
        whole = location.absolute(self.path)
        if set("[]") & set(str(whole)):
            # orbax takes them for glob patterns and leaves checkpoints that cannot be read.
            raise UserError(f"{whole}: checkpoints need a folder without [ or ] in its path.")
        if exported.is_exported(self.path):
            raise UserError(
                f"{self.path} is an exported run, which is not trained further: give another folder"
                f", and --set init_from={self.path} to start from its parameters."
            )
        self.name(experiment)
        new = configuration.to_json(experiment)
        if self.exists():
            old = configuration.to_json(self._as_parallel_as(experiment, self.experiment()))
            if difference := configuration.first_difference(old, new):
                further = ""
                if difference.startswith("training."):
                    further = f"; to train its model further, add --set init_from={self.path}"
                raise UserError(
                    f"{self.path} holds another experiment ({difference}): give the settings that "
                    f"it was made with to resume it, or another folder{further}."
                )
            location.check_free(self.path)
            for name in ("", "checkpoints/last", "checkpoints/best", "tensorboard", METRICS):
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

    @staticmethod
    def _as_parallel_as(other: Experiment, experiment: Experiment) -> Experiment:
        """Copies `parallel` from another experiment: a run may change its devices."""
        return dataclasses.replace(experiment, parallel=other.parallel)

    def _is_empty(self):
        """Whether the folder is empty but for temporary files of a `claim` that was killed."""
        return self.path.is_dir() and all(
            temporary_files.is_of(path, self._experiment_file) for path in self.path.iterdir()
        )

    def claim(self, experiment: Experiment):
        """Makes the folder, writes the experiment there, and notes the run as the user's own.

        A recipe with names that are still closed is not noted; see `zoo.runs.known_runs`.
        """
        self.check(experiment)
        if not self.exists():
            with location.reaching(self.path):
                self._write(experiment)
        recipe = self._read_experiment()
        if permissions.all_open(permissions.names_in(recipe)):
            known_runs.keep(recipe, self.path)

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
            self._check_not_exported()
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
        if exported.is_exported(self.path):
            exported.check(self.path, name)
        return self.path / name

    def _check_not_exported(self):
        """Raises UserError if a bucket holds an export, which can be read from a disk only."""
        with location.reaching(self.path):
            is_export = (self.path / exported.RECORD).exists()
        if is_export:
            raise UserError(
                f"{self.path} is an export in a bucket: fetch it with `zoo pull {self.path} DIR`, "
                "and give DIR."
            )

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
        """Reads the experiment of the folder.

        The paths and modules that the recipe names are permitted if the run is the user's own.
        Otherwise nothing but Zoo is imported, unless the user permits it
        (`zoo.trust.permissions`).
        """
        saved = self._read_experiment()
        modules = known_runs.modules(saved)
        if modules is not None:
            permissions.name(permissions.names_in(saved))
            for folder in modules:
                user_modules.look_in(folder)
        return experiment_of(saved, self.path, self._experiment_file)

    def keep_lexicons(self, lexicons: Mapping[str, Lexicon]):
        """Writes the lexicons of a task, or checks that they equal the lexicons of the run."""
        for name, lexicon in lexicons.items():
            self.keep_lexicon(lexicon, name)

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
        """Writes the origin of the run's start values; see `zoo.training.warm_start.Start`."""
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        location.write_text(self.path / "start.json", text)

    def start(self) -> dict | None:
        """Reads the record of `keep_start`; None for a run without a warm start."""
        path = self.file("start.json")
        return strict_json.read(path, _START) if path.exists() else None

    def keep_texts(self, seen: SeenTexts):
        """Writes the record of the texts that the run is trained and selected on."""
        location.write_whole(self.path / "texts.npz", seen.save)

    def texts(self) -> SeenTexts | None:
        """Returns the texts that `keep_texts` recorded; None without a record."""
        path = self.file("texts.npz")
        return SeenTexts.load(path) if path.exists() else None

    def recipe_digest(self) -> str:
        """Computes the SHA-256 of the file experiment.json; "" without one."""
        path = self._experiment_file
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""

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
        if exported.is_exported(self.path):
            return exported.record(self.path)["data"]
        from zoo.runs.checkpoints import Checkpoints, any_kept  # orbax, which exports do not need

        folder = self.path / "checkpoints"
        for kind in ("best", "last"):
            if any_kept(folder, kind):
                with contextlib.closing(Checkpoints(folder, (kind,), read_only=True)) as kept:
                    if data := kept.progress(kind).get("data"):
                        return data
        return ""

    def params(
        self, experiment: Experiment, lexicon: Lexicon, log=logger.warning
    ) -> tuple[int, Any]:
        """Reads the best parameters of the run."""
        step, params, _ = self.best(experiment, lexicon, log)
        return step, jax.tree.map(jnp.asarray, params)

    def finished(self) -> bool | None:
        """Whether the training has come to its end; None of an export, and where only its best
        checkpoint is left."""
        if exported.is_exported(self.path):
            return None
        from zoo.runs.checkpoints import Checkpoints, any_kept

        folder = self.path / "checkpoints"
        if not any_kept(folder, "last"):
            return None
        with contextlib.closing(Checkpoints(folder, ("last",), read_only=True)) as kept:
            return kept.progress("last").get("finished")

    def other_lexicons(self, experiment: Experiment) -> tuple[Lexicon, ...]:
        """Reads the lexicons of the run beside the first; a language model has none."""
        return tuple(map(self.lexicon, experiment.model.lexicon_names[1:]))

    def best(
        self, experiment: Experiment, lexicon: Lexicon, log=logger.warning
    ) -> tuple[int, Any, dict]:
        """Reads (step, parameters on the host, progress) of the best checkpoint; see `params`."""
        folder = self.path / "checkpoints"
        lexicons = lexicon, *self.other_lexicons(experiment)

        def like():
            model = experiment.model
            return jax.eval_shape(lambda key: model.init(key, *lexicons), jax.random.key(0))

        if exported.is_exported(self.path):
            exported.safetensors()  # raises MissingExtra before the sizes are read
            check_sizes(experiment, exported.shapes(self.path), str(self.path))
            return *exported.read_params(self.path, like()), {}
        from zoo.runs.checkpoints import Checkpoints, any_kept  # orbax, which exports do not need

        restored = None
        if any_kept(folder, "best"):
            with contextlib.closing(Checkpoints(folder, ("best",), read_only=True)) as kept:
                check_sizes(experiment, kept.shapes("best"), str(folder / "best"))
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
REPEATS = ("layers", "highway")
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
        if name in REPEATS:
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
            most = len(shapes) if name in REPEATS else numbers
            if name in (*REPEATS, *_OF_PARAMETERS) and value > most:
                raise UserError(
                    f"{where} has {len(shapes)} arrays of {numbers:,} numbers in all, and the "
                    f"recipe has model.{path}={value}: put back a copy of the run."
                )
    for what, needed in of_model(model):
        memory.check(what, needed, memory.of_host())
    memory.check(*of_batches(model, experiment.evaluation, "evaluation", "batch"))
