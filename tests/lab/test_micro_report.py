"""The report on the micro language: tiny models of a tiny language, untrained."""

import dataclasses
import json
import math
import re

import jax
import pytest

from tests.lab.training import small
from tests.marks import slow
from tests.repository.test_configs import LEMMAS
from zoo import configuration
from zoo.cores import LSTM
from zoo.data import Micro
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.lab import micro_report
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files
from zoo.models import LanguageModel

LANGUAGE = Micro(
    **dict.fromkeys(LEMMAS, 2), train_sentences=9, validation_sentences=3, test_sentences=4
)
EXPERIMENT = Experiment(
    data=LANGUAGE,
    vocabulary=Vocabulary(unknown="refused"),
    model=LanguageModel(embedding=Lookup(size=5, initial_scale=1.0), core=LSTM(size=7)),
    training=Training(batch=2, length=4, epochs=1),
    evaluation=Evaluation(state="sentences", batch=3, length=6),
)
PAIRS = 12


def a_run(path, *settings, validation=3.0):
    """An untrained run of the language, with one line of metrics."""
    experiment = configuration.apply_settings(EXPERIMENT, list(settings))
    lexicon, _ = experiment.vocabulary.build(experiment.data)
    path.mkdir(parents=True)
    line = {"step": 1, "epoch_training_loss": 4.0, "validation_log_perplexity": validation}
    (path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    params = experiment.model.init(jax.random.key(experiment.training.seed), lexicon)
    return Run(path, experiment, lexicon, params, experiment.model.tables(lexicon), 1)


@pytest.fixture
def output(monkeypatch):
    """The lines that reports print."""
    lines = []
    monkeypatch.setattr(output_files, "show", lambda *texts: lines.extend(map(str, texts)))
    return lines


@pytest.fixture
def report(tmp_path, monkeypatch, output):
    """Reports on runs with these settings, named a, b ...: (what was said, plots, runs by path)."""
    monkeypatch.setattr(micro_report, "PAIRS", PAIRS)

    def run_report(*settings_of_runs):
        runs = {}
        for name, settings in zip("abc", settings_of_runs, strict=False):
            path = tmp_path / name
            runs[str(path)] = a_run(path, *settings)
        monkeypatch.setattr(Run, "load", lambda path: runs[path])
        files = micro_report.report_micro([*runs])
        return "\n".join(output), files, runs

    return run_report


def results(run):
    """{kind: passport} in a run's folder."""
    passports = [json.loads(path.read_text()) for path in (run.path / "results").glob("*.json")]
    assert len(passports) == 2
    return {passport["kind"]: passport for passport in passports}


def own_figure(counted_boundaries):
    """The language's -log p of its test text over its tokens."""
    sentences = LANGUAGE.read("test").sentences
    tokens = sum(map(len, sentences)) + counted_boundaries * len(sentences)
    return -sum(map(LANGUAGE.grammar.log_prob, sentences)) / tokens, tokens


def test_the_figures_stand_beside_the_language_and_are_kept(report, tmp_path):
    text, files, runs = report((), ("training.seed=1",))
    ideal, tokens = own_figure(1)
    assert f"entropy {LANGUAGE.entropy_rate():.4f} nats per token" in text
    assert (
        f"Its test text: {tokens:,} tokens: words; the boundary after each sentence counted; no "
        "unknown words." in text
    )
    assert re.search(rf"^the language +{ideal:.4f} +{math.exp(ideal):.2f} *$", text, re.MULTILINE)
    for path, run in runs.items():
        passports = results(run)
        figure = passports["perplexity"]["figures"]["log_perplexity"]
        assert figure > ideal
        line = rf"^{path[-1]} +{figure:.4f} +{math.exp(figure):.2f} +{figure - ideal:.4f}$"
        assert re.search(line, text, re.MULTILINE)
        assert passports["perplexity"]["tokens"] == tokens
        pairs = passports["minimal pairs"]
        assert pairs["figures"]["pairs"] == pairs["tokens"] == PAIRS
        assert pairs["figures"]["right"] == round(
            PAIRS * pairs["figures"]["cases"]["all"]["accuracy"]
        )
        assert pairs["data"]["sentences"] == 2 * PAIRS
        assert pairs["checkpoint"] == 1
    assert [file.parent for file in files] == [tmp_path] * 3
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


@pytest.mark.parametrize("without", ["a", *slow("ab")])
def test_exports_have_no_learning_curves(report, tmp_path, output, without):
    _, files, runs = report((), ("training.seed=1",))
    for file in files:
        file.unlink()
    for name in without:
        (tmp_path / name / "metrics.jsonl").unlink()
        recipe = json.dumps(configuration.to_json(EXPERIMENT))
        (tmp_path / name / "experiment.json").write_text(recipe)
    output.clear()
    expected_files = files if without == "a" else files[1:]
    assert micro_report.report_micro([*runs]) == expected_files
    assert [file for file in files if file.exists()] == expected_files
    messages = [f"metrics.jsonl is not in {tmp_path / name}, as exports do" for name in without]
    assert all(message in "\n".join(output) for message in messages)


def test_plots_that_cannot_be_written_are_refused_before_anything_is_scored(report, tmp_path):
    (tmp_path / "bands.png").mkdir()
    with pytest.raises(UserError, match=r"bands\.png cannot be written \(Is a directory"):
        report(())
    assert not (tmp_path / "a" / "results").exists()


def test_a_case_without_pairs_has_no_accuracy(tmp_path):
    pairs = [pair for pair in LANGUAGE.minimal_pairs(4, 3) if pair[2]["phenomenon"] == "number"]
    cases = micro_report.judge_agreement(a_run(tmp_path / "run"), pairs).passport.figures.cases
    assert math.isnan(cases["gender, attractor"].accuracy)
    assert not math.isnan(cases["number, attractor"].accuracy)


@pytest.mark.parametrize(
    ("settings", "marks", "sentence"),
    [
        (("vocabulary.boundary=uncounted",), 0, "the boundary after each sentence predicted but n"),
        *slow(
            (("vocabulary.boundary_marks=2",), 2, "the 2 boundaries after each sentence counted")
        ),
    ],
)
def test_what_counts_is_the_runs_own_policy(report, settings, marks, sentence):
    text, _, runs = report(settings)
    ideal, tokens = own_figure(marks)
    assert f"{tokens:,} tokens: words; {sentence}" in text
    assert re.search(rf"^the language +{ideal:.4f} ", text, re.MULTILINE)
    rate = LANGUAGE.grammar.entropy() / (LANGUAGE.grammar.expected_length() + marks)
    assert f"entropy {rate:.4f} nats" in text
    (run,) = runs.values()
    assert results(run)["perplexity"]["tokens"] == tokens


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ("vocabulary.boundary=uncounted",),
            "a and b cannot be compared on test, because policies.boun",
        ),
        (("data.nouns=3",), "runs of one micro language"),
        (("vocabulary.lower_case=true",), "b was trained with vocabulary.lower_case=true"),
    ],
)
def test_runs_that_are_not_alike_are_refused(report, tmp_path, settings, message):
    with pytest.raises(UserError, match=message):
        report((), settings)
    assert not list(tmp_path.rglob("results"))  # no figure without the others


def test_another_language_is_refused(tmp_path, monkeypatch):
    run = dataclasses.replace(a_run(tmp_path / "run"), experiment=small.experiment())
    monkeypatch.setattr(Run, "load", lambda path: run)
    with pytest.raises(UserError, match="runs of one micro language"):
        micro_report.report_micro(["a", "b"])
