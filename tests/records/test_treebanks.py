"""Runs of a treebank: its parts and its trials; finished runs are not repeated."""

import json
import pathlib

import pytest

from records import treebank_figures, treebanks
from records.treebanks import Treebank


def treebank_text(words, documents=()):
    """CoNLL-U with a word a sentence; `documents` are the numbers of their first sentences."""
    lines = []
    for number, word in enumerate(words):
        lines += ["# newdoc id = x"] if number in documents else []
        row = ["1", word, word, "NOUN", *"______"]
        lines += [f"# sent_id = {number}", "\t".join(row), ""]
    return "\n".join([*lines, ""])


@pytest.fixture
def data(tmp_path, monkeypatch):
    """$ZOO_DATA with a treebank "xx_tiny" of 21 sentences, without documents."""
    folder = tmp_path / "ud_xx_tiny"
    folder.mkdir()
    words = [*"aaaa", *"bbbb", *"ccc", *"dddd", *"eeeeee"]
    (folder / "xx-dev.conllu").write_text(treebank_text(words))
    (folder / "xx-test.conllu").write_text(treebank_text("adzza"))
    monkeypatch.setenv("ZOO_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return folder / "xx-dev.conllu", words


@pytest.mark.parametrize(
    ("documents", "held_out"),
    [((), 3), ((0, 5, 17, 19), 4), ((0, 18), 3), ((0,), 3), ((0, 19), 3)],
)
def test_validation_is_the_last_tenth_or_the_documents_that_hold_it(documents, held_out, data):
    path, words = data
    path.write_text(treebank_text(words, documents))
    treebank = Treebank("xx_tiny", pathlib.Path("runs"))
    config, fields = treebank.sides["tags"]
    assert config == "ud_xx_tiny"
    assert fields["data.train"] == f"ud_xx_tiny/xx-dev.conllu[:-{held_out}]"
    assert fields["data.validation"] == f"ud_xx_tiny/xx-dev.conllu[-{held_out}:]"
    assert fields["data.tests"] == '("ud_xx_tiny/xx-test.conllu",)'
    assert treebank.test_counts == {"a": 2, "d": 1, "z": 2}


def test_words_seen_four_times_and_the_marks_are_apart_from_the_class(data):
    """a, b, d in 18 sentences of training; e occurs three times there, and c three times."""
    treebank = Treebank("xx_tiny", pathlib.Path("runs"))
    _, fields = treebank.sides["class"]
    assert fields["vocabulary.features.0.count"] == 3 + 2


def test_the_best_trial_gets_three_seeds_and_nothing_is_done_twice(data, monkeypatch):
    commands = []

    def call(*command, check=True):
        commands.append(command)
        assert check or command[-1] == "--agreement"  # where a treebank may have no pairs
        if command[0] == "train.py":
            return
        run, options = pathlib.Path(command[1]), [*command[2:]]
        results = run / "results"
        results.mkdir(parents=True, exist_ok=True)
        if options == ["--agreement"]:
            (results / "pairs_agreement-test-0123.sentences.json").write_text("")
        elif options:
            ending = options[-1].removeprefix("--").replace("=", "-")
            (results / f"test.sentences.lexicon-0123-{ending}.json").write_text("")
        else:
            loss = 1.0 if "_inputs_" in run.name else 2.0
            (results / "validation.sentences.json").write_text(json.dumps(loss))
            (results / "test.sentences.json").write_text("")

    def read_passport(path):
        figures = type("Figures", (), {"log_perplexity": json.loads(path.read_text())})
        return type("Passport", (), {"figures": figures})

    monkeypatch.setattr(treebanks, "_call", call)
    kept = []
    monkeypatch.setattr(treebanks, "read_passport", read_passport)
    monkeypatch.setattr(
        treebank_figures, "keep", lambda *args, **fields: kept.append((args, fields))
    )
    monkeypatch.setattr("sys.argv", ["treebanks", "runs", "xx_tiny"])
    treebanks.main()
    trained = [command[-1] for command in commands if command[0] == "train.py"]
    assert len(trained) == 5 * (4 + 2)
    assert [name for name in trained if "_tags_" in name and "no_tags" not in name] == [
        *(f"runs/xx_tiny_tags_{trial}_0" for trial in treebanks.TRIALS),
        "runs/xx_tiny_tags_inputs_1",
        "runs/xx_tiny_tags_inputs_2",
    ]
    ways = [command[-1] for command in commands if "runs/xx_tiny_softmax_inputs_1" in command]
    assert ways[2:] == ["--spread-letters=5", "--agreement"]
    ways = [command[-1] for command in commands if "runs/xx_tiny_forms_inputs_2" in command]
    assert ways[2:] == ["--spread-letters=5", "--spread-features", "--agreement"]
    table = pathlib.Path("runs/xx_tiny.words").read_text()
    assert table == "word\tcount\na\t2\nd\t1\nz\t2\n"
    ((name, runs_by_side), fields) = kept[0]
    assert name == "xx_tiny" and [*runs_by_side] == ["tags", "softmax", "no_tags", "class", "forms"]
    names = ["xx_tiny_tags_inputs_0", "xx_tiny_tags_inputs_1", "xx_tiny_tags_inputs_2"]
    assert [run.name for run in runs_by_side["tags"]] == names
    # Of a, b, c and d; the last tenth, three times e, is validation.
    assert (fields["sentences"], fields["tokens"], fields["types"]) == (18, 18, 5)
    losses = {"as_is": 2.0, "inputs": 1.0, "small_batch": 2.0, "slow": 2.0}
    assert fields["trials"] == dict.fromkeys(runs_by_side, losses)
    done = len(commands)
    treebanks.main()
    assert len(commands) == done
