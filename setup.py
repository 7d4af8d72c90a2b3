"""The packages of a wheel: zoo, and the recipes of configs/ within it, as zoo/configs.

In a checkout recipes are changed and added, at the top; installed, the name of their folder would
be in the way of others (see zoo/base/trust/user_modules.py). All else is in pyproject.toml.

An index of packages shows README without its pictures and links, which are of the checkout.

An editable installation only puts the checkout on Python's path. If it moved configs/, setuptools
would install a finder of modules, which comes after the path: a checkout's folder named zoo, beside
a script, would be taken for the package.
"""

import pathlib
import re
import sys

from setuptools import find_packages, setup

EDITABLE = "editable_wheel" in sys.argv
README = pathlib.Path("README.md").read_text(encoding="utf-8")
DESCRIPTION = re.sub(
    r"<picture>.*?</picture>\n*|<!--.*?-->\n?|(?<!!)\[(?P<text>[^\[\]]*)\]\((?!https:)[^)]*\)",
    lambda match: match["text"] or "",
    README,
    flags=re.DOTALL,
)
FAMILIES = [f"zoo.configs.{family}" for family in find_packages("configs")]

setup(
    long_description=DESCRIPTION,
    long_description_content_type="text/markdown",
    packages=[
        *find_packages(include=["zoo", "zoo.*"]),
        *([] if EDITABLE else ["zoo.configs", *FAMILIES]),
    ],
    package_dir={"": "."} if EDITABLE else {"zoo.configs": "configs"},
    package_data={
        "zoo": ["py.typed", "__init__.pyi"],
        "zoo.configs": ["*.tsv", "*.grammar"],
        "zoo.lab.comparison": [
            *("page.css", "page.html", "page.js", "page_sections.toml", "pictures.mplstyle"),
        ],
        "zoo.lab.export": ["model_card.md"],
        "zoo.lab.training": ["targets.toml"],
        "zoo.priors": ["__init__.pyi"],
        "zoo.sources": ["corpora.json"],
    },
)
