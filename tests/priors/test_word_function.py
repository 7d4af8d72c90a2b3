"""A user's own function as a prior."""

import pytest

from zoo import recipes
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
    assert recipes.from_json(recipes.to_json(prior)) == prior


@pytest.mark.parametrize("name", ["no_module:f", "math:no_function", "math", "", ":", "math:pi"])
def test_a_function_that_there_is_not(name):
    with pytest.raises(UserError, match=r"priors\.WordFunction"):
        WordFunction(name).features(("a",), {}, {})


@pytest.mark.parametrize("word", ["nan", "none", "key", "text"])
def test_what_a_function_must_not_give(word):
    with pytest.raises(UserError, match=rf"gives .* for '{word}'"):
        features("bad", word)


def two(word, other):
    return [word + other]


def test_a_function_that_fails():
    with pytest.raises(UserError, match=r":two fails for 'a' \(TypeError: .*missing 1 required"):
        features("two", "a")
