"""The work and the transfers of every head over four devices, as compiled programs tell them.

Compiles programs for sizes above every switch of form, and runs none of them:

    python -m tests.heads.measured_layouts

writes `measured_layouts.tsv`, which the tests hold programs to, and the table of docs/your_model.md
made from it.
"""

import dataclasses
import functools
import math
import pathlib
import re
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from tests import examples, layouts
from zoo import heads
from zoo.base.arrays import row_blocks
from zoo.lexicon import with_features
from zoo.losses import adaptive

# 4,096 tokens; a vocabulary above 24,576 is taken in blocks of words, and columns above 64 whole.
ROWS, TIME, SIZE, VOCABULARY = 64, 64, 128, 32768
HEADS = {
    "softmax": heads.Softmax(),
    "self-normalised": heads.SelfNormalisedSoftmax(),
    "dense sums": heads.LogLinear(form="dense_sums", kinds=("tag", "name")),
    "sparse sums": heads.LogLinear(form="sparse_sums"),
    "product": heads.LogLinear(form="product"),
    # Whose rows all divide by four.
    "adaptive": heads.AdaptiveSoftmax(cutoffs=(2048, 4096, 8192, 16384), division=2),
    "split": heads.SplitSoftmax(cutoffs=(2048, 8192)),
    "hierarchical": heads.HierarchicalSoftmax(classes=128),
    "Huffman": heads.HuffmanSoftmax(),
    "mixture": heads.MixtureOfSoftmaxes(components=3),
    "contexts": heads.MixtureOfContexts(components=3),
    "NCE": heads.NCE(samples=128),
    "importance sampling": heads.ImportanceSampling(samples=128, distinct=True),
    "BlackOut": heads.BlackOut(samples=128),
    "sampled log-linear": heads.SampledLogLinear(estimate="contrastive", samples=128),
    "letters": heads.CNNSoftmax(correction=4),
    "letter by letter": heads.CharLSTM(),
}
LAYOUTS = ("batch, automatic", "batch, explicit", "words, automatic")
OPERATIONS = ("weighted_loss", "log_prob")
TABLE = pathlib.Path(__file__).with_suffix(".tsv")
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "your_model.md"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What a device does, of four.

    Attributes:
      share: of the products of matrices of one device that computes everything.
      sent: bytes of the results of all transfers.
    """

    share: float
    sent: int


@functools.cache
def lexicon(size):
    """Words with 1,536 features; 1,024 combinations of those of two kinds."""
    features = [
        {f"tag:{word % 64}": 1.0, f"pair:{word // 64}": 0.5}
        | ({f"name:{word}": 1.0} if word < 960 else {})
        for word in range(size)
    ]
    return with_features(examples.plain_lexicon(size), features, np.full(size, -math.log(size)))


def shapes_of(tree):
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype), tree)


def axes_of(head, words):
    """The names of the parameters' axes, of which features are cut as words are."""
    return jax.tree.map(
        lambda names: tuple("words" if name == "features" else name for name in names),
        head.partition(words),
        is_leaf=lambda x: isinstance(x, PartitionSpec),
    )


@functools.cache
def arguments(name):
    """(params, tables, token_arrays, key, axes) of a head, shapes alone, for `layouts`."""
    head = HEADS[name]
    # A tree over V words has V - 1 vectors.
    words = lexicon(VOCABULARY + 1 if name == "Huffman" else VOCABULARY)
    params = jax.eval_shape(lambda: head.init(jax.random.key(0), SIZE, words))
    tokens = ROWS, TIME
    token_arrays = (
        jax.ShapeDtypeStruct((*tokens, SIZE), jnp.float32),
        jax.ShapeDtypeStruct(tokens, jnp.int32),
        jax.ShapeDtypeStruct(tokens, jnp.float32),
    )
    key = jax.eval_shape(lambda: jax.random.key(1))
    return params, shapes_of(head.tables(words)), token_arrays, key, axes_of(head, words)


def evaluate_weighted_loss(head, params, tables, hidden, targets, weights, key):
    """With its gradients."""

    def weighted_loss(params, hidden):
        return head.weighted_loss(params, tables, hidden, targets, weights, key=key)

    value, (params_gradient, hidden_gradient) = jax.value_and_grad(weighted_loss, (0, 1))(
        params, hidden
    )
    return {"sum": value, "params": params_gradient, "tokens": hidden_gradient}


def evaluate_log_prob(head, params, tables, hidden, targets, weights, key):
    return {"tokens": head.log_prob(params, tables, hidden, targets)}


def program(name, layout, operation):
    method = functools.partial(globals()[f"evaluate_{operation}"], HEADS[name])
    # Every target has letters, and every block words of each tail, which the compiler cannot know:
    # loops over blocks of them are whole.
    with (
        mock.patch.object(row_blocks, "_count_filled", lambda lengths: lengths.shape[0]),
        mock.patch.object(adaptive, "_filled_range", lambda filled: (0, filled.shape[0])),
    ):
        return layout.run(method, *arguments(name))


@functools.cache
def flops_alone(name, operation):
    return program(name, layouts.ONE_DEVICE, operation).flops


def measure(name, layout, operation) -> Measurement:
    compiled = program(name, layouts.LAYOUTS[layout], operation)
    single_flops = flops_alone(name, operation)
    return Measurement(compiled.flops / single_flops if single_flops else 0.0, compiled.sent)


def read_measurements() -> dict[tuple[str, str, str], Measurement]:
    """What `measured_layouts.tsv` has of (head, layout, operation)."""
    rows = (line.split("\t") for line in TABLE.read_text().splitlines()[1:])
    return {(*key,): Measurement(float(share), int(sent)) for *key, share, sent in rows}


def table(measurements) -> str:
    """The table in the documents."""
    headers = "tokens, automatic", "tokens, explicit", "words or features"
    lines = [
        f"| share of the work, MB sent | {' | '.join(headers)} |",
        f"|---|{'---|' * len(headers)}",
    ]
    for name, head in HEADS.items():
        cells = []
        for layout in LAYOUTS:
            step, value = (measurements[name, layout, operation] for operation in OPERATIONS)
            step_cell, value_cell = (f"{x.share:.2f}, {x.sent / 1e6:.1f}" for x in (step, value))
            cells.append(f"{step_cell}; {value_cell}")
        form = f", {name}" if type(head) is heads.LogLinear else ""
        lines.append(f"| `{type(head).__name__}`{form} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, measurements) -> str:
    """The page with the table between its comments."""
    marks = r"(<!-- table layouts[^\n]*-->\n).*?(<!-- end of table -->)"
    return re.sub(
        marks, lambda match: match[1] + table(measurements) + match[2], page, flags=re.DOTALL
    )


def main():
    jax.config.update("jax_num_cpu_devices", 4)
    measurements = {}
    for key in ((n, layout, o) for n in HEADS for layout in LAYOUTS for o in OPERATIONS):
        measurements[key] = measure(*key)
        print(*key, measurements[key], flush=True)
    rows = ["head\tlayout\toperation\tshare\tsent"]
    rows += ["\t".join([*key, f"{x.share:.4f}", str(x.sent)]) for key, x in measurements.items()]
    TABLE.write_text("\n".join(rows) + "\n")
    PAGE.write_text(with_table(PAGE.read_text(), measurements))


if __name__ == "__main__":
    main()
