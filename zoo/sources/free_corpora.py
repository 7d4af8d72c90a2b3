"""Free corpora: their addresses, licences and checksums.

The paths of the files are the paths that recipes name, such as `multi30k/val.lc.norm.tok.en`. A
SHA-256 given here was computed from the file behind the reported figures of this zoo. Without one,
the first download is trusted: see `zoo.sources.fetch`.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from zoo.errors import UserError

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


# Checksums of the texts of task 1, by `sha256sum` of the files of that revision.
_CAPTIONS = {
    "train.lc.norm.tok.en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
    "train.lc.norm.tok.fr": "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1",
    "train.lc.norm.tok.cs": "7645fb91efa18f94c83d493f740a5d5a941e4b01efa6a124bf2d4af040e133e0",
    "val.lc.norm.tok.en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
    "val.lc.norm.tok.fr": "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a",
    "val.lc.norm.tok.cs": "b87ee4917f4a0f9ca6cca03e402026c9f4437dc1bd6a7dadfd2544ecfb6c5501",
    "test_2016_flickr.lc.norm.tok.en": (
        "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"
    ),
    "test_2016_flickr.lc.norm.tok.fr": (
        "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836"
    ),
    "test_2016_flickr.lc.norm.tok.cs": (
        "748c8816de928732365176e5c5d2f9bbabcec9b8d4448fba2d230feb057898a7"
    ),
    "test_2018_flickr.lc.norm.tok.en": (
        "a66e25cbb8323d74a40873dcd222659f39e30ee7687a6ed5445833aed0673239"
    ),
    "test_2018_flickr.lc.norm.tok.fr": (
        "22d44a4ba21e050f218399f2c4f9e1a36875f209820c1f1c9af5b76a2947a71c"
    ),
    "test_2018_flickr.lc.norm.tok.cs": (
        "09a4987a524dea4852ccfef35329281b2cd577780691b732341ccecc4015aa4c"
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
    files = tuple(
        File(
            path=f"{name}/wiki.{split}.tokens",
            urls=(f"{_WIKITEXT}/{name}-v1.zip",),
            member=f"{name}/wiki.{split}.tokens",
            tokens=count,
        )
        for split, count in tokens.items()
    )
    about = f"WikiText-{size}, articles of Wikipedia, rare words <unk>; CC BY-SA 3.0"
    return Corpus(about, files, ("Salesforce/wikitext", f"{name}-v1"))


CORPORA = {
    "wikitext-2": _wikitext(2, 2_088_628),
    "wikitext-103": _wikitext(103, 103_227_021),
    "tinyshakespeare": Corpus(
        "plays of Shakespeare in one file, from char-rnn; public domain",
        (
            File(
                "tinyshakespeare/input.txt",
                (f"{_CHAR_RNN}/data/tinyshakespeare/input.txt",),
                "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            ),
        ),
    ),
    "multi30k": Corpus(
        "captions in English, French and Czech, tokenised; for non-commercial research",
        tuple(
            File(f"multi30k/{name}", (f"{_MULTI30K}/{name}",), digest)
            for name, digest in _CAPTIONS.items()
        ),
    ),
    "clams_fr": Corpus(
        "minimal pairs of French agreement (Mueller et al. 2020); Apache 2.0",
        tuple(
            File(f"clams_fr/{name}", (f"{_CLAMS}/{name}",), digest)
            for name, digest in _AGREEMENT.items()
        ),
    ),
    "sequoia_tags": Corpus(
        "French sentences with gold tags, for llrnn_french_sequoia; LGPL-LR",
        (
            File(
                "ud_french_sequoia/fr_sequoia-ud-train.conllu",
                (f"{_SEQUOIA}/fr_sequoia-ud-train.conllu",),
                "56424954edf9d20a4d1184e37bfe931fb7c64da82bf2a587b4f35b828d79d767",
            ),
        ),
    ),
}
TREEBANK_FORM = "ud_LANGUAGE_TREEBANK"


def name_of(path: str) -> str | None:
    """Returns the name of the free corpus that has a file of this path, or may have it; or None."""
    folder, _, file = path.partition("/")
    if _TREEBANK.fullmatch(folder) and file in ("train.conllu", "dev.conllu", "test.conllu"):
        return folder
    named = ((file.path, name) for name, corpus in CORPORA.items() for file in corpus.files)
    return dict(named).get(path)


def corpus(name: str, release: str, listing: Callable[[str], list[dict]]) -> Corpus:
    """Returns a corpus by its name: one of `CORPORA`, or a treebank of Universal Dependencies.

    The files of a treebank are `train.conllu`, `dev.conllu` and `test.conllu`. The parts of a large
    training text are concatenated; a small treebank may lack some of the files.
    """
    if name in CORPORA:
        return CORPORA[name]
    match = _TREEBANK.fullmatch(name)
    if match is None:
        known = ", ".join(CORPORA)
        raise UserError(
            f"unknown corpus {name!r}: give one of {known}, or {TREEBANK_FORM}, as in ud_czech_pdt."
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
    files = tuple(
        File(f"{name}/{split}.conllu", tuple(sorted(parts[split])))
        for split in ("train", "dev", "test")
        if split in parts
    )
    return Corpus(f"{repository} of Universal Dependencies, {release}; see its LICENSE", files)
