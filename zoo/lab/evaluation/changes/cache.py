"""A continuous cache around the head of a trained model, with settings that validation chooses."""

import argparse
import dataclasses
import functools

from zoo.errors import shortened
from zoo.heads import WithCache
from zoo.heads.head_around import nested
from zoo.lab.evaluation.changes.change import Change
from zoo.lab.options import Option, integer, number

# Where the search begins, and the least gain in nats per token for which it goes on.
FLATNESS, WEIGHT, GAIN = 0.2, 0.1, 1e-4


def _settings(text: str) -> tuple[int, float | None, float | None]:
    """Parses the argument of --cache."""
    size, *values = text.split(",")
    if len(values) not in (0, 2):
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 40)!r} is not N or N,FLATNESS,WEIGHT, such as 500 or 500,0.3,0.1"
        )
    words = integer(1, 100_000)(size)
    if not values:
        return words, None, None
    flatness, weight = values
    return words, number(0, 1e6, above=True)(flatness), number(0, 0.999)(weight)


@dataclasses.dataclass(frozen=True)
class Cache(Change):
    """A memory of the last words that were read; see heads.WithCache."""

    size: int
    flatness: float
    weight: float
    tuned_on: str | None = None  # the split that gave flatness and weight

    name = "cache"
    options = (
        Option(
            "--cache N[,FLATNESS,WEIGHT]",
            "with a memory of the last N words (Grave et al. 2017), so that the model learns from "
            "the text; flatness and weight are set on validation unless given",
            _settings,
        ),
    )
    apart = learns = True
    title = "learning from the text by a cache"

    @classmethod
    def from_arguments(cls, arguments, run):
        size, flatness, weight = arguments.cache
        return tune(run, size) if flatness is None else cls(size, flatness, weight)

    @classmethod
    def from_recipe(cls, run):
        heads = (head for head in nested(run.experiment.head) if isinstance(head, WithCache))
        return next((cls(head.size, head.flatness, head.weight) for head in heads), None)

    def apply(self, run):
        model = run.require_language_model("--cache")
        head = WithCache(model.head, self.size, self.flatness, self.weight)
        return run.with_change(self, dataclasses.replace(model, head=head))

    @property
    def sentence(self):
        return (
            f"learns from the text that it is judged on, by a cache ({self.size:,} words, flatness "
            f"{self.flatness:g}, weight {self.weight:g})"
        )

    @property
    def note(self):
        if self.tuned_on is None:
            return None
        return f"cache: flatness {self.flatness:g}, weight {self.weight:g}, set on {self.tuned_on}"


def tune(run, size: int) -> Cache:
    """Returns a cache of a low log-perplexity on validation."""
    corpus = run.read("validation")

    @functools.cache
    def loss(settings):
        _, scores = Cache(size, *settings).apply(run).score_corpus(corpus)
        return scores.log_perplexity

    best = FLATNESS, WEIGHT
    while True:
        flatness, weight = best
        neighbours = [(flatness * 2, weight), (flatness / 2, weight), (flatness, weight / 2)]
        if weight * 2 < 1:
            neighbours.append((flatness, weight * 2))
        better = min(neighbours, key=loss)
        if not loss(better) < loss(best) - GAIN:  # also of losses that are infinite
            return Cache(size, *best, "validation")
        best = better
