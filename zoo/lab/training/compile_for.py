"""A recipe's steps compiled for accelerators that the machine does not have.

JAX compiles for TPUs with the package libtpu, and for GPUs with its CUDA plugin and ptxas, on any
machine: the accelerator's own compiler gives memory and collectives. Nothing is run.
"""

import importlib.util
import math
import os
import pathlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import NamedSharding, PartitionSpec

from zoo.base.arrays import sharded_functions
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.evaluation import perplexity
from zoo.lab.table import Column, Table
from zoo.lab.training import average, compiled_programs, product_counts, step_shapes
from zoo.lab.training.devices import (
    DATA,
    Devices,
    TrainState,
    choose_devices,
    with_layout,
)
from zoo.lab.training.step_shapes import StepShapes
from zoo.lexicon import Lexicon

_RATES = tomllib.loads(pathlib.Path(__file__).with_name("targets.toml").read_text())
# libtpu asks the machine for its TPUs unless it is told of some.
_TPU_MACHINE = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
}
_COLUMNS = [
    *(Column("program"), Column("fits"), Column("memory, GB", ".3f"), Column("state", ".3f")),
    *(Column("arguments", ".3f"), Column("temporary", ".3f"), Column("Gflop", ",.1f")),
    *(Column("products, ms", ",.3f"), Column("sending, ms", ",.3f"), Column("least, ms", ",.3f")),
]
_COLLECTIVES = [
    *(Column("program"), Column("collective"), Column("a step", ","), Column("in loops", ",")),
    *(Column("MB sent", ",.2f"), Column("largest, MB", ",.2f")),
]


class Target(NamedTuple):
    """Accelerators of one kind, for which programs are compiled."""

    name: str  # as the user wrote it
    devices: list
    rates: dict[str, Any]  # peak rates and memory of a chip; see targets.toml
    options: dict[str, Any]  # of the compiler

    @classmethod
    def from_text(cls, text: str) -> "Target":
        """Loads the compiler for a target such as v5e:2x4, H100:8 or H100:2x8 (hosts x GPUs)."""
        kind, _, shape = text.partition(":")
        if kind not in _RATES or not re.fullmatch(r"[1-9]\d*(x[1-9]\d*){0,2}", shape):
            raise UserError(
                f"--compile-for {text}: give one of {', '.join(_RATES)} with a shape, as in "
                "v5e:2x4, H100:8 or H100:2x8."
            )
        jax.config.update("jax_platforms", "cpu")  # the machine's own devices are not used
        is_gpu, options, version = "description" in _RATES[kind], {}, jax.__version__
        packages, modules = f"'jax[tpu]=={version}'", ["libtpu"]
        if is_gpu:
            plugin = f"jax-cuda12-plugin=={version} jax-cuda12-pjrt=={version}"
            packages = f"--no-deps {plugin} nvidia-cuda-nvcc-cu12"
            modules = ["jax_cuda12_plugin", "jax_plugins.xla_cuda12", "nvidia.cuda_nvcc"]
        if not all(map(_is_installed, modules)):
            raise UserError(
                f"--compile-for {text} needs the compiler of its kind: pip install {packages}"
            )
        try:
            if is_gpu:
                spec: Any = importlib.util.find_spec("nvidia.cuda_nvcc")
                (folder,) = spec.submodule_search_locations
                os.environ["PATH"] += f"{os.pathsep}{folder}/bin"  # ptxas
                options = {"xla_gpu_autotune_level": 0, "xla_gpu_cuda_data_dir": folder}
                topology = topologies.get_topology_desc(
                    *("", "cuda"),
                    target_config=_RATES[kind]["description"],
                    topology="x".join(["1"] * (2 - shape.count("x")) + [shape]),
                )
            else:
                for name, value in _TPU_MACHINE.items():
                    os.environ.setdefault(name, value)
                topology = topologies.get_topology_desc(f"{kind}:{shape}", "tpu")
        except jax.errors.JaxRuntimeError as error:
            raise UserError(f"--compile-for {text}: {error}") from error
        return cls(text, [*topology.devices], _RATES[kind], options)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def describe(experiment: Experiment, lexicon: Lexicon, target: Target) -> Iterator[str]:
    """Compiles the training and the evaluation step of a language model; yields lines of tables."""
    step, devices = place_step(experiment, lexicon, target)
    yield f"{len(lexicon):,} words; {devices.summary}; {target.name}, compiled and not run"
    state_size = state_bytes(step.arguments[0], devices)
    rows: list[list] = []
    collective_rows: list[list] = []
    messages = []
    for name, shapes, lowered in (
        ("training", step, lower_step(step, devices)),
        ("evaluation", *_lower_evaluation(experiment, step, devices)),
    ):
        try:
            program = lowered.compile(target.options)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            rows.append([name, "no", None, state_size / 1e9])
            messages.append(f"{name}: {str(error).partition(chr(10))[0]}")
            continue
        collectives, _ = compiled_programs.read(program.as_text() or "")
        sending = sum(each.sent * each.times for each in collectives) / target.rates["link"]
        sizes, fits = _sizes(program.memory_analysis(), state_size, target)
        operations, work = _work(shapes, target)
        times = work * 1e3, sending * 1e3, max(work, sending) * 1e3
        rows.append([name, fits, *(size / 1e9 for size in sizes), operations / 1e9, *times])
        collective_rows += [[name, *row] for row in _collective_rows(collectives)]
    yield from Table(_COLUMNS, rows).text()
    yield from messages
    if collective_rows:
        yield ""
        yield from Table(_COLLECTIVES, collective_rows).text()


