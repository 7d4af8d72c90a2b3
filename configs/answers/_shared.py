"""Shared parts of the recipes of answers: Overnight's calendar domain, with 100 questions for
validation."""

from zoo.papers import Overnight

_CALENDAR = "overnight/calendar.paraphrases.train.examples"
CALENDAR = Overnight(
    train=f"{_CALENDAR}[:-100]",
    validation=f"{_CALENDAR}[-100:]",
    tests=(_CALENDAR.replace("train", "test"),),
)
