"""Tables of the small AWD-LSTM, its variants, and other heads on its core."""

import collections
import functools
import itertools
import math
import statistics
from operator import attrgetter

import numpy as np

from records import rows as rows_of
from records.cells import (
    FOLDER,
    by_model,
    figures_of,
    grid,
    interval,
    mean,
    nats,
    parameters,
    perplexity,
    read_json,
    read_records,
    short_revision,
)
from zoo.lab.comparison import paired
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.perplexity import perplexity_of
from zoo.lab.table import format_value


def awd() -> str:
    """Makes the table of the small AWD-LSTM, as it is and learning from the text."""
    columns = [
        ("validation", nats("validation")),
        ("test", nats("test")),
        ("perplexity of the test", perplexity("test")),
        ("95 % of the first seed, by sentences", interval("test")),
    ]
    seconds = [read_records()[run][1].validations[-1]["seconds"] for run in rows_of.PTB_AWD]
    took = f" Training took {min(seconds):,.0f} to {max(seconds):,.0f} s."
    return by_model("model", rows_of.PTB_LEARNING, columns) + took


def full_vocabulary() -> str:
    """Makes the table of models of a billion words over all words of the benchmark."""

    def step(runs):
        # of the fastest epoch but the first, in which the step is compiled
        seconds = min(
            (after["seconds"] - before["seconds"]) / (after["step"] - before["step"])
            for run in runs
            for before, after in itertools.pairwise(read_records()[run][1].validations)
        )
        return f"{1000 * seconds:.0f}"

    columns = [
        ("test", nats("test", ".3f")),
        ("perplexity", perplexity("test", ".0f")),
        ("of words in training", nats("test", ".2f", part=attrgetter("seen"))),
        ("of words never there", nats("test", ".2f", part=attrgetter("unseen"))),
        ("parameters", parameters("test")),
        ("ms a step", step),
    ]
    return by_model("model", rows_of.models("lm1b_full"), columns)


def variants(file: str, seeds: str) -> str:
    """Makes a table of variants that were trained side by side, in the order of validation.

    Args:
      file: its result in this folder.
      seeds: which seeds its rows have, for the line below the table.
    """
    record = read_json(file)
    rows_by_recipe: dict[str, list[dict]] = {}
    for name, row in record["variants"].items():
        rows_by_recipe.setdefault(name.partition(", seed")[0], []).append(row)
    rows = []
    for name, seed_rows in rows_by_recipe.items():
        losses = [[row[split] for row in seed_rows] for split in ("validation", "test")]
        perplexities = [f"{perplexity_of(statistics.fmean(by_seed)):.1f}" for by_seed in losses]
        rows.append([name, *(mean(by_seed, ".3f") for by_seed in losses), *perplexities])
    rows.sort(key=lambda row: row[1])
    header = ["variant", "validation", "test", "perplexity, validation", "test"]
    return (
        f"{grid(header, rows)}\nFrom records/{file}: {seeds}; revision "
        f"{short_revision(record['revision'])}; {record['device']}, jax "
        f"{record['versions']['jax']}; {record['date']}."
    )


def strong_heads() -> str:
    """Makes the table of heads on the core of ptb_awd_small, in the order of validation.

    A head's learning rate is the best of several by shorter runs of seed 0, where these are kept; a
    column shows by how much the others are worse. Some are also compared with a softmax that is not
    tied.
    """
    rows, heads_by_device, records = [], collections.defaultdict(list), []
    for head, file in rows_of.PTB_STRONG.items():
        record = read_json(f"ptb_strong/{file}.json")
        rate = record["variants"]["seed 0"]["settings"]["training.optimizer.learning_rate"]
        validation, test = (read_seeds(file, split) for split in ("validation", "test"))
        cells = [
            f"{head}, rate {rate:g}",
            f"{record['parameters']:,}",
            *(mean(seeds.losses, ".4f") for seeds in (validation, test)),
            f"{perplexity_of(test.loss):.1f}",
            "" if file == "softmax" else above(read_seeds("softmax", "test"), test),
            above(read_seeds("untied", "test"), test) if file in rows_of.AGAINST_UNTIED else "",
            _other_rates(f"ptb_strong/{file}_rates.json"),
        ]
        rows.append((validation.loss, cells))
        heads_by_device[record["device"]].append(head.partition(", ")[0])
        records.append(record)
    header = ["head", "parameters", "validation", "test", "perplexity of the test"]
    header += ["test, above the tied softmax", "above the softmax that is not tied"]
    header.append("worse on validation in short runs")
    (common, _), *others = sorted(heads_by_device.items(), key=lambda item: -len(item[1]))
    devices = [common, *(f"{', '.join(heads)}: {device}" for device, heads in others)]
    revisions = sorted({short_revision(record["revision"]) for record in records})
    dates = sorted({record["date"] for record in records})
    return (
        f"{grid(header, [cells for _, cells in sorted(rows)])}\nFrom records/ptb_strong: three "
        "seeds, in brackets the least and the greatest; intervals by sentences, p by seeds; "
        f"revision {', '.join(revisions)}; {'; '.join(devices)}; {', '.join(dates)}."
    )


