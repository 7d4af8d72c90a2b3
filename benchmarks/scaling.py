"""Time and memory of the recipes of the 1 Billion Word benchmark on accelerators, on paper.

    python -m benchmarks.scaling                     # the tables of docs/scaling.md
    python -m benchmarks.scaling lm1b_lstm_2048_512  # the tables of one recipe
    python -m benchmarks.scaling --memory            # memory of compiled steps on 16 devices
    python -m benchmarks.scaling --collectives       # data sent by steps on 1 to 16 devices

The step of each recipe is traced at its full size for one device's share of the batch rows, from
shapes alone, and counted by `benchmarks.costs`. The assumptions are in docs/scaling.md.
"""

import argparse
import collections
import math
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp

import configs
from benchmarks import compiled, costs, step_shapes
from zoo import changed
from zoo.lab.training import average
from zoo.lab.training.devices import MeshDevices, PmapDevices, with_layout
from zoo.lab.training.step import TrainState
from zoo.lab.training.updates import choose_updates

SIZE = 793_471  # words
EPOCH_TOKENS = 829_250_940  # tokens of the training text, with a boundary after each sentence
NUMBER = 4  # bytes of a float32
REACHED = 0.5  # assumed fraction of the peaks of arithmetic, memory and links


class Device(NamedTuple):
    """The peak rates of a device.

    Attributes:
      name: its name.
      operations: operations a second, in matrix products.
      memory: bytes a second from and to memory.
      room: bytes of memory.
      link: bytes a second to other devices.
    """

    name: str
    operations: float
    memory: float
    room: float
    link: float


V5E = Device("v5e", 197e12, 819e9, 16e9, 200e9)
V6E = Device("v6e", 918e12, 1640e9, 32e9, 448e9)
H100 = Device("H100", 494e12, 3350e9, 80e9, 450e9)
LAYOUTS = ((V5E, 16), (V6E, 16), (H100, 1), (H100, 8))


class Counts(NamedTuple):
    """The work and memory of a recipe's step.

    Attributes:
      products: the products of a step on one device, see `costs.count_products`.
      params: bytes of all parameters.
      tables: bytes of the parameters with a row for each word.
      dense: bytes of the parameters that every step updates whole.
      state: bytes of the parameters and the optimiser's state.
      rows: bytes of the rows that a step of all devices updates in row-sparse tables.
    """

    products: dict
    params: int
    tables: int
    dense: int
    state: int
    rows: int = 0


def count(name: str, devices: int) -> Counts:
    """Counts the step of a recipe, for one of `devices` devices."""
    recipe = configs.load(name)
    lexicon = step_shapes.ranked_lexicon(SIZE)
    step = step_shapes.from_language_model(recipe, lexicon, devices)
    state = step.arguments[0]
    leaves = jax.tree.leaves(state.params)
    params, slots = _bytes(leaves), _bytes(jax.tree.leaves(state.optimizer_state))
    by_rows = rows = 0
    tokens = recipe.training.batch * recipe.training.length
    paths = recipe.language_model.row_tables(state.params)
    updates = choose_updates(recipe.training, state.params, paths, 1, recipe.training.epochs)
    for path in getattr(updates, "paths", ()):
        table = _bytes([_at(state.params, path)])
        # A row for each token, of the input or the target, and a row for each noise word.
        noise = 0 if path[0] == "embedding" else getattr(recipe.head, "samples", 0)
        by_rows += table
        rows += table * (tokens + noise) // SIZE
    tables = _bytes([leaf for leaf in leaves if leaf.shape and leaf.shape[0] >= SIZE])
    products = costs.count_products(step.function, *step.arguments)
    return Counts(products, params, tables, params - by_rows, params + slots, rows)


def _at(tree, path):
    for name in path:
        tree = tree[name]
    return tree


def _bytes(leaves) -> int:
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


def step_seconds(counts: Counts, device: Device, devices: int) -> tuple[float, float]:
    """Returns (seconds of a step's work on each device, seconds of summing the gradients).

    A dense update reads parameters, gradients and accumulators, and writes parameters and
    accumulators.
    """
    work = costs.seconds(counts.products, device.operations, device.memory)
    work += 5 * counts.dense / device.memory
    # A ring sends dense gradients twice, to sum and to distribute them; rows are only gathered.
    sent = (2 * counts.dense + counts.rows) * (devices - 1) / devices
    return work / REACHED, sent / device.link / REACHED


def memory(counts: Counts, devices: int) -> tuple[float, float]:
    """Returns bytes a device, without activations: (all replicated, word tables sharded)."""
    gradients = counts.dense
    shared = counts.tables * (counts.state / counts.params)
    replicated = counts.state + gradients
    dense_tables = min(counts.tables, counts.dense)
    return replicated, replicated - (shared + dense_tables) * (1 - 1 / devices)


