"""Lattices: what is read of their files, and paths against all paths, scored one by one."""

import dataclasses
import gzip
import itertools
import json
import math
import os
import pathlib
import re
import shutil

import jax
import numpy as np
import pytest

import zoo
from tests.examples import sentence_log_probs
from tests.marks import slow
from zoo.errors import UserError
from zoo.lab.evaluation import sentence_scores
from zoo.lab.rescoring import lattice_rescoring, lattices
from zoo.lab.rescoring.lattice_rescoring import LatticeSearch
from zoo.lab.rescoring.lattices import Lattice, Link, read_lattices
from zoo.lab.rescoring.run_interpolation import Interpolation

ON_LINKS = """# a comment
VERSION=1.1 UTTERANCE="utterance 7"
base=10 lmscale=2 wdpenalty=-0.5
N=5 L=5
I=0 t=0.00
I=1 t=0.5
I=2 t=0.5
I=3
I=4
J=0 S=0 E=1 W=!ENTER a=-1 l=0
J=1 S=1 E=2 W=le v=1 a=-2 l=-0.5
J=2 S=1 E=2 W=les a=-3 l=-0.25
J=3 S=2 E=3 W=chat a=-4 l=-1
J=4 S=1 E=4 W=out a=0 l=0
"""
ON_NODES = """start=2 end=0
N=3 L=2
I=0 t=1 W=!SENT_END
I=1 t=1 W=chat
I=2 t=0 W=!SENT_START
J=0 S=2 E=1 a=-2
J=1 S=1 E=0 a=-1
"""
KALDI = """utt-1
0 1 le 1.5,2,1_2_3
1 2 chat 0.5,3,4
1 3 <eps> 0,1,
2 0.25,0.5,
3

utt-2
0 1 5 les 1,2
1
"""


def read(text, folder, name="l.slf"):
    (folder / name).write_text(text, encoding="utf-8")
    return [*read_lattices(str(folder / name))]


def links_of(lattice):
    return [(link.start, link.end, link.word) for link in lattice.links]


def test_words_on_links(tmp_path):
    (lattice,) = read(ON_LINKS.replace("lmscale", "end=3 lmscale"), tmp_path)
    assert (lattice.id, lattice.nodes, lattice.language_scale) == ("utterance 7", 4, 2)
    assert lattice.word_penalty == -0.5 and lattice.words == ["le", "les", "chat"]
    assert links_of(lattice) == [(0, 1, None), (1, 2, "le"), (1, 2, "les"), (2, 3, "chat")]
    link = lattice.links[1]
    np.testing.assert_allclose(
        [link.acoustic, link.language], [-2 * math.log(10), -math.log(10) / 2]
    )


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("", {}),
        (" \t", {}),
        ("J=1 S=0 E=2 W=le a=-2.5", {"J": "1", "S": "0", "E": "2", "W": "le", "a": "-2.5"}),
        ("START=0 acoustic=-1 NODES=3", {"S": "0", "a": "-1", "N": "3"}),
        ("W= v=1", {"W": "", "v": "1"}),
        ('W="New York" v=1', {"W": "New York", "v": "1"}),
        (r'W="a \"b\" c"', {"W": 'a "b" c'}),
        ("W='a b'", {"W": "a b"}),
        ("W='cause v=1", {"W": "'cause", "v": "1"}),
        (r"W=\'tis", {"W": "'tis"}),
        (r"W=New\ York", {"W": "New York"}),
        (r"W=\303\251t\303\251", {"W": "été"}),
        ("W=don't x==", {"W": "don't", "x": "="}),
    ],
)
def test_fields(line, fields):
    assert lattices.parse_fields(line, "a.slf, line 1") == fields


def test_words_on_nodes_and_compressed(tmp_path):
    with gzip.open(tmp_path / "u.slf.gz", "wt") as file:
        file.write(ON_NODES)
    (lattice,) = read_lattices(str(tmp_path / "u.slf.gz"), "u")
    assert lattice.id == "u" and links_of(lattice) == [(0, 1, "chat"), (1, 2, None)]


@pytest.mark.parametrize("header", ["", "start=5 end=7\n"])
@pytest.mark.parametrize(("word", "links"), [("zwei", ["zwei", "drei"]), ("!NULL", ["drei"])])
def test_a_word_on_the_first_node_is_the_first_of_its_paths(header, word, links, tmp_path):
    nodes = f"I=5 W={word}\nI=6 W=drei\nI=7 W=!NULL\n"
    scores = "J=0 S=5 E=6 a=-1 l=-2 p=0.5\nJ=1 S=6 E=7 a=-3 l=-4 p=0.25\n"
    (lattice,) = read(f"VERSION=1.0\nUTTERANCE=u\n{header}{nodes}{scores}", tmp_path)
    assert [link.word for link in lattice.links] == [*links, None]
    assert sum(link.acoustic for link in lattice.links) == -4
    assert sum(link.language for link in lattice.links) == -6
    np.testing.assert_allclose(
        math.exp(sum(link.log_posterior for link in lattice.links)), 0.125, rtol=1e-12
    )


