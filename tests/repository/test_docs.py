"""What docs show works: their Python, their shell, and the settings of their commands."""

import dataclasses
import itertools
import pathlib
import re
import shlex
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

import configs
import zoo
from tests.lab.training import small
from zoo import configuration
from zoo.heads import CharLSTM
from zoo.lab.commands import command_table
from zoo.lab.evaluation import sentence_scores
from zoo.lab.runs import output_files
from zoo.lab.runs.checkpoints import Checkpoints
from zoo.lab.runs.workdir import Workdir
from zoo.lexicon.spelling import Spelling

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
# own_components.md names modules that the reader writes; test_site.py runs its commands.
OF_DOCS = [page for page in DOCS.rglob("*.md") if page.name != "own_components.md"]
PAGES = [ROOT / "README.md", *OF_DOCS, *configs.paths().values()]
# A config and what is set in it, in a command or in running text; the folder may stand between.
SETTINGS = re.compile(r"(\w+)`?((?: --(?:set|workdir) [^ `]+| runs/[^ `]+)+)")


def snippets(name, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_commands_set_can_be_set(page):
    text = re.sub(r"\s*\\?\n\s*", " ", page.read_text(encoding="utf-8"))
    for name, options in SETTINGS.findall(text):
        if name not in configs.names():
            continue
        words = shlex.split(options.rstrip(".,;:)"))
        chosen = [value for flag, value in itertools.pairwise(words) if flag == "--set"]
        # M stands for the numbers that the text gives.
        configuration.apply_settings(
            configs.load(name), [re.sub("=M$", "=7", setting) for setting in chosen]
        )


@pytest.mark.slow
def test_the_most_probable_spellings_are_printed(tmp_path, capsys):
    (snippet,) = snippets("characters.md")
    head = CharLSTM(Spelling(longest=4), size=3, letter_size=2)
    recipe = small.experiment(dataclasses.replace(small.MODEL, head=head))
    lexicon, _ = recipe.build()
    workdir = Workdir(tmp_path / "run")
    workdir.claim(recipe)
    workdir.save_lexicon(lexicon)
    checkpoints = Checkpoints(workdir.path / "checkpoints")
    params = recipe.model.init(jax.random.key(0), lexicon)
    checkpoints.save("best", 1, {"params": params}, {})
    checkpoints.close()
    for documented, replacement in (
        ("runs/ptb_char_lstm", str(workdir.path)),
        ("the new york stock", "word1 word2"),
    ):
        assert documented in snippet
        snippet = snippet.replace(documented, replacement)
    exec(snippet, {})
    *lines, last = capsys.readouterr().out.splitlines()
    log_probs = [float(line.split()[0]) for line in lines]
    assert len(log_probs) == 5 and log_probs == sorted(log_probs, reverse=True)
    assert re.fullmatch(r"exact|at most -\d+\.\d{3} may be missing", last)


def test_the_best_hypotheses_are_printed(tmp_path):
    (snippet,) = snippets("scoring.md", "sh")
    header = ("id", *sentence_scores.COLUMNS, "rank")
    rows = [
        # The model's half makes up for 2 nats of the other score, not for 3.
        ("b", 1, 2, 0, -9.0, -9.0, 2, "b ||| one two ||| 0.1 -3 ||| -1.0"),
        ("b", 2, 1, 0, -4.0, -4.0, 1, "b ||| three ||| 0.1 -3 ||| -3.0"),
        ("a", 3, 1, 0, -9.0, -9.0, 2, "a ||| four ||| 0.1 -3 ||| -1.0"),
        ("a", 4, 1, 1, -4.0, -4.0, 1, "a ||| five ||| 0.1 -3 ||| -4.0"),
    ]
    (tmp_path / "dev.nbest").write_text("".join(row[-1] + "\n" for row in rows))
    output_files.write_table(tmp_path / "scores.tsv", header, [row[:-1] for row in rows])
    done = subprocess.run(
        ["sh", "-c", snippet], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "three\nfour\n"


def test_critical_regions_of_the_page_are_put_side_by_side(tmp_path, monkeypatch):
    """The table of the page by its command; the figures are those of its sentences alone."""
    page = (DOCS / "scoring.md").read_text(encoding="utf-8")
    rows = re.search(r"^\| item \|.*?\n\n", page, re.DOTALL | re.MULTILINE)[0].splitlines()
    cells = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in rows if "---" not in row
    ]
    (tmp_path / "items.tsv").write_text("".join("\t".join(row) + "\n" for row in cells if row))
    (command,) = re.findall(r"^    python -m zoo (score \S+ items\.tsv .*)$", page, re.MULTILINE)
    folder, line = str(ROOT / "models" / "french"), command.split()
    monkeypatch.chdir(tmp_path)
    command_table.main([folder if part == "models/french" else part for part in line])
    names = {}
    snippet, _ = snippets("scoring.md")
    exec(snippet, names)
    model = zoo.load(folder)
    for condition, verb in (("match", "jouent"), ("mismatch", "joue")):
        words = model.surprisal(f"les enfants du village {verb} dans la rue .")
        (surprisal,) = names["side_by_side"][condition]
        assert surprisal == pytest.approx(words[4].surprisal_bits, abs=1e-4)


def test_reading_times_of_subjects_get_the_surprisal_of_their_words(tmp_path, monkeypatch):
    page = (DOCS / "scoring.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    python -m zoo (score \S+ stimuli\.tsv .*)$", page, re.MULTILINE)
    read = [
        (subject, "1", condition, str(place), word, str(300 + place))
        for subject in ("s1", "s2")
        for condition, verb in (("match", "jouent"), ("mismatch", "joue"))
        for place, word in enumerate(("les", "enfants", verb, "."), 1)
    ]
    read.sort(key=lambda row: row[3])  # by region, subjects and conditions mixed
    names = ("subject", "item", "condition", "region", "word", "rt")
    stimuli = sorted({row[1:5] for row in read})
    for file, rows in (("times.tsv", [names, *read]), ("stimuli.tsv", [names[1:5], *stimuli])):
        (tmp_path / file).write_text("".join("\t".join(row) + "\n" for row in rows))
    folder = str(ROOT / "models" / "french")
    monkeypatch.chdir(tmp_path)
    command_table.main(command.replace("models/french", folder).split())
    merged = {}
    exec(snippets("scoring.md")[1], merged)
    times, model = merged["times"], zoo.load(folder)
    assert [*map(str, times.rt)] == [row[5] for row in read] and times.known.all()
    for verb, condition in (("jouent", "match"), ("joue", "mismatch")):
        bits = [row.surprisal_bits for row in model.surprisal(f"les enfants {verb} .")][:4]
        for subject in ("s1", "s2"):
            subject_times = times[(times.subject == subject) & (times.condition == condition)]
            assert subject_times.surprisal_bits.tolist() == pytest.approx(bits, abs=1e-4)


def test_the_page_of_runs_trains_beside_wandb(monkeypatch):
    calls = []
    stub = types.SimpleNamespace(
        init=lambda **options: calls.append(options), finish=lambda: calls.append("finished")
    )
    monkeypatch.setitem(sys.modules, "wandb", stub)
    monkeypatch.setattr(zoo, "train", lambda experiment, folder: calls.append(folder))
    (snippet,) = snippets("runs.md")
    exec(snippet, {})
    assert calls == [{"project": "zoo", "sync_tensorboard": True}, "runs/softmax", "finished"]


@pytest.mark.slow
def test_the_losses_of_the_page_are_computed():
    names = {}
    for snippet in snippets("losses.md"):
        exec(snippet, names)
    # No weights yet: all words are alike.
    np.testing.assert_allclose(names["total"], 7 * np.log(10_000), rtol=1e-6)
    assert names["loss"].shape == (2, 4)
    requests = (DOCS / "losses.md").read_text().partition("## What others ask for")[2]
    lines = re.findall(r"^\| [^|]* \| `([^`]*\([^`]*)`", requests, re.MULTILINE)
    assert len(lines) > 30
    for line in lines:
        for leaf in jax.tree.leaves(eval(line, names)):
            assert np.isfinite(leaf).all(), line


@pytest.mark.slow
@pytest.mark.parametrize("page", ["preferences.md", "distillation.md", "items.md"])
def test_losses_of_pages_are_computed_with_their_gradients(page):
    names = {}
    for snippet in snippets(page):
        exec(snippet, names)
    for leaf in jax.tree.leaves((names["value"], names["gradients"], names["loss"])):
        assert np.isfinite(leaf).all()


def test_unknown_words_of_the_page_are_put_in():
    snippet, data_snippet = snippets("alignments.md")
    names = {}
    exec(snippet, names)
    exec(data_snippet, {})
    assert names["annotated"] == (
        ["the", "<unk>", "in", "<unk>"],
        ["le", "<unkpos_0>", "de", "<unkpos_0>"],
    )
    assert names["translation"] == names["target"]


@pytest.mark.slow
def test_a_step_function_is_decoded():
    names = {}
    for snippet in snippets("decoding.md"):
        exec(snippet, names)
    assert names["found"].words[:, 0].tolist() == [[1, 2, 0, 0], [2, 2, 1, 0]]
    assert names["again"].words[:, 0].tolist() == names["found"].words[:, 0].tolist()
    search_output = names["found"]
    inside = np.arange(4)[None, None] < np.asarray(search_output.lengths)[..., None]
    np.testing.assert_allclose(names["forced"][inside], search_output.log_probs[inside], rtol=1e-6)
    assert [nbest[0].words for nbest in names["translations"]] == [[1, 2], [2], [1, 1, 2]]
