"""Pairs of sentences from two files or a table, and questions with their answers."""

import dataclasses
import json

import numpy as np
import pytest

from zoo import configuration
from zoo.alignment import Copyable, PositionalAll, PositionalUnknown
from zoo.data import (
    AsPairs,
    Characters,
    Corpus,
    MicroPairs,
    Mixed,
    Pairs,
    Prefixed,
    RawPairs,
    Source,
    Text,
    Vocabulary,
)
from zoo.data.batches import Batches
from zoo.errors import UserError
from zoo.lab.papers import Realisations

TEXTS = ["a b\nc\nd e f\n", "A\nB C\nD\n"]


def files(tmp_path, *texts):
    paths = []
    for name, text in zip(("x.en", "x.fr"), texts, strict=False):
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    return tuple(paths)


def read(*paths, **options):
    return Pairs(paths, paths, **options).read("train")


def test_two_files_belong_together_line_by_line(tmp_path):
    corpus = read(*files(tmp_path, *TEXTS))
    assert corpus.sentences == [["A"], ["B", "C"], ["D"]]
    assert corpus.source_text.sentences == [["a", "b"], ["c"], ["d", "e", "f"]]
    assert corpus.name.endswith("x.fr")
    assert corpus.source_text.name.endswith("x.en")


def test_a_range_is_of_both_sides(tmp_path):
    paths = files(tmp_path, *TEXTS)
    corpus = read(*(f"{path}[1:]" for path in paths))
    assert corpus.sentences == [["B", "C"], ["D"]]


TABLES = {
    "a.tsv": "a b\tA\nc\tB C\n",
    "b.tsv": "source\tnumber\ttarget\na b\t1\tA\nc\t2\tB C\n",
    "c.csv": 'target,source\nA,"a b"\nB C,c\n',
    "d.jsonl": '{"source": ["a", "b"], "target": "A"}\n{"source": "c", "target": "B C"}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_both_sides(tmp_path, name):
    (tmp_path / name).write_text(TABLES[name])
    corpus = read(str(tmp_path / name))
    assert corpus.source_text.sentences == [["a", "b"], ["c"]]
    assert corpus.sentences == [["A"], ["B", "C"]]


def test_a_column_may_be_within_another(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"translation": {"en": "a b", "fr": "A"}}]))
    corpus = read(str(path), columns=("translation.en", "translation.fr"))
    assert (corpus.source_text.sentences, corpus.sentences) == ([["a", "b"]], [["A"]])


def test_pairs_with_an_empty_side_are_skipped_and_counted(tmp_path, caplog):
    paths = files(tmp_path, "a b\n\nc\n \t\nd\ne\n", "A\nB\n\n\nD\nE F\n")
    corpus = read(*paths)
    assert corpus.source_text.sentences == [["a", "b"], ["d"], ["e"]]
    assert corpus.sentences == [["A"], ["D"], ["E", "F"]]
    ends = [read(*(f"{path}{part}" for path in paths)).sentences for part in ("[:2]", "[2:]")]
    assert ends == [[["A"], ["D"]], [["E", "F"]]]  # a range is of pairs that are not skipped
    (message,) = caplog.messages  # for all three
    assert message == (
        f"{paths[0]} and {paths[1]}: 3 of 6 pairs have an empty side and are skipped, the first at "
        f"{paths[0]}, line 2 (data.empty=refused makes this an error)"
    )
    with pytest.raises(UserError, match=r"data\.empty is 'kept': give one of skipped, refused"):
        read(*paths, empty="kept")
    with pytest.raises(UserError, match=r"x\.en has no pairs"):
        read(*files(tmp_path, "\n\na\n", "A\n\n\n"))


@pytest.mark.parametrize(
    ("name", "table"),
    {
        "a.tsv": "a\tA\nb\t\n\n\tC\nd\tD\n",
        "b.csv": "source,target\na,A\nb,\n,C\nd,D\n",
        "c.jsonl": '{"source": "a", "target": "A"}\n{"source": "b", "target": null}\n'
        '{"source": "d", "target": ["D"]}\n',
    }.items(),
)
def test_rows_with_an_empty_side_are_skipped(tmp_path, caplog, name, table):
    (tmp_path / name).write_text(table)
    corpus = read(str(tmp_path / name))
    assert (corpus.source_text.sentences, corpus.sentences) == ([["a"], ["d"]], [["A"], ["D"]])
    assert "pairs have an empty side and are skipped, the first at" in caplog.text
    assert f"{name}, {'line' if name == 'a.tsv' else 'row'} 2 (" in caplog.text


