"""Recipes: --set and comparison; tests/malformed has the recipes that are refused."""

import dataclasses
import functools
import math
import re
import sys

import numpy as np
import pytest

import configs
from zoo import configuration
from zoo.base import component_registry
from zoo.base.trust import user_modules
from zoo.configuration import fields
from zoo.cores import LSTM, Core
from zoo.data import Conllu, Micro, Source, Text
from zoo.embeddings import Embedding, Features, Lookup
from zoo.errors import UserError
from zoo.experiment import Experiment, Training
from zoo.heads import NCE, Head, LogLinear, Softmax
from zoo.optimizers import SGD, Adagrad, Adam, Cosine, Decay, Optimizer, RMSProp, Schedule
from zoo.priors import FeaturePrior, Morphology, TopWords, Uniform, Unigram
from zoo.priors.strings import LetterStrings

RECIPE = Experiment(data=Text(train="a.txt", validation="b.txt"))


def apply_settings(*settings):
    return configuration.apply_settings(RECIPE, list(settings))


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("training.batch=16", 16),
        ("training.clip=5", 5.0),
        ("training.clip=1e-2", 0.01),
        ("training.shuffle=true", True),
        ("training.shuffle=No", False),
        ("training.state=sentences", "sentences"),
        ("data.train=x=y.txt[:-2]", "x=y.txt[:-2]"),
        ("data.tests=a.txt,b.txt[3:]", ("a.txt", "b.txt[3:]")),
        ("data.tests=", ()),
        ("data.tests=corpus(2)", ("corpus(2)",)),
        ("data.tests=(corpus(1),corpus(2))", ("corpus(1)", "corpus(2)")),
        ("data.tests=(1)a,b(2)", ("(1)a", "b(2)")),
        ("data.tests=(a,)", ("a",)),
        ("vocabulary.splits=train, test", ("train", "test")),
        ("vocabulary.background=none", None),
        ("vocabulary.background=Unigram", Unigram()),
        ("vocabulary.features=TopWords,Morphology", (TopWords(), Morphology())),
        ("model.head=LogLinear", LogLinear()),
        ("model.embedding = Features", Features()),
        ("model.core.layers=2", 2),
        ("training.optimizer=RMSProp", RMSProp()),
        ("training.optimizer.schedule=Cosine", Cosine()),
        ("training.frozen=('embedding',\"core\")", ("embedding", "core")),
        ("training.frozen=embedding, core", ("embedding", "core")),
        ('training.rates=(("head", 0.1), (core/0, 2))', (("head", 0.1), ("core/0", 2.0))),
        ("training.rates=((head,0.1),)", (("head", 0.1),)),
        ("training.rates=(head,0.1),(core,2)", (("head", 0.1), ("core", 2.0))),
        ("training.rates=()", ()),
    ],
)
def test_a_setting_changes_one_field_to_a_value_of_its_type(setting, expected):
    value, before = apply_settings(setting), RECIPE
    *path, last = setting.partition("=")[0].strip().split(".")
    for name in path:
        value, before = getattr(value, name), getattr(before, name)
    assert getattr(value, last) == expected
    assert type(getattr(value, last)) is type(expected)
    assert dataclasses.replace(value, **{last: getattr(before, last)}) == before


WITH_FEATURES = "vocabulary.features=Morphology,TopWords"


def test_an_item_of_a_tuple_is_set_by_its_number():
    vocabulary = apply_settings(WITH_FEATURES, "vocabulary.features.1.count=5").vocabulary
    assert vocabulary.features == (Morphology(), TopWords(count=5))
    assert apply_settings(WITH_FEATURES, "vocabulary.features.0=TopWords").vocabulary.features == (
        TopWords(),
        TopWords(),
    )
    for name in ("2", "-1", "count"):
        with pytest.raises(UserError, match=f"'{name}' is not one of the 2 items there"):
            apply_settings(WITH_FEATURES, f"vocabulary.features.{name}.count=5")


def test_tuples_within_tuples():
    rates = "training.rates=((head,0.1),(core,2))"
    changed_rates = apply_settings(
        rates, "training.rates.1.1=3", "training.rates.0.0=embedding"
    ).training.rates
    assert changed_rates == (("embedding", 0.1), ("core", 3.0))
    with pytest.raises(UserError, match=r"rates=\(head,0.1\): 'head' should have 2 parts"):
        apply_settings("training.rates=(head,0.1)")
    with pytest.raises(UserError, match=r"'a lot' is not a number"):
        apply_settings("training.rates=((head,a lot),)")


def test_a_comma_within_quotes_is_part_of_an_item():
    frozen = apply_settings("training.frozen='a,b',\"c\",l'art").training.frozen
    assert frozen == ("a,b", "c", "l'art")


def test_a_parenthesis_within_quotes_is_part_of_an_item():
    for text, expected in (
        ('("1) a.txt[5:]",)', ("1) a.txt[5:]",)),
        ('("a (1.txt",)', ("a (1.txt",)),
        ('("a.txt","b).txt")', ("a.txt", "b).txt")),
        ("('a)','(b')", ("a)", "(b")),
    ):
        assert apply_settings(f"training.frozen={text}").training.frozen == expected


def test_several_settings_apply_in_order():
    training = apply_settings(
        "training.optimizer=RMSProp",
        "training.optimizer.schedule=Decay",
        "training.optimizer.schedule.after=2",
        "training.batch=8",
        "training.batch=64",
    ).training
    assert training.optimizer == RMSProp(schedule=Decay(after=2))
    assert training.batch == 64
    # Another component begins with its own defaults.
    narrow = apply_settings("model.core.size=8")
    assert configuration.apply_settings(narrow, ["model.core=LSTM"]).model.core == LSTM()


