"""The other side of the benchmarks against PyTorch: zoo's parameters in PyTorch's layers.

Each opponent runs as written ("eager") and through `torch.compile` ("compiled"), on as many threads
as the process has cores, and the better one counts. Layers of PyTorch have two biases a gate where
zoo has one: the second is 0 and not trained, so that both sides train the same model. Both compute
on the device of `benchmarks.same_device`.

    pip install torch==2.13.0
"""

import functools
import sys

import numpy as np

from benchmarks import same_device, timing
from zoo.lab.commands import program

try:
    import torch
except ImportError:
    sys.exit("this benchmark compares with PyTorch, which is absent: pip install torch==2.13.0")

LAYERS = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU}
EAGER, COMPILED, ZOO = "PyTorch, eager", "PyTorch, compiled", "zoo"
# The results of this many first calls are compared. Losses differ by at most so much, nats a token,
# and so much of a loss, for large ones have fewer decimals in float32.
CHECKED, DIFFERENCE, RELATIVE = 3, 1e-5, 1e-6


def tensor(array) -> torch.Tensor:
    """Copies an array of jax or numpy to PyTorch's device; integers become int64."""
    array = np.array(array)
    copied = torch.from_numpy(array.astype(np.int64) if array.dtype.kind == "i" else array)
    return copied.to(torch.get_default_device())


def linear(params) -> torch.nn.Linear:
    """Makes a layer of {"weights": [V, D], "bias": [V]}."""
    layer = torch.nn.Linear(*params["weights"].shape[::-1])
    return _loaded(layer, {"weight": params["weights"], "bias": params["bias"]})


def embedding(params, sparse: bool = False) -> torch.nn.Embedding:
    """Makes the layer of {"table": [V, E]}, whose gradient may be a sparse tensor."""
    return torch.nn.Embedding.from_pretrained(tensor(params["table"]), freeze=False, sparse=sparse)


def recurrent(kind: str, layers) -> torch.nn.Module:
    """Makes recurrent layers [B, T, E] -> [B, T, D] from the parameters of zoo's core.

    Args:
      kind: "LSTM" or "GRU", whose gates have zoo's order.
      layers: the core's parameters.
    """
    (inputs, _), (size, _) = layers[0]["input"].shape, layers[0]["recurrent"].shape
    module = LAYERS[kind](inputs, size, len(layers), batch_first=True)
    values = {}
    for number, weights in enumerate(layers):
        second = np.zeros_like(weights["bias"])
        if "recurrent_bias" in weights:
            second[2 * size :] = weights["recurrent_bias"]
        values |= {
            f"weight_ih_l{number}": weights["input"].T,
            f"weight_hh_l{number}": weights["recurrent"].T,
            f"bias_ih_l{number}": weights["bias"],
            f"bias_hh_l{number}": second,
        }
    module = _loaded(module, values)
    for name, parameter in module.named_parameters():
        if "bias_hh" not in name:
            continue
        if kind == "LSTM":
            parameter.requires_grad = False
        else:  # the reset gate acts on the third block's second bias, which zoo trains too
            parameter.register_hook(lambda gradient: _third_block(gradient, size))
    return module


def _third_block(gradient, size):
    gradient = gradient.clone()
    gradient[: 2 * size] = 0
    return gradient


def _loaded(module, values):
    module.load_state_dict({name: tensor(value) for name, value in values.items()})
    return module


class SoftmaxLoss(torch.nn.Module):
    """The mean loss of targets [N] after hidden states [N, D], by a softmax."""

    def __init__(self, params, through):
        """Copies zoo's parameters; `through` compiles, or not."""
        super().__init__()
        self.output, self.loss = linear(params), through(self._loss)

    def forward(self, hidden, targets):
        """Computes the mean loss."""
        return self.loss(hidden, targets)

    def _loss(self, hidden, targets):
        return torch.nn.functional.cross_entropy(self.output(hidden), targets)


