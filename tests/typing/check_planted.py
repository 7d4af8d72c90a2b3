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
_REPORTED = re.compile(r"planted_mistakes\.py:(\d+): error: .*\[([\w-]+)\]$")

Mistakes = dict[int, list[str]]


def expected(text: str) -> Mistakes:
    """{line: the codes that it is marked with, sorted}."""
    codes = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := _EXPECTED.search(line):
            codes[number] = sorted(match[1].split(", "))
    return codes


def reported(output: str) -> Mistakes:
    """{line: the codes that mypy gives it, sorted}."""
    codes_by_line = collections.defaultdict(list)
    for line in output.split("\n"):
        if match := _REPORTED.search(line):
            codes_by_line[int(match[1])].append(match[2])
    return {number: sorted(codes) for number, codes in codes_by_line.items()}


def main() -> int:
    """0 if they agree; else says where not."""
    root = FILE.parents[2]
    command = [sys.executable, "-m", "mypy", "--no-pretty", str(FILE.relative_to(root))]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    planted, reports = expected(FILE.read_text(encoding="utf-8")), reported(run.stdout)
    for number in sorted(planted.keys() | reports.keys()):
        if planted.get(number) != reports.get(number):
            print(
                f"{FILE.name}:{number}: {planted.get(number)} planted, {reports.get(number)} found"
            )
    if not reports:
        print(run.stdout, run.stderr)
    return int(planted != reports)


if __name__ == "__main__":
    sys.exit(main())
