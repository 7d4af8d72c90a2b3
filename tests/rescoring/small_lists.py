"""Small lists for the tests of tuning."""

import numpy as np

from zoo.rescoring.model_features import Lists


def lists(seed=0, count=7, features=3, most=5, statistics=4, metric=None):
    """Random lists of 1 to `most` hypotheses, with statistics as `metric` has them."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, most + 1, count)
    sizes[0] = most
    total = int(sizes.sum())
    counts = generator.integers(0, 4, (total, statistics)).astype(float)
    if metric == "wer":  # the words of a reference are those of its list
        counts[:, 3] = np.repeat(generator.integers(3, 9, count), sizes)
    elif metric == "bleu":
        matched = generator.integers(1, 6, (total, 4))
        counts = np.column_stack([np.full(total, 8.0), np.full(total, 9.0), matched, matched + 2])
    return Lists(
        tuple(map(str, range(count))),
        tuple(f"f{n}" for n in range(features)),
        np.cumsum([0, *sizes]),
        generator.normal(size=(total, features)),
        counts,
        generator.normal(size=total),
    )
