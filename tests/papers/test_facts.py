"""Questions about a table: which subjects stand in which split."""

import itertools

import pytest

from zoo.errors import UserError
from zoo.papers import Facts

LANDS = "ABCDEFG"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "lands.tsv"
    rows = [f"{land}\tcapital-{land}\tmoney-{land}" for land in LANDS] + ["H\tcapital-H\t"]
    path.write_text("\n".join(["land\tcapital\tmoney", *rows]), encoding="utf-8")
    return Facts(str(path), validation=2, test=1, train_questions=60, other_questions=40)


def subjects(corpus):
    return {word for sentence in corpus.sentences for word in sentence if len(word) == 1} & {*LANDS}


def test_each_split_has_subjects_of_its_own(source):
    found = {split: subjects(source.read(split)) for split in source.splits()}
    assert found == {
        "train": {*"ABCD"},
        "validation": {*"EF"},
        "known": {*"ABCD"},
        "test": {"G"},  # H has one fact only
    }
    assert len(source.read("train").sentences) == 60
    assert source.read("test").sentences == source.read("test").sentences


def test_answers_have_the_values_that_were_asked_for(source):
    values = 0
    corpus = source.read("train")
    for sentence, prefix in zip(corpus.sentences, corpus.prefixes, strict=True):
        question, answer = sentence[:prefix], sentence[prefix:]
        assert question[-1] == source.separator
        (subject,) = {*question} & {*LANDS}
        asked = [word for word in question if word in ("capital", "money")]
        said = [word for word in answer if "-" in word]
        assert said in ([], [f"{relation}-{subject}" for relation in asked])
        values += len(said)
    assert values > 20


def test_tokens_have_a_class_or_are_themselves(source):
    corpus = source.read("test")
    pairs = itertools.chain(*map(zip, corpus.sentences, corpus.features))
    features = dict(pairs)
    assert features["G"] == ("Class:subject",)
    assert features["capital"] == ("Word:capital",)
    assert source.lexicon_entries()["money-A"] == ("Class:money",)
    assert "capital-H" in source.lexicon_entries()


def test_too_small_a_table_is_refused(source):
    with pytest.raises(UserError, match="has 7 subjects with two facts, and 8 are kept"):
        Facts(source.path, validation=4, test=4).read("train")
    with pytest.raises(UserError, match="unknown split 'dev'"):
        source.read("dev")