def test_kaldi_writes_costs(tmp_path):
    first, second = read(KALDI, tmp_path)
    assert (first.id, second.id, second.words) == ("utt-1", "utt-2", ["les"])
    assert sorted(links_of(first), key=str) == [
        *((0, 1, "le"), (1, 2, "chat"), (1, 3, None), (2, 4, None), (3, 4, None))
    ]
    assert (first.links[0].language, first.links[0].acoustic) == (-1.5, -2)


def test_two_ends_and_none_named(tmp_path):
    with pytest.raises(UserError, match=r"has 2 nodes that could be its end, 3, 4: name one"):
        read(ON_LINKS, tmp_path)
    two_starts = ON_LINKS.replace("S=1 E=4", "S=4 E=2").replace("lmscale", "end=3 lmscale")
    with pytest.raises(UserError, match=r"has 2 nodes that could be its start, 0, 4: name one"):
        read(two_starts, tmp_path)


def random_lattice(random, nodes=6, words=("le", "les", "chat", "zèbre", None)):
    """A lattice with a chain through all nodes and some links beside it."""
    pairs = [(n, n + 1) for n in range(nodes - 1)] * 2
    pairs += [tuple(sorted(random.choice(nodes, 2, replace=False).tolist())) for _ in range(4)]
    links = [
        Link(start, end, words[random.integers(len(words))], *random.normal(size=2).tolist(), 0)
        for start, end in sorted(pairs)
    ]
    return Lattice("random", nodes, tuple(links), 0.7, 1.3, -0.4)


def all_paths(lattice):
    """[[links of a path from the start to the end]], by hand."""
    pending, paths = [(0, [])], []
    while pending:
        node, path = pending.pop()
        if node == lattice.nodes - 1:
            paths.append(path)
        pending += [(x.end, [*path, x]) for x in lattice.links if x.start == node]
    return paths


# Pronunciations (HTK), durations and n-grams (SRILM) with scales, some fields on nodes.
SCORES = """UTTERANCE=p base=10
lmscale=3 acscale=0.5 prscale=2 duscale=0.25 ngscale=-1 amscale=7 tscale=9 dir=f
N=4 L=4
I=0 t=0
I=1 W=you v=2 p=0.5 r=-5 ds=-4
I=2 W=the s=x r=0 ds=8
I=3 W=!NULL
J=0 S=0 E=1 a=-100 l=-1 n=-2
J=1 S=0 E=2 a=-101 l=-1 n=-3 d=:th,0.1:
J=2 S=1 E=3 a=-10 l=-1 n=0 r=-1 ds=0
J=3 S=2 E=3 a=-10 l=-1 n=0 r=0 ds=0
"""


def test_all_scores_of_links_are_read_with_their_scales(trained, call):
    """acscale a + prscale r + duscale ds, lmscale l + ngscale n; written lattices have the sums."""
    pathlib.Path("p.slf").write_text(SCORES)
    # you: 0.5 * -110 + 2 * -6 + 0.25 * -4, 3 * -2 + 2; the: 0.5 * -111 + 0.25 * 8, 3 * -2 + 3
    expected = [("the", -53.5, -3), ("you", -68, -4)]
    for files in (("p.slf", "--slf", "new"), ("new/p.slf.gz",)):
        code, out, _ = call("lattices", trained, *files, "--weight", 0, "--nbest", 3)
        rows = [line.split(" ||| ") for line in out.splitlines()]
        assert code == 0 and [row[1] for row in rows] == ["the", "you"]
        for row, (_, acoustic, language) in zip(rows, expected, strict=True):
            values = [float(row[2].split()[1]), float(row[2].split()[3]), float(row[3])]
            sums = acoustic, language, acoustic + language
            np.testing.assert_allclose(values, math.log(10) * np.array(sums), rtol=1e-6)


# "l'chat" and "dort." are two words each by the rules of Moses, and one between blanks.
MARKS = """N=4 L=3
I=0
I=1 W=l'chat
I=2 W=le
I=3 W=dort.
J=0 S=0 E=1 a=-1
J=1 S=1 E=2 a=-2
J=2 S=2 E=3 a=-3
"""


