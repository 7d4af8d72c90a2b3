"""Tables of treebanks, from sums of a few made-up sentences."""

import json
import math
import types

import numpy as np
import pytest

from records import cells, tables, treebank_tables
from records.treebank_tables import EVEN, FEATURES, KNOWN, LETTERS, SIDES, TRAINED

SENTENCES = 24
NEW_WORDS = 50
NAMES = ("long_one", "short_two", "middle_three")


@pytest.fixture
def record(tmp_path, monkeypatch, random):
    """A record of three treebanks, and its sums: {"TREEBANK/SIDE": [runs, 2 + ways, sentences]}."""
    monkeypatch.setattr(cells, "FOLDER", tmp_path)
    monkeypatch.setattr(treebank_tables, "SUMS", tmp_path / "treebanks.npz")
    caches = treebank_tables._read_sums, treebank_tables.losses, treebank_tables.gain
    for cache in caches:
        cache.cache_clear()
    sums, treebanks = {}, {}
    for number, name in enumerate(NAMES):
        unknown = random.integers(0, 3, SENTENCES)
        tokens = unknown + random.integers(number > 0, 4, SENTENCES)
        sums[f"{name}/tokens"] = np.array([tokens, unknown], np.int32)
        for place, side in enumerate(SIDES):
            ways = 2 if side in ("tags", "forms") else 1
            parts = random.uniform(1, 2, (3, 1 + ways, SENTENCES)) * unknown
            known = random.uniform(4, 5, (3, SENTENCES)) * (tokens - unknown) * (1 - 0.1 * place)
            all_words = (parts[:, 0] + known)[:, None]
            sums[f"{name}/{side}"] = np.concatenate([all_words, parts], 1).astype(np.float32)
        treebanks[name] = {
            "sentences": 1000 - 300 * number,
            "tokens": 9000,
            "types": 1000 + 500 * number,
            "values": 30 - number,
            "trials": {},
            "accuracies": {side: [0.5, 0.625] for side in SIDES},
            "pairs": 39 + (number == 1),
            "new_words": NEW_WORDS,
            "contributions": {"Word": 0.5, **({"Case": 0.25, "Aspect": 0.125} if number else {})},
        }
    np.savez(tmp_path / "treebanks.npz", **sums)
    contents = {
        "revision": "abc",
        "machine": {"processor": "a core", "cores": 1},
        "date": "today",
        "treebanks": treebanks,
    }
    (tmp_path / "treebanks.json").write_text(json.dumps(contents))
    yield sums
    for cache in caches:
        cache.cache_clear()


def table_rows(text):
    """The cells of each row of a table, {first cell: other cells}."""
    lines = [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {first: rest for first, *rest in lines}


@pytest.mark.parametrize("name", NAMES)
def test_each_measure_is_of_its_words_and_shares(record, name):
    """The first treebank has sentences without a known word."""
    tokens, unknown = record[f"{name}/tokens"].astype(float)
    for side in ("softmax", "tags"):
        runs = record[f"{name}/{side}"].astype(float)
        expected: dict[str, list[float]] = {}
        for every, new, letters, *features in runs.sum(2).tolist():
            known, number = every - new, unknown.sum()
            shares = number * math.log(NEW_WORDS)
            measures = {
                TRAINED: every / tokens.sum(),
                KNOWN: known / (tokens.sum() - number),
                EVEN: (every + shares) / tokens.sum(),
                f"new {EVEN}": (new + shares) / number,
                LETTERS: (known + letters) / tokens.sum(),
                f"new {LETTERS}": letters / number,
            }
            if features:
                measures |= {FEATURES: (known + features[0]) / tokens.sum()}
                measures |= {f"new {FEATURES}": features[0] / number}
            for measure, nats in measures.items():
                expected.setdefault(measure, []).append(nats)
        for measure, nats in expected.items():
            group = treebank_tables.losses(name, side, measure)
            assert group.losses == pytest.approx(nats, rel=1e-6)
            assert all((counts > 0).all() for _, counts in (run.T for run in group.statistics))


def test_a_gain_is_the_opponent_s_loss_less_the_model_s(record):
    """With an interval around it, and no verdict where both tests tell it from 0."""
    first, second = (
        np.mean(treebank_tables.losses("short_two", side, KNOWN).losses)
        for side in ("softmax", "tags")
    )
    gain = treebank_tables.gain("short_two", "tags", "softmax", KNOWN)
    assert gain.nats == pytest.approx(first - second)
    assert 0 < gain.interval[0] < gain.nats < gain.interval[1] and gain.verdict == ""
    assert "*" not in table_rows(treebank_tables.gains("treebank_gains"))["Short"][0]
    same = treebank_tables.gain("short_two", "tags", "tags", KNOWN)
    assert same.nats == 0 and treebank_tables._cell(same) == "0.000 [0.000, 0.000]*"


def test_tables_have_a_row_for_each_treebank_the_shortest_first(record):
    for table in treebank_tables.TABLES.values():
        text = table()
        assert "From records/treebanks.json" in text and text.endswith("today.")
        rows = table_rows(text)
        assert {len(row) for row in rows.values()} == {len(rows[next(iter(rows))])}
    rows = table_rows(treebank_tables.models())
    assert [*rows] == ["treebank", "---", "Middle", "Short", "Long"]
    assert rows["Middle"][:3] == ["400", "0.2222", "28"]
    (pairs,) = [*table_rows(treebank_tables.agreement()).values()][2:]
    assert pairs == ["40", *["56.2 (50.0–62.5)"] * 5, "1.000"]


def test_contributions_are_sorted_by_their_mean_and_the_rest_is_one(record, monkeypatch):
    monkeypatch.setattr(treebank_tables, "KINDS", 2)
    rows = table_rows(treebank_tables.contributions())
    assert rows["treebank"] == ["Word", "Case", "all others"]
    assert rows["Long"] == ["0.50", "", "0.00"]
    assert rows["Middle"] == ["0.50", "0.25", "0.12"]


def test_correlations_are_of_ranks(record, monkeypatch):
    """Three gains rise as the types do, against sentences and values: 1 and -1."""
    gains = dict(zip(NAMES, (0.1, 0.2, 0.3), strict=True))
    monkeypatch.setattr(
        treebank_tables, "gain", lambda name, *_: types.SimpleNamespace(nats=gains[name])
    )
    for row in [*table_rows(treebank_tables.correlations()).values()][2:]:
        assert [cell.split(",")[0] for cell in row] == ["-1.00", "1.00", "-1.00"]


def test_every_table_of_treebanks_is_one_of_the_pages():
    assert treebank_tables.TABLES.items() <= tables.TABLES.items()
