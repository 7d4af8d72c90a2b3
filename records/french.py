"""Tables of the French treebank: both models, their settings, parts, inputs and agreement."""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping

from records import rows as rows_of
from records.cells import every_run, loss, markdown, mean, passports


def models() -> str:
    """Makes the table of the tuned French models over the words of the training text."""
    rows = []
    for model, runs in rows_of.FRENCH.items():
        found = [passports(run) for run in runs]
        tests = [of_run["test"]["figures"] for of_run in found]
        unknown = [
            next(band["log_perplexity"] for band in figures["bands"] if band["band"] == "unknown")
            for figures in tests
        ]
        losses = (
            [loss(run, "validation") for run in runs],
            [figures["log_perplexity"] for figures in tests],
            [figures["seen"]["log_perplexity"] for figures in tests],
            unknown,
            [_spread(run) for run in runs],
        )
        low, high = tests[0]["interval"]
        parameters = f"{found[0]['test']['parameters']:,}"
        columns = (mean(of_runs, ".4f") for of_runs in losses)
        rows.append([model, *columns, f"{low:.3f}–{high:.3f}", parameters])
    header = ["model", "validation", "test", "words of the lexicon", "`<unk>`"]
    header += ["test, `<unk>` spread over new words", "95 % of seed 0, by sentences"]
    runs = [run for of_model in rows_of.FRENCH.values() for run in of_model]
    return markdown([*header, "parameters"], rows, runs)


def _spread(run):
    """Computes the nats per token of a run's test if <unk> is spread over the test's new words.

    <unk> and the K new words share its probability evenly: each unknown token costs log(K + 1) more
    (see docs/passports.md).
    """
    test = passports(run)["test"]
    new, types = test["out_of_vocabulary"], test["out_of_vocabulary_types"]
    return test["figures"]["log_perplexity"] + new / test["tokens"] * math.log(types + 1)


def by_bands(models: Mapping[str, tuple[str, ...]]) -> str:
    """Makes a table of a test's words by how often training saw them, the seeds of each together.

    Each of the models is compared with the last. Figures with the one weight of
    `zoo.evaluation.mixtures` are shown where runs have them.

    Args:
      models: {the name of the column: runs}.
    """
    found = [[passports(run)["test"]["figures"] for run in runs] for runs in models.values()]
    first = found[0][0]
    parts = {"all words": lambda figures: figures}
    for band in first["bands"]:
        label = f"{band['band']} times in training"
        label = {"unknown": "`<unk>`", "unseen": "never in training"}.get(band["band"], label)
        parts[label] = lambda figures, name=band["band"]: next(
            of for of in figures["bands"] if of["band"] == name
        )
    if "mixture" in first:
        parts["all words, one weight for those never in training"] = lambda figures: figures[
            "mixture"
        ]
    rows = []
    total = sum(band["tokens"] for band in first["bands"])
    for label, part in parts.items():
        losses = [[part(figures)["log_perplexity"] for figures in of] for of in found]
        *others, last = map(statistics.fmean, losses)
        gaps = (f"{other - last:.3f}" for other in others)
        tokens = part(first).get("tokens", total)
        rows.append([label, f"{tokens:,}", *(mean(of, ".3f") for of in losses), *gaps])
    *others, last = models
    header = ["words of the test", "tokens", *models, *(f"{name} − {last}" for name in others)]
    return markdown(header, rows, [run for runs in models.values() for run in runs])


def tuning() -> str:
    """Makes the table of settings: validation of both models with a quarter of the text and all."""
    rows, runs = [], []
    for setting, of_setting in rows_of.FRENCH_TUNING.items():
        known = [run for run in of_setting if run in every_run()]
        cells = (f"{loss(run, 'validation'):.4f}" if run in known else "" for run in of_setting)
        rows.append([setting, *cells])
        runs += known
    header = ["setting", "softmax, a quarter", "log-linear, a quarter", "softmax, all"]
    return markdown([*header, "log-linear, all"], rows, runs, "validation")


def closed_tuning() -> str:
    """Makes the table of settings over the words of the tests, too: validation with a quarter of
    the text and all."""
    rows, runs = [], []
    for model, settings in rows_of.FRENCH_CLOSED_TUNING.items():
        for setting, of_setting in settings.items():
            cells = (f"{loss(run, 'validation'):.4f}" if run else "" for run in of_setting)
            rows.append([model, setting, *cells])
            runs += filter(None, of_setting)
    header = ["model", "setting", "a quarter", "all"]
    return markdown(header, rows, runs, "validation")


def parts() -> str:
    """Makes the table of parts of the text: nats per token of the test, without and with the one
    weight of `zoo.evaluation.mixtures`, and how far each model is above the log-linear one."""
    rows, runs = [], []
    values: tuple[Callable[[dict], dict], ...] = (lambda of: of, lambda of: of["mixture"])
    for sentences, part in rows_of.FRENCH_PARTS.items():
        losses = {
            model: [
                [
                    value(passports(run)["test"]["figures"])["log_perplexity"]
                    for run in rows_of.seeds(f"{part}_{name}")
                ]
                for value in values
            ]
            for model, name in rows_of.FRENCH_CLOSED_MODELS.items()
        }
        last = [*losses.values()][-1]
        for model, of_model in losses.items():
            row = [sentences, model]
            for of_value, of_last in zip(of_model, last, strict=True):
                gap = statistics.fmean(of_value) - statistics.fmean(of_last)
                row += [mean(of_value, ".3f"), f"{gap:.3f}" if of_model is not last else ""]
            rows.append(row)
            runs += rows_of.seeds(f"{part}_{rows_of.FRENCH_CLOSED_MODELS[model]}")
    header = ["training sentences", "model", "test", "above log-linear", "with one weight"]
    return markdown([*header, "above log-linear"], rows, runs)


def inputs() -> str:
    """Makes the table of inputs by heads: nats per token of the test, and agreement."""
    rows, runs = [], []
    for text, (sentences, count) in rows_of.FRENCH_TEXTS.items():
        for inputs, head in itertools.product(("words", "features"), ("softmax", "log_linear")):
            found = rows_of.seeds(f"fr{text}_{inputs}_{head}", count)
            cases = [passports(run)["pairs:agreement-test"]["figures"]["cases"] for run in found]
            shares = (
                mean([100 * of_run[case]["accuracy"] for of_run in cases], ".1f") + " %"
                for case in ("number, all", "gender, all")
            )
            nats = mean([loss(run, "test") for run in found], ".4f")
            rows.append([sentences, inputs, head.replace("_", "-"), nats, *shares])
            runs += found
    header = ["training sentences", "inputs", "head", "test", "number agreement"]
    return markdown([*header, "gender agreement"], rows, runs)


def agreement() -> str:
    """Makes the table of agreement pairs of the French test, three seeds of each model."""
    of_models = [
        [passports(run)["pairs:agreement-test"]["figures"]["cases"] for run in runs]
        for runs in rows_of.FRENCH.values()
    ]
    rows = []
    for case, first in of_models[0][0].items():
        row = [case]
        for found in of_models:
            low, high = found[0][case]["interval"]
            shares = [100 * of_run[case]["accuracy"] for of_run in found]
            row += [mean(shares, ".1f") + " %", f"{100 * low:.0f}–{100 * high:.0f} %"]
        rows.append([*row, f"{first['pairs']:,}"])
    header = ["agreement, distance", "softmax", "95 % of seed 0", "log-linear", "95 % of seed 0"]
    runs = [run for of_model in rows_of.FRENCH.values() for run in of_model]
    return markdown([*header, "pairs"], rows, runs)
