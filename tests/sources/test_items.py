"""Tables of items: sentences, conditions, words and regions, and readers of the words."""

import csv
import json

import pytest

from tests import tables
from zoo.errors import UserError
from zoo.sources import files
from zoo.sources.text import Text
from zoo.sources.tokens import Reading

FUSED = {"du": ("de", "le"), "Du": ("De", "le")}


def spans(sentence):
    return [(token.text, token.start, token.end) for token in sentence.tokens]


def test_a_table_of_sentences_carries_its_other_columns(read):
    text = read('item\tsentence\tcond\r\n7\tLe "chat"\t"a ""b"""\r\n8\t\t"\r\n', blank="kept")
    assert text.columns == ("cond",)
    first, blank = text.sentences
    assert (first.line, first.id, first.extra) == (2, "7", ('a "b"',))
    assert spans(first) == [("Le", 0, 2), ('"chat"', 3, 9)]
    assert {token.extra for token in first.tokens} == {('a "b"',)}
    assert (blank.id, blank.tokens, blank.extra) == ("8", [], ('"',))
    assert read("x\ttext\n1\ta b\n").corpus.sentences == [["a", "b"]]
    assert read("mine\tx\na b\t1\n", column="mine").corpus.sentences == [["a", "b"]]
    assert read("sentence\na b\n", "t.tsv").sentences[0].id == "1"


def test_a_table_of_words_makes_a_sentence_of_the_rows_of_an_item(read):
    text = read(
        'item\tcondition\tword\trt\n1\ta\tdu\t300\n1\ta\t"""\tx\n1\tb\tle lac\t5\n2\tb\tNA\t6\n'
        '2\tb\t"#"\t6\n',
        reading=Reading(fused="split", parts=FUSED),
    )
    assert text.columns == ("condition", "rt")
    assert [sentence.id for sentence in text.sentences] == ["1", "1", "2"]
    assert [sentence.line for sentence in text.sentences] == [2, 4, 5]
    first, region, last = text.sentences
    assert first.words == ["de", "le", '"""']
    assert spans(first) == [("du", 0, 2), ('"""', 3, 6)]
    assert [token.extra for token in first.tokens] == [("a", "300"), ("a", "x")]
    assert (first.extra, last.extra) == (("a", ""), ("b", "6"))
    assert [token.words for token in region.tokens] == [("le", "lac")]
    assert last.words == ["NA", "#"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item\tword\n1\ta\tb\n", "line 2: 3 cells in a table of 2: leave tabs out"),
        ("item\tword\n1\ta\n\n2\n", "line 4: 1 cells in a table of 2: give each cell"),
        ('item\tword\n1\t"a\n2\tb"\n', "line 2: .*never closed"),
        ("item\tword\n1\ta\n2\tb\n1\tc\n", "line 4: words of '1' stand apart"),
        ("item\tword\n1\ta\n1\t \n", "line 3: the word is empty"),
        ("word\tx\n1\ta\n", "needs a column 'item'"),
        ("word\tword\n1\ta\n", "two columns have the same name"),
        ("a\tb\n1\tc\n", "no column is called 'word', nor 'sentence'"),
    ],
)
def test_a_table_that_cannot_be_read_is_named(read, text, message):
    with pytest.raises(UserError, match=rf"items\.tsv, line .*{message}|{message}"):
        read(text, "items.tsv")


SUBJECTS = [  # two subjects read one item in two conditions
    ("s1", "1", "a", "1", "le"),
    ("s1", "1", "a", "2", "chat"),
    ("s1", "1", "b", "1", "le"),
    ("s1", "1", "b", "2", "lac"),
    ("s2", "1", "a", "1", "le"),
    ("s2", "1", "a", "2", "chat"),
]


def reading_times(*names, order=None):
    """A table of the rows of `SUBJECTS` in an order, under other names of its columns."""
    rows = sorted(SUBJECTS, key=order) if order else SUBJECTS
    return "".join("\t".join(row) + "\n" for row in ((*names, "word"), *rows))


