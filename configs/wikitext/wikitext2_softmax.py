"""A softmax on WikiText-2: the baseline for the heads of the other wikitext2_ configs.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_softmax runs/wikitext2_softmax
    python evaluate.py runs/wikitext2_softmax

The recipe is ptb_softmax's: 256 LSTM cells, five epochs of stochastic gradient descent; only the
head differs. Figures count every word and </s>, also of blank lines, as papers count (Merity et al.
2016: 2,088,628, 217,646 and 245,569 tokens, V = 33,278), with <unk> as a word and the state
carried. Not run yet, so without an expected figure.
"""

from configs.wikitext._shared import WIKITEXT_2
from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import SGD, Cosine


def get_config() -> Experiment:
    """Returns the experiment."""
    return Experiment(
        data=WIKITEXT_2,
        vocabulary=Vocabulary(),
        model=LanguageModel(
            embedding=Lookup(size=256),
            core=LSTM(size=256, dropout=0.2, input_dropout=0.2),
            head=Softmax(),
        ),
        training=Training(
            batch=20,
            length=35,
            optimizer=SGD(learning_rate=20.0, schedule=Cosine()),
            clip=0.25,
            epochs=5,
        ),
        evaluation=Evaluation(state="carried", batch=8, length=64),
    )
