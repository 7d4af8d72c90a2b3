"""Every change of a run: how it is kept, named and told, and that it is made only if asked for."""

import argparse
import json

import pytest

from zoo.lab.evaluation.changes import registry
from zoo.lab.evaluation.changes.cache import Cache
from zoo.lab.evaluation.changes.constraint import Constraint
from zoo.lab.evaluation.changes.dynamic_evaluation import RMS
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
from zoo.lab.evaluation.changes.renormalised import Renormalised
from zoo.lab.evaluation.changes.temperature import Temperature
from zoo.lab.options import attribute

LEARNS = "learns from the text that it is judged on, by"
DYNAMIC = "dynamic evaluation (rms, rate 5e-05, decay 0.002, segments of 5)"
DIGEST = "0123456789abcdef"
# {change: (its part of a file's name, of a table's, its column or "" without one, its sentence)}
EXAMPLES = {
    NewLexicon("w.txt", digest=DIGEST): (
        "lexicon-01234567",
        "lexicon 01234567",
        "",
        "over other words than in training",
    ),
    NewLexicon("w.txt", adds=True, spread=True, letters=3, digest=DIGEST): (
        "lexicon-01234567-spread-letters-3",
        "lexicon 01234567, <unk> spread over new words by 3-grams of their letters",
        "",
        "over other words than in training; the unknown word's probability spread over new words "
        "by 3-grams of their letters",
    ),
    NewLexicon("w.txt", spread=True, digest=DIGEST, by_features=True): (
        "lexicon-01234567-spread-features",
        "lexicon 01234567, <unk> spread over new words by their features",
        "",
        "over other words than in training; the unknown word's probability spread over new words "
        "by their features",
    ),
    Renormalised(): ("renormalised", "renormalised", "", "renormalised over the lexicon"),
    Constraint("data/geo.grammar", DIGEST): (
        "constrained-01234567",
        "constrained",
        "constrained by geo.grammar [01234567]",
        "only as the grammar data/geo.grammar allows",
    ),
    Cache(2000, 1.6, 0.1, "validation"): (
        "cache",
        "learning from the text by a cache",
        "learning from the text by a cache",
        f"{LEARNS} a cache (2,000 words, flatness 1.6, weight 0.1)",
    ),
    RMS: (
        "dynamic",
        "learning from the text by dynamic evaluation",
        "learning from the text by dynamic evaluation",
        f"{LEARNS} {DYNAMIC}",
    ),
    Temperature(1.25): (
        "temperature",
        "at another temperature",
        "at another temperature",
        "probabilities to the power of 1/1.25, divided by their sum",
    ),
}


def test_every_kind_has_an_example():
    assert {type(change) for change in EXAMPLES} == {*registry.KINDS}
    assert len({kind.name for kind in registry.KINDS}) == len(registry.KINDS)


@pytest.mark.parametrize("change", EXAMPLES)
def test_a_change_is_kept_named_and_told(change):
    assert registry.from_json(json.loads(json.dumps(change.to_json()))) == change
    column = change.column if change.apart else ""
    assert (change.label, change.title, column, change.sentence) == EXAMPLES[change]
    assert change.learns == change.sentence.startswith(LEARNS)


def test_a_change_is_made_only_where_a_command_line_asks_for_it():
    options = [option for kind in registry.KINDS for option in kind.options]
    arguments = argparse.Namespace(**dict.fromkeys(attribute(x.usage) for x in options))
    run = object()
    assert registry.apply(run, arguments) is run


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "changes has None, not lexicon or renormalised or constrained"),
        ({"change": "cache", "size": "5"}, r'changes\.cache\.size is "5", where a whole number'),
        ({"change": "dynamic", "rule": "rms", "rate": 0.1, "decay": 2}, "decay is 2"),
    ],
)
def test_a_passport_with_another_change_is_refused(value, message):
    with pytest.raises(ValueError, match=message):
        registry.from_json(value)
