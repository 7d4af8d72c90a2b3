"""A softmax on the Penn Treebank: the baseline for the heads of the other ptb_ configs.

    python train.py --config ptb_softmax runs/ptb_softmax

One core and one budget for all ptb_ configs: 256 LSTM cells, five epochs of stochastic gradient
descent; only the head differs. Figures count every word and </s>, with <unk> as a word and the
state carried over sentences. Data: ptb/ (Mikolov's files) in $ZOO_DATA. Expected, of one run: test
perplexity 105.4 (validation 108.6), at most 22 minutes on one of two CPU cores.
"""

from configs.ptb._shared import PTB
from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import SGD, Cosine


def get_config() -> Experiment:
    return Experiment(
        data=PTB,
        vocabulary=Vocabulary(),
        model=LanguageModel(
            embedding=Lookup(size=256),
            core=LSTM(size=256, dropout=0.2, input_dropout=0.2),
            head=Softmax(),
        ),
        training=Training(
            batch=20,
            length=35,
            optimizer=SGD(learning_rate=20.0, schedule=Cosine()),
            clip=0.25,
            epochs=5,
        ),
        evaluation=Evaluation(state="carried", batch=8, length=64),
    )
