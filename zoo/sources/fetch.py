"""Fetches the files of free corpora: each is verified, and written whole or not at all.

A file must have the SHA-256 recorded in `CORPORA`. Where none is recorded there,
the first download is trusted and its SHA-256 is written to `fetched.json` in the folder of data
("trust on first use"). Later downloads are checked against it, also by others who share that file.
"""

import contextlib
import functools
import hashlib
import http.client
import itertools
import json
import pathlib
import re
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, NamedTuple

from zoo.base import strict_json, temporary_files
from zoo.errors import UserError, shortened
from zoo.sources import table_rows

RECORD = "fetched.json"
# Some hosts refuse urllib's own user agent.
_HEADERS = {"User-Agent": "zoo (python-urllib)"}
TIMEOUT = 60.0
_PIECE = 1 << 18  # bytes that are held at a time
_ADDRESS = re.compile(r"(https?|ftp|file)://.", re.IGNORECASE)
_SPLITS = {"train": "train", "valid": "validation", "test": "test"}


class VerifiedFile(NamedTuple):
    """A verified file."""

    path: pathlib.Path
    sha256: str
    status: str


def fetch(
    name: str,
    folder: pathlib.Path,
    *,
    release: str = "master",
    mirror: str | None = None,
    log: Callable[[str], None] = print,
) -> list[VerifiedFile]:
    """Fetches the missing files of a corpus, and verifies all files."""

    def listing(url):
        content = b"".join(_pieces_at(url, mirror, folder / name))
        try:
            entries = strict_json.parse(list, strict_json.loads(content.decode()))
        except ValueError as error:
            raise UserError(f"{url} has no list of files ({error}): try again later.") from error
        return [entry for entry in entries if isinstance(entry, dict)]

    if mirror and not _ADDRESS.match(mirror):
        raise UserError(
            f"--mirror {mirror} is not an address: give one such as https://HOST/PATH or "
            "file:///FOLDER."
        )
    corpus = free_corpus(name, release, listing)
    log(f"{name}: {corpus.about}")
    archives: dict[str, IO[bytes]] = {}
    fetched = []
    with contextlib.ExitStack() as opened:
        for file in corpus.files:
            path = folder / file.path
            verified = _verify_existing(folder, file)
            if verified is None:
                pieces = None if mirror else _through_datasets(corpus, file)
                pieces = pieces or _content(file, mirror, path, archives, opened)
                verified = _write(path, pieces, functools.partial(_verify, folder, file))
                _record(folder, file, verified, release)
            log(f"  {path}: sha256 {verified.sha256[:16]}, {_STATUS_NOTES[verified.status]}")
            fetched.append(verified)
    return fetched


def _verify_existing(folder, file) -> VerifiedFile | None:
    """Verifies a file; returns None if it is missing and its folder can be written to."""
    path = folder / file.path
    try:
        with path.open("rb") as content:
            return _verify(folder, file, _pieces(content), exists=True)
    except FileNotFoundError:
        temporary_files.check_place(path, "another folder by --into")
        return None
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror}): give another folder by --into."
        ) from error


_STATUS_NOTES = {
    "there": "already there",
    "known": "as expected",
    "recorded": f"as recorded in {RECORD}",
    "first": f"trusted at this first download, and recorded in {RECORD}",
}


def _content(file, mirror, path, archives, opened: contextlib.ExitStack) -> Iterator[bytes]:
    """Fetches a file from its addresses, in pieces."""
    if not file.member:
        for url in file.urls:
            yield from _pieces_at(url, mirror, path)
        return
    (url,) = file.urls
    if url not in archives:
        # A file without a name, on the disk of the data.
        above = next(above for above in path.absolute().parents if above.exists())
        archives[url] = opened.enter_context(tempfile.TemporaryFile(dir=above))  # noqa: SIM115
        archives[url].writelines(_pieces_at(url, mirror, path))
    try:
        with zipfile.ZipFile(archives[url]) as archive, archive.open(file.member) as content:
            yield from _pieces(content)
    except (zipfile.BadZipFile, KeyError, EOFError, zlib.error) as error:
        raise UserError(
            f"{url} is not an archive with {file.member} ({error}): put this file at {path}."
        ) from error


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    return iter(functools.partial(content.read, _PIECE), b"")


