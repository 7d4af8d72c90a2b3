"""French and Czech in one model of letters, drawn in equal parts.

    python train.py --config two_languages_char runs/two_languages_char
    python evaluate.py runs/two_languages_char

Labeau and Allauzen (2017), section 3.1, draw training sentences from corpora by weights. Here these
are of two languages, which no parameter tells apart: words come in by a convolution over the bytes
of their UTF-8 and go out by an LSTM that spells them (Jozefowicz et al. 2016, section 3.3), so
nothing is sized by either vocabulary. The lexicon has all words of all splits; it is no more than
the list of their spellings. Perplexities are over all spellings, of every text alone.

Data: ud_french/ (UD French r1.4, CoNLL-U) and czech/ (newspaper text of PARSEME 1.0) in $ZOO_DATA.
Expected, after six of the ten epochs: 8.45 and 8.80 nats a word on the French tests, 11.48 on the
Czech one, at most 10 minutes on one CPU core. Results: docs/results.md.
"""

from configs import czech_we_3, rnn_french
from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Mixed, Vocabulary
from zoo.embeddings import CharCNN
from zoo.heads import CharLSTM
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    """The experiment."""
    return Experiment(
        data=Mixed(
            names=("french", "czech"),
            corpora=(rnn_french.get_config().data, czech_we_3.get_config().data),
            weights=(1.0, 1.0),
            sentences=20_000,
        ),
        vocabulary=Vocabulary(splits=(), unknown="refused"),
        model=LanguageModel(
            embedding=CharCNN(size=128), core=LSTM(size=256), head=CharLSTM(size=128)
        ),
        training=Training(
            batch=32,
            length=20,
            optimizer=Adam(learning_rate=0.002, schedule=Cosine(warmup=100)),
            clip=1.0,
            epochs=10,
        ),
        evaluation=Evaluation(state="sentences", lanes=32, length=32),
    )
