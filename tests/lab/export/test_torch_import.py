"""A model of PyTorch is an export that every command reads, with log p as PyTorch has it."""

import csv
import json
import pickle
import shutil

import jax
import numpy as np
import pytest

import zoo
from tests.interop import (
    joeynmt_programs,
    tensorflow_programs,
    tensorflow_writer,
    torch_programs,
    torch_writer,
)
from tests.interop.torch_programs import SIZE
from tests.interop.torch_writer import named
from zoo.errors import UserError
from zoo.lab.commands import command_table
from zoo.lab.evaluation.run import Run
from zoo.lab.export import torch_import
from zoo.lab.training import warm_start

# In the order of ids, with marks that are not Zoo's.
WORDS = [*["the", "cat", "sat", "on", "mat", ".", "<eos>", "saw", "<UNK>", "dog", "ran", "a", "it"]]
TEXT = ["the dog sat on the zebra", "it ran ."]
TRAIN = "the cat sat\non <UNK> mat .\nthe cat saw\n"


def surprisals(arrays):
    """-log p of the words of TEXT and the end of each sentence, begun after <eos>."""
    numbers = []
    for sentence in TEXT:
        ids = [WORDS.index(word) if word in WORDS else 8 for word in sentence.split()]
        log_probs = torch_programs.log_probs("LSTM", arrays, [6, *ids])
        numbers += [-row[word] for row, word in zip(log_probs, [*ids, 6], strict=True)]
    return numbers


@pytest.fixture(scope="module")
def arrays():
    return torch_programs.word_language_model(np.random.default_rng(3))


@pytest.fixture(scope="module")
def imported(tmp_path_factory, arrays):
    """The folder of an import by a list of words, whose counts are not known."""
    folder = tmp_path_factory.mktemp("imported")
    torch_writer.save(folder / "model.pt", arrays)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "text.txt").write_text("\n".join(TEXT) + "\n")
    words = ["--words", str(folder / "vocab.txt")]
    command_table.main(["import", str(folder / "model.pt"), str(folder / "run"), *words])
    return folder


def test_surprisals_are_pytorchs(imported, arrays):
    rows = zoo.load(imported / "run").surprisal("\n".join(TEXT))
    np.testing.assert_allclose([row.surprisal_nats for row in rows], surprisals(arrays), rtol=1e-5)
    assert [row.read_as for row in rows][5:7] == ["<UNK>", "<eos>"]
    assert not rows[5].known


def test_counts_that_are_not_known_are_not_zero(imported, capsys):
    run = str(imported / "run")
    command_table.main(["score", run, str(imported / "text.txt"), "--words"])
    table, notes = capsys.readouterr()
    rows = [*csv.DictReader(table.splitlines(), delimiter="\t")]
    assert {row["training_count"] for row in rows} == {""}
    assert "1 of the 9 words" in notes and "means nothing" not in notes
    command_table.main(["words", run])
    assert '"cat"\t\n' in capsys.readouterr().out
    command_table.main(["evaluate", run, "--data", str(imported / "text.txt")])
    figures = capsys.readouterr().out
    assert "unseen" not in figures and "not recorded" in figures
    assert "words seen in training" not in figures


def test_its_own_text_is_not_known(imported):
    with pytest.raises(UserError, match=r"text is not known.*--data FILE"):
        command_table.main(["evaluate", str(imported / "run")])


