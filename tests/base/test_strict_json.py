"""JSON of the zoo's own: what is read has finite numbers, text, few levels and no key twice."""

import dataclasses
import math
from typing import Any

import pytest

from zoo.base import strict_json
from zoo.errors import UserError

WRONG = {
    "cut short": ('{"a": 1', "Expecting"),
    "nan": ("[NaN]", "NaN, which is not a finite number"),
    "infinity": ("[-Infinity]", "-Infinity, which is not a finite number"),
    "too large a float": ("[1e400]", "1e400, which is not a finite number"),
    "400 digits": ("[" + "9" * 400 + "]", "a number of 400 digits"),
    "6000 digits": ("-" + "9" * 6000, "a number of 6001 digits"),
    "a key twice": ('{"a": {"b": 1, "b": 1}}', "'b' twice"),
    "half a character": ('{"a": "\\udfff"}', "half a character"),
    "half a character in a key": ('{"\\ud800": 1}', "half a character"),
    "101 levels": ("[" * 101 + "]" * 101, "more than 100 levels"),
    "100,000 levels": ("[" * 100_000, "more than 100 levels"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_json_of_ours_never_has_is_refused(name):
    text, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        strict_json.loads(text)
    assert strict_json.object_or_none(text) is None


def test_what_it_has_is_read():
    text = '{"a": [1, -2.5, true, null, "\\ud83d\\ude00", "\\\\ud800"], "b": {}}'
    assert strict_json.loads(text) == {"a": [1, -2.5, True, None, "\U0001f600", "\\ud800"], "b": {}}
    assert strict_json.loads("[" * 100 + "]" * 100)
    assert strict_json.loads("[" + "9" * 300 + "]") == [10**300 - 1]
    assert strict_json.loads("[Infinity]", finite=False) == [math.inf]


def test_what_is_not_finite_is_written_as_text_that_is_read_again():
    text = strict_json.dumps({"a": math.inf, "b": [math.nan, 1.5]})
    assert text == '{"a": "inf", "b": ["nan", 1.5]}'
    parsed = strict_json.parse({"a": float, "b": list[float]}, strict_json.loads(text))
    assert parsed["a"] == math.inf and math.isnan(parsed["b"][0]) and parsed["b"][1] == 1.5


@dataclasses.dataclass(frozen=True)
class Case:
    """A dataclass that checks a value."""

    right: int

    def __post_init__(self):
        strict_json.check_least(self.right, 0, "right")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figures:
    """A dataclass of all type hints."""

    count: int
    loss: float
    name: str | None
    texts: tuple[Case, ...]
    settings: dict
    anything: Any
    source: Case | None = None
    groups: dict[str, dict[str, Case]] = dataclasses.field(default_factory=dict)
    interval: tuple[float, float] | None = None
    folder: str | None = dataclasses.field(default=None, compare=False)


RIGHT = {
    **{"count": 3, "loss": "inf", "name": None, "texts": [{"right": 2}], "settings": {"x": 1}},
    **{"anything": [None], "source": None, "groups": {"a": {"b": {"right": 1}}}},
    **{"interval": [1, 2.5], "more": [], "folder": 3},
}
WRONG_VALUES = {
    "count": (True, 2.0, 2**63, "3", None),
    "loss": ("low", False, [1.0], None),
    "name": (3, []),
    "texts": ({}, [3], [{"right": "1"}], [{"right": 1}, {"right": -1}], None),
    "settings": ([], "x"),
    "source": ({}, {"right": 3.0}, {"right": -1}, [], "x"),
    "groups": ([], {"a": []}, {"a": {"b": {}}}, {"a": {"b": {"right": -2}}}, None),
    "interval": (["low", 1], {}),
}


def test_a_dataclass_is_read_by_its_type_hints_and_written():
    value = strict_json.parse(Figures, RIGHT)
    assert value == Figures(
        count=3,
        loss=math.inf,
        name=None,
        texts=(Case(2),),
        settings={"x": 1},
        anything=[None],
        groups={"a": {"b": Case(1)}},
        interval=(1.0, 2.5),
    )
    assert value.folder is None  # does not count in comparisons
    unwritten = {"source", "more", "folder"}
    assert strict_json.to_json(value) == {n: v for n, v in RIGHT.items() if n not in unwritten}
    required = {
        name: RIGHT[name] for name in ("count", "loss", "name", "texts", "settings", "anything")
    }
    small = strict_json.parse(Figures, required)
    assert (small.source, small.groups, small.interval) == (None, {}, None)
    assert strict_json.to_json(small) == required


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_wrong_value_is_named(name):
    for value in WRONG_VALUES[name]:
        with pytest.raises(ValueError, match=rf"^{name}[.0-9a-z]* is .* should be$"):
            strict_json.parse(Figures, {**RIGHT, name: value})


def test_a_missing_field_is_named():
    for name, problem in (("count", "count is missing"), ("name", "it has no name")):
        with pytest.raises(ValueError, match=f"^{problem}"):
            strict_json.parse(Figures, {key: RIGHT[key] for key in RIGHT if key != name})
    with pytest.raises(ValueError, match=r"^interval has 1 items, not 2$"):
        strict_json.parse(Figures, {**RIGHT, "interval": [1]})


def test_an_object_is_checked_by_names():
    hints = {"count": int, "note": str | None, "rows": list[dict[str, int]]}
    value = {"count": 1, "rows": [{"a": 2}], "more": 3}
    assert strict_json.parse(hints, value) == value
    with pytest.raises(ValueError, match=r"^rows\.0\.a is true, where a whole number should be$"):
        strict_json.parse(hints, {"count": 1, "rows": [{"a": True}]})


def test_a_file_is_named(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(UserError, match=r"a.json cannot be read .No such file"):
        strict_json.read(path)
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(UserError, match=r"a.json is not the JSON that is expected \('utf-8'"):
        strict_json.read(path)
    path.write_text('{"a": 3}')
    assert strict_json.read(path, {"a": int}) == {"a": 3}
    with pytest.raises(UserError, match="a is 3, where text should be"):
        strict_json.read(path, {"a": str})