def test_words_of_links_are_tokenised_as_the_texts_of_a_run(trained, tmp_path):
    """A link may have several words of the model; a path has the log p of its tokenised text."""
    run, tokenised_run = zoo.load(trained), zoo.load(trained, tokenize="fr")
    (lattice,) = read(MARKS, tmp_path)
    words = ["l'", "chat", "le", "dort", "."]
    (path,) = searched(LatticeSearch(), tokenised_run, lattice)
    assert path.words == ("l'chat", "le", "dort.")
    (log_prob,) = sentence_log_probs(run, [words])
    np.testing.assert_allclose(path.log_probs, [log_prob], rtol=1e-6)
    assert tokenised_run.score(["l'chat le dort."])[0].log_prob == pytest.approx(path.log_probs[0])
    note, *_ = lattice_rescoring.unknown_word_notes(lattice.words, tokenised_run, "run")
    assert note.startswith("1 of the 5 words of the lattices, each counted once, by run, are")
    # Another model that reads each link as one word.
    runs = [run, tokenised_run]
    search = LatticeSearch((1.0, 1.0), nbest=2)
    ((path,),) = [result.paths for result in search.search_all(runs, [lattice])]
    expected = sentence_log_probs(run, [["l'chat", "le", "dort."], words])
    np.testing.assert_allclose(path.log_probs, expected, rtol=1e-6)


def by_hand(run, lattice, weight, language_weight, penalty):
    """{words: the best score of their paths}."""
    paths = all_paths(lattice)
    texts = [[link.word for link in path if link.word] for path in paths]
    best = {}
    for path, words, log_prob in zip(paths, texts, sentence_log_probs(run, texts), strict=True):
        score = weight * log_prob + len(words) * (lattice.word_penalty + penalty)
        for link in path:
            score += lattice.acoustic_scale * link.acoustic
            score += language_weight * lattice.language_scale * link.language
        best[tuple(words)] = max(best.get(tuple(words), -math.inf), score)
    return best


def searched(search, *runs_and_lattice):
    """The paths of a lattice, the best first."""
    *runs, lattice = runs_and_lattice
    (result,) = search.search_all(runs, [lattice])
    return result.paths


@pytest.mark.slow
def test_all_histories_give_the_exact_n_best(trained, random, monkeypatch):
    monkeypatch.setattr(sentence_scores, "BLOCK", 8)
    monkeypatch.setattr(lattice_rescoring, "INITIAL_SLOTS", 16)  # has to grow
    run = zoo.load(trained)
    for _ in range(3):
        lattice = random_lattice(random)
        expected = by_hand(run, lattice, 0.8, 0.6, 0.3)
        assert len(expected) > 5
        paths = searched(LatticeSearch((0.8,), 0.6, 0.3, nbest=5), run, lattice)
        best = sorted(expected.items(), key=lambda item: -item[1])[:5]
        assert [path.words for path in paths] == [words for words, _ in best]
        np.testing.assert_allclose([path.score for path in paths], [s for _, s in best], rtol=1e-5)
        texts = [list(path.words) for path in paths]
        np.testing.assert_allclose(
            [path.log_probs[0] for path in paths], sentence_log_probs(run, texts), rtol=1e-5
        )
        for path in paths:
            parts = [*path.parts, len(path.words), path.log_probs[0]]
            weights = [1, 0.6, 0, lattice.word_penalty + 0.3, 0.8]
            np.testing.assert_allclose(np.dot(weights, parts), path.score, rtol=1e-5)
        # As many words as a path can have are all; fewer, or a beam, find a path that is there.
        for settings in ({"history": 5}, {"history": 1}, {"beam": 1.0}):
            (pruned,) = searched(LatticeSearch((0.8,), 0.6, 0.3, **settings), run, lattice)
            assert pruned.score <= best[0][1] + 1e-4
            if settings == {"history": 5}:
                assert pruned.words == best[0][0]
            assert pruned.words in expected


def without_lines(lattice):
    links = tuple(dataclasses.replace(link, line=0) for link in lattice.links)
    return dataclasses.replace(lattice, links=links)


