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
from collections.abc import Callable, Iterable, Iterator
from typing import IO, NamedTuple

from zoo import strict_json, temporary_files
from zoo.errors import UserError, shortened
from zoo.sources import table_rows

RECORD = "fetched.json"
# Some hosts refuse urllib's own user agent.
_HEADERS = {"User-Agent": "zoo (python-urllib)"}
TIMEOUT = 60.0
_PIECE = 1 << 18  # bytes that are held at a time
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
    log: Callable[[str], None] = print,
) -> list[Fetched]:
    """Fetches the missing files of a corpus, and verifies all files."""

    def listing(url):
        content = b"".join(_pieces_at(url, mirror, folder / name))
        try:
            found = strict_json.loads(content.decode())
            strict_json.check(found, list)
        except ValueError as error:
            raise UserError(f"{url} has no list of files ({error}): try again later.") from error
        return [entry for entry in found if isinstance(entry, dict)]

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
            if (one := _there(folder, file)) is None:
                pieces = None if mirror else _through_datasets(corpus, file)
                pieces = pieces or _content(file, mirror, path, archives, opened)
                one = _write(path, pieces, functools.partial(_checked, folder, file))
                _record(folder, file, one, release)
            log(f"  {path}: sha256 {one.sha256[:16]}, {_HOW[one.how]}")
            fetched.append(one)
    return fetched


def _there(folder, file) -> Fetched | None:
    """Verifies a file; returns None if it is missing and its folder can be written to."""
    path = folder / file.path
    try:
        with path.open("rb") as content:
            return _checked(folder, file, _pieces(content), there=True)
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


def _not_had(url, error, path, mirror):
    why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    why = why or type(error).__name__
    if mirror:
        return (
            f"{url} cannot be fetched from --mirror {shortened(mirror)} ({why}): give another one, "
            f"or fetch the file where there is a network and put it at {path}."
        )
    return (
        f"{url} cannot be fetched ({why}): fetch it where there is a network and put it at {path}, "
        "or give --mirror with a copy of the addresses."
    )


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    return iter(functools.partial(content.read, _PIECE), b"")


def _pieces_at(url: str, mirror: str | None, path: pathlib.Path) -> Iterator[bytes]:
    """Fetches the bytes at an address or in its mirror, for a file or folder at a path."""
    address = f"{mirror.rstrip('/')}/{url.partition('://')[2]}" if mirror else url
    try:
        request = urllib.request.Request(address, headers=_HEADERS)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            yield from _pieces(answer)
            if missing := getattr(answer, "length", 0):  # `read` of a part does not raise it
                raise urllib.error.URLError(f"{missing:,} bytes are missing")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise UserError(_not_had(url, error, path, mirror)) from error


def _through_datasets(corpus, file) -> Iterator[bytes] | None:
    """Fetches a split from the hub; returns None if the library or the hub is not available."""
    if not corpus.hub[0]:
        return None
    split = _SPLITS[file.path.rpartition("wiki.")[2].partition(".")[0]]
    with contextlib.suppress(ImportError, UserError):
        rows = table_rows.dataset_rows(corpus.hub[0], *corpus.hub, split=split)
        first = [*itertools.islice(rows, 1)]  # the whole split is fetched before it is read
        # A row is a line with its end; a blank line is an empty row.
        lines = (row["text"].removesuffix("\n") for row in itertools.chain(first, rows))
        return (f"{line}\n".encode() for line in lines)
    return None


def _checked(folder, file, pieces: Iterable[bytes], there=False) -> Fetched:
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
    how = "known" if file.sha256 else "recorded" if expected else "there" if there else "first"
    path = folder / file.path
    what = str(path) if there else f"{', '.join(file.urls)}: the content, for {path},"
    if expected and digest != expected:
        away = "move it away to fetch it again" if there else "get a copy and put it there"
        if not file.sha256:
            away += f", or take its entry out of {folder / RECORD} if the change is intended"
        raise UserError(f"{what} is another file (sha256 {digest}, not {expected}): {away}.")
    if tokens != file.tokens:
        raise UserError(
            f"{what} has {tokens:,} words and line breaks, not {file.tokens:,}: get a copy from "
            "elsewhere."
        )
    return Fetched(path, digest, how)


def _written(file, pieces) -> Iterator[bytes]:
    for piece in pieces:
        file.write(piece)
        yield piece


def _write(path, pieces: Iterator[bytes], check):
    """Writes a file whole or not at all, while it is checked; returns the result of `check`."""
    unfinished = path.with_name(f"{path.name}.partial")
    made = [above for above in path.parents if not above.exists()]
    try:
        first = next(pieces, b"")  # where there is no network, no folder is made
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            result = check(_written(file, itertools.chain([first], pieces)))
        unfinished.replace(path)
        return result
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}): give another folder by --into."
        ) from error
    finally:
        for remove in (unfinished.unlink, *(above.rmdir for above in made)):
            with contextlib.suppress(OSError):
                remove()


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
    entry = {"sha256": fetched.sha256, "urls": [*file.urls]}
    if file.path.endswith(".conllu"):
        entry["release"] = release
    record = {**read_record(folder), file.path: entry}
    text = json.dumps(dict(sorted(record.items())), indent=2) + "\n"
    _write(folder / RECORD, iter([text.encode()]), list)


