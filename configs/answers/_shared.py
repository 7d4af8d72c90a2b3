"""Shared parts of the recipes of answers: data, the softmax's vocabulary, and grammars."""

from zoo import priors
from zoo.cores import LSTM
from zoo.data import Prefixed, Vocabulary
from zoo.lab.papers import Overnight
from zoo.optimizers import Adam

# Overnight's calendar domain, with 100 questions for validation.
_CALENDAR = "overnight/calendar.paraphrases.train.examples"
CALENDAR = Overnight(
    train=f"{_CALENDAR}[:-100]",
    validation=f"{_CALENDAR}[-100:]",
    tests=(_CALENDAR.replace("train", "test"),),
)
GEOQUERY = Prefixed(
    train="geoquery/geo_train.tsv",
    validation="geoquery/geo_dev.tsv",
    tests=("geoquery/geo_test.tsv",),
)
# With a feature a word and a uniform background the log-linear head is a softmax.
A_FEATURE_A_WORD = (priors.TopWords(count=10_000, splits=("train",)),)
OF_QUESTIONS = Vocabulary(unknown="skipped", features=A_FEATURE_A_WORD)
# Changes of geoquery for the calendar's questions, and the grammar of their forms.
OVERNIGHT = {
    "data": CALENDAR,
    "model.embedding.size": 64,
    "model.core": LSTM(size=128, dropout=0.2, input_dropout=0.2),
    "training.batch": 8,
    "training.length": 120,
    "training.optimizer": Adam(learning_rate=0.01),
    "training.epochs": 80,
}
OVERNIGHT_FORMS = priors.Grammar(
    "configs/overnight_calendar.grammar", splits=("train", "validation"), depth=12, stacks=6
)
