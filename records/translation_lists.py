"""Re-ranks lists of translations by language models, and keeps the figures.

    python -m records.translation_lists lists/en_cs_{plain,subwords} --run runs/czech_*_captions_*

A folder has a translator's lists of each part, such as lists/en_cs_plain/test_2016_flickr.nbest, as
`zoo translate --nbest` writes them. Log-probabilities of the hypotheses and the choices are kept in
it, so that a second call only scores under new runs. The weights of the lists' own features,
of the number of words and of one run's log-probability are tuned on validation for BLEU, as `zoo
rescore tune` does. Runs whose names differ only in the number at the end are seeds of one model.
records/translation_lists.json has the figures, from which the tables of
docs/results/translations.md are made.
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import re
from collections.abc import Callable, Iterable

import numpy as np

from records.cells import FOLDER, estimate, grid, mean, provenance, provenance_line, read_json
from records.list_scores import with_scores
from zoo.base.arrays import array_files
from zoo.lab.commands import options, program
from zoo.lab.evaluation import sentence_scores, significance
from zoo.lab.evaluation.bleu_chrf_wer import Bleu, ChrF, Metric
from zoo.lab.evaluation.nbest import NBestList, read_lists
from zoo.lab.rescoring import tune
from zoo.lab.rescoring.model_features import BATCH_SIZE, Columns, Lists
from zoo.lab.table import SCORE, format_value
from zoo.sources import files

FILE = FOLDER / "translation_lists.json"
TEXTS = "multi30k/{}.lc.norm.tok.cs"
TRAINING, TUNED = "train", "val"
TESTS = ("test_2016_flickr", "test_2018_flickr")
METHODS = ("mira", "mert")
METRICS: tuple[Metric, ...] = (Bleu(), ChrF())
TRANSLATORS = {"en_cs_plain": "no attention, words", "en_cs_subwords": "attention, subwords"}
YEARS = dict(zip(TESTS, ("test 2016", "2018"), strict=True))
BASELINE = "czech_we_3_captions"
MODELS = {
    "untuned": "untuned",
    "none": "no model",
    BASELINE: "WE",
    "czech_ce_3_captions": "CE, seed 0",
    "czech_cwe_3_captions": "CWE",
    "czech_cwe_cwe_3_captions": "CWE-CWE",
    "czech_cwe_cwe_3_open_captions": "CWE-CWE, noise of any spelling, seed 0",
    "czech_we_3_captions_news": "WE, captions and news, seed 0",
}
NONE, UNTUNED = "none", "untuned"
Statistics = dict[str, np.ndarray]  # {metric: [hypotheses or lists, S]}


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """A translator's lists of one text.

    Attributes:
      lists: with the statistics of BLEU.
      statistics: of each metric, [hypotheses, S].
      texts: the hypotheses.
      unseen: whether a list's reference has a word that training never saw, bool [lists].
    """

    lists: Lists
    statistics: Statistics
    texts: list[str]
    unseen: np.ndarray

    def select(self, rows: np.ndarray) -> Statistics:
        """Returns the statistics of some hypotheses."""
        return {name: statistics[rows] for name, statistics in self.statistics.items()}


def has_new(texts: list[str], training_words: set[str]) -> np.ndarray:
    """Tells of each text whether it has a word that is not known, bool [texts]."""
    return np.array([not training_words.issuperset(text.split()) for text in texts])


def read_part(
    lists: Iterable[NBestList],
    references: str,
    training_words: set[str],
    metrics: tuple[Metric, ...] = METRICS,
) -> Part:
    """Reads the references of lists.

    Args:
      lists: numbered from 0, by the lines of their text.
      references: the file with a line for each of the text.
      training_words: all words of the text of training.
      metrics: with the tokenizers of the language.
    """
    lists = [*Columns(word_count=True).add(lists)]
    lines = files.read_text(files.find(references)).split("\n")
    lines_by_id = {nbest.id: lines[int(nbest.id)] for nbest in lists}
    references_by_id: dict[str, tuple[str, ...]] = {id: (text,) for id, text in lines_by_id.items()}
    arrays = {metric.name: tune.build_arrays(lists, references_by_id, metric) for metric in metrics}
    texts = [hypothesis.text for nbest in lists for hypothesis in nbest.hypotheses]
    return Part(
        arrays[Bleu.name],
        {name: metric_lists.statistics for name, metric_lists in arrays.items()},
        texts,
        has_new([lines_by_id[nbest.id] for nbest in lists], training_words),
    )


def cached(file: pathlib.Path, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Returns the arrays of a file, which is made first unless it exists."""
    if not file.exists():
        array_files.write(file, make())
    return {**np.load(file)}


