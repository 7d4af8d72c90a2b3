"""Runs on a treebank that is no split of theirs: figures, differences and agreement pairs."""

import dataclasses
import json
import math
import pathlib

import numpy as np
import pytest

from tests import examples
from tests.lab.evaluation.test_agreement import columns
from tests.lab.training import small
from zoo import __main__ as commands
from zoo.data import Conllu, Vocabulary
from zoo.lab import table
from zoo.lab.evaluation.run import Run
from zoo.lab.runs.checkpoints import Checkpoints
from zoo.lab.runs.workdir import Workdir

# id, form, lemma, part of speech, features, head, relation
TRAIN = """
1 les le DET Number=Plur 2 det
2 maisons maison NOUN Gender=Fem|Number=Plur 3 nsubj
3 sont être VERB Number=Plur|Person=3 0 root
4 petites petit ADJ Gender=Fem|Number=Plur 3 amod

1 une un DET Gender=Fem|Number=Sing 2 det
2 maison maison NOUN Gender=Fem|Number=Sing 3 nsubj
3 est être VERB Number=Sing|Person=3 0 root
"""
SECOND_TREEBANK = """
1 une un DET Gender=Fem|Number=Sing 2 det
2 fille fille NOUN Gender=Fem|Number=Sing 3 nsubj
3 est être VERB Number=Sing|Person=3 0 root

1 les le DET Number=Plur 2 det
2 filles fille NOUN Gender=Fem|Number=Plur 3 nsubj
3 sont être VERB Number=Plur|Person=3 0 root
4 petites petit ADJ Gender=Fem|Number=Plur 3 amod
"""


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Folders of two recipes of two seeds each, with parameters drawn at random."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.conllu").write_text(columns(TRAIN), encoding="utf-8")
    (tmp_path / "other.conllu").write_text(columns(SECOND_TREEBANK), encoding="utf-8")
    folders = []
    for name, epochs in (("a", 1), ("b", 2)):
        for seed in (0, 1):
            experiment = dataclasses.replace(
                small.experiment(),
                data=Conllu("train.conllu", "train.conllu"),
                vocabulary=Vocabulary(),
            )
            training = dataclasses.replace(experiment.training, seed=seed, epochs=epochs)
            experiment = dataclasses.replace(experiment, training=training)
            lexicon, _ = experiment.build()
            workdir = Workdir(f"runs/{name}_{seed}")
            workdir.claim(experiment)
            workdir.save_lexicon(lexicon)
            generator = np.random.default_rng([seed, epochs])
            params = examples.random_params(experiment.model, generator, lexicon)
            checkpoints = Checkpoints(workdir.path / "checkpoints")
            checkpoints.save("best", 1, {"params": params}, {})
            checkpoints.close()
            folders.append(str(workdir.path))
    return folders


def evaluate(runs, file, *options):
    """Judges runs on a file by its command."""
    for run in runs:
        commands.main(["evaluate", run, "--data", file, *options])


def compare(runs, *splits):
    """Prints the tables of figures in parts on some splits."""
    commands.main(["compare", *runs, "--by", "frequency", *(f"--split={name}" for name in splits)])


def losses_of(folder, seen_only):
    """Nats per token of the other treebank, word by word; training saw neither fille nor filles."""
    run = Run.load(folder)
    text, scores = run.score_corpus(run.read_file("other.conllu").corpus)
    words = [run.lexicon.words[word] for word in text.words]
    losses = [
        -float(log_prob)
        for word, log_prob, counted in zip(words, scores.log_prob, scores.counted, strict=True)
        if counted and not (seen_only and word == "<unk>")
    ]
    assert len(losses) == (7 if seen_only else 9)
    return np.mean(losses), words.count("<unk>")


