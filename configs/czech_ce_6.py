"""Czech with a feed-forward 6-gram model, words from their letters ("CE").

    python train.py --config czech_ce_6 --workdir runs/czech_ce_6
    python evaluate.py --workdir runs/czech_ce_6

As czech_ce_3 with the last five words for a context instead of two. Labeau and Allauzen (2017).
Results: docs/results.md.
"""

import dataclasses

from configs import czech_ce_3
from zoo import Experiment


def get_config() -> Experiment:
    """The experiment."""
    base = czech_ce_3.get_config()
    core = dataclasses.replace(base.model.core, order=6)
    return dataclasses.replace(base, model=dataclasses.replace(base.model, core=core))
