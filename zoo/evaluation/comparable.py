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

    Args:
      passport: of a perplexity.
    """
    ways = passport.get("learns_from_text") or ()
    return " and ".join(way.partition(" (")[0] for way in ways)


def quantity(passport: dict, fields: tuple[str, ...] = OF_PERPLEXITIES) -> dict[str, Any]:
    """Returns {field: value} of the fields that must agree, each policy a field of its own.

    Args:
      passport: of a figure.
      fields: dotted names of the fields.

    Raises:
      KeyError, TypeError: the passport has no such field.
    """
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
    return values


def check_comparable(
    first: dict,
    second: dict,
    names: tuple[Any, Any],
    fields: tuple[str, ...] = OF_PERPLEXITIES,
    again: str = "evaluate",
):
    """Raises UserError for the first field in which two passports are not of the same quantity.

    Args:
      first: a passport.
      second: another one.
      names: of the two runs, for the message.
      fields: that must agree.
      again: the command that makes such figures.
    """
    old, new = quantity(first, fields), quantity(second, fields)
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
