"""The packages of a wheel: zoo, and the recipes of configs/ within it, as zoo/configs.

In a checkout recipes are changed and added, at the top; installed, the name of their folder would
be in the way of others (see zoo/trust/user_modules.py). All else is in pyproject.toml.
"""

from setuptools import find_packages, setup

FAMILIES = [f"zoo.configs.{family}" for family in find_packages("configs")]

setup(
    packages=[*find_packages(include=["zoo", "zoo.*"]), "zoo.configs", *FAMILIES],
    package_dir={"zoo.configs": "configs"},
    package_data={
        "zoo": ["py.typed"],
        "zoo.configs": ["*.tsv", "*.grammar"],
        "zoo.evaluation.reports.report_html": ["page.css", "page.js"],
    },
)
