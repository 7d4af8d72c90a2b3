"""Questions about countries, new ones in the test, with a softmax.

    python train.py --config countries_softmax runs/countries_softmax
    python evaluate.py runs/countries_softmax --split known --split test --exact-match

For comparison with countries_expert: a model that can only memorise answers. The table of facts is
configs/countries.tsv; nothing is downloaded. Expected: 32 to 45 % of the answers about known
countries right, by seed, 35 to 38 % about new ones.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.lab.papers import Facts
from zoo.models import LanguageModel
from zoo.optimizers import Adam


def get_config() -> Experiment:
    return Experiment(
        data=Facts("configs/countries.tsv"),
        vocabulary=Vocabulary(unknown="refused"),
        model=LanguageModel(embedding=Lookup(size=32), core=LSTM(size=64), head=Softmax()),
        training=Training(
            batch=20,
            length=30,
            state="sentences",
            shuffle=True,
            optimizer=Adam(learning_rate=0.01),
            clip=1.0,
            epochs=40,
        ),
        evaluation=Evaluation(state="sentences"),
    )