def test_a_corpus_gives_words_in_the_order_of_their_first_occurrence(tmp_path, arrays):
    (tmp_path / "train.txt").write_text(TRAIN)
    (tmp_path / "valid.txt").write_text("the dog ran .\n")
    (tmp_path / "test.txt").write_text("a cat saw it\n")
    torch_writer.save(tmp_path / "model.pt", arrays, legacy=True)
    torch_import.write(str(tmp_path / "model.pt"), str(tmp_path / "run"), corpus=str(tmp_path))
    lexicon = Run.load(tmp_path / "run").lexicon
    expected = [
        *["the", "cat", "sat", "<eos>", "on", "<UNK>", "mat", ".", "saw", "dog", "ran", "a", "it"]
    ]
    assert lexicon.words == (*expected,)
    assert dict(zip(expected, lexicon.counts.tolist(), strict=True)) == {
        **{"the": 2, "cat": 2, "sat": 1, "<eos>": 3, "on": 1, "<UNK>": 1, "mat": 1, ".": 1},
        **{"saw": 1, "dog": 0, "ran": 0, "a": 0, "it": 0},
    }
    assert (lexicon.unknown, lexicon.boundary) == ("<UNK>", "<eos>")


def test_words_of_a_pickle(tmp_path, arrays):
    """As ULMFiT's itos.pkl, with words of white space, which no text has."""
    listed = ["xxunk", "xxbos", "\n", *WORDS[3:8], "b", *WORDS[9:]]
    (tmp_path / "itos.pkl").write_bytes(pickle.dumps(listed))
    torch_writer.save(tmp_path / "model.pth", {"model": arrays})
    files = str(tmp_path / "model.pth"), str(tmp_path / "run"), str(tmp_path / "itos.pkl")
    torch_import.write(*files, boundary="xxbos")
    run = Run.load(tmp_path / "run")
    assert run.lexicon.words[:4] == ("xxunk", "xxbos", "'\\n'", "on")
    assert (run.lexicon.unknown, run.lexicon.boundary) == ("xxunk", "xxbos")
    assert not run.lexicon.is_character_level


@pytest.mark.parametrize("forward", [True, False])
def test_characters_of_flair(tmp_path, forward):
    """A checkpoint has its characters, and says in which direction it reads."""
    random, letters = np.random.default_rng(7), ["<unk>", " ", *"abcdeé.,-x\n"]
    arrays = torch_programs.word_language_model(random)
    dictionary = torch_writer.module(named("flair.data", "Dictionary"))
    dictionary.__dict__ = {"idx2item": [letter.encode() for letter in letters], "add_unk": True}
    saved = {"state_dict": arrays, "dictionary": dictionary, "is_forward_lm": forward, "nout": None}
    torch_writer.save(tmp_path / "model.pt", saved)
    notes = torch_import.write(str(tmp_path / "model.pt"), str(tmp_path / "run"))
    assert ("reverse" in "".join(notes)) is not forward
    model = zoo.load(tmp_path / "run")
    assert model.lexicon.is_character_level and model.lexicon.boundary is None
    rows = model.surprisal("a bé")
    log_probs = torch_programs.log_probs("LSTM", arrays, [2, 1, 3, 7])
    expected = [-log_probs[0, 1], -log_probs[1, 3], -log_probs[2, 7]]
    assert np.isnan(rows[0].surprisal_nats)
    np.testing.assert_allclose([row.surprisal_nats for row in rows[1:]], expected, rtol=1e-5)


def test_words_of_another_model_are_refused(imported, tmp_path):
    (tmp_path / "words.txt").write_text("the\ncat\n")
    files = str(imported / "model.pt"), str(tmp_path / "run")
    with pytest.raises(UserError, match=r"words.txt: it has 2 words, and .*model.pt has 13"):
        torch_import.write(*files, words=str(tmp_path / "words.txt"))
    with pytest.raises(UserError, match=r"model.pt: it has no list of words: give --words"):
        torch_import.write(*files)
    (tmp_path / "words.txt").write_text("the\n" * 13)
    with pytest.raises(UserError, match="'the' twice"):
        torch_import.write(*files, words=str(tmp_path / "words.txt"))
    assert not (tmp_path / "run").exists()


