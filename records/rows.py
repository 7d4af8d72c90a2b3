"""Rows of the tables of docs/results/, of rows.tsv and from here: {name of a row: its records}."""

import csv
import functools
import pathlib


def read_table(name: str) -> list[dict[str, str]]:
    """Reads the rows of records/NAME, tab-separated values."""
    with pathlib.Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def expand_runs(text: str) -> tuple[str, ...]:
    """Reads names of runs, of which NAME_0-2 is three seeds and "-" stands for no run, ""."""
    runs: list[str] = []
    for word in text.split():
        name, _, numbers = word.rpartition("_")
        first, between, last = numbers.partition("-")
        if name and between:
            runs += (f"{name}_{seed}" for seed in range(int(first), int(last) + 1))
        else:
            runs.append(word.strip("-"))
    return tuple(runs)


@functools.cache
def models(table: str) -> dict[str, tuple[str, ...]]:
    """Returns {row: runs} of a table of rows.tsv."""
    rows = read_table("rows.tsv")
    return {row["row"]: expand_runs(row["runs"]) for row in rows if row["table"] == table}


def seeds(name: str, count: int = 3) -> tuple[str, ...]:
    """Returns the names of the records of a run's seeds.

    Args:
      name: of the run.
      count: of seeds.
    """
    return tuple(f"{name}_{seed}" for seed in range(count))


# French over the words of the tests, too: {model: the end of its runs' names}.
FRENCH_CLOSED_MODELS = {"softmax": "bg", "rare words as a class": "class", "log-linear": "ll"}
# {part of the text: (training sentences, seeds)}
FRENCH_TEXTS = {"16": ("864", 3), "1": ("13,826", 3)}
# Over the words of all of the text and the tests, trained on parts of it: {sentences: part}.
FRENCH_PARTS = {"864": "closed16", "3,456": "closed4", "13,826": "closed"}
PTB_AWD = seeds("ptb_awd_small")
# The same, and learning from the text that they are judged on.
PTB_LEARNING = {
    "`ptb_awd_small`": PTB_AWD,
    "with a cache of 2,000 words": tuple(f"{run} + cache" for run in PTB_AWD),
    "with dynamic evaluation": tuple(f"{run} + dynamic" for run in PTB_AWD),
}
# {head: its results in records/ptb_strong}, on the core of ptb_awd_small.
PTB_STRONG = {head: file for head, (file,) in models("ptb_strong").items()}
# Heads that are also compared with a softmax that is not tied.
AGAINST_UNTIED = ("log_linear", "adaptive", "cnn")
# {captions of training: (runs over a background of news, runs from scratch)}; 0 for no training.
ADAPTATION: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "0": (("adapt_0",), ()),
    **{
        f"{int(captions):,}": (seeds(f"adapt_{captions}"), seeds(f"scratch_{captions}"))
        for captions in ("50", "500", "5000")
    },
}
# Forms that answer questions, of a grammar; {config: runs}.
FORMS = models("forms")
# Further seeds of some of these.
FORMS_FURTHER = models("forms_further")
# Encoder-decoders of captions, whose sources are read from the first word or from the last.
STRAIGHT, REVERSED = seeds("en_fr_straight"), seeds("en_fr_reversed", 5)
# {models of a row: those together that translate, several of them for seeds}
CAPTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "one, straight": tuple((run,) for run in STRAIGHT),
    "one, reversed": tuple((run,) for run in REVERSED[:3]),
    "two, reversed": (REVERSED[:2],),
    "five, reversed": (REVERSED,),
}
# Lists that are re-scored: {their system: {scored by: runs together}}; by none, its own weights.
LISTS: dict[str, dict[str, tuple[str, ...]]] = {
    "attention": {
        "itself": (),
        "straight_0": STRAIGHT[:1],
        **{run.removeprefix("en_fr_"): (run,) for run in REVERSED[:3]},
        "five": REVERSED,
    },
    "reversed_0": {"itself": (), "five": REVERSED},
}
