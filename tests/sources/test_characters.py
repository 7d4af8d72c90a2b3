"""Text, character by character."""

from zoo.data import Characters, Vocabulary


def test_nothing_of_the_text_is_lost(tmp_path):
    text = "To be,\n\n or  not\u00e9\n\U0001f600 end"
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    source = Characters(train=f"{path}[:-1]", validation=f"{path}[-1:]", tests=(str(path),))
    assert source.splits() == ("train", "validation", "test")
    assert ["".join(line) for line in source.read("train").sentences] == [
        "To be,\n",
        "\n",
        " or  not\u00e9\n",
    ]
    assert source.read("validation").sentences == [["\U0001f600", " ", "e", "n", "d"]]
    corpus = source.read("test")
    assert "".join(character for line in corpus.sentences for character in line) == text
    vocabulary = Vocabulary(boundary="none")
    lexicon, corpora = vocabulary.build(source)
    encoded = vocabulary.encode(corpora["train"], lexicon)
    assert (
        "".join(lexicon.words[word] for word in encoded.words)
        == text[: len("To be,\n\n or  not\u00e9\n")]
    )
