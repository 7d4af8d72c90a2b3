"""An extension of griffe that reads the section titles of Zoo's docstrings.

griffe reads "Examples:" as doctests, but not "Example:".
"""

import re

import griffe

EXAMPLE = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class Sections(griffe.Extension):
    """Gives sections the titles that griffe knows."""

    def on_instance(self, *, obj, **_):
        """Changes the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"\1Examples:", obj.docstring.value)
