"""Agreement pairs of a treebank of a few lines."""

import pytest

from zoo.data import Conllu
from zoo.lab.evaluation import agreement

# id, form, lemma, part of speech, features, head, relation
TRAIN = """
1 Les le DET Number=Plur 2 det
2 maisons maison NOUN Gender=Fem|Number=Plur 5 nsubj
3 des de ADP _ 4 case
4 voisins voisin NOUN Gender=Masc|Number=Plur 2 nmod
5 sont être VERB Number=Plur|Person=3 0 root
6 petites petit ADJ Gender=Fem|Number=Plur 5 amod

1 une un DET Gender=Fem|Number=Sing 2 det
2 maison maison NOUN Gender=Fem|Number=Sing 4 nsubj
3 est être AUX Number=Sing|Person=3 4 cop
4 petite petit ADJ Gender=Fem|Number=Sing 0 root

1 petits petit ADJ Gender=Masc|Number=Plur 0 root
2 est être VERB Number=Sing|Person=3 1 dep
3 suis être VERB Number=Sing|Person=1 1 dep
4 sont être AUX Number=Plur|Person=3 1 dep
"""


def columns(text):
    lines = []
    for line in text.strip("\n").split("\n"):
        if line:
            number, form, lemma, upos, feats, head, relation = line.split(" ")
            line = "\t".join([number, form, lemma, upos, "_", feats, head, relation, "_", "_"])
        lines.append(line)
    return "\n".join(lines) + "\n\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "bank.conllu"
    path.write_text(columns(TRAIN), encoding="utf-8")
    return Conllu(train=str(path), validation=f"{path}[:2]")


@pytest.fixture
def sentences(source):
    return source.tokens("train")


def test_tokens_have_all_their_columns(source, sentences):
    assert [len(sentence) for sentence in sentences] == [6, 4, 4]
    assert sentences[0][1]["lemma"] == "maison"
    assert [[t["form"] for t in s] for s in sentences] == source.read("train").sentences
    assert len(source.tokens("validation")) == 2


def test_the_twin_differs_in_one_feature_alone(sentences):
    forms = agreement.paradigms(sentences)
    maisons, sont, petites = (sentences[0][place] for place in (1, 4, 5))
    assert agreement.twin(maisons, "Number", forms) == "maison"
    assert agreement.twin(maisons, "Gender", forms) is None
    assert agreement.twin(sont, "Number", forms) == "est"  # "suis" is of another person
    assert agreement.twin(petites, "Number", forms) == "petite"
    assert agreement.twin(petites, "Gender", forms) == "petits"


def test_a_form_that_may_be_right_is_no_twin(sentences):
    forms = agreement.paradigms(sentences)
    singular, plural = (agreement._features(sentences[s][p]) for s, p in ((1, 3), (0, 5)))
    forms["petit", "ADJ"][singular]["petite"] = 40
    forms["petit", "ADJ"][plural]["petite"] = 2  # as by mistake
    assert agreement.twin(sentences[0][5], "Number", forms) == "petite"
    forms["petit", "ADJ"][plural]["petite"] = 3
    assert agreement.twin(sentences[0][5], "Number", forms) is None


def test_what_differs_in_gender_does_not_agree_in_number(sentences):
    forms = agreement.paradigms(sentences)
    sentences[1][3]["feats"] = "Gender=Masc|Number=Sing"
    pairs = agreement.pairs_of(sentences[1:2], forms, True)
    assert [bad for _, bad, _ in pairs] == [["une", "maison", "sont", "petite"]]


def test_subjects_and_what_is_modified_come_before(sentences):
    # maisons ... sont, sont petites (where nothing agrees in gender); maison est, maison petite.
    assert agreement.agreements(sentences[0]) == [(1, 4), (4, 5)]
    assert agreement.agreements(sentences[1]) == [(1, 2), (1, 3)]
    assert agreement.agreements(sentences[2]) == []


def test_pairs_with_their_distance(sentences):
    pairs = agreement.pairs_of(sentences[:2], agreement.paradigms(sentences), True)
    differences = [
        (good[place], bad[place], facts["phenomenon"], facts["distance"])
        for good, bad, facts in pairs
        for place in range(len(good))
        if good[place] != bad[place]
    ]
    assert differences == [
        ("sont", "est", "number", 3),
        ("petites", "petite", "number", 1),
        ("est", "sont", "number", 1),
        ("petite", "petites", "number", 2),
    ]
    assert pairs[0][0][0] == "les"
    assert agreement.pairs_of(sentences, agreement.paradigms(sentences), False)[0][0][0] == "Les"