@pytest.mark.parametrize("history", [*slow(None, 1), 2])
def test_lattices_are_written_with_new_scores_and_read_back(trained, random, tmp_path, history):
    run = zoo.load(trained)
    lattice = random_lattice(random)
    search = LatticeSearch((0.8,), 0.6, 0.3, history=history)
    (result,) = search.search_all([run], [lattice], expand=True)
    expanded = result.lattice
    # The best path by the lattice's own scores is the search's, and has its score.
    expanded_scores = by_hand(run, expanded, 0, 1, 0)
    best = max(expanded_scores, key=expanded_scores.get)
    assert best == result.paths[0].words
    np.testing.assert_allclose(expanded_scores[best], result.paths[0].score, rtol=1e-6)
    if history is None:  # every path has its exact score
        expected = by_hand(run, lattice, 0.8, 0.6, 0.3)
        assert expanded_scores.keys() == expected.keys()
        np.testing.assert_allclose(
            [expanded_scores[words] for words in expected], [*expected.values()], rtol=1e-5
        )
    (tmp_path / "l.slf").write_text("".join(lattices.slf_lines(expanded)), encoding="utf-8")
    (slf_lattice,) = read_lattices(str(tmp_path / "l.slf"))
    assert without_lines(slf_lattice) == without_lines(expanded)
    (tmp_path / "l.txt").write_text("".join(lattices.kaldi_lines(expanded)) * 1, encoding="utf-8")
    (kaldi_lattice,) = read_lattices(str(tmp_path / "l.txt"))
    assert (kaldi_lattice.id, links_of(kaldi_lattice)) == (expanded.id, links_of(expanded))
    kaldi_scores = by_hand(run, kaldi_lattice, 0, 1, 0)
    np.testing.assert_allclose(
        [kaldi_scores[words] for words in expanded_scores], [*expanded_scores.values()], rtol=1e-9
    )
    (tmp_path / "l.txt").write_text("".join(lattices.kaldi_lines(kaldi_lattice)), encoding="utf-8")
    assert [without_lines(x) for x in read_lattices(str(tmp_path / "l.txt"))] == [
        without_lines(kaldi_lattice)
    ]


def test_words_that_need_quotation_marks(tmp_path):
    words = ['"', "New York", "\\", "l'été", 'a"b', "=", "<unk>", "'cause", "c:\\a"]
    links = tuple(Link(n, n + 1, word, -n, 0.5, 0) for n, word in enumerate(words))
    lattice = Lattice('the "first" one', len(links) + 1, links)
    (tmp_path / "l.slf").write_text("".join(lattices.slf_lines(lattice)), encoding="utf-8")
    (read_lattice,) = read_lattices(str(tmp_path / "l.slf"))
    assert without_lines(read_lattice) == without_lines(lattice)
    with pytest.raises(UserError, match="cannot hold 'the \"first\" one' in the lattice"):
        [*lattices.kaldi_lines(lattice)]


def test_lattices_side_by_side_are_those_one_by_one_and_compile_nothing(trained, random):
    run = zoo.load(trained)
    lattices = [
        dataclasses.replace(random_lattice(random, nodes), id=str(nodes)) for nodes in (3, 9, 6, 2)
    ]
    search = LatticeSearch((0.8,), history=2, nbest=2)
    programs = lattice_rescoring.compile_search_steps(run.experiment.language_model)
    for program in programs:
        program.clear_cache()
    single = [searched(search, run, lattice) for lattice in lattices]
    compiled = [program._cache_size() for program in programs]
    together = [*search.search_all([run], iter(lattices), batch_size=3)]
    assert [result.id for result in together] == ["3", "9", "6", "2"]
    for result, paths in zip(together, single, strict=True):
        assert [path.words for path in result.paths] == [path.words for path in paths]
        np.testing.assert_allclose(
            [path.score for path in result.paths], [path.score for path in paths], rtol=1e-5
        )
    further_lattices = [random_lattice(random, nodes) for nodes in (4, 7, 8)]
    for lattice in further_lattices:
        searched(search, run, lattice)
    # One program for each of two sizes of blocks, of which the small one may be all there is.
    assert [program._cache_size() for program in programs] == compiled
    assert all(count <= 2 for count in compiled)


def chain_of_choices(random, positions, words):
    """A lattice of words ** positions paths."""
    links = [
        Link(n, n + 1, word, *random.normal(size=2).tolist(), 0)
        for n in range(positions)
        for word in words
    ]
    return Lattice("choices", positions + 1, tuple(links))


def test_a_million_paths_end_in_bounded_time_and_memory(trained, random):
    """4 ** 10 paths, of which no two are merged by their words."""
    run = zoo.load(trained)
    lattice = chain_of_choices(random, 10, ["le", "les", "chat", "chats"])
    (bounded,) = LatticeSearch((0.5,), max_hypotheses=20).search_all([run], [lattice])
    assert bounded.dropped == (4 * 16 - 20) + 7 * (4 * 20 - 20)
    (pruned,) = LatticeSearch((0.5,), max_hypotheses=20, look_ahead=3.0).search_all(
        [run], [lattice]
    )
    assert pruned.dropped < bounded.dropped
    for result in (bounded.paths[0], pruned.paths[0]):
        assert len(result.words) == 10
    # The heuristic is exact for a model without weight: a beam of next to nothing finds the best.
    (best,) = searched(LatticeSearch((0.0,), look_ahead=1e-6, max_hypotheses=None), run, lattice)
    by_acoustics = sum(
        max(x.acoustic + x.language for x in lattice.links if x.start == n) for n in range(10)
    )
    np.testing.assert_allclose(best.score, by_acoustics, rtol=1e-6)


