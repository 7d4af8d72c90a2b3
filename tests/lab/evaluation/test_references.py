"""References of lists and texts with a hypothesis a line: which part of a line is the id."""

import sys

import pytest

from zoo import __main__ as commands
from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.lab.evaluation import references
from zoo.lab.evaluation.references import read_references

MOSES = """0 ||| le chat  dort ||| LM0= -1 TM0= -2 -3.5 ||| -4 ||| 0-0 1-1
0 |||  ||| LM0= -9 TM0= -9 -9 ||| -9 ||| 0-0
7 ||| le chien ||| LM0= 1e0 TM0= 0 0 ||| 1 |||
"""


def write(folder, text, name="lists"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("blank", [" ", "\t", ""])
def test_hypotheses_and_references_of_trn_have_their_ids_at_the_end(blank, tmp_path):
    lines = [f"[noise] d e f{blank}(u-1) \n", f"a  ( uh) b{blank}(u-2)\n", "(u-3)\n"]
    lines = [";; a system, of (u-1)\n", *lines, ";; its end\n"]
    right = {"u-1": "[noise] d e f", "u-2": "a ( uh) b", "u-3": ""}
    assert references.read_best(write(tmp_path, "".join(lines))) == right
    path = write(tmp_path, "".join([*reversed(lines), "\n"]), "refs")
    assert read_references(path, [*right]) == right
    path = write(tmp_path, f"a b{blank}(001)\nc{blank}(000)\n", "refs")
    assert read_references(path, ["0", "1"]) == {"0": "c", "1": "a b"}
    # Lines that end with a noise in parentheses begin with their ids.
    path = write(tmp_path, "u1 a (uh)\nu2 b (noise)\n", "refs")
    assert read_references(path, ["u1", "u2"]) == {"u1": "a (uh)", "u2": "b (noise)"}


def test_pocketsphinx_writes_a_score_behind_the_id(tmp_path):
    best = {"u-1": "the cat", "u-2": ""}
    path = write(tmp_path, "the cat (u-1 -1234)\n(u-2 -56)\n", "hyp")
    assert references.read_best(path) == read_references(path, ["u-1", "u-2"]) == best


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u1 1 0.00 0.30 the 0.9\nu1 1 0.30 0.1 cat 1\n", "file is CTM, which is not read"),
        ("u1 A anna 0.0 2.5 <o> the\nu2 A anna 0.0 2 a b\n", "file is STM, which is not read"),
        ("H-0\t-0.5\ta b\n", "line 1: several tabs"),
        ("a b (u1)\na c (u1)\n", "line 1: the id 'a' may be a word: write an id, a tab and"),
        ("u1 b\nu1 c\n", "line 2: the id 'u1' comes twice: write an id, a tab and"),
        ("the cat sat\na dog ran\n", "line 1: the id 'the' may be a word"),
        ("-9.5 -3.25 2 the cat\n-9.75 -4 1 cat\n", "file is a list of SRILM, which is not read"),
        ('#!MLF!#\n"*/u1.rec"\nthe\n.\n', "file is a file of labels, which is not read"),
        ("{ a / b } (u1)\n", "line 1: it has alternatives { / }"),
        ("a (u1)\nb (%hes) c (u2)\n", r"line 2: '\(%hes\)' is a word that sclite lets hypotheses"),
        ("\n", "file has no hypotheses"),
    ],
)
def test_other_formats_of_hypotheses_are_refused_by_name(text, message, tmp_path):
    with pytest.raises(UserError, match=message):
        references.read_best(write(tmp_path, text, "file"))


def test_references_refuse_words_that_may_be_left_out(tmp_path):
    path = write(tmp_path, "a (u1)\nb (uh) (u2)\n", "refs")
    with pytest.raises(UserError, match=r"refs, line 2: '\(uh\)' is a word that sclite lets"):
        read_references(path, ["u1", "u2"])


def test_references_without_words_are_refused(tmp_path):
    assert read_references(write(tmp_path, "u1\nu2 a\n"), ["u1", "u2"]) == {"u1": "", "u2": "a"}
    with pytest.raises(UserError, match="lists has no words, so errors have no rate: give"):
        read_references(write(tmp_path, "u1\nu2\n"), ["u1", "u2"])


