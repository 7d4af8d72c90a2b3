"""The flatness and weight of a cache, set on validation text."""

import itertools

from zoo.evaluation.run import Run

FLATNESSES = (0.1, 0.2, 0.4, 0.8)
WEIGHTS = (0.05, 0.1, 0.2)


def tuned(run: Run, size: int) -> tuple[float, float]:
    """Returns the (flatness, weight) of the lowest log-perplexity on validation.

    Args:
      run: without a cache.
      size: N, the number of words in the memory.

    Raises:
      UserError: as `Run.with_cache`.
    """
    corpus = run.read("validation")

    def loss(settings):
        _, scores = run.with_cache(size, *settings).score(corpus)
        return scores.log_perplexity

    return min(itertools.product(FLATNESSES, WEIGHTS), key=loss)