@pytest.mark.slow
def test_runs_are_compared_with_the_lexicons_that_they_have(runs, capsys):
    evaluate(runs, "other.conllu")
    evaluate(runs, "other.conllu", "--agreement")
    capsys.readouterr()
    compare(runs, "data:other.conllu", "pairs:agreement-other.conllu")
    text = capsys.readouterr().out
    (table,) = [number for number, line in enumerate(text.splitlines()) if "in parts" in line]
    header, tokens, *rows = (line.split() for line in text.splitlines()[table : table + 4])
    assert header[-5:] == ["all", "spread", "unknown", "1-9", "seen"]
    assert tokens == ["tokens", "9", "9", "2", "7", "7"]
    for row in rows:
        # As in "softmax, 2 seeds".
        group = [folder for folder in runs if f"runs/{row[0].rstrip(',')}_" == folder[:-1]]
        all_losses, unknown = zip(*(losses_of(folder, False) for folder in group), strict=True)
        seen_losses = [losses_of(folder, True)[0] for folder in group]
        assert unknown == (2, 2)
        cells = [float(cell) for cell in row[-5:]]
        spread = np.mean(all_losses) + 2 / 9 * math.log(3)  # two types and <unk> share
        expected = [np.mean(all_losses), spread, np.mean(seen_losses)]
        np.testing.assert_allclose([cells[0], cells[1], cells[4]], expected, atol=6e-5)
    difference = abs(
        np.mean([losses_of(folder, True)[0] for folder in runs[:2]])
        - np.mean([losses_of(folder, True)[0] for folder in runs[2:]])
    )
    seen_line = text.partition("words seen in training:\n")[2].splitlines()[0]
    assert f"{difference:.4f} [" in seen_line and "by 2 sentences" in seen_line
    # fille, whose twin is not in the lexicon, is the subject of est, and filles of sont.
    assert "pairs:agreement-other.conllu, questions that both of two runs were asked:" in text
    (result,) = pathlib.Path(runs[0]).glob("results/pairs_*.json")
    assert json.loads(result.read_text())["figures"]["pairs"] == 2


def test_items_of_a_table_begin_with_an_empty_state(runs, tmp_path, capsys):
    items = "item\tsentence\n1\tles filles sont petites\n2\tles filles\n"
    (tmp_path / "items.tsv").write_text(items, encoding="utf-8")
    for state in ((), ("--state", "carried")):
        evaluate(runs[:1], "items.tsv", *state)
        assert "6 words, 2 outside the lexicon (33.33% of words" in capsys.readouterr().out
    files = pathlib.Path(runs[0]).glob("results/data_items.tsv-*.json")
    assert sorted(path.name.split(".")[2] for path in files) == ["carried", "sentences"]


def test_words_that_a_run_reads_in_another_way_are_told(runs, tmp_path, capsys):
    rows = [
        "\t".join([str(n), word, *"________"]) for n, word in enumerate(["les maisons", "sont"], 1)
    ]
    (tmp_path / "joint.conllu").write_text("\n".join([*rows, "", ""]), encoding="utf-8")
    evaluate(runs[:1], "joint.conllu")
    joint = "'les maisons': words with blanks, which the training text has as several words"
    assert capsys.readouterr().err.count(f"{joint}: give plain text\n") == 1


def test_parts_are_of_the_words_that_training_saw(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(table, "WIDTH", 10_000)
    evaluate(runs, "other.conllu", "--state", "sentences")
    (tmp_path / "words.txt").write_text("fille\nfilles\n", encoding="utf-8")
    words = ["--add-words", "words.txt", "--spread-unknown", "--unseen-weight", "tune"]
    evaluate(runs, "other.conllu", "--state", "sentences", *words)
    capsys.readouterr()
    compare(runs, "data:other.conllu")
    output = capsys.readouterr().out
    assert "over the 11 words of the lexicon" in " ".join(output.split())
    assert "words never seen in training:" in output
    # All types are in the list, so the figure of all words is the one that was called "spread".
    sections = output.split("in parts: nats/token")[1:]
    tables = [[line.split() for line in section.splitlines()[:3]] for section in sections]
    plain, wider = sorted(tables, key=lambda rows: "mixture" in rows[0])
    assert plain[0][-4:] == ["spread", "unknown", "1-9", "seen"]
    assert wider[0][-2:] == ["mixture", "l"]
    assert plain[2][-4] == wider[2][-6]
