"""Runs that are compared by their kept scores: intervals, tests, ties and seeds."""

import dataclasses
import itertools
import json
import math
import pathlib
import re

import numpy as np
import pytest

import zoo
from tests import passports
from tests.lab.comparison.test_comparison import keep
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.lab.comparison.text_report import tables
from zoo.lab.evaluation import item_scores, significance
from zoo.lab.evaluation.figures import Place
from zoo.lab.evaluation.perplexity import Scores
from zoo.lexicon import Lexicon

LENGTHS = np.random.default_rng(5).integers(1, 12, 60)
BASE = -np.random.default_rng(6).gamma(2.0, 2.0, LENGTHS.sum())
BAND = np.random.default_rng(7).integers(-1, 4, LENGTHS.sum())
FREE = {"overlap": None, "priors_saw_this_text": []}


def keep_scores(folder, log_prob, lengths=LENGTHS, recipe="r", seed=0, band=BAND, **changes):
    """A run whose scores are kept."""
    loss = -float(np.float32(log_prob).mean(dtype=np.float64))
    arrays = {
        "log_prob": np.float32(log_prob),
        "band": np.int8(band[: len(log_prob)]),
        "lengths": np.int32(lengths),
    }
    figures = {"log_perplexity": loss, "perplexity": math.exp(loss)}
    training = {"seed": seed, "recipe_but_seed": recipe}
    passport = {"figures": figures, "training": training, "scores": item_scores.digest(arrays)}
    name = keep(folder, {**passport, "tokens": len(log_prob), **changes})
    (result,) = (folder / "results").glob("*.json")
    item_scores.write(result, arrays)
    return name


def worse(by, noise, seed):
    return BASE - by + np.random.default_rng(seed).normal(0, noise, len(BASE))


