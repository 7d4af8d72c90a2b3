"""Tables of the small AWD-LSTM, its variants, and other heads on its core."""

import itertools
import json
import statistics
from operator import itemgetter

import numpy as np

from records import rows as rows_of
from records.cells import (
    FOLDER,
    by_model,
    figures_of,
    grid,
    interval,
    markdown,
    mean,
    nats,
    parameters,
    perplexity,
    read_records,
    short_revision,
)
from zoo.lab.comparison import paired
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.perplexity import perplexity_of


def awd() -> str:
    """Makes the table of the small AWD-LSTM, as it is and learning from the text."""
    runs, rows = rows_of.PTB_AWD, []
    for row, learning in rows_of.LEARNING.items():
        figures = nats("validation", learning=learning), nats("test", learning=learning)
        figures += perplexity("test", learning=learning), interval("test", learning)
        rows.append([row, *(figure(runs) for figure in figures)])
    header = ["model", "validation", "test", "perplexity of the test"]
    header += ["95 % of the first seed, by sentences"]
    seconds = [read_records()[run][1].validations[-1]["seconds"] for run in runs]
    took = f" Training took {min(seconds):,.0f} to {max(seconds):,.0f} s."
    return markdown(header, rows, [*runs]) + took


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
        ("of words in training", nats("test", ".2f", part=itemgetter("seen"))),
        ("of words never there", nats("test", ".2f", part=itemgetter("unseen"))),
        ("parameters", parameters("test")),
        ("ms a step", step),
    ]
    return by_model("model", rows_of.models("lm1b_full"), columns)


def variants(file: str, seeds: str) -> str:
    """Makes a table of variants that benchmarks.ingredients trained, in the order of validation.

    Args:
      file: its result in this folder.
      seeds: which seeds its rows have, for the line below the table.
    """
    record = json.loads((FOLDER / file).read_text())
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
    folder, rows, devices, origins = FOLDER / "ptb_strong", [], {}, set()
    tied, untied = (_seeds(folder / f"{name}.json", "test") for name in ("softmax", "untied"))
    for head, file in rows_of.PTB_STRONG.items():
        record = json.loads((folder / f"{file}.json").read_text())
        losses = [_seeds(folder / f"{file}.json", split) for split in ("validation", "test")]
        above = "" if file == "softmax" else _above(tied, losses[1])
        above_untied = _above(untied, losses[1]) if file in rows_of.AGAINST_UNTIED else ""
        variant = next(iter(record["variants"].values()))
        rate = variant["settings"]["training.optimizer.learning_rate"]
        cells = [f"{head}, rate {rate:g}", f"{record['parameters']:,}"]
        cells += [mean([*runs.losses], ".4f") for runs in losses]
        cells += [f"{perplexity_of(losses[1].loss):.1f}", above, above_untied]
        rows.append((losses[0].loss, [*cells, _other_rates(folder / f"{file}_rates.json")]))
        devices.setdefault(record["device"], []).append(head.partition(", ")[0])
        origins.add((short_revision(record["revision"]), record["date"]))
    header = ["head", "parameters", "validation", "test", "perplexity of the test"]
    header += ["test, above the tied softmax", "above the softmax that is not tied"]
    header.append("worse on validation in short runs")
    common = max(devices, key=lambda device: len(devices[device]))
    note = common + "".join(
        f"; {', '.join(heads)}: {device}" for device, heads in devices.items() if device != common
    )
    table = grid(header, [cells for _, cells in sorted(rows)])
    return (
        f"{table}\nFrom records/ptb_strong: three seeds, in "
        "brackets the least and the greatest; intervals by sentences, p by seeds; revision "
        f"{', '.join(sorted({revision for revision, _ in origins}))}; {note}; "
        f"{', '.join(sorted({date for _, date in origins}))}."
    )


def above_tied(file: str) -> str:
    """Describes by how much a head's test is above the tied softmax's on the core of ptb_awd_small.

    Args:
      file: the head's file in records/ptb_strong, without its suffix.
    """
    tied, head = (
        _seeds(FOLDER / "ptb_strong" / f"{name}.json", "test") for name in ("softmax", file)
    )
    return _above(tied, head)


