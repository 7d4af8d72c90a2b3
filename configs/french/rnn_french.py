"""The softmax RNN of Dymetman and Xiao (2016), table 4, on French UD.

Paper: "Log-linear RNNs", sections 5.1 to 5.3; the baseline of llrnn_french. V is all types of all
splits, 2 x LSTM-256, windows of 8 words, RMSprop 0.001, stop when validation has not improved for
three epochs; no dropout. Choices that the paper leaves open: 32 batch rows side by side, the state
carried from window to window, sentences in a new order every epoch. Figures are per syntactic word,
boundaries not counted.

    python train.py --config rnn_french runs/rnn_french

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Expected, of one run: 5.991 nats a word on
both tests, at most 114 minutes on one of two CPU cores. The paper has 6.07 and 6.15 by another
denominator.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Conllu, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import RMSProp


def get_config() -> Experiment:
    return Experiment(
        data=Conllu(
            train="ud_french/fr-ud-train.conllu[:-728]",
            validation="ud_french/fr-ud-train.conllu[-728:]",
            tests=("ud_french/fr-ud-test.conllu", "ud_french/fr-ud-dev.conllu"),
        ),
        vocabulary=Vocabulary(splits=(), lower_case=True, unknown="refused", boundary="uncounted"),
        model=LanguageModel(
            embedding=Lookup(size=256), core=LSTM(size=256, layers=2), head=Softmax()
        ),
        training=Training(
            batch=32,
            length=8,
            shuffle=True,
            optimizer=RMSProp(learning_rate=0.001),
            epochs=40,
            patience=3,
            checkpoint_every=2000,
        ),
        evaluation=Evaluation(state="carried", batch=8, length=64),
    )
