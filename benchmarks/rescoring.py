"""Hypotheses a second: n-best lists as prefix trees, in batch rows, in padded batches, and one by
one.

Real lists are scored by an LSTM of 2 x 256 cells with a softmax over the words of the lists, with
random parameters. Padded batches have 32 hypotheses of similar length, rounded up to a multiple of
8; in batch rows, each row is filled with one hypothesis after the other. All sides compute the same
scores.

    python -m benchmarks.rescoring dev/nbest.txt
"""

import argparse
import functools
import itertools

import jax
import numpy as np

from benchmarks import timing
from zoo.cores import LSTM
from zoo.data import Corpus, Vocabulary
from zoo.data.batches import Batches
from zoo.embeddings import Lookup
from zoo.evaluation import perplexity, prefix_sharing
from zoo.evaluation.perplexity import PRECISION
from zoo.heads import Softmax
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel
from zoo.sources import nbest

BOUNDARY, UNKNOWN, SIZE, ROWS = "</s>", "<unk>", 256, 32


def read(path, lists, words):
    """Reads the first lists: returns (their hypotheses as text, a lexicon of their words)."""
    found = itertools.islice(nbest.read_lists(path)[1], lists)
    sentences = [one.words for of_list in found for one in of_list.hypotheses]
    known = dict.fromkeys((BOUNDARY, UNKNOWN, *itertools.chain.from_iterable(sentences)))
    spelled = [*known, *(f"{number}" for number in range(max(0, words - len(known))))]
    lexicon = Lexicon(
        tuple(spelled), np.ones(len(spelled), np.int64), unknown=UNKNOWN, boundary=BOUNDARY
    )
    return Vocabulary().encode(Corpus(path, sentences), lexicon), lexicon


def padded(model, params, tables, text, rows, boundary):
    """Scores hypotheses in padded batches of `rows` with similar lengths; returns their log p."""
    lengths = text.lengths
    order = np.argsort(lengths, kind="stable")
    sums = np.zeros(len(order))
    prepared = model.prepared(params, tables)
    score = perplexity.compiled_score_step(model)
    with jax.default_matmul_precision(PRECISION):
        for first in range(0, len(order), rows):
            chosen = order[first : first + rows]
            size = -(-int(lengths[chosen].max()) // 8) * 8
            targets = np.full((rows, size), boundary, np.int32)
            for row, sentence in enumerate(chosen):
                start = text.starts[sentence]
                targets[row, : lengths[sentence]] = text.words[start : start + lengths[sentence]]
            words = np.pad(targets[:, :-1], ((0, 0), (1, 0)), constant_values=boundary)
            reset = np.zeros(words.shape, bool)
            carry = model.initial_carry(rows)
            (log_prob, _), _ = score(params, tables, prepared, words, targets, reset, carry)
            inside = np.arange(size)[None] < lengths[chosen][:, None]
            sums[chosen] = np.where(inside, np.asarray(log_prob)[: len(chosen)], 0).sum(axis=1)
    return sums


def main():
    """Prints a table, and hypotheses a second."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lists", help="n-best lists of Moses or Joshua")
    parser.add_argument("--count", type=int, default=20, help="lists")
    parser.add_argument("--words", type=int, default=10_000, help="V at least")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    text, lexicon = read(chosen.lists, chosen.count, chosen.words)
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE, layers=2), Softmax())
    params = model.init(jax.random.key(0), lexicon)
    tables, boundary = model.evaluation_tables(lexicon), lexicon.boundary_id
    given = model, params, tables, text

    def summed(log_prob):
        return np.add.reduceat(log_prob.astype(np.float64), text.starts)

    def batch_rows():
        laid = Batches(text, 32, 32, "sentences", boundary)
        return summed(perplexity.score(*given, laid).log_prob)

    sides = {
        "a tree of prefixes": lambda: summed(prefix_sharing.score(*given, boundary)),
        "batch_rows": batch_rows,
        "padded batches": functools.partial(padded, *given, ROWS, boundary),
        "one after the other": functools.partial(padded, *given, 1, boundary),
    }
    expected, *others = [side() for side in sides.values()]
    for other in others:
        np.testing.assert_allclose(other, expected, rtol=1e-5)
    times = timing.medians(sides, chosen.rounds)
    tokens = int(text.lengths.sum())
    title = f"{len(text.starts):,} hypotheses, {tokens:,} tokens, V = {len(lexicon):,}, 2 x {SIZE}"
    timing.print_table(title, times, "a tree of prefixes")
    for name, seconds in times.items():
        print(f"  {name}: {len(text.starts) / seconds:,.0f} hypotheses a second")


if __name__ == "__main__":
    main()