def test_a_side_of_control_characters_has_no_words(tmp_path):
    paths = files(tmp_path, "It's late.\n\x01\n", "L'homme dort.\nRien.\n")
    corpus = RawPairs(paths, paths, languages=("en", "fr")).read("train")
    assert corpus.sentences == [["L'", "homme", "dort", "."]]


def test_micro_translations_are_their_sources_backwards():
    source = MicroPairs()
    source = dataclasses.replace(
        source, language=dataclasses.replace(source.language, train_sentences=30), longest=7
    )
    corpus = source.read("train")
    entries = source.lexicon_entries()
    assert 0 < len(corpus.sentences) < 30
    for sentence, source_words, features in zip(
        corpus.sentences, corpus.source_text.sentences, corpus.features, strict=True
    ):
        assert " ".join(sentence) == " ".join(source_words)[::-1]
        assert len(source_words) <= 7
        assert features == [entries[word] for word in sentence]
    with pytest.raises(UserError, match=r"longest=1: no sentence"):
        dataclasses.replace(source, longest=1).read("train")


# b and C are once in training, the others twice and more.
MARKED = ["a b a\nc c\na c\n", "A C A\nB B\nA B\n"]
LINKS = "0-0 1-1 2-2\n0-0 1-1\n0-1\n"


@pytest.fixture
def marked(tmp_path):
    """marked(strategy, links, **fields) -> pairs of MARKED."""

    def make(strategy, links=LINKS, **fields):
        (tmp_path / "x.align").write_text(links)
        paths, alignments = files(tmp_path, *MARKED), (str(tmp_path / "x.align"),) * 2
        fields = {"known": (2, 2), "alignments": alignments, **fields}
        return Pairs(paths, paths, (paths,), unknowns=strategy, **fields)

    return make


def test_unknown_words_are_marked_in_training(marked):
    pairs = marked(PositionalUnknown())
    for split in ("train", "validation"):
        corpus = pairs.read(split)
        assert corpus.source_text.sentences == [["a", "<unk>", "a"], ["c", "c"], ["a", "c"]]
        assert corpus.sentences == [["A", "<unkpos_0>", "A"], ["B", "B"], ["A", "B"]]
    # Tests without alignments keep their translations, for they are the references.
    assert pairs.read("test").sentences[0] == ["A", "C", "A"]
    corpus = marked(Copyable()).read("test")
    assert corpus.source_text.sentences[0] == ["a", "<unk_1>", "a"]
    marked_lexicon, _ = Vocabulary().build(pairs)
    assert {"<unkpos_0>", "A", "B", "<unk>"} < {*marked_lexicon.words}
    assert "C" not in marked_lexicon.ids


def test_words_as_frequent_are_known_in_their_order(marked):
    # c is three times there like a, b once.
    corpus = marked(PositionalUnknown(), known=(1, 9)).read("train")
    assert corpus.source_text.sentences[1] == ["<unk>", "<unk>"]
    assert corpus.sentences[0] == ["A", "C", "A"]


def test_wrong_marks_and_alignments_are_sentences(marked):
    for strategy in (Copyable, PositionalAll, PositionalUnknown):
        with pytest.raises(UserError, match=r"data.unknowns.\w+ is -1: give at least"):
            strategy(-1)
    with pytest.raises(UserError, match=r"data.alignments has 4 files for 3 splits"):
        marked(Copyable(), alignments=("a",) * 4)


@pytest.mark.parametrize("links", ["0-0 1-1\n0-1\n", "0-0 1-1\n\n0-1\n"])
def test_alignments_are_of_all_pairs_or_of_those_that_are_not_skipped(marked, tmp_path, links):
    pairs = marked(PositionalUnknown(), links, known=(9, 1))
    (tmp_path / "x.en").write_text("a b\nc\nd e\n")
    (tmp_path / "x.fr").write_text("A B\n\nA E\n")
    assert pairs.read("train").sentences == [["A", "<unkpos_0>"], ["A", "<unkpos_1>"]]


def test_alignments_may_have_a_range(marked, tmp_path):
    pairs = marked(PositionalUnknown(), "zut\n" + LINKS)
    paths = tuple(f"{path}[1:]" for path in pairs.train)
    (tmp_path / "y.align").write_text("zut\n0-0\n0-1\n")
    ranged = dataclasses.replace(
        pairs, train=paths, alignments=(f"{tmp_path}/y.align[1:]",) * 2, known=(9, 9)
    )
    assert len(ranged.read("train").sentences) == 2


