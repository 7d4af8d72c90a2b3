"""What the captions of a log-linear decoder share."""

from zoo import priors
from zoo.heads import LogLinear

# A word is its identity if it is among the 3,000 most frequent, its beginning and its endings.
LOG_LINEAR = {
    "vocabulary.features": (
        priors.TopWords(count=3000, splits=("train",)),
        priors.Affixes(suffixes=(1, 2, 3), minimum_words=10),
    ),
    "vocabulary.background": priors.Unigram(splits=("train",), smoothing=0.5),
    "model.head": LogLinear(),
}
