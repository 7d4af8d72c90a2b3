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
import array
import dataclasses
import functools
import json
import pathlib
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from records.cells import FOLDER, grid, mean, provenance, provenance_line
from records.list_scores import with_scores
from zoo.base.arrays import array_files
from zoo.cores import NGram
from zoo.lab.commands import options, program
from zoo.lab.evaluation import sentence_scores, significance
from zoo.lab.evaluation.nbest import NBestList, read_lists
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring import tune
from zoo.lab.rescoring.bleu_chrf_wer import Bleu, ChrF, Metric
from zoo.lab.rescoring.model_features import Columns, Lists
from zoo.sources import files

FILE = FOLDER / "translation_lists.json"
TEXTS = "multi30k/{}.lc.norm.tok.cs"
TRAINING, TUNED = "train", "val"
TESTS = ("test_2016_flickr", "test_2018_flickr")
METHODS = ("mira", "mert")
FEW = 50  # hypotheses of a list that are also judged without the others
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
      new: the share of words that training never saw in the references, the first and all
        hypotheses.
    """

    lists: Lists
    statistics: Statistics
    texts: list[str]
    unseen: np.ndarray
    new: list[float]

    def first(self, most: int) -> tuple["Part", np.ndarray]:
        """Returns the lists with at most so many hypotheses, and the rows that these have here."""
        lists = self.lists
        places = np.arange(len(self.texts)) - lists.starts[lists.owners]
        rows = np.flatnonzero(places < most)
        starts = np.concatenate([[0], np.cumsum(np.minimum(lists.sizes, most))])
        statistics = self.of_rows(rows)
        shorter = dataclasses.replace(
            lists,
            starts=starts,
            features=lists.features[rows],
            statistics=statistics[Bleu.name],
            first=None if lists.first is None else lists.first[rows],
        )
        texts = [self.texts[row] for row in rows]
        return dataclasses.replace(self, lists=shorter, statistics=statistics, texts=texts), rows

    def of_rows(self, rows: np.ndarray) -> Statistics:
        """Returns the statistics of some hypotheses."""
        return {name: statistics[rows] for name, statistics in self.statistics.items()}


def has_new(texts: list[str], known: set[str]) -> np.ndarray:
    """Tells of each text whether it has a word that is not known, bool [texts]."""
    return np.array([not known.issuperset(text.split()) for text in texts])


def new_share(texts: list[str], known: set[str]) -> float:
    """Computes the share of unknown words among the words of texts, leaving out <unk>."""
    words = [word for text in texts for word in text.split() if word != "<unk>"]
    return sum(word not in known for word in words) / len(words)


def part_of(
    lists: Iterable[NBestList],
    references: str,
    known: set[str],
    metrics: tuple[Metric, ...] = METRICS,
) -> Part:
    """Reads the references of lists.

    Args:
      lists: numbered from 0, by the lines of their text.
      references: the file with a line for each of the text.
      known: the words of training.
      metrics: with the tokenizers of the language.
    """
    lists = [*Columns(word_count=True).add(lists)]
    lines = files.read_text(files.find(references)).split("\n")
    wanted = {one.id: lines[int(one.id)] for one in lists}
    right: dict[str, tuple[str, ...]] = {id: (text,) for id, text in wanted.items()}
    arrays = {metric.name: tune.arrays(lists, right, metric) for metric in metrics}
    texts = [hypothesis.text for one in lists for hypothesis in one.hypotheses]
    first = [one.hypotheses[0].text for one in lists]
    of_lists = [wanted[one.id] for one in lists]
    return Part(
        arrays[Bleu.name],
        {name: one.statistics for name, one in arrays.items()},
        texts,
        has_new(of_lists, known),
        [new_share(some, known) for some in (of_lists, first, texts)],
    )


def kept(file: pathlib.Path, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Returns the arrays of a file, which is made first unless it exists."""
    if not file.exists():
        array_files.write(file, make())
    return {**np.load(file)}


class Grams(NamedTuple):
    """The words of sentences after the words that they depend on, each n-gram once."""

    distinct: list[tuple[str, ...]]  # the last is the word, or "" for the end of the sentence
    numbers: np.ndarray  # int64 [tokens], of each word and end of the sentences
    starts: np.ndarray  # int64 [sentences], the first token of each


