"""Morphology of a corpus that can be counted by hand."""

import dataclasses

import pytest

from zoo.errors import UserError
from zoo.priors import Morphology, SuffixGuesser
from zoo.sources.source import Corpus

# le 3, chat 2, ferme 2 in train; la 1 and ferme 1 in validation.
TRAIN = Corpus(
    "train.txt",
    [["le", "chat", "ferme"], ["le", "chat"], ["le", "ferme"]],
    [
        [("POS:DET",), ("POS:NOUN", "Gender:Masc"), ("POS:VERB",)],
        [("POS:DET",), ("POS:NOUN",)],
        [("POS:DET", "Gender:Masc"), ("POS:ADJ",)],
    ],
)
VALIDATION = Corpus(
    "validation.txt", [["la", "ferme"]], [[("POS:DET", "Gender:Fem"), ("POS:NOUN",)]]
)
CORPORA = {"train": TRAIN, "validation": VALIDATION}
WORDS = ("</s>", "la", "chat", "ferme", "le")


def test_morphology_is_the_union_over_all_tokens_of_a_word():
    features = Morphology().features(WORDS, CORPORA, {})
    assert features == [
        {"POS:NIL": 1.0},
        {"POS:DET": 1.0, "Gender:Fem": 1.0},
        {"POS:NOUN": 1.0, "Gender:Masc": 1.0},
        {"POS:VERB": 1.0, "POS:ADJ": 1.0, "POS:NOUN": 1.0},
        {"POS:DET": 1.0, "Gender:Masc": 1.0},
    ]


def test_tags_of_treebanks_take_the_place_of_the_texts(tmp_path):
    tokens = (("Le", "DET", "_"), ("zut", "INTJ", "_"), ("le", "PRON", "Gender=Masc"))
    lines = [
        "\t".join([str(number), form, "_", tag, "_", features] + ["_"] * 4)
        for number, (form, tag, features) in enumerate(tokens, 1)
    ]
    (tmp_path / "bank.conllu").write_text("\n".join(lines) + "\n\n")
    prior = Morphology(treebanks=(str(tmp_path / "bank.conllu"),))
    without = {"train": Corpus("no tags", [["le", "chat"]])}
    assert prior.features(("le", "Le", "zut", "chat"), without, {}) == [
        {"POS:DET": 1.0, "POS:PRON": 1.0, "Gender:Masc": 1.0},
        {"POS:DET": 1.0},
        {"POS:INTJ": 1.0},
        {"POS:NIL": 1.0},
    ]
    guesser = dataclasses.replace(prior, guesser=SuffixGuesser())
    assert guesser.features(("but",), without, {}) == [{"POS:INTJ": 1.0}]


def test_morphology_of_words_known_beforehand():
    entries = {"la": ("Number:Sing",), "zut": ("POS:INTJ",)}
    features = Morphology().features((*WORDS, "zut"), CORPORA, entries)
    assert features[1] == {"POS:DET": 1.0, "Gender:Fem": 1.0, "Number:Sing": 1.0}
    assert features[5] == {"POS:INTJ": 1.0}


def test_morphology_needs_tags_of_the_splits_that_it_takes():
    corpora = {"train": TRAIN, "test": Corpus("test.txt", [["le"]])}
    with pytest.raises(UserError, match=r"priors\.Morphology needs tags, and test\.txt has none"):
        Morphology().features(WORDS, corpora, {})
    features = Morphology(splits=("train",)).features(WORDS, corpora, {})
    assert features[1] == {"POS:NIL": 1.0}
    assert features[3] == {"POS:VERB": 1.0, "POS:ADJ": 1.0}
    assert features[4] == {"POS:DET": 1.0, "Gender:Masc": 1.0}


