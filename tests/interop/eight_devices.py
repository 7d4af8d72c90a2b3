"""What the page's TrainState and the layout of nanodo do with heads, on eight devices: JSON."""

import json
import pathlib
import re
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType

from zoo import heads, priors
from zoo.data import with_priors
from zoo.interop import linen
from zoo.lexicon import Lexicon

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "your_model.md"
HEADS = {
    "softmax": heads.Softmax(),
    "adaptive": heads.AdaptiveSoftmax((31,)),
    "mixture": heads.MixtureOfSoftmaxes(components=2, size=16),
    "log-linear": heads.LogLinear(),
}


def main(names):
    page = {"__name__": "axis_rules"}
    (program,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if "RULES =" in block
    )
    exec(program, page)
    size = 95
    results = {}
    for name in names:
        head = HEADS[name]
        words = size + (name != "adaptive")  # 31 frequent words and one cluster; 64 in the tail
        lexicon = Lexicon(tuple(map(str, range(words))), np.arange(words, 0, -1))
        lexicon = with_priors(
            lexicon, (priors.TopWords(words),)
        )  # as many features, for as many shards
        keys = jax.random.split(jax.random.key(1))
        hidden = jax.random.normal(keys[0], (8, 5, 32))
        targets = jax.random.randint(keys[1], (8, 5), 0, size)
        weights = jnp.full((8, 5), 1 / 40).at[2, 3].set(0)
        state, losses = page["train"](head, lexicon, hidden, targets, weights)
        rows = {"shards": shards(state.params), "losses": losses}
        results[name] = rows | {
            "one device": train_on_one_device(head, lexicon, hidden, targets, weights)
        }
        results[name] |= {"nanodo": shard_as_nanodo(head, lexicon, hidden)}
    json.dump(results, sys.stdout)


def shards(params):
    """{name: [shape, shape of a device's part]}."""
    arrays = jax.tree_util.tree_leaves_with_path(nn.unbox(params))
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): [
            list(array.shape),
            list(array.addressable_shards[0].data.shape),
        ]
        for path, array in arrays
    }


def train_on_one_device(head, lexicon, hidden, targets, weights):
    """The losses of three steps without Flax, of the same first parameters, on one device."""
    variables = linen.Head(head, lexicon).init(jax.random.key(0), hidden)
    params, tables, optimizer = variables["params"], head.tables(lexicon), optax.adam(0.1)
    state, losses = optimizer.init(params), []
    gradient = jax.jit(jax.value_and_grad(head.weighted_loss))
    for _ in range(3):
        arguments = tables, hidden, targets, weights
        value, gradients = gradient(params, *arguments)
        updates, state = optimizer.update(gradients, state)
        params = optax.apply_updates(params, updates)
        losses.append(float(value))
    return losses


def shard_as_nanodo(head, lexicon, hidden):
    """Shards of the layout that nanodo asks of its modules: names are axes of the mesh."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    model = linen.Head(head, lexicon, axes={"hidden": "data", "vector": "data"})

    def init(key):
        return model.init(key, hidden)["params"]

    layout = nn.get_sharding(jax.eval_shape(init, jax.random.key(0)), mesh)
    return shards(jax.jit(init, out_shardings=layout)(jax.random.key(0)))


if __name__ == "__main__":
    main(sys.argv[1:])
