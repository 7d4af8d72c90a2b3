"""Questions of GeoQuery to logical forms that a grammar allows.

    python train.py --config geoquery_constrained --workdir runs/geoquery_constrained
    python evaluate.py --workdir runs/geoquery_constrained --split test --exact-match \
        --grammar configs/geoquery.grammar

As geoquery, but over a background that has no mass for words with which no form of the grammar
goes on (Dymetman and Xiao 2016, section 4; Xiao, Dymetman and Gardent 2016). Data: geoquery/ in
$ZOO_DATA. Results: docs/backgrounds.md.
"""

import dataclasses

from configs import geoquery
from zoo import Experiment, priors
from zoo.heads import LogLinear


def get_config() -> Experiment:
    """The experiment."""
    base = geoquery.get_config()
    background = priors.Grammar(
        "configs/geoquery.grammar", start=base.data.separator, depth=12, stacks=2
    )
    return dataclasses.replace(
        base, model=dataclasses.replace(base.model, head=LogLinear(background=background))
    )