def grams(texts: list[str], history: int | None) -> Grams:
    """Finds the n-grams of sentences.

    Args:
      texts: the sentences, words between blanks.
      history: the number of words before that a word depends on; None for all.
    """
    found: dict[tuple[str, ...], int] = {}
    numbers, starts = array.array("q"), array.array("q")
    for text in texts:
        words = (*text.split(), "")
        starts.append(len(numbers))
        for end in range(1, len(words) + 1):
            first = 0 if history is None else max(0, end - 1 - history)
            numbers.append(found.setdefault(words[first:end], len(found)))
    return Grams([*found], np.array(numbers), np.array(starts))


def scores(
    run: pathlib.Path,
    folder: pathlib.Path,
    parts: dict[str, Part],
    of_history: Callable[[int | None], Grams],
) -> dict[str, np.ndarray]:
    """Computes log p of every hypothesis under a run, {part: float64 [hypotheses]}, nats.

    New words of the lists have probabilities by their letters, or share the probability of <unk>.

    Args:
      run: of the language model.
      folder: to write the words of the lists to.
      parts: the lists.
      of_history: the n-grams of their hypotheses, by the number of words before.
    """
    core = Run.load(run).experiment.language_model.core
    found = of_history(core.order - 1 if isinstance(core, NGram) else None)
    words = folder / "words.txt"
    every = sorted({gram[-1] for gram in found.distinct} - {""})
    words.write_text("".join(f"{word}\n" for word in every), encoding="utf-8")
    added = argparse.Namespace(add_words=str(words), spread_unknown=True, spread_letters=None)
    model = options.run_with_words(str(run), added)
    ends = np.array([not gram[-1] for gram in found.distinct])
    before = [gram[:-1] for gram in found.distinct]
    log_prob = np.empty(len(ends))
    inside = [[gram[-1]] for gram, end in zip(found.distinct, ends, strict=True) if not end]
    after = [one for one, end in zip(before, ends, strict=True) if not end]
    log_prob[~ends] = sentence_scores.score(model, inside, "words", after).word_log_prob
    whole = [one for one, end in zip(before, ends, strict=True) if end]
    log_prob[ends] = sentence_scores.score(model, whole, "ends").boundary_log_prob
    sums = np.add.reduceat(log_prob[found.numbers], found.starts)
    places = np.cumsum([len(part.texts) for part in parts.values()])[:-1]
    return dict(zip(parts, np.split(sums, places), strict=True))


def chosen(parts: dict[str, Part], columns: dict | None, method: str) -> dict[str, np.ndarray]:
    """Tunes the weights on validation; returns the rows that they choose, {part: int [lists]}."""
    lists = {
        name: part.lists if columns is None else with_scores(part.lists, columns[name])
        for name, part in parts.items()
    }
    weights = tune.tune(lists[TUNED], Bleu(), method, 0)
    return {name: one.chosen(weights) for name, one in lists.items()}


def difference(metric: Metric, one: np.ndarray, other: np.ndarray) -> list[float]:
    """Returns by how much a figure is above another's, the 95 % interval, and p of the difference.

    Args:
      metric: of the figures.
      one: statistics [lists, S], the mean over the seeds of a model.
      other: statistics of the model to compare with.
    """
    size = one.shape[1]

    def gain(sums):
        return metric.figure(sums[..., :size]) - metric.figure(sums[..., size:])

    both = np.hstack([one, other])
    p = significance.paired_test(one, other, metric.figure)
    return [float(gain(both.sum(0))), *significance.bootstrap_interval(both, gain), p]


def columns_of(
    folder: pathlib.Path, runs: list[pathlib.Path], parts: dict[str, Part]
) -> dict[str, dict[str, np.ndarray]]:
    """Returns {run: {part: log p of its hypotheses}}, and keeps them in a folder."""
    texts = [text for part in parts.values() for text in part.texts]
    of_history = functools.cache(functools.partial(grams, texts))
    return {
        run.name: kept(
            folder / f"{run.name}.npz",
            functools.partial(scores, run, folder, parts, of_history),
        )
        for run in runs
    }


def models_of(runs: list[str]) -> dict[str, list[str]]:
    """Groups runs by their names without the number of the seed, {model: runs}."""
    models: dict[str, list[str]] = {}
    for run in runs:
        models.setdefault(re.sub(r"_\d+$", "", run), []).append(run)
    return models


