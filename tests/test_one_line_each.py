"""A head, a source, a metric and a tuning method of one's own: a file, and a line that names it."""

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import configs
from zoo import __main__ as commands
from zoo import configuration
from zoo.base.trust import user_modules
from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.lab.evaluation import bleu_chrf_wer
from zoo.lab.evaluation.bleu_chrf_wer import WordErrorRate
from zoo.lab.rescoring import tune
from zoo.sources.text import Text

CONFIG = """
import dataclasses
import jax
import jax.numpy as jnp
from zoo import Experiment
from zoo.data import Corpus, Source
from zoo.heads import Head
from zoo.models import LanguageModel


@dataclasses.dataclass(frozen=True)
class Letters(Source):
    '''Two sentences.'''

    letters: str = "ab"

    def splits(self):
        return ("train", "validation")

    def read(self, split):
        return Corpus(split, [[*self.letters], [*self.letters[::-1]]])


@dataclasses.dataclass(frozen=True)
class Same(Head):
    '''All words alike.'''

    temperature: float = 1.0

    def _init(self, key, hidden_size, lexicon):
        return {"bias": jnp.zeros(len(lexicon))}

    def _log_probs(self, params, tables, hidden, context, prepared):
        log_probs = jax.nn.log_softmax(params["bias"] / self.temperature)
        return jnp.broadcast_to(log_probs, (*hidden.shape[:-1], *log_probs.shape))

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        log_probs = self._log_probs(params, tables, hidden, context, prepared)
        log_prob = jnp.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
        return log_prob, jnp.zeros_like(log_prob)


def get_config():
    return Experiment(Letters("abc"), model=LanguageModel(head=Same(2.0)))
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The experiment of a file that has a head and a source of its own."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(user_modules, "_folders", [])
    path = tmp_path / "mine.py"
    path.write_text(CONFIG)
    return configs.load(str(path))


def test_a_config_takes_a_head_and_a_source(mine):
    lexicon, corpora = mine.vocabulary.build(mine.data)
    assert {"a", "b", "c"} <= {*lexicon.words} and len(corpora["train"].sentences) == 2
    head, hidden = mine.model.head, jnp.ones((2, 3))
    params = head.init(jax.random.key(0), 3, lexicon)
    loss = head.weighted_loss(params, {}, hidden, jnp.array([0, 1]), jnp.ones(2))
    np.testing.assert_allclose(loss, 2 * np.log(len(lexicon)), rtol=1e-6)
    saved = configuration.to_json(mine)
    assert configuration.from_json(saved) == mine
    experiment = configuration.apply_settings(mine, ["model.head.temperature=3", "data.letters=xy"])
    assert experiment.model.head.temperature == 3 and experiment.data.letters == "xy"
    # What is judged beside its own splits is read as text, and no command need know the source.
    assert mine.data.with_test("other.txt") == Text("other.txt", "other.txt", ("other.txt",))
    assert mine.data.form == Text("a", "b").form._replace(blank_lines=None, plain=False)


def test_a_setting_takes_components_of_ones_own(mine, monkeypatch):
    monkeypatch.setitem(sys.modules, "my_parts", sys.modules[type(mine.model.head).__module__])
    settings = ["model.head=my_parts:Same", "data=my_parts:Letters", "data.letters=xy"]
    experiment = configuration.apply_settings(configs.load("micro_softmax"), settings)
    assert (
        isinstance(experiment.model.head, type(mine.model.head)) and experiment.data.letters == "xy"
    )
    for setting, message in (
        ("model.head=my_parts:Letters", r"my_parts:Letters is not a Head: write a class with"),
        ("model.head=my_parts:jax", r"my_parts:jax is not a Head"),
        ("model.head=my_parts:Sam", r"my_parts:Sam cannot be imported \(my_parts has no 'Sam'\)"),
        ("model.head=my_part:Same", r"my_part:Same cannot be imported \(no module named 'my_part'"),
        ("model.head=Same", r"'Same' is not a Head; .* is written as my_module:MyClass"),
    ):
        with pytest.raises(UserError, match=f"--set {setting}: {message}"):
            configuration.apply_settings(mine, [setting])


LISTS = "0 ||| a b ||| good= 0 ||| 3\n0 ||| a c ||| good= 1 ||| 2\n"


class Fixed:
    """Weights of 2, whatever the lists are."""

    def tune(self, lists, metric, start, seed=0):
        return np.full(len(start), 2.0)


@dataclasses.dataclass(frozen=True)
class Letters(WordErrorRate):
    """Word errors under another name."""

    name = "LETTERS"


def test_a_command_takes_a_metric_and_a_tuning_method(tmp_path, monkeypatch, capsys):
    (tmp_path / "lists").write_text(LISTS)
    (tmp_path / "references").write_text("a c\n")
    line = ["rescore", "tune", "lists", "references", "--metric", "letters", "--method", "fixed"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["zoo", *line])
    with pytest.raises(SystemExit) as refused:
        commands.main(line)
    assert refused.value.code == 2
    assert "choose from" in capsys.readouterr().err
    monkeypatch.setitem(bleu_chrf_wer.METRICS, "letters", Letters)
    monkeypatch.setitem(tune.METHODS, "fixed", Fixed)
    assert program.run(commands.main) == 0
    header, *_, weight = capsys.readouterr().out.splitlines()
    assert header.startswith("LETTERS") and weight == "good= 2.0"
