"""N-best lists and references of each form, and what is wrong with them."""

import gzip
import json
import tracemalloc

import pytest

from tests import scored_sentences
from zoo.errors import UserError
from zoo.lab.evaluation import nbest, references
from zoo.lab.evaluation.references import read_references
from zoo.lab.rescoring import lattices
from zoo.sources import files, pairs

MOSES = """0 ||| le chat  dort ||| LM0= -1 TM0= -2 -3.5 ||| -4 ||| 0-0 1-1
0 |||  ||| LM0= -9 TM0= -9 -9 ||| -9 ||| 0-0
7 ||| le chien ||| LM0= 1e0 TM0= 0 0 ||| 1 |||
"""


def write(folder, text, name="lists"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def read(folder, text, **options):
    form, lists = nbest.read_lists(write(folder, text), **options)
    return form, [*lists]


def test_lists_of_moses_are_read_and_written(tmp_path):
    form, (first, second) = read(tmp_path, MOSES)
    assert (form, first.id, second.id) == ("fields", "0", "7")
    best, empty = first.hypotheses
    assert best.text == "le chat dort" and best.words == ["le", "chat", "dort"]
    assert best.features == {"LM0": -1, "TM0_1": -2, "TM0_2": -3.5}
    assert (best.line, best.score, best.further_fields) == (1, -4, ("0-0 1-1",))
    assert (empty.text, empty.words, empty.line) == ("", [], 2)
    lines = [
        nbest.line(x.id, h.words, h.features, h.score, h.further_fields) + "\n"
        for x in (first, second)
        for h in x.hypotheses
    ]
    assert lines[0] == "0 ||| le chat dort ||| LM0= -1 TM0_1= -2 TM0_2= -3.5 ||| -4 ||| 0-0 1-1\n"
    _, reread = read(tmp_path, "".join(lines))
    assert [h.features for h in reread[0].hypotheses] == [best.features, empty.features]


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("-1 2e1", {"f1": -1, "f2": 20}),
        ("a=1 b=-2", {"a": 1, "b": -2}),
        ("f= 1 2 3", {"f_1": 1, "f_2": 2, "f_3": 3}),
        ("5 PT_x=y=3 w= 7", {"f1": 5, "PT_x=y": 3, "w": 7}),
        ("", {}),
    ],
)
def test_features(text, features):
    assert nbest.parse_features(text, "here") == features


def test_sparse_features_may_differ(tmp_path):
    text = "0 ||| a ||| x= 1\n0 ||| b ||| y= 1\n"
    _, (nbest_list,) = read(tmp_path, text, sparse=True)
    assert [h.features for h in nbest_list.hypotheses] == [{"x": 1}, {"y": 1}]


def test_lists_of_json(tmp_path):
    text = (
        '{"id": "a", "hypotheses": [{"text": "x y", "score": -1, "lm": 2}, '
        '{"text": "", "score": -2, "lm": 0.5}], "reference": "x"}\n\n'
        '{"utt": "b", "nbest": ["u", "v"], "score": [1, 2], "lm": [3, 4]}\n'
    )
    form, (first, second) = read(tmp_path, "\n \n" + text)
    assert form == "json" and [nbest_list.hypotheses[0].line for nbest_list in (first, second)] == [
        3,
        5,
    ]
    assert first.reference == "x" and second.reference is None
    assert [h.text for h in first.hypotheses] == ["x y", ""]
    assert [h.features for h in first.hypotheses] == [{"lm": 2}, {"lm": 0.5}]
    assert [(h.text, h.score, h.features) for h in second.hypotheses] == [
        ("u", 1, {"lm": 3}),
        ("v", 2, {"lm": 4}),
    ]


