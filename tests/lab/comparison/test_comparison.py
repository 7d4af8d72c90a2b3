"""Runs are ranked only on the same quantity."""

import json
import math

import pytest

import zoo
from tests import passports
from zoo.errors import UserError
from zoo.lab import table
from zoo.lab.comparison.text_report import tables
from zoo.lab.evaluation import passport, results

KINDS = {"perplexity": passports.PERPLEXITY, "minimal pairs": passports.PAIRS}


def keep(folder, changes=(), name=None):
    """Writes a passport, changed at dotted fields, as a result of the run in `folder`."""
    changes = dict(changes)
    passport = passports.change(KINDS[changes.get("kind", "perplexity")], changes)
    (folder / "results").mkdir(parents=True, exist_ok=True)
    name = name or f"{passport['split']}.{passport['policies']['state']}"
    (folder / "results" / f"{name}.json").write_text(json.dumps(passport))
    return str(folder)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """Room for all columns beside each other, and for whole lines."""
    monkeypatch.setattr(table, "WIDTH", 10_000)


def test_a_run_that_was_judged_before_its_end_is_noted(tmp_path):
    training = {"seed": 0, "recipe_but_seed": "r"}
    runs = [
        keep(tmp_path / name, {"training": {**training, "finished": finished}})
        for name, finished in (("early", False), ("late", True), ("unknown", None))
    ]
    text = tables(runs)
    assert "  ! judged at step 40, before its training was finished (early)\n" in text
    assert text.count("before its training") == 1


def test_only_the_given_splits_are_compared(tmp_path):
    runs = []
    for name, loss in (("one", 5.0), ("other", 4.0)):
        folder = tmp_path / name
        keep(folder, {"figures.log_perplexity": loss})
        runs.append(keep(folder, {"split": "validation", "figures.log_perplexity": loss + 1}))
        keep(folder, {"kind": "minimal pairs"}, "pairs_p")
    test_tables = tables(runs, splits=["test"])
    assert "test, carried" in test_tables and "ranked by test" in test_tables
    assert "validation" not in test_tables and "pairs:p" not in test_tables
    pair_tables = tables(runs, splits=["pairs:p"])
    assert pair_tables.startswith("pairs:p") and "carried" not in pair_tables
    with pytest.raises(UserError, match="one has no perplexity on tset, only on test, validation"):
        tables(runs, splits=["tset"])


def test_the_best_run_comes_first(tmp_path):
    folders = [
        keep(tmp_path / "infinite", {"figures.log_perplexity": "inf", "figures.perplexity": "inf"}),
        keep(tmp_path / "worse"),
        keep(tmp_path / "better", {"figures.log_perplexity": 4.0, "figures.perplexity": 54.6}),
    ]
    lines = tables(folders).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == [
        "better",
        "worse",
        "infinite",
    ]
    assert lines[1].split()[1:] == ["Softmax", "1,234", "4.0000", "54.60"]
    assert lines[4] == "ranked by test, carried"
    assert "100 tokens: words" in lines[5]


def test_the_table_is_also_rows(tmp_path):
    seeds = {"training": {"seed": 0, "recipe_but_seed": "r"}}
    second_seed = {"training": {"seed": 1, "recipe_but_seed": "r"}, "figures.log_perplexity": 4.0}
    folders = [
        keep(tmp_path / "seen", {"figures.log_perplexity": 1.0, **overlap_of(trained_on=990)}),
        keep(tmp_path / "worse", {"figures.log_perplexity": 6.0, "figures.perplexity": 403.4}),
        keep(tmp_path / "seed_0", seeds),
        keep(tmp_path / "seed_1", second_seed),
    ]
    rows = zoo.compare(folders)
    assert [row.run for row in rows] == ["seed, 2 seeds", "worse", "seen"]
    best, worse, _ = rows
    assert (best.seeds, best.head, best.parameters, best.tokens) == (2, "Softmax", 1234, 100)
    assert (best.text, best.state, best.over) == ("test", "carried", "the 10 words of the lexicon")
    assert best.log_perplexity == 4.5 and best.perplexity == pytest.approx(math.exp(4.5))
    assert (worse.log_perplexity, worse.perplexity) == pytest.approx((6.0, math.exp(6)))
    assert math.isnan(best.low) and math.isnan(best.high)  # single words' scores were not kept
    assert [row.text_seen for row in rows] == [False, False, True]


