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
from zoo.lab.runs.workdir import WarmStart, Workdir
from zoo.lexicon import Lexicon

# Parts that are built for a model's second lexicon, of sources.
_SOURCE_PARTS = ("source_embedding", "encoder")
# Parts of an encoder-decoder whose parameters do not depend on words.
_WORDLESS_PARTS = ("attention", "bridge")


class Start(NamedTuple):
    """Start values from another run."""

    params: dict[str, Any]
    record: WarmStart
    lines: list[str]


def read(path: str, model, lexicons: Sequence[Lexicon], frozen: tuple[str, ...] = ()) -> Start:
    """Reads the parts of a run's best parameters whose names, shapes and words fit a model."""
    params, lines = {}, []
    try:
        run = Workdir(path)
        experiment = run.experiment()
        source_lexicons = run.lexicons(experiment)
        step, arrays, progress = run.best(
            experiment, source_lexicons, log=lambda line: lines.append(f"init_from: {line}")
        )
    except UserError as error:
        raise UserError(f"init_from: {error}") from error
    shapes = jax.eval_shape(lambda key: model.init(key, *lexicons), jax.random.key(0))
    for name, part in shapes.items():
        if not jax.tree.leaves(part):
            continue
        layouts = checksums.first_difference(_leaves(arrays.get(name, {})), _leaves(part))
        difference = layouts and "{} is {} there, {} here".format(*layouts)
        if difference is None:
            component = model.component(name)
            parts = experiment.model.component(name), component
            source_rows, rows = (", ".join(_rows(part)) or "words" for part in parts)
            if source_rows != rows:
                difference = f"its rows are of {source_rows} there, of {rows} here"
        if difference is None:
            index = name in _SOURCE_PARTS
            lexicon_pair = source_lexicons[index], lexicons[index]
            if name not in _WORDLESS_PARTS:
                _check_words(path, name, component, arrays[name], *lexicon_pair)
            leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arrays[name])]
            params[name] = jax.tree.unflatten(jax.tree.structure(part), leaves)
            lines.append(f"{name}: taken from {path}, step {step:,}.")
            continue
        if name in frozen:
            raise UserError(
                f"training.frozen names {name!r}, which cannot be taken from {path} ({difference}) "
                "and would keep its random values: make it equal to that run's, or train it."
            )
        lines.append(f"{name}: initialised anew ({difference}).")
    if not params:
        raise UserError(
            f"init_from={path}: no part of that model fits this model ({' '.join(lines)[:-1]}): "
            "give this model the embedding, the core or the head of that model."
        )
    words = source_lexicons[0]
    record = WarmStart(
        workdir=path,
        checkpoint=step,
        parts=tuple(params),
        lexicon={"hash": words.digest(), "words_hash": words.words_digest()},
        data=progress.get("data"),
        init_from=run.start(),
    )
    return Start(params, record, lines)


def _rows(component) -> list[str]:
    """Lists the kinds of features that a component's parts have rows for; [] if all are words."""
    inner = (value for _, _, value in fields.values(component))
    return [
        " ".join(("features", *part.kinds))
        for part in (component, *inner)
        if isinstance(part, (Head, Embedding)) and part.kinds is not None
    ]


def _leaves(part):
    """Returns {path: leaf} of a part."""
    return {path_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(part)}


def _check_words(path, name, component, params, source, target):
    """Raises UserError if parameters of the source's words do not fit the target lexicon."""
    if source.words == target.words and source.feature_names == target.feature_names:
        tables = (component.tables(lexicon) for lexicon in (source, target))
        if component.ordered_by_frequency and not all(
            map(np.array_equal, *map(jax.tree.leaves, tables))
        ):
            raise UserError(
                f"init_from={path}: its {name} orders words by their frequencies, which differ in "
                f"this run: give this run the data of that run, or another model.{name}."
            )
        return
    try:
        converted = component.for_lexicon(params, source, target)
        # `for_lexicon` returns a parameter unchanged unless it depends on the words.
        leaves = zip(jax.tree.leaves(params), jax.tree.leaves(converted), strict=True)
        depends_on_words = any(leaf is not converted_leaf for leaf, converted_leaf in leaves)
    except UserError:
        depends_on_words = True
    if depends_on_words:
        raise UserError(
            f"init_from={path}: its {name} has parameters of its words, but the words, features or "
            f"letters of this run differ ({len(source):,} words there, {len(target):,} here): give "
            f"this run the data and the vocabulary of that run, or another model.{name}."
        )
