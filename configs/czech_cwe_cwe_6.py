"""Czech with a feed-forward 6-gram model, letters in and out ("CWE-CWE").

    python train.py --config czech_cwe_cwe_6 --workdir runs/czech_cwe_cwe_6
    python evaluate.py --workdir runs/czech_cwe_cwe_6

As czech_cwe_cwe_3 with the last five words for a context instead of two. Labeau and Allauzen
(2017). Results: docs/results.md.
"""

import dataclasses

from configs import czech_cwe_cwe_3
from zoo import Experiment


def get_config() -> Experiment:
    """The experiment."""
    base = czech_cwe_cwe_3.get_config()
    core = dataclasses.replace(base.model.core, order=6)
    return dataclasses.replace(base, model=dataclasses.replace(base.model, core=core))
