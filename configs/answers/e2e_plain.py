"""Restaurants described from their properties, character by character, with a softmax.

    python train.py --config e2e_plain runs/e2e_plain
    python -m records.slot_errors runs/e2e_plain --split test

For comparison with e2e_priming. The meaning is a prefix of the sequence, without loss. Without
attention the state has to carry names to where they are generated: so the cells start out keeping
their content, and a meaning is read from its last slot to its first, the name. Data: e2e/ in
$ZOO_DATA. Expected: 0.505 nats a character on the test, a slot error rate of 88 %.
"""

from configs.answers._shared import A_FEATURE_A_WORD
from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import LogLinear
from zoo.lab.papers import Realisations
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    return Experiment(
        data=Realisations(
            train="e2e/trainset.tokenized.csv",
            validation="e2e/devset.csv[:500]",
            tests=("e2e/testset_w_refs.csv",),
            last_first=True,
        ),
        vocabulary=Vocabulary(features=A_FEATURE_A_WORD),
        model=LanguageModel(
            embedding=Lookup(size=32), core=LSTM(size=256, forget_bias=3.0), head=LogLinear()
        ),
        training=Training(
            batch=32,
            length=240,
            state="sentences",
            shuffle=True,
            optimizer=Adam(learning_rate=0.004, schedule=Cosine()),
            clip=1.0,
            epochs=5,
        ),
        evaluation=Evaluation(state="sentences"),
    )
