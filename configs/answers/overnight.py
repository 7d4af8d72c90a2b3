"""Questions of Overnight's calendar domain to logical forms with a softmax over words.

    python train.py --config overnight runs/overnight
    python evaluate.py runs/overnight --split test --exact-match \
        --grammar configs/overnight_calendar.grammar

For comparison with overnight_constrained. The last 100 training questions are the validation set.
Data: overnight/ in $ZOO_DATA. Expected: 2 to 5 of 168 test questions right, 114 to 151 answers
parse (three seeds), in 2 minutes on one CPU core with training. Results: docs/results.md.
"""

from configs.answers._shared import CALENDAR
from zoo import Evaluation, Experiment, Training, priors
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import LogLinear
from zoo.models import LanguageModel
from zoo.optimizers import Adam


def get_config() -> Experiment:
    """Returns the experiment."""
    return Experiment(
        data=CALENDAR,
        # With a feature a word and a uniform background the log-linear head is a softmax.
        vocabulary=Vocabulary(
            unknown="skipped", features=(priors.TopWords(count=10_000, splits=("train",)),)
        ),
        model=LanguageModel(
            embedding=Lookup(size=64),
            core=LSTM(size=128, dropout=0.2, input_dropout=0.2),
            head=LogLinear(),
        ),
        training=Training(
            batch=8,
            length=120,
            state="sentences",
            shuffle=True,
            optimizer=Adam(learning_rate=0.01),
            clip=1.0,
            epochs=80,
        ),
        evaluation=Evaluation(state="sentences"),
    )
