"""Text files in folders, and patterns of paths."""

import glob
import logging
import pathlib
import re

from zoo.errors import UserError, named
from zoo.sources import files

logger = logging.getLogger(__name__)

COMPRESSED = (".gz", ".bz2", ".xz")
KNOWN = (".txt", ".json", ".jsonl", ".parquet", ".csv", ".tsv")
# Files in a folder of text that are not part of the text.
_BACKUP = re.compile(r"(?i).*(~|\.bak|\.orig|\.old|\.swp|\.swo|\.tmp)|#.*#")
_ABOUT = re.compile(
    r"(?i)(readme|licen[cs]e|copying|notice|authors|changelog|citation)([._-].*)?|.*\.(md|rst)"
)
_REPEATED = re.compile(r"(^|/)(\*\*/){2,}")
_SHARD = re.compile(r"-\d+-of-\d+$|\.\d+$")  # news.en-00001-of-00100


def kind(path: pathlib.Path) -> str:
    """Returns the suffix of a file's format: ".csv" of "A.CSV.gz", ".en" of "news.en-1-of-9"."""
    name = path.name.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return pathlib.PurePath(_SHARD.sub("", name)).suffix


def stem(path: pathlib.Path) -> str:
    """Returns a file's name without its format: "rec.1" of "rec.1.slf.gz"."""
    name = path.name
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return pathlib.PurePath(name).stem


def text_files(path: str) -> list[pathlib.Path]:
    """Lists the files at a path: a file, a folder of text, or a pattern ('news/*.en').

    A folder stands for all files below it, in the order of their names, without hidden files,
    backups, and files such as README. Their suffixes must be among .txt, .json, .jsonl, .parquet,
    .csv and .tsv, or all equal. A pattern stands for all files that match, without hidden ones. The
    files are logged.
    """
    files.check_path(path)
    try:
        given = files.find(path)
    except UserError:
        matches = _matches(path)
        if matches is None:
            raise
        return _told(path, matches)
    if not given.is_dir():
        return [given]
    here = pathlib.Path.cwd()
    if given.resolve() in (here, *here.parents):
        raise UserError(
            f"{path} is the working folder, or one around it: give a folder with nothing but text, "
            "or a pattern such as 'texts/*.txt'."
        )
    members = sorted(p for p in given.rglob("*") if p.is_file())
    chosen = [member for member in members if _is_text(member.relative_to(given))]
    if not chosen:
        beside = f" but {named([p.name for p in members], 3)}" if members else ""
        raise UserError(f"{path} is a folder without files of text{beside}: give one with text.")
    kinds = sorted({kind(member) for member in chosen})
    if len(kinds) > 1 and not {*kinds} <= {*KNOWN}:
        raise UserError(
            f"{path} has files of several kinds ({named(kinds)}): choose some of them with a "
            f"pattern, such as '{path}/*{kinds[-1]}'."
        )
    return _told(path, chosen)


def _matches(path):
    """Lists the files that match a pattern; returns None for a path that is not a pattern."""
    if not glob.has_magic(path):
        return None
    for pattern in files.candidates(path):
        # Each further **/ in a row finds each file again in each folder above it.
        once = _REPEATED.sub(r"\1**/", str(pattern))
        members = map(pathlib.Path, glob.iglob(once, recursive=True))
        matches = sorted({*filter(pathlib.Path.is_file, members)})
        if matches:
            return matches
    raise UserError(f"no file matches the pattern {path}: give another, or the path of a file.")


def _is_text(member):
    """Whether a path within a folder may be part of its text."""
    hidden = any(part.startswith(".") for part in member.parts)
    return not (hidden or _BACKUP.fullmatch(member.name) or _ABOUT.fullmatch(member.name))


def _told(path, chosen):
    files.check_path(path, chosen)
    logger.info("%s: %d files: %s", path, len(chosen), named([str(p) for p in chosen], 3))
    return chosen
