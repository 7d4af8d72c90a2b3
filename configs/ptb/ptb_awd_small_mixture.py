"""A mixture of three softmaxes on the small AWD-LSTM, for a CPU.

    python train.py --config ptb_awd_small_mixture runs/ptb_awd_small_mixture

ptb_awd_small with the head of ptb_awd_lstm_mixture (Yang, Dai, Salakhutdinov and Cohen 2018), which
has three components instead of fifteen, and a learning rate of its own. A step takes twice the
time. 5,534,800 parameters. Expected: test perplexity 72.5 (validation 75.9), the mean of three
seeds in windows of equal length, where ptb_awd_small has 72.1. Data: ptb/ (Mikolov's files) in
$ZOO_DATA.
"""

from configs import ptb_awd_lstm, variant
from configs.ptb._shared import SMALL_AWD
from zoo.heads import MixtureOfSoftmaxes

get_config = variant(
    ptb_awd_lstm,
    {
        **SMALL_AWD,
        "model.head": MixtureOfSoftmaxes(components=3, size=300, tied=True, latent_dropout=0.2),
        "training.optimizer.learning_rate": 15.0,
    },
)
