"""Treebanks, by hand."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from conllu import parser

from zoo.data import Conllu, Corpus, Vocabulary
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors import Morphology
from zoo.sources.conllu import pairs

BANK = """# sent_id = 1
# text = Il parle du chat.
1\tIl\til\tPRON\t_\tNumber=Sing|PronType=Int,Prs\t2\tnsubj\t_\t_
2\tparle\tparler\tVERB\t_\t_\t0\troot\t_\t_
3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\t_\t_\t5\tcase\t_\t_
4\tle\tle\tDET\t_\tGender=Masc\t5\tdet\t_\t_
5\tchat\tchat\tNOUN\t_\tGender=Masc\t2\tobl\t_\tSpaceAfter=No
5.1\tparle\tparler\tVERB\t_\t_\t_\t_\t_\t_

1\tOui\toui\tINTJ\t_\t_\t0\troot\t_\t_
"""
FEATURES = {
    "Il": ("POS:PRON", "Number:Sing", "PronType:Int", "PronType:Prs"),
    "parle": ("POS:VERB",),
    "du": ("POS:_",),
    "de": ("POS:ADP",),
    "le": ("POS:DET", "Gender:Masc"),
    "chat": ("POS:NOUN", "Gender:Masc"),
    "Oui": ("POS:INTJ",),
}

DU = ("POS:ADP", "POS:DET", "Gender:Masc")  # of "de" and of "le"


def read(path, **options):
    return Conllu(train=str(path), validation="", **options).read("train")


@pytest.fixture
def bank(tmp_path):
    (tmp_path / "bank.conllu").write_text(BANK, encoding="utf-8")
    return tmp_path / "bank.conllu"


@pytest.mark.parametrize(
    ("fused", "first"),
    [
        ("split", ["Il", "parle", "de", "le", "chat"]),
        ("surface", ["Il", "parle", "du", "chat"]),
        ("kept", ["Il", "parle", "du", "de", "le", "chat"]),
    ],
)
def test_words_and_features(bank, fused, first):
    corpus = read(bank, fused=fused)
    assert corpus.sentences == [first, ["Oui"]]
    features = FEATURES | {"du": DU} if fused == "surface" else FEATURES
    assert corpus.features == [[features[word] for word in s] for s in corpus.sentences]
    lower = corpus.lower_cased()
    assert lower.sentences[1] == ["oui"]
    assert lower.features == corpus.features


def test_words_of_other_files_are_known_beforehand_without_counts_and_tags(bank):
    source = Conllu(train=f"{bank}[1:]", validation=f"{bank}[1:]", words=(f"{bank}[:1]",))
    assert source.lexicon_entries() == dict.fromkeys(("Il", "parle", "de", "le", "chat"), ())
    morphology = Morphology()
    lexicon, _ = Vocabulary(features=(morphology,), lower_case=True).build(source)
    assert lexicon.words == ("</s>", "<unk>", "oui", "chat", "de", "il", "le", "parle")
    assert lexicon.counts.tolist() == [1, 0, 1, 0, 0, 0, 0, 0]
    features = morphology.features(("chat", "Oui"), {"train": source.read("train")}, {"chat": ()})
    assert features == [{"POS:NIL": 1.0}, {"POS:INTJ": 1.0}]


def test_what_is_left_out_is_kept_with_the_words_in_its_place(bank):
    assert read(bank).fused == {"du": ("de", "le")}
    assert read(bank, fused="surface").fused == {}
    assert read(bank, fused="kept").fused == {"du": ("de", "le")}
    assert read(f"{bank}[-1:]").fused == {}
    # Of several ways the most frequent; and a form as it stands rather than its capitals.
    capital = BANK.replace("\tdu\t", "\tDU\t").replace("\tde\tde", "\tD\tde")
    elided = BANK.replace("\tle\tle", "\tl'\tle")
    bank.write_text("\n".join([elided, BANK, capital, BANK]), encoding="utf-8")
    corpus = read(bank)
    assert corpus.fused == {"du": ("de", "le"), "DU": ("D", "le")}
    assert corpus.lower_cased().fused == {"du": ("de", "le")}
    lexicon, _ = Vocabulary().build(Conllu(train=str(bank), validation=str(bank)))
    lexicon.save(bank.parent / "lexicon.npz")
    assert Lexicon.load(bank.parent / "lexicon.npz").fused == corpus.fused
    assert dataclasses.replace(lexicon, fused={}).digest() == lexicon.digest()


def test_a_form_of_three_words_and_layers_of_a_feature(tmp_path):
    """Arabic writes "and", "to" and a pronoun in one word; joiners are letters of the word."""
    words = ["و", "ل", "ه", "می\u200cروم"]
    features = ["_", "AdpType=Prep", "Person[psor]=3|Number[psor]=Sing,Plur", "_"]
    cells = zip("1234", words, features, strict=True)
    rows = [f"{number}\t{word}\t_\tX\t_\t{cell}" for number, word, cell in cells]
    rows = ["1-3\tوله\t_\t_\t_\t_", *rows]
    path = tmp_path / "arabic.conllu"
    path.write_text("".join(f"{row}\t_\t_\t_\t_\n" for row in rows) + "\n", encoding="utf-8")
    corpus = read(path)
    assert corpus.sentences == [words] and corpus.fused == {"وله": tuple(words[:3])}
    layered = ("POS:X", "Number[psor]:Sing", "Number[psor]:Plur", "Person[psor]:3")
    assert corpus.features == [[("POS:X",), ("POS:X", "AdpType:Prep"), layered, ("POS:X",)]]
    assert read(path, fused="surface").sentences == [["وله", words[3]]]


def test_unknown_fused_forms_are_told(bank):
    lexicon, _ = Vocabulary().build(Conllu(train=str(bank), validation=str(bank)))
    assert lexicon.fused_note(["zèbre", "du", "le"]) == (
        "'du': fused forms, which the training text has as separate words ('du' as 'de le'): "
        "for text as it is written train with data.fused=surface"
    )
    assert lexicon.fused_note(["zèbre", "le"]) is None
    with pytest.raises(UserError, match=r"'du'; leave it out.*data\.fused=surface\)\.$"):
        Vocabulary(unknown="refused").encode(Corpus("text", [["Il", "parle", "du"]]), lexicon)


def test_a_form_may_have_any_character_but_tab_and_newline(tmp_path):
    path = tmp_path / "odd.conllu"
    path.write_text("1\tnew\x85york\u2028 b\tle\tDET\t_\t_\t0\troot\t_\t_\n", encoding="utf-8")
    assert read(path).sentences == [["new\x85york\u2028 b"]]


def test_the_last_column_may_have_two_spaces(bank):
    before = read(bank)
    bank.write_text(BANK.replace("SpaceAfter=No", "Gloss=a  b"), encoding="utf-8")
    assert read(bank) == before


COLUMNS = """1\tchats\tchat\tNOUN\tNC\tNumber=Plur|Gender=Masc\t0\troot\t_\t_
2-3\tdes\t_\t_\t_\t_\t_\t_\t_\t_
2\tde\tde\t_\t_\t_\t1\tcase\t_\t_
3\t_\t_\tPUNCT\tPONCT\t_\t1\tpunct\t_\t_

