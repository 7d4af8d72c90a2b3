"""Mapped text: whatever is made of it is what is made of the same text in memory."""

import dataclasses
import gzip
import os
import tracemalloc

import datasets
import numpy as np
import pytest

from tests.lab.training import small
from zoo import changed
from zoo.data import Text
from zoo.data.batches import Batches
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError
from zoo.lab.commands import command_table
from zoo.lab.runs.seen_texts import Texts
from zoo.priors import DigitStrings, KneserNey, TopWords, Unigram
from zoo.sources import files, mapped_text

VOCABULARIES = {
    "counted": Vocabulary(),
    "rare words": Vocabulary(minimum_count=3, unknown="skipped", boundary="uncounted"),
    "two marks": Vocabulary(lower_case=True, boundary_marks=2, maximum_size=9),
    "none": Vocabulary(boundary="none"),
    "priors": Vocabulary(features=(TopWords(3),), background=Unigram()),
}


def lines(random, count=60):
    """Lines of nought to nine words, some with capitals and blanks around them."""
    words = [f"{'Ww'[number % 2]}ord{number // 2}" for number in range(30)]
    return [
        "  ".join(random.choice(words, random.integers(0, 10), p=np.arange(30, 0, -1) / 465)) + " "
        for _ in range(count)
    ]


@pytest.fixture
def text(tmp_path, random):
    """Paths (of a file, of its encoding)."""
    file = tmp_path / "a.txt"
    file.write_text("\ufeff" + "\r\n".join([*lines(random), "last <unk> one"]), encoding="utf-8")
    mapped_text.write([str(file)], tmp_path / "encoded")
    return str(file), str(tmp_path / "encoded")


def build(vocabulary, path, validation):
    """(lexicon, corpora) of a path as training text."""
    return vocabulary.build(Text(train=path, validation=validation))


@pytest.mark.parametrize("name", VOCABULARIES)
def test_words_and_lexicon_are_those_of_the_text(name, text):
    vocabulary = VOCABULARIES[name]
    (memory_lexicon, corpora), (lexicon, mapped) = (
        build(vocabulary, path, text[0]) for path in text
    )
    assert type(mapped["train"].sentences.text) is mapped_text.Mapped
    assert (
        lexicon.digest() == memory_lexicon.digest() and lexicon.left_out == memory_lexicon.left_out
    )
    text_in_memory = vocabulary.encode(corpora["train"], memory_lexicon)
    mapped_encoding = vocabulary.encode(mapped["train"], lexicon)
    assert (
        mapped_encoding.layout is not None
        and len(mapped_encoding.words) == len(text_in_memory.words) > 200
    )
    for field in ("words", "known", "counted", "trained", "starts"):
        value, expected = getattr(mapped_encoding, field), getattr(text_in_memory, field)
        np.testing.assert_array_equal(np.asarray(value), expected, err_msg=field)
        assert value.dtype == expected.dtype
    assert mapped_encoding.digest() == text_in_memory.digest()
    order = np.random.default_rng(3).integers(len(text_in_memory.starts), size=50)
    assert mapped_encoding.reordered(order).digest() == text_in_memory.reordered(order).digest()


@pytest.mark.parametrize("state", ["carried", "sentences"])
def test_rows_are_those_of_the_text(state, text):
    vocabulary = Vocabulary(minimum_count=2)
    batch_rows = []
    for path in text:
        lexicon, corpora = build(vocabulary, path, text[0])
        encoded = vocabulary.encode(corpora["train"], lexicon)
        shuffled = encoded.reordered(np.random.default_rng(0).permutation(len(encoded.starts)))
        batch_rows += [
            Batches(encoded_text, 4, 5, state, lexicon.boundary_id)
            for encoded_text in (encoded, shuffled)
        ]
    for memory_rows, mapped_rows in zip(batch_rows[:2], batch_rows[2:], strict=True):
        assert len(memory_rows) == len(mapped_rows) > 3
        assert memory_rows.trained_tokens == mapped_rows.trained_tokens
        for index in range(len(memory_rows)):
            for field in dataclasses.fields(memory_rows[index]):
                value, expected = (
                    getattr(encoded_text[index], field.name)
                    for encoded_text in (mapped_rows, memory_rows)
                )
                np.testing.assert_array_equal(value, expected, err_msg=field.name)
                assert value.dtype == expected.dtype


@pytest.mark.slow
def test_a_run_of_mapped_text_is_the_run_of_the_text(text, tmp_path):
    recipe = small.experiment(epochs=1, shuffle=True)
    metrics = []
    for number, path in enumerate(text):
        data = Text(train=path, validation=text[0])
        trainer = small.trainer(changed(recipe, {"data": data}), tmp_path / f"run{number}")
        trainer.train()
        metrics.append((trainer.task.data, small.metrics(trainer.workdir)))
    assert metrics[0] == metrics[1]


def test_seen_texts_and_backgrounds_are_those_of_the_text(text):
    vocabulary = Vocabulary(features=(TopWords(3),))
    (lexicon, corpora), (_, mapped) = (build(vocabulary, path, text[0]) for path in text)
    memory_texts, mapped_texts = (
        Texts.from_text("text", split_corpora["train"].sentences)
        for split_corpora in (corpora, mapped)
    )
    assert memory_texts.about == mapped_texts.about
    # By hand: the JSON list of all sentences.
    assert mapped_texts.about[0].sentences == len(corpora["train"].sentences)
    np.testing.assert_array_equal(memory_texts.hashes, mapped_texts.hashes)
    tables = [
        KneserNey(order=2).prepare(
            lexicon, {"train": vocabulary.encode(split_corpora["train"], lexicon)}
        )
        for split_corpora in (corpora, mapped)
    ]
    for name, array in tables[0].items():
        np.testing.assert_array_equal(array, tables[1][name])


