"""Contributions of features to the log-probability of a word under a log-linear head.

Dymetman and Xiao, "Log-linear RNNs" (2016), equation 12: with the adaptor a = W h + c,

    log p(x | h) = log b(x) + sum_f a_f phi_f(x) - log Z,

so each feature f of the word adds a_f phi_f(x) nats to its score, and the background adds log b(x).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays.types import Context, Params, Tables
from zoo.evaluation.perplexity import PRECISION
from zoo.heads import LogLinear
from zoo.lexicon import Lexicon


class Contributions(NamedTuple):
    """The parts of the log-probability of a word, nats."""

    log_background: float
    features: tuple[tuple[str, float], ...]
    log_z: float

    @property
    def log_prob(self) -> float:
        """log p(x | h), the sum of the parts."""
        return self.log_background + sum(nats for _, nats in self.features) - self.log_z


def of_words(
    head: LogLinear,
    params: Params,
    tables: Tables,
    lexicon: Lexicon,
    hidden: np.ndarray,
    words: Sequence[int] | np.ndarray,
    context: Context = None,
) -> list[Contributions]:
    """Splits log p of words into the parts of the background, the features and the normaliser."""
    words = np.asarray(words, np.int32)
    log_background, log_z = _background_and_log_z(head, params, tables, hidden, words, context)
    known = lexicon.of_kinds(head.kinds)
    row_of = {name: row for row, name in enumerate(known.feature_names)}
    weights, bias = (np.asarray(params[name], np.float64) for name in ("weights", "bias"))
    found = []
    for word, state, background, normaliser in zip(
        words.tolist(), np.asarray(hidden, np.float64), log_background, log_z, strict=True
    ):
        features = known.features_of(word)
        rows = [row_of[name] for name in features]
        nats = (weights[rows] @ state + bias[rows]) * np.array([*features.values()])
        parts = sorted(zip(features, nats.tolist(), strict=True), key=lambda one: -abs(one[1]))
        found.append(Contributions(float(background), tuple(parts), float(normaliser)))
    return found


def _background_and_log_z(head, params, tables, hidden, words, context):
    """Computes (log b(x), log Z), float64 [n] each."""
    targets: Any = jnp.asarray(words)
    with jax.default_matmul_precision(PRECISION):
        _, log_z = head.log_prob_and_log_z(
            params, tables, jnp.asarray(hidden), targets, context=context
        )
        if head.background is None:
            mass = tables["log_mass"][tables["signature"][targets]]
            background = tables["log_within"][targets] + mass
        else:
            background = head.background.log_prob(tables["background"], context, targets)
    return np.asarray(background, np.float64), np.asarray(log_z, np.float64)