def scores(
    run: pathlib.Path, folder: pathlib.Path, parts: dict[str, Part]
) -> dict[str, np.ndarray]:
    """Computes log p of every hypothesis under a run, {part: float64 [hypotheses]}, nats.

    New words of the lists have probabilities by their letters, or share the probability of <unk>.

    Args:
      run: of the language model.
      folder: to write the words of the lists to.
      parts: the lists.
    """
    words = {word for part in parts.values() for text in part.texts for word in text.split()}
    file = folder / "words.txt"
    file.write_text("".join(f"{word}\n" for word in sorted(words)), encoding="utf-8")
    ways = {"spread_unknown": True, "spread_letters": None, "spread_features": False}
    flags = argparse.Namespace(add_words=str(file), **ways)
    model = options.run_with_words(str(run), flags)
    log_probs = {}
    for name, part in parts.items():
        batches = (part.texts[i : i + BATCH_SIZE] for i in range(0, len(part.texts), BATCH_SIZE))
        scored = (
            sentence_scores.score(model, [text.split() for text in batch], name)
            for batch in batches
        )
        log_probs[name] = np.concatenate([batch.log_prob for batch in scored])
    return log_probs


def choose_rows(parts: dict[str, Part], columns: dict | None, method: str) -> dict[str, np.ndarray]:
    """Tunes the weights on validation; returns the rows that they choose, {part: int [lists]}."""
    lists = {
        name: part.lists if columns is None else with_scores(part.lists, columns[name])
        for name, part in parts.items()
    }
    weights = tune.tune(lists[TUNED], Bleu(), method, 0)
    return {name: part_lists.choose(weights) for name, part_lists in lists.items()}


def difference(metric: Metric, model: np.ndarray, opponent: np.ndarray) -> list[float]:
    """Returns by how much a figure is above another's, the 95 % interval, and p of the difference.

    Args:
      metric: of the figures.
      model: statistics [lists, S], the mean over the seeds of a model.
      opponent: statistics of the model to compare with.
    """
    size = model.shape[1]

    def gain(sums):
        return metric.figure(sums[..., :size]) - metric.figure(sums[..., size:])

    pair = np.hstack([model, opponent])
    p = significance.paired_test(model, opponent, metric.figure)
    return [*estimate(pair, gain), p]


def score_runs(
    folder: pathlib.Path, runs: list[pathlib.Path], parts: dict[str, Part]
) -> dict[str, dict[str, np.ndarray]]:
    """Returns {run: {part: log p of its hypotheses}}, and keeps them in a folder."""
    return {
        run.name: cached(folder / f"{run.name}.npz", functools.partial(scores, run, folder, parts))
        for run in runs
    }


def group_seeds(runs: list[str]) -> dict[str, list[str]]:
    """Groups runs by their names without the number of the seed, {model: runs}."""
    models: dict[str, list[str]] = {}
    for run in runs:
        models.setdefault(re.sub(r"_\d+$", "", run), []).append(run)
    return models