def test_a_model_whose_sizes_do_not_fit_is_refused(imported, arrays, tmp_path):
    changed = {**arrays, "rnn.weight_ih_l1": np.zeros((4 * SIZE, SIZE + 2), np.float32)}
    torch_writer.save(tmp_path / "model.pt", changed)
    words = str(imported / "vocab.txt")
    with pytest.raises(UserError, match=r"core/1/input is .*9, 28.* and should be .*7, 28"):
        torch_import.write(str(tmp_path / "model.pt"), str(tmp_path / "run"), words)


def test_a_state_dict_of_an_import_is_imported_again(imported, tmp_path, arrays, capsys):
    command_table.main(["export", str(imported / "run"), str(tmp_path / "torch"), "--torch"])
    files = tmp_path / "torch" / "model.safetensors", tmp_path / "torch" / "words.txt"
    assert files[1].read_text() == (imported / "vocab.txt").read_text()
    command_table.main(["import", str(files[0]), str(tmp_path / "again"), "--words", str(files[1])])
    rows = zoo.load(tmp_path / "again").surprisal("\n".join(TEXT))
    found = [row.surprisal_nats for row in rows]
    np.testing.assert_allclose(found, surprisals(arrays), rtol=0, atol=2e-6)


def test_the_record_names_the_file(imported):
    record = json.loads((imported / "run" / "export.json").read_text())
    assert record["imported"]["file"] == "model.pt"
    assert len(record["imported"]["sha256"]) == 64
    files = (imported / "run").glob("*.*")
    assert len({file.stat().st_mode for file in files}) == 1


# "cat sat": the lemma "sit" has the forms "sat" and "saw", which differ in number alone.
AGREEMENT = """\
1\tthe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\t_\tNumber=Sing\t3\tnsubj\t_\t_
3\tsat\tsit\tVERB\t_\tNumber=Sing\t0\troot\t_\t_

1\tit\tit\tPRON\t_\tNumber=Plur\t2\tnsubj\t_\t_
2\tsaw\tsit\tVERB\t_\tNumber=Plur\t0\troot\t_\t_

"""


