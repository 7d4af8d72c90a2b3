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

from configs import captions_softmax, variant
from zoo import priors
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.heads import LogLinear
from zoo.lab.adaptation import Trained, WithWordsOf
from zoo.optimizers import Adam

BACKGROUND = "runs/ptb_awd_small"
CAPTIONS = captions_softmax.get_config().data

get_config = variant(
    captions_softmax,
    {
        "data": WithWordsOf(CAPTIONS, workdir=BACKGROUND),
        "data.source.train": f"{CAPTIONS.train}[:500]",
        "vocabulary": Vocabulary(
            minimum_count=1_000_000,  # no words but those of the background
            features=(priors.TopWords(count=500, splits=("train",)),),
        ),
        "model.embedding.size": 64,
        "model.core": LSTM(size=64, dropout=0.3, input_dropout=0.3),
        "model.head": LogLinear(initial_scale=0.0, background=Trained(BACKGROUND)),
        "training.optimizer": Adam(learning_rate=0.003),
        "training.epochs": 30,
        "training.patience": 3,
    },
)
