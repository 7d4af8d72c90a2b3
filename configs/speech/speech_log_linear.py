"""A log-linear head over affixes of words, to re-score hypotheses.

    python train.py --config speech_log_linear runs/speech_log_linear

As speech_softmax, but a word is the set of its features, in and out: its identity if it is among
the 4,000 most frequent of the training text, its affixes, its digits' form (Dymetman and Xiao 2016,
section 3). Words outside the training text are scored by their features if --add-words lists them.

Data: speech/ in $ZOO_DATA. Expected, of seed 0: validation perplexity 239.0, at most 10 minutes on
one CPU core.
"""

from configs import speech_softmax, variant
from zoo import priors
from zoo.embeddings import Features
from zoo.heads import LogLinear

get_config = variant(
    speech_softmax,
    {
        "vocabulary.features": (
            priors.TopWords(count=4000, splits=("train",)),
            priors.Numbers(),
            priors.Affixes(prefixes=(2, 3), suffixes=(1, 2, 3), minimum_words=10),
        ),
        "vocabulary.background": priors.Unigram(splits=("train",), smoothing=0.5),
        "model.embedding": Features(size=200),
        "model.head": LogLinear(),
    },
)