"""


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("UPOS", "FEATS"), ["POS:NOUN Gender:Masc Number:Plur", "POS:_", "POS:PUNCT"]),
        (("LEMMA", "UPOS"), ["Lemma:chat POS:NOUN", "Lemma:de POS:_", "Lemma:_ POS:PUNCT"]),
        (("XPOS",), ["XPOS:NC", "", "XPOS:PONCT"]),
        (("FEATS", "LEMMA"), ["Gender:Masc Number:Plur Lemma:chat", "Lemma:de", "Lemma:_"]),
    ],
)
def test_tags_are_of_the_columns_that_are_asked_for(tmp_path, columns, expected):
    (tmp_path / "bank.conllu").write_text(COLUMNS)
    (features,) = read(tmp_path / "bank.conllu", columns=columns).features
    assert features == [tuple(tags.split()) for tags in expected]
    if "LEMMA" in columns:
        (features,) = read(tmp_path / "bank.conllu", columns=columns, fused="surface").features
        assert {"Lemma:de", "Lemma:_"} <= {*features[1]}


@pytest.mark.parametrize("columns", [(), ("UPOS", "POS"), ("upos",)])
def test_columns_that_there_are_not(bank, columns):
    with pytest.raises(UserError, match=r"data\.columns is .*: give some of UPOS, FEATS, XPOS"):
        read(bank, columns=columns)


# Cells that the library reads in its own way: values of several kinds, blanks, and empty ones.
CELLS = {
    "form": ["_", "a b", "=", "é\u2028", "1", "#", "du"],
    "lemma": ["_", "", "a b", "le|la"],
    "upos": ["_", "", "NOUN"],
    "xpos": ["_", "NN|NNS", ""],
    "feats": ["_", "", "A=b", "A=b,c|Number[psor]=Sing", "A", "A=", "A=b=c", "|", "A=_|B=d"],
    "head": ["_", "0", "3", "12"],
    "deprel": ["_", "nsubj:pass", ""],
    "deps": ["_", "", "2:nsubj", "2:nsubj|4:conj", "5.1:obl:de", "a"],
    "misc": ["_", "SpaceAfter=No", "A=b|C", " ", "x y|Gloss=a=b", "Gloss=a  b", ""],
}


@pytest.mark.parametrize("seed", range(5))
def test_tokens_are_those_of_the_library(tmp_path, seed):
    random = np.random.default_rng(seed)
    lines = []
    for number in range(1, 80):
        cells = [random.choice(choices) for choices in CELLS.values()]
        lines.append("\t".join((str(number), *cells)))
    (tmp_path / "bank.conllu").write_text("\n".join(lines), encoding="utf-8")
    source = Conllu(str(tmp_path / "bank.conllu"), "", columns=("UPOS", "FEATS", "XPOS", "LEMMA"))
    (tokens,), corpus = source.tokens("train"), source.read("train")
    for line, token, features in zip(lines, tokens, corpus.features[0], strict=True):
        fields = parser.parse_line(line, parser.DEFAULT_FIELDS)
        for name in ("id", "form", "head", "deps"):
            assert token[name] == fields[name], (line, name)
        for name in ("feats", "misc"):
            assert pairs(token[name]) == (fields[name] or {}), (line, name)
        expected = [f"POS:{fields['upos'] or '_'}"]
        for name, value in sorted((fields["feats"] or {}).items()):
            expected += [f"{name}:{part}" for part in (value or "_").split(",")]
        expected += [f"XPOS:{fields['xpos']}"] * bool(fields["xpos"])
        if fields["lemma"] and (fields["lemma"] != "_" or fields["form"] == "_"):
            expected.append(f"Lemma:{fields['lemma']}")
        assert features == tuple(dict.fromkeys(expected)), line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2\ta\t_", "bank.conllu, line 4: 3 columns where CoNLL-U has 10"),
        ("2\ta  b" + 8 * "\t_", "bank.conllu, line 4: two spaces in a column"),
        ("_\ta" + 8 * "\t_", "line 4 is not CoNLL-U: it has no ID"),
        ("x\ta" + 8 * "\t_", "line 4 is not CoNLL-U: Failed parsing field 'id'"),
        ("2\ta" + 4 * "\t_" + "\tx" + 3 * "\t_", "line 4 is not CoNLL-U: Failed .*'head'"),
        ("2\t " + 8 * "\t_", "line 4 is not CoNLL-U: it has no FORM"),
        ("3\ta" + 8 * "\t_", "line 4: the word 'a' has the ID 3, where 2 comes next: number"),
        ("1\ta" + 8 * "\t_", "line 4: the word 'a' has the ID 1, .* a blank line is missing"),
        ("2-3\ta" + 8 * "\t_", "line 4: the words 2 to 3, of which 'a' is made, are not the next"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    before = "# a comment\n\n1\tun" + 8 * "\t_" + "\n"
    (tmp_path / "bank.conllu").write_text(before + line + "\n\n1\ta" + 8 * "\t_" + "\n")
    with pytest.raises(UserError, match=message):
        read(tmp_path / "bank.conllu")


def test_a_treebank_takes_little_more_than_its_words_and_their_tags(tmp_path):
    """An id a token, of a word with its tags, of which there are few, and not its columns."""
    sentence = "# text = il\n" + "".join(
        f"{n}\tmot{n}\tmot\tNOUN\t_\tNumber=Sing\t0\troot\t_\tId={n}\n" for n in range(1, 21)
    )
    peaks = []
    for count in (300, 900):
        (tmp_path / "bank.conllu").write_text((sentence + "\n") * count)
        tracemalloc.start()
        try:
            corpus = read(tmp_path / "bank.conllu")
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert len(corpus.sentences) == 900 and corpus.sentences[-1][-1] == "mot20"
    assert peaks[1] - peaks[0] < 600 * 20 * 8
