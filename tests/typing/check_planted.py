"""Whether mypy finds exactly the mistakes of planted_mistakes.py.

python -m tests.typing.check_planted
"""

import collections
import pathlib
import re
import subprocess
import sys

FILE = pathlib.Path(__file__).with_name("planted_mistakes.py")
_EXPECTED = re.compile(r"# expected: ([\w, -]+)$")
_FOUND = re.compile(r"planted_mistakes\.py:(\d+): error: .*\[([\w-]+)\]$")

Mistakes = dict[int, list[str]]


def expected(text: str) -> Mistakes:
    """{line: the codes that it is marked with, sorted}."""
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := _EXPECTED.search(line):
            found[number] = sorted(match[1].split(", "))
    return found


def reported(output: str) -> Mistakes:
    """{line: the codes that mypy gives it, sorted}."""
    found = collections.defaultdict(list)
    for line in output.split("\n"):
        if match := _FOUND.search(line):
            found[int(match[1])].append(match[2])
    return {number: sorted(codes) for number, codes in found.items()}


def main() -> int:
    """0 if they agree; else says where not."""
    root = FILE.parents[2]
    command = [sys.executable, "-m", "mypy", "--no-pretty", str(FILE.relative_to(root))]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    wanted, found = expected(FILE.read_text(encoding="utf-8")), reported(run.stdout)
    for number in sorted(wanted.keys() | found.keys()):
        if wanted.get(number) != found.get(number):
            print(f"{FILE.name}:{number}: {wanted.get(number)} planted, {found.get(number)} found")
    if not found:
        print(run.stdout, run.stderr)
    return int(wanted != found)


if __name__ == "__main__":
    sys.exit(main())
