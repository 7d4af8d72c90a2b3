"""Czech with a trigram model, letters in, and an LSTM that spells the next word.

    python train.py --config czech_char_lstm_3 --workdir runs/czech_char_lstm_3
    python evaluate.py --workdir runs/czech_char_lstm_3

As czech_cwe_3, but for the head (Jozefowicz et al. 2016, section 3.3), which has no noise to be
contrasted with, and for Adam on larger batches. The perplexity is over all spellings. Not run to
its end yet.
"""

import dataclasses

from configs import czech_cwe_3
from zoo import Experiment
from zoo.heads import CharLSTM
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    """The experiment."""
    base = czech_cwe_3.get_config()
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=CharLSTM(size=128)),
        training=dataclasses.replace(
            base.training,
            batch=64,
            epochs=10,
            optimizer=Adam(learning_rate=0.001, schedule=Cosine(warmup=500)),
            clip=1.0,
        ),
    )
