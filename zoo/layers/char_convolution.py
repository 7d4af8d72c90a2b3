"""Vectors of words from their letters, by convolution.

Over the letter vectors C of a padded spelling c_1 ... c_L, for each width n and its filters W, b:

    x_i = W (C[c_i] : ... : C[c_(i + n - 1)]) + b           i = 1 ... L - n + 1
    y   = activation(mean_i x_i)  or  activation(max_i x_i)

with the y of all widths side by side. With the mean, one width, n = 5, and a rectifier, this is the
network of Labeau and Allauzen (2017), equation 1. With the maximum, several widths and tanh, it is
the network of Kim et al. (2016), which Jozefowicz et al. (2016) enlarge. They take the maximum
after the activation, which gives the same result: both activations are monotone. They add highway
layers (Srivastava et al. 2015) and, if the filters are more than the vector's dimension, a linear
projection:

    y' = g * relu(W y + b) + (1 - g) * y,    g = sigmoid(W_g y + b_g)

No parameter belongs to a word: a network that was trained on one lexicon computes the vectors of
the words of any other.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from zoo.base.arrays import precision, products, row_blocks
from zoo.base.arrays.precision import accumulator
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.row_blocks import CustomGradient, map_by_length
from zoo.errors import UserError, check_choices, check_least
from zoo.lexicon.spelling import Spelling

ACTIVATIONS = {"relu": jax.nn.relu, "tanh": jnp.tanh}


@dataclasses.dataclass(frozen=True)
class Convolution:
    """A convolution over spellings, with the defaults of Labeau and Allauzen (section 3.4).

    Attributes:
      spelling: how words become letters.
      letter_size: d_c, the size of a letter's vector.
      widths: n of each group of filters.
      filters: the number of filters in each group; () for the vector's dimension, if there is one
        width.
      pooling: "mean" or "max" over positions.
      activation: "relu" or "tanh", after the pooling.
      highway: the number of highway layers.
      initial_scale: letter vectors start uniform in +-initial_scale.

    Arguments of methods:
      lexicon: the words.
      params, tables: the results of `init` and `tables`.
      letters, lengths: spellings, int [n, L] and [n].
      words: word ids, int [N] or, of `distinct_vectors`, [...].
    """

    spelling: Spelling = Spelling()
    letter_size: int = 32
    widths: tuple[int, ...] = (5,)
    filters: tuple[int, ...] = ()
    pooling: str = "mean"
    activation: str = "relu"
    highway: int = 0
    initial_scale: float = 0.5

    def __post_init__(self):
        check_least(self, letter_size=1, highway=0)
        check_choices(self, pooling=("mean", "max"), activation=tuple(ACTIVATIONS))
        if min((0, *self.widths, *self.filters)) < 0 or 0 in (*self.widths, *self.filters):
            raise UserError(
                f"widths of Convolution are {self.widths} and filters {self.filters}: all should "
                "be 1 or more."
            )
        if len(self.filters or (0,)) != len(self.widths):
            raise UserError(
                f"filters of Convolution are {self.filters}: there should be a number for each of "
                f"the widths {self.widths}."
            )

    def tables(self, lexicon):
        """Returns {"letters": int32 [V, L], "lengths": int32 [V]}, the padded spellings."""
        tables = self.spelling.tables(lexicon, max(self.widths))
        return {name: jnp.asarray(array) for name, array in tables.items()}

    def init(self, key, size, lexicon):
        """Draws the parameters of the network.

        Weights start uniform, with the variance 1 / inputs; gates start nearly closed.

        Returns:
          {"letters": [A, d_c], "filters": a tuple of {"weights": [n d_c, N], "bias": [N]},
          "highway": a tuple of {"weights", "bias", "gate_weights", "gate_bias"}} and, unless there
          are `size` filters, "projection": {"weights", "bias"}.
        """
        filters = self.filters or (size,)
        keys = iter(jax.random.split(key, 2 + len(filters) + 2 * self.highway))
        shape = (self.spelling.letter_count(lexicon), self.letter_size)
        total = sum(filters)
        params = {
            "letters": uniform(next(keys), shape, self.initial_scale),
            "filters": tuple(
                _linear(next(keys), width * self.letter_size, count)
                for width, count in zip(self.widths, filters, strict=True)
            ),
            "highway": tuple(
                {
                    **_linear(next(keys), total, total),
                    **{
                        f"gate_{name}": value - 2.0 * (name == "bias")
                        for name, value in _linear(next(keys), total, total).items()
                    },
                }
                for _ in range(self.highway)
            ),
        }
        if total != size:
            params["projection"] = _linear(next(keys), total, size)
        return params

    def array_shapes(self) -> dict[str, str]:
        """Returns {path: shape} of the parameters, with letters for sizes."""
        shapes = {"letters": "A E"}
        for number in range(len(self.widths)):
            shapes |= _linear_shapes(f"filters/{number}", f"W{number}", f"N{number}")
        for number in range(self.highway):
            shapes |= _linear_shapes(f"highway/{number}", "N", "N")
            shapes |= _linear_shapes(f"highway/{number}", "N", "N", "gate_")
        return shapes | _linear_shapes("projection", "N", "H")

    def apply(self, params, letters, lengths):
        """Computes the vectors of padded spellings, [n, size]."""
        return self._forward(params, letters, lengths)[0]

    def _forward(self, params, letters, lengths):
        """Computes (the vectors, the residuals of `_backward`), without the windows' products."""
        vectors = _letter_vectors(params, letters)
        groups = zip(self.widths, params["filters"], strict=True)
        pool = self._mean if self.pooling == "mean" else self._maximum
        pooled, positions = zip(
            *(pool(vectors, lengths, width, filters) for width, filters in groups), strict=True
        )
        y = ACTIVATIONS[self.activation](jnp.concatenate(pooled, axis=-1))
        layers = []
        for layer in params["highway"]:
            gate = jax.nn.sigmoid(products.affine(y, layer["gate_weights"], layer["gate_bias"]))
            transformed = jax.nn.relu(products.affine(y, layer["weights"], layer["bias"]))
            layers.append((y, gate, transformed))
            y = gate * transformed + (1 - gate) * y
        residuals = positions, tuple(layers), y
        if "projection" in params:
            y = products.affine(y, **params["projection"])
        return y, residuals

    def _backward(self, params, letters, lengths, inputs, residuals, cotangent):
        """Computes (the gradient of params, ()), see zoo.base.arrays.row_blocks.CustomGradient.

        It is written by hand: with several widths, automatic differentiation would keep the
        windows' products of each width, or recompute them.
        """
        positions, layers, y = residuals
        gradients: dict[str, Any] = {"highway": ()}
        if "projection" in params:
            gradient, cotangent = _affine_gradient(y, params["projection"]["weights"], cotangent)
            gradients["projection"] = gradient
        for layer, (below, gate, transformed) in zip(
            reversed(params["highway"]), reversed(layers), strict=True
        ):
            to_gate = cotangent * (transformed - below) * gate * (1 - gate)
            to_transformed = jnp.where(transformed > 0, cotangent * gate, 0)
            gate_gradient, through_gate = _affine_gradient(below, layer["gate_weights"], to_gate)
            layer_gradient, through = _affine_gradient(below, layer["weights"], to_transformed)
            gate_gradient = {f"gate_{name}": value for name, value in gate_gradient.items()}
            gradients["highway"] = ({**layer_gradient, **gate_gradient}, *gradients["highway"])
            cotangent = cotangent * (1 - gate) + through + through_gate
        y = layers[0][0] if layers else y
        cotangent = cotangent * (y > 0 if self.activation == "relu" else 1 - y * y)

        vectors = _letter_vectors(params, letters)
        vectors_gradient, filter_gradients, start = jnp.zeros_like(vectors), [], 0
        for width, filters, position in zip(self.widths, params["filters"], positions, strict=True):
            count = filters["bias"].shape[0]
            group_gradient = cotangent[:, start : start + count]
            start += count
            backward = self._mean_gradient if self.pooling == "mean" else self._maximum_gradient
            gradient, to_windows = backward(
                vectors, lengths, width, filters, position, group_gradient
            )
            filter_gradients.append({"weights": gradient, "bias": group_gradient.sum(0)})
            positions = to_windows.shape[1]
            for offset, part in enumerate(jnp.split(to_windows, width, axis=-1)):
                vectors_gradient = vectors_gradient.at[:, offset : offset + positions].add(part)
        gradients["filters"] = tuple(filter_gradients)
        total = jnp.zeros(params["letters"].shape, vectors_gradient.dtype)
        gradients["letters"] = total.at[letters].add(vectors_gradient)
        # The caller may keep layers in lists or tuples: the gradients get the same structure.
        return jax.tree.unflatten(jax.tree.structure(params), jax.tree.leaves(gradients)), ()

    def _mean(self, vectors, lengths, width, filters):
        """Computes (the mean of x over the windows of a width [n, filters], ())."""
        windows, shares = _windows(vectors, width), _shares(vectors, lengths, width)
        # The mean of products is the product with the mean, one for each word.
        mean = jnp.einsum("np,npw->nw", shares, windows)
        return products.affine(mean, **filters), ()

    def _mean_gradient(self, vectors, lengths, width, filters, position, cotangent):
        """Computes the gradients of the filters' weights and of the windows [n, p, n d_c]."""
        windows, shares = _windows(vectors, width), _shares(vectors, lengths, width)
        mean = jnp.einsum("np,npw->nw", shares, windows)
        gradient, to_mean = _affine_gradient(mean, filters["weights"], cotangent)
        return gradient["weights"], shares[:, :, None] * to_mean[:, None]

    def _maximum(self, vectors, lengths, width, filters):
        """Computes (the maximum of x over the windows, its first position), [n, filters] each."""
        windows = _windows(vectors, width)
        rows = windows.reshape(-1, windows.shape[-1])
        x = products.matmul(rows, filters["weights"]).reshape(*windows.shape[:2], -1)
        x = jnp.where(_is_inside(vectors, lengths, width)[:, :, None], x, -jnp.inf)
        maximum = x.max(1)
        positions = jnp.arange(x.shape[1], dtype=jnp.int32)[None, :, None]
        position = jnp.where(x == maximum[:, None], positions, x.shape[1]).min(1)
        return maximum + filters["bias"][None], position

    def _maximum_gradient(self, vectors, lengths, width, filters, position, cotangent):
        """Computes the gradients of the filters' weights and of the windows [n, p, n d_c]; of
        several windows with the maximum the first gets all of it."""
        windows = _windows(vectors, width)
        positions = jnp.arange(windows.shape[1], dtype=jnp.int32)[None, :, None]
        to_x = jnp.where(position[:, None] == positions, cotangent[:, None], 0)
        to_x = to_x.reshape(-1, to_x.shape[-1])
        gradient, to_windows = _matmul_gradients(
            windows.reshape(-1, windows.shape[-1]), filters["weights"], to_x
        )
        return gradient, to_windows.reshape(windows.shape)

    def vectors(self, params, tables, words, *, count=None):
        """Computes the vectors of words, [N, size], or only of the first `count` words."""
        letters, lengths = tables["letters"][words], tables["lengths"][words]
        return self._vectors(params, letters, lengths, count=count)

    def spelled_vectors(self, params, letters):
        """Computes the vectors of spellings [n, longest], [n, size]; see Spelling.padded."""
        return self._vectors(params, *self.spelling.pad(letters, max(self.widths)))

    def _vectors(self, params, letters, lengths, **options):
        """Computes the vectors of spellings, [n, size], in the type of the parameters."""
        min_width = max(self.widths)
        gradable = CustomGradient(self._forward, self._backward)
        vectors = map_by_length(gradable, params, letters, lengths, min_width=min_width, **options)
        return precision.rounded_as(vectors, params["letters"])

    def distinct_vectors(self, params, tables, words):
        """Computes the vectors of words, [..., size], with each distinct word computed once."""
        if not words.size:
            word = jnp.zeros(1, jnp.int32)
            like = jax.eval_shape(lambda: self.distinct_vectors(params, tables, word))
            return jnp.zeros((*words.shape, like.shape[-1]), like.dtype)
        vocabulary = tables["lengths"].shape[0]
        distinct, slot = jnp.unique(
            words.ravel(), size=row_blocks.at_most(vocabulary, words.size), return_inverse=True
        )
        vectors = self.vectors(params, tables, distinct, count=slot.max() + 1)
        return vectors[slot.reshape(words.shape)]


