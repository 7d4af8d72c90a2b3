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
import functools
import json
import logging
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import jax
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
_OUTPUTS = ("checkpoints/last", "checkpoints/best", "tensorboard", METRICS, training_lock.FILE)


@dataclasses.dataclass(frozen=True)
class WarmStart:
    """The record of a run's start values from another run, see `zoo.lab.training.warm_start`."""

    workdir: str
    parts: tuple[str, ...]
    checkpoint: int | None = None
    lexicon: dict[str, str] | None = None
    data: str | None = None
    init_from: "WarmStart | None" = None  # of that run


def check_folders(paths: Iterable[str | pathlib.Path]):
    """Raises UserError if two paths name the same folder, which would count as two runs."""
    path_by_id: dict[str, str | pathlib.Path] = {}
    for path in paths:
        id = location.identity(path)
        if id in path_by_id:
            raise UserError(f"{path_by_id[id]} and {path} are one folder: give each run once.")
        path_by_id[id] = path


class Workdir:
    """A run's folder, on a disk or in a bucket."""

    def __init__(self, path: Any):
        """Sets the path of the folder, which need not exist yet."""
        self.path: Any = location.to_path(path)
        self._experiment_file = self.path / "experiment.json"

    def permit(self, experiment: Experiment):
        """Permits paths and modules that the user's experiment names, if they were not closed."""
        permissions.open_unclosed_names(permissions.names_in(configuration.to_json(experiment)))

    def check(self, experiment: Experiment):
        """Raises UserError if this experiment cannot be trained or resumed in the folder; writes
        nothing, and permits the names of the experiment."""
        folder = location.absolute(self.path)
        if set("[]") & set(str(folder)):
            # orbax takes them for glob patterns and leaves checkpoints that cannot be read.
            raise UserError(f"{folder}: checkpoints need a folder without [ or ] in its path.")
        if exported_run.is_exported(self.path):
            raise UserError(
                f"{self.path} is an exported run, which is not trained further: give another folder"
                f", and --set init_from={self.path} to start from its parameters."
            )
        self.permit(experiment)
        recipe = configuration.to_json(experiment)
        if self.exists():
            # A run may change its devices.
            saved_experiment = dataclasses.replace(self.experiment(), parallel=experiment.parallel)
            saved_recipe = configuration.to_json(saved_experiment)
            difference = configuration.first_difference(saved_recipe, recipe)
            if difference:
                advice = ""
                if difference.startswith("training."):
                    advice = f"; to train its model further, add --set init_from={self.path}"
                raise UserError(
                    f"{self.path} holds another experiment ({difference}): give the settings that "
                    f"it was made with to resume it, or another folder{advice}."
                )
            training_lock.check_free(self.path)
            for name in ("", *_OUTPUTS):
                location.check_writable(self.path / name)
            return
        with location.convert_errors(self.path):
            exists = self.path.exists()
            inner_paths = self.path.iterdir() if self.path.is_dir() else [self.path]
            # Temporary files are of a killed `claim`.
            is_left = (temporary_files.belongs_to(x, self._experiment_file) for x in inner_paths)
            if exists and not all(is_left):
                raise UserError(f"{self.path} exists and is not a run of Zoo: give another folder.")
        if exists:
            location.check_writable(self.path)
        elif not location.is_bucket(self.path):
            temporary_files.check_place(self.path)
        if experiment.init_from:  # a resumed run does not need it
            files.check_path(experiment.init_from)
            try:
                Workdir(experiment.init_from)._read_recipe()
            except UserError as error:
                raise UserError(f"init_from: {error}") from error

    def claim(self, experiment: Experiment):
        """Creates or checks the folder of an experiment, and notes the run as the user's own."""
        self.check(experiment)
        if not self.exists():
            text = json.dumps(configuration.to_json(experiment), indent=2, ensure_ascii=False)
            with location.convert_errors(self.path):
                try:
                    self.path.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    if error.errno in temporary_files.FULL:
                        raise
                    raise UserError(
                        f"{self.path} cannot be made ({error.strerror}): give another folder."
                    ) from error
                is_new = atomic_writes.write_whole(
                    self._experiment_file,
                    lambda path: path.write_text(text + "\n", encoding="utf-8"),
                    atomic_writes.place_new,
                )
            if not is_new:
                self.check(experiment)  # another process has just begun a run here
        recipe = self._read_recipe()
        if permissions.all_open(permissions.names_in(recipe)):
            own_runs.write_note(recipe, self.path)

    def _read_recipe(self):
        """Reads the recipe of the folder as JSON; raises UserError without a run."""
        if location.is_bucket(self.path):
            with location.convert_errors(self.path):
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
                "a training run, or of a model such as models/french of Zoo's repository."
            ) from error
        self.file("experiment.json")
        return recipe

    def file(self, name: str) -> Any:
        """Returns the path of a run's file; raises UserError if that of an export changed."""
        if exported_run.is_exported(self.path):
            exported_run.check_file(self.path, name)
        return self.path / name

    def exists(self) -> bool:
        """Whether the folder holds a run; raises UserError if the folder cannot be read."""
        try:
            with location.convert_errors(self.path):
                return self._experiment_file.exists()
        except OSError as error:  # a name that is too long, or a folder that may not be looked into
            raise UserError(
                f"{self.path} cannot be looked up ({error.strerror}): give another folder."
            ) from error

    def experiment(self) -> Experiment:
        """Reads the experiment of the folder; imports modules if the user or a run of his permits
        them."""
        recipe = self._read_recipe()
        modules = own_runs.permitted_modules(recipe)
        if modules is not None:  # the run is the user's own; see `zoo.base.trust.permissions`
            permissions.open_names(permissions.names_in(recipe))
            for folder in modules:
                user_modules.look_in(folder)
        return parse_experiment(recipe, self.path, self._experiment_file)

    def save_lexicon(self, lexicon: Lexicon, name: str = "lexicon"):
        """Writes the lexicon of a new run, or checks that it equals the saved lexicon."""
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

    def save_start(self, record: WarmStart):
        """Writes start.json, the record of the warm start."""
        text = strict_json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        atomic_writes.write_text(self.path / "start.json", text)

    def start(self) -> WarmStart | None:
        """Reads start.json, the record of the warm start; None for a run without a warm start."""
        path = self.file("start.json")
        return strict_json.read(path, WarmStart) if path.exists() else None

    def recipe_digest(self) -> str:
        """Computes the SHA-256 of the file experiment.json; "" without one."""
        path = self._experiment_file
        return checksums.file_digest(path) if path.exists() else ""

    def seedless_recipe_digest(self) -> str:
        """Computes the SHA-256 of the recipe without its seed and devices; "" without a run."""
        if not self.exists():
            return ""
        recipe = {name: part for name, part in self._read_recipe().items() if name != "parallel"}
        training = {**recipe.get("training", {}), "seed": None}
        return checksums.json_digest({**recipe, "training": training})

    def data_digest(self) -> str:
        """Reads the digest of training and validation text from a checkpoint or export, or ""."""
        if exported_run.is_exported(self.path):
            return exported_run.read_record(self.path)["data"]
        for kind in ("best", "last"):
            with self._open_checkpoints(kind) as store:
                data = store.progress(kind).get("data") if store else None
            if data:
                return data
        return ""

    @contextlib.contextmanager
    def _open_checkpoints(self, kind: str) -> Iterator[Any]:
        """Opens the checkpoints of a kind for reading, and closes them; yields None without any."""
        from zoo.lab.runs import checkpoints  # orbax, which exports do not need

        folder = self.path / "checkpoints"
        if not checkpoints.has_checkpoints(folder, kind):
            yield None
            return
        with contextlib.closing(checkpoints.Checkpoints(folder, (kind,), read_only=True)) as store:
            yield store

    def is_finished(self) -> bool | None:
        """Whether training is complete; None for an exported run or without a last checkpoint."""
        if exported_run.is_exported(self.path):
            return None
        with self._open_checkpoints("last") as store:
            return store.progress("last").get("finished") if store else None

    def lexicons(self, experiment: Experiment) -> tuple[Lexicon, ...]:
        """Reads the run's lexicons: of the words, and of the source words of a translator."""
        names = experiment.model.lexicon_names
        return tuple(Lexicon.load(self.file(f"{name}.npz")) for name in names)

    def best(
        self, experiment: Experiment, lexicons: Iterable[Lexicon], log=logger.warning
    ) -> tuple[int, Any, dict]:
        """Reads (step, parameters on the host, progress) of the best checkpoint or the export,
        whose progress is {}; raises UserError without a checkpoint."""
        # Called once the sizes are checked.
        parameter_shapes = functools.partial(
            jax.eval_shape, lambda key: experiment.model.init(key, *lexicons), jax.random.key(0)
        )
        if exported_run.is_exported(self.path):
            arrays = exported_run.read_arrays(self.path)
            recipe_sizes.check(experiment, [x.shape for x in arrays.values()], str(self.path))
            return *exported_run.read_params(self.path, arrays, parameter_shapes()), {}
        restored = None
        with self._open_checkpoints("best") as store:
            if store:
                recipe_sizes.check(experiment, store.shapes("best"), str(store.folder / "best"))
                restored = store.restore("best", {"params": parameter_shapes()}, log)
        if restored is None:
            raise UserError(
                f"{self.path} has no checkpoint of a validated model yet: train it further."
            )
        step, arrays, progress = restored
        return step, jax.tree.map(np.asarray, arrays["params"]), progress


def parse_experiment(recipe: dict, origin: Any, file: Any) -> Experiment:
    """Builds the experiment of a recipe in JSON; errors name `origin`, the run, and `file`."""
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
