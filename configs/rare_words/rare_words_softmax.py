"""A small news model with a softmax: how it predicts rare numbers and names.

    python train.py --config rare_words_softmax runs/rare_words_softmax
    python -m records.rare_words runs/rare_words_softmax

For comparison with rare_words_log_linear. The lexicon has the words that occur at least twice in
all splits together, so that training has not seen all of them. Data: lm1b/ (held-out parts of the 1
Billion Word Benchmark) in $ZOO_DATA. Expected: validation perplexity 375.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adam


def get_config() -> Experiment:
    dev, test = "lm1b/1b_benchmark.dev.tokens", "lm1b/1b_benchmark.test.tokens"
    return Experiment(
        data=Text(train=f"{dev}[:4000]", validation=f"{dev}[11000:]", tests=(f"{test}[:3000]",)),
        vocabulary=Vocabulary(splits=(), minimum_count=2),
        model=LanguageModel(
            embedding=Lookup(size=64),
            core=LSTM(size=128, projection=64, dropout=0.2),
            head=Softmax(),
        ),
        training=Training(
            batch=32,
            length=20,
            state="sentences",
            shuffle=True,
            optimizer=Adam(learning_rate=0.003),
            clip=1.0,
            epochs=8,
            patience=1,
        ),
        evaluation=Evaluation(state="sentences"),
    )
