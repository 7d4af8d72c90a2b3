"""French and Czech in one model of letters, drawn in equal parts.

    python train.py --config two_languages_char runs/two_languages_char
    python evaluate.py runs/two_languages_char

Labeau and Allauzen (2017), section 3.1, draw training sentences from corpora by weights. Here these
are of two languages, which no parameter tells apart: words come in by a convolution over the bytes
of their UTF-8 and go out by an LSTM that spells them (Jozefowicz et al. 2016, section 3.3), so
nothing is sized by either vocabulary. The lexicon has all words of all splits; it is no more than
the list of their spellings. Perplexities are over all spellings, of every text alone.

Data: ud_french/ (UD French r1.4, CoNLL-U) and czech/ (newspaper text of PARSEME 1.0) in $ZOO_DATA.
Expected: 7.96 and 8.28 nats a word on the French tests, 10.77 on the Czech one, at most 25 minutes
on one CPU core. Results: docs/results.md.
"""

from configs import czech_we_3, rnn_french
from configs.characters._shared import of_letters
from zoo import Experiment
from zoo.data import Mixed


def get_config() -> Experiment:
    """The experiment."""
    return of_letters(
        Mixed(
            names=("french", "czech"),
            corpora=(rnn_french.get_config().data, czech_we_3.get_config().data),
            weights=(1.0, 1.0),
            sentences=20_000,
        )
    )
