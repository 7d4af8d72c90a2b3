"""A training step of an encoder-decoder in buckets against the same model in PyTorch.

Forward, backward, clipping of the gradient's norm and SGD: encoder and decoder are LSTMs of 2 x 512
cells, V = 10,000 for source and target, embeddings of 512, an untied softmax with bias, B = 64, no
dropout; with Luong's attention (2015), and without. Sentences have about the lengths of Multi30k.
Both frameworks start from the same parameters and see the same batches of pairs with similar
lengths. Zoo pads each batch to the shape of its bucket, PyTorch to its longest sentences. PyTorch's
encoder reads packed sequences, so that the decoder starts from the state at the last word.

    pip install torch==2.13.0
    python -m benchmarks.translation_step [--attention]

It also prints the time to compile the programs of all buckets.
"""

import functools
import time

import jax
import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks import pytorch, same_device, steps, timing
from zoo import optimizers
from zoo.attention import Luong
from zoo.cores import LSTM
from zoo.data.batches import BucketedPairs, PairedText
from zoo.data.encoded_text import EncodedText
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.lab.training.step import Batch
from zoo.lab.training.tasks import SourcesAndTargets
from zoo.lab.training.updates import Updates
from zoo.models import SequenceToSequence

BATCH, LAYERS, VOCABULARY, BOUNDARY = 64, 2, 10_000, 0
LEARNING_RATE, CLIP, PADDING = 0.7, 5.0, 0.15
PAIRS = 20_000
TABLES = {"embedding": {}, "head": {}, "source_embedding": {}}


def random_pairs(random) -> BucketedPairs:
    """Makes pairs of random words in buckets, with log-normal and correlated lengths."""
    sources = np.clip(np.round(np.exp(random.normal(2.5, 0.32, PAIRS))), 4, 40).astype(int)
    targets = np.clip(sources + np.round(random.normal(1, 2, PAIRS)), 3, 50).astype(int) + 1
    texts = []
    for lengths in (sources, targets):
        words = random.integers(1, VOCABULARY, lengths.sum()).astype(np.int32)
        mask = np.ones(len(words), bool)
        texts.append(EncodedText(words, mask, mask, np.cumsum(lengths) - lengths))
    texts[1].words[np.cumsum(targets) - 1] = BOUNDARY
    return BucketedPairs(PairedText(*texts, BOUNDARY, 1, "forward"), BATCH, PADDING)


def zoo_side(model, params, batches):
    """Returns a function that does a step on each batch; see `steps.steps_on`."""
    optimizer = Updates(optimizers.build(optimizers.SGD(LEARNING_RATE), CLIP, 1, 1))
    return steps.steps_on(batches, functools.partial(loss, model), optimizer, params, TABLES)


def loss(model, params, tables, inputs, weights, carry, key):
    """Computes the loss as the trainer's translation task does."""
    return *model.weighted_loss(params, tables, *inputs, weights, key=key), carry


class TorchModel(torch.nn.Module):
    """The same model in PyTorch's own layers."""

    def __init__(self, params, through):
        """Copies zoo's parameters; `through` compiles, or not."""
        super().__init__()
        self.source_embedding = pytorch.embedding(params["source_embedding"])
        self.embedding = pytorch.embedding(params["embedding"])
        self.encoder = pytorch.recurrent("LSTM", params["encoder"])
        self.core = pytorch.recurrent("LSTM", params["core"])
        self.head = pytorch.linear(params["head"])
        if "attention" in params:
            attention = params["attention"]
            self.keys = torch.nn.Parameter(pytorch.tensor(attention["keys"]))
            self.state = pytorch.linear(
                {"weights": attention["state"].T, "bias": attention["state_bias"]}
            )
        self.attend, self.loss = through(self._attend), through(self._loss)

    def forward(self, source, lengths, words, targets):
        """Computes the mean loss."""
        packed = pack_padded_sequence(
            self.source_embedding(source), lengths, batch_first=True, enforce_sorted=False
        )
        memory, carry = self.encoder(packed)
        hidden, _ = self.core(self.embedding(words), carry)
        if hasattr(self, "keys"):
            memory, _ = pad_packed_sequence(memory, batch_first=True)
            hidden = self.attend(hidden, memory, lengths)
        return self.loss(hidden, targets)

    def _attend(self, hidden, memory, lengths):
        mask = torch.arange(memory.shape[1]) < lengths.to(memory.device)[:, None]
        context = torch.nn.functional.scaled_dot_product_attention(
            hidden, memory @ self.keys, memory, mask[:, None], scale=1.0
        )
        return torch.tanh(self.state(torch.cat([context, hidden], dim=-1)))

    def _loss(self, hidden, targets):
        logits = self.head(hidden).flatten(0, 1)
        return torch.nn.functional.cross_entropy(logits, targets.flatten(), ignore_index=-1)


