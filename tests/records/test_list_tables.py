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
        np.savez(tmp_path / "lists" / f"{lists}.npz", **arrays)
        contents = {
            "revision": f"{lists[-1]}1a2b3c4d",
            "machine": {"processor": "a core", "cores": 1},
            "date": "today",
            "hypotheses": dict.fromkeys(parts, 180),
            "choices": [*names],
            "weights": {name: {} for name in names if "/" in name},
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
    keep("zh_126", tuned(we_3_0="we", we_3_1="none", cwe_3_0="cwe"), ["test"])
    choices = list_tables.read_choices("zh_126", "test")
    no_model, we, cwe = list_tables.model_rows("lists", choices)
    assert [row[0] for row in (no_model, we, cwe)] == [
        "lists, no model",
        "lists, WE",
        "lists, CWE",
    ]
    assert no_model[3].startswith(f"{bleu('none') - bleu('untuned'):+.2f} [")
    assert no_model[3].endswith("], p < 0.001") and len(no_model) == 4
    least, greatest = sorted((bleu("we"), bleu("none")))
    mean = (least + greatest) / 2
    assert we[1] == we[2] == f"{mean:.2f} ({least:.2f}–{greatest:.2f})"
    together = [a + b for a, b in zip(TEXTS["we"], TEXTS["none"], strict=True)]
    assert len(together) == len(REFERENCES)
    # the sums of both seeds, halved
    both = BLEU(tokenize="none", force=True).corpus_score(
        TEXTS["we"] + TEXTS["none"], [REFERENCES * 2]
    )
    assert we[3].startswith(f"{both.score - bleu('none'):+.2f} [") and len(we) == 4
    assert cwe[3].startswith(f"{bleu('cwe') - bleu('none'):+.2f} [")
    assert cwe[4].startswith(f"{bleu('cwe') - both.score:+.2f} [")


def test_a_choice_does_not_differ_from_itself(keep):
    keep("zh_126", tuned(), ["test"])
    counts = list_tables.read_choices("zh_126", "test")["oracle"]
    assert list_tables.gain_cell(counts, counts) == "+0.00 [+0.00, +0.00], p = 1.000"


def test_the_chinese_table(keep):
    for lists, run in (("zh_252", "chinese_even_we_3_0"), ("zh_126", "chinese_half_we_3_0")):
        keep(lists, tuned(**{run: "we"}), ["test", "val"])
    table = list_tables.chinese()
    assert [*rows(table)] == [
        "untuned",
        *(f"tuned on 36, {model}" for model in ("no model", "WE")),
        "oracle",
    ]
    assert rows(table)["oracle"][0] == f"{bleu('we'):.2f}"
    origin = "records/lists/zh_252.json, records/lists/zh_126.json, by python -m "
    assert origin in table and "36 lists; revision 21a2b3c, 61a2b3c; a core" in table
