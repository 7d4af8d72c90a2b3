"""Tables of eleven treebanks, from the sums that `records.treebank_figures` keeps."""

import collections
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from records.cells import grid, mean, p_cell, provenance_line, read_json
from records.treebank_figures import RECORD, SUMS, WAYS
from zoo.base.arrays import array_files
from zoo.lab.comparison import paired
from zoo.lab.comparison.paired import Difference, GroupLosses, format_p
from zoo.lab.evaluation import item_scores, significance
from zoo.lab.table import format_value

SIDES = {
    "softmax": "tied softmax",
    "class": "rare words as a class",
    "no_tags": "control",
    "tags": "log-linear, guesser",
    "forms": "log-linear, forms",
}
TRAINED, KNOWN, EVEN, LETTERS, FEATURES = "as trained", "known", "even", *WAYS
PROPERTIES: dict[str, Callable[[dict[str, Any]], float]] = {
    "sentences of training": lambda figures: figures["sentences"],
    "types a token": lambda figures: figures["types"] / figures["tokens"],
    "values of tags": lambda figures: figures["values"],
}
# Kinds of features in the table of contributions; all others are one column.
KINDS = 8
# Fewer pairs of agreement tell nothing.
LEAST_PAIRS = 40


def read_treebanks() -> dict[str, dict[str, Any]]:
    """Returns {treebank: its figures}, fewest sentences of training first."""
    treebanks = read_json(RECORD.name)["treebanks"]
    return dict(sorted(treebanks.items(), key=lambda item: item[1]["sentences"]))


@functools.cache
def _read_sums():
    return array_files.read_arrays(SUMS, lambda name: True)


def language(treebank: str) -> str:
    """Returns the name of a treebank's language."""
    return treebank.partition("_")[0].title()


@functools.cache
def losses(treebank: str, side: str, measure: str) -> GroupLosses:
    """Returns the losses of a model's three runs, nats a token.

    Args:
      treebank: its name.
      side: one of `SIDES`.
      measure: "as trained", with <unk> as one word; "known", of the other words alone; of all words
        of the test where new ones share the probability of <unk> by "even" parts, "letters-5" or
        "features"; or, of a way behind "new ", of new words alone.
    """
    sums = _read_sums()
    runs = sums[f"{treebank}/{side}"].astype(np.float64)
    tokens, unknown = sums[f"{treebank}/tokens"].astype(np.float64)
    way = measure.removeprefix("new ")
    known, new = runs[:, 0] - runs[:, 1], runs[:, 1]
    if way == EVEN:
        new = new + unknown * math.log(read_treebanks()[treebank]["new_words"])
    elif way in WAYS:
        new = runs[:, 2 + WAYS.index(way)]
    parts = {KNOWN: (known, tokens - unknown), f"new {way}": (new, unknown)}
    nats, counts = parts.get(measure, (known + new, tokens))
    groups = [np.stack([run, counts], 1)[counts > 0] for run in nats]
    figures = tuple(float(item_scores.log_perplexity(group.sum(0))) for group in groups)
    return GroupLosses.from_statistics(side, figures, groups)


@functools.cache
def gain(treebank: str, side: str, opponent: str, measure: str, other: str = "") -> Difference:
    """Compares two models, the loss of the opponent less the loss of the side.

    Args:
      treebank: its name.
      side: one of `SIDES`.
      opponent: another.
      measure: of both, see `losses`.
      other: measure of the opponent if it is another one.
    """
    pair = losses(treebank, side, measure), losses(treebank, opponent, other or measure)
    difference = paired.compare_losses(*pair)
    assert difference is not None
    # Seeds differ by more than two ways of the same runs, which share them.
    return difference._replace(p_of_seeds=math.nan) if side == opponent else difference


def _cell(difference: Difference) -> str:
    """Formats a gain with its interval; a star where sentences or seeds do not tell it from 0."""
    text = format_value((difference.nats, *difference.interval), ".3f")
    return f"{text}{'*' if difference.verdict else ''}"


def _table(header: Sequence[str], cells: Callable[[str, dict], list[str]], mark: str = "") -> str:
    treebanks = read_treebanks()
    rows = [[language(name), *cells(name, figures)] for name, figures in treebanks.items()]
    return f"{grid(['treebank', *header], rows)}\n{mark}{_origin()}"


def _origin():
    return provenance_line("treebanks", f"{len(read_treebanks())} treebanks; ")


MARK = "A star: sentences or seeds do not tell it from 0 (p of 0.05 or more). "


