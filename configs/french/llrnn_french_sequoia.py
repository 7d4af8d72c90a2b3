"""The log-linear RNN on French UD, with tags only from another treebank.

As llrnn_french_fair, but the morphology comes from the gold tags of UD French Sequoia; the tags of
other words are guessed from their endings. The tags of UD French's own training text, which the
fair recipe takes, were predicted by a tagger trained on the tests' tags; Sequoia's tags are
independent of the tests. The most frequent words and the background come from the training text.

    python -m zoo data sequoia_tags
    python train.py --config llrnn_french_sequoia runs/llrnn_french_sequoia

Data: ud_french/ (UD French r1.4, CoNLL-U) and ud_french_sequoia/ (the 2,231 training sentences of
UD French Sequoia at revision f5b0496, LGPL-LR) in $ZOO_DATA. The option --tags of `zoo words`
prints the share of a text's words that have tags from there.
"""

from configs import rnn_french, variant
from configs.french._shared import BACKGROUND, LOG_LINEAR, SEQUOIA, SOME_WORDS

get_config = variant(
    rnn_french,
    {
        **LOG_LINEAR,
        "vocabulary.features": (SOME_WORDS, SEQUOIA),
        "vocabulary.background": BACKGROUND,
    },
)
