"""zoo.load: what the commands do with a run, from Python."""

import csv
import dataclasses
import json
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import zoo
from examples import prefix_beam_search
from tests import scored_sentences
from tests.examples import sentence_log_probs
from tests.lab.training import small
from tests.lab.training.test_tasks_translation import MODEL as TRANSLATOR
from tests.lab.training.test_tasks_translation import experiment as of_pairs
from zoo.data import Characters
from zoo.data.vocabulary import Vocabulary
from zoo.decoding.steps import States
from zoo.errors import UserError
from zoo.heads import CharLSTM
from zoo.lab.commands import command_table
from zoo.lab.evaluation import (
    score_stream,
    scored_texts,
    sentence_scores,
    surprisal,
    unknown_words,
)
from zoo.lab.evaluation.load import LoadedModel
from zoo.lab.evaluation.minimal_pairs import PairScores
from zoo.lab.evaluation.run import Run
from zoo.lexicon import feature_signatures
from zoo.sources import files

DOCS = pathlib.Path(__file__).parent.parent.parent.parent / "docs"


@pytest.fixture(scope="module")
def loaded(trained):
    return zoo.load(trained)


def test_scores_are_those_of_the_command(loaded, trained, tmp_path):
    texts = ["le chat dort .", "Le zèbre dort", "", "les chats"]
    (tmp_path / "t.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    _, scores = scored_sentences.scored(Run.load(trained), str(tmp_path / "t.txt"))
    rows = loaded.score(texts)
    assert [row.sentence for row in rows] == texts
    assert [(row.words, row.unknown) for row in rows] == [(4, 0), (3, 1), (0, 0), (2, 0)]
    log_probs = sentence_log_probs(loaded, texts)
    np.testing.assert_allclose(log_probs, scores.log_prob, rtol=1e-5)
    known_log_probs = [row.log_prob_known for row in rows]
    np.testing.assert_allclose(known_log_probs, scores.log_prob_known, rtol=1e-5)
    split = sentence_log_probs(loaded, [text.split() for text in texts])
    np.testing.assert_allclose(split, log_probs, rtol=1e-6)
    assert loaded.score([]) == []
    assert [row.sentence for row in loaded.score(["", []])] == ["", ""]
    with pytest.raises(UserError, match=r"give \[sentence\]"):
        loaded.score("le chat")


def test_surprisal_reads_the_text_of_a_treebank_as_one(loaded):
    tokens = "".join(f"{n}\t{word}" + "\t_" * 8 + "\n" for n, word in enumerate(("le", "chat"), 1))
    columns = "# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC"
    rows = loaded.surprisal(f"{columns}\n# sent_id = a\n{tokens}\n")
    plain = loaded.surprisal("le chat\n")
    assert [(row.id, row.word) for row in rows][:2] == [("a", "le"), ("a", "chat")]
    assert [row.token for row in rows] == ["1", "2", ""]  # and none of the boundary
    assert {row.token for row in plain} == {""}
    items = loaded.surprisal("item\tsentence\tgroup\n1\tle chat\tx\n")
    assert [row.token for row in items] == ["", "", ""]
    assert [row.surprisal_nats for row in rows] == [row.surprisal_nats for row in plain]


ROW = "1\tle\tle" + "\t_" * 7
WRONG = {
    "a treebank": ([f"# sent_id = a\n{ROW}\n\n"], "sentence 1 has several lines"),
    "its lines": (["# sent_id = a\n", f"{ROW}\n", "\n"], "sentence 1 is of a treebank"),
    "a table": (["item\tword\n1\tle\n1\tchat"], "sentence 1 has several lines"),
    "its rows": (["item\tword", "1\tle"], "sentence 1 is of a table"),
    "a text": (["le chat", "le chat\nles chats\n"], "sentence 2 has several lines"),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_are_no_sentences(loaded, name):
    sentences, message = WRONG[name]
    with pytest.raises(UserError, match=f"^{message}: give sentences, such as.*surprisal reads"):
        loaded.score(sentences)


def test_marks_around_a_sentence_are_its_boundary_and_part_of_a_prefix(loaded):
    bare, marked = loaded.score(["le chat dort", "<s> le chat dort </s>"])
    assert (marked.words, marked.log_prob) == (bare.words, bare.log_prob)
    within = loaded.surprisal("le chat\n<s> le chat </s>\n")
    assert [row.surprisal_nats for row in within[:3]] == [row.surprisal_nats for row in within[3:]]
    assert loaded.words_in("le chat </s>") == ["le", "chat", "</s>"]


def test_marks_around_and_within_sentences_are_told(loaded, caplog, tmp_path):
    files.warn_once.cache_clear()
    for _ in range(2):
        loaded.score(["le chat </s>", "le chat dort </s>"])
    (message,) = caplog.messages
    assert message.startswith("some lines begin or end with marks such as </s>")
    note = "'</s>': marks of sentences within lines, where they are words: break the lines there"
    assert [
        text
        for text in unknown_words.unknown_notes(loaded, [["le", "</s>", "chat"]])
        if text.startswith(note)
    ]
    (tmp_path / "t.txt").write_text("le chat </s> le chat dort\n", encoding="utf-8")
    stream = score_stream.Stream(loaded, str(tmp_path / "t.txt"))
    assert [*stream.lines()] and [text for text in stream.notes() if text.startswith(note)]
    assert not [
        text
        for text in unknown_words.unknown_notes(loaded, [["le", "chat"]])
        if "marks of sentences" in text
    ]


def test_lines_with_their_ends_are_sentences(loaded):
    bare = loaded.score(["le chat", "les chats"])
    ended = loaded.score(["le chat\n", "les chats\n"])
    assert [row.log_prob for row in ended] == [row.log_prob for row in bare]


def test_scores_after_prefixes_are_sums_of_steps(loaded, tmp_path):
    """log p(sentence | prefix), without the boundary, by one step after another; and the same of a
    table of regions at the command line."""
    prefixes = ["le chat", "", ["les", "zèbre"], "le chat", "le"]
    sentences = ["dort .", "les chats", "Dort zèbre .", "", ["chat", "dort"]]
    rows = loaded.score(sentences, prefixes=prefixes)
    for row, prefix, sentence in zip(rows, prefixes, sentences, strict=True):
        words, total = loaded.words_in(prefix), 0.0
        for word in loaded.words_in(sentence):
            total += float(loaded.log_probs(words)[loaded.id(word)])
            words = [*words, word]
        assert row.log_prob == pytest.approx(total, rel=1e-5)
    assert [(row.words, row.unknown) for row in rows] == [(2, 0), (2, 0), (3, 1), (0, 0), (2, 0)]
    assert rows[2].sentence == "Dort zèbre ." and rows[4].sentence == "chat dort"
    for wrong in ("le chat", ["le"]):
        with pytest.raises(UserError, match="prefixes are one for each sentence"):
            loaded.score(["dort", "dort ."], prefixes=wrong)
    (tmp_path / "t.tsv").write_text("item\tword\n1\tle chat\n1\tdort .\n", encoding="utf-8")
    (scored,) = scored_texts.score(loaded, [], str(tmp_path / "t.tsv"), lines=True)
    table = surprisal.rows(scored.tokenized, scored.text, scored.scores, loaded.lexicon)
    nats = [row[surprisal.COLUMNS.index("surprisal_nats")] for row in table]
    assert nats[1] == pytest.approx(-rows[0].log_prob, rel=1e-5)


def test_a_prefix_without_mass_leaves_the_scores_after_it(loaded, monkeypatch):
    assert loaded.score([], prefixes=[]) == loaded.score([]) == []
    expected = loaded.score(["dort .", "chat"], prefixes=["le chat", ""])
    scored = sentence_scores._scored

    def impossible(run, sentences, name):
        text, log_prob = scored(run, sentences, name)
        log_prob = np.array(log_prob)
        log_prob[text.starts[sentences.index(["le", "chat", "dort", "."])]] = -np.inf
        return text, log_prob

    monkeypatch.setattr(sentence_scores, "_scored", impossible)
    assert loaded.score(["dort .", "chat"], prefixes=["le chat", ""]) == expected


def expected_surprisals(run, sentences):
    """-log p of each word and boundary, each sentence from an empty state."""
    return [
        -float(run.log_probs(words[:at])[run.id(word)])
        for words in sentences
        for at, word in enumerate([*words, "</s>"])
    ]


def test_lines_that_are_given_begin_with_an_empty_state(workdir, tmp_path, capsys):
    run, table = zoo.load(workdir), tmp_path / "s.tsv"
    lines = ["le chat dort .", "les chats dorment ."]
    expected = expected_surprisals(run, [line.split() for line in lines])

    def command_surprisals(path, *options):
        words = ("--words", "--output", str(table))
        command_table.run("score", [str(workdir), str(path), *words, *options])
        with open(table, encoding="utf-8", newline="") as file:
            return [float(row["surprisal_nats"]) for row in csv.DictReader(file, delimiter="\t")]

    surprisals = [row.surprisal_nats for row in run.surprisal("\n".join(lines))]
    np.testing.assert_allclose(surprisals, expected, rtol=1e-5)
    text = tmp_path / "t.txt"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    np.testing.assert_allclose(command_surprisals(text), expected, rtol=1e-5)
    carried = command_surprisals(text, "--state", "carried")
    data = [str(workdir), "--data", str(text)]
    command_table.run("evaluate", [*data, "--state", "sentences"])
    assert "read on" not in capsys.readouterr().out
    command_table.run("evaluate", [*data, "--state", "carried"])
    assert "  read on: each sentence begins with the state of the one before; --state " in (
        capsys.readouterr().out
    )
    np.testing.assert_allclose(
        [row.surprisal_nats for row in run.surprisal("\n".join(lines), "carried")], carried
    )
    assert not np.allclose(carried, expected, rtol=1e-3)
    np.testing.assert_allclose(carried[:2], expected[:2], rtol=1e-5)


@pytest.mark.parametrize(
    "table",
    [
        "item\tsentence\n1\tle chat dort .\n2\tles chats dorment .\n",
        "item\tword\n1\tle\n1\tchat\n1\tdort\n1\t.\n2\tles\n2\tchats\n2\tdorment\n2\t.\n",
    ],
)
def test_items_of_a_table_begin_with_an_empty_state(workdir, tmp_path, table):
    run = zoo.load(workdir)
    (tmp_path / "t.tsv").write_text(table, encoding="utf-8")
    sentences = [["le", "chat", "dort", "."], ["les", "chats", "dorment", "."]]
    (row,) = run.evaluate(data=str(tmp_path / "t.tsv"))
    expected = expected_surprisals(run, sentences)
    del expected[4::5]  # boundaries, which this run does not count
    np.testing.assert_allclose(row.log_perplexity, np.mean(expected), rtol=1e-5)
    assert row.state == "sentences" and row.passport.endswith(".sentences.json")
    (row,) = run.evaluate(data=str(tmp_path / "t.tsv"), state="carried")
    assert row.state == "carried"
    assert not np.isclose(row.log_perplexity, np.mean(expected), rtol=1e-5)


STORY = "item\tzone\tword\n" + "".join(
    f"{item}\t{zone}\t{word}\n"
    for item, words in enumerate(("Le chat dort . Les chiens voient le chat .", "le chien ."))
    for zone, word in enumerate(words.split())
)


def test_the_state_is_carried_within_an_item_of_several_sentences(workdir, tmp_path, capsys):
    run = zoo.load(workdir)
    first, second, third = (
        ["le", "chat", "dort", "."],
        ["les", "chiens", "voient", "le", "chat", "."],
        ["le", "chien", "."],
    )
    carried = expected_surprisals(run, [[*first, "</s>", *second], third])
    apart = expected_surprisals(run, [first, second, third])
    rows = run.surprisal(STORY)
    assert [row.sentence for row in rows] == [1] * 5 + [2] * 7 + [3] * 4
    np.testing.assert_allclose([row.surprisal_nats for row in rows], carried, rtol=1e-5)
    assert [row.counted for row in rows if row.word == "</s>"] == [False] * 3
    rows = run.surprisal(STORY, "sentences")
    np.testing.assert_allclose([row.surprisal_nats for row in rows], apart, rtol=1e-5)
    (tmp_path / "t.tsv").write_text(STORY, encoding="utf-8")
    (row,) = run.evaluate(data=str(tmp_path / "t.tsv"))
    assert (row.state, row.sentences) == ("items", 3) and row.passport.endswith(".items.json")
    words = [nats for at, nats in enumerate(carried) if at not in (4, 11, 15)]
    np.testing.assert_allclose(row.log_perplexity, np.mean(words), rtol=1e-5)
    capsys.readouterr()
    command_table.run("score", [str(workdir), str(tmp_path / "t.tsv"), "--words"])
    assert "2 items are divided into 3 sentences at . ! ? and …; --state items carries" in (
        capsys.readouterr().err
    )


def test_a_run_on_tokenised_text_tokenises_other_texts(workdir, tmp_path, capsys):
    table = "item\tword\trt\n1\tLe\t3\n1\tchat,\t4\n1\tdort.\t5\n"
    (tmp_path / "t.tsv").write_text(table, encoding="utf-8")
    (tmp_path / "t.jsonl").write_text('{"text": "Le chat, dort."}\n', encoding="utf-8")
    run, tokenising = zoo.load(workdir), zoo.load(workdir, tokenize="fr")
    words = [row.surprisal_nats for row in run.surprisal("Le chat , dort .")]
    expected = [words[0], words[1] + words[2], words[3] + words[4], words[5]]
    rows = tokenising.surprisal(table)
    assert [(row.word, row.words) for row in rows[:3]] == [("Le", 1), ("chat,", 2), ("dort.", 2)]
    np.testing.assert_allclose([row.surprisal_nats for row in rows], expected, rtol=1e-6)
    np.testing.assert_allclose(
        tokenising.score(["Le chat, dort."])[0].log_prob, -sum(words), rtol=1e-5
    )
    (row,) = tokenising.evaluate(data=str(tmp_path / "t.jsonl"))
    assert row.tokens == 5
    counts = json.loads(pathlib.Path(row.passport).read_text())["counts"]
    assert counts.startswith("words (by the Moses tokenizer for fr)")
    (row,) = tokenising.evaluate("test")  # whose words stand between blanks
    assert json.loads(pathlib.Path(row.passport).read_text())["counts"].startswith("words; ")
    for options, is_noted in (([], True), (["--tokenize", "fr"], False)):
        capsys.readouterr()
        command_table.run("score", [str(workdir), str(tmp_path / "t.tsv"), "--words", *options])
        noted = "known without the punctuation marks: .* --tokenize LANGUAGE"
        assert bool(re.search(noted, capsys.readouterr().err)) == is_noted
    with pytest.raises(UserError, match=r"^the language of the tokenizer is 'xx', for which"):
        zoo.load(workdir, tokenize="xx")


def test_a_region_without_words_has_no_surprisal(workdir):
    run = zoo.load(workdir)
    rows = run.surprisal("item\tregion\tword\n1\t1\tle chat\n1\t2\t\n1\t3\tdort\n")
    nats = [row.surprisal_nats for row in run.surprisal("le chat dort")]
    assert (rows[1].word, rows[1].words, rows[1].surprisal_nats, rows[1].known) == ("", 0, 0, True)
    surprisals = [row.surprisal_nats for row in rows]
    np.testing.assert_allclose(surprisals, [nats[0] + nats[1], 0, *nats[2:]], rtol=1e-6)


def test_a_text_in_the_column_of_the_data_is_read_on(workdir, tmp_path):
    (tmp_path / "t.tsv").write_text("text\tsource\nle chat dort .\ta\nles chats .\tb\n")
    (tmp_path / "t.txt").write_text("le chat dort .\nles chats .\n")
    table_row, text_row = (zoo.load(workdir).evaluate(data=str(tmp_path / f"t.{end}"))[0]
                         for end in ("tsv", "txt"))  # fmt: skip
    assert table_row.state == text_row.state == "carried"
    assert table_row.log_perplexity == text_row.log_perplexity


def test_perplexities_are_those_of_the_command_and_are_kept(workdir):
    run = zoo.load(workdir)
    (test,) = [row for row in run.evaluate() if row.text == "test"]
    record = json.loads(pathlib.Path(test.passport).read_text())
    command_table.run("evaluate", [str(workdir), "--split", "test"])
    by_command = json.loads((workdir / "results/test.carried.json").read_text())
    assert record["figures"] == by_command["figures"] and test.passport.endswith(
        "test.carried.json"
    )
    corpus = run.read("test")
    _, scores = run.score_corpus(corpus)
    nats = -scores.log_prob[scores.counted].astype(np.float64)
    assert (test.state, test.sentences, test.tokens) == ("carried", 3, len(nats))
    assert test.unknown == 2  # zèbre and the comma
    np.testing.assert_allclose(test.log_perplexity, nats.mean(), rtol=1e-6)
    np.testing.assert_allclose(test.bits, nats.mean() / np.log(2), rtol=1e-6)
    np.testing.assert_allclose(test.perplexity, np.exp(nats.mean()), rtol=1e-5)
    rows, test_rows = run.evaluate(data=corpus.name, state="sentences"), run.evaluate("test")
    assert [row.text for row in rows] == ["data:test.txt"] and rows[0].state == "sentences"
    assert test_rows == [test]


def test_minimal_pairs_are_rows(workdir, tmp_path):
    lines = ("True\tle chat dort .", "False\tle chat dorment .", "False\tle zèbre dort .")
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = zoo.load(workdir)
    first, skipped = run.minimal_pairs(str(tmp_path / "pairs.tsv"))
    assert (first.good, first.bad) == ("le chat dort .", "le chat dorment .")
    assert first.right == (first.log_prob_good > first.log_prob_bad)
    boundary = run.log_probs(first.good)[run.id("</s>")]
    (good,) = sentence_log_probs(run, [first.good])
    np.testing.assert_allclose(first.log_prob_good + boundary, good, rtol=1e-5)
    assert skipped.right is None and skipped.missing == "zèbre"
    (result,) = workdir.glob("results/pairs_*.json")
    assert json.loads(result.read_text())["figures"]["skipped"] == 1


def test_rows_make_frames(workdir):
    pandas = pytest.importorskip("pandas")
    run = zoo.load(workdir)
    judgements = {
        "log_prob": run.score(["le chat dort .", "les chats"]),
        "surprisal_bits": run.surprisal("le chat dort .\n"),
        "perplexity": run.evaluate("test"),
        "log_perplexity": zoo.compare([workdir]),
    }
    for column, rows in judgements.items():
        frame = pandas.DataFrame(rows)
        assert len(frame) == len(rows) > 0 and [*frame.columns] == [*rows[0]._fields]
        assert frame[column].dtype == np.float64, column
    assert pandas.DataFrame(judgements["surprisal_bits"]).known.dtype == bool


def test_a_loaded_model_is_described_in_a_line(loaded, trained):
    sizes = sum(leaf.size for leaf in jax.tree.leaves(loaded.params))
    summary = f"{str(trained)!r}: Softmax, {len(loaded.words)} words, {sizes:,} parameters, step 4"
    assert repr(loaded) == f"LoadedModel({summary})"
    assert repr(Run.load(trained)) == f"Run({summary})"


def test_what_has_arrays_or_texts_is_described_in_a_line(loaded):
    run = loaded
    corpus = run.read("test")
    encoded, scores = run.score_corpus(corpus)
    descriptions = [
        *(repr(corpus), repr(encoded), repr(scores), repr(loaded.initial_states(3))),
        repr(run.read_file(corpus.name)),
        repr(sentence_scores.score(run, [["le"], ["le", "chat"]], "two")),
        repr(PairScores(np.array([1.0, np.nan]), np.zeros(2), np.array([True, False]))),
        repr(feature_signatures.FeatureSets(np.array([0, 2, 3]), np.arange(3), np.ones(3))),
    ]
    assert descriptions == [
        f"Corpus({corpus.name!r}: 3 sentences)",
        "EncodedText(23 words, 3 sentences)",
        f"Scores(20 tokens, perplexity {scores.perplexity:.2f})",
        "States(3 rows)",
        f"TokenizedText({corpus.name!r}: 3 sentences)",
        "SentenceScores(2 sentences, 3 words)",
        "PairScores(1 of 1 right, 1 skipped)",
        "FeatureSets(2 sets, 3 entries)",
    ]


def test_steps_give_what_sentences_have(loaded):
    words = ["les", "zèbre", "chats", "."]
    states, total = loaded.initial_states(), 0.0
    log_probs, states = loaded.step(loaded.boundary, states)
    for word in words:
        np.testing.assert_allclose(np.exp(log_probs).sum(), 1, rtol=1e-5)
        total += log_probs[0, loaded.id(word)]
        log_probs, states = loaded.step(word, states)
    total += log_probs[0, loaded.id("</s>")]
    np.testing.assert_allclose(total, loaded.score([words])[0].log_prob, rtol=1e-5)
    np.testing.assert_allclose(loaded.log_probs(words), log_probs[0], rtol=1e-5)
    np.testing.assert_allclose(loaded.log_probs("Les zèbre chats ."), log_probs[0], rtol=1e-5)
    assert loaded.id("Les") == loaded.id("les") != loaded.id("zèbre") == loaded.id("<unk>")


def test_states_are_forked_and_batched_and_never_change(loaded):
    _, start = loaded.step(loaded.boundary, loaded.initial_states())
    log_probs, states = loaded.step(["le", "les", "."], start[[0, 0, 0]])
    assert len(states) == 3 and log_probs.shape == (3, len(loaded.words))
    expected = [loaded.log_probs(["le"]), loaded.log_probs(["les"]), loaded.log_probs(["."])]
    np.testing.assert_allclose(log_probs, expected, rtol=1e-5)
    last_state = states[2]
    mixed = States.batched([states[[1, 0]], last_state, states[1:]])  # les le . les .
    assert len(mixed) == 5
    ids = [loaded.id(word) for word in ("chats", "chat", "le", "chien", "les")]
    log_probs, _ = loaded.step(np.array(ids), mixed)
    prefixes = (["les", "chats"], ["le", "chat"], [".", "le"], ["les", "chien"], [".", "les"])
    expected = [loaded.log_probs(prefix) for prefix in prefixes]
    np.testing.assert_allclose(log_probs, expected, rtol=1e-4)
    last_log_probs, _ = loaded.step("le", last_state)
    np.testing.assert_allclose(last_log_probs[0], expected[2], rtol=1e-4)
    repeated, _ = loaded.step("le", states)
    assert repeated.shape == (3, len(loaded.words))
    with pytest.raises(UserError, match="2 words for 3 states"):
        loaded.step(["le", "les"], states)
    with pytest.raises(UserError, match="-1 is not the id of a word"):
        loaded.step(-1, states)
    with pytest.raises(IndexError):
        states[3]
    with pytest.raises(IndexError, match="no rows"):
        states[3:]
    with pytest.raises(ValueError, match="at least one"):
        States.batched([])


def test_a_beam_that_grows_compiles_few_programs(loaded):
    _, states = loaded.step(loaded.boundary, loaded.initial_states())
    for rows in (3, 4):  # in 4 places
        loaded.step("le", states[[0] * rows])
    with small.compilations() as messages:
        for rows in (3, 4):
            loaded.step("le", states[[0] * rows])
    assert not [message for message in messages if "_stepped" in message or "_taken" in message]


def test_texts_are_drawn(loaded):
    texts = loaded.generate("les", count=3, length=4, seed=1)
    assert len(texts) == 3 and all(text.split()[0] == "les" for text in texts)
    assert texts == loaded.generate("les", count=3, length=4, seed=1)
    with pytest.raises(UserError, match="a Softmax only generates words of the lexicon"):
        loaded.generate(spell=True)


@pytest.mark.slow
def test_characters_and_heads_that_spell(tmp_path):
    (tmp_path / "t.txt").write_text("ab ba\nba ab\n", encoding="utf-8")
    path = str(tmp_path / "t.txt")
    recipe = small.experiment(epochs=1)
    data = Characters(train=path, validation=path, tests=(path,))
    run = zoo.load(small.run_in(tmp_path / "c", dataclasses.replace(recipe, data=data)))
    rows = run.surprisal("ab a\n", "sentences")
    assert [row.word for row in rows][:4] == ["a", "b", " ", "a"]
    nats = sum(row.surprisal_nats for row in rows)
    np.testing.assert_allclose(run.score(["ab a"])[0].log_prob, -nats, rtol=1e-5)
    assert run.generate("ab", count=1, length=3)[0].startswith("ab")
    # Line breaks are characters of the text, as for `zoo score --words`.
    (tmp_path / "d.txt").write_text("ab a\n\nba", encoding="utf-8")
    read = [*Characters(path, path, (str(tmp_path / "d.txt"),)).read("test").sentences]
    for text in ("ab a\n\nba", "ab a\r\n\r\nba"):
        words = [row.word for row in run.surprisal(text, "carried") if row.word != run.boundary]
        assert words == [letter for line in read for letter in line] == [*"ab a\n\nba"]
    long = run.surprisal("ab" * 600, "sentences")  # as a file's, it counts as two lines
    assert {row.sentence for row in long} == {1, 2}
    spelled = dataclasses.replace(small.MODEL, head=CharLSTM(size=4))
    folder = small.run_in(tmp_path / "s", small.experiment(spelled, epochs=1))
    assert np.isfinite(sentence_log_probs(zoo.load(folder), ["word1 word2"])).all()
    with pytest.raises(UserError, match="renormalise=True"):
        zoo.load(folder).log_probs()
    log_probs = zoo.load(folder, renormalise=True).log_probs("word1")
    np.testing.assert_allclose(np.exp(log_probs).sum(), 1, rtol=1e-4)


def test_a_run_that_refuses_words_says_so(tmp_path):
    recipe = small.experiment(vocabulary=Vocabulary(unknown="refused"), epochs=1)
    run = zoo.load(small.run_in(tmp_path / "r", recipe))
    with pytest.raises(UserError, match="'zèbre'"):
        run.step("zèbre", run.initial_states())
    with pytest.raises(UserError, match="zèbre"):
        run.score(["zèbre"])


@pytest.mark.slow
def test_translators_translate(tmp_path):
    run = zoo.load_translator(small.run_in(tmp_path / "t", of_pairs(TRANSLATOR, epochs=1)))
    source = run.experiment.source_corpus(run.read("train")).sentences[0]
    translation, empty = run.translate([" ".join(source), ""], beam=2, longest=5)
    assert isinstance(translation, str) and empty == ""
    assert re.fullmatch(r"LoadedTranslator\('.*/t': Softmax, .* words, .* step \d+\)", repr(run))
    (figure,) = run.evaluate("validation")
    assert figure.text == "validation" and np.isfinite(figure.perplexity)
    with pytest.raises(UserError, match=r"translates: open it with zoo\.load_translator"):
        zoo.load(tmp_path / "t")


def test_what_is_no_run_is_refused(tmp_path, trained):
    for load in (zoo.load, zoo.load_translator):
        with pytest.raises(UserError, match=re.escape(str(tmp_path))):
            load(tmp_path)
    with pytest.raises(UserError, match=r"does not translate: open it with zoo\.load\."):
        zoo.load_translator(trained)


PAGE = (DOCS / "python.md").read_text(encoding="utf-8")


def test_the_page_does_what_it_says(workdir):
    first, _, decoding = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    exec(first.replace("runs/mine", str(workdir)), names)
    assert isinstance(names["run"], LoadedModel)
    assert len(names["scores"]) == 2 and len(names["drawn"]) == 3
    assert names["slowest"] in {"the", "cat", "sat", ".", "dog", "barked", "</s>"}
    assert [row.text for row in names["figures"]] == ["test"]
    assert names["following"].shape == (len(names["run"].words),)
    exec(decoding, names)
    assert names["log_probs"].shape == (4, len(names["run"].words))
    assert len(names["together"]) == 4


@pytest.mark.slow
def test_training_of_the_page(tmp_path, monkeypatch):
    _, training, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for name in ("train", "validation", "test"):
        (tmp_path / f"{name}.txt").write_text("the cat sat .\n" * 2, encoding="utf-8")
    names = {"zoo": zoo}
    exec(training, names)
    assert names["test"].tokens == 10


def test_a_language_model_helps_a_prefix_beam_search(trained, capsys):
    results = prefix_beam_search.main(trained, ["le chat dort ."], noise=0.3)
    assert results == [("le chat dort .",) * 3]  # what is said clearly is heard
    assert capsys.readouterr().out.splitlines()[2] == "and language model: le chat dort ."


@pytest.mark.slow
def test_the_search_sums_over_alignments():
    """Two letters, two frames, no model: p(a) = p(aa) + p(a-) + p(-a), by hand."""

    class Silent:
        boundary, words = "</s>", ("</s>",)

        def initial_states(self):
            return States.from_carry(jnp.zeros((1, 1)))

        def step(self, words, states):
            return np.zeros((len(states), 1)), states

        def id(self, word):
            return 0

    # Of 0.6 (blank), 0.4 (a): the best path is two blanks, 0.36, and the best prefix is "a", 0.64.
    frames = np.log([[0.6, 0.4, 1e-9], [0.6, 0.4, 1e-9]])
    assert prefix_beam_search.search(Silent(), frames, "a ", weight=0, bonus=0) == "a"
