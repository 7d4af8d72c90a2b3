"""A treebank of Universal Dependencies with a log-linear head over its tags.

    python -m zoo data ud_czech_pdt
    python train.py --config ud_czech_pdt runs/ud_czech_pdt
    python evaluate.py runs/ud_czech_pdt

The config has the name of the treebank: ud_LANGUAGE_TREEBANK, in small letters, as ud_french_gsd or
ud_old_french_altm; `--config ud_treebank runs/any` takes ud_french_gsd. Words, tags and background
only come from the training text, where a word has all its tags; words seen once train the unknown
word. Figures are per syntactic word and </s>, sentences from an empty state. Those of eleven
treebanks with little text are in docs/results/treebanks.md. Not run yet on a whole treebank, so
without an expected figure. The same with a softmax is ud_LANGUAGE_TREEBANK_softmax.

A run on the default treebank: `python train.py --config ud_treebank runs/ud_treebank`.
"""

from zoo import Evaluation, Experiment, Training, priors
from zoo.cores import LSTM
from zoo.data import Conllu, Vocabulary
from zoo.embeddings import Features
from zoo.heads import LogLinear
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config(treebank: str = "ud_french_gsd") -> Experiment:
    """Returns the experiment of a folder with train.conllu, dev.conllu and test.conllu."""
    return Experiment(
        data=Conllu(
            train=f"{treebank}/train.conllu",
            validation=f"{treebank}/dev.conllu",
            tests=(f"{treebank}/test.conllu",),
        ),
        vocabulary=Vocabulary(
            minimum_count=2,
            features=(
                priors.TopWords(count=2500, splits=("train",)),
                priors.Morphology(splits=("train",), guesser=priors.SuffixGuesser()),
            ),
            background=priors.Unigram(splits=("train",), smoothing=0.5),
        ),
        model=LanguageModel(
            embedding=Features(size=256), core=LSTM(size=256, dropout=0.5), head=LogLinear()
        ),
        training=Training(
            batch=32,
            state="sentences",
            optimizer=Adam(learning_rate=0.003, schedule=Cosine(warmup=100)),
            clip=1.0,
            epochs=15,
            patience=3,
        ),
        evaluation=Evaluation(state="sentences"),
    )
