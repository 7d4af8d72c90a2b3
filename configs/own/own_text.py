"""Your own text, word by word: an LSTM with a tied softmax.

    python -m zoo text my.txt runs/mine
    python train.py --config own_text runs/mine --set 'data.train=my.txt[:-2000]' \
        --set 'data.validation=my.txt[-2000:-1000]' --set 'data.tests=("my.txt[-1000:]",)'

The text need not be tokenised: see data.RawText for sentences, words and languages. Words that
occur once are <unk>. `zoo text` sets the paths, the language and sizes that fit the text's length,
and prints the whole command; the sizes here are for some hundred thousand words. Expected: test
perplexity 80.1 (validation 74.9), 13 % of the test's words unknown, by `zoo text` on the first
10,000 lines of char-rnn's Shakespeare; at most 14 minutes on two cores beside much other work.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import RawText, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    return Experiment(
        data=RawText(
            train="text.txt[:-2000]",
            validation="text.txt[-2000:-1000]",
            tests=("text.txt[-1000:]",),
        ),
        vocabulary=Vocabulary(minimum_count=2, maximum_size=20_000),
        model=LanguageModel(
            embedding=Lookup(size=256),
            core=LSTM(size=256, dropout=0.4, input_dropout=0.4),
            head=Softmax(tied=True),
        ),
        training=Training(
            batch=20,
            length=35,
            optimizer=Adam(learning_rate=0.003, schedule=Cosine()),
            restart=0.05,
            clip=1.0,
            epochs=12,
        ),
        evaluation=Evaluation(state="carried", batch=8, length=64),
    )
