"""Lower bounds of the memory of a training run, from shapes alone.

They count the parameters, the optimiser's state, the carry, and the arrays of a batch. A run that
passes may still need more memory than there is; a run that is refused cannot fit, mostly because
of a zero too many in its recipe.
"""

import collections
import math
from collections.abc import Iterator, Sequence

import jax

from zoo.arrays import memory
from zoo.configuration.fields import changed
from zoo.experiment import Experiment
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel
from zoo.runs import workdir
from zoo.training.updates import choose_updates


def check(experiment: Experiment, lexicons: Sequence[Lexicon], devices: list):
    """Checks that the least memory of a run fits the machine; nothing is allocated."""
    # Devices of the host share its memory; accelerators have one each.
    shared = len(devices) if devices[0].platform == "cpu" else 1
    for what, needed in needs(experiment, lexicons, shared):
        memory.check(what, needed)


def needs(
    experiment: Experiment, lexicons: Sequence[Lexicon], devices: int = 1
) -> Iterator[tuple[str, int]]:
    """Yields (name, least bytes) of the needs of a run, the cheapest to compute first.

    Each need is cheap to compute if the needs before it fit in memory.
    """
    model = experiment.model
    yield from workdir.of_model(model)
    yield workdir.of_batches(model, experiment.training, "training", "batch")
    yield workdir.of_batches(model, experiment.evaluation, "evaluation", "batch")
    yield from _of_state(experiment, lexicons, devices)


def _of_state(experiment, lexicons, devices):
    """Yields (name, least bytes) of the training state: of each repeated layer, then of the whole.

    A model of a thousand layers takes long to build even as shapes alone. So models of one and two
    layers are built, and each further layer is taken to add what the second adds to the first.
    An encoder has as many layers as its decoder.
    """
    model = experiment.model
    repeated = collections.defaultdict(list)
    for path, name, value in workdir.whole_numbers(model):
        if name in workdir.REPEATS and value > 2:
            repeated[name, value].append(path)
    least = changed(model, {path: 1 for paths in repeated.values() for path in paths})
    first = total = _state_bytes(experiment, least, lexicons)
    for (_, value), paths in repeated.items():
        second = _state_bytes(experiment, changed(least, dict.fromkeys(paths, 2)), lexicons)
        added = (value - 1) * (second - first)
        yield " and ".join(f"model.{path}={value}" for path in paths), devices * added
        total += added
    # With words sharded, `parallel.model` devices together hold at least one copy.
    copies = max(1, devices // experiment.parallel.model)
    on = f" on {devices} devices" if devices > 1 else ""
    yield f"the state of this training (parameters, optimiser, carry){on}", copies * total


def _state_bytes(experiment, model, lexicons) -> int:
    """Computes the bytes of a model's training state on one device."""
    training = experiment.training
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), *lexicons))
    trees = [shapes]
    if isinstance(model, LanguageModel):
        trees.append(jax.eval_shape(lambda: model.initial_carry(training.batch)))
    trained = {name: part for name, part in shapes.items() if name not in training.frozen}
    optimizer = choose_updates(training, shapes, model.row_tables(shapes), 1, 10**9)
    trees.append(jax.eval_shape(optimizer.init, trained))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(trees))
