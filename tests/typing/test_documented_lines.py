"""What the page on Python shows has no mistakes for mypy and pyright, the strictest of settings."""

import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """A file of the page's code."""
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    file = tmp_path_factory.mktemp("page") / "documented.py"
    file.write_text("\n".join(re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)))
    return file


def checked(*command):
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)], cwd=ROOT, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def test_mypy_accepts_them(lines):
    pytest.importorskip("mypy")
    code, output = checked("mypy", "--strict", "--follow-imports=silent", lines)
    assert code == 0, output


def test_pyright_accepts_them(lines):
    pytest.importorskip("pyright")
    (lines.parent / "pyrightconfig.json").write_text(
        f'{{"typeCheckingMode": "strict", "extraPaths": ["{ROOT}"]}}'
    )
    code, output = checked("pyright", "--project", lines.parent, "--pythonpath", sys.executable)
    assert (code == 0 and "1 file" in output) or "0 errors" in output, output


def test_both_find_a_mistake(lines):
    """A method that a run does not have, which a union or Any would hide."""
    wrong = lines.with_name("wrong.py")
    wrong.write_text('import zoo\n\nzoo.load("runs/a").translate(["a"])\n')
    code, output = checked("mypy", "--follow-imports=silent", wrong)
    assert code == 1 and '"LoadedModel" has no attribute "translate"' in output
