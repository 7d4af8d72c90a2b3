"""Restaurants described from their properties, character by character, with a softmax.

    python train.py --config e2e_plain runs/e2e_plain
    python -m records.slot_errors runs/e2e_plain --split test

For comparison with e2e_priming. The meaning is a prefix of the sequence, without loss. Without
attention the state has to carry names to where they are generated: so the cells start out keeping
their content, and a meaning is read from its last slot to its first, the name. Data: e2e/ in
$ZOO_DATA. Expected: 0.505 nats a character on the test, a slot error rate of 88 %.
"""

from configs import geoquery, variant
from configs.answers._shared import A_FEATURE_A_WORD
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.lab.papers import Realisations

get_config = variant(
    geoquery,
    {
        "data": Realisations(
            train="e2e/trainset.tokenized.csv",
            validation="e2e/devset.csv[:500]",
            tests=("e2e/testset_w_refs.csv",),
            last_first=True,
        ),
        "vocabulary": Vocabulary(features=A_FEATURE_A_WORD),
        "model.embedding.size": 32,
        "model.core": LSTM(size=256, forget_bias=3.0),
        "training.batch": 32,
        "training.optimizer.learning_rate": 0.004,
        "training.epochs": 5,
    },
)