def _pieces_at(url: str, mirror: str | None, path: pathlib.Path) -> Iterator[bytes]:
    """Fetches the bytes at an address or in its mirror, for a file or folder at a path."""
    address = f"{mirror.rstrip('/')}/{url.partition('://')[2]}" if mirror else url
    try:
        request = urllib.request.Request(address, headers=_HEADERS)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            yield from _pieces(answer)
            missing = getattr(answer, "length", 0)
            if missing:  # `read` of a part does not raise it
                raise urllib.error.URLError(f"{missing:,} bytes are missing")
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        origin = f" from --mirror {shortened(mirror)}" if mirror else ""
        raise UserError(
            f"{url} cannot be fetched{origin} ({reason or type(error).__name__}): fetch it where "
            f"there is a network and put it at {path}, or give "
            f"{'another' if mirror else 'a'} --mirror with a copy of the addresses."
        ) from error


def _through_datasets(corpus, file) -> Iterator[bytes] | None:
    """Fetches a split from the hub; returns None if the library or the hub is not available."""
    if not corpus.hub[0]:
        return None
    split = _SPLITS[file.path.rpartition("wiki.")[2].partition(".")[0]]
    with contextlib.suppress(ImportError, UserError):
        rows = iter(table_rows.hub(":".join(("hub", *corpus.hub, split)))(("text",)))
        first = [*itertools.islice(rows, 1)]  # the whole split is fetched before it is read
        # A row is a line with its end; a blank line is an empty row.
        lines = (row["text"].removesuffix("\n") for row in itertools.chain(first, rows))
        return (f"{line}\n".encode() for line in lines)
    return None


def _verify(folder, file, pieces: Iterable[bytes], exists=False) -> VerifiedFile:
    """Verifies the checksum and the number of tokens of a file, which is read in pieces."""
    sha256, tokens, inside = hashlib.sha256(), 0, False
    for piece in pieces:
        sha256.update(piece)
        if file.tokens:
            # A word may be in two pieces.
            tokens += piece.count(b"\n") + len(piece.split())
            tokens -= inside and not piece[:1].isspace()
            inside = not piece[-1:].isspace()
    digest = sha256.hexdigest()
    recorded = read_record(folder).get(file.path, {})
    expected = file.sha256 or recorded.get("sha256")
    status = "known" if file.sha256 else "recorded" if expected else "there" if exists else "first"
    path = folder / file.path
    origin = str(path) if exists else f"{', '.join(file.urls)}: the content, for {path},"
    if expected and digest != expected:
        away = "move it away to fetch it again" if exists else "get a copy and put it there"
        if not file.sha256:
            away += f", or take its entry out of {folder / RECORD} if the change is intended"
        raise UserError(f"{origin} is another file (sha256 {digest}, not {expected}): {away}.")
    if tokens != file.tokens:
        raise UserError(
            f"{origin} has {tokens:,} words and line breaks, not {file.tokens:,}: get a copy from "
            "elsewhere."
        )
    return VerifiedFile(path, digest, status)


def _tee(file, pieces) -> Iterator[bytes]:
    for piece in pieces:
        file.write(piece)
        yield piece


def _write(path, pieces: Iterator[bytes], check):
    """Writes a file whole or not at all, while it is checked; returns the result of `check`."""
    unfinished = path.with_name(f"{path.name}.partial")
    new_folders = [above for above in path.parents if not above.exists()]
    try:
        first = next(pieces, b"")  # where there is no network, no folder is made
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            result = check(_tee(file, itertools.chain([first], pieces)))
        unfinished.replace(path)
        return result
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}): give another folder by --into."
        ) from error
    finally:
        for remove in (unfinished.unlink, *(above.rmdir for above in new_folders)):
            with contextlib.suppress(OSError):
                remove()


def read_record(folder: pathlib.Path) -> dict:
    """Reads {path: {"sha256", "urls", "release"}} of the files fetched into a folder."""
    path = folder / RECORD
    if not path.exists():
        return {}
    record = strict_json.read(path)
    try:
        return strict_json.parse({name: {"sha256": str} for name in record}, record)
    except ValueError as error:
        raise UserError(f"{path} is not a record of fetched files ({error}): remove it.") from error


