"""The log-linear RNN on French UD, its tags from another treebank alone.

As llrnn_french_fair, but the morphology is that of the gold tags of UD French Sequoia: words that
Sequoia has not are guessed from their endings. The tags of UD French's own training text, which the
fair recipe takes, were predicted by a tagger that was taught on the tests' tags; these know
nothing of the tests. The most frequent words and the background are those of the training text.

    python train.py --config llrnn_french_sequoia runs/llrnn_french_sequoia
    python evaluate.py runs/llrnn_french_sequoia

Data: ud_french/ (UD French r1.4, CoNLL-U) and ud_french_sequoia/ in $ZOO_DATA. Results:
docs/results.md.
"""

from configs import rnn_french
from zoo import Experiment, changed, priors
from zoo.embeddings import Features
from zoo.heads import LogLinear

TRAIN = ("train",)
TREEBANK = "ud_french_sequoia/fr_sequoia-ud-train.conllu"


def get_config() -> Experiment:
    """The experiment."""
    return changed(
        rnn_french.get_config(),
        {
            "vocabulary.features": (
                priors.TopWords(count=2500, splits=TRAIN),
                priors.Morphology(
                    splits=TRAIN, treebanks=(TREEBANK,), guesser=priors.SuffixGuesser()
                ),
            ),
            "vocabulary.background": priors.Unigram(splits=TRAIN, smoothing=0.5),
            "model.embedding": Features(size=256),
            "model.head": LogLinear(),
        },
    )
