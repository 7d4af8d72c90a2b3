"""Checks what a release would contain: make release-check, or python -m tests.release [PYTHON ...].

Builds the sdist, and the wheel from it; checks their files, sizes and metadata. Installs the wheel
in a fresh environment, bare and with each extra, and runs commands and snippets of the documents in
an empty folder. Each Python that is named does so with its oldest and its newest jax; without
names, this Python does with the newest. Last, installs the unpacked sdist editable, as make does.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib

from zoo.base import lazy
from zoo.version import VERSION

ROOT = pathlib.Path(__file__).parents[1]
FILES = {
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md"),
    *("pyproject.toml", "setup.cfg", "setup.py"),
}
FOLDERS = {"configs", "zoo", "zoo_language_models.egg-info"}
LARGEST = 1_000_000  # bytes of an sdist or a wheel, which have no corpora, records or models
EXTRAS = ("flax", "hub", "subwords", "bucket", "export", "train")  # in the order of installation
TEXT = ("generate", "models/english", "--count", "2000", "--seed", "1")
BRIEF = ("--language", "none", "--set", "training.epochs=1")
COMMANDS = (
    ("train", "--config", "micro_softmax", "softmax"),
    ("train", "--config", "micro_log_linear", "log_linear"),
    ("compare", "softmax", "log_linear", "--micro"),
    ("score", "models/french", "sentences.txt", "--words"),
    ("text", "my.txt", "runs/mine", *BRIEF),
    ("score", "runs/mine", "my.txt"),
    ("try", "my.txt", "--heads", "softmax,adaptive", "--minutes", "0.3", "--seeds", "1", *BRIEF),
)


def run(*command, cwd: pathlib.Path, status: int = 0) -> str:
    """Runs a command without the checkout's variables; returns its output.

    Raises:
      SystemExit: the command does not end with the status; the output is printed before.
    """
    print("$", *command, flush=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    errors = subprocess.STDOUT if status else None
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=clean, stdout=subprocess.PIPE, stderr=errors, text=True
    )
    if done.returncode != status:
        print(done.stdout)
        sys.exit(f"the last command ended with {done.returncode}")
    return done.stdout


def environment(python, folder: pathlib.Path, *requirements) -> pathlib.Path:
    """Makes an environment with some packages; returns the folder of its programs."""
    run(python, "-m", "venv", folder, cwd=folder.parent)
    install(folder / "bin", *requirements)
    return folder / "bin"


def install(programs: pathlib.Path, *requirements):
    """Installs packages into an environment, and prints the bytes that it then has."""
    run(programs / "python", "-m", "pip", "install", "-q", *requirements, cwd=programs)
    files = [path for path in programs.parent.rglob("*") if not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    print(f"{size / 1e6:,.0f} MB are installed")


def build(place: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Builds both files and checks their metadata; returns (sdist, wheel)."""
    tools = environment(sys.executable, place / "tools", "build", "twine")
    run(tools / "python", "-m", "build", "--outdir", place / "dist", ROOT, cwd=place)
    files = [next((place / "dist").glob(pattern)) for pattern in ("*.tar.gz", "*.whl")]
    run(tools / "twine", "check", "--strict", *files, cwd=place)
    for file in files:
        size = file.stat().st_size
        print(f"{file.name}: {size:,} bytes")
        assert size < LARGEST, f"{file} has {size:,} bytes"
    return files[0], files[1]


def check_sdist(sdist: pathlib.Path):
    """Checks that an sdist has the package, the recipes and a few files beside them."""
    with tarfile.open(sdist) as archive:
        paths = [pathlib.PurePath(file.name).parts[1:] for file in archive if file.isfile()]
    unexpected = [path for path in paths if path[0] not in (FILES if len(path) == 1 else FOLDERS)]
    assert not unexpected, f"{sdist} has {unexpected}"
    assert {path[0] for path in paths} == FILES | FOLDERS


def write_snippets(folder: pathlib.Path) -> list[str]:
    """Writes README's session, its Python, and that of each head's page; returns their names."""
    session = re.search(r"```pycon\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert session is not None
    (folder / "session.txt").write_text(session[1])
    pages = [ROOT / "README.md", *sorted((ROOT / "docs" / "heads").glob("*.md"))]
    for page in pages:
        code = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        (folder / f"{page.stem}.py").write_text("\n".join(code))
    return [f"{page.stem}.py" for page in pages]


def check_wheel(wheel: pathlib.Path, python: str, jax: str, place: pathlib.Path) -> pathlib.Path:
    """Does with a wheel in an empty folder what README shows; returns the folder of the
    environment's programs.
    """
    place.mkdir()
    folder = place / "here"
    folder.mkdir()
    snippets = write_snippets(folder)
    programs = environment(python, place / "fresh", wheel, jax)
    zoo, python = programs / "zoo", programs / "python"
    assert run(zoo, "--version", cwd=folder) == f"zoo {VERSION}\n"
    assert "surprisal" in run(zoo, "--help", cwd=folder)
    run(python, snippets[0], cwd=folder)
    for extra in EXTRAS:
        install(programs, f"{wheel}[{extra}]", jax)
        run(python, "-c", f"import {', '.join(lazy.EXTRAS[extra])}", cwd=folder)
    run(python, "-c", "from zoo.interop import linen, nnx", cwd=folder)
    missing = run(zoo, "generate", "models/french", cwd=folder, status=2)
    assert "such as models/french of Zoo's repository" in missing
    for name in ("english", "french"):
        shutil.copytree(ROOT / "models" / name, folder / "models" / name)
    run(python, "-m", "doctest", "session.txt", cwd=folder)
    code = f"import runpy; [runpy.run_path(name) for name in {snippets}]"
    run(python, "-c", code, cwd=folder)
    (folder / "sentences.txt").write_text("les enfants du village jouent dans la rue .\n")
    (folder / "my.txt").write_text(run(zoo, *TEXT, cwd=folder))
    printed = [run(zoo, *command, cwd=folder) for command in COMMANDS]
    assert "entropy 3.0292 nats per token" in printed[2]
    assert "jouent" in printed[3]
    return programs


def check_editable(sdist: pathlib.Path, programs: pathlib.Path, place: pathlib.Path):
    """Installs a checkout editable; a script beside its folder, named zoo, imports the package."""
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "unpacked", filter="data")
    (unpacked,) = (place / "unpacked").iterdir()
    checkout = unpacked.rename(place / "zoo")
    install(programs, "--no-deps", "-e", checkout)
    script = place / "script.py"
    script.write_text("import configs, zoo\nprint(zoo.__file__, configs.FOLDER, zoo.load)\n")
    printed = run(programs / "python", script, cwd=place).split()
    assert printed[:2] == [str(checkout / "zoo/__init__.py"), str(checkout / "configs")]


def main(pythons: list[str]):
    """Checks a release made of this checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (newest,) = (line for line in project["dependencies"] if line.startswith("jax>="))
    oldest = f"jax=={re.match(r'jax>=([0-9.]+)', newest)[1]}"
    cases = [(python, jax) for python in pythons for jax in (oldest, newest)]
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        sdist, wheel = build(place)
        check_sdist(sdist)
        for number, (python, jax) in enumerate(cases or [(sys.executable, newest)]):
            programs = check_wheel(wheel, python, jax, place / str(number))
        check_editable(sdist, programs, place)
    print(f"zoo {VERSION} can be released")


if __name__ == "__main__":
    main(sys.argv[1:])
