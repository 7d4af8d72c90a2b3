"""Features of words from the columns of a file, from a list, and from a user's own function."""

import pytest

from zoo.errors import UserError
from zoo.priors import WordFunction, WordList, WordTable

WORDS = ("</s>", "chats", "dort", "le", "Lyon")
LEXICON = """# of my own
form\tPOS\tmorphology\tfrequency
chats\tNOUN\tGender=Masc|Number=Plur\t3.1

dort\tVERB\tNumber=Sing|finite\t_
dort\tVERB\t\t2\r
le\tDET\t_\t\t
lyon\t"PROPN"\t=y\t-1e2
absent\tNOUN\t_\t_
""".replace("\t\t\n", "\t\n")


def table_features(folder, text=LEXICON, words=WORDS, **options):
    path = folder / "lexicon.tsv"
    path.write_text(text, encoding="utf-8")
    return WordTable(str(path), **options).features(words, {}, {})


def test_cells_are_features_of_the_names_that_a_treebank_has(tmp_path):
    assert table_features(tmp_path, separator="|", numbers=("frequency",)) == [
        {},
        {"POS:NOUN": 1.0, "Gender:Masc": 1.0, "Number:Plur": 1.0, "frequency": 3.1},
        {"POS:VERB": 1.0, "Number:Sing": 1.0, "morphology:finite": 1.0, "frequency": 2.0},
        {"POS:DET": 1.0},
        {},
    ]


def test_a_cell_is_one_item_and_case_matters_unless_the_user_says_otherwise(tmp_path):
    features = table_features(tmp_path, lower_case=True)
    assert features[4] == {"POS:PROPN": 1.0, "morphology:=y": 1.0, "frequency:-1e2": 1.0}
    assert features[1]["Gender:Masc|Number=Plur"] == 1.0


def test_columns_that_count(tmp_path):
    assert table_features(tmp_path, kept=("POS",))[1:3] == [{"POS:NOUN": 1.0}, {"POS:VERB": 1.0}]
    features = table_features(tmp_path, kept=("POS",), numbers=("frequency",))
    assert features[1] == {"POS:NOUN": 1.0, "frequency": 3.1}


def test_a_file_without_a_line_of_names(tmp_path):
    """As those of UniMorph."""
    text = "chat\tchats\tN;PL\ndormir\tdort\tV;PRS;3;SG\ndormir\tdort\tV;PRS\n"
    columns = ("lemma", "form", "tag")
    features = table_features(
        tmp_path, text, columns=columns, word="form", kept=("tag",), separator=";"
    )
    assert features[1:3] == [
        {"tag:N": 1.0, "tag:PL": 1.0},
        {"tag:V": 1.0, "tag:PRS": 1.0, "tag:3": 1.0, "tag:SG": 1.0},
    ]
    features = table_features(tmp_path, text, columns=columns, word="form")
    assert features[1] == {"lemma:chat": 1.0, "tag:N;PL": 1.0}


