"""Minimal pairs on a model whose probabilities are set by hand."""

import math
import types

import jax
import numpy as np
import pytest

from tests import examples
from zoo.cores import LSTM
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.experiment import Evaluation
from zoo.lab.evaluation import minimal_pairs
from zoo.lab.evaluation.minimal_pairs import PairScores, score_pairs
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel
from zoo.sources.tokens import Reading

PROBABILITIES = {"</s>": 0.1, "<unk>": 0.1, "a": 0.4, "b": 0.2, "c": 0.15, "d": 0.05}
LEXICON = Lexicon(
    words=tuple(PROBABILITIES),
    counts=np.ones(6, np.int64),
    unknown="<unk>",
    boundary="</s>",
)
MODEL = LanguageModel(embedding=Lookup(size=2), core=LSTM(size=3))


def judge(pairs, **vocabulary):
    """The scores under a unigram model of PROBABILITIES."""
    params = jax.tree.map(np.zeros_like, MODEL.init(jax.random.key(0), LEXICON))
    params["head"]["bias"] = np.log(np.array(list(PROBABILITIES.values()), np.float32))
    split = [(good.split(), bad.split()) for good, bad in pairs]
    return score_pairs(run_of(params, LEXICON, Vocabulary(**vocabulary)), split)


def run_of(params, lexicon, vocabulary):
    """A run of the model, without a folder."""
    parts = {"vocabulary": vocabulary, "evaluation": Evaluation()}
    experiment = types.SimpleNamespace(language_model=MODEL, **parts)
    parts = {"lexicon": lexicon, "params": params, "tables": examples.NO_TABLES, "path": "run"}
    return types.SimpleNamespace(experiment=experiment, **parts)


def test_a_sentence_scores_the_sum_over_its_words_without_the_boundary():
    scores = judge([("a b", "a c"), ("a d", "a b c"), ("a b", "b a")])
    np.testing.assert_allclose(np.exp(scores.good), [0.08, 0.02, 0.08], rtol=1e-5)
    np.testing.assert_allclose(np.exp(scores.bad), [0.06, 0.012, 0.08], rtol=1e-5)
    mean = (math.log(0.08 / 0.06) + math.log(0.02 / 0.012)) / 3
    np.testing.assert_allclose(scores.figures().mean_difference, mean, rtol=1e-4)


def test_only_a_strictly_higher_sum_is_right():
    nan = math.nan
    scores = PairScores(
        good=np.array([-1.0, -2.0, -3.0, nan, -math.inf]),
        bad=np.array([-2.0, -2.0, -1.0, nan, -math.inf]),
        scored=np.array([True, True, True, False, True]),
    )
    assert (scores.right, scores.pairs, scores.skipped) == (1, 4, 1)
    assert scores.figures().accuracy == 0.25
    assert math.isnan(scores.figures().mean_difference)


def test_a_pair_is_skipped_where_a_differing_word_is_unknown():
    # The unknown word of the second pair is in both sentences and read as <unk>.
    pairs = [("a b", "a x"), ("x b", "x d"), ("x b", "x x")]
    scores = judge(pairs)
    assert scores.scored.tolist() == [False, True, False]
    np.testing.assert_allclose(np.exp(scores.good[1]), 0.1 * 0.2, rtol=1e-5)
    assert judge(pairs, unknown="refused").scored.tolist() == [False, False, False]


def test_equal_sentences_are_left_out_and_told():
    repeated, good, bad = "a b", "a b", "b a"
    scores = judge([(good, bad), (repeated, repeated), (repeated, repeated)])
    assert (scores.pairs, scores.skipped, scores.equal) == (1, 0, (1, 2))
    assert np.isnan(scores.good[1:]).all() and scores.figures().equal == 2
    description = minimal_pairs.describe("pairs", scores)
    assert "left out: 2, the first is pair 2" in description
    assert scores.select(np.array([False, True, True])).equal == (0, 1)
    pairs = [
        minimal_pairs.Pair(*texts, texts) for texts in (("ab", "ba"), ("ab", "ab"), ("ab", "ab"))
    ]
    rows = [*minimal_pairs.rows(pairs, scores)]
    assert [row.right for row in rows] == [False, None, None]


def test_no_pairs_have_no_accuracy():
    scores = judge([])
    assert (scores.pairs, scores.skipped) == (0, 0)
    assert math.isnan(scores.figures().accuracy)


def test_repeated_sentences_score_as_if_alone():
    pair = ("a b c d", "a b d d")
    single, repeated = judge([pair]), judge([pair, ("c", "d"), pair, ("b", "b b"), pair])
    np.testing.assert_allclose(repeated.good[[0, 2, 4]], np.repeat(single.good, 3), rtol=1e-6)


