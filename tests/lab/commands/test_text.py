"""zoo text: from a raw text to a run, its figures, samples and report."""

import json
import pathlib
import shlex
import subprocess
import sys

import pytest

from zoo.errors import UserError
from zoo.lab import own_text
from zoo.lab.commands import command_table

ROOT = pathlib.Path(__file__).parents[3]
SENTENCES = (
    "The cat of Mr. Smith sat in the garden, and it was late.",
    "It's the dog that saw the cat!",
    "Is that the house of the dog? It was the garden.",
)
FRENCH = (
    "Le chat de M. Smith est dans le jardin, et il est tard.",
    "C'est le chien que le chat voit !",
    "Est-ce la maison du chien ? C'est le jardin.",
)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "my text.txt"
    path.write_text("".join(f"{sentence}\n" for sentence in SENTENCES) * 100, encoding="utf-8")
    return path


def test_a_dry_run_prints_the_command_of_the_same_run(text, capsys, tmp_path):
    folder = str(tmp_path / "my run")
    command_table.main(["text", str(text), folder, "--dry-run", "--set", "training.epochs=1"])
    *_, line = capsys.readouterr().out.splitlines()
    words = shlex.split(line.partition("zoo train ")[2])
    recipe = own_text.choose([str(text)])
    assert words == [*recipe.arguments(), "--set", "training.epochs=1", folder]
    assert not pathlib.Path(folder).exists()


def test_a_setting_that_does_not_exist(text, tmp_path):
    with pytest.raises(UserError, match=r"^--set training\.epoch=1"):
        command_table.main(["text", str(text), str(tmp_path / "a"), "--set", "training.epoch=1"])


def zoo(*words, folder):
    """Runs a command in a folder; returns (exit code, output, errors)."""
    done = subprocess.run(
        [sys.executable, "-m", "zoo", *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("letters", [False, True])
def test_a_text_from_end_to_end(text, tmp_path, letters):
    short = ["--set", "training.epochs=1", *["--letters"] * letters]
    code, out, err = zoo("text", text.name, "runs/mine", *short, folder=tmp_path)
    assert (code, err.count("error")) == (0, 0), err
    folder = tmp_path / "runs" / "mine"
    assert {"report.html", "surprisal.tsv"} <= {path.name for path in folder.iterdir()}
    assert ("bits per character" in out) == letters
    (result,) = (folder / "results").glob("test.*.json")
    passport = json.loads(result.read_text())
    unit = "characters" if letters else "words (by the Moses tokenizer for en)"
    assert passport["counts"].startswith(f"{unit};")
    assert passport["data"]["path"] == text.name

    # The printed command makes the same run, and the whole command is repeated without harm.
    line = next(
        printed_line
        for printed_line in out.splitlines()
        if printed_line.startswith("$ python -m zoo train")
    )
    words = shlex.split(line)[3:]
    assert words[-1] == "runs/mine"
    code, _, err = zoo(*words[1:-1], "runs/again", folder=tmp_path)
    assert code == 0, err
    metric_files = [(tmp_path / "runs" / name / "metrics.jsonl") for name in ("mine", "again")]
    figures = [
        [
            json.loads(metrics_line).get("validation_log_perplexity")
            for metrics_line in path.read_text().splitlines()
        ]
        for path in metric_files
    ]
    assert figures[0] == figures[1] and any(figures[0])
    code, repeated_output, err = zoo("text", text.name, "runs/mine", *short, folder=tmp_path)
    assert code == 0 and "this run is finished" in repeated_output, err


@pytest.mark.slow
def test_a_run_of_raw_text_reads_other_texts_as_raw(text, tmp_path):
    code, _, err = zoo("text", text.name, "run", "--set", "training.epochs=1", folder=tmp_path)
    assert code == 0, err
    (tmp_path / "other.txt").write_text("It's the cat, Mr. Smith.\n")
    code, out, err = zoo("score", "run", "other.txt", folder=tmp_path)
    assert code == 0, err
    header, row = (printed_line.replace('"', "").split("\t") for printed_line in out.splitlines())
    assert dict(zip(header, row, strict=True))["words"] == "8"
    code, out, err = zoo("generate", "run", "--prompt", "It's the cat,", folder=tmp_path)
    assert code == 0 and all(
        printed_line.startswith("It's the cat,") for printed_line in out.splitlines()
    ), err
    code, out, err = zoo(
        *("score", "run", "other.txt", "--words", "--output", "words.tsv"), folder=tmp_path
    )
    assert code == 0, err
    rows = [
        printed_line.split("\t")
        for printed_line in (tmp_path / "words.tsv").read_text().splitlines()
    ]
    spans = [tuple(map(int, row[3:5])) for row in rows[1:9]]
    assert spans == [(0, 2), (2, 4), (5, 8), (9, 12), (12, 13), (14, 17), (18, 23), (23, 24)]


def test_a_treebank_or_a_config_is_trained_by_its_own_recipe(tmp_path, capsys):
    token = "1\tcat\tcat\tNOUN\t_\tNumber=Sing\t_\t_\t_\t_\n\n"
    (tmp_path / "bank.conllu").write_text(token * 30)
    for path, config in ((f"{tmp_path}/bank.conllu", "ud_treebank"), ("micro_softmax",) * 2):
        command_table.main(["text", path, str(tmp_path / "run"), "--dry-run"])
        *_, line = capsys.readouterr().out.splitlines()
        assert shlex.split(line.partition("zoo train ")[2])[:2] == ["--config", config]


@pytest.mark.slow
def test_pairs_from_end_to_end(tmp_path):
    for name, sentences in (("my.en", SENTENCES), ("my.fr", FRENCH)):
        text = "".join(f"{sentence}\n" for sentence in sentences) * 100
        (tmp_path / name).write_text(text, encoding="utf-8")
    words = ["text", "my.en", "my.fr", "run", "--set", "training.epochs=2"]
    code, out, err = zoo(*words, folder=tmp_path)
    assert code == 0, err
    for name in ("dictionary.tsv", "train.align", "report.html"):
        assert (tmp_path / "run" / name).stat().st_size, name
    assert "BLEU" in out and out.count("\nsource ") == out.count("\ntranslation ") == 3
    experiment = json.loads((tmp_path / "run" / "experiment.json").read_text())
    assert experiment["data"]["languages"] == ["en", "fr"]


ERRORS = {
    "empty.txt run": "empty.txt is empty: give a file with text.",
    "short.txt run": "short.txt has 4 words in 1 sentences, too few",
    "latin.txt run": "latin.txt, line 1: not UTF-8 (byte 0xe9)",
    "missing.txt run": "missing.txt does not exist",
}


@pytest.mark.slow
@pytest.mark.parametrize("line", ERRORS)
def test_errors_of_one_sentence(tmp_path, line):
    (tmp_path / "empty.txt").write_text("\n\n")
    (tmp_path / "short.txt").write_text("A text of words")
    (tmp_path / "latin.txt").write_bytes("é\n".encode("latin-1"))
    code, _, err = zoo("text", *line.split(), folder=tmp_path)
    assert code == 2
    assert err.startswith(f"error: {ERRORS[line]}") and err.count("\n") == 1
    assert not (tmp_path / "run").exists()
