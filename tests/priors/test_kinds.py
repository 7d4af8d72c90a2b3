"""Which kinds of tags count as morphology."""

import logging

import pytest

from zoo.errors import UserError
from zoo.priors import Morphology, SuffixGuesser
from zoo.sources.source import Corpus

TRAIN = Corpus(
    "train.conllu",
    [["un", "chta", "dort", "bien"], ["chats"]],
    [
        [
            ("POS:DET", "Gender:Masc", "Lemma:un"),
            ("POS:NOUN", "Gender:Masc", "Typo:Yes", "Lemma:chat"),
            ("POS:VERB", "XPOS:V", "Lemma:dormir"),
            ("ExtPos:ADV", "Lemma:bien"),
        ],
        [("POS:NOUN", "Number:Plur", "Lemma:chat")],
    ],
)
WORDS = ("</s>", "un", "chta", "dort", "bien", "chats", "rats")


def tags(**options):
    """The tags of each word, in alphabetical order."""
    found = Morphology(**options).features(WORDS, {"train": TRAIN}, {})
    assert all(value == 1.0 for word in found for value in word.values())
    return [" ".join(sorted(word)) for word in found]


def test_misspellings_are_no_morphology():
    assert tags() == [
        "POS:NIL",
        "Gender:Masc Lemma:un POS:DET",
        "Gender:Masc Lemma:chat POS:NOUN",
        "Lemma:dormir POS:VERB XPOS:V",
        "Lemma:bien",
        "Lemma:chat Number:Plur POS:NOUN",
        "POS:NIL",
    ]


def test_all_kinds():
    assert tags(without=())[2] == "Gender:Masc Lemma:chat POS:NOUN Typo:Yes"
    assert tags(without=())[4] == "ExtPos:ADV Lemma:bien"


def test_kinds_that_are_named():
    # A word of which nothing counts has no feature, and is none that no token shows.
    assert tags(kinds=("Gender", "Number")) == [
        *("POS:NIL", "Gender:Masc", "Gender:Masc", "", "", "Number:Plur", "POS:NIL")
    ]
    assert tags(kinds=("Gender", "Lemma"), without=("Lemma",))[1:3] == ["Gender:Masc"] * 2
    assert tags(kinds=("Typo",), without=())[2] == "Typo:Yes"


def test_a_kind_that_no_tag_is_of():
    with pytest.raises(UserError, match=r"of the kind 'Case', and the texts have 'ExtPos', 'Gen"):
        tags(kinds=("POS", "Case"))


def test_which_kinds_count_is_logged(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("zoo"), "propagate", True)
    with caplog.at_level(logging.INFO, "zoo"):
        tags(without=("Typo", "Lemma", "Mood"))
    kept = "tags of the kinds ExtPos, Gender, Number, POS, XPOS are kept, and tags of Lemma, Typo"
    assert f"{kept} are left out" in caplog.text


def test_lemmas_are_not_guessed():
    found = tags(guesser=SuffixGuesser(longest=2, rare=9))
    assert found[-1] == "Number:Plur POS:NOUN"  # as "chats", which ends alike
    assert found[0] == "POS:NIL"
