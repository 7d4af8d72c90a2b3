"""Checks what a release would contain: make release-check, or python -m tests.release [PYTHON ...].

Builds the sdist, and the wheel from it; checks their files, sizes and metadata. Installs the wheel
in fresh environments, bare, with each extra alone and with all of them; does in empty folders what
each is for. What it lacks has to be refused by the sentence that names the extra. Each Python that
is named does so with its oldest and its newest jax; without names, this Python does with the
newest. Last, installs the unpacked sdist editable, as make does.
"""

import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import tomllib
from collections.abc import Iterator

from tests import object_store
from zoo.base import lazy
from zoo.version import VERSION

ROOT = pathlib.Path(__file__).parents[1]
FILES = {
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md"),
    *("pyproject.toml", "setup.cfg", "setup.py"),
}
FOLDERS = {"configs", "zoo", "zoo_language_models.egg-info"}
LARGEST = 1_000_000  # bytes of an sdist or a wheel, which have no corpora, records or models
# Pages whose Python needs no extra, beside README and the pages of heads.
BARE = (
    "decoding.md",
    "distillation.md",
    "items.md",
    "log_linear.md",
    "losses.md",
    "preferences.md",
)
TEXT = ("zoo", "generate", "models/english", "--count", "2000", "--seed", "1")
BRIEF = ("--language", "none", "--set", "training.epochs=1")
TRAINED = (
    ("zoo", "train", "--config", "micro_softmax", "softmax"),
    ("zoo", "train", "--config", "micro_log_linear", "log_linear"),
    ("zoo", "compare", "softmax", "log_linear", "--micro"),
    ("zoo", "text", "my.txt", "runs/mine", *BRIEF),
    ("zoo", "score", "runs/mine", "my.txt"),
    ("zoo", "try", "my.txt", "--heads", "softmax,adaptive", "--minutes", "0.3", "--seeds", "1")
    + BRIEF,
)
PIECES = (
    "from zoo.data.open_words import learn_subwords as learn; print(learn({'ab': 3, 'abc': 2}, 5))"
)
# {extra: what needs it}
NEED = {
    "train": ("zoo", "train", "--config", "micro_softmax", "new"),
    "flax": ("python", "-c", "from zoo.interop import linen, nnx"),
    "export": ("zoo", "generate", "models/micro"),
    "hub": ("zoo", "pull", "me/model", "new"),
    "subwords": ("python", "-c", PIECES),
    "bucket": ("zoo", "pull", "gs://bucket/run", "new"),
}
# {extra: others that it installs, too}: datasets and tokenizers need huggingface-hub.
BROUGHT = {"train": {"hub"}, "subwords": {"hub"}}
# A translator in subwords, and its runs in a bucket, need several extras.
TRANSLATOR = (
    *("zoo", "train", "--config", "multi30k_en_fr_subwords", "gs://bucket/run"),
    *("--set", 'data.train=("train.en", "train.fr")', "--set", "data.tests=()"),
    *("--set", 'data.validation=("train.en[:5]", "train.fr[:5]")'),
    *("--set", "vocabulary.subwords=30", "--set", "training.epochs=1"),
    *("--set", "training.optimizer.schedule.warmup=1"),
)
REVISION = "c0ffee" * 6 + "c0ff"


def run(*command, cwd: pathlib.Path, status: int = 0, **variables: str) -> str:
    """Runs a command without the checkout's variables; returns its output, with the errors if it is
    to fail.

    Raises:
      SystemExit: the command does not end with the status; the output is printed before.
    """
    print("$", *command, flush=True)
    clean = {**os.environ, **variables}
    clean.pop("PYTHONPATH", None)
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
    assert files[1].name == f"zoo_language_models-{VERSION}-py3-none-any.whl"
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


def write_snippets(folder: pathlib.Path, *pages: pathlib.Path) -> str:
    """Writes the Python of pages into a folder; returns the Python that executes each page."""
    for page in pages:
        code = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        assert code, page
        (folder / f"{page.stem}.py").write_text("\n".join(code))
    return (
        f"import runpy; [runpy.run_path(name) for name in {[f'{page.stem}.py' for page in pages]}]"
    )


class Hub(http.server.BaseHTTPRequestHandler):
    """The Hugging Face hub with one repository, an export, as its client asks for it."""

    folder = ROOT / "models" / "micro"

    def do_GET(self):
        names = [path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file()]
        if self.path.startswith("/api/models/me/model/tree"):
            files = [{"path": str(n), "size": (self.folder / n).stat().st_size} for n in names]
            body = json.dumps([{"type": "file", "oid": REVISION, **file} for file in files])
        elif self.path.startswith("/api/models/me/model"):
            siblings = [{"rfilename": str(name)} for name in names]
            body = json.dumps({"id": "me/model", "sha": REVISION, "siblings": siblings})
        else:
            body = ""
        name = self.path.partition(f"/me/model/resolve/{REVISION}/")[2]
        content = (self.folder / name).read_bytes() if name else body.encode()
        self.send_response(200 if content else 404)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET

    def log_message(self, *words):
        """Prints nothing."""


