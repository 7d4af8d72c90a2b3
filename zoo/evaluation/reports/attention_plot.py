"""The attention of a translation as a matrix of grey squares."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from zoo.evaluation.reports import plot_style
from zoo.sources import moses

_GREY: dict[str, Any] = {"cmap": "Greys", "vmin": 0, "vmax": 1, "aspect": "equal"}


def attention(
    source: Sequence[str],
    target: Sequence[str],
    weights: np.ndarray,
    file: str | pathlib.Path,
    label: str = "weight",
):
    """Draws how much each word of a translation attends to, or depends on, each source word."""
    source, target = ([*map(moses.unescaped, words)] for words in (source, target))
    width, height = (1.8 + 0.36 * max(len(words), 3) for words in (source, target))
    shape = (max(len(target), 1), max(len(source), 1))
    greatest = 1 if label == "weight" else float(np.max(weights, initial=0)) or 1
    with plot_style.matrix(file, width + 0.8, height) as (figure, axes):
        image = axes.imshow(
            np.reshape(weights, shape) if np.size(weights) else np.zeros(shape),
            **{**_GREY, "vmax": greatest},
        )
        axes.set_xticks(range(len(source)), source, rotation=90)
        axes.set_yticks(range(len(target)), target)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        figure.colorbar(image, label=label, shrink=0.8)
