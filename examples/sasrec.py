"""SASRec, a recommender: the next film of a viewer is a word of a softmax over all films.

    pip download --no-deps recbole==1.2.1  # a wheel with the data in it, MovieLens-100k
    python -m examples.sasrec recbole-1.2.1-py3-none-any.whl

Trains with each loss for as many steps, and prints HR@10 and NDCG@10 on validation: the last film
but one of each viewer, ranked among all films. docs/results/items.md has results at equal time.

Source: Kang and McAuley, "Self-attentive sequential recommendation" (2018).
"""

import dataclasses
import itertools
import sys
import zipfile

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from zoo import heads, losses
from zoo.lexicon import Lexicon

RATINGS = "recbole/dataset_example/ml-100k/ml-100k.inter"
LENGTH, SIZE, BATCH, BEST = 50, 32, 64, 10


def read_viewers(wheel) -> list[np.ndarray]:
    """Reads the films that each viewer rated, numbered from 0, in the order of time."""
    with zipfile.ZipFile(wheel).open(RATINGS) as file:
        viewers, films, _, times = np.loadtxt(file, skiprows=1).T
    order = np.lexsort((times, viewers))  # stable: ratings of one second stay as in the file
    films = np.unique(films, return_inverse=True)[1][order]
    return np.split(films, np.flatnonzero(np.diff(viewers[order])) + 1)


@dataclasses.dataclass(frozen=True)
class Binary(heads.ImportanceSampling):
    """SASRec's own loss: is it the next film, or a random one? Without logQ."""

    def sampled_loss(self, params, scores):
        """Computes -log sigmoid(o_x) - log sigmoid(-o_k)."""
        zeros = map(jnp.zeros_like, (scores.true, scores.noise))
        return losses.nce_loss(scores.true, scores.noise, *zeros)


UNIGRAM, UNIFORM = heads.UnigramNoise(), heads.UniformNoise()
# Tied: the table of the scores is that of the inputs.
HEADS: dict[str, heads.Head] = {
    "full softmax": heads.Softmax(tied=True, bias=False),
    "importance sampling": heads.ImportanceSampling(
        tied=True, bias=False, samples=256, noise=UNIGRAM
    ),
    "binary loss": Binary(tied=True, bias=False, samples=1, noise=UNIFORM, noise_per="token"),
}


class SASRec(nn.Module):
    """Two blocks of attention to the films before: from vectors [B, L, SIZE] to states."""

    @nn.compact
    def __call__(self, vectors, deterministic=False):
        positions = self.param("positions", nn.initializers.normal(0.02), (LENGTH, SIZE))
        x = nn.Dropout(0.2, deterministic=deterministic)(vectors + positions[None])
        mask = nn.make_causal_mask(vectors[..., 0])
        for _ in range(2):
            x += nn.MultiHeadDotProductAttention(num_heads=1)(nn.LayerNorm()(x), mask=mask)
            inside = nn.relu(nn.Dense(SIZE)(nn.LayerNorm()(x)))
            x += nn.Dropout(0.2, deterministic=deterministic)(nn.Dense(SIZE)(inside))
        return nn.LayerNorm()(x)


def states(params, films, **options):
    """Computes the state after each of films [B, L]."""
    vectors = SIZE**0.5 * params["films"][films]
    return SASRec().apply({"params": params["network"]}, vectors, **options)


def windows(viewers, ends) -> tuple[np.ndarray, np.ndarray]:
    """Takes at most LENGTH + 1 films before each end: (padded films, their numbers)."""
    sizes = np.minimum(ends, LENGTH + 1)
    rows = np.zeros((len(viewers), LENGTH + 1), int)
    for row, films, end, size in zip(rows, viewers, ends, sizes, strict=True):
        row[:size] = films[end - size : end]
    return rows, sizes


def batches(viewers, seed: int):
    """Yields (rows, sizes, random key) of random windows of random viewers, without end."""
    generator, key = np.random.default_rng(seed), jax.random.key(seed)
    for number in itertools.count():
        batch = [viewers[viewer] for viewer in generator.integers(len(viewers), size=BATCH)]
        ends = [generator.integers(min(LENGTH, len(films) - 1), len(films)) + 1 for films in batch]
        yield *windows(batch, ends), jax.random.fold_in(key, number)


def initial_parameters(films: int, seed: int):
    """Draws the vectors of films [V, SIZE] and the parameters of the network."""
    keys, empty = jax.random.split(jax.random.key(seed)), jnp.zeros((1, LENGTH, SIZE))
    vectors = jax.random.normal(keys[0], (films, SIZE)) / SIZE**0.5
    network = SASRec().init(keys[1], empty, deterministic=True)["params"]
    return {"films": vectors, "network": network}


def make_step(head, viewers, films: int, optimizer):
    """Compiles (parameters, optimiser's state, *batch) -> the first two after an update."""
    counts = np.bincount(np.concatenate(viewers), minlength=films)  # for the noise, and logQ
    tables = head.tables(Lexicon(tuple(map(str, range(films))), counts))

    def loss(params, rows, sizes, key):
        noise, dropout = jax.random.split(key)
        hidden = states(params, rows[:, :-1], rngs={"dropout": dropout})
        is_film = 1.0 * (jnp.arange(1, LENGTH + 1)[None] < sizes[:, None])
        table, weights = {"weights": params["films"]}, is_film / is_film.sum()
        return head.weighted_loss(table, tables, hidden, rows[:, 1:], weights, key=noise)

    @jax.jit
    def step(params, state, *batch):
        updates, state = optimizer.update(jax.grad(loss)(params, *batch), state)
        return optax.apply_updates(params, updates), state

    return step


def train(head, viewers, films: int, rate: float, steps: int, seed: int):
    """Trains by Adam; returns the parameters."""
    optimizer = optax.adam(rate)  # for a million items, docs/items.md has RowUpdates
    params, step = initial_parameters(films, seed), make_step(head, viewers, films, optimizer)
    state = optimizer.init(params)
    for batch in itertools.islice(batches(viewers, seed), steps):
        params, state = step(params, state, *batch)
    return params


def places(params, viewers) -> np.ndarray:
    """Returns the place of each viewer's last film among the best ten, from 1; 0 for none."""
    rows, sizes = windows(viewers, [*map(len, viewers)])

    numbers = np.arange(len(viewers))

    @jax.jit
    def best_films(params):
        hidden = states(params, rows[:, :-1], deterministic=True)[numbers, sizes - 2]
        table, bias = params["films"], jnp.zeros(len(params["films"]))
        return losses.softmax_top_k(hidden, table, bias, BEST)[1]

    hits = np.asarray(best_films(params)) == rows[numbers, sizes - 1][:, None]
    return (hits * np.arange(1, BEST + 1)).sum(axis=1)


def metrics(places) -> np.ndarray:
    """Computes HR@10, 1 for a place, and NDCG@10, 1 / log2(1 + place), of each viewer: [..., 2]."""
    is_hit = places > 0
    return np.stack([is_hit, is_hit / np.log2(1 + np.maximum(places, 1))], axis=-1)


def main(wheel: str, steps: int = 500, rate: float = 0.003):
    """Trains with each loss on all but the last two films, and prints figures of validation."""
    viewers = [films[:-1] for films in read_viewers(wheel)]
    training, films = [films[:-1] for films in viewers], 1 + max(map(max, viewers))
    for name, head in HEADS.items():
        params = train(head, training, films, rate, steps, seed=0)
        hit_rate, ndcg = metrics(places(params, viewers)).mean(axis=0)
        print(f"{name}: HR@10 {hit_rate:.3f}, NDCG@10 {ndcg:.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