def table(names) -> str:
    """Renders the tables as Markdown."""
    lines = [
        "| recipe | parameters, billions | operations a token, millions | parameters, optimiser "
        "and gradients, GB |",
        "|---|---|---|---|",
    ]
    rows = [
        "| recipe | devices | work, ms | gradients, ms | tokens a second | hours for 5 epochs | "
        "GB a device | sharded tables, GB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        recipe = configs.load(name).training
        tokens = recipe.batch * recipe.length
        by_devices = {number: count(name, number) for number in {number for _, number in LAYOUTS}}
        single = by_devices[1]
        token_operations = costs.operations(single.products) / tokens / 1e6
        lines.append(
            f"| `{name}` | {single.params / NUMBER / 1e9:.2f} | {token_operations:,.0f} | "
            f"{memory(single, 1)[0] / 1e9:.1f} |"
        )
        for device, number in LAYOUTS:
            work, sent = step_seconds(by_devices[number], device, number)
            a_second = tokens / (work + sent)
            replicated, sharded = (size / 1e9 for size in memory(by_devices[number], number))
            fits = "" if replicated * 1e9 < device.room else " (does not fit)"
            hours = 5 * EPOCH_TOKENS / a_second / 3600
            rows.append(
                f"| `{name}` | {number} x {device.name} | {work * 1e3:.1f} | {sent * 1e3:.1f} | "
                f"{a_second:,.0f} | {hours:.1f} | {replicated:.1f}{fits} | {sharded:.1f} |"
            )
    return "\n".join([*lines, "", *rows])


# ------------------------------------------------------------ compiled steps

MESHES = ((4, 4), (1, 16))
# Memory is planned before machine code is generated, and the code is not run: it is optimised as
# little as possible, as convolutions over letters would take the compiler many minutes.
AS_CHEAP_AS_CAN_BE = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}


def compiled_memory(name: str, data: int, model: int) -> tuple[int, int, int]:
    """Returns bytes a device: (arguments of a step, its temporary memory, initialisation).

    The programs are compiled for a mesh of CPU devices and not run.

    Args:
      name: name of the recipe, compiled at its full size.
      data: devices along the data axis.
      model: devices along the model axis.
    """
    recipe, lexicon = configs.load(name), step_shapes.ranked_lexicon(SIZE)
    step = step_shapes.from_language_model(recipe, lexicon)
    devices = mesh_of(recipe, step, data, model)
    analysis = compiled_on_mesh(step, devices).memory_analysis()
    optimizer = step.function.keywords["optimizer"]

    def initial_state(key):
        params = recipe.language_model.init(key, lexicon)
        start = recipe.language_model.initial_carry(devices.batch), jnp.zeros((), jnp.int32)
        return TrainState(params, optimizer.init(params), *start)

    layouts = devices.layouts(step.arguments[0])
    drawing = jax.jit(initial_state, out_shardings=layouts)
    initial = drawing.lower(jax.random.key(0)).compile(AS_CHEAP_AS_CAN_BE).memory_analysis()
    return (
        analysis.argument_size_in_bytes,
        analysis.temp_size_in_bytes,
        initial.output_size_in_bytes + initial.temp_size_in_bytes,
    )


def mesh_of(recipe, step, data: int, model: int) -> MeshDevices:
    """Makes the mesh of data x model devices for a step of `step_shapes`."""
    axes = average.collect_axes(recipe.model, ("embedding", "head"))
    batch = recipe.training.batch
    return MeshDevices(data * model, batch, model, step.arguments[0], axes, [SIZE])


def compiled_by_pmap(step, devices: PmapDevices):
    """Compiles a step for devices that each have their own batch rows, from shapes alone."""

    def split(leaf):
        batch_rows = leaf.shape[0] // devices.count
        return jax.ShapeDtypeStruct((devices.count, batch_rows, *leaf.shape[1:]), leaf.dtype)

    state, tables, batch, key = step.arguments
    state = state._replace(carry=jax.tree.map(split, state.carry))
    function = devices.compile(step.function.func, **step.function.keywords)
    return function.lower(state, tables, jax.tree.map(split, batch), key).compile()


def compiled_on_mesh(step, devices: MeshDevices):
    """Compiles a step for a mesh, from shapes alone."""
    function = devices.compile(step.function.func, **step.function.keywords)
    state, tables, batch, _ = step.arguments
    layouts = (
        devices.layouts(state),
        jax.tree.map(lambda x: devices.table_layout(x.shape), tables),
        jax.tree.map(lambda _: devices.by_rows, batch),
        devices.replicated,
    )
    shapes = jax.tree.map(with_layout, step.arguments, layouts)
    return function.lower(*shapes).compile(AS_CHEAP_AS_CAN_BE)


