"""Recipes for one's own text: held-out parts, recognised kinds of text, and errors."""

import pytest

import configs
from zoo.configuration import apply_settings
from zoo.errors import UserError
from zoo.lab import own_text
from zoo.lab.own_text import recipes

ENGLISH = "The cat of Mr. Smith sat in the garden, and it was late. "
FRENCH = "L'homme est dans la maison, et les chats des voisins dorment. "


def write_text(folder, text, name="my text.txt"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def ranges(recipe):
    """The bounds of the three parts."""
    paths = [recipe.settings[f"data.{name}"] for name in ("train", "validation", "tests")]
    return [
        path[-1].partition("[")[2] if isinstance(path, tuple) else path.partition("[")[2]
        for path in paths
    ]


def same_by_hand(recipe):
    """Whether `train.py` makes the same experiment of the recipe's arguments."""
    name, settings = recipe.arguments()[1], recipe.arguments()[3::2]
    return apply_settings(configs.load(name), settings) == recipe.experiment()


def test_words(tmp_path):
    path = write_text(tmp_path, (ENGLISH * 3 + "\n") * 100)  # 300 sentences of 13 words
    recipe = own_text.choose([path])
    # A tenth of 3,900 words is 390, or 30 sentences.
    assert ranges(recipe) == ["[:240]".lstrip("["), "240:270]", "270:]"]
    experiment = recipe.experiment()
    assert (experiment.data.language, experiment.data.lines) == ("en", "paragraphs")
    assert same_by_hand(recipe)
    parts = [experiment.data.read(split).sentences for split in ("train", "validation", "test")]
    assert [*map(len, parts)] == [240, 30, 30]
    assert parts[0][0][:5] == ["The", "cat", "of", "Mr.", "Smith"]


def test_the_held_out_part_of_a_longer_text(tmp_path):
    path = write_text(tmp_path, (ENGLISH + "\n") * 10_000)  # 130,000 words
    held_out = 130_000 // 20 // 13  # a twentieth
    assert ranges(own_text.choose([path]))[1] == f"{10_000 - 2 * held_out}:{10_000 - held_out}]"


def test_wrapped_lines(tmp_path):
    words = (ENGLISH * 5).split()
    lines = [" ".join(words[at : at + 7]) for at in range(0, len(words), 7)]
    recipe = own_text.choose([write_text(tmp_path, "\n\n".join(["\n".join(lines)] * 60))])
    assert recipe.experiment().data.lines == "wrapped"
    sentences = recipe.experiment().data.read("train").sentences
    assert {" ".join(sentence) for sentence in sentences} == {
        "The cat of Mr. Smith sat in the garden , and it was late ."
    }


def test_verse_is_joined_where_lines_are_said_to_be_pieces(tmp_path):
    verse = "The cat of Mr. Smith,\nThat was late, sat;\nIn the garden it was;\nAnd it slept.\n\n"
    path = write_text(tmp_path, verse * 200)
    recipe = own_text.choose([path])
    assert recipe.experiment().data.lines == "paragraphs"  # 2 of 4 lines end a sentence
    assert "(--lines wrapped joins the lines up to blank ones first" in " ".join(recipe.notes)
    assert len(recipe.experiment().data.read("train").sentences[0]) == 6
    joined = own_text.choose([path], lines="wrapped")
    assert joined.experiment().data.lines == "wrapped" and same_by_hand(joined)
    assert joined.notes[0].startswith(f"{path}: 200 sentences")
    counts = [len(joined.experiment().data.read(split).sentences) for split in ("train", "test")]
    assert counts[0] + 2 * counts[1] == 200
    with pytest.raises(UserError, match=r"^--lines finds the sentences of one text of words"):
        own_text.choose([path], letters=True, lines="wrapped")


def test_one_very_long_line(tmp_path):
    recipe = own_text.choose([write_text(tmp_path, ENGLISH * 300)])
    assert ranges(recipe)[0] == "240]".rjust(5, ":")
    bare = "the cat sat in a garden and it was late " * 600
    path = write_text(tmp_path, bare, "bare.txt")
    assert ranges(own_text.choose([path]))[0] == ":24]"  # 30 pieces of 200 words
    assert ranges(own_text.choose([path], letters=True))[0] == ":19]"  # 24 of 1,000 characters


def test_tokenised_text_is_left_alone(tmp_path):
    path = write_text(tmp_path, "the cat , which sat , did n't sleep .\n" * 300)
    recipe = own_text.choose([path])
    assert (recipe.settings["data.language"], recipe.settings["data.lines"]) == ("", "sentences")
    assert recipe.experiment().data.read("train").sentences[0][6:8] == ["did", "n't"]
    assert same_by_hand(recipe)


TREEBANK_LINE = " consumers do n't want abc 's <unk> on oct. N at the corp. "


@pytest.mark.parametrize("sign", ["<unk>", "n't"])
def test_tokenised_text_without_punctuation_is_left_alone(tmp_path, sign):
    words = [
        word for word in TREEBANK_LINE.split() if word in (sign, "at", "oct.") or word.isalpha()
    ]
    path = write_text(tmp_path, (" ".join(words) + "\n") * 300)
    recipe = own_text.choose([path])
    assert recipe.experiment().data.read("train").sentences[0] == words
    assert "--language none" in " ".join(recipe.notes)
    pairs = own_text.choose([path, path])
    assert pairs.experiment().data.read("train").sentences[0] == words
    assert " ".join(pairs.notes).count("--language none") == 2


def test_unknown_words_of_untokenised_text_stay_whole(tmp_path):
    line = "Well, <unk> said it's <unk>, and that was all."
    path = write_text(tmp_path, (line + "\n") * 300)
    recipe = own_text.choose([path])
    assert recipe.settings.get("data.language", "en") == "en"
    (first, *_) = recipe.experiment().data.read("train").sentences
    assert " ".join(first) == "Well , <unk> said it 's <unk> , and that was all ."


def test_languages_are_recognised_and_can_be_set(tmp_path):
    path = write_text(tmp_path, (FRENCH + "\n") * 300)
    assert own_text.choose([path]).experiment().data.language == "fr"
    assert own_text.choose([path], languages=["de"]).experiment().data.language == "de"
    assert own_text.choose([path], languages=["none"]).experiment().data.language == ""
    with pytest.raises(UserError, match=r"^data\.language is 'xx'"):
        own_text.choose([path], languages=["xx"])


def test_options_that_do_not_fit_the_files_are_refused(tmp_path):
    path = write_text(tmp_path, (FRENCH + "\n") * 300)
    for paths, options, message in (
        ([path, path], {"letters": True}, "two files are pairs of sentences"),
        ([path], {"letters": True, "languages": ["fr"]}, "--language finds words"),
        ([path], {"languages": ["fr", "de"]}, "2 languages are given for one text: give one"),
        ([path, path], {"languages": ["fr"] * 3}, "two files have two languages"),
    ):
        with pytest.raises(UserError, match=message):
            own_text.choose(paths, **options)


def test_letters(tmp_path):
    path = write_text(tmp_path, "To be,\n or not\n" * 1000)  # 15,000 characters
    recipe = own_text.choose([path], letters=True)
    assert ranges(recipe) == [":1600]", "1600:1800]", "1800:]"]
    assert same_by_hand(recipe)
    assert recipe.experiment().vocabulary.boundary == "none"


def test_pairs(tmp_path):
    paths = [
        write_text(tmp_path, (ENGLISH + "\n") * 300, "my, own.en"),
        write_text(tmp_path, (FRENCH + "\n") * 300, 'my "own".fr'),
    ]
    recipe = own_text.choose(paths)
    data = recipe.experiment().data
    assert data.languages == ("en", "fr")
    assert [len(data.read(split).sentences) for split in data.splits()] == [240, 30, 30]
    assert same_by_hand(recipe)
    assert data.read("test").source_text.sentences[0][:5] == ["The", "cat", "of", "Mr.", "Smith"]


def test_a_folder(tmp_path):
    folder = tmp_path / "my texts"
    folder.mkdir()
    for name in ("b.txt", "a.txt"):
        write_text(folder, (f"{name[0]} {ENGLISH}\n") * 150, name)
    recipe = own_text.choose([str(folder)])
    assert ranges(recipe)[0] == ":240]"
    assert recipe.experiment().data.read("test").sentences[0][0] == "b"
    assert same_by_hand(recipe)


REFUSED = {
    "": "is empty: give a file with text",
    "A few words.": "has 3 words in 1 sentences, too few to train on and to judge by",
    "word " * 3000: "has 3,000 words in 15 sentences, too few",
    "他来了。" * 3000: "has hardly any blanks, by which words could be found: give --letters",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_texts_that_are_refused(tmp_path, text):
    path = write_text(tmp_path, text)
    with pytest.raises(UserError) as caught:
        own_text.choose([path])
    assert str(caught.value).startswith(f"{path} {REFUSED[text]}")


def test_files_that_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"a\.conllu is a treebank, which has no translation"):
        own_text.choose([write_text(tmp_path, "1\ta", "a.conllu")] * 2)
    with pytest.raises(UserError, match=r"two columns.* cut -f1 .*pairs\.tsv > sources\.txt"):
        own_text.choose([write_text(tmp_path, "a b\tc d\n\ne f\tg\n", "pairs.tsv")])
    quoted = '"text"\t"number"\n"a b"\t"1"\n'  # a table of one text, as pandas writes it
    assert not recipes._has_pairs(write_text(tmp_path, quoted, "text.tsv"))
    with pytest.raises(UserError, match=r"has a range, and parts are chosen here"):
        own_text.choose(["a.txt[:100]"])