def sgd(learning_rate: float, weight_decay: float = 0.0):
    """Returns a function from parameters to PyTorch's fused SGD, for `training_step`."""
    return functools.partial(
        torch.optim.SGD, lr=learning_rate, weight_decay=weight_decay, fused=True
    )


def clip_norm(parameters, max_norm: float):
    """Clips the norm of all gradients together, of which some may be sparse."""
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


def training_step(model: torch.nn.Module, optimizer, clip: float):
    """Returns step(loss), which updates the parameters by the gradient of a scalar loss.

    Args:
      model: the parameters.
      optimizer: parameters -> a `torch.optim.Optimizer`.
      clip: largest norm of the gradient.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    torch_optimizer = optimizer(trained)

    def step(loss):
        torch_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip_norm(trained, clip)
        torch_optimizer.step()

    return step


def language_model_step(embedding, core, loss, optimizer, clip, batch, autocast=False):
    """Returns a function that does one step of a language model and returns its loss per token.

    Args:
      embedding: a module, words [B, T] -> vectors.
      core: recurrent layers, see `recurrent`.
      loss: a module, (hidden states [N, D], targets [N]) -> mean loss.
      optimizer: see `training_step`.
      clip: largest norm of the gradient.
      batch: a Batch of the zoo.
      autocast: whether products are in bfloat16.
    """
    update = training_step(torch.nn.ModuleList([embedding, core, loss]), optimizer, clip)
    words, targets = (tensor(array) for array in (batch.inputs.words, batch.inputs.targets))
    carry = None

    def step():
        nonlocal carry
        with torch.autocast(words.device.type, torch.bfloat16, enabled=autocast):
            hidden, new_carry = core(embedding(words), carry)
            mean_loss = loss(hidden.flatten(0, 1), targets.flatten())
        update(mean_loss)
        carry = torch.utils._pytree.tree_map(lambda state: state.detach().float(), new_carry)
        return mean_loss.item()

    return step


def eager_and_compiled(build) -> dict:
    """Returns {name: side} of an opponent as written and through `torch.compile`.

    Args:
      build: from a function that takes a module or function and returns it, perhaps compiled, to
        the side, a function without arguments.
    """
    return {EAGER: build(lambda function: function), COMPILED: build(torch.compile)}


def first_results(sides: dict) -> dict[str, list]:
    """Calls each side `CHECKED` times, in float32."""
    with same_device.multiplying_in("float32", torch):
        return {name: [side() for _ in range(CHECKED)] for name, side in sides.items()}


def print_losses(title: str, losses_by_side: dict[str, list]):
    """Prints the losses of each side on a line."""
    for name, losses in losses_by_side.items():
        print(f"  {title}, {name}: {' '.join(f'{loss:.5f}' for loss in np.ravel(losses))}")


def begin(parser):
    """Returns (a benchmark's options, the name of the device), and keeps freed memory."""
    program.keep_memory()
    return parser.parse_args(), same_device.share_device(torch)


def compare(title: str, sides: dict, rounds: int, *baselines: str, equal=None) -> dict[str, float]:
    """Prints the medians of sides, which are returned, and their first losses.

    Without baselines, the better of PyTorch's is one, and all sides have to agree: in float32, also
    on a GPU where their times are taken in TF32, which is too coarse for the check.

    Args:
      title: of the table.
      sides: {name: function without arguments that returns its result}.
      rounds: how often each side is timed.
      *baselines: names of sides.
      equal: function of two results that raises where they differ; losses by default.
    """
    results = first_results(sides)
    for side_results in () if baselines else results.values():
        for result, reference in zip(side_results, results[ZOO], strict=True):
            (equal or equal_losses)(result, reference)
    times = timing.compare(title, sides, rounds, *(baselines or (EAGER, COMPILED)))
    if equal is None:
        print_losses("losses of the first steps", results)
    return times


def equal_losses(losses, reference):
    """Raises AssertionError unless losses are equal to five decimals."""
    np.testing.assert_allclose(losses, reference, rtol=RELATIVE, atol=DIFFERENCE)
