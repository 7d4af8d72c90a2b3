"""The ways in for files of others: a module each, with a table of malformed input beside it.

A module has `CALLS`, {name: function(input, empty folder)}, each expected to raise UserError, and
may have `NAMES`, {name: function} of what the inputs are written with.
"""

import importlib
import pkgutil


def modules():
    """The modules of this package, imported."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]
