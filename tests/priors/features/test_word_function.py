"""A user's own function as a prior."""

import pytest

from zoo import configuration
from zoo.errors import UserError
from zoo.priors import WordFunction

NO_FUNCTION = 3


def capitals(word):
    return {"Own:capital": 1} if word[:1].isupper() else {}


def names(word):
    return [f"Own:{len(word)}"]


def one_name(word):
    return "Own:all"


def bad(word):
    return {"nan": {"Own:x": float("nan")}, "none": None, "key": {3: 1.0}, "text": {"Own:x": "a"}}[
        word
    ]


def features(name, *words):
    return WordFunction(f"{__name__}:{name}").features(words, {}, {})


def test_values_or_names():
    assert features("capitals", "Lyon", "lyon") == [{"Own:capital": 1.0}, {}]
    assert features("names", "Lyon", "a") == [{"Own:4": 1.0}, {"Own:1": 1.0}]
    assert features("one_name", "Lyon") == [{"Own:all": 1.0}]


def test_a_recipe_with_it_can_be_saved():
    prior = WordFunction(f"{__name__}:capitals")
    assert configuration.from_json(configuration.to_json(prior)) == prior


@pytest.mark.parametrize("name", ["no_module:f", "math:no_function", "math", "", ":", "math:pi"])
def test_a_function_that_there_is_not(name):
    with pytest.raises(UserError, match=r"priors\.WordFunction"):
        WordFunction(name).features(("a",), {}, {})


@pytest.mark.parametrize("word", ["nan", "none", "key", "text"])
def test_what_a_function_must_not_give(word):
    with pytest.raises(UserError, match=rf"gives .* for '{word}'"):
        features("bad", word)


def fails(word):
    return {}["mine"]


def fails_late(word):
    yield word
    raise ValueError("mine")


@pytest.mark.parametrize(("name", "kind"), [("fails", KeyError), ("fails_late", ValueError)])
def test_an_error_of_the_function_is_let_through_with_its_word(name, kind):
    note = rf"{__name__}:{name} was given the word 'a'\."
    with pytest.raises(kind, match=rf"^'?mine'?\n{note}$"):
        features(name, "a")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("{}['mine']", KeyError, "^'mine'$"),
        ("import no_such_package", ModuleNotFoundError, "^No module named 'no_such_package'$"),
        ("from math import mine", ImportError, "^cannot import name 'mine'"),
    ],
)
def test_an_error_of_its_module_is_let_through(text, kind, message, tmp_path, monkeypatch):
    (tmp_path / "failing_features.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(kind, match=message):
        WordFunction("failing_features:f").features(("a",), {}, {})
