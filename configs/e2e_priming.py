"""Restaurants described from their properties; names need evidence there.

    python train.py --config e2e_priming --workdir runs/e2e_priming
    python -m zoo slot-errors runs/e2e_priming --split test

As e2e_plain, but over a background that lets in usual words and those of the meaning: condition-
based priming (Dymetman and Xiao 2016, section 4). Data: e2e/ in $ZOO_DATA. Results:
docs/backgrounds.md.
"""

import dataclasses

from configs import e2e_plain
from zoo import Experiment, priors
from zoo.heads import LogLinear


def get_config() -> Experiment:
    """The experiment."""
    base = e2e_plain.get_config()
    # Of 42,061 sentences some have the wrong name, which must not make that name a usual word.
    background = priors.Evidence(separator=base.data.separator, minimum_count=50)
    return dataclasses.replace(
        base, model=dataclasses.replace(base.model, head=LogLinear(background=background))
    )
