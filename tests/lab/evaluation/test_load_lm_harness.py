"""examples/lm_harness.py: a run behind the interface of lm-evaluation-harness."""

import abc
import importlib
import sys
import types

import pytest


class LM(abc.ABC):
    """The abstract methods of lm_eval.api.model.LM, of lm-eval 0.4.13."""

    def __init__(self) -> None:
        self._rank = 0

    @abc.abstractmethod
    def loglikelihood(self, requests) -> list[tuple[float, bool]]: ...

    @abc.abstractmethod
    def loglikelihood_rolling(self, requests) -> list[float]: ...

    @abc.abstractmethod
    def generate_until(self, requests) -> list[str]: ...


@pytest.fixture
def model(trained, monkeypatch):
    """The example's model of a run, of a stub of the package where it is not installed."""
    if importlib.util.find_spec("lm_eval") is None:
        for name in ("lm_eval", "lm_eval.api", "lm_eval.api.model", "lm_eval.utils"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        sys.modules["lm_eval.api.model"].LM = LM
        sys.modules["lm_eval.utils"].make_table = str
    monkeypatch.delitem(sys.modules, "examples.lm_harness", raising=False)
    return importlib.import_module("examples.lm_harness").ZooLM(trained)


def requests(*arguments):
    return [types.SimpleNamespace(args=each) for each in arguments]


def test_continuations_have_their_score_and_the_greedy_one_is_told(model):
    run = model.run
    best = run.words[run.log_probs("le chat").argmax()]
    then = run.words[run.log_probs(["le", "chat", best]).argmax()]
    rare = next(word for word in run.words if word not in (best, then, "<unk>", "</s>"))
    pairs = [("le chat", f" {best} {then}"), ("le chat", f" {best} {rare}"), ("", " le zèbre")]
    results = model.loglikelihood(requests(*pairs))
    for (context, continuation), (log_prob, greedy) in zip(pairs, results, strict=True):
        first, second = continuation.split()
        before, after = run.log_probs(context), run.log_probs(f"{context} {first}")
        total = before[run.id(first)] + after[run.id(second)]  # without </s>
        assert log_prob == pytest.approx(float(total), rel=1e-5)
        assert greedy == (second == then)
    assert model.loglikelihood([]) == []


def test_lines_of_documents_are_sentences(model):
    first, second = (row.log_prob for row in model.run.score(["le chat dort .", "les chats"]))
    documents = requests(("le chat dort .\n\nles chats\n",), ("les chats",), ("",))
    assert model.loglikelihood_rolling(documents) == pytest.approx(
        [first + second, second, 0], rel=1e-5
    )


def test_texts_go_on_greedily_to_their_end(model):
    run, words = model.run, ["le", "chat"]
    for _ in range(2):
        words.append(run.words[run.log_probs(words).argmax()])
    assert words[2:] == ["les", "les"]  # as this small model is
    settings_list = [
        {"max_gen_toks": 2},
        {"max_gen_toks": 1},
        {"max_gen_toks": 2, "until": ["x", " l"]},
    ]
    texts = model.generate_until(requests(*(("le chat", settings) for settings in settings_list)))
    assert texts == ["les les", "les", "les"]
