"""Shakespeare, a character at a time, with an LSTM and a softmax.

    python train.py --config shakespeare_char runs/shakespeare_char

Every character is a word, and so is the line break: the figure to read is bits a character. Lines 1
to 36,000 are for training, 2,000 for validation, 2,000 for the test.

Data: tinyshakespeare/ (Karpathy's file) in $ZOO_DATA. Expected: 2.375 bits a character on the test
(validation 2.103), at most 6 minutes on two CPU cores.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Characters, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    path = "tinyshakespeare/input.txt"
    return Experiment(
        data=Characters(
            train=f"{path}[:36000]", validation=f"{path}[36000:38000]", tests=(f"{path}[38000:]",)
        ),
        vocabulary=Vocabulary(boundary="none"),
        model=LanguageModel(
            embedding=Lookup(size=64), core=LSTM(size=256, dropout=0.2), head=Softmax()
        ),
        training=Training(
            batch=16,
            length=64,
            optimizer=Adam(learning_rate=0.003, schedule=Cosine(warmup=100)),
            clip=1.0,
            epochs=20,
        ),
        evaluation=Evaluation(state="carried", batch=8, length=128),
    )