@pytest.mark.parametrize("subject", ["subject", "subj", "participant"])
@pytest.mark.parametrize("condition", ["condition", "cond"])
@pytest.mark.parametrize("order", [None, lambda row: row[1:3] + row[:1]])
def test_a_text_is_made_once_for_all_readers_of_an_item(read, subject, condition, order):
    text = read(reading_times(subject, "item", condition, "region", order=order))
    assert text.columns == (subject, condition, "region")
    assert rows_by_sentence(text) == {
        ("1", "le chat"): {
            ("le", ("s1", "a", "1")),
            ("le", ("s2", "a", "1")),
            ("chat", ("s1", "a", "2")),
            ("chat", ("s2", "a", "2")),
        },
        ("1", "le lac"): {("le", ("s1", "b", "1")), ("lac", ("s1", "b", "2"))},
    }
    assert sorted(sentence.extra for sentence in text.sentences) == [("", "a", ""), ("s1", "b", "")]


def rows_by_sentence(text):
    """{(id, words): {(word, columns) of each row}}"""
    return {
        (sentence.id, " ".join(sentence.words)): {
            (token.text, extra)
            for token in sentence.tokens
            for extra in (token.extra, *token.further_extras)
        }
        for sentence in text.sentences
    }


# Two readers read "If you go"; a row of B was removed as an outlier.


READERS = [
    ("A", "1", "If"),
    ("A", "2", "you"),
    ("A", "3", "go"),
    ("B", "1", "If"),
    ("B", "3", "go"),
]


def outliers(reader, place, rows=READERS):
    """A table of the rows of two readers of an item."""
    lines = [f"{name}\t1\t{number}\t{word}\n" for name, number, word in rows]
    return "".join([f"{reader}\titem\t{place}\tword\n", *lines])


@pytest.mark.parametrize("order", [None, lambda row: row[1], lambda row: (row[2], row[0])])
@pytest.mark.parametrize(
    ("reader", "place"),
    [
        ("WorkerId", "zone"),
        ("Participant_ID", "Word_Number"),
        ("subject_id", "word_number"),
        ("Subject", "IA_ID"),
        ("participant", "wordnum"),
        ("subj", "region"),
    ],
)
def test_a_reader_without_some_words_has_those_of_the_whole_text(read, reader, place, order):
    rows = sorted(READERS, key=order) if order else READERS
    text = read(outliers(reader, place, rows), reading=Reading(boundary="</s>"))
    rows = {(word, (name, number)) for name, number, word in READERS}
    assert rows_by_sentence(text) == {("1", "If you go"): rows}
    assert len(text.corpus.sentences) == 1


@pytest.mark.parametrize(
    ("place", "rows", "message"),
    [
        ("zone", [0, 2, 3, 4], "line 3: .*'1' leave out zone 2, before 'go' and after 'If'"),
        ("zone", [1, 2, 4], "line 2: .*'1' leave out zone 1, before 'you':"),
        ("place", [0, 1, 2, 3, 4], "line 6: 'go' and, on line 3, 'you' are both word 2 of '1'"),
        ("zone", [0, 1, 3, 0], "'zone' goes from 1 to 1"),
    ],
)
def test_readers_whose_text_lacks_a_word_or_has_two_at_a_place_are_refused(
    read, place, rows, message
):
    with pytest.raises(UserError, match=message):
        read(outliers("WorkerId", place, [READERS[row] for row in rows]))
    further_rows = [*READERS, ("C", "2", "we")]
    with pytest.raises(UserError, match=r"line 7: 'we' and, on line 3, 'you' are both zone 2"):
        read(outliers("WorkerId", "zone", further_rows))


@pytest.mark.parametrize(
    ("place", "message"),
    [("zone", "'zone' goes from"), ("Region", "most words"), ("x", "most words")],
)
def test_readers_of_an_unknown_column_are_refused(read, place, message):
    rows = sorted(READERS, key=lambda row: row[1])
    with pytest.raises(UserError, match=message):
        read(outliers("name", place, rows))


def test_places_of_two_columns_are_those_that_tell_words_apart(read):
    """`position` is here the item's place in the experiment, and differs from reader to reader."""
    rows = "".join(
        f"{reader}\t{trial}\t1\t{region}.0\t{word}\n"
        for reader, trial in (("A", 3), ("B", 2), ("C", 9), ("D", 4))
        for region, word in enumerate(("one", "two", "three"), 1)
    )
    text = read("subject\tposition\titem\tregion\tword\n" + rows)
    assert text.corpus.sentences == [["one", "two", "three"]]
    assert [len(token.further_extras) for token in text.sentences[0].tokens] == [3, 3, 3]


