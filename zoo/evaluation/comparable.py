"""Comparability of figures: they may be put side by side if their passports are of one quantity."""

from typing import Any

from zoo.errors import UserError

# Fields that must agree before two perplexities may be ranked.
OF_PERPLEXITIES = (
    "kind",
    "policies",
    "counts",
    "data.sha256",
    "source.sha256",
    "lexicon.words",
    "normalised_over",
    "constraint.digest",
    "learns_from_text",
    "tokens",
)
# Fields that must agree before two figures of translations may be ranked. The signature of BLEU
# has the tokenizer.
OF_TRANSLATIONS = ("kind", "data.sha256", "source.sha256", "policies.lower_case", "tokenizer")


def learns(passport: dict) -> str:
    """Returns how a model learned from the text that it was judged on, "" if it did not.

    Settings, such as the size of a cache, are left out: they are a part of the model.
    """
    ways = passport.get("learns_from_text") or ()
    return " and ".join(way.partition(" (")[0] for way in ways)


def of_strings(passport: dict) -> bool:
    """Whether a perplexity is over all strings of bytes, so that the lexicon has no part in it.

    A head that spells words gives every string its probability, as long as no word of the text is
    read as `<unk>`. Where it spells by characters, the lexicon gives the alphabet.
    """
    over = passport["normalised_over"]
    unread = passport.get("out_of_vocabulary", 1), passport.get("unknown_tokens", 1)
    return over.startswith("all spellings") and "outside" not in over and not any(unread)


def quantity(passport: dict, fields: tuple[str, ...] = OF_PERPLEXITIES) -> dict[str, Any]:
    """Returns {field: value} of the fields that must agree, each policy a field of its own."""
    values = {}
    for field in fields:
        # Not every text has sources.
        value: Any = {"source": None, **passport, "learns_from_text": learns(passport)}
        for name in field.split("."):
            value = None if value is None else value[name]  # constraint is null without a grammar
        nested = value if isinstance(value, dict) else {}
        values.update({f"{field}.{name}": item for name, item in nested.items()})
        if not nested:
            values[field] = value
    if "lexicon.words" in values and of_strings(passport):
        values["lexicon.words"] = None
    return values


def check_comparable(
    first: dict,
    second: dict,
    names: tuple[Any, Any],
    fields: tuple[str, ...] = OF_PERPLEXITIES,
    again: str = "evaluate",
):
    """Raises UserError for the first field in which two passports are not of the same quantity."""
    old, new = quantity(first, fields), quantity(second, fields)
    fused = "policies.fused"
    if old.get("data.sha256") == new.get("data.sha256") and old.get(fused) != new.get(fused):
        # The hash is of words as they were read: the text has no fused form read in two ways.
        for one in (old, new):
            one[fused] = None
            if "counts" in one:  # of which words, and of which marks
                one["counts"] = one["counts"].partition("; ")[2]
    for field in old | new:
        if old.get(field) != new.get(field):
            remedy = f"{again} both alike"
            if field == "data.sha256":
                remedy = f"{again} both on one text"
                if again == "evaluate":
                    remedy += ", or choose a text that both have by zoo compare --split"
            raise UserError(
                f"{names[0]} and {names[1]} cannot be compared on {first['split']}, because "
                f"{field} differs: {old.get(field)!r} against {new.get(field)!r}; {remedy}."
            )
