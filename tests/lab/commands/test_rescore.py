"""zoo rescore: tuned, applied, and what is added to lists."""

import json
import sys

import pytest

from zoo import __main__ as commands
from zoo.errors import UserError
from zoo.lab.commands import program, rescore
from zoo.lab.evaluation import nbest
from zoo.lab.rescoring import model_features
from zoo.lab.rescoring.reranking import merge_lists

# The feature "good" is right where the score is wrong; "bad" is the score.
LISTS = """0 ||| un chat dort . ||| good= 0 bad= 3 ||| 3
0 ||| le chat dort . ||| good= 1 bad= 2 ||| 2
0 |||  ||| good= -1 bad= 1 ||| 1
1 ||| le chien voit . ||| good= 2 bad= 0 ||| 0
1 ||| chien voit . ||| good= 0 bad= -1 ||| -1
2 ||| les chats . ||| good= 0 bad= 5 ||| 5
2 ||| les chats dorment . ||| good= 1 bad= 1 ||| 1
"""
REFERENCES = "le chat dort .\nle chien voit .\nles chats dorment .\n"

ARPA = """\\data\\
ngram 1=4
ngram 2=1

\\1-grams:
-1 <unk>
-99 <s> -0.5
-0.7 le -0.3
-0.6 </s>

\\2-grams:
-0.2 <s> le

\\end\\
"""


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """call(*arguments) -> (exit code, what was printed, errors), beside the lists."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev.nbest").write_text(LISTS)
    (tmp_path / "dev.ref").write_text(REFERENCES)

    def calling(*arguments):
        monkeypatch.setattr(sys, "argv", ["zoo", "rescore", *map(str, arguments)])
        code = program.run(commands.main)
        return code, *capsys.readouterr()

    return calling


def lists_of(text, folder):
    (folder / "some").write_text(text)
    return [*nbest.read_lists(str(folder / "some"))[1]]


@pytest.mark.parametrize("method", ["mira", "mert"])
@pytest.mark.parametrize(("metric", "untuned"), [("wer", 16.67), ("chrf", None), ("bleu", None)])
def test_tuned_weights_choose_what_is_right(call, tmp_path, method, metric, untuned):
    line = ("tune", "dev.nbest", "dev.ref", "--metric", metric, "--method", method)
    code, printed, errors = call(*line, "--weights", "w.json")
    assert (code, errors) == (0, "")
    best = "0.00 " if metric == "wer" else "100.00 "
    header, row, *weights = printed.splitlines()
    assert header.split()[-5:] == ["lists", "untuned", "tuned", "oracle", "p"]
    assert row.startswith("tuned on") and row.count(best) >= 2
    if untuned:
        assert f"{untuned:.2f} [" in row
    weights_file = json.loads((tmp_path / "w.json").read_text())
    assert weights == [f"{name}= {weight!r}" for name, weight in weights_file["weights"].items()]
    assert weights_file["made"]["figures"]["tuned on"]["lists"] == 3
    before = (tmp_path / "w.json").read_bytes()
    assert call(*line, "--weights", "w.json")[1] == printed
    assert (tmp_path / "w.json").read_bytes() == before
    best = "".join(f"{n} {words}\n" for n, words in enumerate(REFERENCES.splitlines()))
    assert call("apply", "dev.nbest", "w.json", "--best") == (0, best, "")


def test_lists_are_written_in_their_new_order(call, tmp_path):
    (tmp_path / "w.json").write_text('{"weights": {"good": 1, "bad": 0}}')
    code, printed, _ = call("apply", "dev.nbest", "w.json", "--output", "new.nbest")
    assert (code, printed) == (0, "")
    assert (tmp_path / "new.nbest").read_text().splitlines()[:3] == [
        "0 ||| le chat dort . ||| good= 1 bad= 2 ||| 1",
        "0 ||| un chat dort . ||| good= 0 bad= 3 ||| 0",
        "0 |||  ||| good= -1 bad= 1 ||| -1",
    ]
    _, lists = nbest.read_lists("new.nbest")
    assert [nbest_list.id for nbest_list in lists] == ["0", "1", "2"]
    (tmp_path / "l.json").write_text('{"id": "x", "input": ["u", "v"], "good": [1, 2]}\n')
    (tmp_path / "w.json").write_text('{"weights": {"good": 1}}')
    _, printed, _ = call("apply", "l.json", "w.json")
    assert json.loads(printed) == {
        "id": "x",
        "hypotheses": [
            {"text": "v", "score": 2.0, "good": 2.0},
            {"text": "u", "score": 1.0, "good": 1.0},
        ],
    }
    (tmp_path / "l.txt").write_text("x-1 u\nx-2 v w\n")
    (tmp_path / "c").write_text("x-1 3\nx-2 2\n")
    assert call("apply", "l.txt", "w.json", "--costs", "good=c", "--best")[1] == "x v w\n"


def test_parts_held_out_and_other_lists_are_judged(call, tmp_path):
    options = ("--test", "dev.nbest", "--test-references", "dev.ref", "--hold-out", 3)
    code, printed, _ = call("tune", "dev.nbest", "dev.ref", *options, "--metric", "wer")
    assert code == 0
    rows = [line.split("  ") for line in printed.splitlines()[:4]]
    assert [row[0] for row in rows] == ["WER %", "tuned on", "held out", "test"]
    assert [next(filter(None, row[1:])).strip() for row in rows[1:]] == ["2", "1", "3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "tune --metric bleu dev.nbest",
            "dev.nbest, line 1: the list '0' has no reference: give a file",
        ),
        ("tune dev.nbest dev.ref dev.ref --metric wer", "WER takes one reference of each list"),
        (
            "tune --metric bleu dev.nbest dev.ref --hold-out 4",
            "--hold-out 4: give at least 2, and at most",
        ),
        (
            "tune --metric bleu dev.nbest dev.ref --folds 4",
            "--folds 4: give at least 2, and at most the number",
        ),
        ("tune --metric bleu dev.nbest dev.ref --costs x", "--costs x: write NAME=FILE"),
        ("tune --metric bleu dev.nbest dev.ref --weights no/w", "the weights"),
        (
            "apply dev.nbest few.json --costs a=x --costs a=y",
            "--costs a=y: the name 'a' comes twice",
        ),
        ("tune --metric bleu dev.ref dev.ref", "are not of n-best lists: write id ||| words"),
        ("apply dev.nbest dev.ref", "dev.ref has no weights (Expecting value: line 1"),
        ("apply dev.nbest few.json", "line 1: the features do not match the weights; without"),
        ("apply dev.nbest bad.json", "bad.json: the weight of 'good' is \"x\": give a finite"),
    ],
)
def test_wrong_lines_are_sentences(call, tmp_path, line, message):
    (tmp_path / "few.json").write_text('{"weights": {"good": 1, "other": 1}}')
    (tmp_path / "bad.json").write_text('{"weights": {"good": "x"}}')
    code, printed, errors = call(*line.split())
    assert (code, printed) == (2, "")
    assert message in errors


def test_the_best_of_other_lists_are_added(tmp_path):
    first = lists_of("0 ||| a ||| x= 1 ||| 5\n0 ||| b ||| x= 3 ||| 4\n", tmp_path)
    second_lists = lists_of(
        "0 ||| c ||| y= 1 ||| 1\n0 ||| a ||| y= 7 ||| 9\n0 ||| d ||| y= 2 ||| 3\n", tmp_path
    )
    (merged,) = merge_lists(first, [second_lists], best=2)
    # Of the other list the two best, of which one is there already; what they lack is the lowest.
    assert [(h.text, h.features, h.score) for h in merged.hypotheses] == [
        ("a", {"x": 1, "y": 2}, 5),
        ("b", {"x": 3, "y": 2}, 4),
        ("d", {"x": 1, "y": 2}, 4),
    ]
    with pytest.raises(UserError, match=r"the list '0' of the first file meets no list of another"):
        [*merge_lists(first, [[]], best=1)]


def test_sparse_features_may_be_missing(call, tmp_path):
    """A feature that a hypothesis lacks is 0, whatever the other hypotheses and files have."""
    lists = "0 ||| a b ||| x= -2 ||| 1\n0 ||| a ||| x= -1 y= 3 ||| 2\n"
    (tmp_path / "l").write_text(lists + lists.replace("0 |||", "1 |||"))
    (tmp_path / "r").write_text("a\na\n")
    (tmp_path / "t").write_text("0 ||| a b ||| x= -2 z= 1 ||| 1\n0 ||| a ||| y= 3 ||| 2\n")
    (tmp_path / "tr").write_text("a\n")
    line = ("tune", "l", "r", "--metric", "wer", "--sparse", "--weights", "w")
    assert call(*line, "--test", "t", "--test-references", "tr")[0] == 0
    weights_file = json.loads((tmp_path / "w").read_text())
    assert [*weights_file["weights"]] == ["x", "y"] and weights_file["added"] == []
    assert weights_file["made"]["figures"]["test"]["lists"] == 1
    (tmp_path / "bare").write_text("0 ||| a b\n0 ||| a\n")  # no features at all
    bare = call(
        "tune",
        "bare",
        "tr",
        "--metric",
        "wer",
        "--sparse",
        "--test",
        "t",
        "--test-references",
        "tr",
    )
    assert bare[0] == 2 and "the hypotheses have no features to tune weights for" in bare[2]
    # Start weights may have other features, too: of these only x is in the lists.
    (tmp_path / "s").write_text('{"weights": {"x": 1, "other": 1}}')
    assert call(*line, "--start", "s")[0] == 0
    (tmp_path / "w").write_text('{"weights": {"x": 1, "y": 1}}')
    (tmp_path / "also").write_text("0 ||| c ||| x= -3 ||| 1\n")
    (tmp_path / "own").write_text(lists)
    _, printed, _ = call("apply", "own", "w", "--sparse", "--also", "also")
    assert printed.splitlines() == [
        "0 ||| a ||| x= -1 y= 3 ||| 2",
        "0 ||| a b ||| x= -2 ||| -2",
        "0 ||| c ||| x= -3 ||| -3",
    ]


def test_an_order_that_no_weights_give_is_said(call, tmp_path):
    """The score says the opposite of the order, which is right."""
    (tmp_path / "l").write_text(
        "0 ||| a b ||| x= 1 ||| 1\n0 ||| a ||| x= 2 ||| 2\n"
        "1 ||| c ||| x= 1 ||| 1\n1 ||| c d ||| x= 0 ||| 0\n"
    )
    (tmp_path / "r").write_text("a b\nc\n")
    code, _, errors = call("tune", "l", "r", "--metric", "wer")
    assert code == 0 and "--rank adds their order as a feature" in errors
    code, printed, errors = call("tune", "l", "r", "--metric", "wer", "--rank")
    # By score the first list has one error, in three words of both references.
    note = "note: in 1 of 2 lists the first hypothesis does not have the highest score: "
    assert (code, errors) == (0, f"{note}untuned 0.00, by score 33.33\n")
    assert printed.splitlines()[1].count("0.00 [0.00, 0.00]") == 3


@pytest.mark.parametrize("method", ["mira", "mert"])
def test_a_constant_feature_has_weight_0(call, tmp_path, method):
    rows = [row.replace("bad=", f"still= {row[0]} bad=") for row in LISTS.splitlines()]
    (tmp_path / "l").write_text("".join(f"{row}\n" for row in rows))
    code, printed, errors = call("tune", "l", "dev.ref", "--metric", "wer", "--method", method)
    note = "note: features constant within lists change no choice: 'still'"
    assert (code, errors) == (0, f"{note}\n")
    assert "still= 0.0\n" in printed and "good= 0.0\n" not in printed


def test_costs_of_kaldi_begin_with_weight_1_each(call, tmp_path):
    """Each cost alone is wrong in a list; their sum is right in both, and the order in none."""
    costs = {"am": (3, 1, 1, 2), "lm": (1, 2, 3, 1)}
    names = ("u-1", "u-2", "v-1", "v-2")
    for name, file_costs in costs.items():
        lines = (
            f"{hypothesis} {cost}\n" for hypothesis, cost in zip(names, file_costs, strict=True)
        )
        (tmp_path / name).write_text("".join(lines))
    (tmp_path / "l").write_text("u-1 a\nu-2 a b\nv-1 c d\nv-2 c\n")
    (tmp_path / "r").write_text("u a b\nv c\n")
    tune_line = ("tune", "l", "r", "--metric", "wer", "--word-count", "--costs", "am=am")
    code, printed, errors = call(*tune_line, "--costs", "lm=lm", "--folds", 2)
    assert code == 0 and "at the start 0.00" in printed
    assert "the first hypothesis does not have the highest score: untuned 66.67" in errors
    assert "all are 0" not in errors


def test_one_list_has_no_interval(call, tmp_path):
    (tmp_path / "l").write_text(LISTS[: LISTS.index("1 ||| le")])
    (tmp_path / "r").write_text("le chat dort .\n")
    code, printed, errors = call("tune", "l", "r", "--metric", "wer")
    assert (code, errors) == (0, "note: one list has no interval: give several lists\n")
    assert printed.splitlines()[1].split()[3:6] == ["25.00", "25.00", "0.00"]
    (tmp_path / "b").write_text("0 un chat dort .\n")
    (tmp_path / "r").write_text("0 le chat dort .\n")
    assert "WER 25.00 %: 1 substitutions" in call("errors", "b", "r")[1]


def test_what_takes_a_while_is_told(call, tmp_path, monkeypatch):
    monkeypatch.setattr(model_features, "PROGRESS_SIZE", 7)
    monkeypatch.setattr(rescore, "PROGRESS_SIZE", 7)
    (tmp_path / "news.arpa").write_text(ARPA)
    tune_line = ("tune", "dev.nbest", "dev.ref", "--metric", "wer", "--arpa", "news.arpa")
    lines = call(*tune_line, "--folds", 3)[2].splitlines()
    assert lines[0] == "scoring 7 hypotheses under news.arpa ..."
    assert lines[1] == "tuning on 3 lists, and on 3 parts of them ..."


def test_a_binary_of_kenlm_is_named(call, tmp_path):
    (tmp_path / "x.bin").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0\0")
    code, _, errors = call("tune", "dev.nbest", "dev.ref", "--metric", "wer", "--arpa", "x.bin")
    message = (
        "error: x.bin is KenLM's binary: give the ARPA file from which build_binary made it.\n"
    )
    assert (code, errors) == (2, message)


def test_weights_of_nothing_are_said(call, tmp_path):
    """Kaldi lists whose order is right, which no cost tells."""
    (tmp_path / "l").write_text("u-1 a b\nu-2 a\n")
    (tmp_path / "c").write_text("u-1 3\nu-2 3\n")
    (tmp_path / "r").write_text("u a b\n")
    code, printed, errors = call("tune", "l", "r", "--metric", "wer", "--costs", "ac=c")
    assert code == 0 and "all are 0: --rank adds their order as a feature" in errors
    assert "ac= 0.0" in printed


@pytest.mark.parametrize("method", ["mira", "mert"])
def test_weights_that_do_not_carry_over_are_not_kept(call, tmp_path, method):
    """By x the second hypothesis is right in two lists and wrong in two: what any three teach is
    wrong of the fourth."""
    rows = [
        f"{n} ||| {words} ||| x= {x} s= {score} ||| {score}\n"
        for n in range(4)
        for words, x, score in (("a b c d", 0, 1), ("a b c", 1, 0))
    ]
    (tmp_path / "l").write_text("".join(rows))
    (tmp_path / "r").write_text("a b c\na b c\na b c d\na b c d\n")
    line = ("tune", "l", "r", "--metric", "wer", "--method", method)
    printed_lines = call(*line, "--folds", 4)[1].splitlines()
    assert printed_lines[2].startswith("cross-validated: "), printed_lines
    assert printed_lines[2].endswith("the weights at the start are kept")
    assert "cross-validated" not in call(*line)[1]
    (tmp_path / "good").write_text(LISTS * 1)
    code, printed, _ = call("tune", "good", "dev.ref", "--metric", "wer", "--folds", 3)
    assert code == 0 and printed.splitlines()[2].endswith("the tuned weights are kept")


@pytest.mark.parametrize(
    ("line", "protected"),
    [
        ("apply dev.nbest w.json --output w.json", "w.json"),
        ("apply dev.nbest w.json --output ./dev.nbest", "dev.nbest"),
        ("tune --metric bleu dev.nbest dev.ref --weights dev.ref", "dev.ref"),
        ("tune --metric bleu dev.nbest dev.ref --costs c=link --weights dev.ref", "dev.ref"),
        ("tune --metric bleu dev.nbest dev.ref --costs c=w.json --weights link", "w.json"),
        ("interpolate dev.ref --run a --run b --weights dev.ref", "dev.ref"),
        ("lattices a dev.ref --output dev.ref", "dev.ref"),
    ],
)
def test_what_is_read_is_not_written_over(call, tmp_path, line, protected):
    (tmp_path / "w.json").write_text('{"weights": {"good": 1.0, "bad": 0.0}}')
    (tmp_path / "link").symlink_to("w.json")
    before = (tmp_path / protected).read_text()
    code, printed, errors = call(*line.split())
    assert (code, printed) == (2, "")
    assert errors.startswith(f"error: {line.split()[-1]} is read, and the ")
    assert (tmp_path / protected).read_text() == before


def test_errors_are_aligned_word_by_word(call, tmp_path):
    """By hand: one of each kind of error; ids with blanks, lists and lines of words alike."""
    (tmp_path / "h").write_text("utt-1 a x c\ns 2\td e f\nutt-3\n")
    (tmp_path / "r").write_text("utt-1\ta b c\ns 2\td f\nutt-3\tg\n")
    code, printed, errors = call("errors", "h", "r")
    assert (code, errors) == (0, "")
    assert printed.split("\n\n") == [
        "utt-1: errors 1, words 3\nREF: a b c\nHYP: a x c\n       S",
        "s 2: errors 1, words 2\nREF: d * f\nHYP: d e f\n       I",
        "utt-3: errors 1, words 1\nREF: g\nHYP: *\n     D",
        "WER 50.00 % [33.33, 100.00]: 1 substitutions, 1 insertions, 1 deletions in 6 words\n"
        "without errors: 0 of 3\nmost frequent: b -> x (1), *** -> e (1), g -> *** (1)\n",
    ]
    assert "without errors: 3 of 3" not in call("errors", "dev.nbest", "dev.ref")[1]
    (tmp_path / "h").write_text("utt-1 a\nutt-1 b\n")
    assert "h, line 2: the id 'utt-1' comes twice" in call("errors", "h", "r")[2]
    (tmp_path / "h").write_text("\n")
    assert "h has no hypotheses: give lists, or lines" in call("errors", "h", "r")[2]


def test_errors_without_a_word_of_a_reference_have_no_rate(call, tmp_path):
    """Every second list has an empty reference, and these alone are held out."""
    (tmp_path / "h").write_text("u1 a\nu2 b\n")
    (tmp_path / "r").write_text("u1\nu2\n")
    code, printed, errors = call("errors", "h", "r")
    assert (code, printed) == (2, "") and "r has no words, so errors have no rate" in errors
    # A bootstrap sample may have u2 alone.
    (tmp_path / "r").write_text("u1 a\nu2\n")
    assert "WER 100.00 %: 0 substitutions, 1 insertions" in call("errors", "h", "r")[1]
    lists = "".join(f"{n} ||| a b ||| x= 1 ||| 1\n{n} ||| a ||| x= 2 ||| 0\n" for n in range(8))
    (tmp_path / "l").write_text(lists)
    (tmp_path / "r").write_text("a\n\n" * 4)
    code, printed, _ = call("tune", "l", "r", "--metric", "wer", "--hold-out", "2")
    held_out = next(line for line in printed.splitlines() if line.startswith("held out"))
    assert code == 0 and held_out.split()[2:6] == ["4", "-", "-", "-"], held_out


def test_ids_stay_as_they_are(call, tmp_path):
    (tmp_path / "w.json").write_text('{"weights": {"x": 1}}')
    for id in ("3", '"3"', '"s 1"'):
        (tmp_path / "l").write_text(f'{{"id": {id}, "hypotheses": [{{"text": "a", "x": 2}}]}}\n')
        assert call("apply", "l", "w.json")[1].startswith(f'{{"id": {id}, ')
    assert call("apply", "l", "w.json", "--best")[1] == "s 1\ta\n"


def test_an_arpa_model_is_a_feature(call, tmp_path):
    """log10 p by hand: a listed bigram, a back-off, an unknown word."""
    (tmp_path / "news.arpa").write_text(ARPA)
    (tmp_path / "l").write_text("0 ||| le ||| x= 0 ||| 0\n0 ||| un ||| x= 0 ||| 0\n")
    (tmp_path / "w.json").write_text('{"weights": {"x": 0, "news.arpa": 1}}')
    line = ("apply", "l", "w.json", "--arpa", "news.arpa")
    code, printed, errors = call(*line)
    assert (
        code == 0 and errors == "1 of the 2 words of the lists are unknown to news.arpa (50.00%)\n"
    )
    scores = [float(line.split()[-1]) for line in printed.splitlines()]
    log_10 = [-0.2 - 0.3 - 0.6, -0.5 - 1 - 0.6]  # <s> le </s>, and <s> <unk> </s>
    assert scores == pytest.approx([value * 2.302585093 for value in log_10])
    counts = '{"weights": {"x": 0, "news.arpa": 0, "news.arpa.unknown": 1}}'
    (tmp_path / "counts.json").write_text(counts)
    counted = call("apply", "l", "counts.json", *line[3:], "--unknown-count")[1]
    assert [line.split()[2] for line in counted.splitlines()] == ["un", "le"]
    assert "are one folder" in call(*line, "--arpa", "./news.arpa")[2]
    assert (
        "--unknown-count counts the unknown words of models"
        in call(*line[:3], "--unknown-count")[2]
    )
    (tmp_path / "words").write_text(ARPA)
    answer = call(*line[:3], "--word-count", "--arpa", "words")
    assert answer[0] == 2 and "the model 'words' has the name of another feature" in answer[2]
    (tmp_path / "news.arpa").write_text(ARPA.replace("</s>", "fin"))
    assert "news.arpa has no </s>, which ends sentences" in call(*line)[2]
