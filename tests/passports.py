"""A passport of each kind as JSON, which tests change where they need another."""

import copy
import json

from zoo.lab.evaluation import figures

_ANY = {
    "split": "test",
    "tokens": 100,
    "counts": "words",
    "data": {"path": "test.txt", "sha256": "abc", "sentences": 9, "words": 100},
    "policies": {
        "state": "carried",
        "batch": 8,
        "boundary": "counted",
        "boundary_marks": 1,
        "unknown": "counted",
        "lower_case": False,
        "fused": None,
        "blank_lines": None,
    },
    "normalised_over": "the 10 words of the lexicon",
    "changes": [],
    "notes": {},
    "lexicon": {"words": "w", "size": 10, "hash": "h"},
    **dict.fromkeys(("trained_on", "selected_on", "not_known", "overlap")),
    "training": {"seed": None, "recipe_sha256": "", "recipe_but_seed": None, "made_with": None},
    "head": "Softmax()",
    "form": None,
    "model": {},
    "vocabulary": {},
    "parameters": 1234,
    "precision": "float32",
    "matmul_precision": "highest",
    "checkpoint": 40,
    "started_from": None,
    "versions": {},
    "revision": None,
    "date": "2026-11-29T12:00:00+00:00",
}
PERPLEXITY = {
    **_ANY,
    "kind": "perplexity",
    "figures": {"log_perplexity": 5.0, "perplexity": 148.41, "bits": 7.21},
    "out_of_vocabulary": 0,
    "unknown_tokens": 0,
    "out_of_vocabulary_rate": 0.0,
    "types": 20,
    "out_of_vocabulary_types": 0,
    "priors_saw_this_text": [],
}
_PAIRS = {"right": 75, "pairs": 100, "skipped": 0, "mean_difference": 1.5}
PAIRS = {
    **_ANY,
    "kind": "minimal pairs",
    "split": "pairs:p",
    "figures": {"accuracy": 0.75, "interval": [0.6, 0.8], **_PAIRS},
}
_SEARCH = {"beam": 2, "nbest": 1, "length_normalisation": 0.0}
TRANSLATION = {
    **_ANY,
    "kind": "translation",
    "split": "translation-test",
    "figures": {"BLEU": {"score": 1.0, "signature": "s"}},
    "tokenizer": "none",
    "decoding": {"search": _SEARCH, "runs": [], "average": None, "language_model": None},
}


def change(passport: dict, changes: dict) -> dict:
    """JSON with other values at dotted paths; ... takes a name out, a dict changes some fields."""
    passport = copy.deepcopy(passport)
    for path, value in changes.items():
        inner, (*above, last), value = passport, path.split("."), copy.deepcopy(value)
        for name in above:
            inner = inner.setdefault(name, {}) if isinstance(inner, dict) else inner[int(name)]
        if value is ...:
            del inner[last]
        elif isinstance(value, dict) and isinstance(inner, dict) and inner.get(last):
            inner[last] = {**inner[last], **value}
        else:
            inner[int(last) if isinstance(inner, list) else last] = value
    return json.loads(json.dumps(passport))


def make(passport: dict = PERPLEXITY, **changes) -> figures.Passport:
    """A passport with changes, of which the paths have __ for their points."""
    paths = {path.replace("__", "."): value for path, value in changes.items()}
    return figures.parse(change(passport, paths))


def accuracy(right: int, pairs: int) -> dict:
    """The figures of pairs as JSON."""
    share = right / pairs if pairs else "nan"
    return {**PAIRS["figures"], "accuracy": share, "right": right, "pairs": pairs}
