"""Whole training steps in PyTorch, for comparisons with the steps of `benchmarks.steps`.

PyTorch runs eagerly, but for what a head compiles itself: sparse gradients cannot be compiled.
"""

import torch

from benchmarks import pytorch


def clip_norm(parameters, max_norm: float):
    """Clips the norm of all gradients together, of which some may be sparse.

    Args:
      parameters: their `grad` is replaced.
      max_norm: the greatest norm.
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
        torch._foreach_mul_(gradients, (max_norm / norm).clamp(max=1.0))


def one_step(params, sparse, head, optimizer, clip, batch):
    """Returns a function that does one step and returns its loss per token.

    Args:
      params: parameters of a `LanguageModel(Lookup(D), LSTM(D, layers), ...)`, which are copied.
      sparse: whether the gradient of the embedding is a sparse tensor.
      head: a module, (hidden states [N, D], targets [N]) -> mean loss.
      optimizer: parameters -> a `torch.optim.Optimizer`.
      clip: largest norm of the gradient.
      batch: a Batch of the zoo.
    """
    embedding = pytorch.embedding(params["embedding"], sparse)
    lstm = pytorch.recurrent("LSTM", params["core"])
    modules = embedding, lstm, head
    trained = [p for module in modules for p in module.parameters() if p.requires_grad]
    torch_optimizer = optimizer(trained)
    words, targets = (pytorch.tensor(x) for x in (batch.inputs.words, batch.inputs.targets))
    carry = tuple(torch.zeros(lstm.num_layers, len(words), lstm.hidden_size) for _ in range(2))

    def step():
        nonlocal carry
        torch_optimizer.zero_grad(set_to_none=True)
        hidden, new_carry = lstm(embedding(words), carry)
        loss = head(hidden.flatten(0, 1), targets.flatten())
        loss.backward()
        clip_norm(trained, clip)
        torch_optimizer.step()
        carry = tuple(part.detach() for part in new_carry)
        return loss.item()

    return step