def test_a_recipe_with_marks_is_set_and_saved(marked):
    pairs = marked(PositionalUnknown(reach=3))
    assert configuration.from_json(configuration.to_json(pairs)) == pairs
    assert configuration.apply_settings(pairs, ["unknowns=Copyable"]).unknowns == Copyable()
    assert configuration.apply_settings(pairs, ["unknowns=none"]).unknowns is None


# ---- questions and answers as pairs of an encoder-decoder, and as one sequence


def test_a_question_is_the_source_of_its_answer(tmp_path):
    path = tmp_path / "asked.tsv"
    path.write_text("how many cats ?\tcount ( cat )\nwho ?\tall\n", encoding="utf-8")
    source = AsPairs(Prefixed(f"{path}[:1]", f"{path}[1:]", (str(path),)))
    assert source.splits() == ("train", "validation", "test")
    corpus = source.read("test")
    assert corpus.source_text.sentences == [["how", "many", "cats", "?"], ["who", "?"]]
    assert corpus.sentences == [["count", "(", "cat", ")"], ["all"]]
    assert source.read("validation").sentences == [["all"]]
    assert corpus.prefixes is None


@pytest.mark.parametrize("source", [Realisations, Characters])
def test_characters_are_refused(source):
    with pytest.raises(UserError, match=f"sentences of words, and {source.__name__} reads char"):
        AsPairs(source("meanings.csv", "meanings.csv"))


def test_a_mixture_and_a_text_without_prefixes_are_refused(tmp_path):
    path = tmp_path / "asked.txt"
    path.write_text("who ?\tall\n", encoding="utf-8")
    questions = Prefixed(str(path), str(path))
    with pytest.raises(UserError, match=r"asked\.txt: sentence 1 has no prefix"):
        AsPairs(Text(str(path), str(path))).read("train")
    with pytest.raises(UserError, match="is a mixture"):
        AsPairs(Mixed(("a", "b"), (questions, questions))).read("train")


@dataclasses.dataclass(frozen=True)
class Short(Source):
    """A source of one's own with two sentences, which says of one how much is given."""

    def read(self, split):
        return Corpus("mine", [["who", "all"], ["what", "none"]], prefixes=[1])


def test_no_sentence_is_dropped_where_lengths_of_what_is_given_are_missing():
    with pytest.raises(ValueError, match="shorter"):
        AsPairs(Short()).read("train")


# ------------------------------------------------------------ questions and answers as one sequence


@pytest.fixture
def source(tmp_path):
    (tmp_path / "pairs.tsv").write_text("what is it ?\tit ( A )\n\nwho ?\tme\n", encoding="utf-8")
    path = str(tmp_path / "pairs.tsv")
    return Prefixed(path, path + "[1:]", (path,))


def test_a_pair_is_a_sentence_with_a_prefix(source):
    corpus = source.read("train")
    assert corpus.sentences == [
        ["what", "is", "it", "?", "|||", "it", "(", "A", ")"],
        ["who", "?", "|||", "me"],
    ]
    assert corpus.prefixes == [5, 3]
    assert source.read("validation").prefixes == [3]
    assert source.splits() == ("train", "validation", "test")


def test_a_prefix_is_neither_trained_nor_counted(source):
    vocabulary = Vocabulary()
    lexicon, corpora = vocabulary.build(source)
    text = vocabulary.encode(corpora["train"], lexicon)
    expected = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1]
    np.testing.assert_array_equal(text.trained, expected)
    np.testing.assert_array_equal(text.counted, expected)
    reordered = text.reordered(np.array([1, 0]))
    np.testing.assert_array_equal(reordered.trained, expected[10:] + expected[:10])
    batches = Batches(reordered, 2, 12, "sentences", lexicon.ids["</s>"])
    batch = batches[0]
    np.testing.assert_array_equal((batch.positions >= 0).sum(1), [5, 10])
    np.testing.assert_array_equal(batch.trained[0], expected[10:] + [0] * 7)
    np.testing.assert_array_equal(batch.trained[1], expected[:10] + [0] * 2)
    without_prefixes = vocabulary.encode(
        dataclasses.replace(corpora["train"], prefixes=None), lexicon
    )
    assert without_prefixes.trained.all()
    assert without_prefixes.digest() != text.digest()