def test_scores_of_a_text_are_those_of_counted_tokens(tmp_path):
    text = EncodedText(
        words=np.arange(7, dtype=np.int32),
        known=np.ones(7, bool),
        counted=np.ones(7, bool),
        starts=np.array([0, 3, 4]),
    )
    counted = np.array([1, 1, 0, 0, 1, 1, 0], bool)
    words = ("<unk>", "a", "b", "c", "d", "e", "f")
    lexicon = Lexicon(words, np.array([5, 0, 9, 9, 10, 99, 3]), unknown="<unk>")
    log_prob = np.arange(0, -7, -1.0, np.float32) - np.float32(1e-4)  # rounded to 1/1024
    arrays = item_scores.from_text(text, Scores(log_prob, counted), lexicon)
    assert arrays["band"].tolist() == [-1, 0, 2, 2]
    assert arrays["log_prob"].tolist() == [0, -1, -4, -5] and arrays["lengths"].tolist() == [
        2,
        0,
        2,
    ]
    statistics = item_scores.statistics(arrays)
    assert statistics.tolist() == [[1, 2], [9, 2]]  # the sentence without a token is left out
    assert item_scores.log_perplexity(statistics.sum(0)) == 2.5
    result = tmp_path / "test.carried.json"
    item_scores.write(result, arrays)
    place = Place(result.name, item_scores.path_of(result))
    passport = dataclasses.replace(passports.make(scores=item_scores.digest(arrays)), place=place)
    saved_arrays = item_scores.read(passport)
    assert {name: array.tolist() for name, array in saved_arrays.items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    assert item_scores.read(dataclasses.replace(passport, scores=None)) is None
    with pytest.raises(UserError, match="of another evaluation"):
        item_scores.read(dataclasses.replace(passport, scores="0" * 64))
    item_scores.path_of(result).write_text("no archive")
    with pytest.raises(UserError, match="holds no scores"):
        item_scores.read(passport)


def test_a_difference_and_a_tie(tmp_path):
    folders = [
        keep_scores(tmp_path / "far", worse(0.5, 0.3, 1), recipe="c"),
        keep_scores(tmp_path / "best", BASE, recipe="a"),
        keep_scores(tmp_path / "near", worse(0.001, 0.3, 2), recipe="b"),
    ]
    lines = tables(folders).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["best", "near", "far"]
    assert "95 %" in lines[0] and "seeds" not in lines[0]
    statistics = item_scores.statistics({"log_prob": np.float32(BASE), "lengths": LENGTHS})
    low, high = significance.bootstrap_interval(statistics, item_scores.log_perplexity)
    assert f"[{low:.4f}, {high:.4f}]" in lines[1]
    verdicts = [line for line in lines if line.startswith("  best ") or line.startswith("  near ")]
    assert verdicts[0].startswith("  best and near: a tie, 0.0")
    assert verdicts[1].startswith("  best is below far by 0.5")
    assert verdicts[2].startswith("  near is below far by 0.")
    assert "(p < 0.001 by 60 sentences)" in verdicts[1]
    # The interval of the difference is as narrow as its noise, not as the figures' own.
    low, high = map(float, re.search(r"\[(\S+), (\S+)\]", verdicts[1]).groups())
    assert 0.46 < low < high < 0.58 and high - low < 0.12
    assert "  one seed does not show the noise of training" in lines


def test_rows_have_what_the_lines_say_of_differences(tmp_path):
    folders = [
        keep_scores(tmp_path / f"far{seed}", worse(0.5, 0.3, seed), recipe="b", seed=seed)
        for seed in (1, 2)
    ]
    folders += [
        keep_scores(tmp_path / f"best{seed}", worse(0, 0.2, seed), recipe="a", seed=seed)
        for seed in (3, 4)
    ]
    uncounted = keep_scores(tmp_path / "uncounted", BASE - 1, recipe="c")
    next(pathlib.Path(uncounted).glob("results/*.npz")).unlink()
    best, far, third = zoo.compare([*folders, uncounted])
    assert (best.seeds, far.seeds, third.run) == (2, 2, "uncounted")
    assert far.above == pytest.approx(far.log_perplexity - best.log_perplexity, abs=1e-9)
    (verdict,) = [line for line in tables(folders).splitlines() if " is below " in line]
    assert f"by {far.above:.4f} [{far.above_low:.4f}, {far.above_high:.4f}] nats" in verdict
    assert "p < 0.001 by 60" in verdict and far.p_of_seeds < 0.05
    for row in (best, third):  # the lowest itself, and a run without scores
        assert all(math.isnan(value) for value in row[-5:])


def test_seeds_of_a_recipe_are_one_row(tmp_path):
    folders = [
        keep_scores(
            tmp_path / f"{recipe}{seed}", worse(by, 0.2, 9 * seed), recipe=recipe, seed=seed
        )
        for recipe, shifts in (("a", (0.00, 0.02, 0.04)), ("b", (0.28, 0.30, 0.33)))
        for seed, by in enumerate(shifts)
    ]
    lines = tables(folders).splitlines()
    losses = [
        json.loads(pathlib.Path(folder, "results", "test.carried.json").read_text())["figures"][
            "log_perplexity"
        ]
        for folder in folders
    ]
    assert lines[1].startswith("a, 3 seeds ")
    assert lines[2].startswith("b, 3 seeds ")
    assert f"{np.mean(losses[:3]):.4f}  [{min(losses[:3]):.4f}, {max(losses[:3]):.4f}]" in lines[1]
    assert f"{math.exp(np.mean(losses[:3])):.2f}" in lines[1]
    assert lines[3] == "a, 3 seeds: a0, a1, a2"
    p = significance.seeds_test(losses[:3], losses[3:])
    (verdict,) = [line for line in lines if " is below " in line]
    p_text = f"{p:.3f}" if p >= 0.001 else "p < 0.001"
    assert verdict.endswith(f"by 60 sentences, {p_text} by 3 and 3 seeds)")
    assert not any("one seed" in line for line in lines)


@pytest.mark.parametrize(
    ("first_shifts", "second_shifts"),
    [((0.0, 0.25, 0.5), (0.2, 0.4, 0.6)), ((0.0, 0.5), (0.2, 0.6)), ((0.0, 0.25, 0.5), (0.2, 0.6))],
)
def test_seeds_that_differ_as_much_as_the_recipes(tmp_path, first_shifts, second_shifts):
    """Exchanged sentences alone would tell the recipes apart."""
    folders = [
        keep_scores(tmp_path / f"{recipe}{seed}", BASE - by, recipe=recipe, seed=seed)
        for recipe, shifts in (("a", first_shifts), ("b", second_shifts))
        for seed, by in enumerate(shifts)
    ]
    text = " ".join(tables(folders).split())
    assert re.search(
        r": undecided, 0\.15.*p < 0\.001 by 60 sentences, 0\.\d+ by . and . seeds\)", text
    )


def test_scores_that_differ_by_their_rounding_are_a_tie(tmp_path):
    base = np.round(BASE * 1024) / 1024
    shifted = base.copy()
    shifted[::15] -= 1 / 1024  # all in one direction: exchanged sentences alone tell them apart
    folders = [
        keep_scores(tmp_path / name, scores, recipe=name)
        for name, scores in {"a": base, "b": shifted, "c": shifted - 2 / 1024}.items()
    ]
    verdicts = [line for line in tables(folders).splitlines() if line.startswith("  a ")]
    assert verdicts[0].startswith("  a and b: a tie, 0.0001 [")
    assert "(the same up to the rounding of saved scores, p = 1.000 by 60" in verdicts[0]
    assert verdicts[1].startswith("  a is below c by 0.0020 ")
    assert [row.p for row in zoo.compare(folders)][1] == 1.0


def test_the_number_of_judged_seeds_stands_beside_their_mean(tmp_path):
    training = [{"training": {"seed": seed, "recipe_but_seed": "r"}} for seed in (0, 1)]
    folders = [keep(tmp_path / f"a_{seed}", training[seed]) for seed in (0, 1)]
    keep(tmp_path / "a_1", {**training[1], "split": "dev", "figures.log_perplexity": 4.0})
    text = tables(folders)
    assert "4.0000 (1 of 2 seeds)" in text and "5.0000 (" not in text


def test_one_seed_twice_is_two_rows(tmp_path):
    folders = [keep_scores(tmp_path / name, BASE) for name in ("one", "copy")]
    lines = tables(folders).splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["one", "copy"]
    assert any("a tie, 0.0000" in line and "p = 1.000" in line for line in lines)


def test_runs_without_scores_have_no_interval(tmp_path):
    scored = keep_scores(tmp_path / "kept", BASE)
    plain = keep(tmp_path / "plain", {"tokens": len(BASE), "figures.log_perplexity": 9.0})
    lines = tables([scored, plain]).splitlines()
    assert lines[2].split()[3:] == ["9.0000", "-", "8,103.08"]
    assert not any(" is below " in line or "a tie" in line for line in lines)
    assert "  no scores of single words are kept of plain" in lines
    assert not any("no scores" in line for line in tables([plain]).splitlines())


def test_impossible_words_have_no_test(tmp_path):
    impossible = BASE.copy()
    impossible[7] = -np.inf
    folders = [
        keep_scores(tmp_path / "a", BASE),
        keep_scores(
            tmp_path / "b",
            impossible,
            recipe="b",
            **{"figures.log_perplexity": "inf", "figures.perplexity": "inf"},
        ),
    ]
    lines = tables(folders).splitlines()
    assert any("have no finite figures to be tested" in line for line in lines)


def keep_answers(folder, right, split="pairs:agreement", name="pairs", **changes):
    """A run whose answers are kept: 1, 0 and -1 for a question that was left out."""
    arrays = {"right": np.int8(right)}
    is_answered = arrays["right"] >= 0
    count = int((arrays["right"] == 1).sum())
    asked = int(is_answered.sum())
    figures = passports.accuracy(count, asked)
    record = {"kind": "minimal pairs", "split": split, "tokens": asked}
    record |= {"figures": figures, "scores": item_scores.digest(arrays)}
    keep(folder, {**record, **changes}, name=name)
    item_scores.write(folder / "results" / f"{name}.json", arrays)
    return str(folder)


def test_accuracies_are_compared_question_by_question(tmp_path):
    b_answers = np.array([1] * 30 + [0] * 20 + [-1])
    a_answers = np.array([1] * 18 + [0] * 12 + [1] * 2 + [0] * 17 + [-1, 1])
    folders = [keep_answers(tmp_path / "a", a_answers), keep_answers(tmp_path / "b", b_answers)]
    lines = tables(folders).splitlines()
    assert lines[0].split() == ["pairs:agreement", "accuracy", "95", "%", "right", "of"]
    assert lines[1].split() == ["b", "60.00%", "[46.2,", "72.4]", "30", "50"]
    assert lines[2].split()[:2] == ["a", "42.00%"]
    # Both were asked 49: 12 are right by the one alone, 2 by the other alone.
    p = 2 * (1 + 14 + 91) / 2**14
    assert lines[4] == (f"  b is above a (12 and 2 of 49 right alone, p = {p:.3g})")
    even = keep_answers(
        tmp_path / "c", np.roll(b_answers, 1) * 0 + np.r_[b_answers[:29], 0, 1, b_answers[31:]]
    )
    assert tables([folders[1], even]).splitlines()[-1].startswith("  b and c: a tie (1 and 1 of 50")
    # Other questions of the same name are not put side by side.
    apart = keep_answers(tmp_path / "d", b_answers, **{"data.sha256": "other"})
    assert "both of two runs" not in tables([folders[0], apart])


def test_accuracies_of_several_seeds_are_compared_by_seeds(tmp_path):
    """Two runs each, of equal variance: two degrees of freedom, p = 1 - t / sqrt(2 + t^2)."""
    folders = [
        keep_answers(
            tmp_path / f"{recipe}_{seed}",
            [1] * right + [0] * (10 - right),
            training={"seed": seed, "recipe_but_seed": recipe},
        )
        for recipe, right_counts in (("one", (6, 8)), ("other", (2, 4)))
        for seed, right in enumerate(right_counts)
    ]
    t = 0.4 / math.sqrt(0.01 + 0.01)
    p = 1 - t / math.sqrt(2 + t * t)
    lines = tables(folders).splitlines()
    assert lines[-2:] == [
        "of all seeds:",
        "  one, 2 seeds and other, 2 seeds: a tie (70.00% and 30.00%, "
        f"p = {p:.3f} by 2 and 2 seeds)",
    ]
    assert "of all seeds:" not in tables([folders[0], folders[2]])
    second_seed = keep_answers(
        tmp_path / "one_1", [1] * 6 + [0] * 4, training={"seed": 1, "recipe_but_seed": "one"}
    )
    small = "one, 2 seeds is above other, 2 seeds (60.00% and 20.00%, p < 0.001 by 2 and 2 seeds)"
    lower = keep_answers(
        tmp_path / "other_1", [1] * 2 + [0] * 8, training={"seed": 1, "recipe_but_seed": "other"}
    )
    assert tables([folders[0], second_seed, folders[2], lower]).endswith(small)


def test_answers_under_a_grammar_stand_beside_free_ones(tmp_path):
    """A run that answered in both ways, and one whose model has the grammar itself."""
    grammar = {"changes": [{"change": "constrained", "grammar": "g", "digest": "d"}]}
    free = keep_answers(tmp_path / "free", [1] * 3 + [0] * 7)
    keep_answers(tmp_path / "free", [1] * 4 + [0] * 6, name="constrained", **grammar)
    grammar_run = keep_answers(tmp_path / "own", [1] * 5 + [0] * 5, **grammar)

    def counts(split):
        lines = tables([free, grammar_run], splits=(split,)).splitlines()
        return {line.split()[0]: line.split()[-2:] for line in lines[1:3]}

    assert counts("pairs:agreement") == {"own": ["5", "10"], "free": ["3", "10"]}
    assert counts("pairs:agreement, constrained") == {"own": ["5", "10"], "free": ["4", "10"]}


def test_answers_of_further_options_stand_apart(tmp_path):
    """A run that was also judged over other words, with and without a spread of <unk>."""
    change = {"change": "lexicon", "file": "words.txt", "digest": "fedcba9876"}
    run = keep_answers(tmp_path / "run", [1] * 3 + [0] * 7, changes=[change])
    changes = [{**change, "spread": True}]
    keep_answers(tmp_path / "run", [1] * 6 + [0] * 4, name="spread", changes=changes)
    lines = tables([run]).splitlines()
    counts = {line.split("  ")[0]: below.split()[-2:] for line, below in itertools.pairwise(lines)}
    assert counts["pairs:agreement"] == ["3", "10"]
    spread = "pairs:agreement, lexicon fedcba98, <unk> spread over new words"
    assert counts[spread] == ["6", "10"]


def test_two_results_of_the_same_questions_and_options_are_refused(tmp_path):
    run = keep_answers(tmp_path / "run", [1, 0])
    keep_answers(tmp_path / "run", [1, 1], name="again")
    with pytest.raises(UserError, match=r"two results of pairs:agreement: again\.json and pairs"):
        tables([run])


def test_accuracies_stand_below_perplexities(tmp_path):
    folders = [keep_scores(tmp_path / name, BASE) for name in ("a", "b")]
    for name in ("a", "b"):
        keep_answers(tmp_path / name, [1, 0, 1])
    lines = tables(folders).splitlines()
    assert lines[0].startswith("run ")
    assert [line.split()[0] for line in lines if "accuracy" in line] == ["pairs:agreement"]
