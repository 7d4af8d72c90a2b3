"""Overlap of a judged text with the texts that a model has seen, found by the content of sentences.

A model that was trained on a text, or whose checkpoint was chosen on it, has a figure of another
kind than one that never saw it. Some sentences recur by nature, short ones above all. Measured as
the share of a text's tokens that stand in sentences of the training text, in percent: of all
sentences / of those with at least `LETTERS` letters.

    Penn Treebank: validation 1.44 / 1.28, test 0.75 / 0.63      micro: test 0.13 / 0
    Czech news: validation 1.44 / 0.80, test 1.17 / 0.47         GeoQuery: test 0.30 / 0.30
    UD French: validation 0.38 / 0.39, tests 0.02 / 0 and 0 / 0  Overnight: test 0 / 0
    Multi30k, English, French, Czech: tests 0 / 0                1 Billion Word: test 0 / 0
    Tiny Shakespeare, a line a sentence: validation 6.72 / 0, test 2.69 / 0

So a text counts as seen where more than `OF_LONG` of the tokens of its long sentences, or more than
`OF_ALL` of all its tokens, are found. Below that the share is reported and nothing more.
"""

from collections.abc import Sequence

import numpy as np

from zoo.runs.seen_texts import ROLES, SeenTexts, Texts, hashes_of, letters

LETTERS = 30
OF_LONG = 0.05
OF_ALL = 0.25


def of_text(sentences: list[list[str]], seen: SeenTexts) -> dict:
    """Counts how much of a text is among the texts seen in each role."""
    counts_of = {role: found_in(sentences, getattr(seen, role)) for role in ROLES}
    return {"letters": LETTERS, **counts_of}


def found_in(sentences: Sequence[list[str]], texts: Texts) -> dict:
    """Counts a text's sentences among others, {"all": counts, "long": counts}; see `of_text`."""
    spelled = [(text, len(words)) for words in sentences if (text := letters(words))]
    long = np.array([len(text) >= LETTERS for text, _ in spelled], bool)
    tokens = np.array([count for _, count in spelled], np.int64)
    there = texts.has(hashes_of(text for text, _ in spelled))
    return {
        "all": _counts(there, np.ones_like(there), tokens),
        "long": _counts(there, long, tokens),
    }


def _counts(there, chosen, tokens):
    seen = there & chosen
    return {
        "sentences": int(seen.sum()),
        "of_sentences": int(chosen.sum()),
        "tokens": int(tokens[seen].sum()),
        "of_tokens": int(tokens[chosen].sum()),
    }


def is_validation(split: str) -> bool:
    """Whether a split, or a part of one, is the one that checkpoints are chosen on."""
    return split == "validation" or split.endswith(".validation")


def share(counts: dict) -> float:
    """Returns the share of the tokens that are found; 0 without any."""
    return counts["tokens"] / counts["of_tokens"] if counts["of_tokens"] else 0.0


def is_seen(counts: dict) -> bool:
    """Whether more of a text is found than recurs by nature."""
    return share(counts["long"]) > OF_LONG or share(counts["all"]) > OF_ALL


def reason(passport: dict) -> str | None:
    """Explains why a figure is not one of unseen text; None if it is, or if overlap was not
    recorded.

    A figure on a validation split counts as unseen although the split chose the checkpoint: that is
    its purpose.
    """
    recorded = passport.get("overlap")
    if recorded and is_seen(recorded["trained_on"]):
        return f"it was trained on this text ({told(recorded['trained_on'])})"
    if is_validation(passport["split"]):
        return None
    if recorded and is_seen(recorded["selected_on"]):
        return f"its checkpoint was chosen on this text ({told(recorded['selected_on'])})"
    return None


def told(counts: dict) -> str:
    """Describes the shares of a text that a model had seen."""
    if not counts["all"]["tokens"]:
        return "none of its sentences found"
    shown = f"{share(counts['all']):.2%} of its tokens in sentences found there"
    long = counts["long"]
    return f"{shown}, {share(long):.2%} for long sentences" if long["of_tokens"] else shown


def lines(passport: dict) -> list[str]:
    """Returns lines about the texts that the model of a figure has seen, one a role."""
    recorded, unknown = passport.get("overlap"), passport.get("not_known") or []
    if not recorded:
        return ["trained on, selected on: not recorded"]
    shown = [f"in the training text: {told(recorded['trained_on'])}"]
    if is_validation(passport["split"]):
        shown.append("selected on this text, as a validation text is for")
    else:
        shown.append(f"in the text that chose the checkpoint: {told(recorded['selected_on'])}")
    return shown + [f"not known: the texts that {part} had seen" for part in unknown]


def warnings(passport: dict) -> list[str]:
    """Returns the warning of a figure whose text the model saw: one line, or none."""
    why = reason(passport)
    return [f"  not a figure of unseen text: {why}"] if why else []
