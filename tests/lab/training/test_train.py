"""zoo.train: a run as train.py makes it, from Python."""

import dataclasses
import signal
import threading

import numpy as np
import pytest

import zoo
from tests.lab.training import small
from tests.marks import slow
from zoo.data import Text
from zoo.errors import Interrupted, UserError
from zoo.lab.training import loop

pytestmark = pytest.mark.usefixtures("signals")


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


def test_a_run_is_trained_and_loaded(tmp_path, capsys):
    before, log = handlers(), []
    zoo.train(small.experiment(epochs=1), tmp_path / "run", log=log.append)
    assert handlers() == before
    # Every line goes to the log: the sizes, compilations and their time, the validation.
    assert log[1].startswith("compiling the first step")
    assert log[-2] == "compiling the validation."
    assert log[-1].startswith("epoch 1, step ")
    assert capsys.readouterr().out == ""
    run = zoo.load(tmp_path / "run")
    assert run.seen_texts is not None and run.seen_texts.made_with.versions["jax"]
    (figure,) = run.evaluate()
    assert figure.text == "validation"
    np.testing.assert_allclose(figure.perplexity, np.exp(figure.log_perplexity))
    zoo.train(small.experiment(epochs=1), tmp_path / "run", log=log.append)
    assert log[-1].endswith("nothing is left to train.")


@pytest.mark.parametrize("validation", ["the training text", *slow("another")])
def test_a_validation_text_within_the_training_text_is_told(tmp_path, validation):
    """Its figures would be taken for those of new text, though the best checkpoint knows it."""
    path, second_path = tmp_path / "text.txt", tmp_path / "other.txt"
    path.write_text("a cat sat on a mat\n" * 30, encoding="utf-8")
    second_path.write_text("a mat sat on a cat\n" * 5, encoding="utf-8")
    chosen = {"the training text": f"{path}[:5]", "another": str(second_path)}[validation]
    recipe = dataclasses.replace(small.experiment(epochs=1), data=Text(str(path), chosen))
    lines: list[str] = []
    zoo.train(recipe, tmp_path / "run", log=lines.append)
    notes = [line for line in lines if line.startswith("note: ")]
    if validation == "another":
        assert not notes
    else:
        (note,) = notes
        assert "the model trains on its validation text (100.00% of its tokens" in note
    lines.clear()
    zoo.train(recipe, tmp_path / "run", log=lines.append)
    assert not any(line.startswith("note: ") for line in lines)  # once, where the run begins


def test_wrong_recipes_and_folders_are_errors(tmp_path):
    missing = str(tmp_path / "no.txt")
    recipe = dataclasses.replace(small.experiment(), data=Text(missing, missing))
    with pytest.raises(UserError, match=r"no\.txt"):
        zoo.train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    zoo.train(small.experiment(epochs=1), tmp_path / "run", log=lambda line: None)
    with pytest.raises(UserError, match="holds another experiment"):
        zoo.train(small.experiment(epochs=2), tmp_path / "run")


def test_an_interrupted_run_is_resumed_by_the_same_call(tmp_path, monkeypatch):
    """As by the stop button of a notebook, which sends SIGINT."""
    recipe, before, log = small.experiment(epochs=2), handlers(), []
    with monkeypatch.context() as patch:
        patch.setattr(loop.Trainer, "agreed_stop", lambda self: signal.SIGINT)
        with pytest.raises(Interrupted, match="SIGINT after step 1: the state is saved"):
            zoo.train(recipe, tmp_path / "run", log=log.append)
    assert handlers() == before
    zoo.train(recipe, tmp_path / "run", log=log.append)
    assert "resuming after step 1 (epoch 1)." in log
    zoo.train(recipe, tmp_path / "whole", log=log.append)
    texts = ["word1 word2", "word3"]
    assert zoo.load(tmp_path / "run").score(texts) == zoo.load(tmp_path / "whole").score(texts)


def test_a_thread_may_train(tmp_path):
    """Python allows signal handlers in the main thread only."""
    errors = []

    def train():
        try:
            zoo.train(small.experiment(epochs=1), tmp_path / "run", log=lambda line: None)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert not errors
    assert zoo.load(tmp_path / "run").checkpoint > 0
