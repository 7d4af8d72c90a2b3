"""A run of a treebank judges texts of every kind, token by token as they were given."""

import dataclasses
import json
import math

import numpy as np
import pytest

import evaluate
import zoo
from tests import tables
from tests.lab.training import small
from zoo import __main__ as commands
from zoo import priors
from zoo.cores import NGram
from zoo.data import Conllu, Text
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Features
from zoo.errors import UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import LogLinear
from zoo.lab.evaluation import surprisal
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files
from zoo.models import LanguageModel

SENTENCES = [
    ["le DET", "lac NOUN", "dort VERB"],
    ["du=de ADP+le DET", "lac NOUN", "NA X", '" PUNCT'],
    ["le DET", "chat NOUN", '" PUNCT', "dort VERB", "# SYM", "' PUNCT"],
    ["le DET", "chat NOUN", "NA X", "lac NOUN", "# SYM", "' PUNCT"],
]
PLAIN = "\ufeffle chat du lac\r\n\r\nDu lac \"\u2028NA # ' ours\r\n"


def treebank():
    """CoNLL-U of `SENTENCES`: du=de ADP+le DET is a fused form and its words."""
    lines = []
    for sentence in SENTENCES:
        place = 0
        for token in sentence:
            surface, _, parts = token.rpartition("=")
            parts = parts.split("+")
            if surface:
                lines.append(f"{place + 1}-{place + len(parts)}\t{surface}" + "\t_" * 8)
            for part in parts:
                place += 1
                form, tag = part.split()
                lines.append(f"{place}\t{form}\t_\t{tag}" + "\t_" * 6)
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """A run on the words of fused forms; do not write to it."""
    folder = tmp_path_factory.mktemp("bank")
    bank = folder / "bank.conllu"
    bank.write_text(treebank(), encoding="utf-8")
    experiment = Experiment(
        data=Conllu(train=str(bank), validation=str(bank), tests=(str(bank),)),
        vocabulary=Vocabulary(
            minimum_count=2,
            features=(
                priors.TopWords(count=5, splits=("train",)),
                priors.Morphology(splits=("train",), guesser=priors.SuffixGuesser()),
            ),
            background=priors.Unigram(splits=("train",), smoothing=0.5),
        ),
        model=LanguageModel(Features(size=5, initial_scale=1.0), NGram(size=7), LogLinear()),
        training=Training(batch=2, length=4, epochs=1, state="sentences"),
        evaluation=Evaluation(state="sentences", batch=3, length=4),
    )
    return small.run_in(folder / "workdir", experiment)


@pytest.fixture(scope="module")
def run(workdir):
    return Run.load(workdir)


@pytest.fixture
def judged(run, tmp_path):
    """judged(text, name) -> (rows of the table of surprisal, the scores)."""

    def judging(text, name="text.txt", run=run):
        path = tmp_path / name
        path.write_bytes(text.encode())
        tokenized = run.read_file(str(path))
        text, scores = run.score_corpus(tokenized.corpus)
        rows = surprisal.rows(tokenized, text, scores, run.lexicon)
        output_files.write_table(tmp_path / "s.tsv", surprisal.columns(tokenized), rows)
        return tables.by_r(tmp_path / "s.tsv", missing=""), scores

    return judging


def test_plain_text_has_a_row_a_token_with_fused_forms_put_back(judged):
    rows, scores = judged(PLAIN)
    places = [[row[name] for name in ("sentence", "id", "start", "end", "word")] for row in rows]
    assert places == [
        ["1", "1", "0", "2", "le"],
        ["1", "1", "3", "7", "chat"],
        ["1", "1", "8", "10", "du"],
        ["1", "1", "11", "14", "lac"],
        ["1", "1", "14", "14", "</s>"],
        ["2", "3", "0", "2", "Du"],
        ["2", "3", "3", "6", "lac"],
        ["2", "3", "7", "8", '"'],
        ["2", "3", "9", "11", "NA"],
        ["2", "3", "12", "13", "#"],
        ["2", "3", "14", "15", "'"],
        ["2", "3", "16", "20", "ours"],
        ["2", "3", "20", "20", "</s>"],
    ]
    read = [(row["read_as"], row["words"], row["known"], row["training_count"]) for row in rows]
    # "de" was seen once only, so that it is all that was <unk> in training; "le" four times.
    assert read[2] == read[5] == ("<unk> le", "2", "FALSE", "1")
    assert read[8] == ("NA", "1", "TRUE", "2") and read[11] == ("<unk>", "1", "FALSE", "1")
    # du is two words of the model, in the fifth and the third place of theirs.
    nats = -scores.log_prob.astype(float)
    values = [float(row["surprisal_nats"]) for row in rows]
    np.testing.assert_allclose(values[2], nats[2] + nats[3], rtol=1e-15)
    np.testing.assert_allclose(values[5], nats[6] + nats[7], rtol=1e-15)
    np.testing.assert_allclose(float(rows[2]["surprisal_bits"]), values[2] / math.log(2))
    words = sum(int(row["words"]) for row in rows)
    np.testing.assert_allclose(sum(values) / words, scores.log_perplexity, rtol=1e-12)


