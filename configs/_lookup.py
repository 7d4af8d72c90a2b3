"""The lookup of a config: by its name, by a treebank's name, by a file's path, or in a record."""

import ast
import difflib
import hashlib
import importlib.util
import os
import pathlib
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from zoo.errors import UserError, shortened

if TYPE_CHECKING:
    from zoo import Experiment

FOLDER = pathlib.Path(__file__).resolve().parent
_TREEBANK = re.compile(r"(?P<treebank>ud(_[a-z0-9]+){2,}?)(?P<kind>_softmax|_no_tags)?")


def paths() -> dict[str, pathlib.Path]:
    """Returns {name: file} of the configs here, in the order of their names."""
    files = (path for path in FOLDER.glob("*/*.py") if not path.stem.startswith("_"))
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def names() -> list[str]:
    """Returns the names of the configs here."""
    return [*paths()]


def variant(base: ModuleType, changes: Mapping[str, Any]) -> Callable[..., "Experiment"]:
    """Returns the get_config() of a config that differs from another one in some fields.

    Args:
      base: the other config's module.
      changes: {field: value}, as `zoo.changed` takes them.
    """

    def get_config(*arguments):
        from zoo import changed

        return changed(base.get_config(*arguments), changes)

    return get_config


# Configs that need no corpus, for a first run.
START = (
    *("micro_log_linear", "micro_softmax", "micro_translation"),
    *("own_letters", "own_pairs", "own_text"),
)


def summary(name: str) -> str:
    """Returns the first line of a config's docstring."""
    return _docstring(paths()[name]).partition("\n")[0]


def table() -> list[str]:
    """Returns the list of the configs as lines, by family, those to start with in the first."""
    families: dict[str, list[str]] = {}
    for name, path in paths().items():
        families.setdefault(path.parent.name, []).append(name)
    order = sorted(families, key=lambda family: (not {*families[family]} <= {*START}, family))
    lines = ["Configs by family; --show NAME prints one whole. * needs no corpus: start here."]
    for family in order:
        lines += ["", f"{family}/ {_docstring(FOLDER / family / '__init__.py')}"]
        members = families[family]
        width = max(map(len, members))
        for name in members:
            begin = "*" if name in START else " "
            lines.append(f"{begin} {name:{width}} {summary(name)}")
    return lines


def _docstring(path):
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def load(name: str) -> "Experiment":
    """Returns the experiment of a config: one of `names()`, the path of a file with get_config(),
    or NAME.jsonl:RUN, a run of a record.

    Modules beside the file, and in the working folder, can be imported from then on.
    """
    from zoo import Experiment  # not needed to list names
    from zoo.base.trust import user_modules
    from zoo.lab.evaluation import records

    if records.is_record(name):
        return records.experiment_of(name)
    path, arguments = paths().get(name), ()
    if path is None and (match := _TREEBANK.fullmatch(name)):
        path, arguments = paths()[f"ud_treebank{match['kind'] or ''}"], (match["treebank"],)
    if name.endswith(".py"):
        path = pathlib.Path(name)
        if not os.path.isfile(path):  # False, and not an error, for a name that is too long
            raise UserError(f"the config file {shortened(name)} does not exist.")
    elif path is None:
        if os.path.isfile(f"{name}.py"):
            raise UserError(f"{name!r} is not a config, but a file: give --config {name}.py.")
        close = difflib.get_close_matches(name, names(), n=3, cutoff=0.3) or names()
        raise UserError(
            f"the config {shortened(name)!r} does not exist; the nearest are {', '.join(close)} "
            "(--list shows all)."
        )
    spec = importlib.util.spec_from_file_location(_module_name(path.resolve()), path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a run resumes with the components defined there
    user_modules.look_in(path.parent)
    user_modules.open_path()
    try:
        spec.loader.exec_module(module)
        experiment = module.get_config(*arguments) if hasattr(module, "get_config") else None
    except UserError:
        raise
    except Exception as error:
        if path.resolve() in paths().values():  # a bug of a config of Zoo's
            raise
        frames = traceback.walk_tb(error.__traceback__)
        if any(_is_own(frame.f_globals["__name__"]) for frame, _ in frames):
            raise  # an error in another module of the user keeps its traceback
        kind = type(error).__name__
        raise UserError(f"{path}, line {_line(error, path)}: {kind}: {error}.") from error
    if not isinstance(experiment, Experiment):
        raise UserError(f"{path} has no get_config() that returns a zoo.Experiment.")
    return experiment


def _is_own(module):
    """Whether a module lies in one of the user's folders and does not belong to zoo."""
    from zoo.base.trust import user_modules

    top = module.partition(".")[0]
    return top not in ("zoo", user_modules.CONFIGS) and any(
        (pathlib.Path(folder) / top).is_dir() or (pathlib.Path(folder) / f"{top}.py").is_file()
        for folder in user_modules.folders()
    )


def _line(error, path):
    """Returns the line of the file where an exception was raised."""
    files = (str(path), str(path.resolve()))  # code has the name of its file made absolute
    if isinstance(error, SyntaxError) and error.filename in files:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename in files), 1)


def _module_name(path):
    """Returns configs.NAME for a config here; for another file a name that is the same in every
    process."""
    if path in paths().values():
        return f"configs.{path.stem}"
    return f"config_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