def of_translator(folder: pathlib.Path, runs: list[pathlib.Path]) -> dict[str, dict]:
    """Returns all figures of a translator's lists, and of the first `FEW` of each, re-ranked by
    each run."""
    known = {*files.read_text(files.find(TEXTS.format(TRAINING))).split()}
    parts = {
        name: part_of(read_lists(f"{folder}/{name}.nbest")[1], TEXTS.format(name), known)
        for name in (TUNED, *TESTS)
        if (folder / f"{name}.nbest").exists()
    }
    columns = columns_of(folder, runs, parts)
    few = {name: part.first(FEW) for name, part in parts.items()}
    (folder / "few").mkdir(exist_ok=True)
    return {
        "all": judged(folder, parts, columns, BASELINE),
        "few": judged(
            folder / "few",
            {name: part for name, (part, _) in few.items()},
            {
                run: {name: column[few[name][1]] for name, column in of_run.items()}
                for run, of_run in columns.items()
            },
            BASELINE,
        ),
    }


def judged(folder: pathlib.Path, parts: dict[str, Part], columns: dict, baseline: str) -> dict:
    """Returns the figures of each part of lists, re-ranked by the columns of each run.

    Args:
      folder: to keep the choices in.
      parts: the lists, with those to tune on.
      columns: {run: {part: log p of its hypotheses}}.
      baseline: the model that others are compared with.
    """
    rows = {
        method: {
            run: kept(
                folder / f"{run}.{method}.npz",
                functools.partial(chosen, parts, columns.get(run), method),
            )
            for run in (NONE, *columns)
        }
        for method in METHODS
    }
    found = {}
    for name, part in parts.items():
        fixed = {UNTUNED: part.lists.untuned(), "oracle": tune.choose(part.lists, Bleu())}
        found[name] = {
            "lists": len(part.lists.ids),
            "hypotheses": len(part.texts),
            "unseen": int(part.unseen.sum()),
            "new": part.new,
            **{how: figures(part.of_rows(some)) for how, some in fixed.items()},
        }
        for method in METHODS:
            of = {run: part.of_rows(some[name]) for run, some in rows[method].items()}
            found[name][method] = {
                "figures": {run: figures(statistics) for run, statistics in of.items()},
                "gains": gains({UNTUNED: part.of_rows(fixed[UNTUNED]), **of}, part, baseline),
            }
    return found


def figures(statistics: Statistics) -> dict[str, list[float]]:
    """Returns the figure and its 95 % interval by each metric, from statistics [lists, S]."""
    return {
        metric.name: [
            float(metric.figure(statistics[metric.name].sum(0))),
            *significance.bootstrap_interval(statistics[metric.name], metric.figure),
        ]
        for metric in METRICS
    }


def gains(statistics: dict[str, Statistics], part: Part, baseline: str) -> dict:
    """Returns the gain of each model over the untuned lists, over no model and over the baseline,
    on all sentences and on those whose references have new words, or have none.

    Args:
      statistics: of each run's choices, and of the untuned lists.
      part: the lists.
      baseline: the name of a model.
    """
    groups = {"all": part.unseen | True, "unseen": part.unseen, "seen": ~part.unseen}
    models = models_of([*statistics])
    others = {NONE: [UNTUNED], baseline: [UNTUNED, NONE]}
    found: dict = {}
    for model, runs in models.items():
        for other in others.get(model, [UNTUNED, NONE, baseline]):
            if model != UNTUNED and other in models:
                found[f"{model} | {other}"] = {
                    group: {
                        metric.name: difference(
                            metric,
                            *(
                                np.mean([statistics[run][metric.name][inside] for run in some], 0)
                                for some in (runs, models[other])
                            ),
                        )
                        for metric in METRICS
                    }
                    for group, inside in groups.items()
                    if inside.any()
                }
    return found


def write(file: pathlib.Path, found: dict):
    """Writes figures, with numbers to four places, so that the file stays small."""
    text = json.dumps(found)
    text = re.sub(r"-?\d+\.\d{5,}(e-\d+)?", lambda one: f"{float(one[0]):.4f}", text)
    file.write_text(text + "\n", encoding="utf-8")


def _rows(found: dict, which="all"):
    """Yields (lists of, {model: runs}, {test: its figures}) of each translator."""
    for translator, of_lists in found["translators"].items():
        parts = of_lists[which]
        tests = {test: parts[test] for test in TESTS if test in parts}
        runs = [*next(iter(tests.values()))[METHODS[0]]["figures"]]
        yield TRANSLATORS[translator], models_of(runs), tests


def gain_cell(numbers: list[float]) -> str:
    """Formats what `difference` returns."""
    gain, low, high, p = numbers
    return f"{gain:+.2f} [{low:+.2f}, {high:+.2f}], p = {p:.3f}"


def _table(header: list[str], rows: list[list[str]], found: dict) -> str:
    return (
        f"{grid(header, rows)}\nFrom records/{FILE.name}, by python -m records.translation_lists: "
        f"{provenance_line(found)}"
    )