@contextlib.contextmanager
def hub(cache: pathlib.Path) -> Iterator[dict[str, str]]:
    """The variables of programs for which the hub is `Hub`, and their cache an empty folder."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HOME": str(cache)}
        server.shutdown()


def check_missing(programs: pathlib.Path, folder: pathlib.Path, extra: str, command):
    """Expects of a command the one sentence that names the extra which it needs."""
    program, *words = command
    printed = run(programs / program, *words, cwd=folder, status=2 if program == "zoo" else 1)
    *before, last = printed.splitlines()
    belongs = rf"\w+ is not installed, which belongs to the extra '{extra}' of zoo"
    sentence = rf"{belongs}: pip install .*, or 'zoo-language-models\[{extra}\]' where Zoo is .*\."
    if program == "zoo":
        assert re.fullmatch(f"error: {sentence}", last) and not before, printed
    else:
        assert re.fullmatch(rf"zoo\.base\.lazy\.MissingExtra: {sentence}", last), printed
    assert not (folder / "new").exists()


def check_bare(programs: pathlib.Path, folder: pathlib.Path):
    """Executes pages of heads and losses."""
    assert run(programs / "zoo", "--version", cwd=folder) == f"zoo {VERSION}\n"
    assert "surprisal" in run(programs / "zoo", "--help", cwd=folder)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs" / "heads").glob("*.md"))]
    code = write_snippets(folder, *pages, *(ROOT / "docs" / name for name in BARE))
    run(programs / "python", "-c", code, cwd=folder)


def check_train(programs: pathlib.Path, folder: pathlib.Path):
    """Trains, compares and scores models, also of one's own text, which `check_export` wrote."""
    printed = [run(programs / program, *words, cwd=folder) for program, *words in TRAINED]
    assert "entropy 3.0292 nats per token" in printed[2]
    assert '"log_prob"' in printed[4]


def check_flax(programs: pathlib.Path, folder: pathlib.Path):
    """Executes the page of one's own model, with modules of linen and nnx."""
    code = write_snippets(folder, ROOT / "docs" / "your_model.md")
    run(programs / "python", "-c", code, cwd=folder)


def check_export(programs: pathlib.Path, folder: pathlib.Path):
    """Opens exports by README's session, draws a text, exports a model and runs it without Zoo."""
    zoo, python = programs / "zoo", programs / "python"
    session = re.search(r"```pycon\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert session is not None
    (folder / "session.txt").write_text(session[1])
    run(python, "-m", "doctest", "session.txt", cwd=folder)
    (folder / "my.txt").write_text(run(programs / TEXT[0], *TEXT[1:], cwd=folder))
    run(zoo, "export", "models/micro", "again", cwd=folder)
    assert float(run(python, "again/load.py", "la souleur", cwd=folder)) < 0


def check_hub(programs: pathlib.Path, folder: pathlib.Path):
    """Downloads an export."""
    with hub(folder / "cache") as variables:
        run(programs / "zoo", "pull", "me/model", "theirs", cwd=folder, **variables)
        printed = run(programs / "zoo", "pull", "me/no", "no", cwd=folder, status=2, **variables)
    assert "error: the hub refused me/no " in printed
    names = [{path.name for path in place.iterdir()} for place in (folder / "theirs", Hub.folder)]
    assert names[0] == names[1]


def check_subwords(programs: pathlib.Path, folder: pathlib.Path):
    """Learns pieces of words."""
    assert "'ab': 5" in run(programs / "python", "-c", PIECES, cwd=folder)


def check_bucket(programs: pathlib.Path, folder: pathlib.Path):
    """Expects the extra of training, which runs in a bucket need, too."""
    check_missing(programs, folder, "train", NEED["bucket"])


# {extra: what is done with it alone}; export writes the text on which train trains.
ALONE = {
    **{"": check_bare, "flax": check_flax, "export": check_export, "train": check_train},
    **{"hub": check_hub, "subwords": check_subwords, "bucket": check_bucket},
}
assert ALONE.keys() - {""} == NEED.keys() == lazy.EXTRAS.keys()


def check_wheel(wheel: pathlib.Path, python: str, jax: str, place: pathlib.Path) -> pathlib.Path:
    """Does with a wheel in a folder what the documents show, bare, with each extra alone and with
    all; returns the folder of the last environment's programs.
    """
    folder = place / "here"
    folder.mkdir(parents=True)
    for name in ("english", "french", "micro"):
        shutil.copytree(ROOT / "models" / name, folder / "models" / name)
    for extra, check in ALONE.items():
        programs = environment(
            python, place / "alone", f"{wheel}[{extra}]" if extra else wheel, jax
        )
        check(programs, folder)
        for other, command in NEED.items():
            if other not in {extra} | BROUGHT.get(extra, set()):
                check_missing(programs, folder, other, command)
        shutil.rmtree(place / "alone")
    programs = environment(python, place / "all", f"{wheel}[{','.join(NEED)}]", jax)
    check_all(programs, folder)
    return programs


def check_all(programs: pathlib.Path, folder: pathlib.Path):
    """Does with all extras what needs several: exports read by commands, and a run in a bucket."""
    zoo = programs / "zoo"
    modules = ", ".join(module for modules in lazy.EXTRAS.values() for module in modules)
    run(programs / "python", "-c", f"import {modules}", cwd=folder)
    missing = run(zoo, "generate", "models/german", cwd=folder, status=2)
    assert "such as models/french of Zoo's repository" in missing
    (folder / "sentences.txt").write_text("les enfants du village jouent dans la rue .\n")
    assert "jouent" in run(zoo, "score", "models/french", "sentences.txt", "--words", cwd=folder)
    run(zoo, "export", "softmax", "exported", cwd=folder)
    assert len(run(zoo, "generate", "exported", cwd=folder).splitlines()) > 1
    (folder / "train.en").write_text("a dog runs\na man sees a dog\na dog sees\n" * 100)
    (folder / "train.fr").write_text(
        "un chien court\nun homme voit un chien\nun chien voit\n" * 100
    )
    with object_store.emulator() as variables:
        run(programs / TRANSLATOR[0], *TRANSLATOR[1:], cwd=folder, **variables)
        run(zoo, "pull", "gs://bucket/run", "pulled", cwd=folder, **variables)
    assert len(run(zoo, "translate", "pulled", "train.en", cwd=folder).splitlines()) == 300


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
