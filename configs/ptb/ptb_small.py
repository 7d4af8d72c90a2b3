"""A 2 x 256 LSTM with a tied softmax on the Penn Treebank.

    python train.py --config ptb_small runs/ptb_small
    python evaluate.py runs/ptb_small

Figures count every word and </s>, with <unk> as a word and the state carried over sentences, as is
usual for these files (Zaremba et al. 2014). Expected, of one run without a record: test perplexity
83.5 (validation 87.3) after 57 minutes on one CPU core; TheanoLM reports 104.7 for an LSTM of this
size. Data: ptb/ (Mikolov's files) in $ZOO_DATA.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
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
            embedding=Lookup(size=256),
            core=LSTM(size=256, layers=2, dropout=0.3, input_dropout=0.3),
            head=Softmax(tied=True),
        ),
        training=Training(
            batch=20,
            length=35,
            optimizer=SGD(learning_rate=20.0, schedule=Cosine()),
            clip=0.25,
            epochs=22,
        ),
        evaluation=Evaluation(state="carried", batch=8, length=64),
    )