def torch_side(params, batches):
    """Returns build(through) -> a function that does a step on each batch and returns the losses
    per token."""
    ready = [padded_on_the_right(batch) for batch in batches]

    def build(through):
        model = TorchModel(params, through)
        step = pytorch.training_step(model, pytorch.sgd(LEARNING_RATE), CLIP)

        def steps():
            losses = []
            for batch in ready:
                loss = model(*batch)
                step(loss)
                losses.append(loss.item())
            return losses

        return steps

    return build


def padded_on_the_right(batch):
    """Returns (source, lengths, words, targets) of a batch for PyTorch, targets padded with -1."""
    source, lengths, words, targets = map(np.asarray, batch.inputs)
    turned = np.zeros((len(source), lengths.max()), np.int64)
    for row, length in enumerate(lengths):
        turned[row, :length] = source[row, source.shape[1] - length :]
    is_token = np.asarray(batch.weights) > 0
    longest = is_token.sum(axis=1).max()
    arrays = turned, lengths, words[:, :longest], np.where(is_token, targets, -1)[:, :longest]
    source, lengths, words, targets = (pytorch.tensor(array) for array in arrays)
    return source, lengths.cpu(), words, targets  # a GPU packs by lengths of the CPU


def compilation(side, batches):
    """Measures (seconds to compile the programs of all shapes, number of shapes).

    Compilation takes the time of the first step on each shape, less the time of a second step.
    """
    shapes = {(batch.inputs.source.shape, batch.inputs.words.shape): batch for batch in batches}
    seconds = []
    for _ in range(2):
        begun = time.perf_counter()
        for batch in shapes.values():
            side([batch])
        seconds.append(time.perf_counter() - begun)
    return seconds[0] - seconds[1], len(shapes)


def main():
    """Prints the table."""
    parser = timing.parser(__doc__, rounds=9, batches=4, size=512)
    parser.add_argument("--attention", action="store_true", help="with Luong's attention")
    arguments = parser.parse_args()
    device, size, random = same_device.share_device(torch), arguments.size, np.random.default_rng(0)
    lexicon = steps.zipf_lexicon(VOCABULARY)
    attention = Luong() if arguments.attention else None
    model = SequenceToSequence(
        Lookup(size), LSTM(size, LAYERS), Softmax(), attention=attention, order="forward"
    )
    params = model.init(jax.random.key(0), lexicon, lexicon)
    pairs = random_pairs(random)
    rows = np.arange(BATCH, dtype=np.int32)
    everything = [
        Batch(SourcesAndTargets(*pair_batch[:4]), pair_batch.trained, rows)
        for pair_batch in pairs.epoch(random)
    ]
    batches = everything[: arguments.batches]
    sides = pytorch.eager_and_compiled(torch_side(params, batches))
    sides[pytorch.ZOO] = zoo_side(model, params, batches)
    pytorch.compare(
        f"{arguments.batches} steps, 2 x LSTM-{size}, {'Luong attention' if attention else ''} "
        f"B = {BATCH}, V = {VOCABULARY:,}, {device}",
        sides,
        arguments.rounds,
    )
    # A new step function, not compiled for any shape yet.
    fresh = zoo_side(model, model.init(jax.random.key(0), lexicon, lexicon), batches)
    seconds, count = compilation(fresh, everything)
    print(f"  {count} shapes, {pairs.padding:.1%} padding: compiled in {seconds:.1f} s")


if __name__ == "__main__":
    timing.in_each_memory(main)
