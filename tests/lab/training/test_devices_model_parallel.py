"""Every mesh of devices, (data, model), gives the same training; with SGD, for Adam hides wrong
scales."""

import dataclasses
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.lab.training import small, test_tasks_translation
from zoo import heads
from zoo.attention import Luong
from zoo.base.arrays.parameter_sharding import path_name
from zoo.cores import LSTM
from zoo.data import Buckets
from zoo.embeddings import Lookup
from zoo.errors import Interrupted, UserError
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import devices
from zoo.lab.training.compiled_programs import read
from zoo.lab.training.devices import MeshDevices
from zoo.lab.training.step import TrainState
from zoo.models import SequenceToSequence
from zoo.optimizers import SGD, Adagrad, Adam

# Of 12 words, and of 13 words or 15 features, which no mesh of two or four along words divides.
HEADS = {
    "softmax": {"model": small.MODEL},
    "13 words": {"model": small.MODEL, "words": 12},
    "log-linear": small.MODELS["log-linear"],
    "sampled": {"head": heads.NCE(samples=5)},
    "adaptive": {"head": heads.AdaptiveSoftmax(cutoffs=(4, 8), division=2)},
    "mixture": {"head": heads.MixtureOfSoftmaxes(components=3)},
}


def recipe_of(name="softmax", model=1, **training):
    """Nine short sentences, with dropout on."""
    settings = dict(HEADS[name])
    if "head" in settings:
        settings["model"] = dataclasses.replace(small.MODEL, head=settings.pop("head"))
    settings |= {"sentences": 9, "length": 4, "epochs": 2, "shuffle": True} | training
    recipe = small.experiment(**settings)
    return small.with_settings(recipe, f"parallel.model={model}")


def trained(folder, devices, name="softmax", model=1, **training):
    """(the last arrays, the progress) of a run over devices."""
    trainer = small.trainer(recipe_of(name, model, **training), folder, devices)
    progress = trainer.train()
    return small.last_state(trainer)[1], progress


def check_equal(run, expected):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=5e-6),
        (run[0].params, run[0].carry, run[0].optimizer_state),
        (expected[0].params, expected[0].carry, expected[0].optimizer_state),
    )
    assert run[1].best == pytest.approx(expected[1].best, abs=1e-5)


@pytest.fixture(scope="module")
def trained_alone(tmp_path_factory):
    """{name of a head: what one device gives}, as it is asked for."""
    runs = {}

    def run_of(name="softmax"):
        if name not in runs:
            runs[name] = trained(tmp_path_factory.mktemp("alone"), 1, name)
        return runs[name]

    return run_of


# (devices along the data axis, devices along the model axis); with one along that: test_devices.py
MESHES = [(1, 2), (2, 2), (1, 4)]
AT_ONCE = {("13 words", 2, 2)}


CASES = [
    pytest.param(*case, marks=() if case in AT_ONCE else (pytest.mark.slow,))
    for case in (("13 words", 1, 3), *((name, *mesh) for name in HEADS for mesh in MESHES))
]


@pytest.mark.parametrize(("name", "data", "model"), CASES)
def test_a_mesh_changes_nothing_but_rounding(tmp_path, trained_alone, name, data, model):
    check_equal(trained(tmp_path / "mesh", data * model, name, model), trained_alone(name))


@pytest.mark.parametrize(
    ("data", "model", "optimizer"),
    [
        (2, 2, Adagrad(0.5)),
        (1, 4, SGD(1.0)),
        (1, 2, Adam()),
        (1, 3, Adagrad(0.5)),
    ],
)
@pytest.mark.slow
def test_rows_are_updated_where_they_lie(tmp_path, data, model, optimizer):
    options = {"optimizer": optimizer, "row_sparse": True, "clip": 0.5, "batch": 12}
    run = trained(tmp_path / "mesh", data * model, "sampled", model, **options)
    check_equal(run, trained(tmp_path / "alone", 1, "sampled", **options))
    # What the optimiser keeps of a table lies as the table does.
    trainer = small.trainer(recipe_of("sampled", model, **options), tmp_path, data * model)
    for leaf in jax.tree.leaves(begun(trainer).optimizer_state["rows"]):
        assert leaf.addressable_shards[0].data.shape[0] == 12 // model


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("softmax", (1, 4), (1, 2)),
        ("softmax", (2, 2), (1, 1)),
        ("softmax", (1, 1), (2, 2)),
        ("softmax", (4, 1), (1, 4)),
        ("13 words", (1, 4), (1, 3)),
        ("13 words", (1, 4), (1, 1)),
        ("13 words", (1, 1), (1, 3)),
    ],
)
@pytest.mark.slow
def test_a_run_goes_on_with_another_mesh(tmp_path, trained_alone, name, before, after):
    """Interrupted within an epoch, its dropout and the order of its sentences too."""
    folder = tmp_path / "run"
    first = small.trainer(recipe_of(name, before[1]), folder, before[0] * before[1])
    first._stop = signal.SIGTERM  # after the first step
    with pytest.raises(Interrupted, match="after step 1"):
        first.train()
    check_equal(trained(folder, after[0] * after[1], name, after[1]), trained_alone(name))


