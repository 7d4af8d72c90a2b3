"""The adaptive softmax against the exact one at V = 100,000: a whole training step.

Forward, backward, clipping and SGD for one LSTM layer of 256 on words drawn by Zipf's law, B = 32,
T = 35; cutoffs 2,000, 10,000 and 40,000, with vectors four times smaller from tail to tail.

    python -m benchmarks.adaptive
"""

from benchmarks import steps, timing
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import AdaptiveSoftmax, Softmax
from zoo.models import LanguageModel
from zoo.optimizers import SGD

BATCH, LENGTH, SIZE, VOCABULARY, CLIP = 32, 35, 256, 100_000, 1.0
HEADS = {"exact": Softmax(), "adaptive": AdaptiveSoftmax(cutoffs=(2_000, 10_000, 40_000))}


def main():
    """Prints a table."""
    rounds = timing.parser(__doc__, rounds=9).parse_args().rounds
    sides = {}
    for name, head in HEADS.items():
        model = LanguageModel(Lookup(SIZE), LSTM(SIZE), head)
        sides[name] = steps.one_step(model, SGD(1.0), CLIP, VOCABULARY, BATCH, LENGTH)
    title = f"a training step, B = {BATCH}, T = {LENGTH}, D = {SIZE}, V = {VOCABULARY:,}"
    timing.compare(title, sides, rounds, "exact")


if __name__ == "__main__":
    main()
