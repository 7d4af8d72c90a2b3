"""Training steps with a GRU, with words read by letters, and with words spelled, against PyTorch.

Forward, backward, clipping of the gradient's norm and SGD; B = 32, T = 35, the carry passed from
step to step, embeddings of 256, on a batch of the Penn Treebank in $ZOO_DATA, or of words drawn by
Zipf's law without it:

- gru: two layers of 256 cells and a softmax;
- char_cnn: the character convolution of Kim et al. (2016), small, under 2 x LSTM-256 and a softmax.
  Both sides compute each distinct word of the batch once;
- char_lstm: LSTM-256 with a head of 128 cells that spells the next word. PyTorch sorts the
  spellings by length, and reads a letter of all that have not ended at a time.

    python -m benchmarks.pytorch_steps [--only gru]
"""

import dataclasses
import functools

import jax
import numpy as np
import torch

from benchmarks import pytorch, steps, timing
from benchmarks.steps import MODELS, SIZE
from zoo import Training
from zoo.base.arrays import row_blocks
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
from zoo.embeddings import CharCNN, Lookup
from zoo.heads import CharLSTM, CNNSoftmax, Softmax
from zoo.lexicon import Lexicon
from zoo.lexicon.spelling import BEGIN, END
from zoo.models import LanguageModel
from zoo.optimizers import SGD
from zoo.sources import files

BATCH, LENGTH = 32, 35
LEARNING_RATE, CLIP = 1.0, 5.0


def zipf(random, length, size=10_000):
    """Returns (lexicon, words [B, T], description) of generated words of 1 to 18 letters, frequent
    words being short."""
    lengths = np.minimum(1 + np.log2(1 + np.arange(size)) / 2 + random.poisson(1, size), 18)
    words = {}
    for place, letters in enumerate(lengths.astype(int)):
        while len(words) <= place:
            words["".join(map(chr, random.integers(97, 123, letters)))] = None
    mass = 1 / np.arange(1, size + 1)
    batch = random.choice(size, (BATCH, length), p=mass / mass.sum())
    return Lexicon(tuple(words), np.ones(size, np.int64)), batch, "of Zipf's law"


