"""The folder of an exported run.

    experiment.json, lexicon.npz, texts.npz, results/   as in the run; of pairs source.npz too
    params.safetensors     the parameters by name        README.md    the model card
    tables.safetensors     the programs' other inputs    load.py      reads it without Zoo
    programs/*.jax         jax.export's                  export.json  contents and digests

Every command that reads a run takes it as one; it cannot be trained further. The model card,
load.py and results, which may be added, do not have digests.
"""

import dataclasses
import pathlib
import shutil
import string
from collections.abc import Iterable
from typing import Any

import numpy as np

from zoo import configuration
from zoo.base import lazy, strict_json, temporary_files
from zoo.errors import UserError
from zoo.interop import torch_models
from zoo.lab.evaluation.figures import Passport, PerplexityPassport
from zoo.lab.evaluation.results import read_passport
from zoo.lab.evaluation.run import Run
from zoo.lab.export import stablehlo
from zoo.lab.runs import checksums, provenance
from zoo.lab.runs.exported_run import PARAMS, RECORD, named_arrays, safetensors
from zoo.lab.runs.workdir import Workdir
from zoo.models import LanguageModel, SequenceToSequence

COPIED = ("experiment.json", "lexicon.npz", "source.npz", "texts.npz", "start.json")
_PROGRAMS: dict[type, Any] = {
    LanguageModel: stablehlo.export_language_model,
    SequenceToSequence: stablehlo.export_sequence_to_sequence,
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
    safetensors()  # before any work begins, if it is missing
    with lazy.extra():
        import flatbuffers  # noqa: F401 (jax.export serialises with it)
    with temporary_files.folder(out) as folder:
        run = Run.load(path)
        if type(run.experiment.model) not in _PROGRAMS:
            raise UserError(
                f"{path} is a run of a {type(run.experiment.model).__name__}, and programs are "
                "exported of a LanguageModel or a SequenceToSequence: give a run of one."
            )
        run.experiment.check_whole_words("an exported program")
        _write(run, folder, pathlib.Path(out).name, licence, platforms)
    return pathlib.Path(out)


def write_torch(path: str | pathlib.Path, out: str | pathlib.Path) -> pathlib.Path:
    """Exports a run as a state dict of word_language_model, and its words in the order of ids."""
    save, run = safetensors().save, Run.load(path)
    model = run.require_language_model("--torch")
    arrays = torch_models.state_dict(model, named_arrays(run.params))
    with temporary_files.folder(out) as folder:
        (folder / "model.safetensors").write_bytes(save(arrays))
        words = "".join(f"{word}\n" for word in run.lexicon.words)
        (folder / "words.txt").write_text(words, encoding="utf-8")
    return pathlib.Path(out)


def _write(run, folder, name, licence, platforms):
    """Writes all files of the exported run into a folder."""
    model = run.experiment.model
    exported = _PROGRAMS[type(model)](model, run.params, run.tables, platforms)
    params = {
        key.removeprefix(_PARAMS): array
        for key, array in exported.arrays.items()
        if key.startswith(_PARAMS)
    }
    tables = {key: array for key, array in exported.arrays.items() if not key.startswith(_PARAMS)}
    # Not by save_file: only the user can read its file, and its errors hide that a disk is full.
    save = safetensors().save
    (folder / PARAMS).write_bytes(save(params))
    (folder / TABLES).write_bytes(save(tables))
    (folder / "programs").mkdir()
    files = {key: f"programs/{key}.jax" for key in exported.programs}
    for key, file in files.items():
        (folder / file).write_bytes(exported.programs[key])
    workdir = Workdir(run.path)
    for file in COPIED:
        path = workdir.file(file)
        if path.exists():
            shutil.copyfile(path, folder / file)
    passports = _keep_passports(run.path, folder)
    size = sum(int(np.prod(array.shape)) for array in params.values())
    text = card(run, name, licence, passports, size)
    (folder / "README.md").write_text(text, encoding="utf-8")
    shutil.copyfile(standalone_file(), folder / "load.py")
    facts = {
        "checkpoint": run.checkpoint,
        "data": workdir.data_digest(),
        "platforms": list(platforms),
        "programs": files,
        "carry": sum(key.startswith("carry/") for key in tables),
        "boundary_marks": run.experiment.vocabulary.boundary_marks,
        "open_classes": len(run.experiment.vocabulary.open_classes),
        "order": getattr(model, "order", None),
        "versions": provenance.versions(),
    }
    write_record(folder, (PARAMS, TABLES, *files.values(), *COPIED), facts)


def write_record(folder: pathlib.Path, files: Iterable[str], facts: dict):
    """Writes the record of an export, with the SHA-256 of its files and of itself."""
    paths = {file: folder / file for file in files if (folder / file).exists()}
    record = facts | {"sha256": {file: checksums.file_digest(x) for file, x in paths.items()}}
    write_json(folder / RECORD, {**record, "digest": checksums.json_digest(record)})


def standalone_file() -> pathlib.Path:
    """Returns the path of the file that is `load.py` of every export; it is not imported here."""
    return pathlib.Path(__file__).parent / "standalone.py"


def _keep_passports(run: pathlib.Path, folder: pathlib.Path) -> list[Passport]:
    """Copies the passports, without machine and command line, and their translations."""
    passports = []
    for file in sorted((run / "results").glob("*.json")):
        if not file.is_file():
            continue
        passport = dataclasses.replace(read_passport(file), command=(), machine=None)
        passports.append(passport)
        (folder / "results").mkdir(exist_ok=True)
        write_json(folder / "results" / file.name, passport)
        translations = file.with_suffix(".txt")
        if translations.is_file():
            shutil.copyfile(translations, folder / "results" / translations.name)
    return passports


def write_json(path, value):
    """Writes a file of JSON."""
    text = strict_json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


# ----- the model card of an export: the model, the texts that it has seen, and its figures

_CARD = pathlib.Path(__file__).with_name("model_card.md")
_TEXT_TAGS = {"pipeline": "text-generation", "tag": "language-model"}
_PAIR_TAGS = {"pipeline": "translation", "tag": "encoder-decoder"}
_TEXT_USE = (
    "    python -m zoo generate DIR          # with Zoo",
    "    python -m zoo score DIR sentences.txt",
    '    python load.py "SENTENCE"           # pip install jax flatbuffers safetensors',
)
_WORD_USE = (
    "",
    "`load.py` takes words as they were in training, between blanks: in its case, tokenised, and "
    "with fused forms split if they were. `zoo score` reads a text so.",
)
_PAIR_USE = (
    "    python -m zoo translate DIR sentences.txt      # with Zoo",
    '    python load.py "SOURCE" "TRANSLATION"          # pip install jax flatbuffers safetensors',
)


def card(run: Run, name: str, licence: str | None, passports: list[Passport], size: int) -> str:
    """Formats the model card as Markdown."""
    model, lexicon = run.experiment.model, run.lexicon
    pairs = isinstance(model, SequenceToSequence)
    fields = (getattr(model, field.name) for field in dataclasses.fields(model))
    parts = ", ".join(type(part).__name__ for part in fields if dataclasses.is_dataclass(part))
    units = "characters" if lexicon.is_character_level else "words"
    if run.experiment.data.generated:
        licence = licence or "none is needed: Zoo generates the text"
    else:
        licence = licence or "not known to the exporter; ask whoever made the text"
    use = [*_PAIR_USE] if pairs else [*_TEXT_USE]
    use += () if pairs or lexicon.is_character_level else _WORD_USE
    recipe = configuration.describe(run.experiment).splitlines()
    return string.Template(_CARD.read_text(encoding="utf-8")).substitute(
        _PAIR_TAGS if pairs else _TEXT_TAGS,
        name=name,
        model=f"{type(model).__name__} of {size:,} parameters ({parts})",
        words=f"{len(lexicon):,} {units}",
        over=run.experiment.head.normalised_over(lexicon),
        data="\n".join(_data(run)),
        licence=licence,
        figures="\n".join(_figures(passports)),
        use="\n".join(use),
        recipe="\n".join(f"    {line}" for line in recipe),
    )


def _data(run: Run) -> list[str]:
    """Returns a line for each text that the model has seen."""
    record = run.seen_texts
    if record is None:
        return ["- What the model was trained on is not recorded."]
    roles = {"trained on": record.trained_on, "selected on": record.selected_on}
    return [
        f"- {role.capitalize()} `{text.text}` ({text.by}): {text.sentences:,} sentences, "
        f"{text.tokens:,} tokens, sha256 {text.digest[:16]}"
        for role, texts in roles.items()
        for text in texts.about
    ] + [
        *(
            f"- `{text.text}` ({text.by}) gave {', '.join(text.gave)}, sha256 {text.digest[:16]}"
            for text in record.knowledge or ()
        ),
        *(f"- Not known: the texts that {part} had seen" for part in record.not_known),
    ]


def _figures(passports: list[Passport]) -> list[str]:
    """Returns a table of the perplexities, and lines on the tokens that they count."""
    perplexities = [x for x in passports if isinstance(x, PerplexityPassport)]
    if not perplexities:
        return ["The run was not judged before it was exported."]
    lines = [
        "| text | state | tokens | nats a token | bits | perplexity |",
        "|---|---|---|---|---|---|",
    ]
    counts: dict[str, Any] = {}
    warnings = []
    for passport in perplexities:
        figures = passport.figures
        lines.append(
            f"| {passport.split} | {passport.policies.state} | {passport.tokens:,} "
            f"| {figures.log_perplexity:.4f} | {figures.bits:.4f} "
            f"| {figures.perplexity:.2f}{' !' if passport.leak else ''} |"
        )
        if passport.leak:
            warnings.append(f"! Not a figure of unseen text: {passport.split}; {passport.leak}.")
        counts[f"{passport.counts}; normalised over {passport.normalised_over}"] = None
    return [*lines, "", *(f"Counted: {text}." for text in counts), *warnings]