def test_hypotheses_of_json_line_by_line_and_lists_of_hyporadise(tmp_path):
    text = "".join(f'{{"id": {n}, "text": "w{k}", "score": {k}}}\n' for n in (4, 5) for k in (1, 2))
    _, lists = read(tmp_path, text)
    assert [(x.id, [h.line for h in x.hypotheses]) for x in lists] == [("4", [1, 2]), ("5", [3, 4])]
    text = '[{"input": ["a b", "a"], "output": "a b c"}, {"input": ["d"], "output": "e"}]'
    _, lists = read(tmp_path, text)
    assert [(x.id, x.reference, len(x.hypotheses)) for x in lists] == [
        ("1", "a b c", 2),
        ("2", "e", 1),
    ]


def test_beside_names_of_recognisers_text_is_the_reference(tmp_path):
    manifest = [
        {"text": "a b", "duration": 2.0, "pred_text": "a", "beams": [["a", -1.5], ["a b", -2]]},
        {"text": "", "duration": 1.5, "pred_text": "c", "beams": [["c", -1]]},
    ]
    _, (first, second) = read(tmp_path, "\n".join(map(json.dumps, manifest)))
    assert [(h.text, h.score, h.features) for h in first.hypotheses] == [
        ("a", -1.5, {}),
        ("a b", -2, {}),
    ]
    assert [(x.id, x.reference) for x in (first, second)] == [("1", "a b"), ("2", "")]
    outputs = [
        {"name": "target1[1]", "rec_text": "A<eos>", "text": "A B", "shape": [3, 7], "score": -1},
        {"name": "target1[2]", "rec_text": "<eos>", "text": "A B", "shape": [3, 7], "score": -2},
    ]
    _, (espnet,) = read(tmp_path, json.dumps({"id": "u1", "hypotheses": outputs}))
    assert [(h.text, h.score, h.features) for h in espnet.hypotheses] == [
        ("A", -1, {}),
        ("", -2, {}),
    ]
    assert (espnet.id, espnet.reference) == ("u1", "A B")


def test_the_results_of_espnet_1_are_one_object_over_many_lines(tmp_path):
    outputs = [
        {"name": "target1[1]", "rec_text": "▁THE▁CAT<eos>", "score": -1.5, "text": "THE CAT SAT"},
        {"name": "target1[2]", "rec_text": "<eos>", "score": -2, "text": "THE CAT SAT"},
    ]
    results = {"a-u1": {"output": outputs}, "b-u2": {"output": outputs[1:], "utt2spk": "b"}}
    for indent in (4, 1):
        _, lists = read(tmp_path, json.dumps({"utts": results}, indent=indent))
        assert [(nbest.id, nbest.reference) for nbest in lists] == [
            ("a-u1", "THE CAT SAT"),
            ("b-u2", "THE CAT SAT"),
        ]
        texts = [[(h.text, h.score) for h in nbest.hypotheses] for nbest in lists]
        assert texts == [[("THE CAT", -1.5), ("", -2)], [("", -2)]]
    _, (single,) = read(tmp_path, json.dumps({"id": 7, "hypotheses": ["a", "b"]}, indent=2))
    assert (single.id, [h.text for h in single.hypotheses]) == ("7", ["a", "b"])
    many = json.dumps({"id": 7, "hypotheses": ["a"]}, indent=2) * 2
    with pytest.raises(UserError, match=r"line 1: not JSON by itself .* jq -c \. does"):
        read(tmp_path, many)


@pytest.mark.parametrize(
    ("value", "text", "reference"),
    [
        ({"text": "truth", "pred_text": "guess"}, "guess", "truth"),
        ({"text": "truth", "rec_text": "guess"}, "guess", "truth"),
        ({"text": "truth", "pred_text": "guess", "ref": "other"}, "guess", "other"),
        # What "text" is beside other names is not known.
        ({"text": "unknown", "hyp": "guess"}, "guess", None),
        ({"text": "unknown", "nbest": ["guess", "a"]}, "guess", None),
        ({"text": "guess", "token_ids": [4, 7]}, "guess", None),
        ({"text": "a b", "audio_filepath": "of A/é.wav", "speaker": "Anna B"}, "a b", None),
        ({"text": "a b", "wav_scp": "a/b.wav", "duration": 1.5, "lang": "en"}, "a b", None),
        ({"text": "a b", "pred_text": "a", "rec_token": "a <eos>"}, "a", "a b"),
    ],
)
def test_texts_of_one_hypothesis(value, text, reference, tmp_path):
    _, (nbest_list,) = read(tmp_path, json.dumps(value))
    assert (nbest_list.hypotheses[0].text, nbest_list.reference) == (text, reference)


