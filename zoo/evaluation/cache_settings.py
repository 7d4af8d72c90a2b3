"""The flatness and weight of a cache, set on validation text."""

from zoo.evaluation.run import Run

# Where the search begins, and the least gain in nats per token for which it goes on.
FLATNESS, WEIGHT, GAIN = 0.2, 0.1, 1e-4


def tuned(run: Run, size: int) -> tuple[float, float]:
    """Returns the (flatness, weight) of a low log-perplexity on validation.

    Both are doubled or halved, one at a time, as long as the best of these changes lowers the
    log-perplexity; so they end at no edge of a grid.
    """
    corpus = run.read("validation")
    losses: dict[tuple[float, float], float] = {}

    def loss(settings):
        if settings not in losses:
            _, scores = run.with_cache(size, *settings).score(corpus)
            losses[settings] = scores.log_perplexity
        return losses[settings]

    best = FLATNESS, WEIGHT
    while True:
        flatness, weight = best
        changes = [(flatness * 2, weight), (flatness / 2, weight), (flatness, weight / 2)]
        if weight * 2 < 1:
            changes.append((flatness, weight * 2))
        better = min(changes, key=loss)
        if not loss(better) < loss(best) - GAIN:  # also of losses that are infinite
            return best
        best = better
