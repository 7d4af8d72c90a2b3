"""Every example of the site is executed, every page has its place, and every head its page."""

import contextlib
import functools
import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

from zoo import heads

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
HEADS = sorted((DOCS / "heads").glob("*.md"))
# Pages whose Python other tests execute, because it takes a run or because they check more of it.
ELSEWHERE = {
    *("alignments.md", "characters.md", "configs.md", "decoding.md", "losses.md"),
    *("python.md", "your_model.md", "own_components.md", "runs.md", "scoring.md"),
    *("preferences.md", "distillation.md", "items.md"),
}


def python_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def executed(page):
    """The names that the Python of a page leaves."""
    names = {}
    for snippet in python_of(page):
        exec(snippet, names)
    return names


def test_every_page_has_a_place_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    for page in DOCS.rglob("*.md"):
        assert navigation.count(f" {page.relative_to(DOCS).as_posix()}\n") == 1, page


# {a word that is searched: the page that is found}
SEARCHES = {
    "grpo": "preferences.html",
    "dpo": "preferences.html",
    "distillation": "distillation.html",
    "contrastive": "items.html",
    "recommender": "items.html",
}


@pytest.mark.parametrize("word", SEARCHES)
def test_a_search_finds_losses_by_the_words_of_their_fields(word):
    """By a heading, which the search of the site lists before other text."""
    assert "\n  - search\n" in (ROOT / "mkdocs.yml").read_text("utf-8")
    headings = {
        page.name: re.findall(r"^#+ .*", page.read_text("utf-8"), re.MULTILINE)
        for page in DOCS.glob("*.md")
    }
    assert any(word in " ".join(lines).lower() for lines in headings.values())


@pytest.fixture
def pages():
    """docs/site/pages.py, without mkdocs."""
    for name in ("yaml", "latex2mathml"):
        pytest.importorskip(name)
    spec = importlib.util.spec_from_file_location("pages", DOCS / "site" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "mkdocs", None)
        spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_index_of_the_search_has_the_pages_of_losses_by_these_words(pages, tmp_path):
    """Titles of the index that mkdocs builds, without the reference, whose pages it adds."""
    pytest.importorskip("material")
    pages.write(tmp_path / "pages")
    config = f"INHERIT: {ROOT}/mkdocs.yml\ndocs_dir: pages\nstrict: false\nplugins: [search]\n"
    (tmp_path / "mkdocs.yml").write_text(config)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    index = json.loads((tmp_path / "site/search/search_index.json").read_text("utf-8"))
    for word, page in SEARCHES.items():
        places = [entry["location"] for entry in index["docs"] if word in entry["title"].lower()]
        assert any(place.startswith(page) for place in places), (word, places)


def test_pages_are_written_as_files(pages, tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "old.md").write_text("# Of a page that went\n")
    pages.write(folder)
    page_paths = {file.relative_to(folder).as_posix() for file in folder.rglob("*.md")}
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    assert page_paths == {*re.findall(r" (\S+\.md)$", navigation, re.MULTILINE)}
    assert not [*folder.rglob("*.py")] and (folder / "site" / "style.css").is_file()
    for place in page_paths:
        text = (folder / place).read_text("utf-8")
        assert "```math" not in text
        if place.startswith("reference/"):
            assert f"\n::: {place[10:-3]}\n" in text
        for target in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text):
            assert (folder / place).parent.joinpath(target).exists(), (place, target)
    assert "<svg" in (folder / "index.md").read_text("utf-8")
    softmax = (folder / "heads" / "softmax.md").read_text("utf-8")
    assert softmax.count('<div class="equation"><math') == 1 and "\n## Parameters\n" in softmax


def test_links_of_the_repository_become_links_of_the_site(pages):
    text = "[Changes](../CHANGELOG.md#fixed), [data.md](data.md)"
    expected = "[Changes](changelog.md#fixed), [Corpora](data.md)"
    assert pages.render_page(text, "runs.md").startswith(expected)
    assert pages.render_page("[x](docs/runs.md)", "changelog.md") == "[x](runs.md)"
    with pytest.raises(SystemExit, match=r"runs\.md: the link \.\./train\.py leads to no page"):
        pages.render_page("[x](../train.py)", "runs.md")