def test_sentences_are_taken_one_by_one_and_in_ranges(text, monkeypatch):
    monkeypatch.setattr(mapped_text, "_AT_ONCE", 11)
    expected = Text(train=text[0], validation=text[0]).read("train").sentences
    mapped = Text(train=text[1], validation=text[0]).read("train").sentences
    assert len(mapped) == len(expected)
    assert [*mapped] == expected and [mapped[n] for n in range(len(expected))] == expected
    assert mapped[-1] == expected[-1] == ["last", "<unk>", "one"]
    for part in ("[:-40]", "[3:9]", "[50:]"):
        memory_part, mapped_part = (
            Text(train=path + part, validation=text[0]).read("train") for path in text
        )
        assert [*mapped_part.sentences] == memory_part.sentences
        assert mapped_part.token_counts() == memory_part.token_counts()
    lexicon, corpora = build(Vocabulary(), text[1] + "[3:9]", text[0])
    memory_lexicon, memory_corpora = build(Vocabulary(), text[0] + "[3:9]", text[0])
    digests = [
        Vocabulary().encode(memory_part["train"], words).digest()
        for memory_part, words in ((corpora, lexicon), (memory_corpora, memory_lexicon))
    ]
    assert digests[0] == digests[1]


def test_the_command_encodes_folders_and_compressed_files(tmp_path, capsys):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("one two\n\nthree one\n")
    (folder / "b.txt.gz").write_bytes(gzip.compress(b"four"))
    out = tmp_path / "made" / "encoded"
    command_table.main(["encode", str(folder), "--output", str(out), "--keep-blank-lines"])
    assert "5 words, 4 of them distinct, in 4 sentences" in capsys.readouterr().out
    corpus = Text(train=str(out), validation=str(out), blank_lines="kept").read("train")
    assert [*corpus.sentences] == [["one", "two"], [], ["three", "one"], ["four"]]
    with pytest.raises(UserError, match=r"encoded with blank lines kept, and data.blank_lines is"):
        Text(train=str(out), validation=str(out)).read("train")
    assert [path.name for path in out.parent.iterdir()] == ["encoded"]


def test_the_command_encodes_tables_and_data_sets(tmp_path, monkeypatch):
    """Example by example, and a data set of a hub without a copy on the disk."""
    rows = {"text": ["x", "y"], "body": ["one two\nthree", None]}
    split = datasets.Dataset.from_dict(rows)
    split.save_to_disk(str(tmp_path / "saved"))
    split.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text('text,body\nx,"one, two"\n')
    requests = []

    def load_dataset(*names, **options):
        requests.append((names, options))
        return datasets.Dataset.from_dict({"body": ["four"]}).to_iterable_dataset()

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    paths = [*(str(tmp_path / name) for name in ("saved", "a.parquet", "b.csv")), "hub:a/b:c:test"]
    out = tmp_path / "encoded"
    command_table.main(["encode", *paths, "--column", "body", "--output", str(out)])
    sentences = Text(train=str(out), validation=str(out)).read("train").sentences
    bodies = [["one", "two"], ["three"]]
    assert [*sentences] == [*bodies, *bodies, ["one,", "two"], ["four"]]
    assert requests == [(("a/b", "c"), {"split": "test", "streaming": True})]
    message = r"no column 'bod': set --column to one of 'text', 'body'\.$"
    with pytest.raises(UserError, match=message):
        command_table.main(["encode", paths[2], "--column", "bod", "--output", str(out / "no")])
    assert not (out / "no").exists()


def test_a_plain_file_of_one_endless_line_is_refused_before_it_fills_the_memory(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    (tmp_path / "text").write_bytes(b"word\n" + b"a " * (8 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=r"text, line 2, has more than 1,048,576 bytes in one"):
            mapped_text.write([str(tmp_path / "text")], tmp_path / "encoded")
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "encoded").exists()


def test_what_needs_each_string_is_refused(text):
    vocabulary = Vocabulary(minimum_count=9, features=(TopWords(3),))
    name = build(vocabulary, text[0], text[0])[0].feature_names[0]
    vocabulary = changed(vocabulary, {"open_classes": (DigitStrings(features=(name,)),)})
    with pytest.raises(UserError, match=r"leave vocabulary.open_classes out"):
        lexicon, corpora = build(vocabulary, text[1], text[0])
        vocabulary.encode(corpora["train"], lexicon)
    lexicon, _ = build(Vocabulary(unknown="refused"), text[1] + "[:9]", text[1] + "[:9]")
    corpus = Text(train=text[1], validation=text[0]).read("train")
    with pytest.raises(UserError, match=r"distinct words of .* are not in the lexicon"):
        Vocabulary(unknown="refused").encode(corpus, lexicon)


@pytest.mark.parametrize("name", ["types.txt", "lengths.npy", "ids.npy"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path, name, make):
    (tmp_path / "text").write_text("a b\n")
    folder = tmp_path / "encoded"
    mapped_text.write([str(tmp_path / "text")], folder)
    (folder / name).unlink()
    make(folder / name)
    with pytest.raises(UserError, match=rf"encoded has .*({name} is not a regular|Is a dir)"):
        mapped_text.Mapped(folder)
