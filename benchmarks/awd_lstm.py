"""A training step of the AWD-LSTM, with all its masks and penalties, against PyTorch.

Forward, backward, clipping of the gradient's norm and SGD with weight decay for `ptb_awd_lstm`:
three layers of 1,150, 1,150 and 400 cells, vectors of 400 numbers shared with the head, V = 10,000,
B = 40, T = 70, the carry passed from step to step. PyTorch's side is written as the authors' code:
the masked recurrent weights are given to PyTorch's LSTM kernel (oneDNN's on a CPU, cuDNN's on a
GPU), masks are drawn by its own generator. Without masks both sides have the same losses, which is
checked first; with masks they differ by chance. Two more rows are without masks and penalties, so
that the table shows what these cost either side. Below it stand the rates at which each side
multiplies float32 matrices of the recurrence and of the head. On a GPU both sides multiply as their
users have it by default, zoo in TF32 and PyTorch its LSTM in TF32 and the rest in float32; `--tf32
no` makes both float32 and `--tf32 yes` both TF32. Losses are compared in float32.

    pip install torch==2.13.0
    python -m benchmarks.awd_lstm
    python -m benchmarks.awd_lstm --size 450 --layers 2 --last-size 300 --batch 20 --length 35
"""

import math

import jax
import numpy as np
import torch

import configs
from benchmarks import pytorch, same_device, steps, timing
from zoo import Training, changed
from zoo.models import LanguageModel
from zoo.optimizers import SGD

RECIPE = configs.load("ptb_awd_lstm")
VOCABULARY, LEARNING_RATE, CLIP, DECAY = 10_000, 1.0, 0.25, 1.2e-6
# Rates of words, inputs, states between layers, the last states, and recurrent weights.
RATES = {
    "word_dropout": 0.1,
    "core.input_dropout": 0.4,
    "core.dropout": 0.3,
    "output_dropout": 0.4,
    "core.recurrent_dropout": 0.5,
}
NONE = dict.fromkeys(RATES, 0.0)
ALPHA, BETA = RECIPE.model.activation_penalty, RECIPE.model.temporal_penalty
PLAIN = " without masks"
PRECISION = {"default": "default", "yes": "tf32", "no": "float32"}


def model_of(size: int, layers: int, last_size: int, rates: dict) -> LanguageModel:
    """Returns the model of `ptb_awd_lstm` with sizes and rates; without rates, no penalties."""
    changes = {"embedding.size": last_size, "core.size": size, "core.layers": layers}
    changes |= {"core.last_size": last_size, **rates}
    if not any(rates.values()):
        changes |= {"activation_penalty": 0.0, "temporal_penalty": 0.0}
    return changed(RECIPE.model, changes)


class Regularised(torch.nn.Module):
    """The same model in PyTorch."""

    def __init__(self, params, rates):
        """Copies zoo's parameters."""
        super().__init__()
        self.rates, parameter = rates, torch.nn.Parameter
        self.table = parameter(pytorch.tensor(params["embedding"]["table"]))
        self.bias = parameter(pytorch.tensor(params["head"]["bias"]))
        self.layers = torch.nn.ParameterList()
        self.second = [torch.zeros(len(layer["bias"])) for layer in params["core"]]
        for layer in params["core"]:
            for name in ("input", "recurrent", "bias"):
                self.layers.append(parameter(pytorch.tensor(np.asarray(layer[name]).T.copy())))

    def _locked(self, x, rate):
        if not rate:
            return x
        mask = x.new_empty(x.shape[0], 1, x.shape[2]).bernoulli_(1 - rate) / (1 - rate)
        return x * mask

    def forward(self, words, targets, carry):
        """Computes (cross-entropy, penalties, carry)."""
        rates, table = self.rates, self.table
        if rates["word_dropout"]:
            keep = table.new_empty(len(table), 1).bernoulli_(1 - rates["word_dropout"])
            table = table * (keep / (1 - rates["word_dropout"]))
        x = self._locked(torch.nn.functional.embedding(words, table), rates["core.input_dropout"])
        after = []
        for number, second in enumerate(self.second):
            input_weights, recurrent, bias = self.layers[3 * number : 3 * number + 3]
            recurrent = torch.nn.functional.dropout(recurrent, rates["core.recurrent_dropout"])
            weights = [input_weights, recurrent, bias, second]
            state = carry[number]
            x, *state = torch._VF.lstm(x, state, weights, True, 1, 0.0, True, False, True)
            after.append(tuple(part.detach() for part in state))
            if number < len(self.second) - 1:
                x = self._locked(x, rates["core.dropout"])
        dropped = self._locked(x, rates["output_dropout"])
        logits = torch.nn.functional.linear(dropped.flatten(0, 1), self.table, self.bias)
        loss = torch.nn.functional.cross_entropy(logits, targets.flatten())
        if rates is NONE:
            return loss, 0.0, after
        temporal = (x[:, 1:] - x[:, :-1]).square().sum() / x.numel()
        penalty = ALPHA * dropped.square().mean() + BETA * temporal
        return loss, penalty, after


