"""Czech with a feed-forward 6-gram model, letters in and out ("CWE-CWE").

    python train.py --config czech_cwe_cwe_6 runs/czech_cwe_cwe_6
    python evaluate.py runs/czech_cwe_cwe_6

As czech_cwe_cwe_3 with five words of context instead of two. Labeau and Allauzen (2017). Expected,
of one run: test perplexity 485.2, at most 20 minutes on one CPU core.
"""

from configs import czech_we_3
from zoo import Experiment, changed
from zoo.embeddings import CharCNN, Concat, Lookup
from zoo.heads import NCE, CNNSoftmax, UnigramNoise
from zoo.optimizers import Adagrad


def get_config() -> Experiment:
    """Returns the experiment."""
    return changed(
        czech_we_3.get_config(),
        {
            "model.embedding": Concat((Lookup(size=128), CharCNN(size=128))),
            "model.core.order": 6,
            "model.core.dropout": 0.0,
            "model.core.input_dropout": 0.0,
            "model.head": CNNSoftmax(
                sampled=NCE(noise=UnigramNoise(), samples=25, noise_per="token")
            ),
            "training.optimizer": Adagrad(learning_rate=0.1, reset_every=5),
        },
    )
