"""Docstrings, messages and documents keep to the English that `english` counts."""

import functools

import pytest

from tests.repository import english


@functools.cache
def code():
    return [text for path in english.code_files() for text in english.code_texts(path)]


@functools.cache
def documents():
    return [text for path in english.documents() for text in english.document_paragraphs(path)]


@pytest.mark.parametrize("pattern", english.PATTERNS)
@pytest.mark.parametrize("read", [code, documents], ids=["code", "documents"])
def test_habits_are_as_rare_as_in_optax(pattern, read):
    texts = read()
    uses = english.find_uses(texts, pattern)
    count = sum(english.words(text.text) for text in texts)
    assert len(uses) <= english.PATTERNS[pattern] * count / 1000, uses


def test_docstrings_of_functions_begin_with_a_verb():
    assert not [line for path in english.code_files() for line in english.without_verb(path)]


def test_both_habits_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(english, "ROOT", tmp_path)
    path = tmp_path / "a.py"
    path.write_text(
        'def f():\n    """The sum of those of rows, which is no mean."""\n\n\n'
        'def g():\n    """Returns the sum of the rows."""\n'
    )
    (line,) = english.without_verb(path)
    assert line == "a.py:1: f: The sum of those of rows, which is no mean."
    texts = [*english.code_texts(path)]
    assert len(texts) == 2
    assert english.find_uses(texts, r"\bthose of\b") == [
        "a.py:2: The sum of those of rows, which is no mean."
    ]
