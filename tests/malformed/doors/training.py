"""Recipes that cannot be trained, which show where their data or their parameters are known."""

from tests.lab.training import small, test_tasks_translation
from zoo import configuration
from zoo.lab.training import tasks


def _trained(arguments, folder):
    """A trainer of the small experiment after settings, (settings, devices)."""
    settings, devices = arguments if isinstance(arguments, tuple) else (arguments, 1)
    small.trainer(configuration.apply_settings(small.experiment(), settings), folder, devices)


def _translated(settings, folder):
    tasks.prepare(configuration.apply_settings(test_tasks_translation.experiment(), settings))


CALLS = {"training": _trained, "training of pairs": _translated}
