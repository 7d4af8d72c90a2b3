"""The model card of an export: the model, the texts that it has seen, and its figures."""

import dataclasses
import pathlib
from typing import Any

from zoo import configuration
from zoo.errors import UserError
from zoo.evaluation import leakage
from zoo.evaluation.run import Run
from zoo.models import SequenceToSequence

_HEADER = """---
library_name: zoo
pipeline_tag: {pipeline}
tags: [{tag}, recurrent, jax]
---
"""
_OF_TEXT = {"pipeline": "text-generation", "tag": "language-model"}
_OF_PAIRS = {"pipeline": "translation", "tag": "encoder-decoder"}
_USE_OF_TEXT = (
    "    python -m zoo generate DIR          # with Zoo",
    "    python -m zoo score DIR sentences.txt",
    '    python load.py "SENTENCE"           # pip install jax flatbuffers safetensors',
)
_OF_WORDS = (
    "",
    "`load.py` takes words as they were in training, between blanks: in its case, tokenised, and "
    "with fused forms split if they were. `zoo score` reads a text so.",
)
_USE_OF_PAIRS = (
    "    python -m zoo translate DIR sentences.txt      # with Zoo",
    '    python load.py "SOURCE" "TRANSLATION"          # pip install jax flatbuffers safetensors',
)


def card(
    run: Run, name: str, licence: str | None, passports: dict[pathlib.Path, dict], size: int
) -> str:
    """Writes the card, as Markdown."""
    model, lexicon = run.experiment.model, run.lexicon
    head = getattr(model, "head", None)
    pairs = isinstance(model, SequenceToSequence)
    units = "characters" if lexicon.of_characters else "words"
    return "\n".join(
        [
            _HEADER.format(**(_OF_PAIRS if pairs else _OF_TEXT)),
            f"# {name}",
            "",
            f"A {type(model).__name__} of {size:,} parameters ({_parts(model)}) over "
            f"{len(lexicon):,} {units}; probabilities are normalised over "
            f"{head.normalised_over(lexicon) if head is not None else 'them'}.",
            "",
            "## Data",
            "",
            *_data(run),
            f"- Licence of the data: {licence or known_licence(run)}",
            "",
            "## Figures",
            "",
            *_figures(passports),
            "",
            "Passports of the figures are in `results/`, hashes of the sentences that the model "
            "has seen in `texts.npz`.",
            "",
            "## Use",
            "",
            *(_USE_OF_PAIRS if pairs else _USE_OF_TEXT),
            *(() if pairs or lexicon.of_characters else _OF_WORDS),
            "",
            "## Recipe",
            "",
            *("    " + line for line in configuration.describe(run.experiment).splitlines()),
            "",
        ]
    )


def known_licence(run: Run) -> str:
    """Returns the licence of a run's data as far as Zoo knows it: for texts that it generates."""
    if run.experiment.data.within().generated:
        return "none is needed: Zoo generates the text"
    return "not known to the exporter; ask whoever made the text"


def _parts(model) -> str:
    """Names the components of a model, such as "Lookup, LSTM, Softmax"."""
    values = (getattr(model, field.name) for field in dataclasses.fields(model))
    return ", ".join(type(value).__name__ for value in values if dataclasses.is_dataclass(value))


def _data(run: Run) -> list[str]:
    """Returns a line for each text that the model has seen."""
    seen = run.seen_texts
    if seen is None:
        return ["- What the model was trained on is not recorded."]
    roles = {"trained on": seen.trained_on, "selected on": seen.selected_on}
    return [
        f"- {role.capitalize()} `{text['text']}` ({text['by']}): {text['sentences']:,} sentences, "
        f"{text['tokens']:,} tokens, sha256 {text['digest'][:16]}"
        for role, texts in roles.items()
        for text in texts.about
    ] + [
        *(
            f"- `{text['text']}` ({text['by']}) gave {', '.join(text['gave'])}, sha256 "
            f"{text['digest'][:16]}"
            for text in seen.knowledge or ()
        ),
        *(f"- Not known: the texts that {part} had seen" for part in seen.not_known),
    ]


def _figures(passports: dict[pathlib.Path, dict]) -> list[str]:
    """Returns a table of the perplexities, and lines on the tokens that they count."""
    chosen = {file: one for file, one in passports.items() if one.get("kind") == "perplexity"}
    if not chosen:
        return ["The run was not judged before it was exported."]
    lines = [
        "| text | state | tokens | nats a token | bits | perplexity |",
        "|---|---|---|---|---|---|",
    ]
    counts: dict[str, Any] = {}
    seen = []
    for file, one in chosen.items():
        try:
            lines.append(_row(one))
            if why := leakage.reason(one):
                seen.append(f"! Not a figure of unseen text: {one['split']}; {why}.")
            counts[f"{one['counts']}; normalised over {one['normalised_over']}"] = None
        except (LookupError, TypeError, ValueError) as error:
            raise UserError(
                f"{file} is not a result of this zoo ({error!r}): remove it, and evaluate again."
            ) from error
    return [*lines, "", *(f"Counted: {text}." for text in counts), *seen]


def _row(passport: dict) -> str:
    """Formats a perplexity as a row of the table."""
    figures = passport["figures"]
    mark = " !" if leakage.reason(passport) else ""
    # Infinite ones are kept as text.
    values = [float(figures[name]) for name in ("log_perplexity", "bits", "perplexity")]
    return (
        f"| {passport['split']} | {passport['policies']['state']} | {passport['tokens']:,} "
        f"| {values[0]:.4f} | {values[1]:.4f} | {values[2]:.2f}{mark} |"
    )
