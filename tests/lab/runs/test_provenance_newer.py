"""Files of a later version of Zoo are refused by one sentence, with exit code 2."""

import dataclasses
import json
import pathlib
import shutil
import sys

import pytest

from zoo import version
from zoo.errors import UserError
from zoo.lab.commands import command_table, program
from zoo.lab.runs import checksums, provenance
from zoo.lab.runs.provenance import Code
from zoo.lab.runs.seen_texts import SeenTexts

MODEL = pathlib.Path(__file__).parents[3] / "models" / "micro"
NEWER = "0.2.0.dev0"


def change_json(file, change):
    """Writes what `change` makes of a file's JSON."""
    file.write_text(json.dumps(change(json.loads(file.read_text()))))


def newer_export(run):
    def change(record):
        record["versions"]["zoo"] = NEWER
        del record["digest"]
        return {**record, "digest": checksums.json_digest(record)}

    change_json(run / "export.json", change)


def newer_passport(run):
    change_json(
        run / "results" / "test.sentences.json",
        lambda passport: {**passport, "versions": {"zoo": NEWER}, "figures": {"surprisal": 3.1}},
    )


def newer_record(run):
    """The model's recipe and passport as a line of a record."""
    newer_passport(run)
    passport = json.loads((run / "results" / "test.sentences.json").read_text())
    recipe = json.loads((run / "experiment.json").read_text())
    record = {"run": "first", "experiment": recipe, "results": {"test.sentences": passport}}
    pathlib.Path("record.jsonl").write_text(json.dumps(record) + "\n")


def newer_texts(run):
    (run / "export.json").unlink()  # then it is a folder of training
    (run / "params.safetensors").unlink()
    texts = SeenTexts.load(run / "texts.npz")
    code = Code(versions={"zoo": NEWER})
    dataclasses.replace(texts, made_with=code).save(run / "texts.npz")
    losses = {"step": 9, "epoch": 0, "validation_log_perplexity": 3.5, "seconds": 2.0}
    (run / "metrics.jsonl").write_text(json.dumps(losses) + "\n")


def newer_recipe(run):
    newer_texts(run)
    change_json(
        run / "experiment.json",
        lambda recipe: {**recipe, "model": {**recipe["model"], "mixer": 3}},
    )


# {kind of file: (how it gets newer, a command that reads it, the file in the message)}
KINDS = {
    "an export": (newer_export, ["generate", "run"], "run/export.json"),
    "a passport": (newer_passport, ["compare", "run"], "run/results/test.sentences.json"),
    "a record": (newer_record, ["compare", "record.jsonl"], "record.jsonl:first, test.sentences"),
    "a run": (newer_texts, ["compare", "run", "--plot", "a.svg"], "run/texts.npz"),
    "a recipe": (newer_recipe, ["generate", "run"], None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_a_later_version_is_refused(kind, tmp_path, monkeypatch, capsys):
    make_newer, words, file = KINDS[kind]
    monkeypatch.chdir(tmp_path)
    shutil.copytree(MODEL, "run", ignore=shutil.ignore_patterns("__pycache__"))
    make_newer(pathlib.Path("run"))
    monkeypatch.setattr(sys, "argv", ["zoo", *words])
    assert program.run(lambda: command_table.main(words)) == 2
    message = f"{file} is of Zoo {NEWER}: read it with that version, or a later one."
    if file is None:
        message = (
            "run/experiment.json: zoo.models:LanguageModel does not have the fields mixer of the "
            "saved recipe: use the version that saved it."
        )
    assert capsys.readouterr() == ("", f"error: {message}\n")


@pytest.mark.parametrize("saved", ["0.2.0", "0.10.0.dev0", "1.0", "9" * 5000])
def test_a_later_version_is_later_by_its_numbers(saved, monkeypatch):
    monkeypatch.setattr(version, "VERSION", "0.1.0")
    with pytest.raises(UserError, match=r"^a\.json is of Zoo [0-9.dev]+.* later one\.$"):
        provenance.check_version({"zoo": saved}, "a.json")


@pytest.mark.parametrize("saved", ["0.0.9", "0.1.0", "0.1.0.dev0", "0.1.12", "", "mine", None, []])
def test_the_same_minor_version_and_older_ones_are_read(saved, monkeypatch):
    for own in ("0.1.0.dev0", "0.1.0", "0.1.3"):
        monkeypatch.setattr(version, "VERSION", own)
        provenance.check_version({"zoo": saved}, "a.json")
        provenance.check_version({}, "a.json")
