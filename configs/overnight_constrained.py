"""Questions of Overnight's calendar domain to logical forms that a grammar allows.

    python train.py --config overnight_constrained --workdir runs/overnight_constrained
    python evaluate.py --workdir runs/overnight_constrained --split test --exact-match \
        --grammar configs/overnight_calendar.grammar

As overnight, but over a background that has no mass for words with which no form of the grammar
goes on (Dymetman and Xiao 2016, section 4). Data: overnight/ in $ZOO_DATA. Results:
docs/backgrounds.md.
"""

import dataclasses

from configs import overnight
from zoo import Experiment, priors
from zoo.heads import LogLinear


def get_config() -> Experiment:
    """The experiment."""
    base = overnight.get_config()
    background = priors.Grammar(
        "configs/overnight_calendar.grammar",
        start=base.data.separator,
        splits=("train", "validation"),
        depth=12,
        stacks=6,
    )
    return dataclasses.replace(
        base, model=dataclasses.replace(base.model, head=LogLinear(background=background))
    )
