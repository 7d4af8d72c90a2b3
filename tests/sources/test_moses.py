"""Words of untokenised text by Moses's rules; the rules themselves are tested by sacremoses."""

import pytest

from zoo.errors import UserError
from zoo.sources import moses

LINES = {
    "en": "Mr. Smith's dog isn't 3.5 m long... \"Really?\" (U.S.)",
    "fr": "L'homme qu’il a vu est «important», dit-on.",
    "de": "Das war's, z.B. am Dom: „gut“ – oder?",
}


@pytest.mark.parametrize("language", LINES)
def test_tokens_are_pieces_of_their_line(language):
    line = LINES[language]
    spans = moses.spans(line, language)
    assert "".join(line[start:end] for start, end in spans) == "".join(line.split())
    assert all(0 <= start < end <= len(line) for start, end in spans)
    ends = [0, *(end for _, end in spans)]
    assert all(line[end:start].strip() == "" for end, (start, _) in zip(ends, spans, strict=False))
    assert moses.words(line, language) == [line[start:end] for start, end in spans]


def test_punctuation_is_separated_and_abbreviations_are_not():
    words = ["Mr.", "Smith", "'s", "dog", "isn", "'t", "3.5", "m", "long", "...", '"', "Really"]
    assert moses.words(LINES["en"], "en") == [*words, "?", '"', "(", "U.S.", ")"]


def test_a_typographic_apostrophe_is_an_apostrophe():
    assert moses.words("l’homme", "fr") == ["l’", "homme"]
    assert moses.words("don’t", "en") == ["don", "’t"]
    assert moses.text(["l’", "homme", "dit", "'", "non", "'", "."], "fr") == "l’homme dit 'non'."


def test_combining_marks_stay_with_their_letters():
    assert moses.words("re\u0301sume\u0301.", "fr") == ["re\u0301sume\u0301", "."]
    assert moses.words("हिन्दी है।", "hi") == ["हिन्दी", "है", "।"]


def test_control_characters_are_not_in_tokens():
    assert moses.words("a\x02 b\tc", "en") == ["a", "b", "c"]


def test_a_word_of_the_tokenizer_itself_splits_at_blanks():
    assert moses.words("DOTMULTI, x", "en") in (["DOTMULTI,", "x"], ["DOTMULTI", ",", "x"])


def test_without_a_language_words_are_between_blanks():
    assert moses.spans(" a  bc. ", "") == [(1, 2), (4, 7)]
    assert moses.words(" a  bc. ", "") == ["a", "bc."]
    assert moses.text(["a", "bc", "."], "") == "a bc ."


def test_text_is_written_as_it_was():
    for text in ("It's late (really), isn't it?", "He said: no."):
        assert moses.text(moses.words(text, "en"), "en") == text
    assert moses.text([], "en") == ""
    # Moses writes @-@ as a hyphen: no letter is lost to it.
    assert moses.text(["well", "@-@", "known", "fact"], "en") == "well @-@ known fact"


def test_escapes_of_moses_are_read_by_people_as_they_were_written():
    assert moses.text(["d&apos;", "une", "&#91;", "R&amp;D", "&#93;"], "") == "d' une [ R&D ]"
    assert moses.text(["the", "man", "&apos;s", "&quot;", "dog", "&quot;"], "en") == (
        'the man\'s "dog"'
    )
    # Moses escapes once, and nothing else: &amp;lt; was &lt;, and &eacute; is no escape of it.
    assert moses.unescaped("&amp;lt;") == "&lt;" and moses.unescaped("&eacute;&") == "&eacute;&"


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("Mr. Smith came. He left!", ["Mr. Smith came.", "He left!"]),
        ("In the U.S. Army. So.", ["In the U.S. Army.", "So."]),
        ("See No. 5 now. No. That.", ["See No. 5 now.", "No.", "That."]),
        ("J. S. Bach. It ends... 3 men", ["J. S. Bach.", "It ends...", "3 men"]),
        ('"Yes." "No," he said? no. 「あ」', ['"Yes."', '"No," he said? no. 「あ」']),
        ("他来了。他走了！", ["他来了。", "他走了！"]),
        ("no end", ["no end"]),
        ("  ", []),
    ],
)
def test_sentences(paragraph, expected):
    assert moses.sentences(paragraph, "en") == expected


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("a man sleeps . a dog runs , too . ", ["a man sleeps .", "a dog runs , too ."]),
        ("mr. smith came . so did he !", ["mr. smith came .", "so did he !"]),
        ("Really ? he asked . Yes .", ["Really ? he asked .", "Yes ."]),
        ("Mr. Smith came. He left!", ["Mr. Smith came.", "He left!"]),
    ],
)
def test_sentences_of_tokenised_text(paragraph, expected):
    """Without capitals, marks that stand alone end sentences."""
    assert moses.sentences(paragraph, "") == expected


def test_a_language_without_rules():
    with pytest.raises(UserError, match=r"^data\.language is 'xx', for which Moses has no rules"):
        moses.check("xx", "data.language")


def test_marks_that_stand_alone_end_sentences_of_tokenised_text_without_capitals():
    paragraph = "a man rides . two dogs play ."
    assert moses.sentences(paragraph, "en") == [paragraph]  # as Moses's script does
    assert moses.sentences(paragraph, "") == ["a man rides .", "two dogs play ."]
    assert moses.sentence_ends(paragraph, "en") == moses.sentence_ends(paragraph, "") == [13, 29]
    assert moses.sentence_ends("A man rides . two dogs play .", "en") == [29]