def test_pages_that_load_from_the_network_are_refused(pages, tmp_path):
    (tmp_path / "a.html").write_text('<a href="https://example.com">x</a><img src="x.svg">')
    pages.check(tmp_path)
    (tmp_path / "b.html").write_text('<link rel="stylesheet" href="https://example.com/x.css">')
    with pytest.raises(SystemExit, match=r"b\.html loads <link"):
        pages.check(tmp_path)


def test_every_page_with_python_is_executed():
    pages = {page.name for page in DOCS.glob("*.md") if python_of(page)}
    assert pages - {"export.md", "log_linear.md"} == ELSEWHERE


@pytest.mark.slow
def test_an_export_draws_a_text_without_zoo():
    (snippet,) = python_of(DOCS / "export.md")
    hidden = "import sys\nsys.modules['zoo'] = None\n"
    program = subprocess.run(
        [sys.executable, "-c", hidden + snippet],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert len(program.stdout.split()) > 4


def resolves(name):
    """Whether a dotted name is a module of zoo, or is in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            module = importlib.import_module(".".join(parts[:count]))
            with contextlib.suppress(AttributeError):
                functools.reduce(getattr, parts[count:], module)
                return True
            return False
    return False


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.stem
)
def test_every_name_in_the_text_exists(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for name in set(re.findall(r"`(zoo(?:\.\w+)+|[a-z]+\.[A-Z]\w*)", text)):
        package = name.partition(".")[0]
        if package == "zoo" or importlib.util.find_spec(f"zoo.{package}"):  # not of another library
            assert resolves(name if package == "zoo" else f"zoo.{name}"), name


def test_every_head_has_a_page():
    exported = (getattr(heads, name) for name in heads.__all__)
    kinds = {
        member.__name__
        for member in exported
        if isinstance(member, type) and member is not heads.Head
    }
    kinds = {name for name in kinds if issubclass(getattr(heads, name), heads.Head)}
    assert {page.read_text("utf-8").split()[1] for page in HEADS} == kinds


@pytest.mark.slow
@pytest.mark.parametrize("page", HEADS, ids=lambda page: page.stem)
def test_the_example_of_a_head(page):
    names = executed(page)
    head, params, tables = names["head"], names["params"], names["tables"]
    assert type(head).__name__ == page.read_text("utf-8").split()[1]
    assert names["loss"].shape == (2, 4) and np.isfinite(names["loss"]).all()
    if "log_probs" in names and names["hidden"].shape == (2, 4, 16):
        np.testing.assert_allclose(np.exp(names["log_probs"]).sum(-1), 1, rtol=1e-5)
    if "log_prob" in names:
        log_probs = head.log_probs(params, tables, names["hidden"])
        np.testing.assert_allclose(names["log_prob"], log_probs[..., 0], rtol=1e-5)


@pytest.mark.slow
def test_strings_outside_the_lexicon_of_the_page_have_a_probability():
    log_probs = executed(DOCS / "log_linear.md")["log_probs"]
    assert log_probs.shape == (3,) and np.isfinite(log_probs).all() and (log_probs < 0).all()


@pytest.mark.slow
def test_components_of_ones_own_train_as_the_page_says(tmp_path):
    """In a folder with its modules, where nobody has trained yet; then without the note of it."""
    page = DOCS / "own_components.md"
    names = re.findall(r"[Ss]ave\s+this as `(\w+\.py)`", page.read_text("utf-8"))
    for name, code in zip(names, python_of(page), strict=True):
        (tmp_path / name).write_text(code)
    lines = [f"{'AB'[row % 2]}: word{row % 7} and word{row % 5} again\n" for row in range(2000)]
    (tmp_path / "dialogues.txt").write_text("".join(lines))
    *commands, last = re.findall(r"^    python (.+)$", page.read_text("utf-8"), re.MULTILINE)
    assert len(commands) == 12 and last.endswith("--trust my_heads:Cosines")

    def call(command, state):
        program, *arguments = shlex.split(command)
        if program == "train.py":
            arguments += ["--set", "training.epochs=4", "--set", "model.core.size=8"]
            arguments += ["--set", "model.embedding.size=8"]
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / state)}
        return subprocess.run(
            [sys.executable, ROOT / program, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )

    for command in commands:
        done = call(command, "mine")
        assert done.returncode == 0, done.stderr
    refused = call(last.partition(" --trust")[0], "of somebody else")
    assert refused.returncode == 2 and "add --trust my_heads:Cosines" in refused.stderr
    assert call(last, "of somebody else").returncode == 0
