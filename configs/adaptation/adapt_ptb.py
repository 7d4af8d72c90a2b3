"""A model of the Penn Treebank adapted to captions of photographs, with 500 of them.

    python train.py --config ptb_awd_small runs/ptb_awd_small
    python train.py --config adapt_ptb runs/adapt_ptb

The background is the run of ptb_awd_small, frozen; a small log-linear model over it learns what the
captions have more or less of (Dymetman and Xiao 2016, section 4). At step 0 it equals its
background exactly. Both have the same words, so that their figures can be compared. Other sizes:
--set data.source.train='multi30k/train.lc.norm.tok.en[:5000]'; another background: --set
data.workdir=DIR --set model.head.background.workdir=DIR. Data: multi30k/ in $ZOO_DATA. Expected:
test perplexity 49.1 (validation 48.1); the background alone has 157.4.
"""

from zoo import Evaluation, Experiment, Training, priors
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import LogLinear
from zoo.lab.adaptation import Trained, WithWordsOf
from zoo.models import LanguageModel
from zoo.optimizers import Adam

BACKGROUND = "runs/ptb_awd_small"


def get_config() -> Experiment:
    return Experiment(
        data=WithWordsOf(
            Text(
                train="multi30k/train.lc.norm.tok.en[:500]",
                validation="multi30k/val.lc.norm.tok.en",
                tests=("multi30k/test_2016_flickr.lc.norm.tok.en",),
            ),
            workdir=BACKGROUND,
        ),
        vocabulary=Vocabulary(
            minimum_count=1_000_000,  # no words but those of the background
            features=(priors.TopWords(count=500, splits=("train",)),),
        ),
        model=LanguageModel(
            embedding=Lookup(size=64),
            core=LSTM(size=64, dropout=0.3, input_dropout=0.3),
            head=LogLinear(initial_scale=0.0, background=Trained(BACKGROUND)),
        ),
        training=Training(
            batch=20,
            length=35,
            state="sentences",
            shuffle=True,
            optimizer=Adam(learning_rate=0.003),
            clip=1.0,
            epochs=30,
            patience=3,
        ),
        evaluation=Evaluation(state="sentences"),
    )
