"""Results from before a field was kept: what can be derived for them is derived here, once.

Newer results have all of it as fields, and nothing about them is read from the names of files.
"""

import pathlib
import re

from zoo import strict_json

NOT_RECORDED = "not recorded"
GRAMMAR = "zoo.priors.grammar:Grammar"
SPREAD = "zoo.heads.spread_unknown:SpreadUnknown"


def check(passport: dict) -> None:
    """ValueError unless what is read of a passport to complete it has the right types."""
    strict_json.check(
        passport,
        {"lexicon": {"words": str | None, "words_hash": str | None}, "model": dict | None},
    )
    model = passport.get("model") or {}
    strict_json.check(model, {"head": dict | None}, "model")
    head = model.get("head") or {}
    strict_json.check(
        head,
        {"component": str | None, "renormalised": bool | None, "background": dict | None},
        "model.head",
    )
    background = head.get("background") or {}
    if background.get("component") == GRAMMAR:
        strict_json.check(background, {"path": str}, "model.head.background")


def completed(passport: dict, path: pathlib.Path) -> dict:
    """The passport, which `check` found well, with the fields that have come since it was written.

    Args:
      path: its file. Of old results alone its name is consulted: whether a grammar forbade words
        when it was judged was once nowhere else.
    """
    head = (passport.get("model") or {}).get("head") or {}
    derived = {
        "constraint": _constraint(head, path),
        "renormalised": bool(head.get("renormalised")),
        "spread_unknown": head.get("component") == SPREAD,
        "trained_on": None,
        "selected_on": None,
        "not_known": None,
        "overlap": None,
        "source": None,
    }
    lexicon = passport["lexicon"]
    words = lexicon.get("words") or lexicon.get("words_hash")
    return {**derived, **passport, "lexicon": {**lexicon, "words": words}}


def _constraint(head, path):
    background = head.get("background") or {}
    if background.get("component") == GRAMMAR:
        return {"grammar": background["path"], "digest": NOT_RECORDED}
    if re.search(r"[.-]constrained\.json$", path.name):
        return {"grammar": "a grammar", "digest": NOT_RECORDED}
    return None


def align_words(passports: list[dict]):
    """Gives old passports the digest of words that newer ones of the same words have.

    Old ones have only a hash that depends on the order of the words: where it is that of a newer
    passport, so is the set of words.
    """
    newer = {
        passport["lexicon"]["words_hash"]: passport["lexicon"]["words"]
        for passport in passports
        if passport["lexicon"].get("words_hash") not in (None, passport["lexicon"]["words"])
    }
    for passport in passports:
        lexicon = passport["lexicon"]
        lexicon["words"] = newer.get(lexicon["words"], lexicon["words"])
