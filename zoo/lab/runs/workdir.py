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
import json
import logging
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo import configuration
from zoo.base import strict_json, temporary_files
from zoo.base.trust import permissions, user_modules
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.runs import (
    atomic_writes,
    checksums,
    exported_run,
    location,
    own_runs,
    recipe_sizes,
    training_lock,
)
from zoo.lexicon import Lexicon
from zoo.sources import files

logger = logging.getLogger(__name__)
METRICS = "metrics.jsonl"
# Files and folders that training writes to in an existing run.
_WRITTEN = ("checkpoints/last", "checkpoints/best", "tensorboard", METRICS, training_lock.FILE)
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
        permissions.open_unclosed_names(permissions.names_in(configuration.to_json(experiment)))

    def check(self, experiment: Experiment):
        """Checks that the folder can hold a run of this experiment, and writes nothing."""
        whole = location.absolute(self.path)
        if set("[]") & set(str(whole)):
            # orbax takes them for glob patterns and leaves checkpoints that cannot be read.
            raise UserError(f"{whole}: checkpoints need a folder without [ or ] in its path.")
        if exported_run.is_exported(self.path):
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
            training_lock.check_free(self.path)
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
            temporary_files.belongs_to(path, self._experiment_file) for path in self.path.iterdir()
        )

    def claim(self, experiment: Experiment):
        """Makes the folder, writes the experiment there, and notes the run as the user's own."""
        self.check(experiment)
        if not self.exists():
            with location.reaching(self.path):
                self._write(experiment)
        recipe = self._read_experiment()
        if permissions.all_open(permissions.names_in(recipe)):
            own_runs.note(recipe, self.path)

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
        if not atomic_writes.write_new(
            self._experiment_file, lambda path: path.write_text(text, encoding="utf-8")
        ):
            self.check(experiment)  # another process has just begun a run here

    def _read_experiment(self):
        if location.is_bucket(self.path):
            with location.reaching(self.path):
                is_export = (self.path / exported_run.RECORD).exists()
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
        if exported_run.is_exported(self.path):
            exported_run.check_file(self.path, name)
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
        modules = own_runs.noted_modules(saved)
        if modules is not None:  # the run is the user's own; see `zoo.base.trust.permissions`
            permissions.open_names(permissions.names_in(saved))
            for folder in modules:
                user_modules.look_in(folder)
        return experiment_of(saved, self.path, self._experiment_file)

    def keep_lexicon(self, lexicon: Lexicon, name: str = "lexicon"):
        """Writes a lexicon, or checks that it equals the lexicon of the run."""
        path = self.path / f"{name}.npz"
        if not path.exists():
            atomic_writes.write_whole(path, lexicon.save)
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
        atomic_writes.write_text(self.path / "start.json", text)

    def start(self) -> dict | None:
        """Reads the record of `keep_start`; None for a run without a warm start."""
        path = self.file("start.json")
        return strict_json.read(path, _START) if path.exists() else None

    def recipe_digest(self) -> str:
        """Computes the SHA-256 of the file experiment.json; "" without one."""
        path = self._experiment_file
        return checksums.file_digest(path) if path.exists() else ""

    def recipe_digest_but_seed(self) -> str:
        """Hashes the recipe without its seed and devices: runs of several seeds share it."""
        if not self.exists():
            return ""
        return checksums.recipe_digest(self._read_experiment())

    def data_digest(self) -> str:
        """Reads the digest of the training and validation text from a checkpoint or an export."""
        if exported_run.is_exported(self.path):
            return exported_run.read_record(self.path)["data"]
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
        if exported_run.is_exported(self.path):
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

        if exported_run.is_exported(self.path):
            arrays = exported_run.read_arrays(self.path)
            recipe_sizes.check(experiment, [x.shape for x in arrays.values()], str(self.path))
            return *exported_run.read_params(self.path, arrays, like()), {}
        restored = None
        with self._kept("best") as kept:
            if kept:
                recipe_sizes.check(experiment, kept.shapes("best"), str(kept.folder / "best"))
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
