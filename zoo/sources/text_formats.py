"""Texts to be judged, in any format: plain text, CoNLL-U, or a table of items.

What a file is, its name or its first lines decide here alone; docs/data.md lists the marks. Each
format is then read whole, and a line that is not of it is an error.
"""

import dataclasses
import itertools
import pathlib
import re
from collections.abc import Iterable, Iterator

from zoo.sources import conllu, files, foreign_formats, items, mapped_text
from zoo.sources.source import ranged
from zoo.sources.text import Text
from zoo.sources.tokens import PLAIN, Reading, Sentence, Token, TokenizedText, place_tokens

# Suffixes of files in CoNLL-U.
_TREEBANKS = (".conllu", ".conll", ".conllup")
_TOKEN_LINE = re.compile(r"\d+([-.]\d+)?\t")
HEAD = 1000


def read_tokens(
    path: str,
    reading: Reading = PLAIN,
    column: str = "text",
    blank_lines: str | None = "skipped",
    streaming: bool = False,
) -> TokenizedText:
    """Reads a text to be scored: a file, perhaps with a range, or what `Text` reads. Without
    `streaming`, blank lines are left out unless they are "kept"; with it, the sentences of a whole
    plain text are read as they are needed."""
    part = files.Part.parse(path)
    file = files.find_or_none(part.path)
    suffix = "" if file is None else files.kind(file)
    is_nested = "json" in suffix and "." in column
    lines: Iterable[str]
    if file is None or file.is_dir() or suffix == ".parquet" or is_nested:
        lines = _column(part.path, column, blank_lines)
        text = TokenizedText(part.path, _plain(lines, reading))
    else:
        lines = (line for _, line in files.read_lines(str(file)))
        lines = lines if streaming else files.lines(files.read_text(file))
        text = parse_tokens(lines, file, part.path, reading, column)
    if streaming and part.range == slice(None):
        return text
    is_kept = blank_lines == "kept"
    sentences = [sentence for sentence in text.sentences if sentence.tokens or is_kept]
    return dataclasses.replace(text, sentences=ranged(part, sentences))


def _column(path, column, blank_lines) -> Iterable[str]:
    """Returns the lines of the column of text of a folder, a pattern or a data set."""
    folder = files.find_or_none(path)
    if folder is not None and (folder / mapped_text.RECORD).is_file():
        source = Text(path, path, blank_lines=blank_lines or "skipped")
        return map(" ".join, source.read("train").sentences)
    return files.lines_at(path, column, streaming=False)


def parse_tokens(
    lines: Iterable[str], file: pathlib.Path, name: str, reading: Reading, column: str = "text"
) -> TokenizedText:
    """Parses a text of any form; messages name `file`, whose suffix may tell the form. The
    sentences of plain text are an iterator."""
    lines = iter(lines)
    head = [*itertools.islice(lines, HEAD)]
    form = detect_form(file, "\n".join(head), column)
    lines = itertools.chain(head, lines)
    if form == "treebank":
        return _from_treebank(lines, file, name, reading)
    if form == "table":
        return items.parse_table("\n".join(lines), file, name, reading, column)
    return TokenizedText(name, _plain(foreign_formats.check_text(lines, file), reading))


def detect_form(file: pathlib.Path, head: str, column: str = "text") -> str:
    """Returns the form of a file that begins with `head`: "treebank", "table" or "plain"."""
    if files.kind(file) in _TREEBANKS or _begins_as_conllu(head):
        return "treebank"
    return "table" if items.is_table(file, head, column) else "plain"


def _begins_as_conllu(text):
    lines = (line for line in text.split("\n") if line.strip() and not line.startswith("#"))
    first = next(lines, "")
    return bool(_TOKEN_LINE.match(first)) and first.count("\t") == len(conllu.NAMES) - 1


def _plain(lines, reading) -> Iterator[Sentence]:
    """Yields the sentences of plain text, a line each, words between white space."""
    for number, line in enumerate(lines, 1):
        yield Sentence(number, None, reading.tokens(line), len(line))


def _from_treebank(lines, path, name, reading):
    """Parses CoNLL-U; a token is a surface form, read as the words that the treebank has for it."""
    sentences = []
    for number, parsed in enumerate(conllu.parse(lines, path), 1):
        forms = []
        surface = conllu.surface(parsed.tokens)
        for token in surface:
            parts = [part["form"] for part in token.get("parts", (token,))]
            space = "" if conllu.pairs(token["misc"]).get("SpaceAfter") == "No" else " "
            words = reading.treebank_words(token["form"], parts)
            forms.append((token["form"], words, space))
        comments = parsed.comments
        line = comments.get("text") or comments.get("sentence-text") or ""
        tokens = _locate_tokens(line, forms)
        length = None if tokens is None else len(line)
        ids = (token["id"] for token in surface)  # 3, or (59, "-", 60) of a fused form
        names = ("".join(map(str, x)) if isinstance(x, tuple) else str(x) for x in ids)
        placed = zip(tokens or place_tokens(forms), names, strict=True)
        label = comments.get("sent_id") or comments.get("sentid") or str(number)
        tokens = [token._replace(extra=(token_id,)) for token, token_id in placed]
        sentences.append(Sentence(parsed.line, label, tokens, length))
    return TokenizedText(name, sentences, token_columns=("token",))


def _locate_tokens(line, forms):
    """Locates the tokens in a line; returns None if the line has other text between them."""
    tokens, end = [], 0
    for form, words, _ in forms:
        start = line.find(form, end)
        if start < 0 or line[end:start].strip():
            return None
        end = start + len(form)
        tokens.append(Token(form, start, end, words))
    return None if line[end:].strip() else tokens
