"""The models that come with the repository."""

import csv
import io
import itertools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest
import safetensors.numpy

import configs
import zoo
from tests.marks import slow
from zoo import configuration
from zoo.lab.commands import command_table
from zoo.lab.evaluation.run import Run
from zoo.lab.export import folder, standalone

ROOT = pathlib.Path(__file__).parent.parent.parent.parent
MODELS = ROOT / "models"
NAMES = ("english", "french", "micro", "shakespeare")
TEXTS = {
    "english": "two dogs are running on the beach .",
    "french": "la maison de mes parents est belle .",
    "micro": "le souleur dalmaibait la taidrine .",
    "shakespeare": "ROMEO:\nBut soft",
}


def test_they_are_small_and_no_others():
    assert tuple(sorted(path.name for path in MODELS.iterdir())) == NAMES
    files = [path for path in MODELS.rglob("*") if "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files if path.is_file()) < 22_000_000


@pytest.mark.parametrize("name", NAMES)
def test_they_have_what_an_export_has(name):
    names = {path.name for path in (MODELS / name).iterdir()} - {"__pycache__"}
    assert names == {
        *("README.md", "experiment.json", "export.json", "lexicon.npz", "load.py", "programs"),
        *("params.safetensors", "results", "tables.safetensors", "texts.npz"),
    }
    assert (MODELS / name / "load.py").read_bytes() == folder.standalone_file().read_bytes()


@pytest.mark.parametrize("name", ["english", *slow("french", "micro", "shakespeare")])
def test_a_sentence_is_a_string_or_a_list_of_words(name):
    """A string of a model of words is not read letter by letter."""
    model = standalone.Model(MODELS / name)
    words = [model.words[n] for n in (9, 12, 9, 20)]
    text = ("" if name == "shakespeare" else " ").join(words)
    log_probs = model.log_prob([text, words])
    assert log_probs[0] == log_probs[1] < 0
    assert model.ids(text) == [9, 12, 9, 20]
    assert model.outside(text) == [] and model.outside([*words, "zyzzyva"]) == ["zyzzyva"]
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
    (command,) = (line for line in text.splitlines() if "train.py" in line and line.endswith(name))
    words = command.split()
    chosen = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    expected = configuration.apply_settings(
        configs.load(words[words.index("--config") + 1]), chosen
    )
    saved_experiment = json.loads((MODELS / name / "experiment.json").read_text())
    assert configuration.to_json(
        configuration.from_json(saved_experiment)
    ) == configuration.to_json(expected)


@pytest.mark.parametrize("name", ["english", "shakespeare", *slow("french", "micro")])
def test_text_is_generated(name, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    prompt = ["--prompt", "ROMEO:"] if name == "shakespeare" else []
    command_table.main(["generate", f"models/{name}", "--count", "2", "--length", "9", *prompt])
    printed = capsys.readouterr().out
    if name == "shakespeare":
        first, second = printed.split("-" * 40 + "\n")  # a rule between texts, which have lines
        assert all(t.startswith("ROMEO:") and len(t) == 6 + 9 + 1 for t in (first, second))
    else:
        words = zoo.load(MODELS / name).words
        assert len(printed.splitlines()) == 2 and all(word in words for word in printed.split())


def test_text_is_generated_by_the_command_of_the_readme(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (line,) = re.findall(r"-m zoo (generate .*)", (ROOT / "README.md").read_text())
    words = shlex.split(line, comments=True)
    command_table.main([*words, "--count", "1", "--length", "20"])
    assert capsys.readouterr().out.startswith(words[words.index("--prompt") + 1])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_without_the_zoo_they_give_the_same(name):
    text = TEXTS[name]
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
    passport = json.loads((MODELS / "micro/results/test.sentences.json").read_text())
    assert scores.log_perplexity == pytest.approx(passport["figures"]["log_perplexity"], rel=1e-5)
    assert "3.1154" in (MODELS / "micro/README.md").read_text()


def log_probs_by_hand(folder, text):
    """log p of each word of a sentence and of its end, in float64, from the files of a model of
    words: one LSTM layer, and features, or words as their own, in inputs and scores."""
    arrays = safetensors.numpy.load_file(folder / "params.safetensors")
    params = {name: array.astype(np.float64) for name, array in arrays.items()}
    with np.load(folder / "lexicon.npz") as lexicon:
        words, marks = (json.loads(lexicon[name].tobytes()) for name in ("words", "marks"))
        rows = features = np.arange(len(words))
        values, background = np.ones(len(words)), np.zeros(len(words))
        if "head/weights" in params:
            rows = np.repeat(rows, np.diff(lexicon["feature_offsets"]))
            features, values = lexicon["feature_ids"], lexicon["feature_values"]
            background = lexicon["log_background"]
    unknown, boundary = marks

    def sum_features(table):
        sums = np.zeros((len(words), *table.shape[1:]))
        np.add.at(sums, rows, (values * table[features].T).T)
        return sums

    vectors = sum_features(params["embedding/table"])
    outputs = sum_features(params["head/weights"]) if "head/weights" in params else vectors
    biases = sum_features(params["head/bias"]) + background
    place = {word: number for number, word in enumerate(words)}
    ids = [place.get(word, place[unknown]) for word in [boundary, *text.split(), boundary]]
    hidden = cell = np.zeros(len(params["core/0/recurrent"]))
    log_probs = []
    for before, word in itertools.pairwise(ids):
        inputs = vectors[before] @ params["core/0/input"] + params["core/0/bias"]
        into, forget, candidate, out = np.split(inputs + hidden @ params["core/0/recurrent"], 4)
        into, forget, out = (1 / (1 + np.exp(-gate)) for gate in (into, forget, out))
        cell = forget * cell + into * np.tanh(candidate)
        hidden = out * np.tanh(cell)
        scores = outputs @ hidden + biases
        log_probs.append(scores[word] - np.logaddexp.reduce(scores))
    return np.array(log_probs)


# log p of TEXTS by hand, nats.
BY_HAND = {"french": -40.8281, "english": -16.1233}


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_HAND)
def test_score_and_surprisal_are_those_by_hand(name, tmp_path, capsys):
    """The two commands of README, beside numpy in float64."""
    expected = log_probs_by_hand(MODELS / name, TEXTS[name])
    assert expected.sum() == pytest.approx(BY_HAND[name], abs=1e-4)
    text = tmp_path / "sentences.txt"
    text.write_text(TEXTS[name] + "\n")

    def rows(*options):
        command_table.main(["score", str(MODELS / name), str(text), *options])
        return [*csv.DictReader(io.StringIO(capsys.readouterr().out), delimiter="\t")]

    (row,) = rows()
    assert row["words"] == str(len(TEXTS[name].split())) and row["unknown"] == "0"
    assert float(row["log_prob"]) == pytest.approx(expected.sum(), rel=1e-5)
    surprisal = [float(row["surprisal_nats"]) for row in rows("--words")]
    np.testing.assert_allclose(surprisal, -expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_verb_agrees_with_the_noun_that_is_not_beside_it():
    """By hand, -40.8281 and -43.2559."""
    texts = [TEXTS["french"], TEXTS["french"].replace("est", "sont")]
    right, wrong = zoo.load(MODELS / "french").score(texts)
    expected = [log_probs_by_hand(MODELS / "french", text).sum() for text in texts]
    np.testing.assert_allclose([right.log_prob, wrong.log_prob], expected, rtol=1e-5)
    assert expected[0] - expected[1] == pytest.approx(2.4278, abs=1e-4)


@pytest.mark.slow
@pytest.mark.realdata("ud_french", "ud_french_sequoia")
def test_agreement_of_the_treebank_is_the_kept_one(tmp_path, capsys):
    folder = shutil.copytree(MODELS / "french", tmp_path / "french")
    (result_file,) = (folder / "results").glob("pairs_agreement-test*.json")
    before = json.loads(result_file.read_text())["figures"]
    assert (before["right"], before["accuracy"]) == (536, pytest.approx(536 / 578))
    command_table.main(["evaluate", str(folder), "--agreement"])
    assert "accuracy 92.73% [90.3, 94.6] of 578 pairs" in capsys.readouterr().out
    after = json.loads(result_file.read_text())["figures"]
    assert after["right"] == before["right"]
    assert after["mean_difference"] == pytest.approx(before["mean_difference"], rel=1e-5)
