"""A training step with 1,024 noise words, at vocabularies from ten thousand to a million.

Forward, backward, clipping and Adagrad for an LSTM language model: one layer of 256, embedding
256, B = 32, T = 32, importance sampling with 1,024 shared noise words, row-sparse updates of the
tables. At V = 10,000 and 100,000 it is compared with the exact softmax and the dense optimiser.

    python -m benchmarks.sampled_step
"""

from benchmarks import steps, timing
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import ImportanceSampling, Softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adagrad

BATCH, LENGTH, SIZE, SAMPLES, CLIP = 32, 32, 256, 1_024, 1.0
SAMPLED, EXACT = (10_000, 100_000, 1_000_000), (10_000, 100_000)
ADAGRAD = Adagrad(0.1)


def one_step(head, vocabulary, row_sparse):
    """Returns a function that does one step, see `steps.one_step`."""
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE), head)
    return steps.one_step(model, ADAGRAD, CLIP, vocabulary, BATCH, LENGTH, row_sparse)


def main():
    """Prints a table."""
    rounds = timing.parser(__doc__, rounds=9).parse_args().rounds
    sampled = ImportanceSampling(samples=SAMPLES)
    sides = {f"sampled, V = {v:,}": one_step(sampled, v, row_sparse=True) for v in SAMPLED}
    sides |= {f"exact, V = {v:,}": one_step(Softmax(), v, row_sparse=False) for v in EXACT}
    title = f"a training step, B = {BATCH}, T = {LENGTH}, D = {SIZE}, K = {SAMPLES:,}"
    timing.compare(title, sides, rounds, f"sampled, V = {SAMPLED[0]:,}")


if __name__ == "__main__":
    main()