def front_page() -> str:
    """Makes the table of README: the same heads by perplexity, with time and memory of a step."""
    steps, rows = read_json("ptb_steps.json"), []
    for head, file in rows_of.PTB_STRONG.items():
        parameters = read_json(f"ptb_strong/{file}.json")["parameters"]
        loss, step = read_seeds(file, "test").loss, steps["heads"][file]
        cells = [f"{perplexity_of(loss):.1f}", f"{1e3 * step['seconds']:.0f} ms"]
        cells += [f"{1e-6 * step['bytes']:.0f} MB", f"{1e-6 * parameters:.1f} M"]
        rows.append((loss, [head, *cells]))
    header = ["head", "perplexity", "time of a step", "memory of a step", "parameters"]
    equal = read_json("ptb_left_out.json")["variants"]["all"]["test"]
    forty = (
        f"{perplexity_of(loss):.1f}" for loss in (read_seeds("mixture_40", "test").loss, equal)
    )
    cores = "one core" if steps["cores"] == 1 else f"{steps['cores']} cores"
    return (
        f"{grid(header, [cells for _, cells in sorted(rows)])}\nFrom records/ptb_strong and "
        "records/ptb_steps.json. Perplexity: the Penn Treebank's test, means of three seeds, "
        "twelve epochs on an NVIDIA H200, importance sampling on a CPU "
        "([rates, intervals, commands]"
        "(docs/results/penn_treebank.md#heads-on-the-core-of-ptb_awd_small)); after forty, the "
        f"mixture is level with the softmax ({' and '.join(forty)}). Time and memory: a "
        f"step of 700 tokens on {cores} of an {steps['device']}, CPU time and "
        f"temporary memory, {steps['date']}."
    )


def forty_epochs() -> str:
    """Makes the table of ptb_awd_small with a softmax and with a mixture, after forty epochs.

    The softmax in windows of equal length has one seed.
    """
    splits = ("validation", "test")
    softmax = [figures_of(rows_of.PTB_AWD, split) for split in splits]
    mixture = [read_seeds("mixture_40", split) for split in splits]
    contents = [read_json(name) for name in ("ptb_left_out.json", "ptb_strong/mixture_40.json")]
    losses = {
        "softmax, windows of random length": [runs.losses for runs in softmax],
        "softmax, of equal length": [[contents[0]["variants"]["all"][split]] for split in splits],
        "mixture of 3 softmaxes, of equal length": [runs.losses for runs in mixture],
    }
    rows = []
    for head, by_split in losses.items():
        cells = [mean(split_losses, ".4f") for split_losses in by_split]
        rows.append([head, *cells, f"{perplexity_of(statistics.fmean(by_split[1])):.1f}"])
    gaps = (
        f"{above(*pair)} ({split})" for *pair, split in zip(softmax, mixture, splits, strict=True)
    )
    revisions = sorted({short_revision(record["revision"]) for record in contents})
    return (
        f"{grid(['head', 'validation', 'test', 'perplexity of the test'], rows)}\nThe mixture is "
        f"above the softmax with windows of random length by {' and '.join(gaps)}.\n\n"
        "From records/ptb_awd.jsonl, records/ptb_left_out.json and "
        "records/ptb_strong/mixture_40.json: seeds 0, 1, 2, of the second row 0, in brackets the "
        "least and the greatest; intervals by sentences, p by seeds; revisions of the last rows "
        f"{', '.join(revisions)}, {contents[0]['device']}."
    )


def above(baseline: paired.GroupLosses, runs: paired.GroupLosses) -> str:
    """Describes by how much runs are above others: nats, an interval and p."""
    p = paired.format_p(significance.seeds_test(baseline.losses, runs.losses))
    difference = paired.compare_losses(baseline, runs)
    gap = (runs.loss - baseline.loss, *(difference.interval if difference else (math.nan,) * 2))
    return f"{format_value(gap, '.3f')}, {p}"


@functools.cache
def read_seeds(file: str, split: str) -> paired.GroupLosses:
    """Reads the seeds of a recipe that were trained side by side.

    Args:
      file: in records/ptb_strong, without its suffix.
      split: that they were judged on.
    """
    variants = read_json(f"ptb_strong/{file}.json")["variants"].values()
    arrays = np.load(FOLDER / "ptb_strong" / f"{file}.npz")
    tokens = arrays[f"{split}/tokens"]
    statistics = [
        np.stack([nats, tokens], 1).astype(np.float64) for nats in arrays[f"{split}/nats"]
    ]
    return paired.GroupLosses(file, tuple(row[split] for row in variants), tuple(statistics))


def _other_rates(file):
    """Returns by how much the other rates are worse, "0.1 at 7.5, ..."; "" without short runs."""
    if not (FOLDER / file).exists():
        return ""
    loss_by_rate = {
        name.removeprefix("rate "): row["validation"]
        for name, row in read_json(file)["variants"].items()
    }
    best = min(loss_by_rate.values())
    return ", ".join(
        f"{loss - best:.3f} at {rate}" for rate, loss in loss_by_rate.items() if loss > best
    )
