"""What a run needs of memory at least, from shapes alone.

These are lower bounds: the parameters, what the optimiser and the carry add to them, and the arrays
of a batch. A run that is let through may still need more than there is; one that is refused cannot
run, mostly because of a zero too many.
"""

import collections
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from zoo.arrays import memory
from zoo.experiment import Experiment
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel
from zoo.recipes import walk
from zoo.recipes.changes import changed
from zoo.training.choose_updates import choose_updates

# Fields that say how often something is built: each of it is traced and compiled, which takes more
# than this of the host's memory (measured: 2.6 MB for each layer of an LSTM of 8 cells).
_REPEATS = ("layers", "highway")
_PROGRAM = 10**6
# Fields that are the length of some array of float32, at least.
_LENGTHS = ("size", "projection", "letter_size", "samples", "components", "classes", "correction")
_NUMBER = 4  # bytes of a float32 or an int32


def check(experiment: Experiment, lexicons: Sequence[Lexicon], devices: list):
    """Compares what a run needs at least with what there is; nothing is allocated.

    Args:
      lexicons: the run's words, those that the model is made of.
      devices: those that the state is on.

    Raises:
      UserError: it needs more; names the field, if it is one, and both numbers of bytes.
    """
    # Devices of the host share its memory; accelerators have one each.
    shared = len(devices) if devices[0].platform == "cpu" else 1
    for what, needed in needs(experiment, lexicons, shared):
        memory.check(what, needed)


def needs(
    experiment: Experiment, lexicons: Sequence[Lexicon], devices: int = 1
) -> Iterator[tuple[str, int]]:
    """(what, bytes that it needs at least), each cheap to find once those before it are granted.

    Args:
      lexicons: the run's words.
      devices: that share one memory and hold a copy of the state each.
    """
    model, training, evaluation = experiment.model, experiment.training, experiment.evaluation
    for path, name, value in _whole_numbers(model):
        if name in _LENGTHS:
            yield f"model.{path}={value}", value * _NUMBER
        if name in _REPEATS:
            yield f"model.{path}={value}", value * _PROGRAM
    for where, lanes, recipe in (
        ("training", "batch", training),
        ("evaluation", "lanes", evaluation),
    ):
        count, length, vector = getattr(recipe, lanes), 1, _NUMBER  # pairs have a word at least
        of_length = ""
        if isinstance(model, LanguageModel):
            length, vector = recipe.length, _NUMBER * model.embedding.size  # into the core
            of_length = f" x {where}.length={length}"
        needed = _batch_bytes(count, length) + count * length * vector
        yield f"{where}.{lanes}={count}{of_length}", needed
    yield from _of_state(experiment, lexicons, devices)


def _batch_bytes(lanes: int, length: int) -> int:
    """What a batch of a text takes at least: words, targets, positions and two masks."""
    return lanes * length * (4 + 4 + 8 + 1 + 1)


def _of_state(experiment, lexicons, devices):
    """The state of the training, of which every device has a copy, by what is built repeatedly.

    A model of a thousand layers takes long to build even as shapes alone. What each layer adds is
    that which the second adds to the first; an encoder has as many as its decoder.
    """
    model = experiment.model
    repeated = collections.defaultdict(list)
    for path, name, value in _whole_numbers(model):
        if name in _REPEATS and value > 2:
            repeated[name, value].append(path)
    least = changed(model, {path: 1 for paths in repeated.values() for path in paths})
    first = total = _state_bytes(experiment, least, lexicons)
    for (_, value), paths in repeated.items():
        second = _state_bytes(experiment, changed(least, dict.fromkeys(paths, 2)), lexicons)
        added = (value - 1) * (second - first)
        yield " and ".join(f"model.{path}={value}" for path in paths), devices * added
        total += added
    # Devices that share out words may have less than a copy each, but for the layers above.
    copies = max(1, devices // experiment.parallel.model)
    on = f" on {devices} devices" if devices > 1 else ""
    yield f"the state of this training (parameters, optimiser, carry){on}", copies * total


def _state_bytes(experiment, model, lexicons) -> int:
    """Bytes of the state of a model's training on one device."""
    training = experiment.training
    shapes = jax.eval_shape(lambda key: model.init(key, *lexicons), jax.random.key(0))
    trees = [shapes]
    if isinstance(model, LanguageModel):
        trees.append(jax.eval_shape(lambda: model.initial_carry(training.batch)))
    trained = {name: part for name, part in shapes.items() if name not in training.frozen}
    optimizer = choose_updates(training, model.row_tables(shapes), 1, 10**9)
    trees.append(jax.eval_shape(optimizer.init, trained))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(trees))


def _whole_numbers(component: Any) -> Iterator[tuple[str, str, int]]:
    """(dotted path, name, value) of each whole number in a component and those within it."""
    for path, name, value in walk.values(component):
        if isinstance(value, int) and not isinstance(value, bool):
            yield path, name, value
