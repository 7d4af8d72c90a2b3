"""Czech with a feed-forward trigram model, words from their letters ("CE").

    python train.py --config czech_ce_3 --workdir runs/czech_ce_3
    python evaluate.py --workdir runs/czech_ce_3

Labeau and Allauzen (2017), section 2.2: as czech_we_3, but a word's vector comes from its
letters alone. Results: docs/results.md.
"""

import dataclasses

from configs import czech_we_3
from zoo import Experiment
from zoo.embeddings import CharCNN


def get_config() -> Experiment:
    """The experiment."""
    base = czech_we_3.get_config()
    return dataclasses.replace(
        base, model=dataclasses.replace(base.model, embedding=CharCNN(size=128))
    )