def _letter_vectors(params, letters):
    """Looks up the vectors of letters, [n, L, d_c], in at least float32."""
    return params["letters"][letters].astype(accumulator(params["letters"]))


def _linear_shapes(path, inputs, outputs, prefix=""):
    """Returns {path: shape} of a linear map's weights and bias, with letters for sizes."""
    names = f"{path}/{prefix}weights", f"{path}/{prefix}bias"
    return {names[0]: f"{inputs} {outputs}", names[1]: outputs}


def _linear(key, inputs, outputs):
    """Draws {"weights", "bias"}: weights uniform with the variance 1 / inputs, biases of 0."""
    weights = uniform(key, (inputs, outputs), (3 / inputs) ** 0.5)
    return {"weights": weights, "bias": jnp.zeros(outputs)}


def _affine_gradient(x, weights, cotangent):
    """Computes ({"weights", "bias"} of gradients, the gradient of x)."""
    gradient, to_x = _matmul_gradients(x, weights, cotangent)
    return {"weights": gradient, "bias": cotangent.sum(0)}, to_x


def _matmul_gradients(x, weights, cotangent):
    """Computes the gradients of the weights and of x in matmul(x, weights)."""
    to_x = products.matmul_transposed(cotangent, weights)
    return products.gradient(x, cotangent, weights), to_x


def _windows(vectors, width):
    """Returns the letter vectors of each window side by side, [n, L - width + 1, width d_c]."""
    positions = vectors.shape[1] - width + 1
    return jnp.concatenate([vectors[:, i : i + positions] for i in range(width)], axis=-1)


def _is_inside(vectors, lengths, width):
    """Whether each window lies within its spelling, [n, L - width + 1]."""
    return jnp.arange(vectors.shape[1] - width + 1)[None] < (lengths - width + 1)[:, None]


def _shares(vectors, lengths, width):
    """Computes the weight of each window in the mean over windows, [n, L - width + 1]."""
    counts = (lengths - width + 1).clip(1)[:, None].astype(vectors.dtype)
    return _is_inside(vectors, lengths, width).astype(vectors.dtype) / counts
