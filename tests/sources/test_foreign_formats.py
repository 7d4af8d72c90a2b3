"""Formats that hold words and are not plain text are refused by their names, and texts are not."""

import pathlib
import re

import pytest

from zoo.errors import UserError
from zoo.lab.rescoring.run_interpolation import read_text
from zoo.sources import foreign_formats, text_formats
from zoo.sources.pairs import Pairs
from zoo.sources.text import Text

FOREIGN = {
    "trn": ["the cat sat (anna-u1)\na dog ran (anna-u2)\n", "the cat (1)\n(2)\n"],
    "a text with ids, as of Kaldi": [
        "1089-134686-0000 the cat\n1089-134686-0001 a dog\n",
        "BAC009S0724W0121 a b\nBAC009S0724W0122 c\n",
    ],
    "a table without known columns": [
        "1\tthe cat\n2\ta dog\n",
        "S-0\tle chat\nT-0\tthe cat\nH-0\t-0.5\ta cat\n",
        "<s>\tthe\tDT\nnew\tcat\tNN\t[x]\n",
    ],
    "CTM": [
        "u1 1 0.00 0.35 the 0.98\nu1 1 .35 0.4 cat 1\n",
        ";; a comment\nu1 A 0 1 the\nu1 A 1 2 cat\n",
    ],
    "STM": [
        ';; CATEGORY "0"\nu1 A anna 0.00 2 <o,f0> the cat\nu2 A bert 0 3.5 a dog\n',
        "u1 A anna 0.5 2\n",
    ],
    "RTTM": ["SPEAKER r1 1 0.00 2.10 <NA> <NA> anna <NA> <NA>\n"],
    "JSON": ['["the cat", "a dog"]\n', '{"x": 1}\n{"x": 2}\n'],
    "an n-best list": ["0 ||| the cat ||| lm= -1 ||| -1\n0 ||| a cat ||| lm= -2 ||| -2\n"],
    "a list of SRILM": ["NBestList1.0\n(-12) the cat\n", "-9.5 -20 2 the cat\n-9 -21.5 0\n"],
    "a lattice": [
        "VERSION=1.1\nN=2 L=1\nI=0\nI=1\nJ=0 S=0 E=1 W=cat\n",
        "N=2 L=1\nI=0\nI=1\nJ=0 S=0 E=1 W=cat\n",
        "u1\n0 1 the 1.5,-2e-3,1_2\n1 0,0,\n\n",
        "u1\n0 1 5 12 1.0,2.0\n1 2 ,\n\n",
        "u1\n0 1 the ,,1_2\n1\n\n",
    ],
    "a file of subtitles": ["1\n00:00:01,000 --> 00:00:03,000\nthe cat\n", "WEBVTT\n\nthe cat\n"],
    "a file of labels": [
        '#!MLF!#\n"*/u1.rec"\n0 35 the -12.5\n.\n',
        'File type = "ooTextFile"\nObject class = "TextGrid"\n',
        "@Begin\n@Languages:\teng\n*CHI:\tthe cat .\n",
    ],
    "an n-gram model": ["\\data\\\nngram 1=2\n"],
    "a table of symbols": ["<eps> 0\nthe 1\n"],
    "an alignment": [
        "# Sentence pair (1) source length 2 target length 2 alignment score : 0.1\nle chat\n",
        "u1 ref the cat\nu1 hyp the\nu1 op C D\nu1 #csid 1 0 0 1\n",
    ],
    "XML or HTML": ['<?xml version="1.0"?>\n<tmx/>\n', '<doc id="1" title="A">\nthe cat\n</doc>\n'],
    "a document": ["%PDF-1.4\n1 0 obj\n", "{\\rtf1\\ansi the cat\\par}\n"],
    "a treebank": ["-DOCSTART- -X- O O\n\nthe DT B-NP O\n", "# sent_id = 1\n1\tthe" + "\t_" * 8],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_formats_are_refused_by_name_in_texts_of_any_use(name, tmp_path):
    for text in FOREIGN[name]:
        path = tmp_path / "file"
        path.write_text(text)
        with pytest.raises(UserError, match=f"file is {name}, which is not read: write the words"):
            Text(train=str(path), validation=str(path)).read("train")
        with pytest.raises(UserError, match=f"file is {name}, which is not read"):
            read_text(str(path))
        for pair in ((path, path.with_name("other")), (path.with_name("other"), path)):
            path.with_name("other").write_text(re.sub(r"\S.*", "a b", text))
            paths = tuple(map(str, pair))
            with pytest.raises(UserError, match=f"file is {name}, which is not read"):
                Pairs(train=paths, validation=paths).read("train")
        try:  # what is scored may be a treebank or JSON
            words = [sentence.words for sentence in text_formats.read_tokens(str(path)).sentences]
        except UserError:
            words = []
        assert not words or name in ("a treebank", "JSON")


def test_readers_of_ids_know_the_formats_that_have_them():
    for name in foreign_formats.WITH_IDS:
        for text in FOREIGN[name]:
            foreign_formats.check(text.split("\n"), "file", known=foreign_formats.WITH_IDS)


@pytest.mark.parametrize(
    "text",
    [
        "the cat sat\na dog ran\n",
        "he saw it (uh)\nthey did (laughs)\n",  # no digit is in these ids
        "covid-19 came\ncovid-19 went\n",  # an id comes once
        "covid-19 came\n",
        "F-16 jets flew\nB-52 bombers flew\n",  # two digits are a word's
        "1990 was cold\n1991 was hot\n",
        "u1 7 4 2 9 1\nu2 1 3 3 5 0\n",  # digits that are spoken are no times
        "two ||| bars\nthree ||| bars\n",
        "{ braces } here\n[ brackets ]\n",
        "( call f ( x ) )\n(S (NP (DT the)))\n",
        "# of cats : 3\n1 cat\n",
        "a , b = 3\nVERSION = 2\n",
        "<s> the cat </s>\n<unk> sat\n",
        "it is 10:30 -- go\n",
    ],
)
def test_plain_texts_that_are_like_them_are_read(text, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    lines = [line.removeprefix("<s> ").removesuffix(" </s>") for line in text.splitlines()]
    words = [line.split() for line in lines]
    assert [s.words for s in text_formats.read_tokens(str(path)).sentences] == words
    assert [*Text(train=str(path), validation=str(path)).read("train").sentences] == words


def test_only_the_beginning_of_a_text_decides():
    lines = [*(f"utt-{number} a cat" for number in range(100, 200)), "the dog"]
    with pytest.raises(UserError, match="file is a text with ids"):
        [*foreign_formats.check_text(lines, pathlib.Path("file"))]
    lines = [*("a cat" for _ in range(10)), "WEBVTT"]
    assert [*foreign_formats.check_text(lines, pathlib.Path("file"))] == lines


def test_tables_without_known_columns_are_refused_in_training_too(tmp_path):
    path = tmp_path / "file"
    path.write_text("1\tthe cat\n2\ta dog\n")
    with pytest.raises(
        UserError,
        match="file is a table without known columns, which is not read",
    ):
        Text(train=str(path), validation=str(path)).read("train")
    path.write_text("the cat\n2\ta dog\n")
    corpus = Text(train=str(path), validation=str(path)).read("train")
    assert [*corpus.sentences] == [["the", "cat"], ["2", "a", "dog"]]