def test_a_run_counts_once_however_its_path_is_written(tmp_path):
    run = keep(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for path in (f"{tmp_path}//a", f"{run}/", f"{tmp_path}/b/../a", f"{tmp_path}/link", run):
        with pytest.raises(UserError, match=f"^{run} and {path} are one folder: give each run"):
            tables([run, path])


def test_what_does_not_touch_the_figure_may_differ(tmp_path):
    changes = {"data.path": "copy.txt", "lexicon.hash": "other", "head": "LogLinear()"}
    changes |= {"parameters": 9, "checkpoint": 7, "priors_saw_this_text": ["vocabulary"]}
    table = tables([keep(tmp_path / "a"), keep(tmp_path / "b", changes)])
    assert "*" not in table  # each run is of one checkpoint


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("data.sha256", "def", "abc"),
        ("tokens", 99, "100"),
        ("counts", "words and boundaries", "words"),
        ("policies.boundary", "uncounted", "counted"),
        ("policies.batch", 1, "8"),
        ("policies.state", "sentences", "carried"),
        ("changes", [{"change": "constrained", "grammar": "g", "digest": "0123456789"}], "[]"),
        ("normalised_over", "the 11 words of the lexicon", "the 10 words"),
    ],
)
def test_it_refuses_what_is_not_comparable(tmp_path, field, value, expected):
    folders = [keep(tmp_path / "a"), keep(tmp_path / "b", {field: value})]
    with pytest.raises(UserError) as refusal:
        tables(folders)
    message = str(refusal.value)
    assert field in message
    assert ("by zoo compare --split" in message) == (field == "data.sha256")
    assert ("['constrained-01234567']" if field == "changes" else repr(value)) in message
    assert expected in message


def test_a_run_judged_twice_is_compared_where_the_policies_meet(tmp_path):
    changes = {"policies.state": "sentences", "policies.batch": None, "figures.log_perplexity": 9.0}
    run = keep(tmp_path / "both")
    keep(tmp_path / "both", changes)
    table = tables([run, keep(tmp_path / "one", {**changes, "figures.log_perplexity": 8.0})])
    ranked = table.splitlines()[1:3]
    assert "8.0000" in ranked[0] and "9.0000" in ranked[1]


def test_two_results_of_one_column_are_refused(tmp_path):
    keep(tmp_path / "a")
    folder = keep(tmp_path / "a", {"figures.log_perplexity": 3.0}, name="test.carried.old")
    with pytest.raises(UserError) as refusal:
        tables([folder, keep(tmp_path / "b")])
    assert str(refusal.value).startswith(
        f"{folder} has two results of test, carried: test.carried.json and test.carried.old.json;"
    )


def test_texts_of_one_name_have_columns_of_their_own(tmp_path):
    def keep_text(folder, digest, value):
        changes = {"split": "data:x.txt", "data.sha256": digest * 9, "data.path": "x.txt"}
        return keep(tmp_path / folder, {**changes, "figures.log_perplexity": value}, name=digest)

    first, second = "0123456a", "0123456b"
    two_texts = keep_text("both", first, 1.0)
    keep_text("both", second, 2.0)
    one_text = keep_text("one", second, 1.5)
    header, best, worse = tables([two_texts, one_text]).splitlines()[:3]
    columns = [header.index(f"data:x.txt [{digest}], carried") for digest in (second, first)]
    assert columns == sorted(columns)  # the text that both have judged comes first and ranks
    assert best.split() == ["one", "Softmax", "1,234", "1.5000", "4.48", "-", "-"]
    assert worse.split()[0] == "both"
    assert (worse.split()[3], worse.split()[5]) == ("2.0000", "1.0000")
    # Two runs with no text in common are no two columns: they are refused.
    with pytest.raises(UserError, match=r"data\.sha256 differs"):
        tables([one_text, keep_text("other", first, 1.0)])


