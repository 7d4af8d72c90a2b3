"""Training steps against PyTorch, on cores for which it does not have all products."""

import sys

import pytest

from benchmarks import timing


def test_products_that_pytorch_does_not_have_are_left_out(monkeypatch, capsys):
    pytest.importorskip("torch")
    from benchmarks import pytorch, same_device, training_step

    def torch_step(model, params, tables, batch, autocast):
        def step():
            if autocast:
                raise RuntimeError("could not create a primitive descriptor for the LSTM")

        return lambda through: step

    sides_of_table = {}
    monkeypatch.setattr(training_step.pytorch_steps, "torch_step", torch_step)
    monkeypatch.setattr(same_device, "share_device", lambda torch: "on the CPU")
    monkeypatch.setattr(pytorch, "compare", lambda _, sides, *__: sides_of_table.update(sides))
    monkeypatch.setattr(timing, "machine", lambda: "a machine")
    monkeypatch.setattr(training_step, "VOCABULARY", 11)
    monkeypatch.setattr(sys, "argv", ["training_step", "--size", "3"])
    training_step.main()
    assert [*sides_of_table] == ["PyTorch", "PyTorch, compiled", "zoo", "zoo, bfloat16"]
    assert capsys.readouterr().out == (
        "PyTorch, autocast is left out, as it does not run on these cores: "
        "could not create a primitive descriptor for the LSTM\n"
    )