def begun(trainer):
    """The state that a trainer would take its first step with."""
    checkpoints = small.Checkpoints(trainer.workdir / "checkpoints")
    try:
        trainer._begin(checkpoints)
        return trainer.state
    finally:
        checkpoints.close()


@pytest.mark.parametrize(("name", "data", "model"), CASES)
def test_all_meshes_start_with_the_same_values(tmp_path, name, data, model):
    """To the bit: what is drawn in parts is what one device draws."""
    recipe = recipe_of(name, model, optimizer=Adam(), average=0.9)
    trainer = small.trainer(recipe, tmp_path, data * model)
    state = small.on_host(begun(trainer), trainer.devices)
    jax.tree.map(np.testing.assert_array_equal, state, trainer.initial_state())


# ------ FSDP: between steps, what a step needs whole lies in parts over all devices


@pytest.fixture
def many_parts(monkeypatch):
    """Arrays of ten numbers count as large; neither 6 x 24, 13 x 7 nor 13 divide by four."""
    monkeypatch.setattr(devices, "LARGE", 10)


@pytest.mark.parametrize(
    ("name", "data", "model"),
    [
        ("13 words", 2, 2),
        *(pytest.param("13 words", *mesh, marks=pytest.mark.slow) for mesh in [(4, 1), (1, 4)]),
        *(pytest.param(name, 4, 1, marks=pytest.mark.slow) for name in ("adaptive", "sampled")),
    ],
)
def test_fsdp_changes_nothing_but_rounding(tmp_path, trained_alone, many_parts, name, data, model):
    recipe = small.with_settings(recipe_of(name, model), "parallel.fsdp=True")
    trainer = small.trainer(recipe, tmp_path / "parts", data * model)
    progress = trainer.train()
    check_equal((small.last_state(trainer)[1], progress), trained_alone(name))


@pytest.mark.slow
def test_a_run_goes_on_with_fsdp_and_without(tmp_path, trained_alone, many_parts):
    folder, recipe = tmp_path / "run", recipe_of("13 words")
    first = small.trainer(small.with_settings(recipe, "parallel.fsdp=True"), folder, 4)
    first._stop = signal.SIGTERM  # after the first step
    with pytest.raises(Interrupted, match="after step 1"):
        first.train()
    check_equal(trained(folder, 2, "13 words", 2), trained_alone("13 words"))