def test_alignments_between_phrases_are_no_words(tmp_path):
    text = "a man |0-1| rides |2-2,wa=0-0 ,total=-1.5, -2| ||| x= 1\n"
    _, (nbest_list,) = read(tmp_path, f"0 ||| {text}0 ||| 0-1 1| |a b|c ||| x= 1\n")
    assert [h.text for h in nbest_list.hypotheses] == ["a man rides", "0-1 1| |a b|c"]
    path = write(tmp_path, f"0 ||| {text}")
    (sentence,) = scored_sentences.read(path, nbest=True)
    assert sentence.words == ["a", "man", "rides"]


def test_marks_of_unknown_words_of_moses_are_no_words(tmp_path):
    text = "0 ||| Hypotonie|UNK|UNK|UNK |0-0| is tun.|UNK|UNK|UNK |1-2| ||| x= 1\n"
    _, (nbest_list,) = read(tmp_path, text)
    assert nbest_list.hypotheses[0].words == ["Hypotonie", "is", "tun."]
    path = write(tmp_path, text)
    (sentence,) = scored_sentences.read(path, nbest=True)
    assert sentence.words == ["Hypotonie", "is", "tun."]


@pytest.mark.parametrize(
    "bars", ["|0|", "|0-1|rides", "man|0-1|", "|UNK|UNK|UNK", "a|UNK|UNK|UNK."]
)
def test_bars_that_moses_does_not_write_are_refused(bars, tmp_path):
    path = write(tmp_path, f"0 ||| a {bars} b ||| x= 1\n")
    for reads in (
        lambda: [*nbest.read_lists(path)[1]],
        lambda: scored_sentences.read(path, nbest=True),
    ):
        with pytest.raises(UserError, match=r"lists, line 1: '\|.*' is not as Moses writes it"):
            reads()


def test_numbers_in_keys_of_kaldi_are_ranks(tmp_path):
    ranks = [*range(1, 12)]
    keys = sorted(f"u-a-{rank}" for rank in ranks)
    assert keys[:2] == ["u-a-1", "u-a-10"]
    form, (nbest_list, single) = read(tmp_path, "".join(f"{x} w{x}\n" for x in [*keys, "v-1"]))
    assert (form, nbest_list.id, single.id) == ("kaldi", "u-a", "v")
    assert [h.text for h in nbest_list.hypotheses] == [f"wu-a-{rank}" for rank in ranks]
    assert [h.line for h in nbest_list.hypotheses] == [1, *range(4, 12), 2, 3]
    # Scores are told in the order of the lines.
    sentences = scored_sentences.read(str(tmp_path / "lists"), nbest=True)
    assert [sentence.line for sentence in sentences] == [*range(1, 13)]
    assert sentences[1].words == ["wu-a-10"]


def test_a_text_with_ids_is_no_list_of_kaldi(tmp_path):
    lines = ["spk-001 a b", "spk-002 c", "1089-134686-0000 d"]
    with pytest.raises(UserError, match="lists is a text with ids, as of Kaldi, which is not read"):
        read(tmp_path, "\n".join(lines))
    best = references.read_best(write(tmp_path, "\n".join(lines)))
    assert best == {"spk-001": "a b", "spk-002": "c", "1089-134686-0000": "d"}


def test_lists_of_kaldi_with_costs(tmp_path):
    text = "utt-a-1 a b\nutt-a-2\nutt-b-1 c\n"
    costs = {
        "ac": write(tmp_path, "utt-a-1 3.5\nutt-a-2 4\nutt-b-1 -1\n", "ac"),
        "lm": write(tmp_path, "utt-a-1 1\nutt-a-2 2\nutt-b-1 3\n", "lm"),
    }
    form, (first, second) = read(tmp_path, text, costs=costs)
    assert (form, first.id, second.id) == ("kaldi", "utt-a", "utt-b")
    assert [h.text for h in first.hypotheses] == ["a b", ""]
    assert [h.features for h in first.hypotheses] == [{"ac": -3.5, "lm": -1}, {"ac": -4, "lm": -2}]


