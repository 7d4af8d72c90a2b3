"""Recipes: frozen dataclasses that are changed by text, kept as JSON, and compared.

The examples begin with

    >>> from zoo import cores, embeddings, heads, models, configuration
    >>> model = models.LanguageModel(embeddings.Lookup(8), cores.LSTM(8), heads.NCE(samples=5))
"""

from zoo.configuration.experiment_json import brief, describe, first_difference, from_json, to_json
from zoo.configuration.fields import changed
from zoo.configuration.overrides import apply_settings, parse

__all__ = [
    "apply_settings",
    "brief",
    "changed",
    "describe",
    "first_difference",
    "from_json",
    "parse",
    "to_json",
]
