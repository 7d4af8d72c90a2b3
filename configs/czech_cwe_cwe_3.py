"""Czech with a feed-forward trigram model, letters in and out ("CWE-CWE").

    python train.py --config czech_cwe_cwe_3 --workdir runs/czech_cwe_cwe_3
    python evaluate.py --workdir runs/czech_cwe_cwe_3

Labeau and Allauzen (2017), section 2.4: as czech_cwe_3, but the output vectors come from letters,
too, and are formed for the target and the noise words alone. With the full padding of their figure
3, of both sides: --set model.head.network.spelling.padding=full
--set model.embedding.parts.1.network.spelling.padding=full. Such a model has no word to learn by
heart and is the worse for dropout and a falling rate: it is trained as in the paper, at a constant
rate, with Adagrad's history put back twice. Results: docs/results.md.
"""

import dataclasses

from configs import czech_cwe_3
from zoo import Experiment
from zoo.heads import CNNSoftmax
from zoo.optimizers import Adagrad


def get_config() -> Experiment:
    """The experiment."""
    base = czech_cwe_3.get_config()
    core = dataclasses.replace(base.model.core, dropout=0.0, input_dropout=0.0)
    head = CNNSoftmax(sampled=base.model.head)
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, core=core, head=head),
        training=dataclasses.replace(
            base.training, optimizer=Adagrad(learning_rate=0.1, reset_every=5)
        ),
    )
