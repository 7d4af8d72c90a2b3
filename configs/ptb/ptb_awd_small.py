"""A small relative of the AWD-LSTM on the Penn Treebank, for a CPU.

    python train.py --config ptb_awd_small runs/ptb_awd_small
    python evaluate.py runs/ptb_awd_small

Two layers of 450 and 300 cells, 5,263,000 parameters, and everything of ptb_awd_lstm (Merity,
Keskar and Socher 2018) but averaging: the rate of SGD falls along a cosine, which needs fewer
epochs. Rates of dropout and of learning are the best on validation among 30 tried for 19 epochs
(docs/regularisation.md). Expected: test perplexity 72.1 (validation 74.9). Results:
docs/results.md. Data: ptb/ (Mikolov's files) in $ZOO_DATA.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import RandomWindows, Text, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import SGD, Cosine


def get_config() -> Experiment:
    """Returns the experiment."""
    return Experiment(
        data=Text(
            train="ptb/ptb.train.txt", validation="ptb/ptb.valid.txt", tests=("ptb/ptb.test.txt",)
        ),
        vocabulary=Vocabulary(),
        model=LanguageModel(
            embedding=Lookup(size=300),
            core=LSTM(
                size=450,
                layers=2,
                last_size=300,
                input_dropout=0.21,
                dropout=0.175,
                last_dropout=0.0,
                recurrent_dropout=0.21,
                variational=True,
            ),
            head=Softmax(tied=True),
            word_dropout=0.035,
            output_dropout=0.245,
            activation_penalty=2.0,
            temporal_penalty=1.0,
        ),
        training=Training(
            batch=20,
            length=35,
            windows=RandomWindows(),
            optimizer=SGD(learning_rate=30.0, weight_decay=1.2e-6, schedule=Cosine()),
            clip=0.25,
            epochs=40,
        ),
        evaluation=Evaluation(state="carried", batch=10, length=70),
    )