OTHER_LEXICON = {"lexicon.words": "otherwords", "figures.log_perplexity": 9.0}


def columns_of(header):
    """The names of the columns of log-perplexities."""
    return [name.strip() for name in header.split("parameters")[1].split(": nats  perplexity")]


def test_two_lexicons_of_one_run_are_two_columns(tmp_path):
    two_lexicons = keep(tmp_path / "both")
    keep(tmp_path / "both", OTHER_LEXICON, name="test.carried.lexicon-otherwor")
    one_lexicon = keep(tmp_path / "one", {"figures.log_perplexity": 4.0})
    header, best, worse, ranked, *_ = tables([two_lexicons, one_lexicon]).splitlines()
    assert columns_of(header)[:2] == ["test, carried, lexicon w", "test, carried, lexicon otherwor"]
    assert best.split()[3:] == ["4.0000", "54.60", "-", "-"]
    assert worse.split()[3:] == ["5.0000", "148.41", "9.0000", "8,103.08"]
    assert ranked == "ranked by test, carried, lexicon w"
    # A run that knew those words from the first stands where the other had them put in.
    new_lexicon = keep(tmp_path / "other", {**OTHER_LEXICON, "figures.log_perplexity": 7.0})
    header, *rows = tables([two_lexicons, new_lexicon]).splitlines()[:3]
    assert columns_of(header)[0] == "test, carried, lexicon otherwor"
    assert [row.split()[3] for row in rows] == ["7.0000", "9.0000"]
    # Runs that meet nowhere are refused; those that meet may each have more.
    with pytest.raises(UserError, match=r"lexicon\.words differs: 'w' against 'otherwords'"):
        tables([one_lexicon, new_lexicon])
    keep(tmp_path / "one", {"lexicon.words": "third"}, name="test.carried.lexicon-third")
    assert len(tables([two_lexicons, one_lexicon]).splitlines()[1].split()) == 3 + 6


def test_results_over_the_lexicon_and_over_all_spellings_are_two_columns(tmp_path):
    spelled = {"normalised_over": "all spellings"}
    folder = keep(tmp_path / "a", spelled)
    keep(tmp_path / "a", name="test.carried.renormalised")
    assert columns_of(tables([folder]).splitlines()[0])[:2] == [
        "test, carried, over all spellings",
        "test, carried, over the 10 words of the lexicon",
    ]


def grammar(digest):
    return [{"change": "constrained", "grammar": "data/geo.grammar", "digest": digest * 8}]


def test_what_a_grammar_allows_has_a_column_of_its_own_whatever_the_file_is_called(tmp_path):
    constrained = keep(tmp_path / "both", {"changes": []}, name="test.carried.constrained")
    keep(tmp_path / "both", {"changes": grammar("ab")}, name="free")
    keep(tmp_path / "both", {"changes": grammar("cd")}, name="other")
    free = keep(tmp_path / "one", {"changes": []})
    header, *_ = tables([constrained, free]).splitlines()
    assert columns_of(header) == [
        "test, carried",
        "test, carried, constrained by geo.grammar [abababab]",
        "test, carried, constrained by geo.grammar [cdcdcdcd]",
        "",
    ]
    # Not beside a free one, nor beside what another grammar constrains.
    for digest, value in (("cd", r"\['constrained-cdcdcdcd'\]"), ("", r"\[\]")):
        message = rf"changes differs: \['constrained-abababab'\] against {value}"
        folders = [
            keep(tmp_path / "first", {"changes": grammar("ab")}),
            keep(tmp_path / f"second {digest}", {"changes": grammar(digest) if digest else []}),
        ]
        with pytest.raises(UserError, match=message):
            tables(folders)


