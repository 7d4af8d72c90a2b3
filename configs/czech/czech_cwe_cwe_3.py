"""Czech with a feed-forward trigram model, letters in and out ("CWE-CWE").

    python train.py --config czech_cwe_cwe_3 runs/czech_cwe_cwe_3
    python evaluate.py runs/czech_cwe_cwe_3

Labeau and Allauzen (2017), section 2.4: as czech_cwe_3, but the output vectors also come from
letters, and are computed only for the target and noise words. With the full padding of their figure
3 on both sides: --set model.head.network.spelling.padding=full --set
model.embedding.parts.1.network.spelling.padding=full. Such a model cannot memorise words: it has
no dropout and is trained as in the paper, at a constant rate, with
Adagrad's accumulator reset twice. Expected, of one run: test perplexity 511.2, of epoch 9, at most
14 minutes on one CPU core.
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
            "model.core.dropout": 0.0,
            "model.core.input_dropout": 0.0,
            "model.head": CNNSoftmax(
                sampled=NCE(noise=UnigramNoise(), samples=25, noise_per="token")
            ),
            "training.optimizer": Adagrad(learning_rate=0.1, reset_every=5),
        },
    )
