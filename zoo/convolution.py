"""Vectors of words from their letters, by convolution.

Over the letter vectors C of a padded spelling c_1 ... c_L, for each width n and its filters W, b:

    x_i = W (C[c_i] : ... : C[c_(i + n - 1)]) + b           i = 1 ... L - n + 1
    y   = activation(mean_i x_i)  or  activation(max_i x_i)

the y of all widths side by side. The mean with one width, n = 5, and a rectifier is the network of
Labeau and Allauzen (2017), equation 1. The maximum with several widths and tanh is that of Kim et
al. (2016), which Jozefowicz et al. (2016) use larger; as both activations are monotone, it does not
matter that they take the maximum after the activation. They go on with highway layers (Srivastava
et al. 2015) and, where filters are more than the vector is to have numbers, a linear projection:

    y' = g * relu(W y + b) + (1 - g) * y,    g = sigmoid(W_g y + b_g)

The parameters are of letters, never of words: a network that was trained on one lexicon gives
vectors of the words of any other.
"""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.by_length import map_by_length
from zoo.errors import UserError, check_least
from zoo.spelling import Spelling

ACTIVATIONS = {"relu": jax.nn.relu, "tanh": jnp.tanh}


@dataclasses.dataclass(frozen=True)
class Convolution:
    """A convolution over spellings; the defaults are those of Labeau and Allauzen (section 3.4).

    Attributes:
      spelling: how words become letters.
      letter_size: d_c, the size of a letter's vector.
      widths: n of each group of filters. filters: how many in each; empty for as many as the vector
        has numbers, where there is one width.
      pooling: "mean" or "max" over positions. activation: "relu" or "tanh", after it.
      highway: highway layers.
      initial_scale: letter vectors start uniform in +-initial_scale.
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
        check_least(self, "convolution", letter_size=1, highway=0)
        for field, choices in (("pooling", ("mean", "max")), ("activation", tuple(ACTIVATIONS))):
            if getattr(self, field) not in choices:
                raise UserError(
                    f"convolution.{field} is {getattr(self, field)!r}: give one of "
                    f"{', '.join(choices)}."
                )
        if min((0, *self.widths, *self.filters)) < 0 or 0 in (*self.widths, *self.filters):
            raise UserError(
                f"convolution.widths={self.widths} and filters={self.filters} should all be 1 or "
                "more."
            )
        if len(self.filters or (0,)) != len(self.widths):
            raise UserError(
                f"convolution.filters={self.filters} should have a number for each of the widths "
                f"{self.widths}."
            )

    def tables(self, lexicon):
        """{"letters": int32 [V, L], "lengths": int32 [V]}."""
        tables = self.spelling.tables(lexicon, max(self.widths))
        return {name: jnp.asarray(array) for name, array in tables.items()}

    def init(self, key, size, lexicon):
        """The parameters of a network whose vectors have `size` numbers.

        {"letters": [A, d_c], "filters": a tuple of {"weights": [n d_c, N], "bias": [N]}, "highway":
        a tuple of {"weights", "bias", "gate_weights", "gate_bias"}} and, unless there are `size`
        filters, "projection": {"weights", "bias"}. Weights start uniform, with the variance
        1 / inputs; gates start nearly closed.
        """
        filters = self.filters or (size,)
        keys = iter(jax.random.split(key, 2 + len(filters) + 2 * self.highway))
        shape, scale = (self.spelling.letter_count(lexicon), self.letter_size), self.initial_scale
        total = sum(filters)
        params = {
            "letters": jax.random.uniform(next(keys), shape, minval=-scale, maxval=scale),
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

    def apply(self, params, letters, lengths):
        """The vectors [n, size] of padded spellings, letters int [n, L] and lengths int [n]."""
        of_letters = params["letters"][letters]
        pooled = [
            self._pool(of_letters, lengths, width, filters)
            for width, filters in zip(self.widths, params["filters"], strict=True)
        ]
        y = ACTIVATIONS[self.activation](jnp.concatenate(pooled, axis=-1))
        for layer in params["highway"]:
            gate = jax.nn.sigmoid(y @ layer["gate_weights"] + layer["gate_bias"][None])
            y = gate * jax.nn.relu(y @ layer["weights"] + layer["bias"][None]) + (1 - gate) * y
        if "projection" in params:
            y = y @ params["projection"]["weights"] + params["projection"]["bias"][None]
        return y

    def _pool(self, of_letters, lengths, width, filters):
        """The mean or the maximum of x over the windows of a width, [n, filters]."""
        positions = of_letters.shape[1] - width + 1
        windows = jnp.concatenate([of_letters[:, i : i + positions] for i in range(width)], axis=-1)
        counts = (lengths - width + 1)[:, None]
        there = jnp.arange(positions)[None] < counts
        if self.pooling == "mean":
            # The mean of products is the product with the mean, one for each word.
            shares = there.astype(windows.dtype) / counts.astype(windows.dtype)
            pooled = jnp.einsum("np,npw->nw", shares, windows) @ filters["weights"]
        else:
            x = windows.reshape(-1, windows.shape[-1]) @ filters["weights"]
            x = x.reshape(*windows.shape[:2], -1)
            pooled = jnp.where(there[:, :, None], x, -jnp.inf).max(1)
        return pooled + filters["bias"][None]

    def vectors(self, params, tables, words, *, count=None):
        """The vectors [N, size] of words int [N]; of the first `count` alone, if it is given."""
        letters, lengths = tables["letters"][words], tables["lengths"][words]
        least = max(self.widths)
        return map_by_length(self.apply, params, letters, lengths, least=least, count=count)

    def spelled_vectors(self, params, letters):
        """The vectors [n, size] of spellings int [n, longest], see Spelling.padded."""
        letters, lengths = self.spelling.padded(letters, max(self.widths))
        return map_by_length(self.apply, params, letters, lengths, least=max(self.widths))

    def distinct_vectors(self, params, tables, words):
        """The vectors [..., size] of words int [...], each distinct word computed once."""
        vocabulary = tables["lengths"].shape[0]
        distinct, place = jnp.unique(
            words.ravel(), size=min(words.size, vocabulary), return_inverse=True
        )
        vectors = self.vectors(params, tables, distinct, count=place.max() + 1)
        return vectors[place.reshape(words.shape)]


def _linear(key, inputs, outputs):
    """Weights uniform with the variance 1 / inputs, and no bias."""
    scale = (3 / inputs) ** 0.5
    weights = jax.random.uniform(key, (inputs, outputs), minval=-scale, maxval=scale)
    return {"weights": weights, "bias": jnp.zeros(outputs)}