def test_digits_that_are_spoken_are_no_times(tmp_path):
    path = write(tmp_path, "u1 7 4 2 9 1\nu2 1 3 3 5 0\n")
    assert references.read_best(path) == {"u1": "7 4 2 9 1", "u2": "1 3 3 5 0"}


def test_plain_references_belong_to_the_lists_that_their_lines_count(tmp_path):
    plain = write(tmp_path, "a b\nc\n\n", "refs")
    assert read_references(plain, ["0", "1", "2"]) == {"0": "a b", "1": "c", "2": ""}
    assert read_references(plain, ["2", "0", "01"]) == {"2": "", "0": "a b", "01": "c"}
    # A number that begins one sentence of ten is a word, and not an id.
    sentences = ["a b", "c", "5 cats", *"defghij"]
    plain = write(tmp_path, "\n".join(sentences), "refs")
    ids = [str(number) for number in range(10)]
    assert read_references(plain, ids) == dict(zip(ids, sentences, strict=True))


NAMES = [f"{first}{second}" for first in "abcdef" for second in "uvwxyz"]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Well-known men", "the cat", "a dog"],
        ["anna saw it", "bert saw it", "carl saw it"],
        [f"{name} the cat" for name in NAMES[:29]],
        [*(f"{name} the cat" for name in NAMES), "au a dog"],
        NAMES,
        [f"猫{name} 犬" for name in NAMES],
        [f"A- {name}" for name in "abc"],
        [f"a-b {name}" for name in "abc"],
    ],
)
def test_a_text_whose_lines_begin_with_ordinary_words_is_read_by_position(sentences, tmp_path):
    plain = write(tmp_path, "\n".join(sentences), "refs")
    ids = [str(number) for number in range(len(sentences))]
    assert read_references(plain, ids) == dict(zip(ids, sentences, strict=True))


@pytest.mark.parametrize(
    "lines",
    [
        ["a_aa the cat", "a_ab a dog", "a_ac the hens"],
        ["alice-x the cat", "bob-x a dog", "carl_x the hens"],
        ["x/alice the cat", "x:bob a dog", "carl.wav the hens", "call7 cows"],
        [f"{name} the cat" for name in NAMES],
        [f"{name} the cat" for name in reversed(NAMES[:30])],
        [*(f"{name} the cat" for name in NAMES), "gu", "gv"],  # nothing was spoken in some
    ],
)
def test_ids_of_other_lists_without_digits_are_not_read_by_position(lines, tmp_path):
    path = write(tmp_path, "\n".join(lines), "refs")
    message = f"line 1: all lines begin with possible ids, such as '{lines[0].split()[0]}'"
    with pytest.raises(UserError, match=message):
        read_references(path, [str(number) for number in range(len(lines))])


@pytest.mark.parametrize("blank", ["\t", " "])
@pytest.mark.parametrize(
    "ids", [("u1", "u2"), ("7", "40"), ("0", "1"), ("007", "040"), ("x 1", "x 2")]
)
def test_references_go_by_the_ids_that_their_lines_begin_with(ids, blank, tmp_path):
    if blank == " " and " " in ids[0]:
        return  # where such an id ends, a tab alone can tell
    first, second = ids
    path = write(tmp_path, f"{second}{blank}c d\n{first}{blank}a  b\n", "refs")
    assert read_references(path, ids) == {first: "a b", second: "c d"}
    path = write(tmp_path, f"{second}\n{first}{blank}7 a\n", "refs")
    assert read_references(path, ids) == {first: "7 a", second: ""}


def test_references_with_ids_go_by_them_beside_the_lists_of_any_form(tmp_path, monkeypatch, capsys):
    """Lists of Moses with the references of Kaldi, in another order: nothing is wrong with them."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "u1 ||| a b ||| x= 1 ||| 1\nu2 ||| c d ||| x= 1 ||| 1\n")
    write(tmp_path, "u2 c d\nu1 a b\n", "refs")
    line = ["zoo", "rescore", "tune", "lists", "refs", "--metric", "wer"]
    monkeypatch.setattr(sys, "argv", line)
    assert program.run(commands.main) == 0
    row = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("tuned on"))
    assert row.count("0.00 [0.00, 0.00]") == 3
