"""Marks of sentences in a text, such as </s>, are the boundary at the edges of a line."""

import json
import logging
import pathlib
import types

import pytest

from zoo.data import AsPairs, Characters, Pairs, Prefixed, RawPairs, RawText, Text, Vocabulary
from zoo.errors import UserError
from zoo.lab.evaluation import (
    minimal_pairs,
    nbest,
    references,
    score_stream,
    translators,
)
from zoo.lab.rescoring import run_interpolation
from zoo.sources import files, mapped_text, text_formats
from zoo.sources.tokens import Reading

LINES = ("the cat sat .", "a dog barked .", "", "the dog sat on a cat .")
SENTENCES = [line.split() for line in LINES if line]
MARKED = {
    "end": "{} </s>",
    "eos": "{} <eos>",
    "begin": "<s> {}",
    "both": "<s>  {}\t</s> ",
    "padded": "<BOS> {} <EOS> <pad> <pad>",
    "bert": "[CLS] {} [SEP]",
    "ulmfit": "xbos {} xxeos",
    "some": "{}",
}


def write(folder, name, lines, mark="{}"):
    path = folder / name
    path.write_text("".join(mark.format(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture(params=MARKED)
def path(request, tmp_path):
    """A text of `LINES` with marks around each line, or the last alone."""
    if request.param != "some":
        return write(tmp_path, "text.txt", LINES, MARKED[request.param])
    return write(tmp_path, "text.txt", [*LINES[:-1], f"{LINES[-1]} </s>"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("<s> a b </s>", (4, 7)),
        (" a  b ", (0, 6)),
        ("a </s> b", (0, 8)),
        ("\t<s>\ta b \t</s> <pad>\n", (5, 8)),
        ("<s>", (3, 3)),
        (" <s> </s> ", (10, 10)),
        ("", (0, 0)),
        ("<s>a b</s>", (3, 6)),
        ("<unk> a <unk>", (0, 13)),
        ("  a </s>", (0, 3)),
        ("horse.</s>", (0, 6)),
        ("a horse<EOS><pad><pad>", (0, 7)),
        ("the end<|endoftext|>", (0, 7)),
        ("<|im_start|>a b <|im_end|>", (12, 15)),
        ("[BOS] a b [EOS]", (6, 9)),
        ("a <EOD>", (0, 1)),
        ("a <s/>", (0, 1)),
        ("a [SEP]</s>", (0, 7)),
        ("a</s>b", (0, 6)),
        ("a[EOS]", (0, 6)),
        ("press<end>", (0, 10)),
        ("[noise] a <3", (0, 12)),
    ],
)
def test_marks_lie_at_the_edges_of_a_line(line, expected):
    assert files.bare_span(line) == expected
    assert files.bare(line) == line[slice(*expected)]


@pytest.mark.parametrize(
    "source",
    [
        lambda path: Text(train=path, validation=path),
        lambda path: RawText(train=path, validation=path, language="", lines="sentences"),
        lambda path: RawText(train=path, validation=path),
    ],
)
def test_a_text_with_marks_is_read_as_the_text_without(path, source):
    assert source(path).read("train").sentences == SENTENCES


def test_blank_lines_and_ranges_are_those_of_the_text_without_marks(path):
    corpus = Text(train=path, validation=path, blank_lines="kept").read("train")
    assert corpus.sentences == [line.split() for line in LINES]
    ranged = Text(train=f"{path}[1:]", validation=path).read("train")
    assert ranged.sentences == SENTENCES[1:]


def test_tables_and_encoded_texts_have_no_marks_either(path, tmp_path):
    mapped_text.write([path], tmp_path / "encoded")
    encoded = str(tmp_path / "encoded")
    assert Text(train=encoded, validation=encoded).read("train").sentences == SENTENCES
    cells = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    rows = write(tmp_path, "rows.jsonl", [json.dumps({"text": cell}) for cell in cells])
    assert Text(train=rows, validation=rows).read("train").sentences == SENTENCES


def test_lines_with_marks_are_counted_in_a_warning(tmp_path, caplog):
    Text(train=write(tmp_path, "a.txt", LINES), validation="").read("train")
    assert not caplog.messages
    path = write(tmp_path, "b.txt", [*LINES, "<s> it is late"])
    Text(train=path, validation="").read("train")
    (message,) = caplog.messages
    assert message.startswith(f"{path}: 1 of 4 lines begin or end with marks such as </s>")


READ = {
    "text": text_formats.read_tokens,
    "references": lambda path: references.read_references(path, ["0", "1"]),
    "tuning": run_interpolation.read_text,
    "pairs": lambda path: Pairs(train=(path, path), validation=(path, path)).read("train"),
    "lines": lambda path: [*score_stream.read_fields(path)],
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_all_readers_warn_once_of_marks(tmp_path, caplog, read):
    files.warn_once.cache_clear()
    read(write(tmp_path, "plain", ["a cat", "a dog"]))
    assert not caplog.messages
    read(write(tmp_path, "marked", ["a cat", "a dog"], "{} </s>"))
    (message,) = caplog.messages
    assert message.startswith("some lines begin or end with marks such as </s> or <eos>, which")


def test_marks_of_items_and_minimal_pairs_are_told_in_a_warning(tmp_path, caplog):
    for rows, read in (
        (["item\tword", "1\ta", "1\tcat", "1\t</s>"], READ["text"]),
        (["True\ta cat </s>", "False\tan cat </s>"], lambda path: [*minimal_pairs.read(path)]),
    ):
        files.warn_once.cache_clear()
        caplog.clear()
        read(write(tmp_path, "a.tsv", rows))
        assert [message[:22] for message in caplog.messages] == ["some lines begin or en"]


def test_marks_within_lines_are_words_and_told(tmp_path, caplog):
    path = write(tmp_path, "a.txt", ["a b <eos> c d <eos> e"] * 3)
    source = Text(train=path, validation=path)
    with caplog.at_level(logging.WARNING):
        lexicon, corpora = Vocabulary().build(source)
    assert corpora["train"].sentences == [["a", "b", "<eos>", "c", "d", "<eos>", "e"]] * 3
    assert lexicon.counts[lexicon.ids["<eos>"]] == 6
    (message,) = [text for text in caplog.messages if "marks of sentences" in text]
    assert "within its lines, where they are words: '<eos>'; break the lines there" in message


def test_characters_are_those_of_the_text_without_marks(path):
    sentences = Characters(train=path, validation=path).read("train").sentences
    assert ["".join(sentence) for sentence in sentences] == [f"{line}\n" for line in LINES]


def test_characters_keep_other_blanks(tmp_path):
    lines = ["  a  b ", "", " ", "c\t", " d </s>"]
    path = write(tmp_path, "a.txt", lines)
    sentences = Characters(train=path, validation=path).read("train").sentences
    assert "".join("".join(sentence) for sentence in sentences) == "  a  b \n\n \nc\t\n d\n"


@pytest.mark.parametrize("kind", [Pairs, RawPairs])
def test_both_sides_of_pairs_are_read_without_marks(tmp_path, kind):
    sources = write(tmp_path, "a.en", ["It sat .", "", "late ."], "<s> {} </s>")
    targets = write(tmp_path, "a.fr", ["assis .", "vide", "tard ."], "{} <eos>")
    paths = (sources, targets)
    corpus = kind(train=paths, validation=paths).read("train")
    assert corpus.sentences == [["assis", "."], ["tard", "."]]
    assert corpus.source_text.sentences == [["It", "sat", "."], ["late", "."]]
    table = write(tmp_path, "a.tsv", ["<s> It sat . </s>\tassis . <eos>"])
    corpus = kind(train=(table,), validation=(table,)).read("train")
    assert (corpus.sentences, corpus.source_text.sentences) == (
        [["assis", "."]],
        [["It", "sat", "."]],
    )
    with pytest.raises(UserError, match=r"a\.en, line 2: the source is empty"):
        kind(train=paths, validation=paths, empty="refused").read("train")


def test_questions_and_answers_are_read_without_marks(tmp_path):
    path = write(tmp_path, "a.tsv", ["<s> how many ? </s>\tcount A </s>"])
    source = Prefixed(train=path, validation=path)
    assert source.read("train").sentences == [["how", "many", "?", "|||", "count", "A"]]
    assert AsPairs(source).read("train").sentences == [["count", "A"]]


def test_a_given_text_keeps_the_places_of_words_between_marks(tmp_path):
    path = write(tmp_path, "a.txt", ["the cat", "it's"], "<s> {} </s>")
    first, second = text_formats.read_tokens(path).sentences
    assert [(token.text, token.start, token.end) for token in first.tokens] == [
        ("the", 4, 7),
        ("cat", 8, 11),
    ]
    assert (first.length, second.words) == (16, ["it's"])
    _, second = text_formats.read_tokens(path, Reading(language="en")).sentences
    assert [(token.text, token.start) for token in second.tokens] == [("it", 4), ("'s", 6)]


def test_items_are_read_without_marks(tmp_path):
    rows = ["item\tsentence\tcritical", "1\t<s> the cat sat </s>\tcat sat </s>"]
    (sentence,) = text_formats.read_tokens(write(tmp_path, "a.tsv", rows)).sentences
    assert [token.words for token in sentence.tokens] == [("the",), ("cat", "sat")]
    words = ["<s>", "the", "cat", "</s>", "<pad>"]
    rows = ["item\tword\trt", *(f"1\t{word}\t{time}" for time, word in enumerate(words))]
    rows += ["2\t<s>\t0", "2\t</s>\t1", "3\ta\t5"]
    path = write(tmp_path, "b.tsv", rows)
    first, empty, last = text_formats.read_tokens(path, blank_lines="kept").sentences
    assert [(token.text, token.extra) for token in first.tokens] == [
        ("the", ("1",)),
        ("cat", ("2",)),
    ]
    assert (first.extra, empty.words, last.words) == (("3",), [], ["a"])


LISTS = {
    "fields": ["0 ||| {} ||| f= -1 ||| -1", "0 ||| the cat ||| f= -2 ||| -2"],
    "json": ['{{"id": "0", "hypotheses": ["{}", "the cat"], "reference": "{}"}}'],
    "kaldi": ["u-1 {}", "u-2 the cat"],
}


@pytest.mark.parametrize("form", LISTS)
def test_hypotheses_are_read_without_marks(tmp_path, form):
    lines = [line.format(*["<s> a cat </s>"] * 2) for line in LISTS[form]]
    read, lists = nbest.read_lists(write(tmp_path, "lists", lines))
    (nbest_list,) = lists
    assert (read, [hypothesis.text for hypothesis in nbest_list.hypotheses]) == (
        form,
        ["a cat", "the cat"],
    )
    assert nbest_list.reference == ("a cat" if form == "json" else None)


@pytest.mark.parametrize("lines", [["{}", "b"], ["0 {}", "1 b"], ["0\t{}", "1\tb"]])
def test_references_are_read_without_marks(tmp_path, lines):
    path = write(tmp_path, "ref", [line.format("<s> a  cat </s>") for line in lines])
    assert references.read_references(path, ["0", "1"]) == {"0": "a cat", "1": "b"}


def test_the_best_hypotheses_are_read_without_marks(tmp_path):
    path = write(tmp_path, "best", ["utt <s> a cat </s>", "utu\tb <eos>"])
    assert references.read_best(path) == {"utt": "a cat", "utu": "b"}


def test_sources_to_translate_are_read_without_marks():
    data = types.SimpleNamespace(form=types.SimpleNamespace(source_language=""))
    reading = types.SimpleNamespace(lower_case=True)
    run = types.SimpleNamespace(
        experiment=types.SimpleNamespace(data=data, source_side_vocabulary=reading)
    )
    translator = types.SimpleNamespace(runs=(run,))
    assert translators.Translator.read(translator, "<s> A cat </s>") == ["a", "cat"]


@pytest.mark.parametrize(
    "lines",
    [
        ["True\t<s> a cat </s>", "False\t<s> an cat </s>"],
        ["good,bad", "<s> a cat </s>,<s> an cat </s>"],
        ['{"sentence_good": "a cat <eos>", "sentence_bad": "an cat <eos>"}'],
    ],
)
def test_minimal_pairs_are_read_without_marks(tmp_path, lines):
    (pair,) = minimal_pairs.read(write(tmp_path, "pairs.txt", lines))
    assert (pair.good, pair.bad) == (["a", "cat"], ["an", "cat"])


def test_a_pair_of_marks_alone_has_no_words(tmp_path):
    with pytest.raises(UserError, match=r"line 2: no words"):
        minimal_pairs.read(write(tmp_path, "pairs.txt", ["True\ta cat", "False\t<s> </s>"]))
