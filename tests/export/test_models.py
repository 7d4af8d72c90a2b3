"""The two models that come with the repository."""

import json
import pathlib
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

import configs
import zoo
from zoo import configuration
from zoo.commands import command_table
from zoo.evaluation.run import Run
from zoo.export import folder, standalone

ROOT = pathlib.Path(__file__).parent.parent.parent
MODELS = ROOT / "models"
NAMES = ("micro", "shakespeare")


def test_they_are_small_and_no_others():
    assert tuple(sorted(path.name for path in MODELS.iterdir())) == NAMES
    files = [path for path in MODELS.rglob("*") if "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files if path.is_file()) < 3_000_000


@pytest.mark.parametrize("name", NAMES)
def test_they_have_what_an_export_has(name):
    there = {path.name for path in (MODELS / name).iterdir()} - {"__pycache__"}
    assert there == {
        *("README.md", "experiment.json", "export.json", "lexicon.npz", "load.py", "programs"),
        *("params.safetensors", "results", "tables.safetensors", "texts.npz"),
    }
    assert (MODELS / name / "load.py").read_bytes() == folder.standalone_file().read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_sentence_is_a_string_or_a_list_of_words(name):
    """A string of a model of words is not read letter by letter."""
    model = standalone.Model(MODELS / name)
    words = [model.words[n] for n in (9, 12, 9, 20)]
    text = ("" if name == "shakespeare" else " ").join(words)
    both = model.log_prob([text, words])
    assert both[0] == both[1] < 0
    assert model.ids(text) == [9, 12, 9, 20]
    assert model.outside(text) == [] and model.outside([*words, "zebra"]) == ["zebra"]
    with pytest.raises(ValueError, match="the sentences are one string: give a list"):
        model.log_prob(text)


def test_ids_outside_the_lexicon_are_refused():
    model = standalone.Model(MODELS / "micro")
    for ids in ([len(model.words)], [-1]):
        with pytest.raises(ValueError, match=f"are from 0 to {len(model.words) - 1}: give such"):
            model.step(ids, model.initial_carry(1))


@pytest.mark.parametrize("name", NAMES)
def test_no_folder_of_a_machine_is_named(name):
    for path in (MODELS / name).rglob("*"):
        if path.suffix in (".json", ".md", ".jax"):
            content = path.read_bytes()
            assert not [part for part in (b"/home/", b"/zoo/zoo/", b"/tmp/") if part in content]
            assert path.suffix != ".jax" or b"/zoo/" not in content


@pytest.mark.parametrize("name", NAMES)
def test_make_models_says_how_they_were_made(name):
    text = (ROOT / "Makefile").read_text().partition("\nmodels:")[2]
    (command,) = (one for one in text.splitlines() if "train.py" in one and one.endswith(name))
    words = command.split()
    chosen = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    made = configuration.apply_settings(configs.load(words[words.index("--config") + 1]), chosen)
    kept = json.loads((MODELS / name / "experiment.json").read_text())
    assert configuration.to_json(configuration.from_json(kept)) == configuration.to_json(made)


@pytest.mark.parametrize("name", NAMES)
def test_text_is_generated(name, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    prompt = ["--prompt", "ROMEO:"] if name == "shakespeare" else []
    command_table.main(["generate", f"models/{name}", "--count", "2", "--length", "9", *prompt])
    told = capsys.readouterr().out
    if name == "shakespeare":
        first, second = told.split("-" * 40 + "\n")  # a rule between texts, which have lines
        assert all(t.startswith("ROMEO:") and len(t) == 6 + 9 + 1 for t in (first, second))
    else:
        words = zoo.load(MODELS / name).words
        assert len(told.splitlines()) == 2 and all(word in words for word in told.split())


def test_text_is_generated_by_the_command_of_the_readme(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (line,) = re.findall(r"-m zoo (generate [^`]*)`", (ROOT / "README.md").read_text())
    command_table.main([*line.split(), "--count", "1", "--length", "20"])
    assert capsys.readouterr().out.startswith("KING")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_without_the_zoo_they_give_the_same(name):
    text = "ROMEO:\nBut soft" if name == "shakespeare" else "le souleur dalmaibait la taidrine ."
    source = (
        "import runpy, sys\n"
        "sys.modules['zoo'] = None\n"
        "runpy.run_path('load.py', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", source, text],
        cwd=MODELS / name,
        capture_output=True,
        text=True,
        check=True,
    )
    run = Run.load(MODELS / name)
    ids = [run.lexicon.ids[w] for w in (text if name == "shakespeare" else text.split())]
    if (boundary := run.lexicon.boundary_id) is not None:
        ids = [boundary, *ids, boundary]
    words = np.array([ids], np.int32)
    model = run.experiment.language_model
    with jax.default_matmul_precision("highest"):
        log_prob, _ = model.log_prob(
            run.params, run.tables, words[:, :-1], words[:, 1:], model.initial_carry(1)
        )
    np.testing.assert_allclose(float(done.stdout), log_prob.sum(), rtol=1e-5)


@pytest.mark.slow
def test_the_figures_of_the_micro_language_are_its_own():
    run = Run.load(MODELS / "micro")
    _, scores = run.score_corpus(run.read("test"))
    kept = json.loads((MODELS / "micro/results/test.sentences.json").read_text())
    assert scores.log_perplexity == pytest.approx(kept["figures"]["log_perplexity"], rel=1e-5)
    assert "3.1154" in (MODELS / "micro/README.md").read_text()
