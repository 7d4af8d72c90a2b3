"""Commands on a disk without room, on files that may not grow, and beside another process: one
sentence that names the file, and nothing half written is left."""

import contextlib
import pathlib
import resource

import numpy as np
import pytest

from zoo.errors import UserError
from zoo.lab.commands import command_table, program
from zoo.lab.evaluation import passport
from zoo.lab.evaluation.run import Run
from zoo.lab.export import folder
from zoo.lab.runs import output_files
from zoo.sources import mapped_text

ROOT = pathlib.Path(__file__).parents[3]
MICRO = str(ROOT / "models/micro")
LIMITED = (
    "error: a file would be larger than is allowed ({}): raise the limit (ulimit -f) and start "
    "again; files and checkpoints that were finished before are whole.\n"
)


@contextlib.contextmanager
def files_up_to(size):
    """No file of this process may grow beyond so many bytes within."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def call(*line):
    return program.run(lambda: command_table.main([*map(str, line)]))


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = np.random.default_rng(0).integers(5000, size=(400, 10))
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(map(str, line)) + "\n" for line in words))
    (tmp_path / "out").mkdir()
    return path


@pytest.mark.parametrize(
    ("line", "size", "file"),
    [
        # ids.npy takes 16,128 bytes, all other files less.
        (("encode", "text.txt", "--output", "out/encoded"), 16_000, "out/encoded"),
        (("export", MICRO, "out/export"), 300_000, "out/export"),
        (("words", MICRO, "--output", "out/words.tsv"), 10_000, "out/words.tsv"),
    ],
)
def test_a_file_that_may_not_grow_is_named(text, capsys, line, size, file):
    with files_up_to(size):
        assert call(*line) == 2
    assert capsys.readouterr().err.splitlines(True)[-1] == LIMITED.format(file)
    assert not [*pathlib.Path("out").iterdir()]
    assert call(*line) == 0  # no file takes more than it has to


def test_rescored_lists_name_their_file(text, capsys):
    lines = [f"{n} ||| {'word ' * 9}||| x= 1 ||| 0\n" for n in range(900)]
    text.write_text("".join(lines))
    pathlib.Path("w.json").write_text('{"weights": {"x": 1.0}}')
    with files_up_to(20_000):
        assert call("rescore", "apply", "text.txt", "w.json", "--output", "out/lists") == 2
    assert capsys.readouterr().err == LIMITED.format("out/lists")
    assert not [*pathlib.Path("out").iterdir()]


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_device_is_named(capsys):
    lines = ["much\n"]
    assert program.run(lambda: output_files.write_lines("/dev/full", lines, "the lists")) == 2
    assert capsys.readouterr().err.startswith("error: the disk is full (/dev/full): make room and ")


@pytest.mark.parametrize("command", ["encode", "export"])
def test_of_two_into_one_folder_the_second_is_told(text, capsys, monkeypatch, command):
    module, line = {
        "encode": (mapped_text, ("encode", text, "--output", "out/one")),
        "export": (folder, ("export", MICRO, "out/one")),
    }[command]
    write = module._write

    def other_first(*arguments):
        monkeypatch.setattr(module, "_write", write)
        assert call(*line) == 0
        return write(*arguments)

    monkeypatch.setattr(module, "_write", other_first)
    assert call(*line) == 2
    message = (
        "error: out/one has just been made by another process: look at it, or give another folder"
    )
    assert capsys.readouterr().err == f"{message}.\n"
    assert [path.name for path in pathlib.Path("out").iterdir()] == ["one"]


READ_ONLY = {
    "evaluate": ("evaluate", "run"),
    "translate": ("translate", "run", "--split", "test", "--bleu"),
    "agreement": ("evaluate", "run", "--agreement"),
    "the micro language": ("compare", "other", "run", "--micro"),
}


@pytest.mark.parametrize("results", [True, False])
@pytest.mark.parametrize("command", READ_ONLY)
def test_results_that_could_not_be_kept_are_refused_before_any_work(
    tmp_path, monkeypatch, capsys, command, results
):
    monkeypatch.chdir(tmp_path)
    for name in ("run", "other"):
        (tmp_path / name / ("results" if results else "")).mkdir(parents=True)
    locked = "run/results" if results else "run"

    def access(path, mode):  # not of the system, which lets root write everywhere
        return pathlib.Path(path) != pathlib.Path(locked)

    monkeypatch.setattr("os.access", access)
    monkeypatch.setattr(Run, "load", lambda path: pytest.fail("work was begun"))
    assert call(*READ_ONLY[command]) == 2
    message = f"error: {locked} is not a folder that can be written to: judge a copy of the run.\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("command", READ_ONLY)
def test_a_folder_whose_name_is_too_long_is_a_sentence(capsys, command):
    line = [word for word in READ_ONLY[command] if word != "other"]
    assert call(*("a" * 300 if word == "run" else word for word in line)) == 2
    assert "File name too long" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_place_of_results_is_looked_at(tmp_path, kind):
    passport.check(tmp_path / "nothing")  # Run.load says what is wrong
    (tmp_path / "file").touch()
    passport.check(tmp_path / "file")
    if kind == "folder":
        (tmp_path / "results").mkdir()
        passport.check(tmp_path)
        assert not [*(tmp_path / "results").iterdir()]
    else:
        (tmp_path / "results").touch()
        with pytest.raises(UserError, match="results is not a folder that can be"):
            passport.check(tmp_path)


def test_a_corpus_is_not_fetched_for_a_folder_that_is_locked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("os.access", lambda path, mode: pathlib.Path(path) != tmp_path)
    monkeypatch.setattr("zoo.sources.fetch.fetch", lambda *_, **__: pytest.fail("it was fetched"))
    assert call("data", "tinyshakespeare", "--into", tmp_path) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path} cannot be written to: make it ")
