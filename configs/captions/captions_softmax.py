"""An LSTM with a tied softmax over English captions, sentence by sentence.

    python -m zoo data multi30k
    python train.py --config captions_softmax runs/captions_softmax

The model of models/english. Words that occur once in training are <unk>; text is in lower case and
tokenised as it comes. Data: multi30k/ in $ZOO_DATA. Expected, of one run: test perplexity 28.0
(validation 27.6), at most 28 minutes on two cores beside much other work.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    return Experiment(
        data=Text(
            train="multi30k/train.lc.norm.tok.en",
            validation="multi30k/val.lc.norm.tok.en",
            tests=("multi30k/test_2016_flickr.lc.norm.tok.en",),
        ),
        vocabulary=Vocabulary(minimum_count=2, lower_case=True),
        model=LanguageModel(
            embedding=Lookup(size=200),
            core=LSTM(size=200, dropout=0.3, input_dropout=0.3),
            head=Softmax(tied=True),
        ),
        training=Training(
            batch=20,
            length=35,
            state="sentences",
            shuffle=True,
            optimizer=Adam(learning_rate=0.003, schedule=Cosine()),
            clip=1.0,
            epochs=5,
        ),
        evaluation=Evaluation(state="sentences"),
    )
