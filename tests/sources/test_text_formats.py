"""Plain text and treebanks to be judged: what each file is, and where its tokens stand."""

import pytest

from zoo.errors import UserError
from zoo.sources.tokens import Reading

FUSED = {"du": ("de", "le"), "Du": ("De", "le")}


TREEBANK = """# sent_id = s-1
# text = L'eau du "lac".
1\tL'\tle\tDET\t_\t_\t_\t_\t_\tSpaceAfter=No
2\teau\teau\tNOUN\t_\t_\t_\t_\t_\t_
3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\t_\t_\t_\t_\t_\t_
4\tle\tle\tDET\t_\t_\t_\t_\t_\t_
5\t"\t"\tPUNCT\t_\t_\t_\t_\t_\tSpaceAfter=No
6\tlac\tlac\tNOUN\t_\t_\t_\t_\t_\tSpaceAfter=No
7\t"\t"\tPUNCT\t_\t_\t_\t_\t_\tSpaceAfter=No
8\t.\t.\tPUNCT\t_\t_\t_\t_\t_\t_

1\tNA\tNA\tX\t_\t_\t_\t_\t_\tSpaceAfter=No
2\t#\t#\tX\t_\t_\t_\t_\t_\t_
3\t10 000\t_\tNUM\t_\t_\t_\t_\t_\t_

"""


def spans(sentence):
    return [(token.text, token.start, token.end) for token in sentence.tokens]


def test_tokens_of_plain_text_keep_their_places_in_the_line(read):
    # A mark of the order of bytes, CRLF, a blank line, and separators that end no line.
    content = '\ufeffLe  "chat" NA #1\r\n\r\n\té\u2028𝄞x\x85\' \n'
    text = read(content, blank="kept")
    assert [sentence.line for sentence in text.sentences] == [1, 2, 3]
    assert [sentence.length for sentence in text.sentences] == [16, 0, 8]
    first, blank, last = text.sentences
    assert spans(first) == [("Le", 0, 2), ('"chat"', 4, 10), ("NA", 11, 13), ("#1", 14, 16)]
    assert blank.tokens == [] and {sentence.id for sentence in text.sentences} == {None}
    assert spans(last) == [("é", 1, 2), ("𝄞x", 3, 5), ("'", 6, 7)]
    words = [["Le", '"chat"', "NA", "#1"], ["é", "𝄞x", "'"]]
    assert read(content).corpus.sentences == words
    assert text.corpus.sentences == [words[0], [], words[1]]
    # The same words as Python's own split, whatever counts as a blank.
    blanks = "".join(map(chr, range(1, 0x3100)))
    assert read(f"a{blanks}b").sentences[-1].words == f"a{blanks}b".split("\n")[-1].split()


@pytest.mark.parametrize(
    ("fused", "words"),
    [("split", ("de", "le")), ("kept", ("du", "de", "le")), ("surface", ("du",)), (None, ("du",))],
)
@pytest.mark.parametrize("text", ["L' eau du lac", TREEBANK])
def test_fused_forms_are_read_as_in_training(read, text, fused, words):
    first = read(text, reading=Reading(fused=fused, parts=FUSED)).sentences[0]
    assert [token.words for token in first.tokens[:3]] == [("L'",), ("eau",), words]
    assert first.tokens[2].text == "du"


@pytest.mark.parametrize("name", ["bank.conllu", "bank", "bank.txt"])
def test_tokens_of_a_treebank_stand_where_its_text_has_them(read, name):
    first, second = read(TREEBANK, name, Reading(fused="split")).sentences
    assert (first.line, first.id, first.length) == (3, "s-1", 15)
    assert spans(first) == [
        ("L'", 0, 2),
        ("eau", 2, 5),
        ("du", 6, 8),
        ('"', 9, 10),
        ("lac", 10, 13),
        ('"', 13, 14),
        (".", 14, 15),
    ]
    assert first.words == ["L'", "eau", "de", "le", '"', "lac", '"', "."]
    # Without a text, or with one of other words, they stand side by side.
    assert (second.line, second.id) == (13, "2")
    assert spans(second) == [("NA", 0, 2), ("#", 2, 3), ("10 000", 4, 10)]
    sentence = read(TREEBANK.replace("# text = L'", "# text = L '"), "o.conllu").sentences[0]
    assert spans(sentence) == spans(first)
    sentence = read(TREEBANK.replace("text = L'", "text = Or l'"), "o.conllu").sentences[0]
    assert spans(sentence)[:3] == [("L'", 0, 2), ("eau", 2, 5), ("du", 6, 8)]


def test_a_range_takes_sentences_that_have_words(read):
    assert read(TREEBANK, "b.conllu", part="[1:]").corpus.sentences == [["NA", "#", "10 000"]]
    assert read("a\n\nb\nc\n", part="[1:2]").corpus.sentences == [["b"]]
    with pytest.raises(UserError, match="none of them in the range"):
        read("a\n", part="[1:]")


def test_tokens_of_a_treebank_have_their_ids(read):
    text = read(TREEBANK, "b.conllu")
    assert (text.columns, text.token_columns) == ((), ("token",))
    ids = [[token.extra for token in sentence.tokens] for sentence in text.sentences]
    assert ids[0] == [(name,) for name in ("1", "2", "3-4", "5", "6", "7", "8")]
    assert ids[1] == [("1",), ("2",), ("3",)]


def test_a_text_in_conllu_plus_is_known_by_its_suffix(read):
    columns = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC PARSEME:MWE"
    row = "1\tle\tle" + "\t_" * 8
    with pytest.raises(UserError, match=r"line 1: global.columns is of CoNLL-U Plus: write"):
        read(f"# global.columns = {columns}\n{row}\n\n", "a.conllup")
