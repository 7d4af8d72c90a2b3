"""Counts slot errors: names that realisations omit, and names that conditions do not support.

    python -m records.slot_errors runs/e2e_plain runs/e2e_priming --split test

For models of papers.Realisations: one text is generated for each condition of a split, character by
character, and its names are compared with the condition's names.
"""

import dataclasses
import re

import numpy as np

from records import probes
from zoo.data import Corpus
from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.lab.evaluation import exact_match, item_scores, passport, significance
from zoo.lab.evaluation.figures import Accuracy, AccuracyPassport

# The slots of the E2E challenge whose values are names.
SLOTS = ("name", "near")


def names_of(meaning: str, slots: tuple[str, ...] = SLOTS) -> list[str]:
    """Returns the values of some slots of a meaning such as "name[Zizzi], area[riverside]"."""
    return [
        value
        for slot in slots
        for value in re.findall(rf"(?:^|[\s,]){re.escape(slot)}\[([^\]]*)\]", meaning)
    ]


def errors(meaning: str, text: str, names: set[str]) -> tuple[list[str], list[str]]:
    """Finds the slot errors of a text: (names that it omits, names without evidence).

    A text contains a name if the name occurs in it between characters that are not letters, and not
    within a longer name.
    """
    expected_names, text_names, masked_text = names_of(meaning), set(), text
    for name in sorted({*names, *expected_names}, key=lambda name: (-len(name), name)):
        masked_text, count = re.subn(rf"(?<!\w){re.escape(name)}(?!\w)", "#", masked_text)
        if count:
            text_names.add(name)
    missing = [name for name in expected_names if name not in text_names]
    return missing, sorted(text_names.difference(expected_names))


def conditions(corpus: Corpus) -> Corpus:
    """Returns the corpus with one sentence for each condition, its first."""
    if corpus.prefixes is None:
        raise UserError(
            f"slot errors need texts with conditions, and {corpus.name} has none: give a run whose "
            "data are papers.Realisations."
        )
    first: dict = {}
    for number, (sentence, prefix) in enumerate(
        zip(corpus.sentences, corpus.prefixes, strict=True)
    ):
        if prefix:
            first.setdefault(tuple(sentence[:prefix]), number)
    return dataclasses.replace(
        corpus,
        sentences=[corpus.sentences[number] for number in first.values()],
        prefixes=[corpus.prefixes[number] for number in first.values()],
    )


def judge(
    run, split: str, temperature: float = 0.5, length: int = 300, seed: int = 0
) -> tuple[AccuracyPassport, item_scores.Arrays]:
    """Generates a text for each condition of a split, and counts the slot errors."""
    source = run.experiment.data
    names = set()
    for name in source.splits():
        text = run.read(name)
        if text.prefixes is None:
            continue  # a text of a mixture that has no conditions
        for meaning in {meaning for meaning, _ in _pairs(conditions(text))}:
            names.update(names_of(meaning))
    if not names:
        raise UserError(f"no condition has a slot {' or '.join(SLOTS)}: slot errors need names.")
    corpus = conditions(run.read(split))
    answers = exact_match.answer(run, corpus, length, temperature, seed)
    meanings = [meaning for meaning, _ in _pairs(corpus)]
    texts = ["".join(characters) for characters, _ in answers]
    pairs = zip(meanings, texts, strict=True)
    missing_of, wrong_of = zip(*(errors(*pair, names) for pair in pairs), strict=True)
    missing_by_slot, slots_by_slot = (dict.fromkeys(SLOTS, 0) for _ in range(2))
    for meaning, missing_names in zip(meanings, missing_of, strict=True):
        for slot in SLOTS:
            values = names_of(meaning, (slot,))
            slots_by_slot[slot] += len(values)
            missing_by_slot[slot] += sum(value in missing_names for value in values)
    slots, missing = sum(slots_by_slot.values()), sum(missing_by_slot.values())
    wrong = sum(map(len, wrong_of))
    right = np.array([not any(mistakes) for mistakes in zip(missing_of, wrong_of, strict=True)])
    details = {
        "temperature": temperature,
        "seed": seed,
        "texts": len(texts),
        "complete": int(np.sum([complete for _, complete in answers])),
        "slots": slots,
        "slots_by_slot": slots_by_slot,
        "missing": missing,
        "missing_by_slot": missing_by_slot,
        "wrong": wrong,
        "slot_error_rate": (missing + wrong) / max(1, slots),
        "examples": [f"{m} -> {t}" for m, t in zip(meanings[:3], texts[:3], strict=True)],
    }
    interval = significance.binomial_interval(int(right.sum()), len(texts))
    record = AccuracyPassport(
        kind="slot errors",
        split=f"slots-{split}",
        figures=Accuracy(
            accuracy=float(right.mean()),
            interval=interval,
            right=int(right.sum()),
            details=details,
        ),
        tokens=len(texts),
        counts="texts that were drawn for a condition, right with all of its names and no other",
        **passport.translation_fields(run, corpus),
    )
    return record, item_scores.from_answers(right)


def _pairs(corpus):
    """Yields (condition, text) for each sentence, as strings, without the separator."""
    for sentence, prefix in zip(corpus.sentences, corpus.prefixes, strict=True):
        yield "".join(sentence[: prefix - 1]), "".join(sentence[prefix:])


def describe(record: AccuracyPassport) -> str:
    """Formats a passport of `judge` as text: its figures and examples."""
    figures = record.figures.details
    missing_counts = [
        f"{slot} {figures['missing_by_slot'][slot]:,} of {count:,}"
        for slot, count in figures["slots_by_slot"].items()
    ]
    lines = [
        f"{record.split}, temperature {figures['temperature']:g}: slot error rate "
        f"{figures['slot_error_rate']:.1%} ({figures['slots']:,} names in {figures['texts']:,} "
        f"conditions: {figures['missing']:,} left out ({', '.join(missing_counts)}), "
        f"{figures['wrong']:,} without evidence; "
        f"{record.figures.right:,} texts without error, {figures['complete']:,} complete)",
        *figures["examples"],
    ]
    return "\n".join(["\n  ".join(lines), *passport.warnings(record.leak)])


if __name__ == "__main__":
    program.program(lambda: probes.main(__doc__, judge, describe))