def test_lists_are_read_one_by_one_from_compressed_files(tmp_path):
    path = tmp_path / "lists.gz"
    path.write_bytes(gzip.compress(b"0 ||| a ||| 1\n1 ||| b ||| 2\n2 ||| c ||| x\n"))
    _, lists = nbest.read_lists(str(path))
    assert next(lists).id == "0"  # the third is not read yet
    with pytest.raises(UserError, match=r"lists.gz, line 3: the feature 'f1' is 'x'"):
        list(lists)


def test_lines_of_lists_and_references_have_a_limit_of_their_own(tmp_path):
    """A line of 1 MiB takes some 30 MB as words, one of 128 MiB more than most memories have."""
    long = "a " * (1 << 19) + "b"
    read = {
        f"0 ||| {long}": lambda path: [*nbest.read_lists(path)[1]],
        f"u-1 {long}": lambda path: [*nbest.read_lists(path)[1]],
        f'{{"text": "{long}"}}': lambda path: [*nbest.read_lists(path)[1]],
        long: lambda path: read_references(path, ["0"]),
        f"u\n0 1 a 1,2\n1 {long}": lambda path: [*lattices.read_lattices(path)],
        f"0-0\n{long}": lambda path: pairs.read_alignments(path, ["a"] * 2, ["b"] * 2),
    }
    for text, reads in read.items():
        with pytest.raises(UserError, match=r"file, line \d, has more than 1,048,576 bytes in one"):
            reads(write(tmp_path, text, "file"))
    # A list of JSON that is a single line is many lists.
    text = json.dumps([{"text": "a " * (1 << 17)}] * 6)
    assert len([*nbest.read_lists(write(tmp_path, text, "file"))[1]]) == 6
    with pytest.raises(UserError, match="file, line 1, has more than 16,777,216 bytes in one line"):
        [*nbest.read_lists(write(tmp_path, "[" + " " * (1 << 24), "file"))[1]]


def test_a_small_file_of_one_large_line_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"0 ||| aa\n" + b"a " * (16 << 20), compresslevel=1))
    for read_it in (lambda: [*nbest.read_lists(str(path))[1]], lambda: files.read_text(path)):
        tracemalloc.start()
        try:
            with pytest.raises(UserError, match=r"bomb.gz, line 2, has more than 1,048,576 bytes"):
                read_it()
            assert tracemalloc.get_traced_memory()[1] < 5 << 20
        finally:
            tracemalloc.stop()


def test_what_is_written_is_read(tmp_path):
    words = [["le", "chat"], [], ["a|||b", "|||"], ["|", "||"]]
    words += [["|0-1|", "a|UNK|UNK|UNK"], ["|0|", "a|0-1|"]]
    lines = [
        nbest.line(number // 2, hypothesis, {"N": 1}, -1) for number, hypothesis in enumerate(words)
    ]
    assert all(len(line.split(nbest.SEPARATOR)) == 4 for line in lines)
    path = tmp_path / "lists"
    path.write_text("\n".join(lines) + "\n")
    hypotheses = scored_sentences.read(str(path), nbest=True)
    sentences = [hypothesis.words for hypothesis in hypotheses]
    bars = "&#124;" * 3
    assert sentences[:4] == [*words[:2], [f"a{bars}b", bars], ["|", "||"]]
    assert [" ".join(found_words).replace("&#124;", "|") for found_words in sentences[4:]] == [
        "|0-1| a|UNK|UNK|UNK",
        "|0| a|0-1|",
    ]
    assert [hypothesis.id for hypothesis in hypotheses] == ["0", "0", "1", "1", "2", "2"]