def table() -> str:
    """Makes the table of the re-ranked lists: BLEU of each model, and its gain over no model."""
    found, rows = json.loads(FILE.read_text()), []
    for lists, models, tests in _rows(found):
        cells = [
            f"{test['untuned']['BLEU'][0]:.2f}{significance.bounds(*test['untuned']['BLEU'][1:])}"
            for test in tests.values()
        ]
        rows.append([f"{lists}, untuned", *(x for cell in cells for x in (cell, "", ""))])
        for model, runs in models.items():
            row = [f"{lists}, {MODELS[model]}"]
            for test in tests.values():
                row += [
                    mean([test[method]["figures"][run]["BLEU"][0] for run in runs], ".2f")
                    for method in METHODS
                ]
                other = UNTUNED if model == NONE else NONE
                gain = test[METHODS[0]]["gains"][f"{model} | {other}"]
                row.append(gain_cell(gain["all"]["BLEU"]))
            rows.append(row)
        best = [f"{test['oracle']['BLEU'][0]:.2f}" for test in tests.values()]
        rows.append([f"{lists}, oracle", *(x for cell in best for x in (cell, "", ""))])
    header = ["lists, re-ranked by"]
    for test in TESTS[: (len(rows[0]) - 1) // 3]:
        header += [f"{YEARS[test]}, MIRA", "MERT", "gain by MIRA, 95 %"]
    return _table(header, rows, found)


def new_words() -> str:
    """Makes the table of gains, also where references have words that training never saw."""
    found, rows = json.loads(FILE.read_text()), []
    counts = {}
    for lists, models, tests in _rows(found):
        for model in models:
            other = {NONE: UNTUNED, BASELINE: NONE}.get(model, BASELINE)
            row = [f"{lists}, {MODELS[model]} over {MODELS[other]}"]
            for name, test in tests.items():
                gain = test[METHODS[0]]["gains"][f"{model} | {other}"]
                row += [gain_cell(gain[group]["BLEU"]) for group in ("all", "unseen", "seen")]
                row.append(gain_cell(gain["all"]["chrF2"]))
                counts[name] = test["unseen"], test["lists"] - test["unseen"]
            rows.append(row)
    header = ["lists, gain of"]
    for name, (unseen, seen) in counts.items():
        header += [f"{YEARS[name]}, BLEU", f"{unseen} with new words", f"{seen} others", "chrF2"]
    return _table(header, rows, found)


def sizes() -> str:
    """Makes the table of the oracles of longer lists, and of the gains in them by MIRA."""
    found, rows = json.loads(FILE.read_text()), []
    compared = {NONE: UNTUNED, BASELINE: NONE, "czech_cwe_cwe_3_captions": BASELINE}
    for which in ("few", "all"):
        for lists, _, tests in _rows(found, which):
            row = [lists]
            for test in tests.values():
                row.append(f"{test['hypotheses'] / test['lists']:.0f}")
                row.append(f"{test['oracle']['BLEU'][0]:.2f}")
                for model, other in compared.items():
                    gain = test[METHODS[0]]["gains"][f"{model} | {other}"]["all"]["BLEU"]
                    row.append(gain_cell(gain))
            rows.append(row)
    header = ["lists"]
    for test in tests:
        header += [f"{YEARS[test]}, hypotheses a list", "oracle"]
        header += [f"{MODELS[model]} over {MODELS[other]}" for model, other in compared.items()]
    return _table(header, rows, found)


def shares() -> str:
    """Makes the table of words that training never saw, as the paper's table 4."""
    found, rows = json.loads(FILE.read_text()), []
    for lists, _, tests in _rows(found):
        for name, test in tests.items():
            words = [f"{100 * share:.2f}" for share in test["new"]]
            best = [f"{test[how]['chrF2'][0]:.2f}" for how in (UNTUNED, "oracle")]
            count = f"{test['hypotheses'] / test['lists']:.1f}"
            rows.append([f"{lists}, {YEARS[name]}", count, *words, *best])
    header = ["lists", "hypotheses a list", "new words of the references, %", "of the first"]
    return _table([*header, "of all", "chrF2 untuned", "chrF2 of the oracle"], rows, found)


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--run", nargs="+", type=pathlib.Path, metavar="DIR", required=True)
    arguments = parser.parse_args()
    found = provenance()
    found["translators"] = {
        folder.name: of_translator(folder, arguments.run) for folder in arguments.folders
    }
    write(FILE, found)


if __name__ == "__main__":
    program.program(main)
