"""A mixture of a model with a uniform distribution over the words that training never saw.

A lexicon may have words that do not occur in the training text, as the closed lexicon of Dymetman
and Xiao (2016), which is read off the test too. A head with parameters of words gives them next to
no probability, and each costs it more than a uniform guess. With U the set of these N words,

    p'(x | h) = (1 - l) p(x | h) + l [x in U] / N.

The weight l is set on validation text, where it maximises the likelihood: one number for a run, for
any head.
"""

import math

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.lab.evaluation.figures import Mixture, MixtureFigures
from zoo.lab.evaluation.perplexity import Scores
from zoo.lab.evaluation.run import Run
from zoo.lab.options import Option, number
from zoo.lexicon import Lexicon
from zoo.priors import Grammar

TUNED_ON = "validation"
_WEIGHT = number(0, 0.999999)
UNSEEN_WEIGHT = Option(
    "--unseen-weight tune|NUMBER",
    "also mixes the model with a uniform distribution over the words of the lexicon without "
    "training text; tune sets its weight on validation",
    lambda text: math.nan if text == "tune" else _WEIGHT(text),
)


def mix(log_prob: np.ndarray, unseen: np.ndarray, weight: float, words: int) -> np.ndarray:
    """Computes log((1 - l) p + l [unseen] / N), float64 [n], nats."""
    model_log_prob = np.asarray(log_prob, np.float64) + np.log1p(-weight)
    with np.errstate(divide="ignore"):
        uniform = np.where(unseen, np.log(weight) - np.log(words), -np.inf)
    return np.logaddexp(model_log_prob, uniform)


def tune_weight(log_prob: np.ndarray, unseen: np.ndarray, words: int) -> float:
    """Returns the weight l that maximises the likelihood of a text, by bisection.

    The log-likelihood is concave in l. Its derivative is

        sum over unseen words (1/N - p) / ((1 - l) p + l/N)  -  (number of other words) / (1 - l).
    """
    p = np.exp(np.asarray(log_prob, np.float64)[unseen])
    seen_count, share = int(np.sum(~unseen)), 1 / words

    def derivative(weight):
        with np.errstate(divide="ignore"):
            terms = (share - p) / ((1 - weight) * p + weight * share)
        return terms.sum() - seen_count / (1 - weight)

    if not len(p) or derivative(0.0) <= 0:
        return 0.0
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if derivative(middle) > 0 else (low, middle)
    return low


def unseen_words(lexicon: Lexicon) -> int:
    """Counts the words known to be without training text, but for boundary and unknown word."""
    marks = [lexicon.ids[word] for word in (lexicon.unknown, lexicon.boundary) if word is not None]
    return int((np.delete(lexicon.counts, marks) == 0).sum()) if lexicon.has_counts else 0


def from_run(run: Run, weight: float | None = None) -> Mixture | None:
    """Sets the weight of a run on its validation text; None if training saw all of its words."""
    run.experiment.check_whole_words("--unseen-weight")
    constrained = isinstance(run.experiment.head.background, Grammar)
    if run.experiment.vocabulary.open_classes or constrained:
        part = "a grammar that forbids words" if constrained else "classes of strings"
        raise UserError(f"{run.path} has {part}, so no weight is set: leave out --unseen-weight.")
    words = unseen_words(run.lexicon)
    if not words:
        return None
    if weight is not None:
        return Mixture(weight, words, None)
    text, scores = run.score_corpus(run.read(TUNED_ON))
    log_prob, unseen = _counted(run.lexicon, text, scores)
    return Mixture(tune_weight(log_prob, unseen, words), words, TUNED_ON)


def figures(
    mixture: Mixture, lexicon: Lexicon, text: EncodedText, scores: Scores
) -> MixtureFigures:
    """Computes the log-perplexity of a text under the mixture."""
    log_prob, unseen = _counted(lexicon, text, scores)
    mean = -float(mix(log_prob, unseen, mixture.weight, mixture.words).mean())
    return MixtureFigures(mixture.weight, mixture.words, mixture.tuned_on, mean)


def _counted(lexicon, text, scores):
    """Returns (log p, whether training never saw the word) of the counted words."""
    unseen = (text.occurrences(lexicon) == 0) & ~text.unknown(lexicon)
    return scores.log_prob[scores.counted], unseen[scores.counted]
