"""A tuned softmax LSTM over the words of French UD's training text.

The opponent of french_log_linear: the same text, words, unigram background (a fixed bias of the
logits, half a token added to each count) and number of trials on validation. The lexicon has the
15,588 words that occur at least twice in training; all others are <unk>. The words' vectors are
tied: one table in and out.

    python train.py --config french_softmax runs/french_softmax

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Expected: 4.752 nats a word on the test, in
at most 50 minutes on one of two CPU cores beside other work.
"""

from zoo import Evaluation, Experiment, Training, priors
from zoo.cores import LSTM
from zoo.data import Conllu, Vocabulary
from zoo.embeddings import Features
from zoo.heads import LogLinear
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine

TRAIN = ("train",)


def get_config() -> Experiment:
    return Experiment(
        data=Conllu(
            train="ud_french/fr-ud-train.conllu[:-728]",
            validation="ud_french/fr-ud-train.conllu[-728:]",
            tests=("ud_french/fr-ud-test.conllu",),
        ),
        vocabulary=Vocabulary(
            splits=TRAIN,
            lower_case=True,
            unknown="counted",
            minimum_count=2,
            boundary="uncounted",
            # An identity feature for each word: a softmax with a background.
            features=(priors.TopWords(count=100_000, splits=TRAIN),),
            background=priors.Unigram(splits=TRAIN, smoothing=0.5),
        ),
        model=LanguageModel(
            embedding=Features(size=256),
            core=LSTM(size=256, dropout=0.5, input_dropout=0.3),
            head=LogLinear(tied=True),
        ),
        training=Training(
            batch=16,
            length=20,
            shuffle=True,
            optimizer=Adam(learning_rate=0.006, schedule=Cosine(warmup=20)),
            clip=1.0,
            epochs=12,
            checkpoint_every=2000,
        ),
        evaluation=Evaluation(state="carried", batch=8, length=64),
    )