def test_all_kinds_of_text_say_the_same_of_the_same_words(judged):
    forms = [[token.partition("=")[0].split()[0] for token in s] for s in SENTENCES]
    lines = "\n".join(map(" ".join, forms))
    rows = [(f"A{n}", words) for n, words in enumerate(forms)]
    table = "sentence\titem\n" + "".join(f"{' '.join(words)}\t{n}\n" for n, words in rows)
    words = "item\tword\trt\n" + "".join(
        f"{n}\t{word}\t10{n[1]}.5\n" for n, words in rows for word in words
    )
    plain, scores = judged(lines + "\n")
    for text, name in (
        (treebank(), "b.conllu"),
        (table, "items.tsv"),
        (words, "words.tsv"),
        (json.dumps({"text": lines}), "t.jsonl"),
    ):
        rows, form_scores = judged(text, name)
        np.testing.assert_array_equal(form_scores.log_prob, scores.log_prob)
        columns = [name for name in surprisal.COLUMNS if name != "id"]
        assert [[r[n] for n in columns] for r in rows] == [[r[n] for n in columns] for r in plain]
        if name.endswith(".tsv"):
            assert {row["id"] for row in rows} == {"A0", "A1", "A2", "A3"}
    rows, _ = judged(words, "words.tsv")
    # What all words of an item share is said of its boundary too.
    assert {(row["id"], row["rt"]) for row in rows} == {(f"A{n}", f"10{n}.5") for n in range(4)}


def test_a_run_of_plain_text_reads_a_treebank_as_it_is_written(judged, run):
    data = Text(train="t", validation="t")
    text_run = dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, data=data))
    rows, _ = judged(treebank(), "b.conllu", text_run)
    (fused,) = [row for row in rows if row["word"] == "du"]
    assert (fused["words"], fused["read_as"]) == ("1", "<unk>")


def test_blank_lines_are_sentences_where_a_run_keeps_them(judged, run):
    data = Text(train="t", validation="t", blank_lines="kept")
    text_run = dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, data=data))
    rows, scores = judged("lac\n\nNA\n", "t.txt", text_run)
    assert [(row["sentence"], row["id"], row["word"]) for row in rows] == [
        ("1", "1", "lac"),
        ("1", "1", "</s>"),
        ("2", "2", "</s>"),
        ("3", "3", "NA"),
        ("3", "3", "</s>"),
    ]
    assert scores.tokens == 5


def test_a_split_has_the_tokens_of_its_file(workdir, call, tmp_path):
    table = tmp_path / "s.tsv"
    code, *_ = call(commands, "score", workdir, "--split", "test", "--words", "--output", table)
    assert code == 0
    frame = tables.by_pandas(table, keep_default_na=False, na_values=[""])
    forms = [[t.partition("=")[0].split()[0] for t in s] + ["</s>"] for s in SENTENCES]
    assert frame["word"].tolist() == [form for sentence in forms for form in sentence]
    assert len(tables.by_pandas(table)) == len(frame)
    assert frame[frame["word"] == "du"]["words"].tolist() == [2]


def test_scores_of_a_treebank_and_of_items_have_their_names(workdir, call, tmp_path):
    bank, items = tmp_path / "b.conllu", tmp_path / "items.tsv"
    bank.write_text("# sent_id = x-1\n" + treebank(), encoding="utf-8")
    items.write_text('item\tsentence\trank\n"a"\tdu lac NA "\t"q ""r"""\nb\t\t2\n')
    output = tmp_path / "scores.tsv"
    assert call(commands, "score", workdir, bank, "--output", output)[0] == 0
    rows = tables.by_r(output)
    assert [(row["id"], row["line"], row["words"]) for row in rows] == [
        ("x-1", "2", "3"),
        ("2", "6", "5"),
        ("3", "13", "6"),
        ("4", "20", "6"),
    ]
    assert call(commands, "score", workdir, items, "--output", output)[0] == 0
    first, blank = tables.by_r(output)
    assert (first["id"], first["line"], first["words"], first["rank"]) == ("a", "2", "5", 'q "r"')
    assert (blank["id"], blank["words"], blank["rank"]) == ("b", "0", "2")
    assert float(first["log_prob"]) == pytest.approx(float(rows[1]["log_prob"]), rel=1e-6)