@pytest.mark.parametrize(
    ("text", "line", "options"),
    [
        ("form\tPOS\nle\tDET\tx\n", 2, {}),
        ("form\tPOS\n\nle\n", 3, {}),
        ("form\tPOS\n\tDET\n", 2, {}),
        ("form\tn\nle\tmany\n", 2, {"numbers": ("n",)}),
        ("form\tn\nle\tnan\n", 2, {"numbers": ("n",)}),
        ("form\tn\nle\t1\nle\t1\nle\t2\n", 4, {"numbers": ("n",)}),
        ("# mine\nform\tPOS\tPOS\nle\ta\tb\n", 2, {}),
        ("form\t\nle\ta\n", 1, {}),
        ("form\nle\n", 1, {}),
        ("form\tPOS\nle\tDET\n", 1, {"kept": ("pos",)}),
        ("form\tPOS\nle\tDET\n", 1, {"word": "word"}),
        ("form\tPOS\nle\tDET\n", 1, {"numbers": ("frequency",)}),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, line, options):
    with pytest.raises(UserError, match=rf"lexicon\.tsv, line {line}\b"):
        table_features(tmp_path, text, **options)


def test_no_word_of_the_lexicon(tmp_path):
    with pytest.raises(UserError, match=r"none of the 1 words of .*, such as 'NOUN', is in the"):
        table_features(tmp_path, "POS\tform\nNOUN\tchats\n")
    with pytest.raises(UserError, match="has no line but comments: give the names of its columns"):
        table_features(tmp_path, "# mine\n\n")
    with pytest.raises(UserError, match=r"WordTable\.columns: the columns .* do not include 'x'"):
        table_features(tmp_path, "le\tDET\n", columns=("form", "POS"), word="x")
    with pytest.raises(UserError, match="does not exist"):
        WordTable(str(tmp_path / "none.tsv")).features(("a",), {}, {})


def list_features(folder, text, words=("Lyon", "lyon", "Nice", "37"), **options):
    path = folder / "places.txt"
    path.write_text(text, encoding="utf-8")
    return WordList(str(path), **options).features(words, {}, {})


def test_words_of_the_list_have_the_feature(tmp_path):
    features = list_features(tmp_path, "# cities\nLyon\n\n Nice \t0.25\r\n", name="place")
    assert features == [{"List:place": 1.0}, {}, {"List:place": 0.25}, {}]


def test_case_is_no_matter_if_so_asked(tmp_path):
    features = list_features(tmp_path, "LYON\n", name="place", lower_case=True)
    assert features == [{"List:place": 1.0}, {"List:place": 1.0}, {}, {}]


def test_without_a_name_the_path_is_the_name(tmp_path):
    assert list_features(tmp_path, "37\n")[3] == {f"List:{tmp_path}/places.txt": 1.0}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Lyon\nNew York\n", 2),
        ("Lyon\tmany\n", 1),
        ("a\n\nb\tnan\n", 3),
        ("a\tinf\n", 1),
        ("a\n\t2\n", 2),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, line):
    with pytest.raises(UserError, match=rf"places\.txt, line {line}:"):
        list_features(tmp_path, text)


def test_a_list_without_a_word_of_the_lexicon_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"none of the 2 words of .*places\.txt.*lower_case=True"):
        list_features(tmp_path, "Lyon\nNice\n", words=("lyon", "nice"))
    with pytest.raises(UserError, match="none of the 0 words"):
        list_features(tmp_path, "# nothing yet\n")


# ---------------------------------------------------- a user's own function


def capitals(word):
    return {"Own:capital": 1} if word[:1].isupper() else {}


def names(word):
    return [f"Own:{len(word)}"]


def one_name(word):
    return "Own:all"


def bad(word):
    return {"nan": {"Own:x": float("nan")}, "none": None, "key": {3: 1.0}, "text": {"Own:x": "a"}}[
        word
    ]


def features(name, *words):
    return WordFunction(f"{__name__}:{name}").features(words, {}, {})


def test_values_or_names():
    assert features("capitals", "Lyon", "lyon") == [{"Own:capital": 1.0}, {}]
    assert features("names", "Lyon", "a") == [{"Own:4": 1.0}, {"Own:1": 1.0}]
    assert features("one_name", "Lyon") == [{"Own:all": 1.0}]


@pytest.mark.parametrize("name", ["no_module:f", "math:no_function", "math", "", ":", "math:pi"])
def test_a_function_that_there_is_not(name):
    with pytest.raises(UserError, match=r"priors\.WordFunction"):
        WordFunction(name).features(("a",), {}, {})


@pytest.mark.parametrize("word", ["nan", "none", "key", "text"])
def test_what_a_function_must_not_give(word):
    with pytest.raises(UserError, match=rf"gives .* for '{word}'"):
        features("bad", word)


def fails(word):
    return {}["mine"]


def fails_late(word):
    yield word
    raise ValueError("mine")


@pytest.mark.parametrize(("name", "kind"), [("fails", KeyError), ("fails_late", ValueError)])
def test_an_error_of_the_function_is_let_through_with_its_word(name, kind):
    note = rf"{__name__}:{name} was given the word 'a'\."
    with pytest.raises(kind, match=rf"^'?mine'?\n{note}$"):
        features(name, "a")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("{}['mine']", KeyError, "^'mine'$"),
        ("import no_such_package", ModuleNotFoundError, "^No module named 'no_such_package'$"),
        ("from math import mine", ImportError, "^cannot import name 'mine'"),
    ],
)
def test_an_error_of_its_module_is_let_through(text, kind, message, tmp_path, monkeypatch):
    (tmp_path / "failing_features.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(kind, match=message):
        WordFunction("failing_features:f").features(("a",), {}, {})
