"""The folder of an exported run.

    experiment.json, lexicon.npz, texts.npz, results/   as in the run; of pairs source.npz too
    params.safetensors     the parameters by name        README.md    the model card
    tables.safetensors     the programs' other inputs    load.py      reads it without Zoo
    programs/*.jax         jax.export's                  export.json  contents and digests

Every command that reads a run takes it as one; it cannot be trained further. The model card,
load.py and results, which may be added, do not have digests.
"""

import hashlib
import pathlib
import shutil
from typing import Any

import numpy as np

from zoo import lazy, strict_json, temporary_files
from zoo.errors import UserError
from zoo.evaluation.results import read_passport
from zoo.evaluation.run import Run
from zoo.export import card, stablehlo
from zoo.models import LanguageModel, SequenceToSequence
from zoo.runs import checksums, exported, output_files
from zoo.runs.workdir import Workdir

COPIED = ("experiment.json", "lexicon.npz", "source.npz", "texts.npz", "start.json")
_PROGRAMS: dict[type, Any] = {
    LanguageModel: stablehlo.of_language_model,
    SequenceToSequence: stablehlo.of_sequence_to_sequence,
}
TABLES = "tables.safetensors"
_PARAMS = "params/"


def write(
    path: str | pathlib.Path,
    out: str | pathlib.Path,
    licence: str | None = None,
    platforms: tuple[str, ...] = stablehlo.PLATFORMS,
) -> pathlib.Path:
    """Exports the best parameters of a run; the folder exists whole or not at all."""
    exported.safetensors()  # before any work begins, if it is missing
    with lazy.extra():
        import flatbuffers  # noqa: F401 (jax.export serialises with it)
    with temporary_files.folder(out) as folder:
        run = Run.load(path)
        if type(run.experiment.model) not in _PROGRAMS:
            raise UserError(
                f"{path} is a run of a {type(run.experiment.model).__name__}, and programs are "
                "exported of a LanguageModel or a SequenceToSequence: give a run of one."
            )
        _write(run, folder, pathlib.Path(out).name, licence, platforms)
    return pathlib.Path(out)


def _write(run, folder, name, licence, platforms):
    """Writes all files into an existing folder."""
    model = run.experiment.model
    made = _PROGRAMS[type(model)](model, run.params, run.tables, platforms)
    params = {
        key.removeprefix(_PARAMS): array
        for key, array in made.arrays.items()
        if key.startswith(_PARAMS)
    }
    tables = {key: array for key, array in made.arrays.items() if not key.startswith(_PARAMS)}
    # Not by save_file: only the user can read its file, and its errors hide that a disk is full.
    save = exported.safetensors().save
    (folder / exported.PARAMS).write_bytes(save(params))
    (folder / TABLES).write_bytes(save(tables))
    (folder / "programs").mkdir()
    files = {key: f"programs/{key}.jax" for key in made.programs}
    for key, file in files.items():
        (folder / file).write_bytes(made.programs[key])
    workdir = Workdir(run.path)
    for file in COPIED:
        if (path := workdir.file(file)).exists():
            shutil.copyfile(path, folder / file)
    passports = _keep_passports(run.path, folder)
    size = sum(int(np.prod(array.shape)) for array in params.values())
    text = card.card(run, name, licence, passports, size)
    (folder / "README.md").write_text(text, encoding="utf-8")
    shutil.copyfile(standalone_file(), folder / "load.py")
    record = {
        "checkpoint": run.checkpoint,
        "data": workdir.data_digest(),
        "platforms": list(platforms),
        "programs": files,
        "carry": sum(key.startswith("carry/") for key in tables),
        "boundary_marks": run.experiment.vocabulary.boundary_marks,
        "open_classes": len(run.experiment.vocabulary.open_classes),
        "order": getattr(model, "order", None),
        "sha256": {
            file: hashlib.sha256((folder / file).read_bytes()).hexdigest()
            for file in (exported.PARAMS, TABLES, *files.values(), *COPIED)
            if (folder / file).exists()
        },
        "versions": output_files.versions(),
    }
    _write_json(folder / exported.RECORD, {**record, "digest": checksums.of_json(record)})


def standalone_file() -> pathlib.Path:
    """Returns the path of the file that is `load.py` of every export; it is not imported here."""
    return pathlib.Path(__file__).parent / "standalone.py"


def _keep_passports(run: pathlib.Path, folder: pathlib.Path) -> dict[pathlib.Path, dict]:
    """Copies the passports without machine and command line, and the translations that they are of;
    returns the passports by the run's files."""
    found = {}
    for file in sorted((run / "results").glob("*.json")):
        if not file.is_file():
            continue
        passport = read_passport(file)
        for name in ("command", "machine"):
            passport.pop(name, None)
        found[file] = passport
        (folder / "results").mkdir(exist_ok=True)
        _write_json(folder / "results" / file.name, passport)
        translations = file.with_suffix(".txt")
        if translations.is_file():
            shutil.copyfile(translations, folder / "results" / translations.name)
    return found


def _write_json(path, value):
    text = strict_json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")