def test_a_level_of_many_nodes_is_bounded_too(trained, random):
    """12 nodes side by side, of 4 paths each, after one level: 48 hypotheses would be extended."""
    run = zoo.load(trained)
    words = ["le", "les", "chat", "chats"]
    links = [Link(0, n, word, *random.normal(size=2), 0) for n in range(1, 13) for word in words]
    links += [Link(n, 13, "le", *random.normal(size=2), 0) for n in range(1, 13)]
    lattice = Lattice("wide", 14, tuple(links))
    (result,) = LatticeSearch((0.0,), max_hypotheses=2, nbest=9).search_all([run], [lattice])
    # 2 of each node stay, then the best 20 of these 24; at the last node the best 2 of 4 texts.
    assert result.dropped == 12 * 2 + 4 + 2
    # By hand, without the model's weight: a path's score is the sum of its links'.
    score = {id(link): link.acoustic + link.language for link in links}
    onwards = {link.start: score[id(link)] for link in links if link.start}
    best = max(score[id(link)] + onwards[link.end] for link in links if not link.start)
    np.testing.assert_allclose(result.paths[0].score, best, rtol=1e-6)


def test_transition_ids_stay_at_their_arcs(trained, tmp_path, call):
    """Of one label behind the costs, of two labels the first; 0 is none."""
    text = "u\n0 1 le 1,2,5_6\n1 2 9 chat 0.5,3\n2 3 0 <eps> 0,0\n3 0.25,0.5,7\n\n"
    (tmp_path / "l.txt").write_text(text, encoding="utf-8")
    code, out, _ = call("lattices", trained, "l.txt", "--kaldi", "--weight", 0)
    assert code == 0 and out.splitlines()[1:5] == [
        *("0 1 le 1.0,2.0,5_6", "1 2 chat 0.5,3.0,9", "2 3 <eps> 0.0,0.0,"),
        "3 4 <eps> 0.25,0.5,7",
    ]
    (lattice,) = read(out, tmp_path)
    assert [link.alignment for link in lattice.links][:4] == ["5_6", "9", "", "7"]


def test_large_lattices_and_unknown_words_are_told(trained, tmp_path, call, monkeypatch):
    monkeypatch.setattr(lattice_rescoring, "LARGE_LATTICE", 2)
    (tmp_path / "l.txt").write_text("u\n0 1 le 1,2\n1 2 xyzzy 1,2\n2\n\n", encoding="utf-8")
    errors = call("lattices", trained, "l.txt")[2]
    name = pathlib.Path(trained).name
    assert errors.startswith(f"searching the lattices under {name} ...\n")
    note = (
        "note: the search of u, 4 nodes and 3 links, may take minutes: give --history 2 --beam 30"
    )
    assert note in errors and "are unknown to the run (50.00%): 'xyzzy'\n" in errors
    assert "may take minutes" not in call("lattices", trained, "l.txt", "--history", 1)[2]


def second_of(run):
    """A run with other parameters of the same model."""
    params = jax.tree.map(lambda x: -0.7 * x, run.params)
    return dataclasses.replace(run, params=params)


def test_several_models_count_by_their_weights(trained, random):
    run = zoo.load(trained)
    second_run = second_of(run)
    lattice = random_lattice(random)
    runs = run, second_run
    paths = searched(LatticeSearch((0.8, 0.3), 0.6, nbest=4), *runs, lattice)
    first_scores = by_hand(run, lattice, 0.8, 0.6, 0)
    texts = [list(path.words) for path in paths]
    log_probs = np.stack(
        [sentence_log_probs(run, texts), sentence_log_probs(second_run, texts)], axis=1
    )
    np.testing.assert_allclose([path.log_probs for path in paths], log_probs, rtol=1e-5)
    texts_by_hand = [*first_scores]
    second_log_probs = dict(
        zip(texts_by_hand, sentence_log_probs(second_run, [*map(list, texts_by_hand)]), strict=True)
    )
    expected = sorted(
        (first_scores[words] + 0.3 * second_log_probs[words] for words in texts_by_hand),
        reverse=True,
    )[:4]
    np.testing.assert_allclose([path.score for path in paths], expected, rtol=1e-5)
    # The mean of the two, word by word.
    shares = (0.25, 0.75)
    (path,) = searched(LatticeSearch((0.8,), shares=shares), *runs, lattice)
    ids = {"one": run, "two": second_run}
    mean = Interpolation({"one": 0.25, "two": 0.75}).score(ids, [list(path.words)], "a path")
    np.testing.assert_allclose(path.log_probs, mean, rtol=1e-5)
    np.testing.assert_allclose(path.score, np.sum(path.parts) + 0.8 * mean[0], rtol=1e-5)