# Which kinds of tags count as morphology.
TAGGED = Corpus(
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
OF_KINDS = ("</s>", "un", "chta", "dort", "bien", "chats", "rats")


def tags(**options):
    """The tags of each word, in alphabetical order."""
    features = Morphology(**options).features(OF_KINDS, {"train": TAGGED}, {})
    assert all(value == 1.0 for word in features for value in word.values())
    return [" ".join(sorted(word)) for word in features]


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


def test_lemmas_are_not_guessed():
    word_tags = tags(guesser=SuffixGuesser(longest=2, rare=9))
    assert word_tags[-1] == "Number:Plur POS:NOUN"  # as "chats", which ends alike
    assert word_tags[0] == "POS:NIL"


# ------------------------------------------------ the guesser of suffixes, by hand

NOUN, VERB, ADVERB = ("POS:NOUN",), ("POS:VERB",), ("POS:ADV",)
TRAINING_TAGS = {"maison": NOUN, "raison": NOUN, "parlons": VERB, "mangeons": VERB, "bien": ADVERB}


def table(**options):
    return SuffixGuesser(**options).train(TRAINING_TAGS, {})


def test_the_distribution_is_that_of_the_equation():
    distribution = table(longest=2, smoothing=0.5).distribution("avion")
    # Of no letters: 2 nouns, 2 verbs, 1 adverb. Of "n": 2 nouns, 1 adverb. Of "on": 2 nouns.
    shares = {NOUN: 2 / 5, VERB: 2 / 5, ADVERB: 1 / 5}
    for ending in ({NOUN: 2 / 3, ADVERB: 1 / 3}, {NOUN: 1.0}):
        shares = {tags: (ending.get(tags, 0) + 0.5 * p) / 1.5 for tags, p in shares.items()}
    assert distribution == pytest.approx(shares)
    assert sum(distribution.values()) == pytest.approx(1)


def test_the_longest_known_ending_decides():
    assert table().guess("saison") == NOUN
    assert table().guess("chantons") == VERB
    assert table().guess("combien") == ADVERB
    # Nothing is known of "z": nouns and verbs are as frequent, and nouns come first by name.
    assert table().guess("quiz") == NOUN
    assert table().guess("") == NOUN


def test_digits_are_all_alike():
    tags = {"1987": ("NumType:Year",), "12": ("NumType:Card",)}
    trained = SuffixGuesser().train(tags, {})
    assert trained.guess("2016") == ("NumType:Year",)
    assert trained.guess("37") == ("NumType:Card",)


def test_a_word_is_rare_up_to_the_given_count():
    verb = "Mood:Ind", "POS:VERB"
    tags = {"sera": ("POS:AUX",), "opéra": NOUN, "caméra": NOUN, "tira": verb}
    counts = {"sera": 4, "opéra": 3, "caméra": 2}  # and no token shows "tira"
    trained = SuffixGuesser(rare=3).train(tags, counts)
    assert dict(trained.endings["ra"]) == {NOUN: 2, verb: 1}
    assert dict(SuffixGuesser(rare=2).train(tags, counts).endings[""]) == {NOUN: 1, verb: 1}
    assert trained.distribution("fera")[NOUN] == pytest.approx(2 / 3)
    # Frequent words teach only where all words are frequent.
    assert SuffixGuesser(rare=3).train({"sera": ("POS:AUX",)}, counts).guess("fera") == ("POS:AUX",)


def test_morphology_guesses_words_that_no_token_shows():
    prior = Morphology(splits=("train",), guesser=SuffixGuesser())
    features = prior.features((*WORDS, "<unk>", "le", "ta"), CORPORA, {})
    assert features[0] == features[5] == {"POS:NIL": 1.0}
    # In train, le, chat and ferme have tags; "la" and "ta" share no ending with them: the first
    # tag set by name of three that are as frequent.
    assert features[1] == features[7] == {"Gender:Masc": 1.0, "POS:DET": 1.0}
    assert features[6] == features[4] == {"POS:DET": 1.0, "Gender:Masc": 1.0}
    (rat,) = prior.features(("rat",), CORPORA, {})
    assert rat == {"POS:NOUN": 1.0, "Gender:Masc": 1.0}
