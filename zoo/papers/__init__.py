"""Papers: sources and metrics for the data of a single paper each.

The questions of Overnight (Wang, Berant and Liang 2015), the meanings and texts of the E2E
challenge (Novikova, Dusek and Rieser 2017), and questions about a table of facts. Nothing within
zoo imports this package.

The examples begin in an empty folder with

    >>> import pathlib
    >>> from zoo import papers
"""

from zoo.papers.facts import Facts
from zoo.papers.overnight import Overnight
from zoo.papers.realisations import Realisations

__all__ = ["Facts", "Overnight", "Realisations"]