def overlap_counts(tokens, long=None):
    """What of a text of 1,000 tokens, 800 of them in long sentences, was seen."""
    counts = {"sentences": 1, "of_sentences": 50}
    return {
        "all": {**counts, "tokens": tokens, "of_tokens": 1000},
        "long": {**counts, "tokens": tokens if long is None else long, "of_tokens": 800},
    }


def overlap_of(trained_on=0, selected_on=0, long=None):
    return {
        "overlap": {
            "letters": 30,
            "trained_on": overlap_counts(trained_on, long),
            "selected_on": overlap_counts(selected_on),
        },
        "not_known": [],
    }


def test_a_run_that_saw_the_text_is_never_ranked(tmp_path):
    better = {"figures.log_perplexity": 1.0}
    trained = keep(tmp_path / "trained", {**overlap_of(trained_on=41), **better})
    chosen = keep(tmp_path / "chosen", {**overlap_of(selected_on=990), **better})
    clean = keep(tmp_path / "clean", {**overlap_of(trained_on=7), "figures.log_perplexity": 6.0})
    unknown = keep(tmp_path / "unknown")
    lines = tables([trained, clean, chosen, unknown]).splitlines()
    assert [line.split()[0] for line in lines[1:6]] == [
        *("unknown", "clean", "not", "trained", "chosen")
    ]
    assert [line.endswith(" !") for line in lines[1:6]] == [False, False, False, True, True]
    assert lines[3] == "not ranked:"
    assert lines[6] == "ranked by test, carried"
    note = (
        "  ! trained: it was trained on this text (4.10% of its tokens in sentences found "
        "there, 5.12% for long sentences)"
    )
    assert note in lines
    assert any(line.startswith("  ! chosen: its checkpoint was chosen on") for line in lines)
    assert "  trained on, selected on: not recorded (unknown)" in lines
    unranked_lines = tables([trained, chosen]).splitlines()
    assert unranked_lines[1] == "not ranked:"
    assert unranked_lines[4].startswith(
        "nothing is ranked: no run's figure on test, carried is one of"
    )
    # Short sentences recur by nature.
    short = keep(tmp_path / "short", {**overlap_of(trained_on=240, long=9), **better})
    assert tables([short, clean]).splitlines()[1].split()[0] == "short"


def test_a_text_that_some_run_never_saw_ranks_before_one_that_all_saw(tmp_path):
    for name in ("a", "b"):
        keep(tmp_path / name, {"split": "known", **overlap_of(trained_on=900)})
        keep(tmp_path / name, {"split": "test", **overlap_of()})
    lines = tables([str(tmp_path / "a"), str(tmp_path / "b")]).splitlines()
    assert lines[3] == "ranked by test, carried"
    assert lines[1].endswith(" !")  # in the other column


def test_a_validation_text_chose_every_checkpoint_and_says_so(tmp_path):
    changes = {"split": "validation", **overlap_of(selected_on=1000)}
    folders = [
        keep(tmp_path / "worse", changes),
        keep(tmp_path / "better", {**changes, "figures.log_perplexity": 4.0}),
    ]
    lines = tables(folders).splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["better", "worse"]
    assert lines[3] == (
        "ranked by validation, carried, a text that the checkpoints were chosen on: figures of "
        "validation, not of a test"
    )
    assert any(line.startswith("  selected on this text, as a valid") for line in lines)
    # Trained on it is another matter.
    trained = keep(tmp_path / "trained", {**changes, **overlap_of(trained_on=1000)})
    assert tables([*folders, trained]).splitlines()[3] == "not ranked:"


