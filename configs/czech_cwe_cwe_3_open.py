"""Czech with a trigram model, letters in and out, against noise words of any spelling.

    python train.py --config czech_cwe_cwe_3_open --workdir runs/czech_cwe_cwe_3_open
    python evaluate.py --workdir runs/czech_cwe_cwe_3_open

As czech_cwe_cwe_3, but for the noise: Labeau and Allauzen (2017), section 4.4, name the closed
vocabulary of noise as what keeps their model from learning of unknown words, and leave another
noise to later work. Here it is a trigram model of the letters of the training words. Perplexities
are over the words of the lexicon, as those of czech_cwe_cwe_3. It does not help: docs/results.md
has the figures of a run with --set model.head.sampled.noise_per=lane, and why.
"""

import dataclasses

from configs import czech_cwe_cwe_3
from zoo import Experiment
from zoo.heads import LetterNoise


def get_config() -> Experiment:
    """The experiment."""
    base = czech_cwe_cwe_3.get_config()
    sampled = dataclasses.replace(base.model.head.sampled, noise=LetterNoise(order=3))
    head = dataclasses.replace(base.model.head, sampled=sampled)
    return dataclasses.replace(base, model=dataclasses.replace(base.model, head=head))
