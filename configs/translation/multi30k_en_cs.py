"""English to Czech captions: an encoder-decoder of two LSTM layers, no attention.

    python train.py --config multi30k_en_cs runs/multi30k_en_cs

As multi30k_en_fr, into a language with many more word forms. Data: multi30k/ in $ZOO_DATA,
tokenised and in lower case as it comes.
"""

from configs import multi30k_en_fr
from zoo import Experiment


def get_config() -> Experiment:
    return multi30k_en_fr.get_config("cs")
