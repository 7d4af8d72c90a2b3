"""Tokens keep their places, and are read as a run reads them."""

from zoo.sources.source import Corpus
from zoo.sources.tokens import Reading, TokenizedText

FUSED = {"du": ("de", "le"), "Du": ("De", "le")}


def spans(sentence):
    return [(token.text, token.start, token.end) for token in sentence.tokens]


def test_case_and_words_of_the_lexicon_decide_what_is_a_fused_form():
    reading = Reading(fused="split", parts=FUSED)
    assert reading.words("Du") == ("De", "le")
    assert reading.words("DU") == ("de", "le")
    capitalised = Reading(fused="split", parts={"des": ("de", "les")}, vocabulary={"Des": 3})
    assert capitalised.words("Des") == ("Des",)
    assert capitalised.words("des") == ("de", "les")
    lower = Reading(lower_case=True, fused="split", parts={"du": ("de", "le")})
    assert lower.words("DU") == ("de", "le") and lower.words("LE") == ("le",)
    assert lower.treebank_words("Du", ["De", "le"]) == ("de", "le")


def test_a_corpus_is_given_as_its_words():
    text = TokenizedText.from_corpus(Corpus("c", [["du", "lac"], ["a"]], prefixes=[1, 0]))
    assert text.corpus.prefixes == [1, 0]
    assert [spans(sentence) for sentence in text.sentences] == [
        [("du", 0, 2), ("lac", 3, 6)],
        [("a", 0, 1)],
    ]
    joint = TokenizedText.from_corpus(Corpus("c", [["d", "u"]]), "").sentences[0]
    assert (spans(joint), joint.length) == ([("d", 0, 1), ("u", 1, 2)], 2)
