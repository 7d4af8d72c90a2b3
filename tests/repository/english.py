"""Counts of habits of English in docstrings, messages and documents.

    python -m tests.repository.english [FOLDER ...]

The limits of `PATTERNS`, uses in a thousand words, are measured over optax's docstrings. Function
docstrings begin with a verb in the third person, "Returns", or with "Whether"; docstrings of
properties, classes and modules may be noun phrases.
"""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]
CODE = ("zoo", "configs", "launch", "benchmarks", "records")
# {pattern: uses in a thousand words that are allowed}
PATTERNS = {
    r"\b(?:those|that) of\b": 0.14,
    r"\bwhat (?:is|are|was|were|it|they|has|had)\b(?![^.]*\?)": 0.0,  # but in questions
    r"\b(?:is|are) no\b": 0.035,
    r"\b(?:said|says|say)\b": 0.0,
    r"\btheirs\b|\bgone on with\b|\b(?:has|have|had) not[.,;:)]|\b(?:has|have|had) not$": 0.0,
}
# First words that end in s and are not verbs.
_NOUNS = {"this", "is", "as", "its", "less", "plus", "always", "loss", "class", "bias", "axis"}


class Text(NamedTuple):
    """Some English of a file.

    Attributes:
      path: the file.
      line: where it begins.
      text: the words.
    """

    path: pathlib.Path
    line: int
    text: str


def words(text: str) -> int:
    """Counts the words of a text."""
    return len(re.findall(r"[A-Za-z']+", text))


def code_files(folders=CODE) -> list[pathlib.Path]:
    """Returns the Python files of some folders, and the scripts on top."""
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [*files, ROOT / "train.py", ROOT / "evaluate.py"]


def documents() -> list[pathlib.Path]:
    """Returns the documents."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def code_texts(path: pathlib.Path) -> Iterator[Text]:
    """Yields docstrings and messages: literals of four words and more."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and words(value) >= 4:
            yield Text(path, node.lineno, value)


def document_paragraphs(path: pathlib.Path) -> Iterator[Text]:
    """Yields the paragraphs of a document, without its code."""
    text = re.sub(r"```.*?```|`[^`]*`", "CODE", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    line = 1
    for paragraph in text.split("\n\n"):
        if not paragraph.startswith("    "):
            yield Text(path, line, paragraph)
        line += paragraph.count("\n") + 2


def find_uses(texts: list[Text], pattern: str) -> list[str]:
    """Returns the uses of a pattern, each with its file and line."""
    uses = []
    for text in texts:
        for match in re.finditer(pattern, text.text, re.IGNORECASE | re.MULTILINE):
            line = text.line + text.text.count("\n", 0, match.start())
            around = text.text[max(0, match.start() - 40) : match.end() + 40]
            uses.append(f"{text.path.relative_to(ROOT)}:{line}: {' '.join(around.split())}")
    return uses


def without_verb(path: pathlib.Path) -> Iterator[str]:
    """Yields the functions of a file whose docstring does not begin with a verb."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or (text := ast.get_docstring(node)) is None:
            continue
        decorators = {
            ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list
        }
        if decorators & {"property", "cached_property"} or not text.strip():
            continue
        first = re.match(r"[\w']*", text)
        word = first[0] if first else ""
        is_verb = word == "Whether" or (
            word[:1].isupper() and word.endswith("s") and word.lower() not in _NOUNS
        )
        if not is_verb:
            line = text.partition("\n")[0]
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}: {line}"


def main(folders):
    """Prints all findings in some folders, or in all."""
    files = code_files(folders or CODE)
    for path in files:
        print(*without_verb(path), sep="\n", end="\n")
    texts = [text for path in files for text in code_texts(path)]
    if not folders:
        texts += [text for path in documents() for text in document_paragraphs(path)]
    for pattern, limit in PATTERNS.items():
        uses = find_uses(texts, pattern)
        count = sum(words(text.text) for text in texts)
        print(f"\n{pattern}: {1000 * len(uses) / count:.2f} of {limit} in a thousand words")
        print(*uses, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
