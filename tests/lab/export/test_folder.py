"""An exported run: the same numbers without the zoo, the same run with it.

What is damaged in one is in tests/malformed/doors/exports.tsv.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

import zoo
from tests.examples import sentence_log_probs
from tests.lab.export.test_standalone_serving import compilations
from tests.lab.training import small
from tests.lab.training.test_tasks_translation import MODEL as OF_PAIRS
from tests.lab.training.test_tasks_translation import experiment as of_pairs
from zoo.attention import Bahdanau, Luong
from zoo.base.lazy import MissingExtra
from zoo.cores import GRU, Bidirectional
from zoo.decoding import steps
from zoo.errors import UserError
from zoo.heads import CharLSTM, LogLinear
from zoo.lab.commands import command_table
from zoo.lab.evaluation import perplexity
from zoo.lab.evaluation.run import Run
from zoo.lab.export import folder, stablehlo, standalone
from zoo.lab.runs import hub
from zoo.lab.runs.workdir import Workdir
from zoo.lexicon import Spelling
from zoo.priors import KneserNey
from zoo.priors.strings import DigitStrings

MODELS = pathlib.Path(__file__).parents[3] / "models"
TEXTS = ["word3 word1 word1", "word7", "", "word2 word9 word4 word5 word0 word10"]
# A process that cannot import the zoo, nor what only the zoo needs.
WITHOUT_ZOO = """
import sys
sys.modules.update(dict.fromkeys(("zoo", "flax", "optax", "orbax", "tests")))
sys.path.insert(0, "")
import json, numpy as np, load
model = load.Model(".")
texts = [text.split() for text in json.loads(sys.argv[1])]
found = {"log_prob": model.log_prob(texts).tolist()}
if "step" in model.record["programs"]:
    rows = np.array([0, 3, 2, 5, 1])
    first, carry = model.step(rows, model.initial_carry(5))
    second, carry = model.step(rows[::-1], carry)
    found["step"] = [np.asarray(first).tolist(), np.asarray(second).tolist()]
