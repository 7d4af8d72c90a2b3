"""Whole training steps in PyTorch, for comparisons with the steps of `benchmarks.steps`.

PyTorch runs eagerly, but for what a head compiles itself: sparse gradients cannot be compiled.
"""

import torch

from benchmarks import pytorch


class Recurrent(torch.nn.Module):
    """An embedding and layers of LSTM, with the parameters of a zoo model."""

    def __init__(self, params, sparse: bool):
        """Copies parameters.

        Args:
          params: parameters of a `LanguageModel(Lookup(D), LSTM(D, layers), ...)`.
          sparse: whether the gradient of the embedding is a sparse tensor.
        """
        super().__init__()
        self.embedding = pytorch.embedding(params["embedding"], sparse)
        self.lstm = pytorch.recurrent("LSTM", params["core"])

    def forward(self, words, carry):
        """Computes (hidden states [B, T, D], carry)."""
        return self.lstm(self.embedding(words), carry)


def clip_norm(parameters, most: float):
    """Clips the norm of all gradients together, of which some may be sparse.

    Args:
      parameters: their `grad` is replaced.
      most: the greatest norm.
    """
    gradients = []
    for parameter in parameters:
        if parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            gradients.append(parameter.grad.values())
        else:
            gradients.append(parameter.grad)
    with torch.no_grad():
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        torch._foreach_mul_(gradients, (most / norm).clamp(max=1.0))


def one_step(recurrent, head, optimizer, clip, batch):
    """Returns a function that does one step and returns its loss per token.

    Args:
      recurrent: a `Recurrent`.
      head: a module, (hidden states [N, D], targets [N]) -> mean loss.
      optimizer: parameters -> a `torch.optim.Optimizer`.
      clip: largest norm of the gradient.
      batch: a Batch of the zoo.
    """
    modules = recurrent, head
    trained = [p for module in modules for p in module.parameters() if p.requires_grad]
    made = optimizer(trained)
    words, targets = (pytorch.tensor(x) for x in (batch.inputs.words, batch.inputs.targets))
    layers, size = recurrent.lstm.num_layers, recurrent.lstm.hidden_size
    carry = tuple(torch.zeros(layers, words.shape[0], size) for _ in range(2))

    def step():
        nonlocal carry
        made.zero_grad(set_to_none=True)
        hidden, new_carry = recurrent(words, carry)
        loss = head(hidden.reshape(-1, size), targets.reshape(-1))
        loss.backward()
        clip_norm(trained, clip)
        made.step()
        carry = tuple(part.detach() for part in new_carry)
        return loss.item()

    return step
