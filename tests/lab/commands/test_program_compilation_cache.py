"""Compiled programs are kept from run to run, and never in the way of one."""

import json
import os
import pathlib
import platform
import subprocess
import sys

import filelock
import jax
import pytest

from tests.lab.training import small
from tests.lab.training.test_train_interruption import SETTINGS
from zoo.lab.commands import program

ROOT = pathlib.Path(__file__).parents[3]
USER_VARIABLES = [
    name for name in os.environ if name.startswith(("JAX_COMPILATION", "JAX_PERSISTENT"))
]

# Compiles some programs after `use`; prints where JAX kept them before and after, their results,
# and how many it found.
PROGRAM = """
import json, os, pathlib, time
import zoo.lab.training.loop
import jax, jax.numpy as jnp
from zoo.lab.commands import program

hits = []
jax.monitoring.register_event_listener(
    lambda event, **_: hits.append(event) if event.endswith("/cache_hits") else None
)
before = jax.config.jax_compilation_cache_dir
folder = program.keep_compiled()
while not pathlib.Path(os.environ["GO"]).exists():
    time.sleep(0.01)
results = [jax.jit(lambda x: jnp.sin(x) * n)(1.5).item() for n in range(6)]
print(json.dumps([before, str(folder), results, len(hits)]))
"""


def environment(home, **settings):
    """That of a program whose cache is under a folder, for programs of any size."""
    variables = {name: value for name, value in os.environ.items() if name not in USER_VARIABLES}
    threshold = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return variables | {"XDG_CACHE_HOME": str(home), "PYTHONPATH": str(ROOT)} | threshold | settings


def start(home, go):
    """The program, which goes on once `go` is there."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=environment(home, GO=str(go)),
    )


def end(process, home):
    """(results, programs found) of a program that says nothing on stderr."""
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stderr) == (0, "")
    before, folder, results, hits = json.loads(stdout)
    assert before is None  # no import keeps anything
    assert pathlib.Path(folder).parent == home / "zoo"
    assert pathlib.Path(folder).stat().st_mode & 0o077 == 0  # others could put programs there
    return results, hits


def entries(home):
    return sorted(pathlib.Path(home).glob("zoo/compiled-*/*-cache"))


@pytest.mark.slow
def test_programs_are_found_again_unless_they_are_damaged(tmp_path):
    """As a kill or a loss of power leaves them, and with other bytes."""
    expected, hits = end(start(tmp_path, os.devnull), tmp_path)
    files = entries(tmp_path)
    assert hits == 0
    assert len(files) >= 6
    content = [path.read_bytes() for path in files]
    half, empty, damaged, unfinished = files[:4]
    half.write_bytes(content[0][: len(content[0]) // 2])
    empty.write_bytes(b"")
    damaged.write_bytes(b"x" * 99)
    unfinished.write_bytes(content[3][:-1])
    unfinished.with_name(unfinished.name.replace("-cache", "-atime")).unlink()
    repeated, hits = end(start(tmp_path, os.devnull), tmp_path)
    assert repeated == expected
    assert hits == len(files) - 4
    # Those that are known for what they are without being read have been replaced.
    for path, before in ((empty, content[1]), (unfinished, content[3])):
        assert path.stat().st_size > len(before) / 2


@pytest.mark.slow
def test_two_runs_at_once_share_the_folder(tmp_path):
    go = tmp_path / "go"
    running = [start(tmp_path, go) for _ in range(2)]
    go.touch()
    (first, first_hits), (second, second_hits) = (end(process, tmp_path) for process in running)
    assert first == second
    files = entries(tmp_path)
    assert first_hits + second_hits <= len(files)
    assert all(path.with_name(path.name.replace("-cache", "-atime")).exists() for path in files)


@pytest.fixture
def cache_home(monkeypatch, tmp_path):
    """JAX without a cache and a home of its own; what `use` changes of JAX is put back."""
    for name in USER_VARIABLES:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    names = ["jax_compilation_cache_dir", *program._SETTINGS]
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    (tmp_path / "home").mkdir()
    yield tmp_path / "home"
    for name, value in before.items():
        jax.config.update(name, value)


def test_where_programs_are_kept(cache_home, monkeypatch, tmp_path):
    folder = program.keep_compiled()
    assert folder.parent == cache_home / ".cache" / "zoo"
    assert jax.config.jax_compilation_cache_dir == str(folder)
    assert jax.config.jax_compilation_cache_max_size == 2**30
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert program.cache_folder() == tmp_path / "other" / "zoo" / folder.name
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")  # is to be ignored, as its standard says
    assert program.cache_folder() == folder
    # Of a processor with other instructions, elsewhere.
    monkeypatch.setattr(platform, "processor", lambda: "another")
    assert program.cache_folder().parent == folder.parent
    assert program.cache_folder() != folder


def test_a_cache_that_the_user_has_chosen_is_left_alone(cache_home, monkeypatch, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
    assert program.keep_compiled() is None
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "mine")
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", "7")
    before = jax.config.jax_compilation_cache_max_size
    program.keep_compiled()
    assert jax.config.jax_compilation_cache_max_size == before


@pytest.mark.parametrize("home", ["a file", "missing", "locked", "no filelock"])
def test_without_a_folder_to_write_to_nothing_is_kept(cache_home, monkeypatch, tmp_path, home):
    if home == "a file":
        cache_home.rmdir()
        cache_home.touch()
    elif home == "missing":
        monkeypatch.setattr(pathlib.Path, "home", lambda: pathlib.Path(os.devnull) / "nobody")
    elif home == "no filelock":
        monkeypatch.setitem(sys.modules, "filelock", None)
    else:

        def refuse(*arguments, **options):
            raise PermissionError

        monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    assert program.keep_compiled() is None
    assert jax.config.jax_compilation_cache_dir is None


@pytest.mark.slow
def test_training_with_the_cache_ends_as_training_without(tmp_path):
    """The first run fills the cache, the second reads it, the third has none."""
    ends = []
    for name, options in (("first", []), ("second", []), ("third", ["--no-compilation-cache"])):
        workdir = tmp_path / name
        command = ["train.py", "--config", "micro_softmax", str(workdir)]
        settings = [*SETTINGS, "training.epochs=2"]
        command += [*options, *(part for setting in settings for part in ("--set", setting))]
        home = tmp_path / ("cache" if not options else "none")
        subprocess.run([sys.executable, *command], env=environment(home), check=True)
        ends.append(small.metrics(workdir))
        assert bool(entries(home)) == (not options)
    assert ends[0] == ends[1] == ends[2]
