"""The suffix guesser by hand, and how Morphology uses it."""

import pytest

from tests.priors.test_priors import CORPORA, WORDS
from zoo import configuration
from zoo.priors import Morphology, SuffixGuesser

NOUN, VERB, ADVERB = ("POS:NOUN",), ("POS:VERB",), ("POS:ADV",)
TAGS = {"maison": NOUN, "raison": NOUN, "parlons": VERB, "mangeons": VERB, "bien": ADVERB}


def table(**options):
    return SuffixGuesser(**options).train(TAGS, {})


def test_the_distribution_is_that_of_the_equation():
    found = table(longest=2, smoothing=0.5).distribution("avion")
    # Of no letters: 2 nouns, 2 verbs, 1 adverb. Of "n": 2 nouns, 1 adverb. Of "on": 2 nouns.
    shares = {NOUN: 2 / 5, VERB: 2 / 5, ADVERB: 1 / 5}
    for ending in ({NOUN: 2 / 3, ADVERB: 1 / 3}, {NOUN: 1.0}):
        shares = {tags: (ending.get(tags, 0) + 0.5 * p) / 1.5 for tags, p in shares.items()}
    assert found == pytest.approx(shares)
    assert sum(found.values()) == pytest.approx(1)


def test_the_longest_known_ending_decides():
    assert table().guess("saison") == NOUN
    assert table().guess("chantons") == VERB
    assert table().guess("combien") == ADVERB
    # Nothing is known of "z": nouns and verbs are as frequent, and nouns come first by name.
    assert table().guess("quiz") == NOUN
    assert table().guess("") == NOUN


def test_digits_are_all_alike():
    known = {"1987": ("NumType:Year",), "12": ("NumType:Card",)}
    trained = SuffixGuesser().train(known, {})
    assert trained.guess("2016") == ("NumType:Year",)
    assert trained.guess("37") == ("NumType:Card",)


def test_frequent_words_teach_nothing_unless_all_are():
    tags = {"sera": ("POS:AUX",), "opéra": NOUN}
    counts = {"sera": 99, "opéra": 1}
    assert SuffixGuesser(rare=10).train(tags, counts).guess("caméra") == NOUN
    assert SuffixGuesser(rare=10).train({"sera": ("POS:AUX",)}, counts).guess("fera") == (
        "POS:AUX",
    )


def test_a_word_is_rare_up_to_the_given_count():
    verb = "Mood:Ind", "POS:VERB"
    tags = {"sera": ("POS:AUX",), "opéra": NOUN, "caméra": NOUN, "tira": verb}
    counts = {"sera": 4, "opéra": 3, "caméra": 2}  # and no token shows "tira"
    trained = SuffixGuesser(rare=3).train(tags, counts)
    assert dict(trained.endings["ra"]) == {NOUN: 2, verb: 1}
    assert dict(SuffixGuesser(rare=2).train(tags, counts).endings[""]) == {NOUN: 1, verb: 1}
    assert trained.distribution("fera")[NOUN] == pytest.approx(2 / 3)


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


def test_the_guesser_is_a_part_of_the_recipe():
    prior = configuration.apply_settings(
        Morphology(), ["guesser=SuffixGuesser", "guesser.longest=3"]
    )
    assert prior == Morphology(guesser=SuffixGuesser(longest=3))
    assert configuration.from_json(configuration.to_json(prior)) == prior
