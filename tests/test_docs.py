"""The Python in docs does what docs say."""

import dataclasses
import pathlib
import re

import jax

from tests.training import small
from zoo.checkpoints import Checkpoints
from zoo.heads import CharLSTM
from zoo.spelling import Spelling
from zoo.workdir import Workdir

DOCS = pathlib.Path(__file__).parent.parent / "docs"


def snippets(name):
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)


def test_the_most_probable_spellings_are_printed(tmp_path, capsys):
    (snippet,) = snippets("characters.md")
    head = CharLSTM(Spelling(longest=4), size=3, letter_size=2)
    recipe = small.experiment(dataclasses.replace(small.MODEL, head=head))
    lexicon, _ = recipe.build()
    workdir = Workdir(tmp_path / "run")
    workdir.claim(recipe)
    workdir.keep_lexicon(lexicon)
    checkpoints = Checkpoints(workdir.path / "checkpoints")
    params = recipe.model.init(jax.random.key(0), lexicon)
    checkpoints.save("best", 1, {"params": params}, {})
    checkpoints.close()
    for documented, here in (
        ("runs/ptb_char_lstm", str(workdir.path)),
        ("the new york stock", "word1 word2"),
    ):
        assert documented in snippet
        snippet = snippet.replace(documented, here)
    exec(snippet, {})
    *found, last = capsys.readouterr().out.splitlines()
    log_probs = [float(line.split()[0]) for line in found]
    assert len(log_probs) == 5 and log_probs == sorted(log_probs, reverse=True)
    assert re.fullmatch(r"exact|at most -\d+\.\d{3} may be missing", last)