def test_conditions_side_by_side_have_rows_of_their_own(workdir, call, tmp_path):
    wide, output = tmp_path / "wide.tsv", tmp_path / "out.tsv"
    wide.write_text(
        "sentence_first\tsentence_second\tcritical_first\tcritical_second\tcondition\n"
        'le lac dort #\tle chat NA "\tdort #\tchat NA\teasy\n'
        "du lac NA\t\t\t\thard\n"
    )
    assert call(commands, "score", workdir, wide, "--output", output)[0] == 0
    rows = tables.by_r(output, missing="")
    names = ("id", "line", "words", "condition", "given_condition", "critical")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("1", "2", "4", "first", "easy", "dort #"),
        ("1", "2", "4", "second", "easy", "chat NA"),
        ("2", "3", "4", "first", "hard", None),
        ("2", "3", "0", "second", "hard", None),
    ]
    row_by_word = {}
    for words in ("le lac dort #", 'le chat NA "', "du lac NA"):
        file = tmp_path / "one.txt"
        file.write_text(words + "\n")
        assert call(commands, "score", workdir, file, "--words", "--output", output)[0] == 0
        row_by_word |= {(words, row["word"]): row for row in tables.by_r(output, missing="")}
    assert call(commands, "score", workdir, wide, "--words", "--output", output)[0] == 0
    frame = tables.by_pandas(output, keep_default_na=False, na_values=[""])
    region = frame[frame.word == frame.critical].pivot(
        index="id", columns="condition", values="surprisal_nats"
    )

    def total(sentence, *words):
        return sum(float(row_by_word[sentence, word]["surprisal_nats"]) for word in words)

    expected = total("le lac dort #", "dort", "#"), total('le chat NA "', "chat", "NA")
    np.testing.assert_allclose(region.loc[1, ["first", "second"]].astype(float), expected, 1e-6)
    assert frame.word.tolist()[:4] == ["le", "lac", "dort #", "</s>"] and len(region) == 1
    assert frame[frame.word == "dort #"][["start", "end", "words"]].values.tolist() == [[7, 13, 2]]
    assert frame.known.dtype == frame.counted.dtype == bool


def test_the_region_of_a_sentence_is_one_place_of_it(workdir, call, tmp_path):
    table = tmp_path / "items.tsv"
    for region, times in (("chat", 0), ("le", 2)):
        table.write_text(f"good\tbad\tcritical\nle lac le\tle lac\t{region}\n")
        code, _, errors = call(commands, "score", workdir, table, "--words")
        copied = "copy it from there, or " * (not times)  # what is there more than once was copied
        assert code == 2 and errors.endswith(
            f"line 2: the critical region '{region}' is {times} times in its sentence: {copied}"
            "write a table with a word or region a row.\n"
        )


def test_unknown_words_of_critical_regions_are_counted(workdir, call, tmp_path):
    table = tmp_path / "items.csv"
    table.write_text("good,bad,critical_good,critical_bad\nle lac xx,le lac NA,lac xx,lac NA\n")
    code, _, errors = call(commands, "score", workdir, table, "--words")
    assert code == 0 and "critical regions with unknown words: 1 of 2 ('xx'): leave" in errors
    table.write_text("good,bad,critical\nle lac xx,du lac,lac\n")
    code, _, errors = call(commands, "score", workdir, table, "--words")
    assert code == 0 and "critical regions" not in errors


def test_rows_of_a_treebank_have_the_ids_of_its_tokens(workdir, call, tmp_path):
    bank, output = tmp_path / "b.conllu", tmp_path / "words.tsv"
    bank.write_text(treebank(), encoding="utf-8")
    assert call(commands, "score", workdir, bank, "--words", "--output", output)[0] == 0
    rows = [(row["word"], row["token"]) for row in tables.by_r(output, missing="")]
    assert rows[3:6] == [("</s>", None), ("du", "1-2"), ("lac", "3")]


