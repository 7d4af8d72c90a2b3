"""Tables of re-ranked lists, from counts of a few made-up translations."""

import json
import re

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from records import cells, list_tables
from zoo.lab.rescoring import Bleu

REFERENCES = ["a b c d e", "a b c d f g", "b c d e a", "e d c b a b c"] * 9
TEXTS = {
    "untuned": ["a b", "a b c d", "b c d", "e d c b"] * 9,
    "none": ["a b c d", "a b c d f", "b c d e", "e d c b a"] * 9,
    "we": ["a b c d e", "a b c d f", "b c d e a", "e d c b a"] * 9,
    "cwe": ["a b c d", "a b c d f g", "b c d a e", "e d c b a b"] * 9,
}


def bleu(name):
    """BLEU of made-up translations, by sacrebleu."""
    return BLEU(tokenize="none", force=True).corpus_score(TEXTS[name], [REFERENCES]).score


@pytest.fixture
def keep(tmp_path, monkeypatch):
    """Returns what keeps choices, {choice: name of its texts}, as counts of lists."""
    monkeypatch.setattr(cells, "FOLDER", tmp_path)
    monkeypatch.setattr(list_tables, "LISTS", tmp_path / "lists")
    (tmp_path / "lists").mkdir()
    list_tables.read_choices.cache_clear()

    def write(lists, names, parts):
        counts = [Bleu().count_corpus(TEXTS[name], REFERENCES) for name in names.values()]
        arrays = dict.fromkeys(parts, np.stack(counts, axis=1).astype(np.int16))
        is_new = np.arange(len(REFERENCES)) % 4 == 2
        arrays |= {f"{part}/new_words": is_new for part in parts}
        arrays |= {f"{part}/found_words": is_new & (np.arange(36) < 8) for part in parts}
        np.savez(tmp_path / "lists" / f"{lists}.npz", **arrays)
        contents = {
            "revision": f"{lists[-1]}1a2b3c4d",
            "machine": {"processor": "a core", "cores": 1},
            "date": "today",
            "hypotheses": dict.fromkeys(parts, 180),
            "choices": [*names],
            "weights": {
                name: {"LogProb": 1.0} | ({} if "none" in name else {"other": len(name) - 26.5})
                for name in names
                if "/" in name
            },
        }
        (tmp_path / "lists" / f"{lists}.json").write_text(json.dumps(contents))

    yield write
    list_tables.read_choices.cache_clear()


def tuned(**names):
    """{choice: name of its texts}: choices without a model, then of runs by both methods."""
    choices = {"untuned": "untuned", "oracle": "we"}
    for run, name in {"none": "none", **names}.items():
        choices |= dict.fromkeys((f"{run}/mira", f"{run}/mert"), name)
    return choices


def rows(table):
    """The cells of a table's rows, by the first of each."""
    lines = re.findall(r"^\| (.*) \|$", table, re.MULTILINE)[2:]
    return {cells[0]: cells[1:] for cells in (line.split(" | ") for line in lines)}


def test_seeds_of_a_model():
    runs = ["none", "we_3_captions_0", "we_3_captions_12", "chinese_half_cwe_3_1"]
    choices = ["untuned", "oracle", *(f"{run}/{way}" for run in runs for way in ("mira", "mert"))]
    assert list_tables.group_seeds(choices) == {
        "none": ["none"],
        "we_3_captions": ["we_3_captions_0", "we_3_captions_12"],
        "cwe_3": ["chinese_half_cwe_3_1"],
    }


def test_gains_are_of_all_seeds_together(keep):
    names = tuned(we_3_0="we", we_3_1="none", cwe_3_0="cwe") | {"cwe_3_0/mert": "we"}
    keep("zh_126", names, ["test"])
    untuned, no_model, we, cwe, oracle = list_tables.model_rows(
        "lists", list_tables.read_choices("zh_126", "test")
    )
    titles = [f"lists, {name}" for name in ("untuned", "no model", "WE", "CWE", "oracle")]
    assert [row[0] for row in (untuned, no_model, we, cwe, oracle)] == titles
    assert untuned[1].startswith(f"{bleu('untuned'):.2f} [") and len(untuned) == 2
    assert oracle[1:] == [f"{bleu('we'):.2f}"]
    for cell in no_model[3:]:
        assert cell.startswith(f"{bleu('none') - bleu('untuned'):+.2f} [")
        assert cell.endswith("], p < 0.001")
    least, greatest = sorted((bleu("we"), bleu("none")))
    mean = (least + greatest) / 2
    assert we[1] == we[2] == f"{mean:.2f} ({least:.2f}–{greatest:.2f})"
    together = [a + b for a, b in zip(TEXTS["we"], TEXTS["none"], strict=True)]
    assert len(together) == len(REFERENCES)
    # the sums of both seeds, halved
    both = BLEU(tokenize="none", force=True).corpus_score(
        TEXTS["we"] + TEXTS["none"], [REFERENCES * 2]
    )
    assert all(cell.startswith(f"{both.score - bleu('none'):+.2f} [") for cell in we[3:])
    assert (len(no_model), len(we), len(cwe)) == (5, 5, 7)
    gains = [
        bleu(way) - opponent for opponent in (bleu("none"), both.score) for way in ("cwe", "we")
    ]
    for cell, value in zip(cwe[3:], gains, strict=True):
        assert cell.startswith(f"{value:+.2f} [")


