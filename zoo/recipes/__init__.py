"""Recipes: frozen dataclasses that are changed by text, kept as JSON, and compared."""

from zoo.recipe_changes import changed
from zoo.recipe_saved import describe, first_difference, from_json, to_json
from zoo.recipe_settings import apply_settings, parse

__all__ = [
    "apply_settings",
    "changed",
    "describe",
    "first_difference",
    "from_json",
    "parse",
    "to_json",
]