def place_step(
    experiment: Experiment, lexicon: Lexicon, target: Target
) -> tuple[StepShapes, Devices]:
    """Returns the training step of a language model, and the target's devices in its layout."""
    step = step_shapes.from_language_model(experiment, lexicon)
    devices = choose_devices(
        *(target.devices, experiment.training.batch, experiment.parallel, [len(lexicon)]),
        average.collect_axes(experiment.language_model, ("embedding", "head")),
        lambda: step.arguments[0],
    )
    return step, devices


def _sizes(stats, state_size: int, target: Target) -> tuple[tuple[int, ...], str]:
    """Returns (bytes of all, of the state, of arguments, and temporary; whether they fit)."""
    arguments, temporary = stats.argument_size_in_bytes, stats.temp_size_in_bytes
    total = arguments + temporary + stats.output_size_in_bytes - stats.alias_size_in_bytes
    fits = "yes" if total <= target.rates["memory"] else "no"
    return (total, state_size, arguments, temporary), fits


def _work(step: StepShapes, target: Target) -> tuple[float, float]:
    """Returns (operations of a chip's share of a step, their least seconds)."""
    with sharded_functions.for_any_platform():
        products = product_counts.count_products(step.function, *step.arguments)
    rates, count = target.rates, len(target.devices)
    seconds = product_counts.seconds(products, rates["operations"], rates["bandwidth"])
    return product_counts.operations(products) / count, seconds / count


def _collective_rows(collectives: Sequence[compiled_programs.Collective]) -> Iterator[list]:
    """Yields (kind, runs a step, of them in loops, MB sent, largest MB) for each kind."""
    for kind in compiled_programs.KINDS:
        parts = [each for each in collectives if each.kind == kind]
        if parts:
            times = sum(each.times for each in parts)
            in_loops = sum(each.times for each in parts if each.in_loop)
            sent = sum(each.sent * each.times for each in parts)
            yield [kind, times, in_loops, sent / 1e6, max(each.size for each in parts) / 1e6]


def state_bytes(state: TrainState, devices: Devices) -> int:
    """Counts the bytes of a TrainState on one device."""
    leaves = jax.tree.leaves(devices.shapes_for_steps(state))
    return sum(
        math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize for leaf in leaves
    )


def lower_step(step: StepShapes, devices: Devices) -> jax.stages.Lowered:
    """Lowers a training step for devices, from shapes alone."""
    function = devices.compile(step.function.func, **step.function.keywords)
    return function.lower(*devices.argument_shapes(*step.arguments))


def _lower_evaluation(
    experiment: Experiment, step: StepShapes, devices: Devices
) -> tuple[StepShapes, jax.stages.Lowered]:
    """Lowers the scoring of a batch of evaluation, as validation computes it."""
    model, evaluation = experiment.language_model, experiment.evaluation
    state, tables, *_ = step.arguments
    size = evaluation.batch, evaluation.length
    words, reset = jax.ShapeDtypeStruct(size, jnp.int32), jax.ShapeDtypeStruct(size, bool)
    carry = jax.eval_shape(lambda: model.initial_carry(evaluation.batch))
    batch = words, words, reset, carry
    mesh = perplexity.usable_mesh(devices.mesh, evaluation.batch)

    def scoring(mesh):
        score = perplexity.compiled_score_step(model, mesh)
        return lambda params, tables, *batch: score(
            params, tables, model.prepared(params, tables), *batch
        )

    def place(tree, layout):
        return jax.tree.map(lambda leaf: with_layout(leaf, layout), tree)

    params = jax.tree.map(with_layout, state.params, devices.layouts(state).params)
    rows = NamedSharding(devices.mesh, PartitionSpec(DATA)) if mesh else devices.replicated
    placed = params, place(tables, devices.replicated), *place(batch, rows)
    with jax.default_matmul_precision(perplexity.PRECISION):
        lowered = jax.jit(scoring(mesh)).lower(*placed)
    return StepShapes(scoring(None), (state.params, tables, *batch)), lowered
