"""Sources of single papers; what is wrong with their files is in tests/malformed."""

import itertools
import pathlib

import pytest

from zoo.errors import UserError
from zoo.lab.papers import Facts, Overnight, Realisations

LANDS = "ABCDEFG"


@pytest.fixture
def facts(tmp_path):
    path = tmp_path / "lands.tsv"
    rows = [f"{land}\tcapital-{land}\tmoney-{land}" for land in LANDS] + ["H\tcapital-H\t"]
    path.write_text("\n".join(["land\tcapital\tmoney", *rows]), encoding="utf-8")
    return Facts(str(path), validation=2, test=1, train_questions=60, other_questions=40)


def subjects(corpus):
    return {word for sentence in corpus.sentences for word in sentence if len(word) == 1} & {*LANDS}


def test_each_split_has_subjects_of_its_own(facts):
    subjects_by_split = {split: subjects(facts.read(split)) for split in facts.splits()}
    assert subjects_by_split == {
        "train": {*"ABCD"},
        "validation": {*"EF"},
        "known": {*"ABCD"},
        "test": {"G"},  # H has one fact only
    }
    assert len(facts.read("train").sentences) == 60
    assert facts.read("test").sentences == facts.read("test").sentences


def test_answers_have_the_values_that_were_asked_for(facts):
    values = 0
    corpus = facts.read("train")
    for sentence, prefix in zip(corpus.sentences, corpus.prefixes, strict=True):
        question, answer = sentence[:prefix], sentence[prefix:]
        assert question[-1] == facts.separator
        (subject,) = {*question} & {*LANDS}
        relations = [word for word in question if word in ("capital", "money")]
        answer_values = [word for word in answer if "-" in word]
        assert answer_values in ([], [f"{relation}-{subject}" for relation in relations])
        values += len(answer_values)
    assert values > 20


def test_tokens_have_a_class_or_are_themselves(facts):
    corpus = facts.read("test")
    pairs = itertools.chain(*map(zip, corpus.sentences, corpus.features))
    features = dict(pairs)
    assert features["G"] == ("Class:subject",)
    assert features["capital"] == ("Word:capital",)
    assert facts.lexicon_entries()["money-A"] == ("Class:money",)
    assert "capital-H" in facts.lexicon_entries()


def test_too_small_a_table_is_refused(facts):
    with pytest.raises(UserError, match="has 7 subjects with two facts, and 8 are kept"):
        Facts(facts.path, validation=4, test=4).read("train")
    with pytest.raises(UserError, match="unknown split 'dev'"):
        facts.read("dev")


# ---- examples of SEMPRE as pairs of a question and a formula

EXAMPLES = """(example
  (utterance "what (if any) is at noon")
  (original "x")
  (targetFormula
    (call pack.age.listValue (call pack.age.filter en.meeting (string =) (time 12 0)))
  )
)
(example (utterance "who") (targetFormula en.person))
"""


def test_a_formula_is_a_sequence_of_symbols_and_parentheses(tmp_path):
    path = str(tmp_path / "some.examples")
    pathlib.Path(path).write_text(EXAMPLES)
    source = Overnight(f"{path}[:1]", f"{path}[1:]", (path,), package="pack.age.")
    question = ["what", "(if", "any)", "is", "at", "noon", "|||"]
    formula = "( call listValue ( call filter en.meeting ( string = ) ( time 12 0 ) ) )"
    assert source.read("train").sentences == [[*question, *formula.split()]]
    assert source.read("train").prefixes == [7]
    assert source.read("validation").sentences == [["who", "|||", "en.person"]]
    assert len(source.read("test").sentences) == 2
    assert source.splits() == ("train", "validation", "test")


# ---- meanings and sentences as characters


def realisations(folder, text, **options):
    path = folder / "pairs.csv"
    path.write_text(text, encoding="utf-8")
    return Realisations(str(path), str(path) + "[1:]", (str(path),), **options)


def test_a_row_is_a_sentence_of_characters_with_a_prefix(tmp_path):
    source = realisations(tmp_path, 'mr,ref\r\n"name[Ä], x[y]",It is Ä.\r\nname[B],"B, it is"\r\n')
    corpus = source.read("train")
    assert ["".join(sentence) for sentence in corpus.sentences] == [
        "name[Ä], x[y]|It is Ä.",
        "name[B]|B, it is",
    ]
    assert corpus.prefixes == [14, 8]
    assert source.read("validation").prefixes == [8]
    assert source.splits() == ("train", "validation", "test")


def test_spaces_of_tokenisers_are_taken_out(tmp_path):
    text = 'mr,ref\n"price[£ 20 - 25]","It \'s £ 20 - 25 , is n\'t it ? ( No . )"\n'
    (sentence,) = realisations(tmp_path, text).read("train").sentences
    assert "".join(sentence) == "price[£20-25]|It's £20-25, isn't it? (No.)"


def test_slots_from_the_last_to_the_first(tmp_path):
    text = 'mr,ref\n"name[The A, B], customer rating[5 out of 5], near[C]",It.\nname[B],Is.\n'
    corpus = realisations(tmp_path, text, last_first=True).read("train")
    assert ["".join(sentence) for sentence in corpus.sentences] == [
        "near[C], customer rating[5 out of 5], name[The A, B]|It.",
        "name[B]|Is.",
    ]
    with pytest.raises(UserError, match=r"row 1: 'a, b' is not of the form a\[b\]"):
        realisations(tmp_path, 'mr,ref\n"a, b",It.\n', last_first=True).read("train")


def test_a_separator_is_one_character(tmp_path):
    with pytest.raises(UserError, match="give a single character"):
        realisations(tmp_path, "mr,ref\na,b\n", separator="||")