def torch_side(params, rates, data):
    """Returns a function that does one step and returns the cross-entropy."""
    model = Regularised(params, rates)
    update = pytorch.training_step(model, pytorch.sgd(LEARNING_RATE, DECAY), CLIP)
    words, targets = (pytorch.tensor(array) for array in (data.inputs.words, data.inputs.targets))
    sizes = [len(second) // 4 for second in model.second]
    carry = [tuple(torch.zeros(1, len(words), size) for _ in range(2)) for size in sizes]

    def step():
        nonlocal carry
        loss, penalty, carry = model(words, targets, carry)
        update(loss + penalty)
        return loss.item()

    return step


def product_sides(rows: int, inner: int, columns: int) -> dict:
    """Returns a product of matrices by each side."""
    random = np.random.default_rng(0)
    lhs, rhs = (
        random.normal(size=shape).astype(np.float32) for shape in ((rows, inner), (inner, columns))
    )
    arrays, multiply = (jax.device_put(lhs), jax.device_put(rhs)), jax.jit(jax.numpy.matmul)
    tensors = pytorch.tensor(lhs), pytorch.tensor(rhs)
    return {
        pytorch.EAGER: lambda: torch.matmul(*tensors)[-1, -1].item(),
        pytorch.ZOO: lambda: float(multiply(*arrays)[-1, -1]),
    }


def main():
    """Prints the table."""
    sizes = {"size": 1150, "layers": 3, "last_size": 400, "batch": 40, "length": 70}
    parser = timing.parser(__doc__, rounds=9, **sizes)
    parser.add_argument("--tf32", choices=PRECISION, default="default")
    options = parser.parse_args()
    device = same_device.share_device(torch, precision=PRECISION[options.tf32])
    lexicon = steps.zipf_lexicon(VOCABULARY)
    data = steps.zipf_batch(VOCABULARY, options.batch, options.length)
    sizes = options.size, options.layers, options.last_size
    params = model_of(*sizes, NONE).init(jax.random.key(0), lexicon)
    host_params = jax.tree.map(np.asarray, params)

    def sides(rates):
        ours = jax.tree.map(jax.numpy.asarray, host_params)  # a step donates them
        training = Training(optimizer=SGD(LEARNING_RATE, weight_decay=DECAY), clip=CLIP)
        return {
            pytorch.EAGER: torch_side(host_params, rates, data),
            pytorch.ZOO: steps.step_of(model_of(*sizes, rates), ours, lexicon, data, training),
        }

    losses = pytorch.first_results(sides(NONE))
    pytorch.equal_losses(*losses.values())
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    all_sides = sides(RATES) | {f"{name}{PLAIN}": side for name, side in sides(NONE).items()}
    title = (
        f"{options.layers} x LSTM-{options.size}, the last {options.last_size}, "
        f"{count:,} parameters, B = {options.batch}, T = {options.length}, "
        f"V = {VOCABULARY:,}, {device}"
    )
    timing.compare(title, all_sides, options.rounds, pytorch.EAGER)
    head_shape = options.batch * options.length, options.last_size, VOCABULARY
    for shape in ((options.batch, options.size, 4 * options.size), head_shape):
        seconds = timing.medians(product_sides(*shape), 4 * options.rounds)
        rates = (f"{name} {2e-9 * math.prod(shape) / time:.0f}" for name, time in seconds.items())
        print(f"  [{shape[0]}, {shape[1]}] x [{shape[1]}, {shape[2]}], GF/s: {', '.join(rates)}")
    pytorch.print_losses("losses without masks", losses)


if __name__ == "__main__":
    timing.in_each_memory(main)
