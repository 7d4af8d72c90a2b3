"""Modules that PyTorch itself saved have its log p: `make torch-test` has PyTorch."""

import numpy as np
import pytest

from tests.interop.test_torch_models import TEXT, log_probs
from tests.interop.torch_programs import EMBEDDING, GATES, SIZE, WORDS
from zoo.interop import torch_files, torch_models

torch = pytest.importorskip("torch")


class RNNModel(torch.nn.Module):
    """word_language_model's."""

    def __init__(self, kind, tied=False):
        super().__init__()
        size = EMBEDDING if tied else SIZE
        self.encoder = torch.nn.Embedding(WORDS, EMBEDDING)
        if kind in ("LSTM", "GRU"):
            self.rnn = getattr(torch.nn, kind)(EMBEDDING, size, 2)
        else:
            activation = kind.removeprefix("RNN_").lower()
            self.rnn = torch.nn.RNN(EMBEDDING, size, 2, nonlinearity=activation)
        self.decoder = torch.nn.Linear(size, WORDS)
        if tied:
            self.decoder.weight = self.encoder.weight

    def forward(self, words):
        """Computes log p of the word after each word."""
        output, _ = self.rnn(self.encoder(words))
        return torch.log_softmax(self.decoder(output).double(), dim=-1)


def expected(module):
    with torch.no_grad():
        return module(torch.tensor(TEXT)).numpy()


def check(path, module):
    model, params = torch_models.language_model(torch_files.read(path))
    np.testing.assert_allclose(log_probs(model, params, TEXT), expected(module), atol=3e-6)
    return model


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("archive", [True, False], ids=["archive", "before 1.6"])
def test_whole_modules(tmp_path, kind, archive):
    torch.manual_seed(3)
    module = RNNModel(kind)
    path = tmp_path / "model.pt"
    torch.save(module, path, _use_new_zipfile_serialization=archive)
    check(path, module)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_checkpoints_of_tied_models(tmp_path, dtype):
    torch.manual_seed(4)
    module = RNNModel("LSTM", tied=True).to(getattr(torch, dtype))
    optimizer = torch.optim.Adam(module.parameters())
    state = {"model": module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    torch.save(state, tmp_path / "model.pt")
    assert check(tmp_path / "model.pt", module.float()).head.tied


def test_a_list_of_model_criterion_and_optimiser(tmp_path):
    torch.manual_seed(5)
    module = RNNModel("GRU")
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    torch.save([module, torch.nn.CrossEntropyLoss(), optimizer], tmp_path / "model.pt")
    check(tmp_path / "model.pt", module)
