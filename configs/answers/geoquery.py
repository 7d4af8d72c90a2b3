"""Questions of GeoQuery to logical forms with a softmax over words.

    python train.py --config geoquery runs/geoquery
    python evaluate.py runs/geoquery --split test --exact-match \
        --grammar configs/geoquery.grammar

A question is a prefix of the sequence, without loss. For comparison with geoquery_constrained.
Data: geoquery/ in $ZOO_DATA. Expected: 23 to 29 of 280 test questions right, 229 to 269 answers
parse (three seeds), in 7 minutes on one CPU core with training. Results: docs/results.md.
"""

from zoo import Evaluation, Experiment, Training, priors
from zoo.cores import LSTM
from zoo.data import Prefixed, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import LogLinear
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    """Returns the experiment."""
    return Experiment(
        data=Prefixed(
            train="geoquery/geo_train.tsv",
            validation="geoquery/geo_dev.tsv",
            tests=("geoquery/geo_test.tsv",),
        ),
        # With a feature a word and a uniform background the log-linear head is a softmax.
        vocabulary=Vocabulary(
            unknown="skipped", features=(priors.TopWords(count=10_000, splits=("train",)),)
        ),
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
