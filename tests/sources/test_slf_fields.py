"""Fields of a line of HTK's standard lattice format: names, quotation marks and escapes."""

import pytest

from zoo.errors import UserError
from zoo.rescoring import lattices


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("", {}),
        (" \t", {}),
        ("J=1 S=0 E=2 W=le a=-2.5", {"J": "1", "S": "0", "E": "2", "W": "le", "a": "-2.5"}),
        ("START=0 acoustic=-1 NODES=3", {"S": "0", "a": "-1", "N": "3"}),
        ("W= v=1", {"W": "", "v": "1"}),
        ('W="New York" v=1', {"W": "New York", "v": "1"}),
        (r'W="a \"b\" c"', {"W": 'a "b" c'}),
        ("W='a b'", {"W": "a b"}),
        ("W='cause v=1", {"W": "'cause", "v": "1"}),
        (r"W=\'tis", {"W": "'tis"}),
        (r"W=New\ York", {"W": "New York"}),
        (r"W=\303\251t\303\251", {"W": "été"}),
        ("W=don't x==", {"W": "don't", "x": "="}),
    ],
)
def test_fields(line, fields):
    assert lattices.fields_of(line, "a.slf, line 1") == fields


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("J=1 word", "'word' is not a field NAME=VALUE of SLF"),
        ("=1", "'=1' is not a field"),
        ('W="New York', "the value of 'W=\"New' has a quotation mark only at its start"),
        ('W="a"b', "has a quotation mark only at its start"),
        ("S=1 START=1", "the field START= comes twice: keep one"),
        (r"W=\377", "has escapes that are not UTF-8: correct them"),
    ],
)
def test_what_is_no_field_is_refused(line, message):
    with pytest.raises(UserError, match=r"^a\.slf, line 1: ") as error:
        lattices.fields_of(line, "a.slf, line 1")
    assert message in str(error.value)


def test_a_long_line_is_read_once():
    """A reader that copied the rest of this line for each field would copy 200 GB."""
    line = " ".join(f"f{number}={number}" for number in range(200_000))
    assert len(lattices.fields_of(line, "a.slf, line 1")) == 200_000
