"""Re-ranking of n-best lists: features of models, and weights tuned for a metric."""

from zoo.rescoring.lists import Lists
from zoo.rescoring.mert import Mert
from zoo.rescoring.metrics import Bleu, ChrF, Metric, WordErrorRate
from zoo.rescoring.mira import Mira
from zoo.rescoring.weights import Weights

__all__ = ["Bleu", "ChrF", "Lists", "Mert", "Metric", "Mira", "Weights", "WordErrorRate"]
