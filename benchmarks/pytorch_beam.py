"""Beam search in sentences a second, against a batched beam in PyTorch.

The model, the sentences and the beam of 12 are the ones of `benchmarks.beam_search`. PyTorch's beam
holds all hypotheses of a batch of sentences, sorted by length, in one batch: the best words of each
row by one top-k of the logits, states and words reordered by one gather, sentences dropped as soon
as no open hypothesis can win. Both sides find the same words.

    pip install torch==2.13.0
    python -m benchmarks.pytorch_beam [--beam 200 --sentences 4]
"""

import collections
import functools
from unittest import mock

import jax
import numpy as np
import torch

from benchmarks import beam_search, pytorch, timing
from benchmarks.beam_search import AFTER, BATCH, BEAM, BEFORE, BOUNDARY, LAYERS, SIZE, VOCABULARY
from zoo.decoding import BeamSearch, beam
from zoo.decoding.batched_search import LONGEST_EXTRA, LONGEST_RATIO, translate
from zoo.lab.training import product_counts

SENTENCES, LONGEST = (32, 96, 100), beam_search.LONGEST


class Translator:
    """The model's step in PyTorch."""

    def __init__(self, params, beam, through):
        """Copies zoo's parameters; `through` compiles, or not."""
        self.beam = beam
        self.embedding = pytorch.embedding(params["embedding"])
        self.core = pytorch.recurrent("LSTM", params["core"])
        self.head = pytorch.linear(params["head"])
        self.best_words, self.rows = through(self._best_words), 0

    def step(self, words, carry, remaining):
        """Computes the best words after each row, and the end's log p.

        Args:
          words: [rows].
          carry: (h, c), [layers, rows, D] each.
          remaining: words before the sentence's end, [rows].

        Returns:
          (log p of the `beam` best words but the end, falling; the words; log p of the end; carry).
        """
        self.rows += len(words)
        hidden, carry = self.core(self.embedding(words[:, None]), carry)
        return *self.best_words(hidden[:, 0], remaining), carry

    def _best_words(self, hidden, remaining):
        logits = self.head(hidden)
        log_z = logits.logsumexp(dim=1)
        end = torch.where(remaining > 0, BEFORE, AFTER)
        model_end = logits[:, BOUNDARY] - log_z
        log_scale = torch.log1p(-end.exp()) - torch.log1p(-model_end.exp()) - log_z
        logits[:, BOUNDARY] = -torch.inf
        values, words = logits.topk(self.beam, dim=1)
        return values + log_scale[:, None], words, end


@torch.inference_mode()
def search(translator, lengths):
    """Searches sentences side by side; returns the words of the best hypothesis of each.

    Args:
      translator: the step.
      lengths: of the sources.
    """
    translations: list = [None] * len(lengths)
    best = torch.full((len(lengths),), -torch.inf)
    remaining = torch.tensor(lengths)
    limits = torch.clamp((LONGEST_RATIO * remaining + LONGEST_EXTRA).floor(), max=LONGEST)
    numbers = torch.arange(len(lengths))
    scores = torch.zeros(len(lengths), 1)  # [sentences, open hypotheses]
    words = torch.full((len(lengths), 1, 1), BOUNDARY)
    carry = torch.zeros(2, LAYERS, len(lengths), SIZE).unbind()
    beam, length = translator.beam, 0
    while len(numbers):
        sentences, width = scores.shape
        length += 1
        values, following, end, carry = translator.step(
            words[:, :, -1].flatten(), carry, (remaining - length + 1).repeat_interleave(width)
        )
        longer = (scores[:, :, None] + values.view(sentences, width, -1)).flatten(1)
        longer, chosen = longer.topk(beam, dim=1)
        ends = scores + end.view(sentences, width)
        # At most one end a hypothesis, among the best continuations of the sentence.
        ahead = torch.cat([longer, ends], dim=1).topk(beam, dim=1).values[:, -1:]
        end, ending = ends.masked_fill(ends < ahead, -torch.inf).max(dim=1)
        for row in (end > best).nonzero().flatten().tolist():
            translations[numbers[row]] = words[row, ending[row], 1:]
        best = torch.maximum(best, end)
        parents = chosen // beam
        rows = torch.arange(sentences)[:, None]
        words = torch.cat(
            [words[rows, parents], following.view(sentences, -1).gather(1, chosen)[:, :, None]], 2
        )
        full = (length >= limits) & (longer[:, 0] > best)
        for row in full.nonzero().flatten().tolist():
            translations[numbers[row]] = words[row, 0, 1:]
        open_ = (longer[:, 0] > best) & (length < limits)
        parents = (rows * width + parents)[open_].flatten()
        carry = tuple(state[:, parents] for state in carry)
        numbers, scores, words, best, remaining, limits = (
            array[open_] for array in (numbers, longer, words, best, remaining, limits)
        )
    return [words.tolist() for words in translations]