def test_posteriors_of_links_count_by_their_weight(trained, tmp_path):
    text = ON_NODES.replace("a=-2", "a=-2 p=0.5").replace("a=-1", "a=-1 p=0")
    (lattice,) = read(text, tmp_path)
    assert [link.log_posterior for link in lattice.links] == [math.log(0.5), math.log(1e-6)]
    (path,) = searched(LatticeSearch((0.0,), posterior_weight=2.0), zoo.load(trained), lattice)
    posterior = math.log(0.5) + math.log(1e-6)
    np.testing.assert_allclose(path.parts, [-3, 0, posterior])
    np.testing.assert_allclose(path.score, -3 + 2 * posterior)
    weighted = LatticeSearch((0.0,), posterior_weight=2.0, acoustic_weight=0.5)
    (expanded,) = weighted.search_all([zoo.load(trained)], [lattice], expand=True)
    np.testing.assert_allclose(expanded.paths[0].score, -1.5 + 2 * posterior)
    links = expanded.lattice.links
    scale = expanded.lattice.acoustic_scale
    np.testing.assert_allclose(
        sum(scale * link.acoustic + link.language for link in links), -1.5 + 2 * posterior
    )


def test_the_command(trained, tmp_path, call):
    (tmp_path / "l.txt").write_text(KALDI, encoding="utf-8")

    code, out, _ = call("lattices", trained, "l.txt")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == ["utt-1", "utt-2"]
    assert out.splitlines()[1] == "utt-2 les"
    assert call("lattices", trained, "l.txt", "--nbest", 3, "--output", "n.txt")[0] == 0
    lines = (tmp_path / "n.txt").read_text().splitlines()
    assert len(lines) == 3 and lines[0].startswith("utt-1 ||| le")
    shutil.copytree(trained, "other")
    names = pathlib.Path(trained).name, "other"
    listed = ("--nbest", 1, "--output", "n.txt")
    assert call("lattices", trained, "l.txt", "--run", "other", *listed)[0] == 0
    line = rf"acoustic= .* {names[0]}= (\S+) other= (\S+) "
    features = re.search(line, pathlib.Path("n.txt").read_text())
    assert features and features[1] == features[2]
    shares = {"interpolation": {names[0]: 0.5, "other": 0.5}}
    pathlib.Path("mean").write_text(json.dumps(shares))
    interpolation = ("--interpolation", "mean", "--weight", 2)
    code, out, _ = call(
        "lattices", trained, "l.txt", "--run", "other", *interpolation, "--nbest", 1
    )
    assert code == 0 and " interpolated= " in out
    pathlib.Path("mean").write_text('{"interpolation": {"other": 0.5, "none": 0.5}}')
    name = zoo.load(trained).path.name
    pathlib.Path("one").write_text(f'{{"interpolation": {{"{name}": 1}}}}')
    assert call("lattices", trained, "none.txt")[0] == 2
    code, out, _ = call("lattices", trained, "l.txt", "--kaldi", "--slf", ".")
    assert code == 0 and out.startswith("utt-1\n0 1 le ") and out.count("\n\n") == 2
    assert call("lattices", trained, "l.txt", "--slf", "new")[0] == 0
    for name in ("rec.1", "rec.2"):  # lattices without names of their own
        with gzip.open("utt-1.slf.gz", "rt") as file:
            text = file.read().replace("UTTERANCE=utt-1\n", "")
        pathlib.Path(f"{name}.slf").write_text(text)
    code, out, _ = call("lattices", trained, "rec.1.slf", "rec.2.slf")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == ["rec.1", "rec.2"]
    assert (
        pathlib.Path("new/utt-1.slf.gz").read_bytes() == pathlib.Path("utt-1.slf.gz").read_bytes()
    )
    (first,) = read_lattices("utt-1.slf.gz")
    assert (first.id, first.words) == ("utt-1", ["le", "chat"])
    for words, message in (
        (("l.txt", "l.txt"), "l.txt: the lattice 'utt-1' was read from l.txt already"),
        (("l.txt", "--kaldi", "--nbest", 2), "--kaldi writes lattices and --nbest lists"),
        (("l.txt", "--slf", "none/new"), "the lattices none/new cannot be written"),
        (("l.txt", "--slf", "l.txt"), "the lattices l.txt/a.slf.gz cannot be written"),
        (("l.txt", "--run", trained), "are one folder: give each run once"),
        (
            ("l.txt", "--run", "acoustic", "--nbest", 2),
            "the model 'acoustic' has the name of another",
        ),
        (("l.txt", "--run", "other", "--weight", 1), "there are 1 weights for 2 models: give 2"),
        (("l.txt", "--interpolation", "mean"), "mean has weights of 'other', 'none', and the runs"),
        (
            ("l.txt", "--interpolation", "one", *("--weight", 1) * 2),
            "for the mean of the models: give 1",
        ),
    ):
        code, out, errors = call("lattices", trained, *words)
        assert (code, out) == (2, "") and message in errors


