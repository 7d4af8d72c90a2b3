"""LSTM-2048-512 on the 1 Billion Word benchmark by importance sampling.

    python train.py --config lm1b_lstm_2048_512 runs/lm1b_lstm_2048_512

Jozefowicz et al. (2016), table 1: test perplexity 43.7, 0.83 billion parameters, V = 793,471; not
run here, as it takes accelerators and days. IS with 8,192 log-uniform noise words, Adagrad 0.2, 20
positions a step; a step only updates the rows of tables that it touches. Data: the benchmark's
files, a sentence a line, as folders lm1b/train, lm1b/heldout and lm1b/test in $ZOO_DATA; words seen
fewer than three times become <unk>. The state is carried over sentences, which are shuffled in the
benchmark itself. The host holds the whole text in memory.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import ImportanceSampling, LogUniformNoise
from zoo.models import LanguageModel
from zoo.optimizers import Adagrad


def get_config() -> Experiment:
    return Experiment(
        data=Text(train="lm1b/train", validation="lm1b/heldout", tests=("lm1b/test",)),
        vocabulary=Vocabulary(minimum_count=3),
        model=LanguageModel(
            embedding=Lookup(size=512),
            core=LSTM(size=2048, projection=512, dropout=0.1, input_dropout=0.1),
            head=ImportanceSampling(noise=LogUniformNoise(), samples=8192, distinct=True),
        ),
        training=Training(
            batch=128,
            length=20,
            optimizer=Adagrad(learning_rate=0.2, initial_accumulator=1.0),
            clip=1.0,
            row_sparse=True,
            epochs=5,
            validate_every=20000,
            checkpoint_every=20000,
        ),
        evaluation=Evaluation(state="carried", batch=32, length=20),
    )
