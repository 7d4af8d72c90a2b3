"""Features that runs add to n-best lists are their scores of the sentences."""

import dataclasses
import itertools
import math
import shutil

import numpy as np
import pytest

from tests import scored_sentences
from zoo.errors import UserError
from zoo.lab.commands import rescore
from zoo.lab.evaluation import nbest
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring.lattices import Lattice, Link
from zoo.lab.rescoring.model_features import Columns, LatticeFolder, best_scores
from zoo.lab.rescoring.reranking import Weights
from zoo.priors.arpa import SentenceScorer

SENTENCES = ["le chat dort", "", "le zèbre dort", "le chien", "", "les chats"]


def lists_of(text, folder):
    (folder / "some").write_text(text, encoding="utf-8")
    return [*nbest.read_lists(str(folder / "some"))[1]]


def test_features_are_scores_and_counts(trained, tmp_path, monkeypatch):
    run = Run.load(trained)
    columns = Columns({"m": run}, word_count=True, unknown_count=True, rank=True)
    assert columns.names == ("m", "m.unknown", "words", "rank")
    monkeypatch.setattr(
        "zoo.lab.rescoring.model_features.BATCH_SIZE", 4
    )  # several batches, one of them empty
    text = "".join(
        f"{id} ||| {sentence}\n" for id, sentence in zip("000123", SENTENCES, strict=True)
    )
    lists = [*columns.add(lists_of(text, tmp_path))]
    assert [(x.id, len(x.hypotheses)) for x in lists] == [("0", 3), ("1", 1), ("2", 1), ("3", 1)]
    rows = [h.features for nbest_list in lists for h in nbest_list.hypotheses]
    (tmp_path / "t.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    _, scores = scored_sentences.scored(run, str(tmp_path / "t.txt"))
    np.testing.assert_allclose([row["m"] for row in rows], scores.log_prob, rtol=1e-5)
    assert [row["m.unknown"] for row in rows] == scores.unknown.tolist()
    assert [row["words"] for row in rows] == [3, 0, 3, 2, 0, 2]
    assert [row["rank"] for row in rows] == [0, -math.log(2), -math.log(3), 0, 0, 0]
    (empty_list,) = columns.add(lists_of("x ||| \n", tmp_path))
    assert empty_list.hypotheses[0].features["words"] == 0
    with pytest.raises(UserError, match=r"the list '0' has a feature 'words' already: rename"):
        [*Columns(word_count=True).add(lists_of("0 ||| a ||| words= 1\n", tmp_path))]


def test_runs_are_given_to_both_commands(trained, tmp_path, call):
    (tmp_path / "l").write_text("0 ||| le chat ||| f= 0\n0 ||| le ||| f= 1\n", encoding="utf-8")
    (tmp_path / "r").write_text("le\n", encoding="utf-8")

    options = ("--run", trained, "--word-count")
    assert call("tune", "l", "r", "--metric", "wer", "--weights", "w", *options)[0] == 0
    assert [*Weights.read("w").weights] == ["f", Run.load(trained).path.name, "words"]
    assert call("apply", "l", "w", "--best", *options) == (0, "0 le\n", "")
    code, printed, errors = call("apply", "l", "w", "--best")
    name = Run.load(trained).path.name
    assert (code, printed) == (2, "")
    assert f"w: tune added the features {name!r}, 'words', and here none are added: give" in errors
    # Lists may lack sparse features, but not a model that was tuned.
    code, printed, errors = call("apply", "l", "w", "--best", "--sparse", "--word-count")
    assert (code, printed) == (2, "") and "and here 'words' are added" in errors


def test_unknown_words_of_lists_and_texts_are_told(trained, tmp_path, call):
    shutil.copytree(trained, tmp_path / "other")
    (tmp_path / "r").write_text("le\n")
    (tmp_path / "t").write_text("le kiwi\n")

    def errors(lists, *words):
        (tmp_path / "l").write_text(lists)
        code, _, printed = call(*words)
        assert code == 0
        return printed

    name = Run.load(trained).path.name
    lists = "0 ||| le kiwi ||| f= 0\n0 ||| le ||| f= 1\n"
    share = f"1 of the 3 words of the lists are unknown to {name} (33.33%)\n"
    tune = ("tune", "l", "r", "--metric", "wer", "--weights", "w", "--run", str(trained))
    apply = ("apply", "l", "w", "--run", str(trained))
    assert share in errors(lists, *tune)
    assert errors(lists, *apply) == share
    assert errors(lists.replace("kiwi", "chat"), *apply) == ""
    all_unknown = errors("0 ||| a kiwi ||| f= 0\n0 ||| kiwi ||| f= 1\n", *apply)
    assert all_unknown.startswith(f"all 3 words of the lists are unknown to {name}, and ")
    runs = ("--run", str(trained), "--run", "other")
    printed = errors(lists, "interpolate", "t", *runs)
    assert printed == "1 of the 2 words of t are unknown to the run (50.00%)\n"


def test_words_with_blanks_are_told_by_all_commands(trained, tmp_path, call, monkeypatch):
    """Of a treebank's words, which lists, texts and lattices have as several."""
    run = Run.load(trained)
    lexicon = dataclasses.replace(run.lexicon, words=(*run.lexicon.words[:-1], "le chat"))
    runs = {name: dataclasses.replace(run, lexicon=lexicon) for name in ("one", "other")}
    monkeypatch.setattr(rescore, "_runs", lambda arguments: runs)
    (tmp_path / "l").write_text("0 ||| le chat ||| f= 0\n0 ||| le ||| f= 1\n")
    (tmp_path / "r").write_text("le chat\n")
    note = "'le chat': words with blanks in the training text, and several words here"
    for line, times in (
        (("tune", "l", "r", "--metric", "wer", "--weights", "w"), 2),
        (("apply", "l", "w"), 2),
        (("interpolate", "r", "--run", "one", "--run", "other"), 1),
    ):
        code, _, errors = call(*line)
        assert (code, errors.count(note)) == (0, times), errors


def test_runs_whose_names_mean_something_else_are_refused(trained):
    """Their features would take the place of others."""
    run = Run.load(trained)
    for name in ("words", "text", "score"):
        with pytest.raises(UserError, match=f"the model '{name}' has the name of another feature"):
            Columns({name: run}, word_count=True)
    for name in ("my run", "a=b", "a|||b", ""):
        with pytest.raises(UserError, match="cannot give its name to a feature of the lists"):
            Columns({name: run})
    with pytest.raises(UserError, match=r"the model 'm\.unknown' has the name of another feature"):
        Columns({"m": run, "m.unknown": run}, unknown_count=True)
    assert Columns({"words": run}).names == ("words",)


def test_added_words_are_no_unknown_ones(trained, tmp_path, call):
    """All commands of rescore read them; a softmax shares the probability of <unk> among them."""
    (tmp_path / "l").write_text("0 ||| le zébu\n0 ||| le zèbre\n", encoding="utf-8")
    (tmp_path / "w").write_text("zébu\nzèbre\n", encoding="utf-8")
    name = Run.load(trained).path.name
    weights = {name: 0.5, f"{name}.unknown": -1, "words": 0}
    (tmp_path / "w.json").write_text(Weights(weights).text())
    (tmp_path / "lattice.txt").write_text("u\n0 1 zébu 0,0\n1\n", encoding="utf-8")

    options = ("--run", trained, "--word-count", "--unknown-count")
    added = ("--add-words", "w", "--spread-unknown")
    run = NewLexicon("w", adds=True, spread=True).apply(Run.load(trained))
    _, scores = scored_sentences.scored(run, "l", nbest=True)
    code, printed, _ = call("apply", "l", "w.json", *options, *added)
    (nbest_list,) = lists_of(printed, tmp_path)
    features = {h.text: h.features for h in nbest_list.hypotheses}
    for text, log_prob in zip(("le zébu", "le zèbre"), scores.log_prob, strict=True):
        np.testing.assert_allclose(features[text][name], log_prob, rtol=1e-5)
        assert features[text][f"{name}.unknown"] == 0
    code, printed, _ = call("apply", "l", "w.json", *options)
    (nbest_list,) = lists_of(printed, tmp_path)
    assert [h.features[f"{name}.unknown"] for h in nbest_list.hypotheses] == [1, 1]
    for line in (("apply", "l", "w.json", *options), ("lattices", trained, "lattice.txt")):
        assert call(*line, *added)[0] == 0
        code, _, errors = call(*line, "--add-words", "w")
        assert code == 2 and "--spread-unknown" in errors
        code, _, errors = call(*line, "--spread-unknown")
        assert code == 2 and "--add-words FILE" in errors


# ------------------------------------------------------------ scores of lattices

# Two ways to say "a", by the node 1 and by the node 2: -1 - 2 x 1 and -2 - 2 x 0.25.
SLF = """lmscale=2 start=0 end=3
I=0
I=1
I=2
I=3
J=0 S=0 E=1 W=a a=-1 l=-1
J=1 S=0 E=2 W=a a=-2 l=-0.25
J=2 S=1 E=3 W=!NULL a=0 l=0
J=3 S=2 E=3 W=!NULL a=0 l=0
J=4 S=2 E=3 W=b a=-4 l=-1
"""


def paths(lattice):
    """(words, acoustic, language) of every path."""
    pending, ended = [(0, (), 0.0, 0.0)], []
    while pending:
        node, words, acoustic, language = pending.pop()
        if node == lattice.nodes - 1:
            ended.append((words, acoustic, language))
        for link in lattice.links:
            if link.start == node:
                link_words = (link.word,) if link.word is not None else ()
                sums = acoustic + 0.7 * link.acoustic, language + 1.3 * link.language
                pending.append((link.end, words + link_words, *sums))
    return ended


def test_parts_are_the_best_path_s_of_all_paths():
    random = np.random.default_rng(5)
    pairs = [*itertools.pairwise(range(6)), *itertools.combinations(range(6), 2)] * 2
    links = [
        Link(a, b, random.choice(["x", "y", None]), *random.normal(size=2), 0) for a, b in pairs
    ]
    lattice = Lattice("l", 6, tuple(sorted(links, key=lambda x: x.start)), 0.7, 1.3, -0.4)
    expected = {}
    for words, acoustic, language in paths(lattice):
        score = acoustic + language - 0.4 * len(words)
        expected[words] = max(expected.get(words, (-math.inf,)), (score, acoustic, language))
    assert len(expected) > 20
    scores = best_scores(lattice, [*expected, ("z",), ("x",) * 9])
    np.testing.assert_allclose(scores[:-2], [*expected.values()], rtol=1e-12)
    assert scores[-2:] == [None, None]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lattices").mkdir()
    (tmp_path / "lattices" / "u1.slf").write_text(SLF)
    (tmp_path / "lattices" / "u2.slf").write_text(SLF.replace("l=-1\n", "l=-3\n"))
    (tmp_path / "l").write_text("u1 ||| a\nu1 ||| a b\nu1 ||| c\nu2 ||| a\n")
    (tmp_path / "r").write_text("u1\ta b\nu2\ta\n")
    return tmp_path


def test_lists_have_the_scores_of_their_lattices(folder):
    lists = [*Columns(lattices=LatticeFolder("lattices")).add(nbest.read_lists("l")[1])]
    # "c" is no path: the lowest of the list.
    assert [[h.features for h in nbest_list.hypotheses] for nbest_list in lists] == [
        [
            {"acoustic": -2, "language": -0.5},
            {"acoustic": -6, "language": -2.5},
            {"acoustic": -6, "language": -2.5},
        ],
        [{"acoustic": -2, "language": -0.5}],
    ]


def test_without_language_scores_there_is_no_such_feature(folder):
    plain = "\n".join(line.partition(" l=")[0] for line in SLF.splitlines())
    (folder / "lattices" / "u1.slf").write_text(plain)
    first, second = Columns(lattices=LatticeFolder("lattices")).add(nbest.read_lists("l")[1])
    assert first.hypotheses[0].features == {"acoustic": -1}
    assert second.hypotheses[0].features == {"acoustic": -2}


def test_both_commands_take_them(folder, call):
    options = ("--lattices", "lattices", "--word-count")
    tune = ("tune", "l", "r", "--metric", "wer", "--weights", "w", *options)
    code, printed, errors = call(*tune, "--test", "l", "--test-references", "r")
    assert (code, errors) == (0, "") and printed.count(" 0.00 [0.00, 0.00]") == 4
    assert [*Weights.read("w").weights] == ["acoustic", "language", "words"]
    assert call("apply", "l", "w", "--best", *options) == (0, "u1 a b\nu2 a\n", "")
    (folder / "other").mkdir()
    for words, message in (
        ((*tune, "--test", "l", "--test-references", "r", "--test-lattices", "other"), "has 0 fil"),
        (
            ("tune", "l", "r", "--metric", "wer", "--test-lattices", "other"),
            "--test-lattices is for --test: give --test LISTS",
        ),
    ):
        code, _, errors = call(*words)
        assert code == 2 and message in errors


def test_unknown_words_of_an_ngram_model_are_counted_for_each_file_of_lists(tmp_path):
    """As tune reads lists to tune on and lists to test with one model."""
    unigrams = "-1 <unk>\n-99 <s>\n-0.7 le\n-0.6 </s>"
    text = f"\\data\\\nngram 1=4\n\n\\1-grams:\n{unigrams}\n\n\\end\\\n"
    (tmp_path / "one.arpa").write_text(text)
    columns = Columns(ngrams={"one": SentenceScorer(str(tmp_path / "one.arpa"))})
    for hypothesis in ("le un deux", "le un"):
        (nbest_list,) = columns.add(lists_of(f"0 ||| {hypothesis}\n", tmp_path))
    assert nbest_list.hypotheses[0].features == {
        "one": pytest.approx((-0.7 - 1 - 0.6) * math.log(10))
    }
    assert columns.notes == [
        "2 of the 3 words of the lists are unknown to one (66.67%)",
        "1 of the 2 words of the lists are unknown to one (50.00%)",
    ]
