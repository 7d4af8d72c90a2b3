"""BIG LSTM, characters in and out, corrected, on the 1 Billion Word benchmark.

    python train.py --config lm1b_cnn_softmax_correction runs/lm1b_cnn_softmax_correction
    python evaluate.py runs/lm1b_cnn_softmax_correction

Jozefowicz et al. (2016), table 1, the same + 128-dim correction: test perplexity 35.8, 0.39 billion
parameters; not run here. All else is as in lm1b_cnn_inputs: a step also updates only the target and
noise words' corrections. The network has a tenth of the learning rate, as in lm1b_cnn_softmax.
"""

from configs import lm1b_lstm_2048_512
from configs.lm1b._shared import BIG, LETTERS
from zoo import Experiment, changed
from zoo.embeddings import CharCNN
from zoo.heads import CNNSoftmax, ImportanceSampling, LogUniformNoise


def get_config() -> Experiment:
    """Returns the experiment."""
    return changed(
        lm1b_lstm_2048_512.get_config(),
        {
            "model.embedding": CharCNN(size=1024, network=LETTERS),
            "model.core": BIG,
            "model.head": CNNSoftmax(
                network=LETTERS,
                sampled=ImportanceSampling(noise=LogUniformNoise(), samples=8192, distinct=True),
                correction=128,
            ),
            "training.rates": (("head/network", 0.1),),
        },
    )
