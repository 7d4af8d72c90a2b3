"""The micro language with a softmax: the baseline of the quickstart.

    python train.py --config micro_softmax runs/quickstart/softmax

The language is generated, nothing is downloaded; `make quickstart` trains it beside
micro_log_linear and compares both with the language's own entropy. Expected: 3.4119 nats a token on
the test text (perplexity 30.32); at most 2 minutes on two cores (81 seconds of steps).
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Micro, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    return Experiment(
        data=Micro(),
        vocabulary=Vocabulary(unknown="refused"),
        model=LanguageModel(
            embedding=Lookup(size=128), core=LSTM(size=128, dropout=0.3), head=Softmax()
        ),
        training=Training(
            batch=32,
            length=20,
            shuffle=True,
            optimizer=Adam(learning_rate=0.003, schedule=Cosine(warmup=50)),
            clip=1.0,
            epochs=20,
            patience=3,
        ),
        evaluation=Evaluation(state="sentences", batch=16, length=20),
    )
