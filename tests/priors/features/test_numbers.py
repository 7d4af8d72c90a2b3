"""What the spelling of a number says."""

import pytest

from zoo.errors import UserError
from zoo.priors import Numbers


def features(word, **options):
    (found,) = Numbers(**options).features((word,), {}, {})
    return {name.removeprefix("Number:"): value for name, value in found.items()}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("37", {"any": 1, "digits": 1, "length": 0.2, "small": 0.63}),
        ("0", {"any": 1, "digits": 1, "length": 0.1, "small": 1.0}),
        ("100", {"any": 1, "digits": 1, "length": 0.3}),
        ("1999", {"any": 1, "digits": 1, "length": 0.4, "year": 1}),
        ("1,999", {"any": 1, "digits": 1, "length": 0.4}),
        ("2101", {"any": 1, "digits": 1, "length": 0.4}),
        ("-12.5", {"any": 1, "digits": 1, "length": 0.3}),
        ("12345678901234", {"any": 1, "digits": 1, "length": 1.0}),
        ("Forty-two", {"any": 1, "spelled": 1}),
        ("million", {"any": 1, "spelled": 1}),
        ("0" * 5000 + "7", {"any": 1, "digits": 1, "length": 1.0, "small": 0.93}),
        ("7" * 5000, {"any": 1, "digits": 1, "length": 1.0}),
        ("Grenoble", {}),
        ("B2", {}),
        ("-", {}),
        ("", {}),
        ("1,2,", {}),
    ],
)
def test_features_of_a_word(word, expected):
    assert features(word) == pytest.approx(expected)


def test_the_language_and_the_limits_can_be_chosen():
    assert features("vingt-deux", language="fr") == {"any": 1, "spelled": 1}
    assert features("twenty", language="") == {}
    assert "year" in features("0800", first_year=700, last_year=900)
    assert "small" not in features("0", small_below=0)


@pytest.mark.parametrize("options", [{"language": "la"}, {"first_year": 9, "last_year": 8}])
def test_bad_options(options):
    with pytest.raises(UserError, match=r"priors\.Numbers"):
        Numbers(**options)
