"""Re-ranks Chinese lists by language models of a few references, and keeps the figures.

    python -m records.chinese_lists texts runs/chinese
    python -m records.chinese_lists keep runs/chinese runs/chinese_{even,half}_*_3_[012]

The references of the lists are the only Chinese text. So "even" tunes on the lists with even
numbers and trains on the same references; "half" trains on every second of these, and tunes on the
lists of the others. Both are judged on the lists with odd numbers, as
`records.translation_lists` does. records/chinese_lists.json has the figures.
"""

import argparse
import pathlib
import re

from records import translation_lists
from records.cells import FOLDER, grid, mean, provenance, provenance_line, read_json
from records.translation_lists import METHODS, NONE, TUNED, UNTUNED
from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.lab.evaluation.bleu_chrf_wer import Bleu, ChrF
from zoo.lab.evaluation.nbest import read_lists
from zoo.lab.table import SCORE, format_value
from zoo.sources import files

FILE = FOLDER / "chinese_lists.json"
LISTS, REFERENCES = "nbest_en_zh/devset1_2.en0.b.nbest", "nbest_en_zh/devset1_2.zh.b"
METRICS = (Bleu("zh"), ChrF())
TEST = "test"
# Every so many lists, from which on.
TESTED = (2, 1)
TRAINED_ON = {"even": (2, 0), "half": (4, 0)}
TUNED_ON = {"even": (2, 0), "half": (4, 2)}
BASELINE = "we_3"
MODELS = {NONE: "no model", BASELINE: "WE", "cwe_3": "CWE", "cwe_cwe_3": "CWE-CWE"}


def texts(folder: pathlib.Path):
    """Writes the texts that models are trained on, and of the lists that "half" is tuned on."""
    lines = files.read_text(files.find(REFERENCES)).splitlines(keepends=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (step, first) in {**TRAINED_ON, "other": TUNED_ON["half"]}.items():
        (folder / f"{name}.txt").write_text("".join(lines[first::step]), encoding="utf-8")


def part(step: int, first: int, training_words: set[str]) -> translation_lists.Part:
    """Returns every so many of the lists, from the first on.

    Args:
      step: the distance of two.
      first: the first.
      training_words: all words of the text of training.
    """
    lists = (nbest for nbest in read_lists(LISTS)[1] if int(nbest.id) % step == first)
    return translation_lists.read_part(lists, REFERENCES, training_words, METRICS)


def judge(folder: pathlib.Path, name: str, runs: list[pathlib.Path]) -> dict:
    """Returns the figures of the test by the runs of one way to divide the lists.

    Args:
      folder: of the texts, to write the scores to.
      name: of the way.
      runs: of the models.
    """
    training_words = {*files.read_text(str(folder / f"{name}.txt")).split()}
    parts = {TUNED: part(*TUNED_ON[name], training_words), TEST: part(*TESTED, training_words)}
    work = folder / name
    work.mkdir(exist_ok=True)
    columns = {
        run.partition(f"{name}_")[2]: column
        for run, column in translation_lists.score_runs(work, runs, parts).items()
    }
    figures = translation_lists.judge(work, parts, columns, BASELINE)
    return {"tuned": len(parts[TUNED].lists.ids), **figures[TEST]}


def table() -> str:
    """Makes the table of the re-ranked lists."""
    rows: list[list[str]] = []
    for way in read_json(FILE.name)["ways"].values():
        untuned, oracle = (way[selection]["BLEU"] for selection in (UNTUNED, "oracle"))
        rows = rows or [["untuned", format_value((*untuned,), SCORE)]]
        mira = way[METHODS[0]]
        for model, runs in translation_lists.group_seeds([*mira["figures"]]).items():
            row = [f"tuned on {way['tuned']}, {MODELS[model]}"]
            for method in METHODS:
                figures = way[method]["figures"]
                row.append(mean([figures[run]["BLEU"][0] for run in runs], ".2f"))
            for opponent in (NONE, BASELINE):
                opponent = UNTUNED if model == NONE == opponent else opponent
                gain = mira["gains"].get(f"{model} | {opponent}")
                row.append(translation_lists.gain_cell(gain["all"]["BLEU"]) if gain else "")
            rows.append(row)
    rows.append(["oracle", f"{oracle[0]:.2f}"])
    count = f"{way['lists']} lists; "
    header = ["lists", "MIRA", "MERT", "gain over no model by MIRA, 95 %", "over WE"]
    return (
        f'{grid(header, rows)}\nOf "no model": the gain over the untuned lists. '
        f"{provenance_line('chinese_lists', count)}"
    )


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("texts", help="writes the texts to train on")
    keeping = commands.add_parser("keep", help="re-ranks, and keeps the figures")
    for command in (writing, keeping):
        command.add_argument("folder", type=pathlib.Path, metavar="FOLDER", help="of the texts")
    keeping.add_argument("runs", nargs="+", type=pathlib.Path, metavar="DIR")
    arguments = parser.parse_args()
    if arguments.command == "texts":
        texts(arguments.folder)
        return
    contents = provenance()
    ways: dict[str, list[pathlib.Path]] = {name: [] for name in TRAINED_ON}
    for run in arguments.runs:
        way, _, model = run.name.removeprefix("chinese_").partition("_")
        if way not in ways or re.sub(r"_\d+$", "", model) not in MODELS:
            raise UserError(f"{run} is not named chinese_WAY_MODEL_SEED: name it as on its page.")
        ways[way].append(run)
    contents["ways"] = {way: judge(arguments.folder, way, runs) for way, runs in ways.items()}
    translation_lists.write(FILE, contents)


if __name__ == "__main__":
    program.program(main)