# ----------------------------------- free corpora: their addresses, licences and checksums
# The paths of the files are the paths that recipes name, such as `multi30k/val.lc.norm.tok.en`. A
# SHA-256 given here was computed from the file behind the reported figures of this zoo. Without
# one, the first download is trusted: see the module's docstring.

_GITHUB = "https://raw.githubusercontent.com"
_MULTI30K = f"{_GITHUB}/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/tok"
_CHAR_RNN = f"{_GITHUB}/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e"
_CLAMS = f"{_GITHUB}/aaronmueller/clams/299d80a80e98bd14a1f74b942f18ef05059d860b/fr_evalset"
_SEQUOIA = (
    f"{_GITHUB}/UniversalDependencies/UD_French-Sequoia/f5b049600c89d2cf15ebbec860f75d703884d32b"
)
_WIKITEXT = "https://wikitext.smerity.com"
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


# Checksums of the texts of task 1 in English, French and Czech, by `sha256sum` of the files of that
# revision.
_CAPTIONS = {
    "train": (
        "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
        "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1",
        "7645fb91efa18f94c83d493f740a5d5a941e4b01efa6a124bf2d4af040e133e0",
    ),
    "val": (
        "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
        "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a",
        "b87ee4917f4a0f9ca6cca03e402026c9f4437dc1bd6a7dadfd2544ecfb6c5501",
    ),
    "test_2016_flickr": (
        "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
        "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836",
        "748c8816de928732365176e5c5d2f9bbabcec9b8d4448fba2d230feb057898a7",
    ),
    "test_2018_flickr": (
        "a66e25cbb8323d74a40873dcd222659f39e30ee7687a6ed5445833aed0673239",
        "22d44a4ba21e050f218399f2c4f9e1a36875f209820c1f1c9af5b76a2947a71c",
        "09a4987a524dea4852ccfef35329281b2cd577780691b732341ccecc4015aa4c",
    ),
}
_AGREEMENT = {
    "simple_agrmt.txt": "257bc529bd7c5f441e8ed7be4f4703698a898a50ba38bb40acee3849a0b9455e",
    "vp_coord.txt": "539c1373d7add33d4524699f1c7ad14e2203a4ec6dd313b38cc2d04855ee09b3",
    "prep_anim.txt": "5292623ee340c528403498344c17b79ee6448c804c6383e4655a91d3bb4f5021",
    "subj_rel.txt": "63ac3e1ada756fd9cbab6b0b7a5d88d9fe62c4a49246196f11639e9e769c23f7",
}


def _wikitext(size: int, train_tokens: int) -> Corpus:
    """Returns WikiText (Merity et al. 2016), with the numbers of tokens of its table 1."""
    name = f"wikitext-{size}"
    tokens = {"train": train_tokens, "valid": 217_646, "test": 245_569}
    paths = {f"{name}/wiki.{split}.tokens": count for split, count in tokens.items()}
    url = f"{_WIKITEXT}/{name}-v1.zip"
    files = tuple(File(path, (url,), None, path, count) for path, count in paths.items())
    about = f"WikiText-{size}, articles of Wikipedia, rare words <unk>; CC BY-SA 3.0"
    return Corpus(about, files, ("Salesforce/wikitext", f"{name}-v1"))


def _listed(about: str, folder: str, address: str, digests: dict[str, str]) -> Corpus:
    """Returns a corpus of files with known checksums, below one address."""
    files = (
        File(f"{folder}/{name}", (f"{address}/{name}",), digest) for name, digest in digests.items()
    )
    return Corpus(about, tuple(files))


CORPORA = {
    "wikitext-2": _wikitext(2, 2_088_628),
    "wikitext-103": _wikitext(103, 103_227_021),
    "tinyshakespeare": _listed(
        "plays of Shakespeare in one file, from char-rnn; public domain",
        "tinyshakespeare",
        f"{_CHAR_RNN}/data/tinyshakespeare",
        {"input.txt": "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"},
    ),
    "multi30k": _listed(
        "captions in English, French and Czech, tokenised; for non-commercial research",
        "multi30k",
        _MULTI30K,
        {
            f"{split}.lc.norm.tok.{language}": digest
            for split, digests in _CAPTIONS.items()
            for language, digest in zip(("en", "fr", "cs"), digests, strict=True)
        },
    ),
    "clams_fr": _listed(
        "minimal pairs of French agreement (Mueller et al. 2020); Apache 2.0",
        "clams_fr",
        _CLAMS,
        _AGREEMENT,
    ),
    "sequoia_tags": _listed(
        "French sentences with gold tags, for llrnn_french_sequoia; LGPL-LR",
        "ud_french_sequoia",
        _SEQUOIA,
        {
            "fr_sequoia-ud-train.conllu": (
                "56424954edf9d20a4d1184e37bfe931fb7c64da82bf2a587b4f35b828d79d767"
            )
        },
    ),
}
TREEBANK_FORM = "ud_LANGUAGE_TREEBANK"


def name_of(path: str) -> str | None:
    """Returns the name of the free corpus that has a file of this path, or may have it; or None."""
    folder, _, file = path.partition("/")
    if _TREEBANK.fullmatch(folder) and file in ("train.conllu", "dev.conllu", "test.conllu"):
        return folder
    named = {file.path: name for name, corpus in CORPORA.items() for file in corpus.files}
    return named.get(path)


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