def test_it_says_where_the_judged_distribution_is_not_the_trained_one(tmp_path):
    folders = [
        keep(tmp_path / "a", {"changes": [{"change": "lexicon", "file": "w", "spread": True}]}),
        keep(tmp_path / "b"),
        keep(tmp_path / "c", {"changes": [{"change": "renormalised"}]}),
    ]
    lines = tables(folders).splitlines()
    assert (
        "  over other words than in training; the unknown word's probability spread over "
        "new words (a)"
    ) in lines
    assert "  renormalised over the lexicon (c)" in lines


def test_columns_of_different_checkpoints_are_marked(tmp_path):
    mixed = keep(tmp_path / "mixed")
    keep(tmp_path / "mixed", {"split": "validation", "checkpoint": 30}, name="validation.carried")
    plain = keep(tmp_path / "plain", {"figures.log_perplexity": 6.0})
    lines = tables([mixed, plain]).splitlines()
    assert lines[1].startswith("mixed * ")
    assert lines[2].split()[:2] == ["plain", "Softmax"]
    assert lines[-1] == (
        "* mixed was judged at different checkpoints, test, carried of step 40; validation, "
        "carried of step 30: evaluate it again."
    )


def test_the_priors_that_saw_a_text_are_shown(tmp_path):
    saw = ["vocabulary", "background: Unigram"]
    folders = [
        keep(tmp_path / "a", {"priors_saw_this_text": saw}),
        keep(tmp_path / "b", {"priors_saw_this_text": saw}),
        keep(tmp_path / "c"),
    ]
    assert tables(folders).splitlines()[-2:] == [
        "  priors that saw this text: vocabulary, background: Unigram (a, b)",
        "  priors that saw this text: none (c)",
    ]


def test_runs_have_their_whole_paths_where_names_are_the_same(tmp_path):
    folders = [keep(tmp_path / "one" / "run"), keep(tmp_path / "other" / "run")]
    assert [line.split()[0] for line in tables(folders).splitlines()[1:3]] == folders


def test_lines_fit_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "WIDTH", 120)
    for name in ("a", "b"):
        for split in ("test", "validation", "unseen"):
            counts = "words, " * 40
            keep(tmp_path / name, {"split": split, "data.sha256": split, "counts": counts})
    lines = tables([str(tmp_path / "a"), str(tmp_path / "b")]).splitlines()
    assert max(map(len, lines)) <= 120
    assert [line.split()[0] for line in lines[:6]] == ["run", "a", "b"] * 2
    assert "parameters" in lines[0] and "parameters" not in lines[3]
    assert "ranked by test, carried" in lines


def test_a_run_without_results_is_named(tmp_path):
    with pytest.raises(
        UserError, match=r"nothing does not exist: give the folder of an evaluated run"
    ):
        tables([keep(tmp_path / "a"), str(tmp_path / "nothing")])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("{", "is not a result of this zoo"),
        ("null", "is not a result of this zoo"),
        ('{"kind": "perplexity"}', "is not a result of this zoo"),
        ({"changes": ...}, r"\(changes is missing or null, where a list should be\)"),
        (
            {"policies.state": "kept"},
            r"policies\.state is 'kept', not carried",
        ),
    ],
)
def test_a_broken_result_is_named(tmp_path, broken, message):
    folder = keep(tmp_path / "a")
    if isinstance(broken, dict):
        broken = json.dumps(passports.change(passports.PERPLEXITY, broken))
    (tmp_path / "a" / "results" / "broken.json").write_text(broken)
    with pytest.raises(UserError, match=rf"broken\.json .*{message}"):
        tables([folder])


OUTSIDE = {
    "out_of_vocabulary": 2,
    "out_of_vocabulary_types": 1,
    "out_of_vocabulary_rate": 0.02,
}
TEXT = {"text": "a.txt", "digest": "d", "sentences": 3, "tokens": 9, "by": "this run"}
SOURCE = {"path": "a.en", "sha256": "s", "sentences": 1, "words": 3, "out_of_vocabulary": 1}
BAND = {"band": "unseen", "tokens": 2, "log_perplexity": 9.0, "perplexity": 8103.1}
IMPOSSIBLE = {"tokens": 1, "first": "'a', word 1 of sentence 1", "others": 3.0}
FULL = {
    **OUTSIDE,
    **{"data.words": 100, "data.sentences": 9, "trained_on": [TEXT], "source": SOURCE},
    **{"figures.bands": [BAND], "figures.impossible": IMPOSSIBLE, "figures.interval": [4, 6]},
}
CASE = passports.accuracy(1, 2)
JUDGED = {
    "kind": "minimal pairs",
    "figures.cases": {"all": CASE},
    "figures.groups": {"verb": {"sings": CASE}},
}


