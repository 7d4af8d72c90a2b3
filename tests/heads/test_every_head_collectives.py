"""What chips send in a training step of each head, compiled for GPUs that are not here."""

import jax
import pytest

from tests.heads import compiled_layouts
from tests.heads.compiled_layouts import LENGTH, ROWS, SIZE, VOCABULARY
from zoo.errors import UserError
from zoo.lab.training.compile_for import Target

# The least that a chip of 2 x 4 sends where each word has a vector of its own: in a ring of two,
# the gradients of its quarter of the words, of the core, which it has whole, and of the inputs of
# the other half of the tokens; in a ring of four, of the states of its half.
TOKENS = ROWS * LENGTH // 2
LEAST = VOCABULARY * (SIZE + 1) / 4 + 4 * SIZE * (2 * SIZE + 1)
LEAST = 4 * (LEAST + TOKENS * SIZE + 2 * 3 / 4 * TOKENS * SIZE)
TABLES = {"softmax", "self-normalised", "hierarchical", "contexts"}


@pytest.fixture(scope="module")
def target():
    try:
        return Target.from_text("H100:8")
    except UserError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(compiled_layouts.HEADS))
def test_nothing_is_sent_in_loops_on_a_mesh(name, target):
    sent, in_loops = compiled_layouts.count_sent(compiled_layouts.compile_step(name, target, 4))
    jax.clear_caches()
    assert in_loops == 0 and sent > 0
    if name in TABLES:
        assert LEAST < sent < 1.2 * LEAST
