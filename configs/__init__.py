"""Recipes, in families: a file has a docstring that says what it is, and get_config().

A recipe is known by the name of its file alone, on the command line and in imports: `configs/ptb/
ptb_nce.py` is `--config ptb_nce` and `from configs import ptb_nce`. Those of `treebanks/` are known
by the name of any treebank as well: `--config ud_czech_pdt` is `ud_treebank.get_config(
"ud_czech_pdt")`, and `ud_czech_pdt_softmax` that of `ud_treebank_softmax`.
"""

import ast
import difflib
import hashlib
import importlib.util
import os
import pathlib
import re
import sys
import traceback
from typing import TYPE_CHECKING

from zoo.errors import UserError, shortened

if TYPE_CHECKING:
    from zoo import Experiment

FOLDER = pathlib.Path(__file__).resolve().parent
_TREEBANK = re.compile(r"(?P<treebank>ud(_[a-z0-9]+){2,}?)(?P<kind>_softmax)?")
FAMILIES = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
# Saved recipes name functions of configs, and configs import each other, without the family.
__path__ += [str(FOLDER / family) for family in FAMILIES]


def paths() -> dict[str, pathlib.Path]:
    """{name: file} of the configs here, in the order of their names."""
    files = (path for path in FOLDER.glob("*/*.py") if not path.stem.startswith("_"))
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def names() -> list[str]:
    """The names of the configs here."""
    return [*paths()]


def summary(name: str) -> str:
    """The first line of a config's docstring."""
    tree = ast.parse(paths()[name].read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def load(name: str) -> "Experiment":
    """The experiment of a config: one of `names()`, or the path of a file with get_config().

    From then on modules beside the file, and those of the working folder, can be imported.
    """
    from zoo import Experiment  # not to list names
    from zoo.trust import user_modules

    path, arguments = paths().get(name), ()
    if path is None and (match := _TREEBANK.fullmatch(name)):
        path, arguments = paths()[f"ud_treebank{match['kind'] or ''}"], (match["treebank"],)
    if name.endswith(".py"):
        path = pathlib.Path(name)
        if not os.path.isfile(path):  # which is false, and not an error, for too long a name
            raise UserError(f"there is no config file {shortened(name)}.")
    elif path is None:
        if os.path.isfile(f"{name}.py"):
            raise UserError(f"there is no config {name!r}, but a file: give --config {name}.py.")
        close = difflib.get_close_matches(name, names(), n=3, cutoff=0.3) or names()
        raise UserError(
            f"there is no config {shortened(name)!r}; the nearest are {', '.join(close)} (--list "
            "shows all)."
        )
    spec = importlib.util.spec_from_file_location(_module_name(path.resolve()), path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a run is resumed with the components defined there
    user_modules.look_in(path.parent)
    user_modules.open_path()
    try:
        spec.loader.exec_module(module)
        experiment = module.get_config(*arguments) if hasattr(module, "get_config") else None
    except UserError:
        raise
    except Exception as error:
        if path.resolve() in paths().values():  # one of ours, which has to be right
            raise
        frames = traceback.walk_tb(error.__traceback__)
        if any(user_modules.is_own(frame.f_globals["__name__"]) for frame, _ in frames):
            raise  # of another module of the user's, which keeps its traceback
        kind = type(error).__name__
        raise UserError(f"{path}, line {_line(error, path)}: {kind}: {error}.") from error
    if not isinstance(experiment, Experiment):
        raise UserError(f"{path} has no get_config() that returns a zoo.Experiment.")
    return experiment


def _line(error, path):
    """The line of the file where an exception came up."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno for f in reversed(frames) if f.filename == str(path)), 1)


def _module_name(path):
    """configs.NAME here; for a file elsewhere a name of its own, the same in every process."""
    if path in paths().values():
        return f"configs.{path.stem}"
    return f"config_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
