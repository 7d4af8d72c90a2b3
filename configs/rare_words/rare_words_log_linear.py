"""News with a log-linear head that knows numbers and capitals by their spelling.

    python train.py --config rare_words_log_linear runs/rare_words_log_linear
    python -m records.rare_words runs/rare_words_log_linear

As rare_words_softmax, but a word is the set of its features, in and out: its identity if it is
among the 2,000 most frequent of the training text, its digits' form, whether it has a capital, its
ending (Dymetman and Xiao 2016, section 3). All features, and the background, only come from the
training text or from the spelling. Data: lm1b/ in $ZOO_DATA. Expected: validation perplexity 250
over the same words.
"""

from configs import rare_words_softmax, variant
from zoo import priors
from zoo.embeddings import Features
from zoo.heads import LogLinear

LOG_LINEAR = {
    "vocabulary.features": (
        priors.TopWords(count=2000, splits=("train",)),
        priors.Numbers(),
        priors.WordFunction("configs.rare_words_log_linear:shape"),
        priors.Affixes(prefixes=(), suffixes=(2, 3), minimum_words=100),
    ),
    "vocabulary.background": priors.Unigram(splits=("train",), smoothing=0.5),
    "model.embedding": Features(size=64),
    "model.head": LogLinear(),
}


def shape(word: str) -> list[str]:
    """Whether a word has capitals: the first letter, all, or some."""
    if word.istitle():
        return ["Shape:Capital"]
    if word.isupper():
        return ["Shape:CAPITALS"]
    return ["Shape:mIxed"] if word != word.lower() else []


get_config = variant(rare_words_softmax, LOG_LINEAR)
