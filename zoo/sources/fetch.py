"""Fetches the files of free corpora: each is verified, and written whole or not at all.

A file must have the SHA-256 recorded in `zoo.sources.free_corpora`. Where none is recorded there,
the first download is trusted and its SHA-256 is written to `fetched.json` in the folder of data
("trust on first use"). Later downloads are checked against it, also by others who share that file.
"""

import contextlib
import hashlib
import http.client
import io
import json
import pathlib
import re
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from typing import NamedTuple

from zoo import strict_json, temporary_files
from zoo.errors import UserError, shortened
from zoo.sources import dataset_rows, free_corpora

RECORD = "fetched.json"
# Some hosts refuse urllib's own user agent.
_HEADERS = {"User-Agent": "zoo (python-urllib)"}
TIMEOUT = 60.0
_ADDRESS = re.compile(r"(https?|ftp|file)://.", re.IGNORECASE)
_SPLITS = {"train": "train", "valid": "validation", "test": "test"}


class Fetched(NamedTuple):
    """A verified file."""

    path: pathlib.Path
    sha256: str
    how: str


def fetch(
    name: str,
    folder: pathlib.Path,
    *,
    release: str = "master",
    mirror: str | None = None,
    through_datasets: bool = True,
    log: Callable[[str], None] = print,
) -> list[Fetched]:
    """Fetches the missing files of a corpus, and verifies all files."""

    def listing(url):
        try:
            found = strict_json.loads(_bytes_at(url, mirror).decode())
            strict_json.check(found, list)
            return [entry for entry in found if isinstance(entry, dict)]
        except ValueError as error:
            raise UserError(f"{url} has no list of files ({error}): try again later.") from error
        except OSError as error:
            raise UserError(_not_had(url, error, folder / name, mirror)) from error

    if mirror and not _ADDRESS.match(mirror):
        raise UserError(
            f"--mirror {mirror} is not an address: give one such as https://HOST/PATH or "
            "file:///FOLDER."
        )
    corpus = free_corpora.corpus(name, release, listing)
    log(f"{name}: {corpus.about}")
    archives: dict[str, bytes] = {}
    fetched = []
    for file in corpus.files:
        path = folder / file.path
        if (content := _there(path)) is not None:
            one = _checked(folder, file, content, there=True)
        else:
            content = _through_datasets(corpus, file) if through_datasets and not mirror else None
            if content is None:
                content = _content(file, mirror, folder, archives)
            one = _checked(folder, file, content)
            _write(path, content)
            _record(folder, file, one, release)
        log(f"  {path}: sha256 {one.sha256[:16]}, {_HOW[one.how]}")
        fetched.append(one)
    return fetched


def _there(path) -> bytes | None:
    """Reads a file; returns None if it is missing and its folder can be written to."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        temporary_files.check_place(path, "another folder by --into")
        return None
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror}): give another folder by --into."
        ) from error


_HOW = {
    "there": "already there",
    "known": "as expected",
    "recorded": f"as recorded in {RECORD}",
    "first": f"trusted at this first download, and recorded in {RECORD}",
}


def _content(file, mirror, folder, archives) -> bytes:
    """Fetches the bytes of a file from its addresses."""
    parts = []
    for url in file.urls:
        try:
            if url not in archives:
                archives[url] = _bytes_at(url, mirror)
        except OSError as error:  # urllib's errors are of this kind
            raise UserError(_not_had(url, error, folder / file.path, mirror)) from error
        parts.append(archives[url] if file.member else archives.pop(url))
    if not file.member:
        return b"".join(parts)
    try:
        with zipfile.ZipFile(io.BytesIO(parts[0])) as archive:
            return archive.read(file.member)
    except (zipfile.BadZipFile, KeyError) as error:
        raise UserError(
            f"{file.urls[0]} is not an archive with {file.member} ({error}): put this file at "
            f"{folder / file.path}."
        ) from error


def _not_had(url, error, path, mirror):
    why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    if mirror:
        return (
            f"{url} cannot be fetched from --mirror {shortened(mirror)} ({why}): give another one, "
            f"or fetch the file where there is a network and put it at {path}."
        )
    return (
        f"{url} cannot be fetched ({why}): fetch it where there is a network and put it at {path}, "
        "or give --mirror with a copy of the addresses."
    )


def _bytes_at(url: str, mirror: str | None) -> bytes:
    """Fetches the bytes at an address or in its mirror; raises OSError if that fails."""
    if mirror:
        url = f"{mirror.rstrip('/')}/{url.partition('://')[2]}"
    try:
        request = urllib.request.Request(url, headers=_HEADERS)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return answer.read()
    except (ValueError, http.client.HTTPException) as error:  # no address, or half an answer
        raise urllib.error.URLError(str(error) or type(error).__name__) from error


def _through_datasets(corpus, file) -> bytes | None:
    """Fetches a split from the hub; returns None if the library or the hub is not available."""
    if not corpus.hub[0]:
        return None
    split = _SPLITS[file.path.rpartition("wiki.")[2].partition(".")[0]]
    with contextlib.suppress(ImportError, UserError):
        rows = dataset_rows.rows(corpus.hub[0], *corpus.hub, split=split)
        # A row is a line with its end; a blank line is an empty row.
        lines = (row["text"].removesuffix("\n") for row in rows)
        return "".join(f"{line}\n" for line in lines).encode()
    return None


def _checked(folder, file, content, there=False) -> Fetched:
    """Verifies the checksum and the number of tokens of a file."""
    digest = hashlib.sha256(content).hexdigest()
    recorded = read_record(folder).get(file.path, {})
    expected = file.sha256 or recorded.get("sha256")
    how = "known" if file.sha256 else "recorded" if expected else "there" if there else "first"
    path = folder / file.path
    what = str(path) if there else f"{', '.join(file.urls)}: the content, for {path},"
    if expected and digest != expected:
        away = "move it away to fetch it again" if there else "get a copy and put it there"
        if not file.sha256:
            away += f", or take its entry out of {folder / RECORD} if the change is intended"
        raise UserError(f"{what} is another file (sha256 {digest}, not {expected}): {away}.")
    tokens = content.count(b"\n") + len(content.split()) if file.tokens else 0
    if tokens != file.tokens:
        raise UserError(
            f"{what} has {tokens:,} words and line breaks, not {file.tokens:,}: get a copy from "
            "elsewhere."
        )
    return Fetched(path, digest, how)


def _write(path, content):
    """Writes a file whole or not at all."""
    unfinished = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}): give another folder by --into."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def read_record(folder: pathlib.Path) -> dict:
    """Reads {path: {"sha256", "urls", "release"}} of the files fetched into a folder."""
    path = folder / RECORD
    if not path.exists():
        return {}
    found = strict_json.read(path)
    try:
        strict_json.check(found, {name: {"sha256": str} for name in found})
    except ValueError as error:
        raise UserError(f"{path} is not a record of fetched files ({error}): remove it.") from error
    return found


def _record(folder, file, fetched, release):
    """Adds a fetched file to the record."""
    entry = {"sha256": fetched.sha256, "urls": [*file.urls]}
    if file.path.endswith(".conllu"):
        entry["release"] = release
    record = {**read_record(folder), file.path: entry}
    text = json.dumps(dict(sorted(record.items())), indent=2) + "\n"
    _write(folder / RECORD, text.encode())