def models() -> str:
    """Makes the table of log-perplexities as trained, three seeds of each model."""
    return _table(
        [*PROPERTIES, *SIDES.values()],
        lambda name, figures: [
            *(format(value(figures), ",.4g") for value in PROPERTIES.values()),
            *(mean(losses(name, side, TRAINED).losses, ".3f") for side in SIDES),
        ],
        "In brackets the least and the greatest of three seeds. ",
    )


# {table: {title of a column: model, opponent, measure of both or of each}}
GAINS = {
    "treebank_gains": {
        "guesser below tied softmax": ("tags", "softmax", TRAINED),
        "guesser below control": ("tags", "no_tags", TRAINED),
        "guesser below rare words as a class": ("tags", "class", TRAINED),
        "forms below guesser": ("forms", "tags", TRAINED),
    },
    "treebank_measures": {
        "guesser, as trained": ("tags", "softmax", TRAINED),
        "guesser, known words": ("tags", "softmax", KNOWN),
        "guesser, all words, features": ("tags", "softmax", FEATURES, EVEN),
        "forms, known words": ("forms", "softmax", KNOWN),
        "forms, all words, features": ("forms", "softmax", FEATURES, EVEN),
    },
}


def gains(table: str) -> str:
    """Makes a table of gains.

    Args:
      table: one of `GAINS`.
    """
    columns = GAINS[table]
    return _table(
        [*columns], lambda name, _: [_cell(gain(name, *pair)) for pair in columns.values()], MARK
    )


def new_words() -> str:
    """Makes the table of ways in which new words share the probability of <unk>."""
    columns = {
        "letters, tied softmax": ("softmax", LETTERS),
        "letters, guesser": ("tags", LETTERS),
        "features, guesser": ("tags", FEATURES),
        "features, forms": ("forms", FEATURES),
    }

    def cells(name, figures):
        tokens, unknown = _read_sums()[f"{name}/tokens"].sum(1)
        differences = (
            gain(name, side, side, f"new {way}", f"new {EVEN}") for side, way in columns.values()
        )
        even = math.log(figures["new_words"])
        return [f"{100 * unknown / tokens:.0f} %", f"{even:.2f}", *map(_cell, differences)]

    mark = "A star: sentences do not tell it from 0; seeds are not tested. "
    return _table(["tokens that are <unk>", "even, nats a new word", *columns], cells, mark)


def agreement() -> str:
    """Makes the table of agreement, of the treebanks with at least `LEAST_PAIRS` pairs."""
    rows = []
    for name, figures in read_treebanks().items():
        if figures["pairs"] < LEAST_PAIRS:
            continue
        shares = {side: [100 * share for share in figures["accuracies"][side]] for side in SIDES}
        p = significance.seeds_test(shares["tags"], shares["softmax"])
        cells = [mean(shares[side], ".1f") for side in SIDES]
        rows.append([language(name), f"{figures['pairs']:,}", *cells, p_cell(p)])
    header = ["treebank", "pairs", *SIDES.values(), "p by seeds, guesser and tied softmax"]
    return f"{grid(header, rows)}\nRight, percent. {_origin()}"


def contributions() -> str:
    """Makes the table of the kinds of features that raise known words over the background."""
    sums: collections.Counter = collections.Counter()
    for figures in read_treebanks().values():
        sums.update(figures["contributions"])
    first = [kind for kind, _ in sums.most_common(KINDS)]

    def cells(_, figures):
        nats = dict(figures["contributions"])
        shown = [f"{nats.pop(kind):.2f}" if kind in nats else "" for kind in first]
        return [*shown, f"{sum(nats.values()):.2f}"]

    return _table([*first, "all others"], cells)


def correlations() -> str:
    """Makes the table of Spearman's rank correlations of gains and properties."""
    from scipy import stats

    opponents_by_title = {
        "below tied softmax, as trained": ("softmax", TRAINED),
        "below tied softmax, known words": ("softmax", KNOWN),
        "below control, as trained": ("no_tags", TRAINED),
        "below control, known words": ("no_tags", KNOWN),
    }
    treebanks, rows = read_treebanks(), []
    for title, (opponent, measure) in opponents_by_title.items():
        nats = [gain(name, "tags", opponent, measure).nats for name in treebanks]
        row = [f"guesser {title}"]
        for value in PROPERTIES.values():
            test = stats.spearmanr(nats, [*map(value, treebanks.values())])
            row.append(f"{test.statistic:.2f}, {format_p(test.pvalue)}")
        rows.append(row)
    return f"{grid(['gain', *PROPERTIES], rows)}\n{_origin()}"


TABLES = {
    "treebanks": models,
    **{table: functools.partial(gains, table) for table in GAINS},
    "treebank_new_words": new_words,
    "treebank_agreement": agreement,
    "treebank_contributions": contributions,
    "treebank_correlations": correlations,
}
