"""Warm starts: start values from another run, for training in stages.

Jozefowicz et al., "Exploring the limits of language modeling" (2016), section 3.3, train a word
model until it converges, freeze it, and replace its softmax by a head that predicts characters.
Here the second stage is an experiment of its own, with `init_from` and `training.frozen`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from zoo.base.arrays.parameter_sharding import path_name
from zoo.configuration import fields
from zoo.embeddings import Embedding
from zoo.errors import UserError
from zoo.heads import Head
from zoo.lab.runs import checksums
from zoo.lab.runs.workdir import Workdir
from zoo.lexicon import Lexicon

# Parts that are built for a model's second lexicon, of sources.
_OF_SOURCES = ("source_embedding", "encoder")


class Start(NamedTuple):
    """Start values from another run."""

    params: dict[str, Any]
    record: dict
    lines: list[str]


def read(path: str, model, lexicons: Sequence[Lexicon], frozen: tuple[str, ...] = ()) -> Start:
    """Reads those parts of a run's best parameters whose names and shapes fit a model."""
    taken, lines = {}, []
    try:
        source = Workdir(path)
        experiment, theirs = source.experiment(), source.lexicon()
        their_others = source.other_lexicons(experiment)
        step, arrays, progress = source.best(
            experiment, theirs, log=lambda line: lines.append(f"init_from: {line}")
        )
    except UserError as error:
        raise UserError(f"init_from: {error}") from error
    wanted = jax.eval_shape(lambda key: model.init(key, *lexicons), jax.random.key(0))
    for name, part in wanted.items():
        if not jax.tree.leaves(part):
            continue
        theirs_differ = checksums.first_difference(_leaves(arrays.get(name, {})), _leaves(part))
        difference = theirs_differ and "{} is {} there, {} here".format(*theirs_differ)
        if difference is None:
            component = model.component(name)
            difference = _other_rows(experiment.model.component(name), component)
        if difference is None:
            second = name in _OF_SOURCES
            both = (theirs, *their_others)[second], lexicons[second]
            _check_words(path, name, component, arrays[name], *both)
            leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arrays[name])]
            taken[name] = jax.tree.unflatten(jax.tree.structure(part), leaves)
            lines.append(f"{name}: taken from {path}, step {step:,}.")
            continue
        if name in frozen:
            raise UserError(
                f"training.frozen names {name!r}, which cannot be taken from {path} ({difference}) "
                "and would keep its random values: make it equal to that run's, or train it."
            )
        lines.append(f"{name}: initialised anew ({difference}).")
    if not taken:
        raise UserError(
            f"init_from={path}: no part of that model fits this model ({' '.join(lines)[:-1]}): "
            "give this model the embedding, the core or the head of that model."
        )
    record = {
        "workdir": path,
        "checkpoint": step,
        "parts": list(taken),
        "lexicon": {"hash": theirs.digest(), "words_hash": theirs.words_digest()},
        "data": progress.get("data"),
        "init_from": source.start(),
    }
    return Start(taken, record, lines)


def _other_rows(theirs, ours) -> str | None:
    """Describes how the rows of two components differ, words or kinds of features, or None."""
    there, here = (", ".join(_rows(component)) for component in (theirs, ours))
    if there == here:
        return None
    return f"its rows are of {there or 'words'} there, of {here or 'words'} here"


def _rows(component) -> list[str]:
    """Lists the kinds of features that a component's parts have rows for; [] if all are words."""
    inner = (value for _, _, value in fields.values(component))
    return [
        " ".join(("features", *part.kinds))
        for part in (component, *inner)
        if isinstance(part, (Head, Embedding)) and part.kinds is not None
    ]


def _leaves(part):
    return {path_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(part)}


def _check_words(path, name, component, params, theirs, ours):
    """Checks that parameters trained with the other run's lexicon suit this run's lexicon."""
    if theirs.words == ours.words and theirs.feature_names == ours.feature_names:
        if component.ordered_by_frequency:
            _check_counts(path, name, component, theirs, ours)
        return
    try:
        moved = component.for_lexicon(params, theirs, ours)
        # `for_lexicon` returns a parameter unchanged unless it depends on the words.
        leaves = zip(jax.tree.leaves(params), jax.tree.leaves(moved), strict=True)
        of_words = any(old is not new for old, new in leaves)
    except UserError:
        of_words = True
    if of_words:
        raise UserError(
            f"init_from={path}: its {name} has parameters of its words, but the words, features or "
            f"letters of this run differ ({len(theirs):,} words there, {len(ours):,} here): give "
            f"this run the data and the vocabulary of that run, or another model.{name}."
        )


def _check_counts(path, name, component, theirs, ours):
    """Checks that words ordered by their frequencies have the same order in both lexicons."""
    old, new = component.tables(theirs), component.tables(ours)
    if not all(map(np.array_equal, jax.tree.leaves(old), jax.tree.leaves(new))):
        raise UserError(
            f"init_from={path}: its {name} orders words by their frequencies, which differ in this "
            f"run: give this run the data of that run, or another model.{name}."
        )