print(json.dumps(found))
"""


def settings(name):
    if name in small.MODELS:
        return small.MODELS[name]
    if name == "bigrams":  # whose background has a carry of its own
        model = small.LOG_LINEAR
        head = LogLinear(background=KneserNey(order=2), initial_scale=0.5)
        return {
            "model": zoo.changed(model, {"head": head}),
            "vocabulary": zoo.changed(small.WITH_FEATURES, {"background": None}),
        }
    head = CharLSTM(Spelling(longest=8), size=3, letter_size=2)
    return {"model": zoo.changed(small.MODEL, {"head": head})}


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """{name: (the run's folder, the export's)}, made when they are asked for."""
    folders = {}

    def export_of(name):
        if name not in folders:
            place = tmp_path_factory.mktemp("export")
            path = small.run_in(place / "run", small.experiment(epochs=1, **settings(name)))
            folders[name] = path, folder.write(path, place / "out", "made up")
        return folders[name]

    return export_of


@pytest.mark.parametrize("name", ["log-linear", "softmax", "bigrams", "letters"])
@pytest.mark.slow
def test_a_process_without_the_zoo_has_the_same_numbers(name, exports):
    path, out = exports(name)
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", WITHOUT_ZOO, json.dumps(TEXTS)],
        cwd=out,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers, loaded = json.loads(done.stdout), zoo.load(path)
    np.testing.assert_allclose(answers["log_prob"], sentence_log_probs(loaded, TEXTS), rtol=1e-5)
    assert ("step" in answers) == (name != "letters")
    if "step" in answers:
        rows, states = np.array([0, 3, 2, 5, 1]), loaded.initial_states(5)
        for words, log_probs in zip((rows, rows[::-1]), answers["step"], strict=True):
            expected, states = loaded.step(words, states)
            np.testing.assert_allclose(log_probs, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_strings_of_open_classes_are_left_to_zoo(tmp_path):
    """They are no unknown words, and load.py does not know their classes."""
    digits = DigitStrings(("Digit:3",))  # a feature of the words
    vocabulary = dataclasses.replace(small.WITH_FEATURES, open_classes=(digits,))
    recipe = small.experiment(small.LOG_LINEAR, vocabulary=vocabulary, epochs=1)
    path = small.run_in(tmp_path / "run", recipe)
    model = standalone.Model(folder.write(path, tmp_path / "out", "made up"))
    log_probs = model.log_prob([["word3", "word1"]])
    np.testing.assert_allclose(
        log_probs, sentence_log_probs(zoo.load(path), ["word3 word1"]), rtol=1e-5
    )
    with pytest.raises(ValueError, match="'123456' is not among the words of the model"):
        model.log_prob([["word3", "123456"]])


@pytest.mark.slow
def test_translations_go_with_their_passport(tmp_path):
    path = small.run_in(tmp_path / "run", of_pairs(OF_PAIRS, epochs=1))
    command_table.main(["translate", str(path), "--split", "validation", "--bleu", "--beam", "1"])
    out = folder.write(path, tmp_path / "out", "made up")
    (translations,) = (path / "results").glob("*.txt")
    assert (out / "results" / translations.name).read_bytes() == translations.read_bytes()


@pytest.mark.slow
def test_the_zoo_reads_it_back(exports):
    path, out = exports("log-linear")
    run, back = zoo.load(path), zoo.load(out)
    assert back.score(TEXTS) == run.score(TEXTS)
    assert back.generate("word1", count=2, seed=3) == run.generate("word1", count=2, seed=3)
    assert back.checkpoint == run.checkpoint == 6
    assert Workdir(out).data_digest() == Workdir(path).data_digest() != ""


@pytest.mark.slow
def test_programs_are_for_all_platforms(exports):
    path, out = exports("log-linear")
    model = standalone.Model(out)
    log_probs = model.log_prob([text.split() for text in TEXTS])
    np.testing.assert_allclose(log_probs, sentence_log_probs(zoo.load(path), TEXTS), rtol=1e-5)
    from jax import export

    for name in ("score", "step"):
        content = (out / f"programs/{name}.jax").read_bytes()
        # Sources by the names of files, without the folders of this machine.
        assert b"steps.py" in content or name == "score"
        assert b"/zoo/" not in content and b"/site-packages/" not in content
        program = export.deserialize(bytearray(content))
        assert program.platforms == stablehlo.PLATFORMS == ("cpu", "cuda", "tpu")
        assert "rows" in str(program.in_avals[-1].shape)


def test_files_have_the_modes_of_the_users_other_files(exports, tmp_path):
    path, _ = exports("log-linear")
    before = os.umask(0o027)
    try:
        out = folder.write(path, tmp_path / "out")
    finally:
        os.umask(before)
    files = [file for file in out.rglob("*") if file.is_file()]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o640}
    assert out / "params.safetensors" in files and out / "tables.safetensors" in files


@pytest.mark.slow
def test_few_programs_are_compiled_for_many_lengths(exports):
    path, out = exports("softmax")
    model, random = standalone.Model(out), np.random.default_rng(0)
    sentences = [[f"word{n}" for n in random.integers(11, size=size)] for size in range(17)]
    expected = sentence_log_probs(zoo.load(path), sentences)
    for first, last in ((0, 17), (3, 4), (4, 5), (5, 6), (7, 8), (9, 12), (9, 13), (12, 16)):
        log_probs = model.log_prob(sentences[first:last])
        np.testing.assert_allclose(log_probs, expected[first:last], rtol=1e-5)
    # 32 rows of 32 positions, 1 of 4, 1 of 8, and 4 of 16.
    assert model._programs["score"]._cache_size() == 4
    nothing = model.log_prob([])
    assert nothing.shape == (0,) and nothing.dtype == np.float64


def test_the_card_says_what_is_known(exports, tmp_path):
    path, _ = exports("log-linear")
    judged = shutil.copytree(path, tmp_path / "run")
    command_table.run("evaluate", [str(judged), "--split", "validation"])
    out = folder.write(judged, tmp_path / "out", "CC0, as the test says")
    text = (out / "README.md").read_text()
    (passport,) = (out / "results").glob("*.json")
    figures = json.loads(passport.read_text())["figures"]
    parameters = sum(leaf.size for leaf in jax.tree.leaves(Run.load(path).params))
    assert f"A LanguageModel of {parameters:,} parameters (Features, LSTM, LogLinear)" in text
    assert "CC0, as the test says" in text and "| validation | sentences |" in text
    assert f"{figures['log_perplexity']:.4f}" in text
    assert "!" not in text.partition("## Figures")[2].partition("## Use")[0]
    # Command lines name folders of the machine.
    assert "command" in json.loads((judged / "results" / passport.name).read_text())
    assert "command" not in json.loads(passport.read_text())
    command_table.run("evaluate", [str(judged), "--split", "train"])
    card_of_seen_text = (folder.write(judged, tmp_path / "seen", None) / "README.md").read_text()
    assert re.search(r"^\| train \| sentences \|.* ! \|$", card_of_seen_text, re.MULTILINE)
    assert (
        "! Not a figure of unseen text: train; it was trained on this text (" in card_of_seen_text
    )
    _, never_judged = exports("log-linear")
    assert "was not judged" in (never_judged / "README.md").read_text()
    micro = folder.card(Run.load(MODELS / "micro"), "micro", None, {}, 1)
    assert "- Trained on `micro-train` (this run): 6,000 sentences, 58,173 tokens, sha256" in micro
    assert "- Selected on `micro-validation` (this run): " in micro


def test_all_that_zoo_reads_has_a_checksum(exports):
    _, out = exports("log-linear")
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    files -= {name for name in files if "__pycache__" in name}  # of load.py, imported by a test
    record = json.loads((out / "export.json").read_text())
    assert files - {"README.md", "load.py", "export.json"} == {*record["sha256"]}
    assert {"experiment.json", "texts.npz", "lexicon.npz"} < {*record["sha256"]}


def test_what_cannot_be_exported_is_said(exports, tmp_path, monkeypatch):
    path, out = exports("log-linear")
    with pytest.raises(UserError, match="exists already"):
        folder.write(path, out)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be made"):
        folder.write(path, tmp_path / "file" / "out")
    with pytest.raises(UserError, match="is not trained further"):
        Workdir(out).check(small.experiment(epochs=1, **settings("log-linear")))
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for attempt in (lambda: zoo.load(out), lambda: folder.write(path, tmp_path / "new")):
        with pytest.raises(MissingExtra, match=r"^safetensors is not installed"):
            attempt()
    assert {path.name for path in tmp_path.iterdir()} == {"file"}


# A process without the zoo, of a translator: sentences of other lengths side by side.
PAIRS_ALONE = """
import sys
sys.modules.update(dict.fromkeys(("zoo", "flax", "optax", "orbax", "tests")))
sys.path.insert(0, "")
import json, numpy as np, load
model = load.Translator(".")
sources, targets = ([text.split() for text in side] for side in json.loads(sys.argv[1]))
carry, constant = model.encode(*model.read_sources(sources))
first, carry = model.step([model.ids([model.boundary])[0]] * 3, carry, constant)
second, carry = model.step([2, 5, 1], carry, constant)
print(json.dumps([model.log_prob(sources, targets).tolist(), first.tolist(), second.tolist()]))
"""
TRANSLATORS = {
    "forward": ({}, {}),
    "attention": ({"attention": Luong(), "order": "source_reversed"}, {}),
    "bidirectional": (
        {"attention": Bahdanau(), "encoder": Bidirectional(GRU(7)), "core": GRU(7)},
        {"order": "target_reversed"},
    ),
    "input feeding": (
        {"attention": Luong(), "input_feeding": True},
        {"bridge": "last", "source_boundary": True},
    ),
}


@pytest.mark.parametrize("name", TRANSLATORS)
@pytest.mark.slow
def test_an_encoder_decoder_without_the_zoo_has_the_same_numbers(name, tmp_path):
    fields = {**TRANSLATORS[name][0], **TRANSLATORS[name][1]}
    recipe = of_pairs(dataclasses.replace(OF_PAIRS, **fields), epochs=1)
    path = small.run_in(tmp_path / "run", recipe)
    out = folder.write(path, tmp_path / "out", "made up")
    run = Run.load(path)
    corpus = recipe.vocabulary.read(recipe.data, "validation")
    targets = [" ".join(words) for words in corpus.sentences[:3]]
    sources = [" ".join(words) for words in corpus.source_text.sentences[:3]]
    assert len({len(text.split()) for text in sources}) > 1
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", PAIRS_ALONE, json.dumps([sources, targets])],
        cwd=out,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    log_prob, first, second = json.loads(done.stdout)
    pairs = perplexity.read(recipe, run.lexicon, run.source_lexicons[0], corpus)
    model, text = recipe.model, pairs.target
    scores = perplexity.score_pairs(model, run.params, run.tables, pairs, 2)
    expected = [
        scores.log_prob[start : start + length].sum()
        for start, length in zip(text.starts[:3], text.lengths[:3], strict=True)
    ]
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5)
    batch = pairs.batch(np.arange(3), (pairs.source_lengths[:3].max(), 9))
    step, carry = steps.from_sequence_to_sequence(
        model, run.params, run.tables, batch.source, batch.lengths
    )
    words = np.full(3, run.lexicon.boundary_id)
    for inputs, log_probs in ((words, first), (np.array([2, 5, 1]), second)):
        expected_log_probs, carry = step(inputs, carry)
        np.testing.assert_allclose(log_probs, expected_log_probs, rtol=1e-5, atol=1e-6)
    back = zoo.load_translator(out)
    translations = zoo.load_translator(path).translate(sources, beam=2)
    assert back.translate(sources, beam=2) == translations
    assert "pipeline_tag: translation" in (out / "README.md").read_text()
    finished = subprocess.run(
        [sys.executable, "load.py", sources[0], targets[0]],
        cwd=out,
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(finished.stdout) == pytest.approx(expected[0], rel=1e-5)
    model = standalone.Translator(out)
    model.warm_up(2, 3)
    with compilations() as programs:
        for rows, before, after in ((1, 3, 0), (2, 0, 3), (2, 2, 1)):
            model.log_prob([["unheard-of"] * before] * rows, [["unheard-of"] * after] * rows)
    assert not programs


def test_the_command_tells_of_its_files(exports, tmp_path, capsys):
    path, _ = exports("log-linear")
    command_table.main(["export", str(path), str(tmp_path / "out")])
    printed = capsys.readouterr().out
    for name in ("params.safetensors", "programs/score.jax", "load.py", "README.md"):
        assert str(tmp_path / "out" / name) in printed
    command_table.main(["generate", str(tmp_path / "out"), "--count", "2"])
    assert len(capsys.readouterr().out.splitlines()) == 2


class FakeHub(types.ModuleType):
    """The hub as a folder."""

    def __init__(self, place):
        super().__init__("huggingface_hub")
        self.place = place
        self.further: list[str] = []  # names of files that no folder can have

    def HfApi(self):
        return self

    def repo_info(self, repository):
        if not (self.place / repository).exists():
            raise ConnectionError("nothing there")
        files = [path for path in (self.place / repository).rglob("*") if path.is_file()]
        names = [str(path.relative_to(self.place / repository)) for path in files]
        files = [types.SimpleNamespace(rfilename=name) for name in names + self.further]
        return types.SimpleNamespace(sha="c0ffee", siblings=files)

    def snapshot_download(self, repository, revision, allow_patterns, local_dir=None):
        import pathlib

        local_dir = local_dir or self.place / "cache" / revision
        assert revision == "c0ffee"  # whose names were checked
        for file in (self.place / repository).rglob("*"):
            name = file.relative_to(self.place / repository)
            if file.is_file() and any(name.match(pattern) for pattern in allow_patterns):
                (pathlib.Path(local_dir) / name).parent.mkdir(parents=True, exist_ok=True)
                if local_dir == self.place / "cache" / revision:  # links to what is kept once
                    (local_dir / name).symlink_to(file)
                else:
                    shutil.copyfile(file, pathlib.Path(local_dir) / name)
        return str(local_dir)


def test_it_is_pulled_from_the_hub(exports, tmp_path, monkeypatch):
    _, out = exports("log-linear")
    monkeypatch.setitem(sys.modules, "huggingface_hub", FakeHub(tmp_path / "hub"))
    shutil.copytree(out, tmp_path / "hub/me/model")  # as `hf upload` does
    (tmp_path / "hub/me/model/.gitattributes").touch()
    back = hub.pull("me/model", tmp_path / "back")
    names = {f.name for f in out.iterdir()} - {"__pycache__"}
    assert {f.name for f in back.iterdir()} == names  # and nothing else
    assert zoo.load(back).score(TEXTS) == zoo.load(out).score(TEXTS)
    opened = zoo.load("hub:me/model")  # of the hub's cache, whose files are links
    assert opened.path == tmp_path / "hub/cache/c0ffee"
    assert opened.score(TEXTS) == zoo.load(out).score(TEXTS)
    for name in ("hub:me/no", "hub:model"):
        with pytest.raises(UserError, match=r"the hub refused me/no|model is neither OWNER/NAME"):
            zoo.load(name)
    with pytest.raises(UserError, match=r"the hub refused me/no \(ConnectionError"):
        hub.pull("me/no", tmp_path / "no")
    (tmp_path / "hub/me/empty").mkdir()
    with pytest.raises(UserError, match="does not hold an export"):
        hub.pull("me/empty", tmp_path / "no")
    sys.modules["huggingface_hub"].further = ["results/../../x.json"]
    with pytest.raises(UserError, match=r"me/model has an object .* 'results/../../x.json'"):
        hub.pull("me/model", tmp_path / "no")
    assert not (tmp_path / "no").exists()
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[hub\]' in the checkout, or 'zoo-"):
        hub.pull("me/model", tmp_path / "no")