def test_every_false_sentence_is_a_twin_of_the_last_true_one(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("True\tLe chat\nFalse\tles chat\nFalse\tla chat\n\nTrue\ta\nFalse\tb\n")
    pairs = [pair[:2] for pair in minimal_pairs.read(str(path), Reading(lower_case=True))]
    good = ["le", "chat"]
    assert pairs == [(good, ["les", "chat"]), (good, ["la", "chat"]), (["a"], ["b"])]
    assert minimal_pairs.read(str(path))[0][0] == ["Le", "chat"]
    path.write_text('True\t"a ""b"""\nFalse\ta "c"\n')  # as pandas writes them
    assert minimal_pairs.read(str(path))[0][:2] == (["a", '"b"'], ["a", '"c"'])


MARVIN_LINZEN = (
    "simple_agrmt\tsing_MS_MV\tthe author laughs\tthe author laugh\n"
    "simple_agrmt\tplur_MS_MV\tthe authors laugh\tthe authors laughs\n"
    "obj_rel\tsing_MS_MV\tthe author who the guards like laughs\t"
    "the author who the guards like laugh\n"
)


def test_the_table_of_marvin_and_linzen(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(MARVIN_LINZEN)
    first, second, third = minimal_pairs.read(str(path))
    assert first.good == ["the", "author", "laughs"] and first.bad == ["the", "author", "laugh"]
    assert second.texts == ("the authors laugh", "the authors laughs")
    assert [pair.groups for pair in (first, second, third)] == [
        ("simple_agrmt", "simple_agrmt sing_MS_MV"),
        ("simple_agrmt", "simple_agrmt plur_MS_MV"),
        ("obj_rel", "obj_rel sing_MS_MV"),
    ]
    path.write_text("agreement\ta b\ta c\n")
    assert minimal_pairs.read(str(path))[0].groups == ("agreement", "")


@pytest.mark.parametrize(
    "text",
    [
        "1276\teng\tLet's go.\n1277\teng\tI have to go.\n",  # Tatoeba
        "Go.\tVa !\tCC-BY 2.0 (CM)\nRun.\tCours !\tCC-BY 2.0 (CM)\nHi.\tSalut !\tCC-BY 2.0\n",
        "the\tDT\tthe\ncat\tNN\tcat\n",
        "index\tid\tsentence1\tsentence2\tlabel\n0\t1\ta cat\ta cat\tneutral\n",
        "u1\t3\t-5.5\tthe cat\nu2\t3\t-4.5\ta dog\n",
    ],
)
def test_cells_that_are_not_alike_are_not_minimal_pairs(text, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(UserError, match=r"pairs\.tsv: the last two cells of most lines do"):
        minimal_pairs.read(str(path))


@pytest.mark.parametrize(
    ("header", "groups"),
    [
        ("sentence_good\tpair_id\tUID\tsentence_bad\tfield", ("syntax", "island")),
        ("Sentence_Good\tpair_id\tuid\tSENTENCE_BAD\tField", ("syntax", "island")),
        ("Good\tItem\tUID\tBad\tField", ("syntax", "island")),
        ("good\tn\tx\tbad\ty", ()),
    ],
)
def test_a_table_with_a_header(tmp_path, header, groups):
    path = tmp_path / "pairs.tsv"
    path.write_text(f'{header}\n"a ""b"" c"\t3\tisland\ta c b\tsyntax\n\n')
    (pair,) = minimal_pairs.read(str(path))
    assert pair == (["a", '"b"', "c"], ["a", "c", "b"], ('a "b" c', "a c b"), groups)


def test_a_table_as_pandas_writes_it(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(',good,bad,field\n0,"a, b",a c,syntax\n1,"a ""b""",b a,\n')
    first, second = minimal_pairs.read(str(path))
    assert first == (["a,", "b"], ["a", "c"], ("a, b", "a c"), ("syntax", ""))
    assert second == (["a", '"b"'], ["b", "a"], ('a "b"', "b a"), ())


@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
@pytest.mark.parametrize(
    "header",
    [
        ("item", "condition", "sentence", "critical"),
        ("item", "sentence_match", "sentence_mismatch"),
        ("item", "Good_a", "Bad_a"),
    ],
)
def test_a_table_of_items_is_not_taken_for_pairs_or_labels(tmp_path, header, delimiter):
    path = tmp_path / "items.tsv"
    path.write_text(f"{delimiter.join(header)}\n{delimiter.join('abcd'[: len(header)])}\n")
    with pytest.raises(
        UserError, match=r"items\.tsv, line 1: .*: write one row per pair, in columns good and bad"
    ):
        minimal_pairs.read(str(path))


def test_a_table_with_semicolons_is_read(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('good;bad\n"il, dort";il dorment\n')
    (pair,) = minimal_pairs.read(str(path))
    assert pair.texts == ("il, dort", "il dorment")


def test_words_of_which_one_sentence_has_more_differ():
    differing = minimal_pairs.differing_words
    assert differing(["a", "b", "a"], ["a", "b", "c"]) == {"a", "c"}
    assert differing(["a", "b"], ["b", "a"]) == set()


def test_only_line_feeds_end_a_line(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("True\ta\u2028b\nFalse\ta\x85c\n", encoding="utf-8")
    assert [pair[:2] for pair in minimal_pairs.read(str(path))] == [(["a", "b"], ["a", "c"])]
