"""Compares losses of a recommender at equal time, and keeps the places of the films held out.

    taskset -c 0 python -m records.sasrec recbole-1.2.1-py3-none-any.whl

A run has SECONDS of time on one core: as many steps as its loss takes of the median time of a step,
which is measured before all runs, in turns with the other losses. Rates are chosen by NDCG@10 on
validation, the last film but one of each viewer, among as many for each loss. The test is the last
film.
"""

import json
import sys

import numpy as np
import optax

from benchmarks import timing
from examples import sasrec
from records.cells import FOLDER, estimate, grid, provenance, provenance_line, read_json
from zoo.lab.table import format_value

FILE, BASELINE = FOLDER / "sasrec.json", "full softmax"
SECONDS, ROUNDS = 20, 31
RATES, SEEDS = (0.001, 0.003, 0.01, 0.03), (1, 2, 3)
SETTINGS = {"rate": "g", "milliseconds": ".0f", "steps": ","}  # of a run, and how they are shown


def step_seconds(viewers, films: int) -> dict[str, float]:
    """Measures the median time of each loss's step."""
    sides, batch, params = {}, next(sasrec.batches(viewers, 0)), sasrec.initial_parameters(films, 0)
    for name, head in sasrec.HEADS.items():
        optimizer = optax.adam(RATES[0])
        step = sasrec.make_step(head, viewers, films, optimizer)
        sides[name] = timing.compiled_side(step, params, optimizer.init(params), *batch)
    return timing.medians(sides, ROUNDS)


def compare(viewers) -> dict:
    """Trains each loss at each rate, and at the best rate with each seed: {loss: figures}."""
    validation, training = ([films[:-number] for films in viewers] for number in (1, 2))
    films, runs = 1 + max(map(max, viewers)), {}

    def places(name, steps, rate, seed, sequences):
        params = sasrec.train(sasrec.HEADS[name], training, films, rate, steps, seed)
        best = sasrec.places(params, sequences)
        print(name, steps, rate, seed, sasrec.metrics(best).mean(axis=0).round(3), flush=True)
        return best

    for name, seconds in step_seconds(training, films).items():
        steps, trials = round(SECONDS / seconds), {}
        for rate in RATES:
            trials[rate] = sasrec.metrics(places(name, steps, rate, 0, validation)).mean(axis=0)
        rate = max(RATES, key=lambda rate: trials[rate][1])
        test = [places(name, steps, rate, seed, viewers).tolist() for seed in SEEDS]
        runs[name] = {"rate": rate, "milliseconds": 1000 * seconds, "steps": steps, "places": test}
        runs[name]["trials"] = {rate: figures.tolist() for rate, figures in trials.items()}
    counts = np.bincount(np.concatenate(training), minlength=films)
    hits = np.argsort(-counts)[: sasrec.BEST] == np.array([films[-1] for films in viewers])[:, None]
    popular = (hits * np.arange(1, sasrec.BEST + 1)).sum(axis=1)
    return runs | {"the ten most popular films": {"places": [popular.tolist()]}}


def interval(values: np.ndarray) -> str:
    """Formats the mean of viewers' values with its 95 % interval."""
    statistics = np.stack([values, np.ones_like(values)], axis=-1)
    return format_value(estimate(statistics, lambda sums: sums[..., 0] / sums[..., 1]), ".3f")


def table() -> str:
    """Makes the table of losses."""
    runs, rows = read_json(FILE.name)["runs"], []
    for name, run in runs.items():
        settings = [format_value(run.get(setting), form) for setting, form in SETTINGS.items()]
        values, baseline = (
            sasrec.metrics(np.array(places)).mean(axis=0)
            for places in (run["places"], runs[BASELINE]["places"])
        )
        gain = "" if name == BASELINE else interval((values - baseline)[:, 1])
        rows.append([name, *settings, *map(interval, values.T), gain])
    header = ["loss", "rate", "ms a step", "steps", "HR@10", "NDCG@10", f"above the {BASELINE}"]
    return f"{grid(header, rows)}\n{provenance_line('sasrec', '943 viewers; ')}"


if __name__ == "__main__":
    contents = provenance()
    contents["runs"] = compare(sasrec.read_viewers(sys.argv[1]))
    FILE.write_text(json.dumps(contents) + "\n", encoding="utf-8")
