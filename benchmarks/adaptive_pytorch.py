"""A training step with the adaptive softmax against PyTorch's AdaptiveLogSoftmaxWithLoss.

Forward, backward, clipping of the gradient's norm and SGD for an LSTM language model: 2 layers of
256, embedding 256, B = 32, T = 35; cutoffs 2,000, 10,000 and 40,000, with vectors four times
smaller from tail to tail. Both start from the same parameters and see the same batch. PyTorch runs
eagerly, with dense gradients of the embedding and with sparse ones, and with sparse ones and the
head compiled; zoo, with dense updates and with updates by rows.

    pip install torch==2.13.0
    python -m benchmarks.adaptive_pytorch
    python -m benchmarks.adaptive_pytorch --vocabulary 1000000
"""

import dataclasses
import functools

import jax
import numpy as np

from benchmarks import pytorch, steps, timing
from benchmarks.pytorch import torch
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.experiment import Training
from zoo.heads import AdaptiveSoftmax
from zoo.models import LanguageModel
from zoo.optimizers import SGD

BATCH, LENGTH, SIZE, LAYERS, CLIP = 32, 35, 256, 2, 1.0
CUTOFFS = 2_000, 10_000, 40_000
TRAINING = Training(batch=BATCH, length=LENGTH, optimizer=SGD(1.0), clip=CLIP)


class TorchHead(torch.nn.Module):
    """PyTorch's adaptive softmax with the parameters of the zoo's."""

    def __init__(self, params, vocabulary):
        super().__init__()
        self.softmax = torch.nn.AdaptiveLogSoftmaxWithLoss(
            SIZE, vocabulary, [*CUTOFFS], div_value=4.0, head_bias=True
        )
        ours = {"head.weight": params["head"], "head.bias": params["head_bias"]}
        for tail in range(len(CUTOFFS)):
            ours[f"tail.{tail}.0.weight"] = params[f"projection_{tail}"].T
            ours[f"tail.{tail}.1.weight"] = params[f"tail_{tail}"]
        self.softmax.load_state_dict({n: pytorch.tensor(a) for n, a in ours.items()})

    def forward(self, hidden, targets):
        """Computes the mean loss."""
        return self.softmax(hidden, targets).loss


def torch_side(params, vocabulary, by_rows, batch, through=lambda head: head):
    """Returns a function that does one step in PyTorch and returns its loss per token."""
    return pytorch.language_model_step(
        pytorch.embedding(params["embedding"], by_rows),
        pytorch.recurrent("LSTM", params["core"]),
        through(TorchHead(params["head"], vocabulary)),
        functools.partial(torch.optim.SGD, lr=1.0),
        CLIP,
        batch,
    )


def sides(vocabulary, dense=True):
    """Returns sides with updates by rows, and with `dense` also sides with dense ones."""
    lexicon = steps.zipf_lexicon(vocabulary)
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE, LAYERS), AdaptiveSoftmax(cutoffs=CUTOFFS))
    params = jax.tree.map(np.asarray, model.init(jax.random.key(0), lexicon))
    batch = steps.zipf_batch(vocabulary, BATCH, LENGTH)
    step_sides = {}
    for name, by_rows in {"dense": False, "by rows": True}.items():
        if by_rows or dense:
            step_sides[f"PyTorch, {name}"] = torch_side(params, vocabulary, by_rows, batch)
            training = dataclasses.replace(TRAINING, row_sparse=by_rows)
            step_sides[f"zoo, {name}"] = steps.zipf_step(model, lexicon, training)
    # The sizes of clusters change from step to step.
    through = functools.partial(torch.compile, dynamic=True)
    compiled = torch_side(params, vocabulary, True, batch, through)
    return step_sides | {"PyTorch, by rows, compiled": compiled}


def main():
    """Prints a table and the losses of the first steps."""
    parser = timing.parser(__doc__, rounds=15, vocabulary=100_000)
    parser.add_argument("--by-rows-only", action="store_true", help="leave dense sides out")
    arguments, device = pytorch.begin(parser)
    vocabulary = arguments.vocabulary
    title = (
        f"adaptive softmax, {LAYERS} x LSTM-{SIZE}, B = {BATCH}, T = {LENGTH}, "
        f"V = {vocabulary:,}, words by Zipf's law, {device}"
    )
    step_sides = sides(vocabulary, not arguments.by_rows_only)
    pytorch.compare(title, step_sides, arguments.rounds, "PyTorch, by rows")


if __name__ == "__main__":
    main()
