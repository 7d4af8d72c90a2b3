"""What depends on the platform and the number of devices is asked of the mesh of the arrays."""

import jax
import jax.numpy as jnp
import pytest
from jax import export
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests import layouts
from tests.marks import slow
from zoo import losses
from zoo.base.arrays import sharded_functions

TOKENS, SIZE, WORDS = 1120, 64, 10_000


def weighted_loss(hidden, weights, bias, targets, token_weights):
    return losses.weighted_softmax_loss(hidden, weights, bias, targets, token_weights)


def arguments(mesh, batch, words):
    """The shapes of the loss's arguments on a mesh; None: on no mesh."""

    def shape(sizes, *names, dtype=jnp.float32):
        sharding = mesh and NamedSharding(mesh, P(*names))
        return jax.ShapeDtypeStruct(sizes, dtype, sharding=sharding)

    return (
        shape((TOKENS, SIZE), batch),
        shape((WORDS, SIZE), words),
        shape((WORDS,), words),
        shape((TOKENS,), batch, dtype=jnp.int32),
        shape((TOKENS,), batch),
    )


def abstract_mesh(platform, kind=AxisType.Auto, **axes):
    device = AbstractDevice(device_kind="a kind", num_cores=None, platform=platform)
    sizes, names = tuple(axes.values()), tuple(axes)
    return AbstractMesh(sizes, names, (kind,) * len(sizes), abstract_device=device)


def trace(mesh, **axes) -> str:
    gradients = jax.jit(jax.value_and_grad(weighted_loss, (0, 1)))
    shapes = arguments(mesh, axes.get("batch"), axes.get("words"))
    return str(gradients.trace(*shapes).jaxpr)


@pytest.fixture(params=[("gpu", 1), *slow((("tpu", 8),), (("cpu", 3),))])
def other_machine(request, monkeypatch):
    """A process with devices of its own, which are not those that it compiles for."""
    platform, count = request.param
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    monkeypatch.setattr(jax, "device_count", lambda: count)


def test_programs_for_devices_are_the_same_on_another_machine(other_machine, monkeypatch):
    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    meshes = {
        "four CPUs here": (mesh, {"batch": "data", "words": "model"}),
        "eight GPUs": (abstract_mesh("gpu", model=8), {"words": "model"}),
        "a CPU": (abstract_mesh("cpu", data=1), {}),
        "a GPU": (abstract_mesh("gpu", data=1), {}),
    }
    programs = {name: trace(place, **axes) for name, (place, axes) in meshes.items()}
    monkeypatch.undo()
    jax.clear_caches()
    assert programs == {name: trace(place, **axes) for name, (place, axes) in meshes.items()}
    # A CPU takes the words in many blocks, a GPU all at once.
    assert programs["a CPU"] != programs["a GPU"]


@pytest.mark.parametrize("data", [1, 2])
def test_sharded_words_are_not_gathered(data, other_machine):
    """Compiled for four CPUs in a process that has other devices by default."""
    mesh = jax.make_mesh((data, 4 // data), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    gradients = jax.jit(jax.value_and_grad(weighted_loss, (0, 1)))
    program = layouts.run(gradients, *arguments(mesh, "data", "model"))
    assert {each.kind for each in program.collectives} == {"all-reduce"}


@pytest.mark.parametrize(
    ("mesh", "local"),
    [
        (abstract_mesh("gpu", data=1), True),
        (abstract_mesh("gpu", data=2), False),
        (abstract_mesh("gpu", AxisType.Explicit, data=2, model=1), False),
        (abstract_mesh("gpu", AxisType.Manual, data=2, model=3), True),
    ],
)
def test_arrays_of_a_mesh_of_one_device_or_manual_axes_are_local(mesh, local, other_machine):
    answers = []

    def function(x):
        answers.append((sharded_functions.platform(x), sharded_functions.is_local(x)))
        return x

    with jax.sharding.use_abstract_mesh(mesh):
        jax.jit(function).trace(jax.ShapeDtypeStruct((3,), jnp.float32))
    assert answers == [("gpu", local)]


def test_without_a_mesh_the_machine_is_asked(monkeypatch):
    x = jnp.ones(3)
    assert (sharded_functions.platform(x), sharded_functions.is_local(x)) == ("cpu", False)
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert (sharded_functions.platform(x), sharded_functions.is_local(x)) == ("gpu", True)


def test_a_program_for_several_platforms_is_that_of_none_of_them(random, other_machine):
    """Its form does not depend on the machine that exports it, and it runs on this one."""
    shapes = arguments(None, None, None)
    platforms = "cpu", "tpu", "cuda"
    with sharded_functions.for_any_platform():
        program = export.export(jax.jit(weighted_loss), platforms=platforms)(*shapes)
        jaxpr = trace(None)
    assert (program.platforms, program.nr_devices) == (platforms, 1)
    assert jaxpr != trace(abstract_mesh("cpu", data=1))
    hidden, weights = (
        random.normal(size=shape.shape).astype("float32") / 8 for shape in shapes[:2]
    )
    rest = jnp.zeros(WORDS), jnp.arange(TOKENS), jnp.ones(TOKENS)
    value, expected = program.call(hidden, weights, *rest), weighted_loss(hidden, weights, *rest)
    assert float(value) == pytest.approx(float(expected), rel=1e-6)
