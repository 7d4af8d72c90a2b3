"""Tables of the French treebank: both models, their settings, parts, inputs and agreement."""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from records import rows as rows_of
from records.cells import (
    by_model,
    case,
    identity,
    interval,
    join_runs,
    loss,
    losses,
    markdown,
    mean,
    nats,
    parameters,
    passports,
    share,
)

AGREEMENT = "pairs:agreement-test"


def band(name: str) -> Callable[[Any], Any]:
    """Returns what takes the figures of a band of frequency from all figures of a test."""
    return lambda figures: next(band for band in figures.bands if band.band == name)


def models() -> str:
    """Makes the table of the tuned French models over the words of the training text."""
    columns = [
        ("validation", nats("validation")),
        ("test", nats("test")),
        ("words of the lexicon", nats("test", part=attrgetter("seen"))),
        ("`<unk>`", nats("test", part=band("unknown"))),
        ("test, `<unk>` spread over new words", lambda runs: mean([*map(_spread, runs)], ".4f")),
        ("95 % of seed 0, by sentences", interval("test")),
        ("parameters", parameters("test")),
    ]
    return by_model("model", rows_of.models("french"), columns)


def _spread(run):
    """Computes the nats per token of a run's test if <unk> is spread over the test's new words.

    <unk> and the K new words share its probability evenly: each unknown token costs log(K + 1) more
    (see docs/passports.md).
    """
    test = passports(run)["test"]
    unknown, types = test.out_of_vocabulary, test.out_of_vocabulary_types
    return test.figures.log_perplexity + unknown / test.tokens * math.log(types + 1)


def by_bands(models: Mapping[str, tuple[str, ...]]) -> str:
    """Makes a table of a test's words by how often training saw them, the seeds of each together.

    Each of the models is compared with the last. Figures with the one weight of
    `zoo.lab.evaluation.mixtures` are shown where runs have them.

    Args:
      models: {the name of the column: runs}.
    """
    first = passports(next(iter(models.values()))[0])["test"].figures
    parts = {"all words": identity}
    for name in (figures.band for figures in first.bands):
        label = {"unknown": "`<unk>`", "unseen": "never in training"}.get(name)
        parts[label or f"{name} times in training"] = band(name)
    if first.mixture:
        parts["all words, one weight for those never in training"] = attrgetter("mixture")
    rows = []
    total = sum(figures.tokens for figures in first.bands)
    for label, part in parts.items():
        *means, last = (statistics.fmean(losses(runs, "test", part)) for runs in models.values())
        cells = map(nats("test", ".3f", part=part), models.values())
        gaps = (f"{mean - last:.3f}" for mean in means)
        rows.append([label, f"{getattr(part(first), 'tokens', total):,}", *cells, *gaps])
    *names, last = models
    header = ["words of the test", "tokens", *models, *(f"{name} − {last}" for name in names)]
    return markdown(header, rows, join_runs(models))


def tuning(table: str, header: list[str]) -> str:
    """Makes a table of settings: validation of each run.

    Args:
      table: its name in rows.tsv, where "; " stands between the columns before the runs.
      header: of the columns.
    """
    rows, runs = [], []
    for setting, setting_runs in rows_of.models(table).items():
        cells = (f"{loss(run, 'validation'):.4f}" if run else "" for run in setting_runs)
        rows.append([*setting.split("; "), *cells])
        runs += filter(None, setting_runs)
    return markdown(header, rows, runs, "validation")


def parts() -> str:
    """Makes the table of parts of the text: nats per token of the test, without and with the one
    weight of `zoo.lab.evaluation.mixtures`, and how far each model is above the log-linear one."""
    rows, all_runs = [], []
    for sentences, text in rows_of.FRENCH_PARTS.items():
        models = (
            rows_of.models("french_closed")
            if text == "closed"
            else {
                model: rows_of.seeds(f"{text}_{name}")
                for model, name in rows_of.FRENCH_CLOSED_MODELS.items()
            }
        )
        last = [*models.values()][-1]
        for model, seeds in models.items():
            row = [sentences, model]
            for part in (identity, attrgetter("mixture")):
                mean_loss, last_loss = (
                    statistics.fmean(losses(runs, "test", part)) for runs in (seeds, last)
                )
                row.append(nats("test", ".3f", part=part)(seeds))
                row.append("" if seeds is last else f"{mean_loss - last_loss:.3f}")
            rows.append(row)
        all_runs += join_runs(models)
    header = ["training sentences", "model", "test", "above log-linear", "with one weight"]
    return markdown([*header, "above log-linear"], rows, all_runs)


def inputs() -> str:
    """Makes the table of inputs by heads: nats per token of the test, and agreement."""
    rows, runs = [], []
    for text, (sentences, count) in rows_of.FRENCH_TEXTS.items():
        for inputs, head in itertools.product(("words", "features"), ("softmax", "log_linear")):
            seeds = rows_of.seeds(f"fr{text}_{inputs}_{head}", count)
            agreement = (
                share(AGREEMENT, part=case(name))(seeds) for name in ("number, all", "gender, all")
            )
            row = [sentences, inputs, head.replace("_", "-"), nats("test")(seeds)]
            rows.append([*row, *agreement])
            runs += seeds
    header = ["training sentences", "inputs", "head", "test", "number agreement"]
    return markdown([*header, "gender agreement"], rows, runs)


def agreement() -> str:
    """Makes the table of agreement pairs of the French test, the seeds of each model together."""
    rows = []
    first = passports(rows_of.models("french")["softmax"][0])[AGREEMENT].figures.cases
    for name in first:
        row = [name]
        for runs in rows_of.models("french").values():
            low, high = passports(runs[0])[AGREEMENT].figures.cases[name].interval
            row.append(share(AGREEMENT, part=case(name))(runs))
            row.append(f"{100 * low:.0f}–{100 * high:.0f} %")
        rows.append([*row, f"{first[name].pairs:,}"])
    header = ["agreement, distance", "softmax", "95 % of seed 0", "log-linear", "95 % of seed 0"]
    return markdown([*header, "pairs"], rows, join_runs(rows_of.models("french")))