def front_page() -> str:
    """Makes the table of README: the same heads by perplexity, with time and memory of a step."""
    steps, rows = json.loads((FOLDER / "ptb_steps.json").read_text()), []
    for head, file in rows_of.PTB_STRONG.items():
        record = json.loads((FOLDER / "ptb_strong" / f"{file}.json").read_text())
        test, step = _seeds(FOLDER / "ptb_strong" / f"{file}.json", "test"), steps["heads"][file]
        cells = [f"{perplexity_of(test.loss):.1f}", f"{1e3 * step['seconds']:.0f} ms"]
        cells += [f"{1e-6 * step['bytes']:.0f} MB", f"{1e-6 * record['parameters']:.1f} M"]
        rows.append((test.loss, [head, *cells]))
    header = ["head", "perplexity", "time of a step", "memory of a step", "parameters"]
    return (
        f"{grid(header, [cells for _, cells in sorted(rows)])}\nFrom records/ptb_strong and "
        "records/ptb_steps.json. Perplexity: the Penn Treebank's test, means of three seeds, "
        "twelve epochs on an NVIDIA H200, importance sampling on a CPU "
        "([rates, intervals, commands]"
        "(docs/results/penn_treebank.md#heads-on-the-core-of-ptb_awd_small)); after forty, the "
        f"mixture is level with the softmax ({_forty()}). Time and memory: a "
        f"step of 700 tokens on {_cores(steps['cores'])} of an {steps['device']}, CPU time and "
        f"temporary memory, {steps['date']}."
    )


def _forty():
    """Returns the perplexities of mixture and softmax after forty epochs, "72.5 and 72.4"."""
    softmax = json.loads((FOLDER / "ptb_left_out.json").read_text())["variants"]["all"]["test"]
    mixture = _seeds(FOLDER / "ptb_strong" / "mixture_40.json", "test").loss
    return f"{perplexity_of(mixture):.1f} and {perplexity_of(softmax):.1f}"


def _cores(count):
    return "one core" if count == 1 else f"{count} cores"


def forty_epochs() -> str:
    """Makes the table of ptb_awd_small with a softmax and with a mixture, after forty epochs.

    The softmax in windows of equal length has one seed.
    """
    splits = ("validation", "test")
    softmax = [figures_of(rows_of.PTB_AWD, split) for split in splits]
    equal = json.loads((FOLDER / "ptb_left_out.json").read_text())
    file = FOLDER / "ptb_strong" / "mixture_40.json"
    mixture = [_seeds(file, split) for split in splits]
    losses = {
        "softmax, windows of random length": [[*split_runs.losses] for split_runs in softmax],
        "softmax, of equal length": [[equal["variants"]["all"][split]] for split in splits],
        "mixture of 3 softmaxes, of equal length": [[*split_runs.losses] for split_runs in mixture],
    }
    rows = []
    for head, (validation_losses, test_losses) in losses.items():
        perplexity = f"{perplexity_of(statistics.fmean(test_losses)):.1f}"
        rows.append([head, mean(validation_losses, ".4f"), mean(test_losses, ".4f"), perplexity])
    contents = equal, json.loads(file.read_text())
    revisions = sorted({short_revision(record["revision"]) for record in contents})
    return (
        grid(["head", "validation", "test", "perplexity of the test"], rows)
        + "\nThe mixture is above the softmax with windows of random length by "
        + " and ".join(
            f"{_above(*pair)} ({split})"
            for *pair, split in zip(softmax, mixture, splits, strict=True)
        )
        + ".\n\nFrom records/ptb_awd.jsonl, records/ptb_left_out.json and "
        "records/ptb_strong/mixture_40.json: seeds 0, 1, 2, of the second row 0, in brackets the "
        "least and the greatest; intervals by sentences, p by seeds; revisions of the last rows "
        f"{', '.join(revisions)}, {equal['device']}."
    )


def _above(softmax, runs):
    """Returns by how much runs are above the softmax: nats, an interval and p."""
    p = paired.format_p(significance.seeds_test([*softmax.losses], [*runs.losses]))
    if not softmax.statistics:
        return f"{runs.loss - softmax.loss:.3f}, {p}"
    difference = paired.compare_losses(softmax, runs)
    low, high = difference.interval
    return f"{difference.nats:.3f} [{low:.3f}, {high:.3f}], {p}"


def _seeds(file, split):
    """Reads the seeds of a recipe that benchmarks.ingredients trained."""
    record = json.loads(file.read_text())
    arrays = np.load(file.with_suffix(".npz"))
    losses = tuple(row[split] for row in record["variants"].values())
    sentence_statistics = [
        np.stack([nats, arrays[f"{split}/tokens"]], 1).astype(np.float64)
        for nats in arrays[f"{split}/nats"]
    ]
    return paired.GroupLosses(file.stem, losses, tuple(sentence_statistics))


def _other_rates(file):
    """Returns by how much the other rates are worse, "0.1 at 7.5, ..."; "" without short runs."""
    if not file.exists():
        return ""
    rows_by_name = json.loads(file.read_text())["variants"]
    best = min(row["validation"] for row in rows_by_name.values())
    return ", ".join(
        f"{row['validation'] - best:.3f} at {name.removeprefix('rate ')}"
        for name, row in rows_by_name.items()
        if row["validation"] > best
    )
