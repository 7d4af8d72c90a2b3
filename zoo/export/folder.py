"""The folder of an exported run.

    experiment.json, lexicon.npz, texts.npz, results/   as in the run; of pairs source.npz too
    params.safetensors     the parameters by name       README.md   the model card
    tables.safetensors     what programs take besides   load.py     reads all this without the zoo
    programs/*.jax         jax.export's                 export.json  what was exported, digests

It is a run for every command that reads one, and cannot be trained further.
"""

import json
import pathlib
import shutil
from typing import Any

import numpy as np

from zoo.errors import UserError
from zoo.evaluation.run import Run
from zoo.export import card, programs
from zoo.models import LanguageModel, SequenceToSequence
from zoo.processes import unfinished
from zoo.runs import digests, exported, made_with, strict_json
from zoo.runs.workdir import Workdir

COPIED = ("experiment.json", "lexicon.npz", "source.npz", "texts.npz", "start.json")
_PROGRAMS: dict[type, Any] = {
    LanguageModel: programs.of_language_model,
    SequenceToSequence: programs.of_sequence_to_sequence,
}
_PARAMS = "params/"


def write(
    path: str | pathlib.Path,
    out: str | pathlib.Path,
    licence: str | None = None,
    platforms: tuple[str, ...] = programs.PLATFORMS,
) -> pathlib.Path:
    """Exports the best parameters of a run; the folder is there whole or not at all.

    Args:
      path: the work directory of the run.
      out: the folder to make.
      licence: of the data, in words, for the model card; None if it is not known.
      platforms: those that the programs run on.

    Raises:
      UserError: there is something at `out`, or no trained model of words at `path`.
    """
    exported.safetensors()  # before any work begins, if it is missing
    with unfinished.folder(out) as folder:
        run = Run.load(path)
        if type(run.experiment.model) not in _PROGRAMS:
            raise UserError(
                f"{path} is a run of a {type(run.experiment.model).__name__}, and programs are "
                "exported of a LanguageModel or a SequenceToSequence: give a run of one."
            )
        _write(run, folder, pathlib.Path(out).name, licence, platforms)
    return pathlib.Path(out)


def _write(run, folder, name, licence, platforms):
    """Writes all files into a folder that is there."""
    model = run.experiment.model
    made = _PROGRAMS[type(model)](model, run.params, run.tables, platforms)
    params = {
        key.removeprefix(_PARAMS): array
        for key, array in made.arrays.items()
        if key.startswith(_PARAMS)
    }
    tables = {key: array for key, array in made.arrays.items() if not key.startswith(_PARAMS)}
    save = exported.safetensors().save_file
    save(params, str(folder / exported.PARAMS))
    save(tables, str(folder / "tables.safetensors"))
    (folder / "programs").mkdir()
    files = {key: f"programs/{key}.jax" for key in made.programs}
    for key, file in files.items():
        (folder / file).write_bytes(made.programs[key])
    for file in COPIED:
        if (run.path / file).exists():
            shutil.copyfile(run.path / file, folder / file)
    passports = _keep_passports(run.path, folder)
    size = sum(int(np.prod(array.shape)) for array in params.values())
    text = card.card(run, name, licence, passports, size)
    (folder / "README.md").write_text(text, encoding="utf-8")
    shutil.copyfile(standalone_file(), folder / "load.py")
    _write_json(
        folder / exported.RECORD,
        {
            "checkpoint": run.checkpoint,
            "data": Workdir(run.path).data_digest(),
            "platforms": list(platforms),
            "programs": files,
            "carry": sum(key.startswith("carry/") for key in tables),
            "boundary_marks": run.experiment.vocabulary.boundary_marks,
            "order": getattr(model, "order", None),
            "digests": digests.of_arrays(params),
            "versions": made_with.versions(),
        },
    )


def standalone_file() -> pathlib.Path:
    """The file that is `load.py` of every export; it needs no import here."""
    return pathlib.Path(__file__).parent / "standalone.py"


def _keep_passports(run: pathlib.Path, folder: pathlib.Path) -> list[dict]:
    """Copies the passports without what they say of the machine, its folders in command lines among
    it; gives them."""
    found = []
    for file in sorted((run / "results").glob("*.json")):
        passport = json.loads(file.read_text(encoding="utf-8"))
        for name in ("command", "machine"):
            passport.pop(name, None)
        found.append(passport)
        (folder / "results").mkdir(exist_ok=True)
        _write_json(folder / "results" / file.name, passport)
    return found


def _write_json(path, value):
    text = strict_json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")
