"""Paths, ranges and bytes of data files."""

import pytest

from zoo.errors import UserError
from zoo.sources import files
from zoo.sources.files import Part


@pytest.mark.parametrize(
    ("text", "path", "bounds"),
    [
        ("a.txt", "a.txt", (None, None)),
        ("a.txt[3:]", "a.txt", (3, None)),
        ("a.txt[:-12]", "a.txt", (None, -12)),
        ("a[1:2].txt[-5:-2]", "a[1:2].txt", (-5, -2)),
        ("a[b].txt", "a[b].txt", (None, None)),
        ("a[b:c]", "a[b:c]", (None, None)),
        ("hub:a:train[:10%]", "hub:a:train[:10%]", (None, None)),
    ],
)
def test_a_path_and_its_range(text, path, bounds):
    assert Part.parse(text) == Part(path, slice(*bounds))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("ud_czech_pdt/train.conllu", "ud_czech_pdt"),
        ("multi30k/val.lc.norm.tok.fr", "multi30k"),
        ("wikitext-2/wiki.train.tokens", "wikitext-2"),
        ("ud_czech_pdt/extra.conllu", None),
        ("ptb/ptb.train.txt", None),
        ("train.conllu", None),
    ],
)
def test_a_missing_file_of_a_free_corpus_names_the_command_that_fetches_it(path, name, monkeypatch):
    monkeypatch.delenv("ZOO_DATA", raising=False)
    fetched = rf", or fetch it by python -m zoo data {name}" if name else ""
    with pytest.raises(UserError, match=rf"to the folder that holds it{fetched}\.$"):
        files.find(path)
