"""Re-ranking of n-best lists: features of models, and weights tuned for a metric.

The examples begin with two lists of two hypotheses, "a b" and "a c" for the reference "a c", and
"d" and "e" for "e":

    >>> import numpy as np
    >>> from zoo.lab import rescoring
    >>> metric = rescoring.WordErrorRate()
    >>> pairs = (["a b", "a c"], ["a c"]), (["d", "e"], ["e"])
    >>> statistics = [metric.statistics(*pair) for pair in pairs]
    >>> features = np.array([[-1.0, 2], [-2, 1], [-1, 3], [-3, 2]])
    >>> arrays = np.array([0, 2, 4]), features, np.concatenate(statistics)
    >>> lists = rescoring.Lists(("first", "second"), ("lm", "length"), *arrays)
"""

from zoo.lab.evaluation.bleu_chrf_wer import Bleu, ChrF, Metric, WordErrorRate
from zoo.lab.rescoring.model_features import Lists
from zoo.lab.rescoring.reranking import Weights
from zoo.lab.rescoring.tune import Mert, Mira

__all__ = ["Bleu", "ChrF", "Lists", "Mert", "Metric", "Mira", "Weights", "WordErrorRate"]
