"""The softmax RNN on French UD with the training of llrnn_french_best.

As rnn_french, with the same words, but with Adam on a cosine, dropout, an average of the
parameters, windows of 35 words and an output layer that is the table of the inputs; what is left of
the difference to llrnn_french_best is what its features and its background know. Trained by
importance sampling, on 2,048 noise words a step, and judged over all 42,504. Its best epoch was the
sixth, and it was stopped by hand after the ninth.

    python train.py --config rnn_french_best --workdir runs/rnn_french_best
    python evaluate.py --workdir runs/rnn_french_best

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Results: docs/results.md.
"""

import dataclasses

from configs import llrnn_french_best, rnn_french
from zoo import Experiment
from zoo.embeddings import Lookup
from zoo.heads import ImportanceSampling, UnigramNoise


def get_config() -> Experiment:
    """The experiment."""
    base, best = rnn_french.get_config(), llrnn_french_best.get_config()
    head = ImportanceSampling(
        noise=UnigramNoise(power=0.75), samples=2048, distinct=True, tied=True
    )
    return dataclasses.replace(
        base,
        model=dataclasses.replace(
            base.model, embedding=Lookup(size=400), core=best.model.core, head=head
        ),
        training=best.training,
    )
