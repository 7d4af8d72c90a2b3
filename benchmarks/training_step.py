"""A full training step against the same model in PyTorch.

Forward, backward, clipping of the gradient's norm and SGD for an LSTM language model: 2 layers of
256, embedding 256, V = 10,000, untied softmax with bias, B = 32, T = 35, no dropout, the carry
passed from step to step. Both start from the same parameters and see the same batch, once in a
process that keeps freed memory for the next step, once in a process that does not. Both compute in
float32 and in bfloat16: zoo with training.compute="bfloat16", PyTorch with torch.autocast. PyTorch
runs eagerly, and compiled but for its layers of LSTM, which `torch.compile` leaves as they are.

    pip install torch==2.13.0
    python -m benchmarks.training_step
    python -m benchmarks.training_step --size 650
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import pytorch, same_device, timing
from benchmarks.pytorch import torch
from zoo import optimizers
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.lexicon import Lexicon
from zoo.models.language_model import LanguageModel
from zoo.training.devices import Devices
from zoo.training.step import Batch, TrainState, train_step
from zoo.training.tasks import Words, words_loss
from zoo.training.updates import Updates

BATCH, LENGTH, LAYERS, VOCABULARY = 32, 35, 2, 10_000
LEARNING_RATE, CLIP = 1.0, 5.0
TABLES = {"embedding": {}, "head": {}}  # neither depends on the lexicon


def zoo_side(model, params, words, targets, compute="float32"):
    """Returns a function that does one step of the training loop and returns the loss per token."""
    params = jax.tree.map(jnp.copy, params)  # the step donates them
    devices = Devices(1, BATCH)
    optimizer = Updates(optimizers.build(optimizers.SGD(LEARNING_RATE), CLIP, 1, 1))
    step_function = devices.compile(
        train_step,
        loss=functools.partial(words_loss, model),
        optimizer=optimizer,
        compute=compute,
    )
    carry = model.initial_carry(BATCH)
    state = TrainState(params, optimizer.init(params), carry, jnp.zeros((), jnp.int32))
    state, key = devices.restored(state), jax.random.key_data(jax.random.key(0))
    weights, reset = np.ones(words.shape, np.float32), np.zeros(words.shape, bool)
    batch = Batch(Words(words, targets, reset), weights, np.arange(BATCH, dtype=np.int32))

    def step():
        nonlocal state
        state, results = step_function(state, TABLES, batch, key)
        jax.block_until_ready(state)
        return float(results.loss / results.tokens)

    return step


class TorchModel(torch.nn.Module):
    """The same model in PyTorch's own layers."""

    def __init__(self, params, size):
        """Copies zoo's parameters; PyTorch's matrices are transposed, with the same gate order."""
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, size)
        self.lstm = torch.nn.LSTM(size, size, LAYERS, batch_first=True)
        self.head = torch.nn.Linear(size, VOCABULARY)
        ours = {
            "embedding.weight": params["embedding"]["table"],
            "head.weight": params["head"]["weights"],
            "head.bias": params["head"]["bias"],
        }
        for layer, weights in enumerate(params["core"]):
            ours[f"lstm.weight_ih_l{layer}"] = weights["input"].T
            ours[f"lstm.weight_hh_l{layer}"] = weights["recurrent"].T
            ours[f"lstm.bias_ih_l{layer}"] = weights["bias"]
            ours[f"lstm.bias_hh_l{layer}"] = jnp.zeros_like(weights["bias"])
        self.load_state_dict({name: pytorch.tensor(array) for name, array in ours.items()})
        # Zoo has one bias a gate; training both biases of PyTorch would be another model.
        for layer in range(LAYERS):
            getattr(self.lstm, f"bias_hh_l{layer}").requires_grad = False

    def forward(self, words, carry):
        """Computes (logits [B, T, V], carry)."""
        hidden, carry = self.lstm(self.embedding(words), carry)
        return self.head(hidden), carry


def torch_side(params, size, words, targets, autocast=False, through=lambda function: function):
    """Returns a function that does one step and returns the loss per token; `through` compiles."""
    model = TorchModel(params, size)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=LEARNING_RATE)
    words, targets = pytorch.tensor(words), pytorch.tensor(targets)
    carry = tuple(torch.zeros(LAYERS, BATCH, size) for _ in range(2))

    @through
    def forward(words, targets, carry):
        logits, carry = model(words, carry)
        logits = logits.view(-1, VOCABULARY)
        return torch.nn.functional.cross_entropy(logits, targets.view(-1)), carry

    def step():
        nonlocal carry
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(words.device.type, dtype=torch.bfloat16, enabled=autocast):
            loss, new_carry = forward(words, targets, carry)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, CLIP)
        optimizer.step()
        carry = tuple(part.detach().float() for part in new_carry)
        return loss.item()

    return step


def main():
    """Prints the table."""
    parser = timing.parser(__doc__, rounds=15)
    parser.add_argument("--size", type=int, default=256, help="cells of a layer")
    arguments = parser.parse_args()
    where = same_device.chosen(torch)

    lexicon = Lexicon(
        words=tuple(f"w{word}" for word in range(VOCABULARY)),
        counts=np.ones(VOCABULARY, np.int64),
    )
    size = arguments.size
    model = LanguageModel(Lookup(size), LSTM(size, LAYERS), Softmax())
    params = model.init(jax.random.key(0), lexicon)
    random = np.random.default_rng(0)
    words, targets = random.integers(VOCABULARY, size=(2, BATCH, LENGTH)).astype(np.int32)
    given = params, size, words, targets
    sides = {
        "PyTorch": torch_side(*given),
        "PyTorch, compiled": torch_side(*given, through=torch.compile),
        "PyTorch, autocast": torch_side(*given, autocast=True),
        "PyTorch, autocast, compiled": torch_side(*given, autocast=True, through=torch.compile),
        "zoo": zoo_side(model, params, words, targets),
        "zoo, bfloat16": zoo_side(model, params, words, targets, "bfloat16"),
    }
    with same_device.multiplying_in("float32", torch):
        losses = {name: [side() for _ in range(3)] for name, side in sides.items()}
    timing.print_table(
        f"2 x LSTM-{size}, B = {BATCH}, T = {LENGTH}, V = {VOCABULARY:,}, {where}; medians of "
        f"{arguments.rounds}",
        timing.medians(sides, arguments.rounds),
        "PyTorch",
    )
    for name, values in losses.items():
        print(f"  loss of the first steps, {name:27}: " + " ".join(f"{v:.5f}" for v in values))


if __name__ == "__main__":
    timing.in_each_memory("benchmarks.training_step", main)
