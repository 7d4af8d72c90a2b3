"""A training step with noise-contrastive estimation or importance sampling against PyTorch.

Forward, backward, clipping of the gradient's norm and Adagrad for an LSTM language model: one layer
of 256, embedding 256, B = 32, T = 32, 1,024 noise words of the batch, log-uniform, with repeats,
words by Zipf's law. Both start from the same parameters and see the same batch, but draw their own
noise. PyTorch draws from an alias table, and has sparse gradients of the tables, which its Adagrad
updates by rows; it runs eagerly, and with the scores and the loss compiled.

    pip install torch==2.13.0
    python -m benchmarks.sampled_pytorch
    python -m benchmarks.sampled_pytorch --vocabulary 1000000 --head NCE
"""

import functools
import gc

import jax
import numpy as np

from benchmarks import pytorch, steps, timing
from benchmarks.pytorch import torch
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.experiment import Training
from zoo.heads import NCE, ImportanceSampling
from zoo.losses import alias_table
from zoo.models import LanguageModel
from zoo.optimizers import Adagrad

BATCH, LENGTH, SIZE, SAMPLES, CLIP = 32, 32, 256, 1_024, 1.0
HEADS = {"NCE": NCE(samples=SAMPLES), "importance sampling": ImportanceSampling(samples=SAMPLES)}
RATE, ACCUMULATOR, EPSILON = 0.1, 0.1, 1e-7
ADAGRAD = Adagrad(RATE, initial_accumulator=ACCUMULATOR)
TRAINING = Training(batch=BATCH, length=LENGTH, optimizer=ADAGRAD, clip=CLIP)


class TorchHead(torch.nn.Module):
    """Scores of the targets and of shared noise words, and a sampled loss of them."""

    def __init__(self, head, params, counts, through):
        """Copies the parameters; `through` compiles scores and loss, or not."""
        super().__init__()
        self.loss = through(self._loss)
        self.is_nce = isinstance(head, NCE)
        self.weights, self.bias = (
            pytorch.embedding({"table": table}, sparse=True)
            for table in (params["weights"], params["bias"][:, None])
        )
        q = head.noise.probabilities(counts)
        threshold, alias = alias_table(q)
        self.threshold = pytorch.tensor(threshold.astype(np.float32))
        self.alias = pytorch.tensor(alias)
        self.log_expected = pytorch.tensor(np.log(SAMPLES * q).astype(np.float32))

    def draw(self):
        """Draws the noise words, [K]."""
        cells = torch.randint(len(self.alias), (SAMPLES,))
        stays = torch.rand(SAMPLES) < self.threshold[cells]
        return torch.where(stays, cells, self.alias[cells])

    def forward(self, hidden, targets):
        """Computes the mean loss."""
        noise = self.draw()
        words = torch.cat([targets, noise])  # one lookup a table: one sparse gradient
        bias = self.bias(words)[:, 0] - self.log_expected[words]
        return self.loss(hidden, self.weights(words), bias)

    def _loss(self, hidden, vectors, bias):
        tokens = len(hidden)
        target = (hidden * vectors[:tokens]).sum(-1) + bias[:tokens]
        noise_scores = torch.addmm(bias[tokens:], hidden, vectors[tokens:].T)
        if self.is_nce:
            softplus = torch.nn.functional.softplus
            return (softplus(-target) + softplus(noise_scores).sum(-1)).mean()
        return (torch.logaddexp(target, torch.logsumexp(noise_scores, -1)) - target).mean()


def torch_side(head, params, counts, batch, through):
    """Returns a function that does one step in PyTorch and returns its loss per token."""
    return pytorch.language_model_step(
        pytorch.embedding(params["embedding"], sparse=True),
        pytorch.recurrent("LSTM", params["core"]),
        TorchHead(head, params["head"], counts, through),
        functools.partial(
            torch.optim.Adagrad, lr=RATE, initial_accumulator_value=ACCUMULATOR, eps=EPSILON
        ),
        CLIP,
        batch,
    )


def sides(name, vocabulary):
    """Returns sides of one of `HEADS`."""
    head = HEADS[name]
    lexicon = steps.zipf_lexicon(vocabulary)
    batch = steps.zipf_batch(vocabulary, BATCH, LENGTH)
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE), head)
    params = jax.tree.map(np.asarray, model.init(jax.random.key(0), lexicon))
    build = functools.partial(torch_side, head, params, lexicon.counts, batch)
    zoo = steps.zipf_step(model, lexicon, TRAINING)
    return {**pytorch.eager_and_compiled(build), pytorch.ZOO: zoo}


def main():
    """Prints a table and the losses of the first steps of both losses, or of one."""
    parser = timing.parser(__doc__, rounds=15, vocabulary=10_000)
    parser.add_argument("--head", choices=HEADS, help="both without it")
    arguments, device = pytorch.begin(parser)
    torch.manual_seed(0)
    title = f"K = {SAMPLES:,}, LSTM-{SIZE}, B = {BATCH}, T = {LENGTH}, V = {arguments.vocabulary:,}"
    for name in [arguments.head] if arguments.head else HEADS:
        head_sides = sides(name, arguments.vocabulary)
        pytorch.compare(f"{name}, {title}, {device}", head_sides, arguments.rounds, pytorch.EAGER)
        del head_sides
        gc.collect()  # tables of a million words


if __name__ == "__main__":
    main()
