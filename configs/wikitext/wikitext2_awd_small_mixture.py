"""A mixture of three softmaxes on the small AWD-LSTM for WikiText-2, for a CPU.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_awd_small_mixture runs/wikitext2_awd_small_mixture

wikitext2_awd_small with the head and the learning rate of ptb_awd_small_mixture, and 10 epochs.
5,077,230 parameters. Not run yet on the whole, so without an expected figure.
"""

from configs import ptb_awd_lstm, variant
from configs.wikitext._shared import SMALL_AWD
from zoo.heads import MixtureOfSoftmaxes

get_config = variant(
    ptb_awd_lstm,
    {
        **SMALL_AWD,
        "model.head": MixtureOfSoftmaxes(components=3, size=128, tied=True, latent_dropout=0.2),
        "training.optimizer.learning_rate": 15.0,
        "training.epochs": 10,
    },
)
