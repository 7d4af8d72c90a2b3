"""Questions of GeoQuery to logical forms with a softmax over words.

    python train.py --config geoquery runs/geoquery
    python evaluate.py runs/geoquery --split test --exact-match \
        --grammar configs/geoquery.grammar

A question is a prefix of the sequence, without loss. For comparison with geoquery_constrained.
Data: geoquery/ in $ZOO_DATA. Expected: 23 to 29 of 280 test questions right, 229 to 269 answers
parse (three seeds), in 7 minutes on one CPU core with training.
"""

from configs.answers._shared import GEOQUERY, OF_QUESTIONS
from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import LogLinear
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    return Experiment(
        data=GEOQUERY,
        vocabulary=OF_QUESTIONS,
        model=LanguageModel(
            embedding=Lookup(size=128),
            core=LSTM(size=256, dropout=0.5, input_dropout=0.4),
            head=LogLinear(),
        ),
        training=Training(
            # Windows of many sentences: few answers are cut off from their questions.
            batch=5,
            length=240,
            state="sentences",
            shuffle=True,
            optimizer=Adam(learning_rate=0.003, schedule=Cosine()),
            clip=1.0,
            epochs=250,
        ),
        evaluation=Evaluation(state="sentences"),
    )
