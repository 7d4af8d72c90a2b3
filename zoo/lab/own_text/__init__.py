"""One's own text: its recipe, and the heads that are trained on it for the same time."""

from zoo.lab.own_text.recipes import OwnRecipe, choose

__all__ = ["OwnRecipe", "choose"]