def memory_table(names) -> str:
    """Renders the memory of compiled steps on each of sixteen devices as Markdown."""
    lines = [
        "| recipe | data x model | state and batch, GB | besides, GB | together, GB | "
        "start values, GB |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        for data, model in MESHES:
            state, besides, start = (n / 1e9 for n in compiled_memory(name, data, model))
            lines.append(
                f"| `{name}` | {data} x {model} | {state:.2f} | {besides:.2f} | "
                f"{state + besides:.2f} | {start:.2f} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


# ------------------------------------------------------------ data sent by compiled steps

COUNTS = (1, 2, 4, 8, 16)
BATCH_ROWS = 128  # batch rows a device, in weak scaling


class DeviceWork(NamedTuple):
    """The work of a compiled step on each device.

    Attributes:
      products: the matrix products.
      sent: {kind of transfer: bytes sent}.
      argument_bytes: of the state and the batch.
    """

    products: collections.Counter
    sent: dict[str, float]
    argument_bytes: int


def count_device_work(name: str, data: int, model: int, batch_rows: int) -> DeviceWork:
    """Counts the step of a recipe, as the trainer compiles it for a mesh of data x model devices.

    Args:
      name: name of the recipe.
      data: devices along the data axis.
      model: devices along the model axis; with 1, the step is compiled by `jax.pmap`.
      batch_rows: total number of batch rows.
    """
    recipe = changed(configs.load(name), {"training.batch": batch_rows})
    step = step_shapes.from_language_model(recipe, step_shapes.ranked_lexicon(SIZE))
    if model > 1:
        program = compiled_on_mesh(step, mesh_of(recipe, step, data, model))
    else:
        program = compiled_by_pmap(step, PmapDevices(data, batch_rows))
    collectives, products = compiled.read(program.as_text())
    sent: dict[str, float] = collections.defaultdict(float)
    for collective in collectives:
        sent[collective.kind] += collective.sent * collective.times
    return DeviceWork(products, sent, program.memory_analysis().argument_size_in_bytes)


def meshes(count: int) -> list[tuple[int, int]]:
    """Lists layouts of devices, data x model: batch rows split, words split, or both evenly."""
    middle = 2 ** (int(math.log2(count)) // 2)
    return [*dict.fromkeys([(count, 1), (count // middle, middle), (1, count)])]


def collectives_table(name: str, device: Device = V5E) -> str:
    """Renders strong and weak scaling of a recipe's step as Markdown."""
    recipe = configs.load(name).training
    lines = [
        "| data x model | rows | GB a device | work, ms | summed, MB | gathered, MB | other, MB | "
        "sending, ms | tokens a second | efficiency |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    baseline = 0.0  # tokens a second of one device, the first layout
    layouts = [mesh for count in COUNTS for mesh in meshes(count)]
    weak = [(mesh, BATCH_ROWS * math.prod(mesh)) for mesh in layouts]
    strong = [(mesh, recipe.batch) for mesh in layouts]
    for (data, model), batch_rows in [*strong, *weak[1:]]:
        counts = count_device_work(name, data, model, batch_rows)
        work = costs.seconds(counts.products, device.operations, device.memory) / REACHED
        sending = sum(counts.sent.values()) / device.link / REACHED
        a_second = batch_rows * recipe.length / (work + sending)
        baseline = baseline or a_second
        share = a_second / (data * model) / baseline
        summed, gathered = counts.sent["all-reduce"], counts.sent["all-gather"]
        remaining = sum(counts.sent.values()) - summed - gathered
        lines.append(
            f"| {data} x {model} | {batch_rows} | {counts.argument_bytes / 1e9:.1f} | "
            f"{work * 1e3:.1f} | {summed / 1e6:,.0f} | {gathered / 1e6:,.0f} | "
            f"{remaining / 1e6:,.0f} | {sending * 1e3:.1f} | {a_second:,.0f} | {share:.2f} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main():
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="recipes; default: all lm1b recipes")
    for table in ("memory", "collectives"):
        parser.add_argument(f"--{table}", action="store_true")
    arguments = parser.parse_args()
    names = arguments.names or [
        name
        for name in configs.names()
        if name.startswith("lm1b") and name not in ("lm1b_small", "lm1b_full")
    ]
    if arguments.memory or arguments.collectives:
        jax.config.update("jax_num_cpu_devices", 16)
    if arguments.collectives:
        print(collectives_table((arguments.names or ["lm1b_lstm_8192_2048"])[0]))
        return
    print((memory_table if arguments.memory else table)(names))


if __name__ == "__main__":
    main()
