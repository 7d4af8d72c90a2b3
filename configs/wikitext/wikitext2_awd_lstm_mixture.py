"""A mixture of fifteen softmaxes on an AWD-LSTM, on WikiText-2: Yang et al. (2018).

    python -m zoo data wikitext-2
    python train.py --config wikitext2_awd_lstm_mixture runs/wikitext2_awd_lstm_mixture

As wikitext2_awd_lstm, with a last layer of 650 cells, vectors of 300 numbers, and the rates of the
authors' command for WikiText-2. 34,897,728 parameters; the authors' code has 11,800 more, for a
second bias of each gate. Not run yet on the whole, so without an expected figure; the paper has a
test perplexity of 63.33, and 61.45 after fine-tuning (see ptb_awd_lstm; at the learning rate 20).
Time and memory of a step: docs/regularisation.md.
"""

from configs import ptb_awd_lstm, variant
from configs.wikitext._shared import WIKITEXT_2
from zoo.heads import MixtureOfSoftmaxes

get_config = variant(
    ptb_awd_lstm,
    {
        "data": WIKITEXT_2,
        "model.embedding.size": 300,
        "model.core.last_size": 650,
        "model.core.input_dropout": 0.55,
        "model.core.dropout": 0.2,
        "model.head": MixtureOfSoftmaxes(components=15, size=300, tied=True, latent_dropout=0.29),
        "training.batch": 15,
        "training.optimizer.learning_rate": 15.0,
        "training.epochs": 1000,
    },
)