def without(values, name):
    return {field: value for field, value in values.items() if field != name}


def test_what_a_result_has_beside_its_figures_is_told(tmp_path):
    (columns,) = results.read_results([keep(tmp_path / "a", FULL)]).values()
    (record,) = columns.values()
    lines = passport.conditions(record)
    assert "2 outside the lexicon (2.00% of words, 5.00% of types)" in lines[1]
    assert lines[-1].startswith("1 of the counted tokens have probability 0, the first of them 'a'")
    keep(tmp_path / "b", JUDGED)
    ((_, judgements),) = results.read_answers([tmp_path / "b"]).items()
    assert judgements[tmp_path / "b"].figures.groups["verb"]["sings"].pairs == 2


@pytest.mark.parametrize(
    ("fields", "change", "message"),
    [
        (FULL, {"tokens": 0}, "tokens is 0, where at least 1"),
        (FULL, {"policies.boundary": ...}, r"policies\.boundary is missing"),
        (FULL, {"data.words": "many"}, r"data\.words is \"many\""),
        (FULL, {"out_of_vocabulary": "2"}, "out_of_vocabulary is"),
        (FULL, {"types": None}, "types is missing or null"),
        (FULL, {"types": 0}, "types is 0, where at least 1"),
        (FULL, {"out_of_vocabulary": 0, "unknown_tokens": None}, "unknown_tokens is missing"),
        (FULL, {"out_of_vocabulary_rate": []}, "out_of_vocabulary_rate is a list"),
        (FULL, {"trained_on": [without(TEXT, "digest")]}, r"trained_on\.0\.digest is missing"),
        (FULL, {"source": without(SOURCE, "path")}, r"source\.path is missing"),
        (FULL, {"source": {**SOURCE, "out_of_vocabulary": "1"}}, r"source\.out_of_vocabulary is"),
        (
            FULL,
            {"figures.bands": [{**BAND, "band": "rare"}]},
            r"figures\.bands\.0\.band is 'rare', not",
        ),
        (FULL, {"figures.impossible": {"tokens": 1}}, r"figures\.impossible\.first is missing"),
        (FULL, {"figures.interval": [4]}, r"figures\.interval has 1 items, not 2"),
        (FULL, {"figures.interval": ["low", 6]}, r"figures\.interval\.0 is \"low\""),
        (JUDGED, {"counts": 3}, "counts is 3"),
        (JUDGED, {"figures.skipped": "none"}, r"figures\.skipped is \"none\""),
        (JUDGED, {"figures.cases": []}, r"figures\.cases is a list"),
        (JUDGED, {"figures.cases.all.right": "1"}, r"figures\.cases\.all\.right is"),
        (JUDGED, {"figures.cases.all.right": -1}, r"cases\.all\.right is -1, where 0 to 2"),
        (JUDGED, {"figures.groups": {"verb": None}}, r"figures\.groups\.verb is missing or null"),
        (JUDGED, {"figures.groups": {"verb": {"sings": 1}}}, r"figures\.groups\.verb\.sings is 1"),
    ],
)
def test_a_damaged_part_of_a_result_is_named(tmp_path, fields, change, message):
    """On reading, not by a traceback where it is told."""
    folder = keep(tmp_path / "a", {**fields, **change}, "broken")
    with pytest.raises(UserError, match=rf"broken\.json is not a result .*{message}"):
        tables([folder])
