"""Questions of GeoQuery to logical forms with an encoder-decoder with attention.

    python train.py --config geoquery_attention runs/geoquery_attention
    python evaluate.py runs/geoquery_attention --split test --exact-match \
        --grammar configs/geoquery.grammar

As geoquery, but the question is the source of an encoder-decoder, which attends to its words while
it generates the form. Data: geoquery/ in $ZOO_DATA. Expected: 118 to 155 of 280 test questions
right, 261 to 265 answers parse (three seeds), in 3 minutes on one CPU core with training.
"""

from configs.answers._shared import A_FEATURE_A_WORD, GEOQUERY
from zoo import Evaluation, Experiment, Training
from zoo.attention import Bahdanau
from zoo.cores import LSTM, Bidirectional
from zoo.data import AsPairs, Buckets, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import LogLinear
from zoo.models import SequenceToSequence
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    core = LSTM(size=128, layers=1, dropout=0.4, input_dropout=0.4)
    return Experiment(
        data=AsPairs(GEOQUERY),
        vocabulary=Vocabulary(features=A_FEATURE_A_WORD),
        model=SequenceToSequence(
            embedding=Lookup(size=128, initial_scale=0.5),
            core=core,
            encoder=Bidirectional(core),
            attention=Bahdanau(),
            head=LogLinear(),
            order="forward",
        ),
        training=Training(
            batch=20,
            buckets=Buckets(padding=0.3),
            shuffle=True,
            optimizer=Adam(learning_rate=0.003, schedule=Cosine(warmup=50)),
            clip=1.0,
            epochs=80,
        ),
        evaluation=Evaluation(state="sentences", batch=64),
    )
