"""Checks what a release would contain: make release-check, or python -m tests.release.

Builds the sdist, and the wheel from it; checks their files and metadata; installs the wheel in a
fresh environment, and runs the quickstart there, outside the checkout. Then installs the unpacked
sdist editable, as make does a checkout.
"""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import venv

from zoo.version import VERSION

ROOT = pathlib.Path(__file__).parents[1]
FILES = {
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md"),
    *("pyproject.toml", "setup.cfg", "setup.py"),
}
FOLDERS = {"configs", "zoo", "zoo_language_models.egg-info"}
LARGEST = 1_000_000  # bytes of an sdist, which has no corpora, records or models
QUICKSTART = (
    ("train", "--config", "micro_softmax", "softmax"),
    ("train", "--config", "micro_log_linear", "log_linear"),
    ("compare", "softmax", "log_linear", "--micro"),
)


def run(*command, cwd: pathlib.Path) -> str:
    """Runs a command without the checkout's variables; returns its output.

    Raises:
      SystemExit: the command fails; the output is printed before.
    """
    print("$", *command, flush=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=clean, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        print(done.stdout)
        sys.exit(f"the last command ended with {done.returncode}")
    return done.stdout


def environment(folder: pathlib.Path, *requirements) -> pathlib.Path:
    """Makes an environment with some packages; returns the folder of its programs."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", *requirements, cwd=folder.parent)
    return programs


def build(place: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Builds both files and checks their metadata; returns (sdist, wheel)."""
    tools, out = environment(place / "tools", "build", "twine"), place / "dist"
    run(tools / "python", "-m", "build", "--outdir", out, ROOT, cwd=place)
    files = sdist, wheel = next(out.glob("*.tar.gz")), next(out.glob("*.whl"))
    run(tools / "twine", "check", "--strict", *files, cwd=place)
    return sdist, wheel


def check_sdist(sdist: pathlib.Path):
    """Checks that an sdist has the package, the recipes and a few files beside them."""
    with tarfile.open(sdist) as archive:
        paths = [pathlib.PurePath(file.name).parts[1:] for file in archive if file.isfile()]
    unexpected = [path for path in paths if path[0] not in (FILES if len(path) == 1 else FOLDERS)]
    assert not unexpected, f"{sdist} has {unexpected}"
    assert {path[0] for path in paths} == FILES | FOLDERS
    assert sdist.stat().st_size < LARGEST, f"{sdist} has {sdist.stat().st_size:,} bytes"


def check_wheel(wheel: pathlib.Path, place: pathlib.Path) -> pathlib.Path:
    """Installs a wheel as README does, and runs the quickstart in an empty folder; returns the
    folder of the environment's programs.
    """
    programs, folder = environment(place / "fresh", f"{wheel}[train]"), place / "here"
    folder.mkdir()
    assert run(programs / "python", "-m", "zoo", "--version", cwd=folder) == f"zoo {VERSION}\n"
    assert "micro_softmax" in run(programs / "zoo", "train", "--list", cwd=folder)
    printed = [run(programs / "zoo", *command, cwd=folder) for command in QUICKSTART]
    assert "entropy 3.0292 nats per token" in printed[-1]
    return programs


def check_editable(sdist: pathlib.Path, programs: pathlib.Path, place: pathlib.Path):
    """Installs a checkout editable; a script beside its folder, named zoo, imports the package."""
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "unpacked", filter="data")
    (unpacked,) = (place / "unpacked").iterdir()
    checkout = unpacked.rename(place / "zoo")
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "-e", checkout)
    run(programs / "python", *install, cwd=place)
    script = place / "script.py"
    script.write_text("import configs, zoo\nprint(zoo.__file__, configs.FOLDER, zoo.load)\n")
    printed = run(programs / "python", script, cwd=place).split()
    assert printed[:2] == [str(checkout / "zoo/__init__.py"), str(checkout / "configs")]


def main():
    """Checks a release made of this checkout."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        sdist, wheel = build(place)
        check_sdist(sdist)
        check_editable(sdist, check_wheel(wheel, place), place)
    print(f"zoo {VERSION} can be released")


if __name__ == "__main__":
    main()