NUMBERED = "utt-1\n0 1 1 2,3,\n0 2 2 1,3,\n1 3 3 1,2,\n2 3 3 1,2,\n3 0,0,\n\n"


def test_numbered_words_are_refused_or_spelled(trained, tmp_path, call):
    (tmp_path / "lat.txt").write_text(NUMBERED)
    (tmp_path / "words.txt").write_text("<eps> 0\nle 1\nspeak 2\nme 3\n")
    code, out, errors = call("lattices", trained, "lat.txt")
    assert (code, out) == (2, "")
    assert errors.splitlines()[1].startswith(
        "error: lat.txt, line 2: the words are numbers, as Kaldi's lattice-"
    )
    assert "give --words words.txt, or spell them by utils/int2sym.pl -f 3 words.txt" in errors
    line = ("lattices", trained, "lat.txt", "--words", "words.txt")
    code, out, errors = call(*line, "--weight", 0)
    assert (code, out) == (0, "utt-1 speak me\n")
    assert "2 of the 3 words of the lattices, each counted once," in errors
    (tmp_path / "lat.txt").write_text(NUMBERED.replace("0 1 1", "0 1 9"))
    assert "line 2: '9' is not a number in the table of symbols" in call(*line)[2]
    (tmp_path / "words.txt").write_text("le 1\nles 1\n")
    assert "words.txt, line 2: 'les 1' is not a word and a number of its own" in call(*line)[2]
    (tmp_path / "words.txt").write_text("le 1\n")
    (tmp_path / "lat.txt").write_text(ON_NODES)
    assert "lat.txt is in SLF, whose words have no numbers" in call(*line)[2]


def test_spelled_lattices_may_have_numbers_and_unknown_words_alone(trained, tmp_path, call):
    (tmp_path / "lat.txt").write_text("u\n0 1 2 1,1,\n1\n\nv\n0 1 zwei 1,1,\n1\n")
    code, out, errors = call("lattices", trained, "lat.txt")
    assert (code, out) == (0, "u 2\nv zwei\n")
    assert "all 2 words of the lattices, each counted once," in errors


POSTERIORS = """N=4 L=4 wdpenalty=-0.5
I=0
I=1
I=2
I=3
J=0 S=0 E=1 W=le a=-30 p=0.25
J=1 S=0 E=1 W=les a=-10 p=0.75
J=2 S=1 E=2 W=chat a=-20 p=0.5
J=3 S=2 E=3 W=!NULL a=0 p=1
"""


def test_lists_of_lattices_are_tuned_and_lattices_read_the_weights(trained, tmp_path, call):
    """By acoustics and posteriors `les chat` is first; the references want `le chat`."""
    for name in ("u1", "u2"):
        (tmp_path / f"{name}.slf").write_text(POSTERIORS)
    (tmp_path / "r").write_text("u1 le chat\nu2 le chat\n")
    files = ("lattices", trained, "u1.slf", "u2.slf")
    code, out, errors = call(*files, "--nbest", 2, "--output", "n")
    assert (code, out) == (0, "")
    assert errors.count("u1.slf has no language scores l=, and its posteriors p=") == 1
    assert "u2.slf" not in errors
    first = (tmp_path / "n").read_text().splitlines()[0]
    assert first.startswith("u1 ||| les chat ||| acoustic= -30 language= 0 posterior= -0.98082")
    assert " words= 2 lm= -" in first
    assert call("tune", "n", "r", "--metric", "wer", "--weights", "w")[0] == 0
    weights = json.loads((tmp_path / "w").read_text())["weights"]
    assert [*weights] == ["acoustic", "language", "posterior", "words", "lm"]
    best = "u1 le chat\nu2 le chat\n"
    assert call("apply", "n", "w", "--best") == (0, best, "")
    code, out, errors = call(*files, "--weights", "w")
    assert (code, out) == (0, best) and "posteriors" not in errors  # the note is not due any more
    # The header's penalty is in the weight of words: the two commands give one score.
    applied, searched = call("apply", "n", "w")[1], call(*files, "--weights", "w", "--nbest", 2)[1]
    applied_scores, searched_scores = (
        np.array([float(text.split()[-1]) for text in output.splitlines()])
        for output in (applied, searched)
    )
    np.testing.assert_allclose(applied_scores, searched_scores, rtol=1e-4)
    code, _, errors = call(*files, "--weights", "w", "--acoustic-weight", 1)
    assert code == 2 and "--weights has all weights: leave out --acoustic-weight" in errors
    (tmp_path / "w").write_text('{"weights": {"acoustic": 1, "lm": 1}}')
    code, _, errors = call(*files, "--weights", "w")
    assert code == 2 and "w: the features do not match the weights; without a weight are" in errors