def test_a_table_at_a_terminal_is_aligned(workdir, call, tmp_path, monkeypatch):
    text = tmp_path / "t.txt"
    text.write_text("le lac\n")
    exact = call(commands, "score", workdir, text, "--words")[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    lines = call(commands, "score", workdir, text, "--words")[1].splitlines()
    nats = [row.split("\t")[10] for row in exact.splitlines()]
    place = lines[0].index("surprisal_nats")
    assert [line[place : place + 7] for line in lines[1:]] == [f"{float(x):7.2f}" for x in nats[1:]]


def test_words_are_added_with_what_their_ends_say(workdir, run, call, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text('ours\nlac\nde\n"\n')
    added = NewLexicon(str(words), adds=True).apply(run)
    assert added.lexicon.words == (*run.lexicon.words, "ours", "de")
    for word in run.lexicon.words:
        place = run.lexicon.ids[word]
        assert added.lexicon.features_of(place) == run.lexicon.features_of(place)
    # Seen once in training, and read as <unk> there.
    assert added.lexicon.occurrences(("ours", "de")).tolist() == [0, 1]
    text, output = tmp_path / "t.txt", tmp_path / "scores.tsv"
    text.write_text("le ours\n")
    assert call(commands, "score", workdir, text, "--add-words", words, "--output", output)[0] == 0
    assert [row["unknown"] for row in tables.by_r(output)] == ["0"]
    code, _, errors = call(
        commands, "score", workdir, text, "--add-words", words, "--lexicon", words
    )
    assert code == 2 and "leave out --add-words, or --lexicon" in errors
    with pytest.raises(UserError, match="not a word"):
        words.write_text("le ours\n")
        NewLexicon(str(words), adds=True).apply(run)


def test_the_words_of_a_run_are_printed_and_can_be_given_back(workdir, run, call, tmp_path):
    code, output, _ = call(commands, "words", workdir)
    assert code == 0
    table = tmp_path / "words.tsv"
    table.write_text(output, encoding="utf-8")
    rows = tables.by_r(table, missing="")
    assert [row["word"] for row in rows] == [*run.lexicon.words]
    assert [int(row["training_count"]) for row in rows] == run.lexicon.counts.tolist()
    copy = NewLexicon(str(table)).apply(run)
    assert {*copy.lexicon.words} == {*run.lexicon.words}
    assert call(commands, "words", workdir, "--features", "--output", table)[0] == 0
    (lac,) = [row for row in tables.by_r(table) if row["word"] == "lac"]
    assert lac["features"].split() == ["POS:NOUN", "Word:lac"]
    code, _, errors = call(commands, "words", tmp_path / "none")
    assert code == 2 and "none" in errors


def test_pairs_of_blimp_are_judged_by_their_groups(workdir, call, tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    blimp_pairs = [
        {"sentence_good": "le lac dort", "sentence_bad": "lac le dort", "UID": "order"},
        {"sentence_good": "du lac\tNA", "sentence_bad": 'du lac "', "UID": "NA", "field": "syntax"},
        {"sentence_good": "le chat", "sentence_bad": "le ours", "UID": "order", "field": "syntax"},
        {"sentence_good": "le chat", "sentence_bad": "le lac", "extra": [1]},
    ]
    pairs.write_text("\r\n\r\n".join(map(json.dumps, blimp_pairs)), encoding="utf-8-sig")
    code, output, _ = call(evaluate, workdir, "--minimal-pairs", pairs)
    assert code == 0
    assert "of 3 pairs; 1 skipped" in output
    assert "\n  by field:\n    syntax: " in output and " of 1; 1 skipped)\n  by UID:\n" in output
    (result,) = (workdir / "results").glob("pairs_*.json")
    groups = json.loads(result.read_text())["figures"]["groups"]
    assert {name: {*group} for name, group in groups.items()} == {
        "field": {"syntax"},
        "UID": {"order", "NA"},
    }
    assert (groups["UID"]["order"]["pairs"], groups["UID"]["order"]["skipped"]) == (1, 1)
    table = result.with_suffix(".tsv")
    rows = tables.by_r(table, missing="")
    assert [row["good"] for row in rows] == ["le lac dort", "du lac\\tNA", "le chat", "le chat"]
    assert [row["field"] for row in rows] == [None, "syntax", "syntax", None]
    assert rows[2]["right"] is None and rows[2]["log_prob_good"] is None
    frame = tables.by_pandas(table)
    assert frame["difference"].dtype == np.float64 and frame["difference"].isna().sum() == 1


def test_a_prompt_is_read_as_a_text_is(workdir, capsys):
    """By the command and in Python: the fused form "du" by its words."""
    (text,) = zoo.load(workdir).generate("le chat du lac", count=1, length=1)
    assert text.split()[:5] == ["le", "chat", "de", "le", "lac"]
    commands.main(["generate", str(workdir), "--prompt", "du lac", "--count", "1", "--length", "1"])
    assert capsys.readouterr().out.startswith("de le lac")