def batch_of_words(random, length):
    """Returns the same of the Penn Treebank if it is there, else of Zipf's law."""
    data = files.data_folder()
    if data is None or not (data / "ptb" / "ptb.train.txt").exists():
        return zipf(random, length)
    vocabulary = Vocabulary()
    lexicon, corpora = vocabulary.build(Text("ptb/ptb.train.txt", "ptb/ptb.valid.txt"))
    words = vocabulary.encode(corpora["train"], lexicon).words
    batch_rows = words[: len(words) // BATCH * BATCH].reshape(BATCH, -1)
    return lexicon, batch_rows[:, 1000 : 1000 + length], "of the Penn Treebank"


class Convolved(torch.nn.Module):
    """Vectors of padded spellings by convolution, as `zoo.layers.char_convolution`."""

    def __init__(self, params):
        """Copies zoo's parameters."""
        super().__init__()
        self.letters = pytorch.embedding({"table": params["letters"]})
        self.filters = torch.nn.ModuleList(
            pytorch.linear(_turned(filters)) for filters in params["filters"]
        )
        (highway,) = params["highway"]
        gate = {name: highway[f"gate_{name}"] for name in ("weights", "bias")}
        # The layer and its gate side by side: one product.
        stacked = {name: np.concatenate([highway[name].T, gate[name].T]) for name in gate}
        self.highway = pytorch.linear(stacked)
        self.projection = pytorch.linear(_turned(params["projection"]))

    def forward(self, letters, lengths):
        """Computes the vectors [n, E] of spellings [n, L]."""
        vectors, pooled = self.letters(letters), []
        for filters in self.filters:
            width = filters.in_features // vectors.shape[2]
            positions = vectors.shape[1] - width + 1
            # One product with the windows: faster than Conv1d, with so few channels.
            windows = [vectors[:, first : first + positions] for first in range(width)]
            x = filters(torch.cat(windows, dim=2))
            beyond = torch.arange(positions) >= (lengths - width + 1)[:, None]
            pooled.append(x.masked_fill(beyond[:, :, None], -torch.inf).max(dim=1).values)
        y = torch.tanh(torch.cat(pooled, dim=1))
        transformed, gate = self.highway(y).chunk(2, dim=1)
        return self.projection(torch.lerp(y, torch.relu(transformed), torch.sigmoid(gate)))


class DistinctWords(torch.nn.Module):
    """Vectors of words from their spellings, each distinct word computed once."""

    def __init__(self, params, tables, through):
        """Copies zoo's parameters and spellings; `through` compiles, or not."""
        super().__init__()
        self.convolution = Convolved(params)
        self.compute = through(self.convolution)
        self.spellings, self.lengths = (pytorch.tensor(tables[n]) for n in ("letters", "lengths"))

    def forward(self, words):
        """Computes the vectors [..., E] of words."""
        distinct, slots = torch.unique(words, return_inverse=True)
        lengths = self.lengths[distinct]
        letters = self.spellings[distinct, : lengths.max()]
        return torch.nn.functional.embedding(slots, self.compute(letters, lengths))


class Speller(torch.nn.Module):
    """The mean loss of words that an LSTM spells, as `zoo.heads.CharLSTM`."""

    def __init__(self, params, tables, through):
        """Copies zoo's parameters and spellings; `through` compiles, or not."""
        super().__init__()
        for name in ("letters", "input", "recurrent"):
            self.register_parameter(name, torch.nn.Parameter(pytorch.tensor(params[name])))
        self.hidden = pytorch.linear(_turned({"weights": params["hidden"], "bias": params["bias"]}))
        self.output = pytorch.linear(
            _turned({"weights": params["output"], "bias": params["output_bias"]})
        )
        self.spellings, self.lengths = (pytorch.tensor(tables[n]) for n in ("letters", "lengths"))
        self.cell, self.letter_loss = through(_cell), through(self._letter_loss)

    def forward(self, hidden, targets):
        """Computes the mean loss of targets [N] after hidden states [N, D]."""
        lengths, order = self.lengths[targets].sort(descending=True)
        letters = self.spellings[targets[order], : lengths[0]]
        counts = (lengths[:, None] > torch.arange(letters.shape[1])).sum(dim=0).tolist()
        projected = self.hidden(hidden[order])
        gate_table = self.letters @ self.input
        previous = torch.full_like(targets, BEGIN)
        u, s = projected.new_zeros(2, len(targets), len(self.recurrent)).unbind()
        spelled = []
        for position, count in enumerate(counts):
            gates = projected[:count] + torch.nn.functional.embedding(previous[:count], gate_table)
            u, s = self.cell(torch.addmm(gates, u[:count], self.recurrent), s[:count])
            spelled.append(u)
            previous = letters[:, position]
        expected = torch.cat([letters[:n, position] for position, n in enumerate(counts)])
        return self.letter_loss(torch.cat(spelled), expected) / len(targets)

    def _letter_loss(self, states, expected):
        logits = self.output(states)
        return torch.nn.functional.cross_entropy(logits, expected - END, reduction="sum")


def _cell(gates, s):
    i, f, g, o = gates.chunk(4, dim=1)
    s = torch.sigmoid(f) * s + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(s), s


def _turned(params):
    return {**params, "weights": params["weights"].T}


def torch_step(model, params, tables, batch, autocast=False):
    """Returns build(through) -> a function that does one step and returns its loss a token.

    With `autocast`, products are in bfloat16.
    """

    def build(through):
        if isinstance(model.embedding, CharCNN):
            embedding = DistinctWords(params["embedding"], tables["embedding"], through)
        else:
            embedding = pytorch.embedding(params["embedding"])
        core = pytorch.recurrent(type(model.core).__name__, params["core"])
        if isinstance(model.head, CharLSTM):
            loss = Speller(params["head"], tables["head"], through)
        else:
            loss = pytorch.SoftmaxLoss(params["head"], through)
        optimizer = pytorch.sgd(LEARNING_RATE)
        return pytorch.language_model_step(embedding, core, loss, optimizer, CLIP, batch, autocast)

    return build


def training(compute: str) -> Training:
    """Returns the optimiser of the steps, with products in float32 or bfloat16."""
    return Training(optimizer=SGD(LEARNING_RATE), clip=CLIP, compute=compute)


def whole_steps(name, lexicon, data):
    """Returns the sides of one of `MODELS`."""
    model = MODELS[name]
    params, tables = model.init(jax.random.key(0), lexicon), model.tables(lexicon)
    zoo = steps.step_of(model, lexicon, data, training("float32"))
    return {**pytorch.eager_and_compiled(torch_step(model, params, tables, data)), pytorch.ZOO: zoo}


def sides(name, length=LENGTH, blocks=()):
    """Returns the sides of one of `MODELS`, or of a CNN softmax beside a softmax, on words by the
    law of Zipf; zoo's also with blocks of so many spellings."""
    lexicon, text, _ = zipf(np.random.default_rng(0), length + 1)
    data = steps.batch_of(text.astype(np.int32))
    model = MODELS.get(name, LanguageModel(Lookup(SIZE), LSTM(SIZE), CNNSoftmax()))
    zoo = functools.partial(steps.step_of, lexicon=lexicon, data=data, training=training("float32"))
    if name in MODELS:
        step_sides = whole_steps(name, lexicon, data)
    else:
        softmax = dataclasses.replace(model, head=Softmax())
        step_sides = {"zoo": zoo(model), "zoo, softmax": zoo(softmax)}
    for block in blocks:
        step_sides[f"zoo, blocks of {block}"] = timing.traced_with(
            zoo(model), row_blocks, BLOCK=block
        )
    return step_sides


def main():
    """Prints a table a model."""
    parser = timing.parser(__doc__, rounds=15)
    parser.add_argument("--only", choices=MODELS, help="one of the models; default: all")
    options, device = pytorch.begin(parser)
    lexicon, text, source = batch_of_words(np.random.default_rng(0), LENGTH + 1)
    data = steps.batch_of(text.astype(np.int32))
    words = data.inputs.words
    source += f", {len(np.unique(words))} distinct words, V = {len(lexicon):,}"
    print(f"B = {len(words)}, T = {LENGTH} {source}; {device}")
    for name in [options.only] if options.only else MODELS:
        step_sides = whole_steps(name, lexicon, data)
        pytorch.compare(f"a training step, {name}", step_sides, options.rounds)


if __name__ == "__main__":
    main()
