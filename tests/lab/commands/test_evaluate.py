"""The entry scripts on a trained run."""

import dataclasses
import json
import re
import shutil

import pytest

import evaluate
from zoo import __main__ as commands
from zoo.lab.evaluation import minimal_pairs
from zoo.lab.runs.workdir import Workdir
from zoo.sources import table_rows


def test_all_splits_but_train_are_judged(call, workdir):
    code, output, _ = call(evaluate, workdir)
    assert code == 0
    assert "test: log-perplexity" in output and "20 tokens" in output and "unseen" in output
    files = sorted(path.name for path in (workdir / "results").iterdir())
    splits = ("test", "validation")
    assert files == [f"{split}.carried.{end}" for split in splits for end in ("json", "scores.npz")]


def test_another_text_and_state(call, workdir, tmp_path):
    text = tmp_path / "new.txt"
    text.write_text("le chat dort\n")
    code, output, _ = call(evaluate, workdir, "--data", text, "--state", "sentences")
    assert code == 0
    assert "data:new.txt: log-perplexity" in output and " 3 tokens" in output
    (result,) = (workdir / "results").glob("data_new.txt-*.sentences.json")
    assert json.loads(result.read_text())["policies"]["state"] == "sentences"


def test_a_weight_for_words_without_training_text(call, workdir, tmp_path):
    _, _, errors = call(evaluate, workdir, "--unseen-weight", "tune")
    assert "no word of the lexicon is without training text: nothing is mixed" in errors
    words = tmp_path / "words.txt"
    words.write_text("zèbre\nchèvre\n", encoding="utf-8")
    options = ("--add-words", words, "--spread-unknown", "--split", "test")
    for weight, weight_note in (
        ("tune", "l = 0 set on validation"),
        ("0.125", "l = 0.125 as given"),
    ):
        code, output, _ = call(evaluate, workdir, *options, "--unseen-weight", weight)
        assert code == 0
        assert "with (1 - l) p + l/2 over the words unseen in training, " + weight_note in output
    (result,) = (workdir / "results").glob("test.carried.lexicon-*.json")
    mixture = json.loads(result.read_text())["figures"]["mixture"]
    assert (mixture["weight"], mixture["words"], mixture["tuned_on"]) == (0.125, 2, None)


def test_minimal_pairs(call, workdir, tmp_path):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text(
        "True\tle chat dort\nFalse\tle chat dorment\nFalse\tle chat rêve\nFalse\tun chat rêve\n"
    )
    code, output, _ = call(evaluate, workdir, "--minimal-pairs", pairs)
    assert code == 0
    assert "of 1 pairs; 2 skipped" in output
    assert "missing words, by pairs: 'rêve' (2), 'un' (1)\n" in output
    (result,) = (workdir / "results").glob("*.json")
    assert json.loads(result.read_text())["figures"]["skipped"] == 2
    table = [row for _, row in table_rows.lines(result.with_suffix(".tsv").read_text(), result)]
    assert table[0] == [*minimal_pairs.COLUMNS]
    first, *skipped = table[1:]
    assert first[:3] == ["1", "le chat dort", "le chat dorment"]
    good, bad, difference = map(float, first[3:6])
    assert difference == pytest.approx(good - bad, abs=2e-6)
    assert first[6:] == ["TRUE" if good > bad else "FALSE", ""]
    assert skipped == [
        ["2", "le chat dort", "le chat rêve", "", "", "", "", "rêve"],
        ["3", "le chat dort", "un chat rêve", "", "", "", "", "un rêve"],
    ]


def test_fused_forms_that_training_had_as_their_words_are_told(call, workdir, tmp_path):
    lexicon = Workdir(workdir).lexicon()
    dataclasses.replace(lexicon, fused={"zèbre": ("zè", "bre")}).save(workdir / "lexicon.npz")
    note = "'zèbre': fused forms, which the training text has as separate words ('zèbre' as "
    pairs, text = tmp_path / "pairs.txt", tmp_path / "text.txt"
    pairs.write_text("True\tle zèbre dort\nFalse\tle zèbre dorment\n")
    text.write_text("le zèbre dort\n")
    # An unknown word that both sentences have is no reason to skip a pair.
    for options in (("--split", "test"), ("--data", text), ("--minimal-pairs", pairs)):
        code, _, errors = call(evaluate, workdir, *options)
        assert code == 0 and errors.startswith(note)
        untrained = errors.count("scored as <unk>, which the training text never had")
        assert untrained == ("--minimal-pairs" not in options)
        share = "2 of the 6 words of" in errors and "are unknown to the run (33.33%)" in errors
        assert share == ("--minimal-pairs" in options)
        assert errors.count("\n") == 1 + untrained + share
    code, _, errors = call(evaluate, workdir, "--split", "validation")
    assert (code, errors) == (0, "")
    assert note in call(commands, "score", workdir, text)[2]
    code, output, errors = call(commands, "generate", workdir, "--prompt", "le zèbre", "--count=1")
    assert code == 0 and output.startswith("le zèbre")
    assert errors.startswith(note) and errors.count("\n") == 2
    assert "1 of the 2 words of the prompt are unknown to the run (50.00%)\n" in errors


