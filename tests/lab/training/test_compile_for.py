"""Recipes compiled for accelerators that are not here; the real ones where their compilers are."""

import dataclasses
import re

import jax
import pytest

import configs
from tests.lab.training import small
from zoo import changed
from zoo.errors import UserError
from zoo.experiment import Parallel
from zoo.lab.commands import command_table
from zoo.lab.training import compile_for, compiled_programs, step_shapes
from zoo.lab.training.compile_for import Target

# JAX warns that programs of a compiler without a device cannot be read from its cache.
pytestmark = pytest.mark.filterwarnings("ignore:Error reading persistent compilation cache")
WORDS = 52
RATES = {"operations": 1e9, "bandwidth": 1e9, "memory": 1e6, "link": 1e6}


def figures(lines) -> dict[tuple[str, ...], list[str]]:
    """{(program,) or (program, collective): cells} of the tables that are printed."""
    rows = [re.split(r" {2,}", line.strip()) for line in lines if line]
    return {
        tuple(row[:2]) if row[1] in compiled_programs.KINDS else (row[0],): row
        for row in rows
        if row[0] in ("training", "evaluation")
    }


@pytest.mark.parametrize("model", [1, 2])
def test_state_and_collectives_of_four_devices(model):
    experiment = dataclasses.replace(small.experiment(), parallel=Parallel(model))
    lexicon = step_shapes.ranked_lexicon(WORDS)
    target = Target("four", jax.devices(), RATES, {})
    first, *lines = compile_for.describe(experiment, lexicon, target)
    assert first.startswith(f"{WORDS} words; 4 device(s)") and first.endswith("not run")
    rows, (step, devices) = figures(lines), compile_for.place_step(experiment, lexicon, target)
    state = step.arguments[0]
    # Rows of words are shared out, everything else is on each device, but for rows of the carry.
    sizes = [
        leaf.size * leaf.dtype.itemsize / (model if WORDS in leaf.shape else 1)
        for leaf in jax.tree.leaves(state._replace(carry=()))
    ]
    carry = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state.carry))
    size = sum(sizes) + carry * model / 4
    assert compile_for.state_bytes(state, devices) == size
    assert rows["training",][3] == f"{size / 1e9:.3f}" and rows["training",][1] == "yes"
    assert int(rows["training", "all-reduce"][2]) > 0
    (over,) = [
        line
        for line in compile_for.describe(
            experiment, lexicon, target._replace(rates=RATES | {"memory": 10.0})
        )
        if line.startswith("training") and " no " in line
    ]
    assert over.split()[1] == "no"


def test_the_least_time_is_that_of_products_or_of_sending():
    experiment, lexicon = small.experiment(), step_shapes.ranked_lexicon(WORDS)
    for link, longer in ((1.0, 8), (1e15, 7)):
        target = Target("four", jax.devices(), RATES | {"link": link}, {})
        row = figures(compile_for.describe(experiment, lexicon, target))["training",]
        assert row[9] == row[longer] and float(row[7].replace(",", "")) > 0


@pytest.mark.parametrize("target", ["v9:2x4", "v5e", "H100:0", "H100:2x2x2x2"])
def test_an_unknown_target_is_an_error(target):
    with pytest.raises(UserError, match=f"--compile-for {target}: give one of v5e, v5p, v6e"):
        Target.from_text(target)


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("v5e:2x4", "pip install 'jax[tpu]=="),
        ("H100:8", "pip install --no-deps jax-cuda12-plugin=="),
    ],
)
def test_a_missing_compiler_is_named_with_its_command(target, command, monkeypatch):
    monkeypatch.setattr(compile_for, "_is_installed", lambda module: False)
    words = ["--config", "micro_softmax", "--compile-for", target, "--words", "52"]
    with pytest.raises(UserError, match=re.escape(command)):
        command_table.run("train", words)


def compile_here(text, name, words, **changes):
    """The rows of a config compiled for a target; skips where its compiler is not installed."""
    try:
        target = Target.from_text(text)
    except UserError as error:
        if "needs the compiler" not in str(error):  # as where another process compiles for TPUs
            raise
        pytest.skip(str(error))
    recipe = changed(configs.load(name), {k.replace("__", "."): v for k, v in changes.items()})
    return figures(compile_for.describe(recipe, step_shapes.ranked_lexicon(words), target))


# The least that a chip of 2 x 4 sends of 20 x 35 tokens, states of 256 numbers and 10,000 words:
# in a ring of two, the gradients of its quarter of W and of the bias, of the core, which it has
# whole, and of the inputs of the other 350 tokens; in a ring of four, of the states of its 350.
LEAST_NUMBERS = 10_000 * 257 / 4 + 1_024 * 513 + 350 * 256 + 2 * 3 / 4 * 350 * 256
LEAST_MB = 4 * LEAST_NUMBERS / 1e6


@pytest.mark.slow
@pytest.mark.parametrize("target", ["v5e:2x4", "H100:8"])
def test_words_of_eight_chips_send_little_more_than_the_least(target):
    rows = compile_here(target, "ptb_softmax", 10_000, parallel__model=4)
    assert rows["training",][1] == rows["evaluation",][1] == "yes"
    kinds = [row for key, row in rows.items() if key[0] == "training" and len(key) == 2]
    assert LEAST_MB < sum(float(row[4]) for row in kinds) < 1.2 * LEAST_MB
    assert all(row[3] == "0" for row in kinds)  # in loops
    # A quarter of two tables of 10,000 x 256 numbers, and the core: the state is held once.
    assert float(rows["training",][3]) == pytest.approx(0.007, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["v5p:2x2x2", "v6e:2x4", "H200:8"])
def test_batch_rows_of_eight_chips_are_summed_once(target):
    rows = compile_here(target, "ptb_softmax", 10_000, training__batch=24)
    assert [row[3] for key, row in rows.items() if len(key) == 2] == ["0"] * (len(rows) - 2)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["v5e:2x4", "H100:8"])
@pytest.mark.parametrize(("model", "state"), [(4, 0.0047), (1, 0.0028)])
def test_parts_of_eight_chips_are_gathered_once(target, model, state):
    """With FSDP: a quarter or an eighth of two tables of 10,000 x 256 numbers, an eighth of the
    core's 1,050,624."""
    fields = {"parallel__model": model, "parallel__fsdp": True, "training__batch": 24}
    rows = compile_here(target, "ptb_softmax", 10_000, **fields)
    assert [row[3] for key, row in rows.items() if len(key) == 2] == ["0"] * (len(rows) - 2)
    assert float(rows["training",][3]) == pytest.approx(state + 0.0006, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "model", "fits"), [("v5e:4x4", 16, "yes"), ("v5e:2x4", 1, "no")]
)
def test_the_largest_recipe_fits_sixteen_chips_by_words(target, model, fits):
    rows = compile_here(target, "lm1b_lstm_8192_2048", 793_471, parallel__model=model)
    assert rows["training",][1] == fits