def test_places_go_on_from_item_to_item_and_begin_at_none(read):
    table = "item\tposition\tword\n1\t0\ta\n1\t1\tb\n2\t2\tc\n2\t3\td\n"
    assert read(table).corpus.sentences == [["a", "b"], ["c", "d"]]
    with pytest.raises(UserError, match="'2' leave out position 1, before 'c'"):
        read(table.replace("1\t1\tb\n", ""))


@pytest.mark.parametrize(
    ("names", "order", "message"),
    [
        # Sorted by place alone, without numbers; then under names that tell nothing.
        (("subject", "item", "condition", "x"), lambda row: row[3], "sort the rows by item"),
        (("who", "item", "condition", "region"), None, "stand apart"),
        (("who", "item", "condition", "region"), lambda row: row[2], "'region' goes from 2 to 1"),
        (("who", "item", "kind", "position"), lambda row: row[3], "'position' goes from 1 to 1"),
        (("who", "item", "condition", "x"), lambda row: row[2], "each word is there 2 times"),
        (("who", "item", "condition", "x"), lambda row: row[2:4], "each word is there 2 times"),
    ],
)
def test_sentences_that_cannot_be_told_apart_are_refused(read, names, order, message):
    with pytest.raises(UserError, match=message):
        read(reading_times(*names, order=order))


def test_a_region_may_have_several_rows_and_words_may_come_again(read):
    words = ["no", "no", ",", "the", "the", "cat", "the", "cat"]
    rows = "".join(f"1\t{1 + n // 2}\t{word}\n" for n, word in enumerate(words))
    assert read("item\tregion\tword\n" + rows).corpus.sentences == [words]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_file_of_items_is_read_with_the_mark_between_its_cells(read, delimiter):
    table = 'item|sentence|rt\n7|"le chat| dort"|1\n8|le lac|"2"\n'.replace("|", delimiter)
    table = table.replace(f"chat{delimiter}", "chat\u00b7" if delimiter == "\t" else "chat,")
    text = read(table, "items.csv")
    assert (text.columns, text.items) == (("rt",), True)
    assert [sentence.id for sentence in text.sentences] == ["7", "8"]
    assert [token.start for token in text.sentences[0].tokens] == [0, 3, 9]
    assert text.sentences[1].extra == ("2",)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_column_of_text_has_its_other_columns_beside_it(read, delimiter):
    table = "item|condition|text\n1|a|You can go.\n1|b|We can go.\n".replace("|", delimiter)
    text, expected = read(table, "it.csv"), read(table.replace(delimiter, "\t"), "it.tsv")
    assert text.columns == ("condition",) and text.sentences == expected.sentences
    assert [(sentence.id, sentence.extra) for sentence in text.sentences] == [
        ("1", ("a",)), ("1", ("b",))
    ]  # fmt: skip


@pytest.mark.parametrize("column", ["text", "sentence"])
def test_the_lines_of_a_cell_are_sentences_as_in_training(read, tmp_path, column):
    table = f'id,{column}\n7,"a b\r\nc"\n8,d\n'
    text = read(table, "t.csv")
    assert [(sentence.line, sentence.id) for sentence in text.sentences] == [
        (2, "7"), (2, "7"), (4, "8")
    ]  # fmt: skip
    path = str(tmp_path / "t.csv")
    assert text.corpus.sentences == Text(path, path, column=column).read("train").sentences
    assert text.corpus.sentences == [["a", "b"], ["c"], ["d"]]
    with pytest.raises(UserError, match=r"line 2: .*never closed"):
        read(table.replace(",", "\t"), "t.tsv")


def lowered(table):
    """A table whose header has no capitals."""
    header, end, rows = table.partition("\n")
    return header.lower() + end + rows


@pytest.mark.parametrize("name", ["t.tsv", "t.csv", "t.txt"])
@pytest.mark.parametrize(
    "table",
    [
        "Item\tSubject\tCondition\tRegion\tWord\n1\ta\tx\t1\tle\n1\ta\tx\t2\tchat\n"
        "1\tb\tx\t1\tle\n1\tb\tx\t2\tchat\n",
        "Item\tSENTENCE\tCritical\n3\tle chat dort\tchat dort\n",
        "ITEM\tSentence_a\tSentence_b\tCritical_a\tCritical_b\n"
        "3\tle chat\tles chats\tchat\tchats\n",
        "Good\tBad\nle chat\tles chat\n",
    ],
)
def test_capitals_of_known_columns_do_not_matter(read, name, table):
    if name == "t.csv":
        table = table.replace("\t", ",")
    text, expected = read(table, name), read(lowered(table), name)
    assert (text.columns, text.sentences) == (expected.columns, expected.sentences)