@pytest.mark.slow
def test_commands_read_an_import(imported, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, text = str(imported / "run"), str(imported / "text.txt")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("good\tbad\nthe cat sat\tthe cat saw\n")
    (tmp_path / "new.txt").write_text("zebra\n")
    lists = tmp_path / "lists.txt"
    lists.write_text("0 ||| the cat sat ||| ||| 1\n0 ||| the cat ran ||| ||| 2\n")
    (tmp_path / "references.txt").write_text("the cat sat\n")
    suite = tmp_path / "suite.csv"
    regions = [(1, "a", "it sat"), (2, "a", "."), (1, "b", "the mat sat"), (2, "b", ".")]
    suite.write_text(
        "item,condition,region,word\n" + "".join(f"1,{b},{a},{text}\n" for a, b, text in regions)
    )
    (tmp_path / "bank.conllu").write_text(AGREEMENT)
    spread = ["--add-words", "new.txt", "--spread-unknown"]
    shutil.copy(text, "text.txt")
    settings = {
        **{"init_from": run, "data.train": "text.txt", "data.validation": "text.txt"},
        **{"data.tests": "('text.txt',)", "vocabulary.minimum_count": 1, "model.head": "Softmax"},
        **{"model.embedding.size": 5, "model.core.size": 7, "model.core.layers": 2},
        **{"training.epochs": 1, "training.batch": 2, "training.length": 3, "evaluation.batch": 1},
    }
    options = [word for item in settings.items() for word in ("--set", "{}={}".format(*item))]
    for line in (
        ["score", run, text],
        ["score", run, text, "--words", "--state", "carried"],
        ["generate", run, "--prompt", "the cat", "--count", "2"],
        ["words", run],
        ["evaluate", run, "--data", text, "--state", "sentences"],
        ["evaluate", run, "--data", text, "--cache", "100,0.3,0.1"],
        ["evaluate", run, "--data", text, "--dynamic", "sgd,0.1,0.001"],
        ["evaluate", run, "--data", text, *spread],
        ["evaluate", run, "--minimal-pairs", str(pairs)],
        ["evaluate", run, "--agreement", "--data", "bank.conllu"],
        ["evaluate", run, "--suites", str(suite), "--prediction", "(2;%a%) > (2;%b%)"],
        ["compare", run],
        ["compare", run, "--text", text, "--page", "page.html"],
        ["rescore", "tune", str(lists), "references.txt", "--metric", "wer", "--run", run],
        ["export", run, "exported"],
        ["export", run, "torch", "--torch"],
        ["train", "--config", "own_text", "started", "--devices", "1", *options],
        ["score", "exported", text, "--words"],
        ["evaluate", "exported", "--data", text],
    ):
        command_table.main(line)
        output = capsys.readouterr().out
        assert output and "saw both" not in output, line
    assert "never in training" not in (tmp_path / "page.html").read_text()


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """(the folder of an import of JoeyNMT's, log p of each token of its pairs by its equations)."""
    folder, program = tmp_path_factory.mktemp("joeynmt"), joeynmt_programs.Program(lower_case=True)
    arrays = program.draw(np.random.default_rng(3))
    command_table.main(["import", str(program.write(folder, arrays)), str(folder / "run")])
    pairs = {"Le chat a vu un zèbre .": "the cat has seen a dog .", "un chien": "A dog ran"}
    (folder / "src.txt").write_text("\n".join(pairs) + "\n")
    (folder / "trg.txt").write_text("\n".join(pairs.values()) + "\n")
    log_probs = []
    for sentences in pairs.items():
        sides = joeynmt_programs.SOURCE_WORDS, joeynmt_programs.TARGET_WORDS
        ids = [
            [words.index(word) if word in words else 0 for word in (*text.lower().split(), "</s>")]
            for words, text in zip(sides, sentences, strict=True)
        ]
        scores = program.log_probs(arrays, *ids)
        log_probs.append(scores[np.arange(len(ids[1])), ids[1]])
    return folder, log_probs


def test_a_translator_has_joeynmts_log_probs(translator):
    folder, log_probs = translator
    run = Run.load(folder / "run")
    corpus = run.read_file(f"{folder}/src.txt,{folder}/trg.txt").corpus
    _, scores = run.score_corpus(corpus)
    np.testing.assert_allclose(scores.log_prob, np.concatenate(log_probs), rtol=0, atol=5e-6)
    assert scores.tokens == 12


def test_commands_read_a_translator(translator, tmp_path, capsys):
    folder, log_probs = translator
    run, pairs = str(folder / "run"), f"{folder}/src.txt,{folder}/trg.txt"
    expected = f"{np.exp(-np.concatenate(log_probs).mean()):.2f}"
    command_table.main(["evaluate", run, "--data", pairs])
    assert expected in capsys.readouterr().out
    command_table.main(["translate", run, f"{folder}/src.txt", "--beam", "3", "--nbest", "2"])
    assert len(capsys.readouterr().out.splitlines()) == 4
    links = tmp_path / "links"
    command_table.main(["translate", run, f"{folder}/src.txt", "--alignments", str(links)])
    assert len(links.read_text().splitlines()) == 2
    capsys.readouterr()
    command_table.main(["export", run, str(tmp_path / "exported")])
    command_table.main(["evaluate", str(tmp_path / "exported"), "--data", pairs])
    assert expected in capsys.readouterr().out


def test_a_training_starts_from_every_part_of_a_translator(translator):
    run = Run.load(translator[0] / "run")
    start = warm_start.read(
        str(run.path), run.experiment.model, [run.lexicon, *run.source_lexicons]
    )
    assert start.params.keys() == run.params.keys() >= {"attention", "bridge", "encoder"}
    jax.tree.map(np.testing.assert_array_equal, start.params, run.params)


def test_options_of_other_programs_are_refused_for_a_translator(translator, tmp_path):
    files = str(translator[0] / "best.ckpt"), str(tmp_path / "run")
    with pytest.raises(UserError, match=r"best\.ckpt is JoeyNMT's, .*: leave the options out"):
        torch_import.write(*files, words=str(translator[0] / "trg_vocab.txt"))


@pytest.mark.parametrize("file", ["config.yaml", "src_vocab.txt", "trg_vocab.txt"])
def test_a_translator_without_what_lies_beside_it_is_refused(translator, tmp_path, file):
    folder = tmp_path / "copy"
    shutil.copytree(translator[0], folder, ignore=shutil.ignore_patterns(file))
    with pytest.raises(UserError, match=rf"{file} .*No such file"):
        torch_import.write(str(folder / "best.ckpt"), str(tmp_path / "run"))
    (folder / file).write_text("the\ncat\n" if "vocab" in file else "model: [")
    with pytest.raises(UserError, match=rf"{file}: it has 2 words|{file} cannot be read"):
        torch_import.write(str(folder / "best.ckpt"), str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.fixture
def lm_1b(tmp_path):
    """(A folder of lm_1b's files, which have a tensor of something else too, its tensors)."""
    tensors = tensorflow_programs.draw_model(np.random.default_rng(4))
    folder = tmp_path / "data"
    folder.mkdir()
    saved = [*tensors.items(), ("global_step", np.int64(7)), ("other/state", np.zeros(3, "f4"))]
    for number in range(4):
        tensorflow_writer.save(folder / f"ckpt-part{number}", dict(saved[number::4]))
    (folder / "vocab.txt").write_text("\n".join([*tensorflow_programs.WORDS, "!!!MAXTERMID", ""]))
    return folder, tensors


def test_surprisals_of_lm_1b_are_its_programs(lm_1b, tmp_path, capsys):
    folder, tensors = lm_1b
    words, run = tensorflow_programs.WORDS, str(tmp_path / "run")
    command_table.main(["import", str(folder), run, "--words", str(folder / "vocab.txt")])
    note = "left out of the model: 'other/state'"
    output = "".join(capsys.readouterr())
    assert note in output and "boundary </S>, unknown words <UNK>" in output
    sentences = ["the \u017elu\u0165ou\u010dk\u00fd dog sat on zebra", "it " + "x" * 60 + " ran"]
    expected = []
    for sentence in sentences:
        read = [word if word in words else "<UNK>" for word in sentence.split()]
        rows = tensorflow_programs.log_probs(tensors, [None, *read])
        expected += [-row[words.index(x)] for row, x in zip(rows, [*read, "</S>"], strict=True)]
    rows = zoo.load(run).surprisal("\n".join(sentences))
    assert [row.read_as for row in rows][5:7] == ["<UNK>", "</S>"]
    np.testing.assert_allclose([row.surprisal_nats for row in rows], expected, rtol=1e-5)


def test_a_folder_that_is_no_lm_1b_is_refused(lm_1b, tmp_path):
    folder, tensors = lm_1b
    run, words = str(tmp_path / "run"), str(folder / "vocab.txt")
    with pytest.raises(UserError, match=r"data: it has no list of words: give --words FILE"):
        torch_import.write(str(folder), run)
    (tmp_path / "words").write_text("".join(f"word{n}\n" for n in range(22)))
    with pytest.raises(UserError, match=r"words: it has 22 words, and .*data has 21"):
        torch_import.write(str(folder), run, str(tmp_path / "words"))
    tensors["lstm/lstm_0/B"] = np.zeros(32, np.float32)
    tensorflow_writer.save(folder / "ckpt-part9", tensors)
    with pytest.raises(UserError, match=r"core/0/bias is float32.32. and should be float32.28."):
        torch_import.write(str(folder), run, words)
    with pytest.raises(UserError, match=r"run: it has no 'char_embedding/W': give the folder"):
        (tmp_path / "run").mkdir()
        torch_import.write(run, str(tmp_path / "other"), words)