def read_parts(folder: pathlib.Path) -> dict[str, Part]:
    """Reads a translator's lists to tune on and of the tests."""
    training_words = {*files.read_text(files.find(TEXTS.format(TRAINING))).split()}
    parts = {}
    for name in (TUNED, *TESTS):
        file = folder / f"{name}.nbest"
        if file.exists():
            lists = read_lists(str(file))[1]
            parts[name] = read_part(lists, TEXTS.format(name), training_words)
    return parts


def judge(folder: pathlib.Path, parts: dict[str, Part], columns: dict, baseline: str) -> dict:
    """Returns the figures of each part of lists, re-ranked by the columns of each run.

    Args:
      folder: to keep the choices in.
      parts: the lists, with those to tune on.
      columns: {run: {part: log p of its hypotheses}}.
      baseline: the model that others are compared with.
    """
    rows = {
        method: {
            run: cached(
                folder / f"{run}.{method}.npz",
                functools.partial(choose_rows, parts, columns.get(run), method),
            )
            for run in (NONE, *columns)
        }
        for method in METHODS
    }
    by_part = {}
    for name, part in parts.items():
        fixed = {UNTUNED: part.lists.first_rows(), "oracle": tune.oracle_rows(part.lists, Bleu())}
        by_part[name] = {
            "lists": len(part.lists.ids),
            "hypotheses": len(part.texts),
            "unseen": int(part.unseen.sum()),
            **{way: figures(part.select(choice)) for way, choice in fixed.items()},
        }
        for method in METHODS:
            by_run = {run: part.select(choices[name]) for run, choices in rows[method].items()}
            by_part[name][method] = {
                "figures": {run: figures(statistics) for run, statistics in by_run.items()},
                "gains": gains({UNTUNED: part.select(fixed[UNTUNED]), **by_run}, part, baseline),
            }
    return by_part


def figures(statistics: Statistics) -> dict[str, list[float]]:
    """Returns the figure and its 95 % interval by each metric, from statistics [lists, S]."""
    return {metric.name: [*estimate(statistics[metric.name], metric.figure)] for metric in METRICS}


def gains(statistics: dict[str, Statistics], part: Part, baseline: str) -> dict:
    """Returns the gain of each model over the untuned lists, over no model and over the baseline,
    on all sentences and on those whose references have new words, or have none.

    Args:
      statistics: of each run's choices, and of the untuned lists.
      part: the lists.
      baseline: the name of a model.
    """
    groups = {"all": part.unseen | True, "unseen": part.unseen, "seen": ~part.unseen}
    models = group_seeds([*statistics])
    opponents = {NONE: [UNTUNED], baseline: [UNTUNED, NONE]}
    gains_by_pair: dict = {}
    for model, runs in models.items():
        for opponent in opponents.get(model, [UNTUNED, NONE, baseline]):
            if model != UNTUNED and opponent in models:
                gains_by_pair[f"{model} | {opponent}"] = {
                    group: {
                        metric.name: difference(
                            metric,
                            *(
                                np.mean([statistics[run][metric.name][inside] for run in seeds], 0)
                                for seeds in (runs, models[opponent])
                            ),
                        )
                        for metric in METRICS
                    }
                    for group, inside in groups.items()
                    if inside.any()
                }
    return gains_by_pair


def write(file: pathlib.Path, contents: dict):
    """Writes figures, with numbers to four places, so that the file stays small."""
    text = json.dumps(contents)
    text = re.sub(r"-?\d+\.\d{5,}(e-\d+)?", lambda match: f"{float(match[0]):.4f}", text)
    file.write_text(text + "\n", encoding="utf-8")


def _rows():
    """Yields (lists of, {model: runs}, {test: its figures}) of each translator."""
    for translator, parts in read_json(FILE.name)["translators"].items():
        tests = {test: parts[test] for test in TESTS if test in parts}
        runs = [*next(iter(tests.values()))[METHODS[0]]["figures"]]
        yield TRANSLATORS[translator], group_seeds(runs), tests


