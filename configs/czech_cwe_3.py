"""Czech with a feed-forward trigram model, words and letters in ("CWE").

    python train.py --config czech_cwe_3 --workdir runs/czech_cwe_3
    python evaluate.py --workdir runs/czech_cwe_3

Labeau and Allauzen (2017), section 2.2: as czech_we_3, but a word's vector has a part of its own
and one from its letters. Results: docs/results.md.
"""

import dataclasses

from configs import czech_we_3
from zoo import Experiment
from zoo.embeddings import CharCNN, Concat


def get_config() -> Experiment:
    """The experiment."""
    base = czech_we_3.get_config()
    parts = (base.model.embedding, CharCNN(size=128))
    return dataclasses.replace(base, model=dataclasses.replace(base.model, embedding=Concat(parts)))