@pytest.mark.parametrize(("data", "model"), [(4, 1), (2, 2)])
def test_fsdp_holds_once_what_a_step_needs_whole(tmp_path, many_parts, data, model):
    """With the optimiser's moments and the average of parameters; of 13 words, too."""
    recipe = recipe_of("13 words", model, optimizer=Adam(), average=0.9)
    trainer = small.trainer(small.with_settings(recipe, "parallel.fsdp=True"), tmp_path, 4)
    parts = {
        leaf.shape: leaf.addressable_shards[0].data.shape
        for leaf in jax.tree.leaves(begun(trainer)._replace(carry=()))
        if leaf.size >= 10
    }
    rows = 16 if model == 1 else 14  # padded to a multiple of the devices
    tables = {(rows, 6): (rows // 4 if model == 1 else 7, 6)}
    tables |= {(rows, 7): (rows // 4 if model == 1 else 7, 7)}
    assert parts.items() >= tables.items()
    whole = {shape: part for shape, part in parts.items() if shape[0] != rows}
    assert whole and all(np.prod(shape) == 4 * np.prod(part) for shape, part in whole.items())


def test_a_run_starts_on_a_mesh_with_values_of_another_run(tmp_path):
    first = small.run_in(tmp_path / "first", recipe_of(epochs=1))
    recipe = dataclasses.replace(recipe_of(model=2, seed=3), init_from=str(first))
    trainer = small.trainer(recipe, tmp_path / "second", 4)
    Workdir(tmp_path / "second").claim(recipe)
    start_params = trainer.task.start(trainer.init_from, trainer.recipe.frozen).params
    assert {*start_params} == {"embedding", "core", "head"}
    state = begun(trainer)
    jax.tree.map(np.testing.assert_array_equal, state.params, start_params)
    assert state.params["head"]["weights"].addressable_shards[0].data.shape == (6, 7)


ROWS, COLUMNS = 4096, 64


def test_a_table_is_drawn_kept_and_read_in_its_parts(tmp_path):
    """On no device as much as the whole of it, which is a megabyte, and not on the host either."""
    head = heads.Softmax()
    lexicon = examples.plain_lexicon(ROWS)

    def initial_state(key, start_params):
        params = {"head": head.init(key, COLUMNS, lexicon), **start_params}
        moments = jax.tree.map(jnp.zeros_like, params)
        return TrainState(params, moments, jnp.zeros((4, 3)), jnp.zeros((), jnp.int32))

    key = jax.random.key(0)
    shapes = jax.eval_shape(initial_state, key, {})
    axes = {"head/weights": head.parameter_axes["weights"], "head/bias": ("words",)}
    meshes = [MeshDevices(4, 4, model, shapes, axes, [ROWS]) for model in (4, 2)]
    table = ROWS * COLUMNS * 4
    draw = jax.jit(initial_state, out_shardings=meshes[0].layouts(shapes))
    memory = draw.lower(key, {}).compile().memory_analysis()
    assert memory.output_size_in_bytes < 0.6 * table
    assert memory.temp_size_in_bytes < table  # three arrays of a part's size, where none is fused
    state = meshes[0].draw_state(initial_state, key, {})
    expected = jax.device_get(state)
    largest = []
    put = np.asarray

    def counted(array, *arguments, **options):
        result = put(array, *arguments, **options)
        largest.append(result.nbytes)
        return result

    checkpoints = small.Checkpoints(tmp_path / "checkpoints")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "asarray", counted)
        checkpoints.save("last", 1, meshes[0].state_to_mesh(state), {})
        assert largest and max(largest) == table // 4
        _, restored, _ = checkpoints.restore("last", meshes[1].with_layouts(shapes))
    checkpoints.close()
    assert max(largest) == table // 2
    placed = meshes[1].copy_state(TrainState(*restored))
    shards = placed.params["head"]["weights"].addressable_shards
    assert {shard.data.shape for shard in shards} == {(ROWS // 2, COLUMNS)}
    jax.tree.map(np.testing.assert_array_equal, placed, expected)


@pytest.mark.parametrize("words", [4096, 4093])
@pytest.mark.parametrize("head", [heads.Softmax(), heads.NCE(samples=5)], ids=["softmax", "NCE"])
def test_a_step_gathers_no_table(head, words):
    """Whether the four devices divide its rows or not."""
    lexicon = examples.plain_lexicon(words)
    tables = head.tables(lexicon)

    def step(state, tables, batch, key, axis):
        def loss(params):
            options = {"key": jax.random.wrap_key_data(key)}
            return head.weighted_loss(params["head"], tables, *batch, **options)

        value, gradients = jax.value_and_grad(loss)(state.params)
        params = jax.tree.map(jnp.subtract, state.params, gradients)
        return state._replace(params=params), value

    def initial_state():
        params = {"head": head.init(jax.random.key(0), COLUMNS, lexicon)}
        return TrainState(params, (), jnp.zeros((4, 3)), jnp.zeros((), jnp.int32))

    shapes = jax.eval_shape(initial_state)
    axes = {f"head/{name}": names for name, names in head.parameter_axes.items()}
    mesh = MeshDevices(4, 4, 4, shapes, axes, [words])
    batch = jnp.ones((4, 3, COLUMNS)), jnp.full((4, 3), 5), jnp.ones((4, 3))
    arguments = mesh.argument_shapes(
        shapes, tables, batch, jax.eval_shape(jax.random.key_data, jax.random.key(0))
    )
    assert arguments[0].params["head"]["weights"].shape == (4096, COLUMNS)
    collectives, _ = read(mesh.compile(step).lower(*arguments).compile().as_text())
    assert collectives
    assert max(each.size for each in collectives) < 4096 * COLUMNS  # a fourth of a table's bytes


def test_words_are_shared_out_with_what_the_optimiser_keeps(tmp_path):
    recipe = recipe_of("sampled", 4, optimizer=Adam(), average=0.9)
    trainer = small.trainer(recipe, tmp_path, 4)
    state = small.on_devices(trainer.initial_state(), trainer.devices)
    rows = {
        path_name(path): leaf.addressable_shards[0].data.shape
        for path, leaf in jax.tree_util.tree_leaves_with_path(state)
        if leaf.shape[:1] == (12,)
    }
    # Parameters, two moments and an average of the embedding, and of weights and biases.
    assert sorted(rows.values()) == 4 * [(3,)] + 4 * [(3, 6)] + 4 * [(3, 7)]
    tables = trainer.devices.place_tables(trainer.task.tables)["head"]
    assert {leaf.addressable_shards[0].data.shape for leaf in tables.values()} == {(3,)}
    back = small.on_host(state, trainer.devices)
    jax.tree.map(np.testing.assert_array_equal, back, trainer.initial_state())


@pytest.mark.parametrize("model", [2, 4])
@pytest.mark.slow
def test_encoder_decoders_are_trained_on_a_mesh(tmp_path, model):
    """Their sources have a lexicon of their own, whose rows are shared out too."""
    core = LSTM(size=4, dropout=0.3)
    recipe = test_tasks_translation.experiment(
        SequenceToSequence(Lookup(4, initial_scale=0.5), core, heads.Softmax(), attention=Luong()),
        epochs=1,
        buckets=Buckets(padding=0.9),
    )
    ends = []
    for count in (1, 4):
        on_mesh = small.with_settings(recipe, f"parallel.model={model if count > 1 else 1}")
        trainer = small.trainer(on_mesh, tmp_path / str(count), count)
        progress = trainer.train()
        ends.append((small.last_state(trainer)[1], progress))
    check_equal(ends[1], ends[0])
    assert {"source_embedding/table", "embedding/table", "head/weights"} <= {
        *trainer.task.parameter_axes
    }


WITHIN_SHARDS = {
    "softmax": heads.Softmax(initial_scale=1.0),
    "adaptive": heads.AdaptiveSoftmax(cutoffs=(4, 8), division=2),
    "mixture": heads.MixtureOfSoftmaxes(components=3),
}


@pytest.mark.parametrize(
    "name", ["softmax", *[pytest.param(n, marks=pytest.mark.slow) for n in ("adaptive", "mixture")]]
)
@pytest.mark.parametrize("words", [12, 13])
def test_words_are_found_and_drawn_across_shards(name, words):
    """As in validation: by rows where the words divide, by columns where the thirteen do not."""
    head, lexicon = WITHIN_SHARDS[name], examples.plain_lexicon(words)
    params = head.init(jax.random.key(0), 8, lexicon)
    state = TrainState(params, (), (), jnp.zeros((), jnp.int32))
    mesh = MeshDevices(4, 4, 4, state, head.parameter_axes, [words])
    axis = int(words == 13)
    placed = jax.device_put(state, mesh.layouts(state)).params
    if name == "softmax":
        assert placed["weights"].addressable_shards[0].data.shape[axis] == (3, 2)[axis]
    tables = mesh.place_tables(head.tables(lexicon))
    hidden = jax.random.normal(jax.random.key(1), (3, 5, 8))
    key = jax.random.key(2)
    best, ids = jax.jit(head.top_k, static_argnums=3)(placed, tables, hidden, 5)
    samples = jax.jit(head.sample)(placed, tables, hidden, key)
    expected = np.asarray(head.log_probs(params, head.tables(lexicon), hidden))
    order = np.argsort(-expected, axis=-1, kind="stable")[..., :5]
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_allclose(best, np.take_along_axis(expected, order, -1), atol=2e-6)
    expected_samples = head.sample(params, head.tables(lexicon), hidden, key)
    np.testing.assert_array_equal(samples, expected_samples)


def test_more_shards_than_words_are_refused():
    state = TrainState({}, (), (), np.zeros((), np.int32))
    with pytest.raises(UserError, match=r"parallel.model=4 are more shards than .* words, 3: give"):
        MeshDevices(4, 8, 4, state, {}, [3])


def test_the_number_of_shards_is_no_other_experiment(tmp_path):
    workdir = Workdir(tmp_path / "run")
    workdir.claim(recipe_of())
    digest = workdir.seedless_recipe_digest()
    workdir.check(recipe_of(model=2))
    Workdir(tmp_path / "other").claim(recipe_of(model=2))
    assert Workdir(tmp_path / "other").seedless_recipe_digest() == digest


# ---- A batch in pieces gives the update of the whole batch; with SGD, for Adam hides wrong scales


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "devices", "model", "pieces"),
    [
        ("sampled", 1, 1, 2),
        ("softmax", 1, 1, 4),
        ("softmax", 2, 1, 2),
        ("log-linear", 4, 2, 2),
    ],
)
def test_pieces_change_nothing_but_rounding(tmp_path, name, devices, model, pieces):
    undivided = trained(tmp_path / "whole", 1, name, clip=0.1)
    in_pieces = trained(tmp_path / "pieces", devices, name, model, clip=0.1, accumulate=pieces)
    check_equal(in_pieces, undivided)