def test_two_columns_that_differ_by_capitals_keep_their_names(read):
    text = read("item\tItem\tItems\tsentence\n1\ta\tb\tle chat\n", "t.tsv")
    assert text.sentences[0].id == "1" and text.columns == ("Item", "Items")


def test_a_table_of_other_names_tells_which_there_are(read):
    with pytest.raises(UserError, match=r"nor 'sentence', .*, but 'Item', 'Phrase': rename"):
        read("Item;Phrase\n1;le chat\n", "items.csv")


TABLE = 'n\ttext\n1\t"a ""b"" c"\n2\td "e\n"3"\t"f, g"\n4\t"h\ti"\n5\t""""\n'


def test_a_split_and_a_given_text_are_read_as_pandas_reads_them(read, tmp_path):
    sentences = read(TABLE, "t.tsv").corpus.sentences
    path = str(tmp_path / "t.tsv")
    assert sentences == Text(path, path).read("train").sentences
    assert sentences == [cell.split() for cell in tables.by_pandas(path)["text"]]
    assert sentences == [["a", '"b"', "c"], ["d", '"e'], ["f,", "g"], ["h", "i"], ['"']]


def test_a_treebank_of_a_word_a_row_keeps_its_quotation_marks(read):
    text = read('item\tword\tlemma\n1\t"\t"\n1\tno\tno\n1\t"\t"\n1\t.\t.\n')
    assert text.corpus.sentences == [['"', "no", '"', "."]]


def test_the_words_of_a_table_are_tokenised_as_their_sentence(read):
    """Mr. would lose its dot at the end of a line; a region keeps one row."""
    table = "item\tword\n" + "".join(
        f"1\t{word}\n" for word in ("The", "captain's", "boats,", "Mr.", "Smith's two", "sank.")
    )
    reading = Reading(language="en")
    (sentence,) = read(table, reading=reading).sentences
    (line,) = read("The captain's boats, Mr. Smith's two sank.\n", reading=reading).sentences
    assert sentence.words == line.words
    assert [token.words for token in sentence.tokens] == [
        ("The",),
        ("captain", "'s"),
        ("boats", ","),
        ("Mr.",),
        ("Smith", "'s", "two"),
        ("sank", "."),
    ]
    assert spans(sentence)[1] == ("captain's", 4, 13)


STORY = ["If", "Mr.", "Smith", "comes.", "The dog", "runs,", "too!", "Good.", "Bye."]


def story(column="zone", words=STORY):
    """A table of an item, with a numbered word or region a row."""
    rows = "".join(f"1\t{number}\t{word}\n" for number, word in enumerate(words, 1))
    return f"item\t{column}\tword\n{rows}"


@pytest.mark.parametrize("language", ["", "en"])
def test_an_item_of_several_sentences_is_divided_as_a_paragraph(read, language):
    reading = Reading(language=language, boundary="</s>")
    text = read(story() + "2\t1\tSo.\n", reading=reading)
    lines = ["If Mr. Smith comes.", "The dog runs, too!", "Good.", "Bye.", "So."]
    plain = read("".join(f"{line}\n" for line in lines), reading=reading)
    assert text.corpus.sentences == plain.corpus.sentences
    assert text.corpus.items == [0, 4] and plain.corpus.items is None
    assert [(sentence.id, sentence.line) for sentence in text.sentences] == [
        ("1", 2), ("1", 6), ("1", 9), ("1", 10), ("2", 11)
    ]  # fmt: skip
    assert [token.extra for sentence in text.sentences for token in sentence.tokens] == [
        (str(number),) for number in (*range(1, 10), 1)
    ]
    assert spans(text.sentences[1])[0] == ("The dog", 0, 7)


