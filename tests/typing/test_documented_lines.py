"""The code of the page on Python has no mistakes for mypy and pyright under their strict rules."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
LINES = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
# Of a translator; a union of both, or Any, would hide it.
WRONG = 'import zoo\n\nzoo.load("runs/a").translate(["a"])\n'


def mypy(folder):
    return ["mypy", "--strict", "--follow-imports=silent", str(folder / "code.py")]


def pyright(folder):
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return ["pyright", "--project", str(folder), "--pythonpath", sys.executable]


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_the_page_has_no_mistakes_and_one_is_found(checker, tmp_path):
    pytest.importorskip(checker.__name__)
    for code, mistakes in ((LINES, 0), (WRONG, 1)):
        (tmp_path / "code.py").write_text(code, encoding="utf-8")
        command = [sys.executable, "-m", *checker(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == mistakes, done.stdout + done.stderr
    assert "LoadedModel" in done.stdout and "translate" in done.stdout
