"""How the programs end: exit codes, and one sentence instead of a traceback."""

import errno
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import textwrap

import pytest

from zoo.errors import Interrupted, UserError
from zoo.lab.commands import program


def raising(error):
    def main():
        print("begun")
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "code", "errors"),
    [
        (UserError("x is wrong: do y."), 2, "error: x is wrong: do y.\n"),
        (Interrupted("SIGTERM after step 3.", signal.SIGTERM), 143, "SIGTERM after step 3.\n"),
        (Interrupted("SIGINT after step 3.", signal.SIGINT), 130, "SIGINT after step 3.\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/a"),
            2,
            "error: the disk is full (runs/a): make room and start again; files and checkpoints "
            "that were finished before are whole.\n",
        ),
        (
            OSError(errno.EDQUOT, "Disk quota exceeded"),
            2,
            "error: the user's share of the disk is used up (standard output): make room and start "
            "again; files and checkpoints that were finished before are whole.\n",
        ),
    ],
)
def test_an_end_that_is_no_bug_is_a_sentence(capsys, error, code, errors):
    assert program.run(raising(error)) == code
    assert capsys.readouterr() == ("begun\n", errors)


def test_a_program_that_ends_well_says_nothing_of_it(capsys):
    assert program.run(lambda: print("done")) == 0
    assert capsys.readouterr() == ("done\n", "")


@pytest.mark.parametrize("error", [ValueError("a bug"), OSError(errno.EIO, "Input/output error")])
def test_a_bug_keeps_its_traceback(error):
    with pytest.raises(type(error), match=str(error.args[-1])):
        program.run(raising(error))


def process(source, arguments=(), **options):
    """A process of its own, with `cli` there to call."""
    command = [
        sys.executable,
        "-c",
        "from zoo.lab.commands import program as cli\n" + textwrap.dedent(source),
        *arguments,
    ]
    return subprocess.run(command, capture_output="stdout" not in options, text=True, **options)


def test_after_an_error_nothing_more_is_said():
    """As on a full disk, where what still runs at the end of the process fails too."""
    finished = process(
        """
        import atexit, errno, threading, time
        from zoo.errors import UserError

        def fail():
            raise OSError(errno.ENOSPC, "No space left on device")

        def main():
            atexit.register(fail)
            threading.Thread(target=time.sleep, args=(3600,)).start()  # nobody waits for it
            writer = threading.Thread(target=fail)
            writer.start()
            writer.join()
            print("begun")
            raise UserError("the disk is full.")

        cli.leave(cli.run(main))
        """,
        timeout=600,
    )
    assert finished.returncode == 2
    assert finished.stdout == "begun\n"
    assert finished.stderr == "error: the disk is full.\n"