def test_a_choice_does_not_differ_from_itself(keep):
    keep("zh_126", tuned(), ["test"])
    counts = list_tables.read_choices("zh_126", "test")["oracle"]
    assert list_tables.gain_cell(counts, counts) == "+0.00 [+0.00, +0.00], p = 1.000"


def test_the_chinese_table(keep):
    for lists, run in (("zh_252", "chinese_even_we_3_0"), ("zh_126", "chinese_half_we_3_0")):
        keep(lists, tuned(**{run: "we"}), ["test", "val"])
    table = list_tables.chinese()
    models = "untuned", "no model", "WE", "oracle"
    assert [*rows(table)] == [f"36 references, {model}" for model in models]
    assert rows(table)["36 references, oracle"][0] == f"{bleu('we'):.2f}"
    origin = "records/lists/zh_252.json, records/lists/zh_126.json, by python -m "
    assert origin in table and "36 lists; revision 21a2b3c, 61a2b3c; a core" in table


def test_the_czech_tables(keep):
    names = tuned(czech_cwe_3_captions_0="cwe", czech_we_3_captions_0="we")
    for lists in list_tables.CZECH:
        keep(lists, names, ["val", *list_tables.TESTS])
    table = list_tables.czech()
    models = "untuned", "no model", "WE", "CWE", "oracle"
    assert [*rows(table)] == [
        f"{lists}, {test}, {model}"
        for lists in ("no attention, words", "attention, subwords")
        for test in ("test 2016", "test 2018")
        for model in models
    ]
    gain = rows(table)["attention, subwords, test 2018, WE"][2]
    assert gain.startswith(f"{bleu('we') - bleu('none'):+.2f} [")
    assert table.endswith(" The weight of the model is above 0 in 4 of 8.")  # CWE


def test_gains_where_references_have_new_words(keep):
    for lists in list_tables.CZECH:
        keep(lists, tuned(czech_we_3_captions_0="we"), list_tables.TESTS)
    table = list_tables.czech(has_new_words=True)
    texts = [TEXTS[name][2] for name in ("none", "we")]
    none, we = (
        BLEU(tokenize="none", force=True).corpus_score([text], [[REFERENCES[2]]]).score
        for text in texts
    )
    row = rows(table)["no attention, words, test 2016, WE"]
    assert row[0] == f"{we:.2f}" and row[2].startswith(f"{we - none:+.2f} [")
    assert " 2 of 9 lists (no attention, words, test 2016), 2 of 9 lists (" in table


def test_first_translations_by_each_search(keep):
    for translator in list_tables.TRANSLATORS:
        for search in list_tables.SEARCHES:
            name = {"50_0": "untuned", "50_1": "cwe"}.get(search, "none")
            keep(f"{translator}_{search}", tuned() | {"untuned": name}, ["val", *list_tables.TESTS])
    table = list_tables.searches()
    row = rows(table)["no attention, words, test 2016, beam of 50"]
    words = [sum(len(text.split()) for text in texts) for texts in (TEXTS["untuned"], REFERENCES)]
    assert row[0] == f"{words[0] / words[1]:.2f}" == "0.57"
    assert row[1].startswith(f"{bleu('untuned'):.2f} [") and row[2] == f"{bleu('we'):.2f}"
    assert row[3].startswith(f"{bleu('none') - bleu('untuned'):+.2f} [")
    row = rows(table)["attention, subwords, validation, beam of 50, log p / length"]
    # Weights are tuned on validation, which has no gain to show.
    assert row[1].startswith(f"{bleu('cwe'):.2f} [") and row[3] == ""
