"""Recipes, in families: each file has a docstring that describes it, and get_config().

A recipe is known by its file name without the family, on the command line and in imports:
`configs/ptb/ptb_nce.py` is `--config ptb_nce` and `from configs import ptb_nce`. Recipes of
`treebanks/` are also known by the name of any treebank: `--config ud_czech_pdt` is
`ud_treebank.get_config("ud_czech_pdt")`, and `ud_czech_pdt_softmax` is
`ud_treebank_softmax.get_config("ud_czech_pdt")`.

A recipe's docstring has the command that trains it, and others where it needs any. A run in
runs/NAME is evaluated by `python evaluate.py runs/NAME`. Figures of several runs are in
docs/results.md.
"""

import sys

from zoo.base.trust import user_modules

# Where zoo is installed, `import zoo.configs` finds this file under another name than its recipes.
if __name__ != user_modules.CONFIGS:
    sys.modules[__name__] = user_modules.configs()

from configs._lookup import FOLDER, load, names, paths, summary, table, variant

FAMILIES = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
# Saved recipes name functions of configs, and configs import each other, without the family.
__path__ += [str(FOLDER / family) for family in FAMILIES]

__all__ = ["FAMILIES", "FOLDER", "load", "names", "paths", "summary", "table", "variant"]
