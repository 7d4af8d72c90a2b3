"""Chinese lists divided into those to tune on, to train on and to judge."""

import json
import re

import numpy as np
import pytest

from records import cells, chinese_lists, translation_lists
from zoo.errors import UserError

# Of a line's right and wrong translation.
RIGHT = [f"我 要 {word} 。" for word in "一二三四五六七八"]
WRONG = [f"我 不要 {word} 。" for word in "一二三四五六七八"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of data with lists of two translations; in the first half the wrong one is first."""
    monkeypatch.setenv("ZOO_DATA", str(tmp_path))
    (tmp_path / "nbest_en_zh").mkdir()
    references = tmp_path / chinese_lists.REFERENCES
    references.write_text("".join(f"{text}\n" for text in RIGHT), encoding="utf-8")
    lines = [
        f"{number} ||| {text} ||| {score} ||| {score}\n"
        for number, texts in enumerate(zip(WRONG, RIGHT, strict=True))
        for text, score in zip(texts[:: 1 if number < 4 else -1], (-1, -2), strict=True)
    ]
    (tmp_path / chinese_lists.LISTS).write_text("".join(lines), encoding="utf-8")
    return tmp_path


def test_no_text_is_tuned_on_and_judged(data):
    folder = data / "texts"
    chinese_lists.texts(folder)
    words = {
        name: re.findall("[一二三四五六七八]", (folder / f"{name}.txt").read_text(encoding="utf-8"))
        for name in ("even", "half", "other")
    }
    assert words == {"even": [*"一三五七"], "half": [*"一五"], "other": [*"三七"]}
    parts = {"tested": chinese_lists.part(*chinese_lists.TESTED, set())}
    parts |= {
        name: chinese_lists.part(*stride, set()) for name, stride in chinese_lists.TUNED_ON.items()
    }
    ids = {name: [int(id) for id in part.lists.ids] for name, part in parts.items()}
    assert ids == {"tested": [1, 3, 5, 7], "even": [0, 2, 4, 6], "half": [2, 6]}
    assert parts["half"].texts == [WRONG[2], RIGHT[2], RIGHT[6], WRONG[6]]


@pytest.mark.slow
def test_a_model_that_knows_the_references(data, monkeypatch):
    folder = data / "texts"
    chinese_lists.texts(folder)

    def scores(run, work, parts):
        values = {
            name: np.array([float("不要" not in text) for text in part.texts])
            for name, part in parts.items()
        }
        return (
            values
            if "cwe" not in run.name
            else {name: 0 * column for name, column in values.items()}
        )

    monkeypatch.setattr(translation_lists, "scores", scores)
    monkeypatch.setattr(chinese_lists, "FILE", data / "chinese_lists.json")
    monkeypatch.setattr(cells, "FOLDER", data)
    machine = {"processor": "a core", "cores": 1}
    provenance = {"revision": "1a2b3c4d", "machine": machine, "date": "today"}
    monkeypatch.setattr(chinese_lists, "provenance", provenance.copy)
    names = [f"chinese_{way}_{model}_0" for way in ("even", "half") for model in ("we_3", "cwe_3")]
    argv = ["chinese_lists", "keep", str(folder), *names]
    for folder_name in ("chinese_odd_we_3_0", "chinese_even_we_6_0"):
        monkeypatch.setattr("sys.argv", [*argv, f"runs/{folder_name}"])
        with pytest.raises(UserError, match=f"^runs/{folder_name} is not named"):
            chinese_lists.main()
    monkeypatch.setattr("sys.argv", argv)
    chinese_lists.main()
    ways = json.loads(chinese_lists.FILE.read_text())["ways"]
    assert [way["tuned"] for way in ways.values()] == [4, 2]
    for way in ways.values():
        assert way["lists"] == 4 and way["unseen"] == 4  # 二 四 六 八
        # characters, two right and two wrong: 2 x 4 + 2 x 4 of 18, pairs 2 x 3 + 2 x 2 of 14 ...
        untuned = 100 * (16 / 18 * 10 / 14 * 6 / 10 * 2 / 6) ** 0.25
        assert way["untuned"]["BLEU"][0] == pytest.approx(untuned, abs=1e-4)
        for method in ("mira", "mert"):
            figures = way[method]["figures"]
            assert figures["we_3_0"]["BLEU"][0] == pytest.approx(100)
            assert figures["cwe_3_0"]["BLEU"] == figures["none"]["BLEU"]
            gains = way[method]["gains"]
            assert gains["we_3 | untuned"]["all"]["BLEU"][0] == pytest.approx(
                100 - untuned, abs=1e-3
            )
            assert gains["cwe_3 | we_3"]["all"]["BLEU"][0] < 0
    rows = chinese_lists.table().splitlines()
    assert [row.split(" | ")[0] for row in rows[2:9]] == [
        "| untuned",
        *(f"| tuned on {n}, {model}" for n in (4, 2) for model in ("no model", "WE", "CWE")),
    ]
    assert rows[4].split(" | ")[1:3] == ["100.00", "100.00"]
    assert "4 lists; revision 1a2b3c4; a core, 1 cores; today." in rows[-1]
