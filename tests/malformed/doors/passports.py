"""JSON of the zoo's own, damaged: passports, records, weights, and sizes in recipes."""

import dataclasses
import json

import numpy as np

from tests import passports
from tests.malformed import readers
from zoo import configuration
from zoo.base import component_registry
from zoo.lab.comparison import learning_curves
from zoo.lab.comparison.comparison import Group
from zoo.lab.comparison.text_report import tables
from zoo.lab.evaluation import item_scores, translation_quality
from zoo.lab.rescoring.reranking import Weights
from zoo.lab.rescoring.run_interpolation import Interpolation
from zoo.lab.runs import checksums, exported_run, recipe_sizes
from zoo.lab.runs.seen_texts import SeenTexts
from zoo.lab.runs.workdir import Workdir
from zoo.sources import fetch

_COUNTS = {"sentences": 0, "tokens": 0, "of_sentences": 2, "of_tokens": 5}
_OVERLAP = {"all": _COUNTS, "long": _COUNTS}
_SEEN = {"by": "this run", "text": "train.txt", "digest": "d", "sentences": 2, "tokens": 9}
_CHANGES = {
    "tokens": 5,
    "lexicon.of_training": {"words": "w", "size": 10},
    "overlap": {"letters": 30, "trained_on": _OVERLAP, "selected_on": _OVERLAP},
    "not_known": [],
    "trained_on": [_SEEN],
}
PASSPORTS = {
    "passports": passports.change(passports.PERPLEXITY, _CHANGES),
    "answers": passports.change(
        passports.PAIRS, {**_CHANGES, "figures": passports.accuracy(3, 5), "split": "test"}
    ),
    "translations": passports.change(passports.TRANSLATION, {**_CHANGES, "tokens": 1}),
}
_EXPORT = {"checkpoint": 3, "sha256": {}, "data": ""}
_SHAPES = [(8, 2), (8,), (2, 12), (3, 12), (12,), (8, 3)]  # of EXPERIMENT


def replace_paths(value, changes):
    """JSON with other values at dotted paths; ... takes a name out."""
    value = json.loads(json.dumps(value))
    for path, item in changes.items():
        inner, (*above, last) = value, path.split(".")
        for name in above:
            inner = inner[int(name) if isinstance(inner, list) else name]
        if item is ...:
            del inner[last]
        else:
            inner[last] = item
    return value


def _write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _passport(name, read):
    """Reads a passport, given as changes of a good one, or as the text of its file."""

    def call(changes, folder):
        good = PASSPORTS[name]
        is_text = isinstance(changes, str | bytes)
        text = changes if is_text else json.dumps(replace_paths(good, changes))
        file = _write(folder, "run/results/translation-test.x.json", text)
        file.with_suffix(".txt").write_text("a\n")
        _write(folder, "other/results/test.json", json.dumps(good))
        read(folder)

    return call


def _compared(folder):
    tables([str(folder / "run"), str(folder / "other")])


def _scores(name):
    """Compares runs, one of which has these scores, whose hash is in the passport."""

    def call(arrays, folder):
        arrays = {name: np.asarray(array) for name, array in arrays.items()}
        passport = {**PASSPORTS[name], "scores": item_scores.digest(arrays)}
        file = _write(folder, "run/results/test.json", json.dumps(passport))
        item_scores.write(file, arrays)
        tables([str(folder / "run")])

    return call


def _file(name, read):
    return lambda content, folder: read(_write(folder, name, content))


def _export(changes, folder):
    is_text = isinstance(changes, str | bytes)
    if is_text:
        text = changes
    else:
        record = replace_paths(_EXPORT, changes)
        text = json.dumps(record | {"digest": checksums.json_digest(record)})
    exported_run.read_record(_write(folder, exported_run.RECORD, text).parent)


def _with_defaults(value):
    """A recipe as JSON, with the defaults of the fields that its components lack."""
    if isinstance(value, list):
        return [*map(_with_defaults, value)]
    if not isinstance(value, dict):
        return value
    component = component_registry.component(value["component"])
    defaults = {
        field.name: configuration.to_json(field.default)
        for field in dataclasses.fields(component)
        if field.default is not dataclasses.MISSING
    }
    return defaults | {name: _with_defaults(item) for name, item in value.items()}


def _sizes(changes, folder):
    """Looks at the sizes of a recipe before a model of it is built."""
    recipe = configuration.from_json(
        _with_defaults(replace_paths(configuration.to_json(readers.EXPERIMENT), changes))
    )
    recipe_sizes.check(recipe, _SHAPES, "the run")


def _curves(path):
    """Draws the learning curves of a metrics.jsonl."""
    lines = learning_curves.read_metrics(path, learning_curves.WITH_TRAINING["step"])
    curve = learning_curves.Curve.from_validations(Group("a", 0, ()), [lines])
    learning_curves.draw_curves([curve], path.with_suffix(".png"))


CALLS = {
    "passports": _passport("passports", _compared),
    "answers": _passport("answers", _compared),
    "translations": _passport(
        "translations",
        lambda folder: translation_quality.read(folder / "run/results/translation-test.x.json"),
    ),
    "scores.npz": _scores("passports"),
    "scores.npz of answers": _scores("answers"),
    "rescore --weights": _file("w.json", lambda path: Weights.read(str(path))),
    "--interpolation": _file("mix.json", lambda path: Interpolation.read(str(path))),
    "export.json": _export,
    "start.json": _file("start.json", lambda path: Workdir(path.parent).start()),
    "texts.npz": _file("texts.npz", SeenTexts.load),
    "fetched.json": _file(fetch.RECORD, lambda path: fetch.read_record(path.parent)),
    "metrics.jsonl": _file("metrics.jsonl", _curves),
    "sizes of recipes": _sizes,
}