def test_a_text_of_unknown_words_alone_is_told(call, workdir, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat\nsat\n")
    warning = "all 3 words of {} are unknown to the run, and nothing is measured but <unk>: give"
    code, output, _ = call(evaluate, workdir, "--data", text)
    assert code == 0 and f"\n  ! {warning.format('the text')}" in output
    code, _, errors = call(commands, "score", workdir, text)
    assert code == 0 and f"\n{warning.format(text)}" in errors
    text.write_text("the cat\nsat le\n")
    for script, *words in ((evaluate, workdir, "--data", text), (commands, "score", workdir, text)):
        assert "all 3" not in str(call(script, *words))


def test_words_with_blanks_are_told_in_either_form(call, workdir, tmp_path):
    """Of treebanks: "10 000", or a word of two syllables in Vietnamese."""
    note = "'le chat': words with blanks in the training text, and several words here: give the "
    lexicon = Workdir(workdir).lexicon()
    text, treebank = tmp_path / "text.txt", tmp_path / "text.conllu"
    text.write_text("le chat dort\n")
    rows = ["\t".join([str(n), word, *"________"]) for n, word in enumerate(["le chat", "dort"], 1)]
    treebank.write_text("\n".join([*rows, "", ""]))
    treebank_note = (
        "'le chat': words with blanks, which the training text has as several words: give plain"
    )
    command_lines = (evaluate, workdir, "--data"), (commands, "score", workdir)
    for command in command_lines:
        assert call(*command, treebank)[2].count(treebank_note) == 1
        assert "words with blanks" not in call(*command, text)[2]
    words = tuple("le chat" if word == "les" else word for word in lexicon.words)
    dataclasses.replace(lexicon, words=words).save(workdir / "lexicon.npz")
    for command in command_lines:
        assert call(*command, text)[2].count(note) == 1
        assert "words with blanks" not in call(*command, treebank)[2]


def test_pairs_of_which_none_can_be_scored(call, workdir, tmp_path):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("True\tle chat rêve\nFalse\tle chat dort\n")
    code, _, errors = call(evaluate, workdir, "--minimal-pairs", pairs)
    assert code == 2
    assert errors.startswith(f"error: no pair of {pairs} can be scored")
    assert "'rêve'" in errors and errors.count("\n") == 1
    assert not (workdir / "results").exists()


def test_the_words_of_a_text_or_split_are_scored(call, workdir, tmp_path):
    text, table = tmp_path / "new.txt", tmp_path / "table.tsv"
    text.write_text("le chat dort\n")
    code, printed, _ = call(commands, "score", workdir, text, "--words")
    assert code == 0 and len(printed.splitlines()) == 5  # a header, three words, a boundary
    assert call(commands, "score", workdir, text, "--words", "--output", table)[:2] == (0, "")
    assert table.read_text() == printed
    text.write_text("le zèbre dort\n")
    code, _, errors = call(commands, "score", workdir, text, "--words")
    assert code == 0 and f"1 of the 3 words of {text} are unknown to the run (33.33%)\n" in errors
    code, split_table, _ = call(commands, "score", workdir, "--words", "--split", "test")
    assert code == 0 and len(split_table.splitlines()) == 24  # twenty words, three boundaries
    rows = [line.split("\t") for line in split_table.splitlines()]
    nats = [float(row[rows[0].index('"surprisal_nats"')]) for row in rows[1:21]]
    options = ("--words", "--split", "test", "--state", "sentences")
    assert call(commands, "score", workdir, *options)[1] != split_table  # the state was carried
    assert nats and not (workdir / "results").exists()


def test_compare_and_generate(call, workdir):
    call(evaluate, workdir)
    code, output, _ = call(commands, "compare", workdir)
    assert code == 0 and "test, carried: nats" in output
    options = ("--prompt", "Le chat", "--count", 3, "--length", 4, "--seed", 1)
    code, output, _ = call(commands, "generate", workdir, *options)
    assert code == 0
    lines = output.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("le chat") and 2 <= len(line.split()) <= 6 for line in lines)
    assert call(commands, "generate", workdir, *options)[1] == output