def gain_cell(numbers: list[float]) -> str:
    """Formats what `difference` returns."""
    *gain, p = numbers
    # Of 1,000 exchanges, which do not tell a third digit.
    return f"{format_value((*gain,), '+.2f')}, p {f'= {p:.2f}' if p >= 0.01 else '< 0.01'}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    return f"{grid(header, rows)}\n{provenance_line('translation_lists')}"


def table() -> str:
    """Makes the table of the re-ranked lists: BLEU of each model, and its gain over no model."""
    rows: list[list[str]] = []
    for lists, models, tests in _rows():
        fixed = {UNTUNED: [f"{lists}, untuned"], "oracle": [f"{lists}, oracle"]}
        model_rows = [[f"{lists}, {MODELS[model]}"] for model in models]
        for test in tests.values():
            fixed[UNTUNED] += [format_value((*test[UNTUNED]["BLEU"],), SCORE), "", ""]
            fixed["oracle"] += [f"{test['oracle']['BLEU'][0]:.2f}", "", ""]
            for row, (model, runs) in zip(model_rows, models.items(), strict=True):
                row += [
                    mean([test[method]["figures"][run]["BLEU"][0] for run in runs], ".2f")
                    for method in METHODS
                ]
                opponent = UNTUNED if model == NONE else NONE
                gain = test[METHODS[0]]["gains"][f"{model} | {opponent}"]
                row.append(gain_cell(gain["all"]["BLEU"]))
        rows += [fixed[UNTUNED], *model_rows, fixed["oracle"]]
    header = ["lists, re-ranked by"]
    for test in TESTS[: (len(rows[0]) - 1) // 3]:
        header += [f"{YEARS[test]}, MIRA", "MERT", "gain by MIRA, 95 %"]
    return _table(header, rows)


def new_words() -> str:
    """Makes the table of gains, also where references have words that training never saw."""
    rows, counts = [], {}
    for lists, models, tests in _rows():
        for model in models:
            opponent = {NONE: UNTUNED, BASELINE: NONE}.get(model, BASELINE)
            row = [f"{lists}, {MODELS[model]} over {MODELS[opponent]}"]
            for name, test in tests.items():
                gain = test[METHODS[0]]["gains"][f"{model} | {opponent}"]
                row += [gain_cell(gain[group]["BLEU"]) for group in ("all", "unseen", "seen")]
                row.append(gain_cell(gain["all"]["chrF2"]))
                counts[name] = test["unseen"], test["lists"] - test["unseen"]
            rows.append(row)
    header = ["lists, gain of"]
    for name, (unseen, covered) in counts.items():
        header += [f"{YEARS[name]}, BLEU", f"{unseen} with new words", f"{covered} others", "chrF2"]
    return _table(header, rows)


def new_words_by_tuner() -> str:
    """Makes the table of gains over no model by both tuners, where references have new words."""
    rows = []
    for lists, models, tests in _rows():
        for model in [model for model in models if model != NONE]:
            gains_by_tuner = (
                test[method]["gains"][f"{model} | {NONE}"]["unseen"]["BLEU"]
                for test in tests.values()
                for method in METHODS
            )
            rows.append([f"{lists}, {MODELS[model]}", *map(gain_cell, gains_by_tuner)])
    header = [f"{YEARS[test]}, {method.upper()}" for test in tests for method in METHODS]
    return _table(["lists, gain of", *header], rows)


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--run", nargs="+", type=pathlib.Path, metavar="DIR", required=True)
    arguments = parser.parse_args()
    contents = provenance()
    contents["translators"] = {}
    for folder in arguments.folders:
        parts = read_parts(folder)
        columns = score_runs(folder, arguments.run, parts)
        contents["translators"][folder.name] = judge(folder, parts, columns, BASELINE)
    write(FILE, contents)


if __name__ == "__main__":
    program.program(main)
