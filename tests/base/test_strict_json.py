"""JSON of the zoo's own: what is read has finite numbers, text, few levels and no key twice."""

import math

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
    strict_json.check(strict_json.loads(text), {"a": float, "b": [float]})


SHAPE = {
    **{"count": int, "loss": float, "name": str | None, "texts": [{"by": str}], "rest": dict},
    **{"source": ({"path": str}, type(None)), "groups": {...: {"right": int}}},
}
RIGHT = {
    **{"count": 3, "loss": "nan", "texts": [{"by": "a"}], "rest": {"x": 1}, "more": []},
    **{"source": None, "groups": {"verb": {"right": 1}}},
}
VALID = {
    "count": (True, 2.0, 2**63, "3", None),
    "loss": ("low", False, [1.0], None),
    "name": (3, []),
    "texts": ({}, [3], [{"by": 1}], None),
    "rest": ([], "x"),
    "source": ({}, {"path": 3}, [], "x"),
    "groups": ([], {"verb": {}}, {"noun": {"right": 2}, "verb": 3}),
}


@pytest.mark.parametrize("name", VALID)
def test_a_value_of_another_type_is_named(name):
    strict_json.check(RIGHT, SHAPE)
    for value in VALID[name]:
        with pytest.raises(ValueError, match=rf"^{name}[.0-9a-z]* is .* should be$"):
            strict_json.check({**RIGHT, name: value}, SHAPE)


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
