"""Treebanks, by hand."""

import dataclasses

import pytest

from zoo.data import Conllu, Corpus, Vocabulary
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors import Morphology

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
    known = FEATURES | {"du": DU} if fused == "surface" else FEATURES
    assert corpus.features == [[known[word] for word in s] for s in corpus.sentences]
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
    other = BANK.replace("\tle\tle", "\tl'\tle")
    bank.write_text("\n".join([other, BANK, capital, BANK]), encoding="utf-8")
    corpus = read(bank)
    assert corpus.fused == {"du": ("de", "le"), "DU": ("D", "le")}
    assert corpus.lower_cased().fused == {"du": ("de", "le")}
    lexicon, _ = Vocabulary().build(Conllu(train=str(bank), validation=str(bank)))
    lexicon.save(bank.parent / "lexicon.npz")
    assert Lexicon.load(bank.parent / "lexicon.npz").fused == corpus.fused
    assert dataclasses.replace(lexicon, fused={}).digest() == lexicon.digest()


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
    (found,) = read(tmp_path / "bank.conllu", columns=columns).features
    assert found == [tuple(tags.split()) for tags in expected]
    if "LEMMA" in columns:
        (found,) = read(tmp_path / "bank.conllu", columns=columns, fused="surface").features
        assert {"Lemma:de", "Lemma:_"} <= {*found[1]}


@pytest.mark.parametrize("columns", [(), ("UPOS", "POS"), ("upos",)])
def test_columns_that_there_are_not(bank, columns):
    with pytest.raises(UserError, match=r"data\.columns is .*: give some of UPOS, FEATS, XPOS"):
        read(bank, columns=columns)
