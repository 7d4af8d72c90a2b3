"""Trees of words: the rows of classes in blocks of tokens, in less memory, and codes by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo import losses
from zoo.errors import UserError
from zoo.heads import HierarchicalSoftmax, HuffmanSoftmax
from zoo.losses import hierarchical, huffman, huffman_paths

SIZE, ROWS = 5, 5  # thirteen words are in classes of five, the last of three
HEAD = HierarchicalSoftmax()


def problem(random):
    """(params, tables, hidden [1, 7, D], targets [1, 7])."""
    lexicon = examples.plain_lexicon()
    params = examples.random_params(HEAD, random, SIZE, lexicon)
    hidden, targets = random.normal(size=(1, 7, SIZE)), random.integers(13, size=(1, 7))
    return params, HEAD.tables(lexicon), jnp.asarray(hidden), jnp.asarray(targets)


def loss_and_gradients(params, tables, hidden, targets):
    token_weights = jnp.arange(7.0).reshape(1, 7) - 3

    def summed(params, hidden):
        losses = HEAD.loss(params, tables, hidden, targets)
        return jnp.sum(token_weights * losses), losses

    gradients, losses = jax.jit(jax.grad(summed, argnums=(0, 1), has_aux=True))(params, hidden)
    return losses, gradients


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("tokens", [1, 3])
def test_losses_and_gradients_in_blocks(random, monkeypatch, tokens):
    """Seven tokens: of three blocks of three, which do not divide them, two are filled up."""
    arguments = problem(random)
    losses, gradients = loss_and_gradients(*arguments)
    monkeypatch.setattr(hierarchical, "GATHERED_AT_A_TIME", tokens * ROWS * SIZE)
    assert hierarchical.token_block(7, ROWS, SIZE) == tokens
    block_losses, block_gradients = loss_and_gradients(*arguments)
    np.testing.assert_allclose(block_losses, losses, rtol=1e-12)
    for gradient, expected in zip(
        jax.tree.leaves(block_gradients), jax.tree.leaves(gradients), strict=True
    ):
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("method", ["loss", "gradient", "sample"])
def test_rows_of_all_tokens_are_never_held(monkeypatch, method):
    tokens, size, lexicon = 512, 32, examples.plain_lexicon(1000)
    head = HierarchicalSoftmax()
    gathered = tokens * 32 * size  # classes are of 32 words
    monkeypatch.setattr(hierarchical, "GATHERED_AT_A_TIME", gathered // 64)
    params, tables = head.init(jax.random.key(0), size, lexicon), head.tables(lexicon)
    hidden, targets = jnp.ones((tokens, size)), jnp.arange(tokens)
    function = {
        "loss": lambda params: head.loss(params, tables, hidden, targets),
        "gradient": jax.grad(lambda params: head.loss(params, tables, hidden, targets).sum()),
        "sample": lambda params: head.sample(params, tables, hidden, jax.random.key(1)),
    }[method]
    memory = jax.jit(function).lower(params).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4 * gathered / 2


@pytest.mark.parametrize("shape", [(3,), (2, 2)])
@pytest.mark.slow
def test_draws_in_blocks_are_those_of_all_at_once(random, monkeypatch, shape):
    params, tables, hidden, _ = problem(random)
    hidden = hidden.reshape(-1, SIZE)[: np.prod(shape)].reshape(*shape, SIZE)
    words = HEAD.sample(params, tables, hidden, jax.random.key(3))
    monkeypatch.setattr(hierarchical, "GATHERED_AT_A_TIME", 2 * ROWS * SIZE)
    assert words.shape == shape
    block_words = HEAD.sample(params, tables, hidden, jax.random.key(3))
    np.testing.assert_array_equal(block_words, words)


def test_narrow_ranks_are_those_of_int32(random):
    """250 words in classes of 100: the third class begins above what int8 holds."""
    table = [random.normal(size=shape) for shape in ((3, 4), (3,), (3, 100, 4), (3, 100))]
    hidden, ranks = random.normal(size=(2, 4)), np.array([249, 101])
    token_losses = (
        losses.hierarchical_loss(jnp.asarray(hidden), *table, ranks.astype(dtype), 250)
        for dtype in (np.uint8, np.int32)
    )
    np.testing.assert_array_equal(*token_losses)


# ---- Huffman codes and classes, by hand


def test_a_huffman_code_by_hand():
    # 1 + 2 = 3 (node 0), 3 + 3 = 6 (node 1: the word of count 3 comes first), 6 + 9 (node 2, root).
    nodes, turns = huffman_paths(np.array([9, 2, 3, 1]))
    np.testing.assert_array_equal(nodes, [[2, 0, 0], [2, 1, 0], [2, 1, 0], [2, 1, 0]])
    np.testing.assert_array_equal(turns, [[-1, 0, 0], [1, -1, -1], [1, 1, 0], [1, -1, 1]])


def test_a_huffman_code_is_complete_and_as_short_as_the_entropy_allows(random):
    counts = random.integers(1, 1000, size=101)
    _, turns = huffman_paths(counts)
    lengths = np.abs(turns).sum(1)
    assert sum(2.0**-lengths) == 1  # Kraft
    p = counts / counts.sum()
    entropy = -(p * np.log2(p)).sum()
    assert entropy <= (p * lengths).sum() < entropy + 1
    assert len({tuple(row) for row in turns}) == 101


def test_every_path_is_that_of_a_climb_from_its_leaf(random):
    """Of a tree made here, deep on one side, word by word."""
    vocabulary = 41
    parent, turn = np.zeros(2 * vocabulary - 1, int), np.zeros(2 * vocabulary - 1)
    free = list(range(vocabulary))
    for node in range(vocabulary, 2 * vocabulary - 1):
        first, second = free.pop(), free.pop(random.integers(len(free)))
        parent[[first, second]], turn[[first, second]] = node, (1, -1)
        free.append(node)
    nodes, turns = huffman._paths_from_parents(parent, turn, vocabulary)
    lengths = []
    for word in range(vocabulary):
        path, node = [], word
        while node != 2 * vocabulary - 2:
            path.insert(0, (parent[node] - vocabulary, turn[node]))
            node = parent[node]
        lengths.append(len(path))
        path += [(0, 0)] * (nodes.shape[1] - len(path))
        np.testing.assert_array_equal(np.stack([nodes[word], turns[word]], axis=1), path)
    assert nodes.shape[1] == max(lengths)


def test_words_without_occurrences_have_a_place_too():
    _, turns = huffman_paths(np.array([0, 0, 5]))
    np.testing.assert_array_equal(np.abs(turns).sum(1), [2, 2, 1])


def test_one_word_is_no_tree():
    with pytest.raises(UserError, match="needs at least two words"):
        HuffmanSoftmax().init(jax.random.key(0), 3, examples.plain_lexicon(1))


@pytest.mark.parametrize(
    ("classes", "shape"), [(0, (3, 5)), (2, (2, 7)), (13, (13, 1)), (9, (7, 2))]
)
def test_classes_cover_the_words_evenly(classes, shape):
    params = HierarchicalSoftmax(classes).init(jax.random.key(0), 4, examples.plain_lexicon())
    assert params["bias"].shape == shape
    assert params["weights"].shape == (*shape, 4)