def test_a_probability_of_0_ends_no_search_whatever_its_weight(trained, tmp_path):
    text = "base=0\nN=2 L=2\nI=0\nI=1\nJ=0 S=0 E=1 W=le a=0 l=1\nJ=1 S=0 E=1 W=chat a=0.5 l=1\n"
    (lattice,) = read(text, tmp_path)
    for settings in ({"acoustic_weight": 0.0}, {"acoustic_weight": -1.0}):
        paths = searched(LatticeSearch(nbest=2, **settings), zoo.load(trained), lattice)
        assert [path.words for path in paths] == [("chat",)]


@pytest.mark.realdata("speech")
@pytest.mark.slow
def test_lattices_of_a_recogniser(trained):
    folder = f"{os.environ['ZOO_DATA']}/speech"
    run = zoo.load(trained)
    for path in (f"{folder}/words_on_links.slf", f"{folder}/dev/lattices/u0001.slf.gz"):
        (lattice,) = read_lattices(path)
        assert lattice.nodes > 10
        paths = searched(LatticeSearch(history=1, nbest=3), run, lattice)
        assert len(paths) == 3
        texts = [list(path.words) for path in paths]
        assert all(a.score >= b.score for a, b in itertools.pairwise(paths))
        if "links" in path:
            assert np.isfinite(sentence_log_probs(run, texts)).all()


SILENT_SLF = """N=2 L=2
I=0
I=1
J=0 S=0 E=1 W=!NULL a=-1 l=0
J=1 S=0 E=1 W=[NOISE] a=-2 l=0
"""


def test_a_lattice_of_silence_gives_an_empty_line(trained, tmp_path, call):
    """Among others, in either form: the batch goes on, and every output has its line."""
    (tmp_path / "l.txt").write_text("utt-0\n0 1 <sil> 1,2\n1\n\n" + KALDI, encoding="utf-8")
    (tmp_path / "s.slf").write_text(SILENT_SLF)

    def lines(*options):
        code, out, _ = call("lattices", trained, "l.txt", "s.slf", *options)
        assert code == 0
        return out.splitlines()

    assert [line for line in lines() if " " not in line] == ["utt-0", "s"]
    first, *_, last = lines("--nbest", 1)
    assert first.startswith(
        "utt-0 |||  ||| acoustic= -2 language= -1 posterior= 0 words= 0 lm= "
    ) and last.startswith("s |||  ||| acoustic= -1 ")
    assert lines("--kaldi", "--slf", ".", "--history", 1)[:2] == ["utt-0", "0 1 <eps> 1.0,2.0,"]
    (lattice,) = read_lattices("s.slf.gz")
    assert lattice.words == []
    run = zoo.load(trained)
    (path,) = searched(LatticeSearch((0.5,)), run, next(read_lattices("s.slf")))
    np.testing.assert_allclose(
        path.score, -1 + 0.5 * run.score([[], ["le"]])[0].log_prob, rtol=1e-6
    )


KALDI_STATES = """utt-1
0 1 le 1,2
0 2 les 1,2
1 3 chat 1,2
2 3 chats 1,2
3
"""


@pytest.mark.parametrize("name", ["utt-2", "0", "1", "2", "3", "7"])
def test_two_lattices_without_a_blank_line_are_not_one(name, tmp_path):
    """Whatever the second is called: a number may be that of a state."""
    second = KALDI_STATES.replace("utt-1", name)
    assert [lattice.id for lattice in read(KALDI_STATES + "\n" + second, tmp_path)] == [
        "utt-1",
        name,
    ]
    with pytest.raises(UserError, match=r"l.slf, line [78]: .* blank line|line 7: .* final twice"):
        read(KALDI_STATES + second, tmp_path)


def test_many_lattices_are_read_one_at_a_time(tmp_path):
    """A line that is wrong far behind does not keep those before it from being read."""
    text = "".join(f"utt-{n}\n0 1 le 1,2\n1\n\n" for n in range(400)) + "utt-400\nx\n"
    (tmp_path / "l.txt").write_text(text)
    lattices = read_lattices(str(tmp_path / "l.txt"))
    assert [lattice.id for lattice in itertools.islice(lattices, 400)] == [
        f"utt-{n}" for n in range(400)
    ]
    with pytest.raises(UserError, match="line 1601: 'utt-400' is neither the name of a lattice"):
        next(lattices)


def test_a_freed_slot_is_in_no_entry():
    """Another state may be written to it, and an entry would take that for its own."""
    states = lattice_rescoring.ModelStates([])
    states.advance([(0, ((),))])
    first = states.slots[0, ((),)]
    states.advance([(first, ((),))])
    second = states.slots[first, ((),)]
    states.retain([second])
    assert states.slots == {} and states.free[-1] == first
    states.advance([(0, ((),))])
    assert states.slots == {(0, ((),)): first}
