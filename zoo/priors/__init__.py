"""Priors: what is known of words before training."""

from zoo.priors.arpa import Arpa
from zoo.priors.contextual import ContextualBackground
from zoo.priors.grammar import Grammar
from zoo.priors.morphology import Morphology
from zoo.priors.ngram import NGram
from zoo.priors.prior import Background, FeaturePrior
from zoo.priors.top_words import TopWords
from zoo.priors.unigram import Uniform, Unigram

__all__ = [
    "Arpa",
    "Background",
    "ContextualBackground",
    "FeaturePrior",
    "Grammar",
    "Morphology",
    "NGram",
    "TopWords",
    "Uniform",
    "Unigram",
]