@pytest.mark.parametrize(
    ("component", "field", "value", "message"),
    [
        (Unigram, "smoothing", math.inf, "smoothing of Unigram is inf: give at least 0"),
        (Training, "clip", math.nan, "training.clip is nan: give at least 0."),
        (Decay, "factor", 0.0, "factor is 0.0: give a finite number above 0."),
        (Cosine, "final", math.nan, "schedule.final is nan: give at least 0."),
        (Adam, "learning_rate", math.inf, "learning_rate is inf: give at least 0, but a finite"),
        (Adam, "beta2", math.nan, "beta2 is nan: give at least 0, and less than 1."),
        (SGD, "momentum", 1.0, "momentum is 1.0: give at least 0, and less than 1."),
        (Adagrad, "initial_accumulator", -0.1, "accumulator is -0.1: give at least 0."),
        (
            functools.partial(LetterStrings, ("Class:name",)),
            "smoothing",
            math.inf,
            "<name>.smoothing is inf: give a finite number above 0.",
        ),
        (Micro, "seed", 2**31, "data.seed is 2147483648: give a whole number from 0 to"),
        # Numbers are checked in Python as in configs.
        (NCE, "samples", 10.5, "samples of NCE is 10.5, of type float: give a whole number."),
        (LogLinear, "penalty", "x", "penalty of LogLinear is 'x', of type str: give a number."),
        (TopWords, "count", True, "priors.TopWords.count is True, of type bool: give a"),
    ],
)
def test_a_value_out_of_range_is_refused(component, field, value, message):
    with pytest.raises(UserError, match=re.escape(message)):
        component(**{field: value})


def test_numbers_of_numpy_are_numbers():
    assert LogLinear(penalty=np.float32(0.5)).penalty == 0.5
    assert NCE(samples=np.int64(3)).samples == 3


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Head, {"Softmax": Softmax, "LogLinear": LogLinear}),
        (Core, {"LSTM": LSTM}),
        (Embedding, {"Lookup": Lookup, "Features": Features}),
        (FeaturePrior, {"TopWords": TopWords, "Morphology": Morphology}),
        (Schedule, {"Cosine": Cosine, "Decay": Decay}),
        (Source, {"Text": Text, "Conllu": Conllu}),
    ],
)
def test_components_are_found_by_their_kind(kind, expected):
    components = component_registry.components(kind)
    assert expected.items() <= components.items()
    assert all(issubclass(component, kind) for component in components.values())
    assert kind.__name__ not in components
    optimizers = {"SGD", "RMSProp", "Adagrad", "Adam", "Optax"}
    assert optimizers == set(component_registry.components(Optimizer))


def test_an_error_of_a_module_beside_the_config_is_let_through(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(user_modules, "_folders", [])
    (tmp_path / "helping_config.py").write_text("def head():\n    return {}['mine']\n")
    path = tmp_path / "mine.py"
    path.write_text("import helping_config\n\ndef get_config():\n    helping_config.head()\n")
    with pytest.raises(KeyError, match=r"^'mine'$"):
        configs.load(str(path))


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        (LSTM(), "LSTM()"),
        (LSTM(size=8, dropout=0.5), "LSTM(size=8, dropout=0.5)"),
        (Text(train="a", validation="b"), "Text(train='a', validation='b')"),  # required fields
        (Adam(schedule=Cosine(warmup=3)), "Adam(schedule=Cosine(warmup=3))"),
        ((TopWords(count=3), Unigram()), "(TopWords(count=3), Unigram())"),
        ((Unigram(),), "(Unigram(),)"),
    ],
)
def test_a_brief_description_leaves_out_defaults(component, expected):
    assert configuration.brief(component) == expected


def test_a_default_of_another_type_is_not_left_out():
    assert configuration.brief(LSTM(skip=0)) == "LSTM(skip=0)"


def test_a_description_has_every_field():
    lines = configuration.describe(apply_settings("vocabulary.background=Unigram")).splitlines()
    assert lines[:2] == ["Experiment", "  data: Text"]
    assert "    train = 'a.txt'" in lines
    assert "    background: Unigram" in lines
    assert "      smoothing = 0.0" in lines
    assert "      schedule: Constant" in lines or "      schedule = Constant()" in lines


def test_the_first_difference_is_named():
    def difference(*settings):
        return configuration.first_difference(
            configuration.to_json(RECIPE), configuration.to_json(apply_settings(*settings))
        )

    assert difference() is None
    assert difference("training.batch=8") == "training.batch: 32 against 8"
    assert difference("training.seed=3", "training.batch=8") == "training.batch: 32 against 8"
    assert difference("model.head=LogLinear") == (
        "model.head.component: 'zoo.heads:Softmax' against 'zoo.heads:LogLinear'"
    )
    assert difference("vocabulary.background=Uniform").startswith("vocabulary.background: None ag")
    assert Uniform() == apply_settings("vocabulary.background=Uniform").vocabulary.background


def test_the_walk_comes_to_all_that_counts():
    @dataclasses.dataclass(frozen=True)
    class Inner:
        size: int = 3

    @dataclasses.dataclass(frozen=True)
    class Outer:
        parts: tuple = (Inner(), (Inner(5), "x"))
        count: int = 7
        cached: int = dataclasses.field(default=9, compare=False)

    outer = Outer()
    assert list(fields.values(outer)) == [
        ("parts", "parts", outer.parts),
        ("parts.0", "parts", Inner()),
        ("parts.0.size", "size", 3),
        ("parts.1", "parts", outer.parts[1]),
        ("parts.1.0", "parts", Inner(5)),
        ("parts.1.0.size", "size", 5),
        ("parts.1.1", "parts", "x"),
        ("count", "count", 7),
    ]
    assert list(fields.values(Inner)) == []  # a class is no component