@pytest.mark.parametrize("language", ["", "en"])
def test_a_tokenised_item_without_capitals_is_divided_at_marks_that_stand_alone(read, language):
    words = ["a", "man", "rides", ".", "two", "dogs", "play", ".", "the", "end", "."]
    text = read(story(words=words), reading=Reading(language=language, boundary="</s>"))
    assert [" ".join(words) for words in text.corpus.sentences] == [
        "a man rides .", "two dogs play .", "the end ."
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words", [["<s> a", "man", "sleeps </s>"], ["<s>", "<s>a", "man", "sleeps</s>", "</s> <pad>"]]
)
def test_marks_at_the_ends_of_the_cells_of_an_item_are_its_boundary(read, words):
    (sentence,) = read(story(words=words), reading=Reading(boundary="</s>")).sentences
    assert [token.words for token in sentence.tokens] == [("a",), ("man",), ("sleeps",)]
    assert sentence.tokens[-1].text == next(word for word in words if word.startswith("sleeps"))


def test_rows_of_marks_within_an_item_end_its_sentences(read):
    words = ["<s>", "a", "man", ".", "</s>", "<s>", "the", "end", "</s>", "so", "<eos>"]
    text = read(story(words=words), reading=Reading(boundary="</s>"))
    assert text.corpus.sentences == [["a", "man", "."], ["the", "end"], ["so"]]
    assert [sentence.extra for sentence in text.sentences] == [("5",), ("9",), ("11",)]
    assert [sentence.begins_item for sentence in text.sentences] == [True, False, False]


@pytest.mark.parametrize("column", ["region", "rt"])
def test_the_boundary_of_a_sentence_of_one_row_has_no_figures_of_the_row(read, column):
    table = f"item\tcond\t{column}\tword\n1\ta\t1\tgo\n" + "2\tb\t1\tno\n2\tb\t2\tway\n"
    first, second = read(table, reading=Reading(boundary="</s>")).sentences
    assert (first.extra, second.extra) == (("a", ""), ("b", ""))
    assert first.tokens[0].extra == ("a", "1")


def test_items_without_boundaries_or_with_an_abbreviation_are_left_whole(read):
    assert len(read(story()).sentences) == 1
    text = read(story(words=["Mr.", "Smith", "runs. He", "sat."]), reading=Reading(boundary="s"))
    assert len(text.sentences) == 1 and text.corpus.items is None  # a row has one surprisal


def test_a_range_of_sentences_begins_an_item(read):
    text = read(story(), "t.tsv", Reading(boundary="</s>"), part="[1:3]")
    assert text.corpus.items == [0] and len(text.corpus.sentences) == 2


SUITE = """item_number,condition_name,region_number,region_name,content
1,comma,1,Start,As the criminal
1,comma,2,Comma,","
1,comma,3,NP,the woman.
1,none,1,Start,As the criminal
1,none,2,Comma,
1,none,3,NP,the woman.
1,none,4,End,
"""


def test_a_suite_of_syntaxgym_has_regions_without_words(read):
    text = read(SUITE, "suite.csv", Reading(boundary="</s>"))
    assert text.columns == ("condition_name", "region_number", "region_name")
    assert [sentence.id for sentence in text.sentences] == ["1", "1"]
    assert text.corpus.items is None  # nor is the empty region after the full stop a sentence
    first, second = text.sentences
    assert first.words == ["As", "the", "criminal", ",", "the", "woman."]
    assert second.words == ["As", "the", "criminal", "the", "woman."]
    assert [token.words for token in second.tokens[1:]] == [(), ("the", "woman."), ()]
    assert spans(second)[1:3] == [("", 16, 16), ("the woman.", 16, 26)]
    table = SUITE.replace("_number", "").replace("condition_name", "condition")
    renamed = read(table.replace("content", "word"), "own.csv", Reading(boundary="</s>"))
    assert renamed.sentences == text.sentences


def test_a_suite_in_json_is_read_as_its_table(read):
    table = read(SUITE, "suite.csv", Reading(boundary="</s>"))
    conditions: dict = {}
    for row in csv.DictReader(SUITE.splitlines()):
        region = {"region_number": int(row["region_number"]), "content": row["content"]}
        conditions.setdefault(row["condition_name"], []).append(region)
    suite = {
        "meta": {"metric": "sum"},
        "predictions": [],
        "items": [
            {
                "item_number": 1,
                "conditions": [
                    {"condition_name": name, "regions": regions}
                    for name, regions in conditions.items()
                ],
            }
        ],
    }
    text = read(json.dumps(suite), "suite.json", Reading(boundary="</s>"))
    assert text.columns == ("condition_name", "region_number")
    for sentence, expected in zip(text.sentences, table.sentences, strict=True):
        assert (sentence.id, sentence.words) == (expected.id, expected.words)
        assert spans(sentence) == spans(expected)
        extras = [token.extra[:2] for token in expected.tokens]
        assert [token.extra for token in sentence.tokens] == extras
    suite["items"][0]["conditions"][0]["regions"][0]["content"] = None
    with pytest.raises(UserError, match=r"suite.json has items that are not of a test suite"):
        read(json.dumps(suite), "suite.json")


