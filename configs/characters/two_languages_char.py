"""French and Czech in one model of letters, drawn in equal parts.

    python train.py --config two_languages_char runs/two_languages_char

Labeau and Allauzen (2017), section 3.1, draw training sentences from corpora by weights. Here the
corpora are of two languages, which share all parameters: the input is a convolution over the bytes
of a word's UTF-8, the output an LSTM that spells it (Jozefowicz et al. 2016, section 3.3), so no
parameter has the size of a vocabulary. The lexicon has all words of all splits, only as a list of
their spellings. Perplexities are over all spellings, for each text separately.

Data: ud_french/ (UD French r1.4, CoNLL-U) and czech/ (newspaper text of PARSEME 1.0) in $ZOO_DATA.
Expected: 7.92 and 8.25 nats a word on the French tests, 10.80 on the Czech one, at most 25 minutes
on one CPU core.
"""

from configs import czech_we_3, rnn_french
from configs.characters._shared import letter_model
from zoo import Experiment
from zoo.data import Mixed


def get_config() -> Experiment:
    return letter_model(
        Mixed(
            names=("french", "czech"),
            corpora=(rnn_french.get_config().data, czech_we_3.get_config().data),
            weights=(1.0, 1.0),
            sentences=20_000,
        )
    )