def _record(folder, file, fetched, release):
    entry = {"sha256": fetched.sha256, "urls": [*file.urls]}
    if file.path.endswith(".conllu"):
        entry["release"] = release
    record = {**read_record(folder), file.path: entry}
    text = json.dumps(dict(sorted(record.items())), indent=2) + "\n"
    _write(folder / RECORD, iter([text.encode()]), list)


# ----------------------------------- free corpora: their addresses, licences and checksums
# `corpora.json` lists them. The paths of the files are the paths that recipes name, such as
# `multi30k/val.lc.norm.tok.en`. A SHA-256 given there was computed from the file behind the
# reported figures of this zoo. Without one, the first download is trusted: see the module's
# docstring. Numbers of tokens are those of table 1 of Merity et al. (2016).

_TREEBANKS = "https://api.github.com/repos/UniversalDependencies"
_TREEBANK = re.compile(r"ud_(?P<language>[a-z]+(?:_[a-z]+)*)_(?P<treebank>[a-z0-9]+)")


class File(NamedTuple):
    """A file of a free corpus."""

    path: str
    urls: tuple[str, ...]
    sha256: str | None = None  # its SHA-256; None if unknown
    member: str = ""
    tokens: int = 0


class Corpus(NamedTuple):
    """A free corpus."""

    about: str
    files: tuple[File, ...]
    hub: tuple[str, str] = ("", "")


def _list_corpus(about: str, files: dict[str, dict], hub: Sequence[str] = ("", "")) -> Corpus:
    """Returns a corpus as the table of this folder lists it."""
    corpus_files = (
        File(path, (row["url"],), row.get("sha256"), row.get("member", ""), row.get("tokens", 0))
        for path, row in files.items()
    )
    return Corpus(about, tuple(corpus_files), (hub[0], hub[1]))


_TABLE = pathlib.Path(__file__).with_name("corpora.json")
CORPORA = {name: _list_corpus(**entry) for name, entry in strict_json.read(_TABLE).items()}
TREEBANK_FORM = "ud_LANGUAGE_TREEBANK"


def name_of(path: str) -> str | None:
    """Returns the name of the free corpus that has a file of this path, or may have it; or None."""
    folder, _, file = path.partition("/")
    if _TREEBANK.fullmatch(folder) and file in ("train.conllu", "dev.conllu", "test.conllu"):
        return folder
    name_by_path = {file.path: name for name, corpus in CORPORA.items() for file in corpus.files}
    return name_by_path.get(path)


def free_corpus(name: str, release: str, listing: Callable[[str], list[dict]]) -> Corpus:
    """Returns a corpus by its name: one of `CORPORA`, or a treebank of Universal Dependencies."""
    if name in CORPORA:
        return CORPORA[name]
    match = _TREEBANK.fullmatch(name)
    if match is None:
        raise UserError(
            f"unknown corpus {name!r}: give one of {', '.join(CORPORA)}, or {TREEBANK_FORM}, as in "
            "ud_czech_pdt."
        )
    language = "_".join(part.capitalize() for part in match["language"].split("_"))
    repository = f"UD_{language}-{match['treebank'].upper()}"  # GitHub takes names in any case
    parts: dict[str, list[str]] = {}
    for entry in listing(f"{_TREEBANKS}/{repository}/contents?ref={release}"):
        split = re.fullmatch(r"[\w-]+-ud-(train|dev|test)(-\w+)*\.conllu", str(entry.get("name")))
        if split:
            parts.setdefault(split[1], []).append(str(entry["download_url"]))
    if not parts:
        raise UserError(f"{repository} has no CoNLL-U files in {release}: give another --release.")
    # The parts of a large training text are concatenated; a small treebank may lack some files.
    files = tuple(
        File(f"{name}/{split}.conllu", tuple(sorted(parts[split])))
        for split in ("train", "dev", "test")
        if split in parts
    )
    return Corpus(f"{repository} of Universal Dependencies, {release}; see its LICENSE", files)