def test_texts_that_end_with_the_prompt_are_counted(call, workdir):
    for prompt in ("le chat", ""):
        options = ("--prompt", prompt, "--count", 20, "--length", 1)
        code, output, errors = call(commands, "generate", workdir, *options)
        empty = output.splitlines().count(prompt)
        assert code == 0 and 0 < empty < 20
        assert errors == (
            f"{empty} of 20 texts end with the prompt: the next word is </s>; give another "
            "--prompt, --seed or --temperature\n"
        )
    assert call(commands, "generate", workdir, "--count", 1, "--temperature", 0)[2] == ""


def test_a_run_without_tests_is_told_to_name_a_split(call, workdir):
    recipe = json.loads((workdir / "experiment.json").read_text())
    recipe["data"]["tests"] = []
    (workdir / "experiment.json").write_text(json.dumps(recipe))
    code, output, errors = call(evaluate, workdir, "--agreement")
    assert (code, output) == (2, "")
    assert errors == f"error: {workdir} has no test splits: give --split validation.\n"


@pytest.mark.slow
def test_figures_of_models_that_learn_from_the_text_stand_apart(call, workdir, tmp_path):
    """A cache whose settings are tuned, and dynamic evaluation, beside the plain figure."""
    code, plain, _ = call(evaluate, workdir, "--split", "test")
    assert code == 0 and "learns" not in plain
    code, cached, errors = call(evaluate, workdir, "--split", "test", "--cache", "4")
    match = re.search(r"cache: flatness (\S+), weight (\S+), set on validation", errors)
    assert code == 0 and match
    flatness, weight = match.groups()
    cache_note = f"a cache (4 words, flatness {flatness}, weight {weight})"
    learning = "learns from the text that it is judged on, by"
    assert f"  {learning} {cache_note}\n" in cached
    code, repeated, errors = call(
        evaluate, workdir, "--split", "test", "--cache", f"4,{flatness},{weight}"
    )
    assert repeated == cached and "set on validation" not in errors
    options = ("--split", "test", "--dynamic", "rms", "--cache", "4,0.5,0.2")
    code, dynamic, errors = call(evaluate, workdir, *options)
    way = "dynamic evaluation (rms, rate 5e-05, decay 0.002, segments of 5)"
    assert code == 0, errors
    assert f"  {learning} a cache (4 words, flatness 0.5" in dynamic
    assert f"  {learning} {way}\n" in dynamic
    names = {path.name for path in (workdir / "results").glob("*.json")}
    # Other settings of a cache replace its result.
    cached_names = {"test.carried.cache.json", "test.carried.cache-dynamic.json"}
    assert names == {"test.carried.json", *cached_names}
    _, compared, _ = call(commands, "compare", workdir)
    assert "test, carried, learning from the text by a cache: nats" in compared
    both = "learning from the text by a cache, learning from the text by dynamic evaluation"
    assert f"test, carried, {both}: nats" in compared
    assert f"{learning} {cache_note}" in compared
    # The column of heads is of the plain figure.
    assert "WithCache" not in compared.partition("fields in which")[0].partition("ranked by")[0]
    # A run that has only the one and a run that has only the other do not stand beside each other.
    plain, learned = (shutil.copytree(workdir, tmp_path / name) for name in ("plain", "learned"))
    for name in cached_names:
        (plain / "results" / name).unlink()
    (learned / "results" / "test.carried.json").unlink()
    (learned / "results" / "test.carried.cache-dynamic.json").unlink()
    for runs in ((plain, learned), (learned, plain)):
        code, compared, errors = call(commands, "compare", *runs)
        assert code == 0, errors
        assert "test, carried: nats" in compared
        assert "test, carried, learning from the text by a cache: nats" in compared
        assert " is below " not in compared and "a tie" not in compared
        page = tmp_path / "report.html"
        assert call(commands, "compare", *runs, "--page", page)[0] == 0
        text = page.read_text(encoding="utf-8")
        assert "comparable with each other" not in text and "is below" not in text
    code, scores, _ = call(commands, "score", workdir, "--cache", "4,0.5,0.2", __file__)
    assert code == 0 and scores