def torch_side(params, lengths, batch, beam, through):
    """Returns a function that searches all sentences, in batches sorted by length."""
    translator, order = Translator(params, beam, through), np.argsort(lengths, kind="stable")

    def run():
        translations, translator.rows = [None] * len(lengths), 0
        for first in range(0, len(order), batch):
            chosen = order[first : first + batch]
            for sentence, words in zip(chosen, search(translator, lengths[chosen]), strict=True):
                translations[sentence] = words
        return translations

    run.translator = translator
    return run


def sides(count, batch=BATCH, rows=None, width=BEAM):
    """Returns sides that search `count` sentences, PyTorch in batches of `batch`.

    With `rows`, another side of zoo computes so many rows of hypotheses at a time.
    """
    params, start = beam_search.starting()
    lengths = np.random.default_rng(0).integers(4, 24, size=count)
    sources, settings = [[1] * length for length in lengths], BeamSearch(width, longest=LONGEST)

    def zoo():
        translations = translate(start, sources, settings, boundary=BOUNDARY, batch=BATCH)
        return [hypotheses[0].words for hypotheses in translations]

    # A function of its own: one that jit knows would not be traced again.
    search = jax.jit(
        functools.partial(beam._search.__wrapped__), static_argnames=("settings", "boundary")
    )

    def with_rows():
        with mock.patch.multiple(beam, ROWS=rows, _search=search):
            return zoo()

    build = functools.partial(torch_side, params, lengths, batch, width)
    opponents = pytorch.eager_and_compiled(build)

    def count_products():
        """Counts the products of all hypotheses that PyTorch extends, `beam.ROWS` at a time."""
        step, carry = start(np.zeros(beam.ROWS), np.ones(beam.ROWS))
        counts = product_counts.count_products(step, np.zeros(beam.ROWS, np.int32), carry)
        calls = opponents[pytorch.EAGER].translator.rows / beam.ROWS
        return collections.Counter({product: n * calls for product, n in counts.items()})

    zoo.products = count_products
    zoo_sides = {pytorch.ZOO: zoo} | ({f"zoo, {rows} rows": with_rows} if rows else {})
    return {**opponents, **zoo_sides}


def equal_words(words, target):
    """Raises AssertionError unless the words of all sentences are equal."""
    different = [number for number, (a, b) in enumerate(zip(words, target, strict=True)) if a != b]
    assert not different, f"sentences {different} have other words"


def main():
    """Prints a table a number of sentences."""
    parser = timing.parser(__doc__, rounds=9, batch=BATCH, beam=BEAM)
    parser.add_argument("--sentences", type=int, nargs="*", default=SENTENCES)
    options, device = pytorch.begin(parser)
    for count in options.sentences:
        pytorch.compare(
            f"beam of {options.beam}, {count} sentences, V = {VOCABULARY:,}, "
            f"LSTM {LAYERS} x {SIZE}, batches of {options.batch}, {device}",
            sides(count, options.batch, width=options.beam),
            options.rounds,
            equal=equal_words,
        )


if __name__ == "__main__":
    main()
