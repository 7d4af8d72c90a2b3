"""A mixture of fifteen softmaxes on an AWD-LSTM: Yang et al. (2018), Penn Treebank.

    python train.py --config ptb_awd_lstm_mixture runs/ptb_awd_lstm_mixture

"Breaking the softmax bottleneck", appendix B, with the rates of the authors' command for the Penn
Treebank: as ptb_awd_lstm, with layers of 960, 960 and 620 cells, vectors of 280 numbers, and masks
of the mixture's contexts. 21,490,460 parameters; the authors' code has 10,160 more, for a second
bias of each gate. Not run yet on the whole, so without an expected figure; the paper has a test
perplexity of 55.97, and 54.44 after fine-tuning (see ptb_awd_lstm; at the learning rate 25).

Data: ptb/ (Mikolov's files) in $ZOO_DATA. Time and memory of a step: docs/regularisation.md.
"""

from configs import ptb_awd_lstm, variant
from zoo.heads import MixtureOfSoftmaxes

get_config = variant(
    ptb_awd_lstm,
    {
        "model.embedding.size": 280,
        "model.core.size": 960,
        "model.core.last_size": 620,
        "model.core.dropout": 0.225,
        "model.head": MixtureOfSoftmaxes(components=15, size=280, tied=True, latent_dropout=0.29),
        "training.batch": 12,
        "training.optimizer.learning_rate": 20.0,
        "training.epochs": 1000,
    },
)
