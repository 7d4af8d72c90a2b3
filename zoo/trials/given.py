"""The recipe of whatever is given to be tried: a text, pairs, a treebank, or a config."""

import importlib
import pathlib
from collections.abc import Sequence

from zoo import own_text
from zoo.configuration import changed
from zoo.data import Conllu
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.sources import files
from zoo.trust import user_modules

# The fraction of a treebank in one file that is held out for validation, and again for the test.
_HELD_OUT = 10
_FEWEST = 20  # sentences of such a treebank


def recipe_of(
    given: Sequence[str], letters: bool = False, languages: Sequence[str] = ()
) -> tuple[Experiment, tuple[str, ...]]:
    """Returns (the recipe that all heads share, sentences on the text for people)."""
    if len(given) > 2:
        raise UserError(f"{len(given)} texts are given: give one, or two for pairs.")
    path = given[0]
    if len(given) == 1:
        bank, folder = path.endswith(".conllu"), _is_there(f"{path}/train.conllu")
        config = path.endswith(".py") or not _is_path(path)
        if (letters or languages) and (bank or folder or config):
            option = "--letters" if letters else "--language"
            kind = "config" if config else "treebank"
            raise UserError(f"{option} is for a text, and {path} is a {kind}: leave it out.")
        if bank:
            return _treebank(path)
        if folder:
            return _of_treebank(path), ()
        if config:
            return user_modules.configs().load(path), ()
    own = own_text.of_text(given, letters, languages)
    return own.experiment(), own.told


def _is_path(text):
    """Whether a text names a file, rather than a config."""
    return any(mark in text for mark in "./*") or _is_there(text)


def _is_there(path):
    return any(candidate.exists() for candidate in files.candidates(path))


def _of_treebank(folder):
    user_modules.configs()
    return importlib.import_module("configs.ud_treebank").get_config(folder)


def _treebank(path):
    """Cuts a treebank in one file into parts: the last tenth is the test, before it validation."""
    count = len(Conllu(train=path, validation=path).read("train").sentences)
    if count < _FEWEST:
        raise UserError(f"{path} has {count} sentences: give at least {_FEWEST}.")
    second = count - max(1, count // _HELD_OUT)
    first = second - max(1, count // _HELD_OUT)
    parts = {
        "data.train": f"{path}[:{first}]",
        "data.validation": f"{path}[{first}:{second}]",
        "data.tests": (f"{path}[{second}:]",),
    }
    told = (
        f"{path}: {count:,} sentences. Training on the first {first:,}, validation on the next "
        f"{second - first:,}, test on the last {count - second:,}."
    )
    return changed(_of_treebank(str(pathlib.Path(path).parent)), parts), (told,)