def test_what_tensorstore_says_after_orbax_has_failed_is_not_shown(capsys, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    program.run(lambda: None)

    class Dying:
        def __init__(self, error):
            self.error = error

        def __del__(self):
            raise self.error

    Dying(RuntimeError("Event loop is closed"))
    assert capsys.readouterr().err == ""
    Dying(RuntimeError("a bug"))
    assert "a bug" in capsys.readouterr().err


def test_a_terminal_that_was_closed_does_not_change_how_a_program_ends(monkeypatch):
    class Closed:
        def write(self, text):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(sys, "stderr", Closed())
    assert program.run(raising(Interrupted("SIGHUP after step 3.", signal.SIGHUP))) == 129
    sys.stderr.close()


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_to_a_full_disk_is_no_traceback():
    with open("/dev/full", "w") as full:
        source = "cli.leave(cli.run(lambda: print('much')))"
        finished = process(source, stdout=full, stderr=subprocess.PIPE)
    assert finished.returncode == 2
    assert finished.stderr.startswith("error: the disk is full (standard output): make room and ")
    assert finished.stderr.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as closed:
        source = "cli.leave(cli.run(lambda: print('much')))"
        finished = process(source, stdout=closed, stderr=subprocess.PIPE)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_modules_of_the_working_folder_are_imported_only_once_they_are_asked_for(tmp_path):
    """Python itself looks beside the program; a folder of someone else's may be the working one."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my_features.py").write_text("print('found')")
    script = tmp_path / "bin" / "program.py"
    script.write_text(
        "from zoo.lab.commands import program as cli\n"
        "from zoo.base.trust import user_modules\n"
        "def main():\n"
        "    try:\n"
        "        import my_features\n"
        "    except ImportError:\n"
        "        print('not yet', flush=True)\n"
        "    user_modules.load('my_features')\n"
        "cli.program(main)\n"
    )
    root = str(pathlib.Path(program.__file__).parents[3])
    finished = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path / "mine",
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
    )
    assert (finished.returncode, finished.stdout) == (0, "not yet\nfound\n")


@pytest.mark.slow
def test_code_that_ends_the_program_is_named(tmp_path):
    """As one that has done nothing, although its author says that all is well."""
    config = tmp_path / "config.py"
    config.write_text("import sys\n\nsys.exit(0)\n")
    finished = process(
        "import train, sys\ncli.program(lambda: train.main(['--config', sys.argv[1], 'run']))",
        arguments=[str(config)],
    )
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == (
        f"error: {config}, line 3 ends the program (SystemExit: 0) before it has finished: "
        "remove that.\n"
    )
    config.write_text("import argparse\n\nargparse.ArgumentParser().parse_args(['--help'])\n")
    finished = process(
        "import train, sys\ncli.program(lambda: train.main(['--config', sys.argv[1], 'run']))",
        arguments=[str(config)],
    )
    assert finished.returncode == 2 and "ends the program (SystemExit: 0)" in finished.stderr
    assert f"error: {config}, line 3 " in finished.stderr
    helped = process("import train\ncli.program(lambda: train.main(['--help']))")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert helped.stdout.startswith("usage: ")


@pytest.mark.parametrize(
    ("closed", "printed", "noted"),
    [
        ("<&-", "printed\necho\n", "note\n"),
        (">&-", "", "note\n"),
        ("2>&-", "printed\necho\n", ""),
        ("<&- >&- 2>&-", "", ""),
    ],
)
def test_a_stream_that_is_closed_is_empty(closed, printed, noted, tmp_path):
    """A file that is opened does not take its place, and get what is printed."""
    source = textwrap.dedent(
        """
        import os, pathlib, sys
        from zoo.lab.commands import program

        def main():
            with open("file", "w") as file:
                print(sys.stdin.read() + "printed", flush=True)
                print("note", file=sys.stderr)
                os.system("echo echo")  # of another program
                file.write("written")

        program.program(main)
        """
    )
    (tmp_path / "program.py").write_text(source)
    root = pathlib.Path(program.__file__).parents[3]
    finished = subprocess.run(
        f"{shlex.quote(sys.executable)} program.py {closed}",
        shell=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        text=True,
    )
    assert (tmp_path / "file").read_text() == "written"
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, printed, noted)


LETTERS = r"""
def main():
    print("gr\xf6\xdfer \u4f60 \udcff")
    print("gr\xf6\xdfer", file=cli.sys.stderr)

cli.program(main)
"""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(
    ("environment", "printed"),
    [
        (ASCII, "größer \u4f60 \\udcff\n"),  # a file or pipe gets what the zoo reads itself
        ({"PYTHONIOENCODING": "ascii"}, "gr\\xf6\\xdfer \\u4f60 \\udcff\n"),
        ({"PYTHONIOENCODING": "utf-8"}, "größer \u4f60 \\udcff\n"),
    ],
)
def test_letters_that_an_encoding_does_not_have_end_no_program(environment, printed):
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LC_"))}
    finished = process(LETTERS, env=variables | environment, encoding="utf-8")
    assert (finished.returncode, finished.stdout) == (0, printed)
    assert finished.stderr in ("größer\n", "gr\\xf6\\xdfer\n")


def test_a_terminal_of_another_encoding_gets_escapes():
    """Of letters that it could not show."""
    reader, terminal = os.openpty()
    finished = process(LETTERS, stdout=terminal, stderr=subprocess.PIPE, env=os.environ | ASCII)
    os.close(terminal)
    assert finished.returncode == 0
    assert os.read(reader, 100) == b"gr\\xf6\\xdfer \\u4f60 \\udcff\r\n"
    os.close(reader)


@pytest.mark.parametrize(
    ("script", "evaluate", "this"),
    [
        ("train.py", "python evaluate.py", "python train.py 'a b'"),
        (
            "/zoo here/train.py",
            "python '/zoo here/evaluate.py'",
            "python '/zoo here/train.py' 'a b'",
        ),
        ("/x/zoo/__main__.py", "python -m zoo evaluate", "python -m zoo 'a b'"),
        ("/no/bin/zoo", "/no/bin/zoo evaluate", "/no/bin/zoo 'a b'"),
    ],
)
def test_a_command_is_named_as_the_user_called_it(monkeypatch, script, evaluate, this):
    monkeypatch.setattr(sys, "argv", [script, "a b"])
    assert program.command("evaluate") == evaluate
    assert program.command_line() == this


def test_a_program_on_the_path_is_called_by_its_name(monkeypatch, tmp_path):
    script = tmp_path / "zoo"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(script), "train"])
    assert (program.command("train"), program.command_line()) == ("zoo train", "zoo train")