def test_several_empty_regions_are_one_sentence(read):
    rows = [*enumerate(["", "", "the man", "", "", "ran"], 1)]
    text = read("item,region,word\n" + "".join(f"1,{n},{word}\n" for n, word in rows), "a.csv")
    assert [len(token.words) for token in text.sentences[0].tokens] == [0, 0, 2, 0, 0, 1]


def test_an_item_without_words_is_refused(read):
    for table in ("item\tregion\tword\n1\t1\t\n1\t2\t \n", "item\tword\n1\t\n1\ta\n"):
        with pytest.raises(UserError, match=r"line 2: the word is empty: .* in a column 'region'"):
            read(table)


@pytest.mark.parametrize("language", ["", "en"])
def test_a_row_of_the_boundary_is_the_end_of_its_sentence(read, language):
    text = read(
        "item\tword\trt\n1\tit's\t3\n1\t</s>\t4\n2\tso\t5\n",
        reading=Reading(language=language),
    )
    first, second = text.sentences
    assert first.words == (["it", "'s"] if language else ["it's"])
    assert ([token.extra for token in first.tokens], first.extra) == ([("3",)], ("4",))
    assert (second.words, second.extra) == (["so"], ("",))


def test_marks_of_a_table_with_further_columns_have_those_of_their_row(read):
    rows = "1\tle\t3\tx\n1\tlac\t4\ty\n1\t</s>\t5\tz\n1\t<pad>\t6\tw\n"
    (sentence,) = read("item\tword\trt\tmore\n" + rows).sentences
    assert [token.extra for token in sentence.tokens] == [("3", "x"), ("4", "y")]
    assert (sentence.words, sentence.extra) == (["le", "lac"], ("5", "z"))


def test_objects_of_json_are_rows_with_all_their_fields(read):
    rows = '{"item": 7, "condition": "a", "text": "le chat"}\n{"text": ["le", "lac"], "x": [1]}\n'
    text = read(rows, "t.jsonl")
    assert (text.columns, text.items) == (("condition", "x"), False)
    assert [(sentence.id, sentence.words, sentence.extra) for sentence in text.sentences] == [
        ("7", ["le", "chat"], ("a", "")),
        ("", ["le", "lac"], ("", "[1]")),
    ]
    assert read(rows, "t.txt").sentences == text.sentences
    assert read("{le} chat\n", "t.txt").corpus.sentences == [["{le}", "chat"]]
    with pytest.raises(UserError, match=r"row 1: 'text' is 3: write a string or list of strings"):
        read('{"text": 3}', "t.json")
    nested = '{"a": {"b": "le chat"}}'
    assert read(nested, "t.json", column="a.b").corpus.sentences == [["le", "chat"]]


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_table_of_known_columns_is_known_whatever_its_suffix(read, delimiter):
    table = 'item|sentence|rt\n7|"le chat| dort"|1\n'.replace("|", delimiter)
    assert read(table, "t.txt").sentences == read(table, "t.csv").sentences


def test_lines_of_as_many_cells_without_known_columns_are_refused(read):
    for text in ("True\tle chat\nFalse\tla chat\n", "a\tb\tc\n\nd\te\tf\n"):
        with pytest.raises(
            UserError,
            match=r"t\.txt is a table without known columns, which is not read",
        ):
            read(text, "t.txt")
    for text in ("a\tb\n", "a\tb\nc d\n", "\ta b\n\tc\n"):
        assert read(text, "t.txt").corpus.sentences[0][0] == "a"


def test_missing_words_of_a_table_are_told_once(read, caplog):
    files.warn_once.cache_clear()
    table = "item\tword\n1\tle\n1\tNA\n2\tNA\n2\tchat\n"
    for _ in range(2):
        assert [sentence.words for sentence in read(table, "a.tsv").sentences] == [
            ["le", "NA"],
            ["NA", "chat"],
        ]
    (message,) = caplog.messages
    assert message.endswith("NA is read as a word: delete its rows where a word is missing")
    read("item\tword\n1\tNAT\n", "b.tsv")
    assert len(caplog.messages) == 1
