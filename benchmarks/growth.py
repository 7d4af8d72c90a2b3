"""How the time of a training step grows with the vocabulary.

The softmax, the adaptive softmax and importance sampling (LSTM-256, B = 8, T = 16, words by Zipf's
law, SGD; updates by rows where the head has them) over 10,000 to 1,000,000 words.

    taskset -c 0 python -m benchmarks.growth
"""

import math

from benchmarks import steps, timing
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.experiment import Training
from zoo.heads import AdaptiveSoftmax, ImportanceSampling, Softmax
from zoo.lab.commands import program
from zoo.models import LanguageModel
from zoo.optimizers import SGD

VOCABULARIES = 10_000, 100_000, 400_000, 1_000_000
SIZE, BATCH, LENGTH = 256, 8, 16
TRAINING = Training(batch=BATCH, length=LENGTH, optimizer=SGD(1.0), clip=1.0)
HEADS = {
    "softmax": Softmax(),
    "adaptive softmax": AdaptiveSoftmax(cutoffs=(2_000, 8_000)),
    "importance sampling": ImportanceSampling(samples=1_024),
}


def time_steps(vocabularies, rounds):
    """Prints milliseconds of a step for each head and number of words."""
    print(f"{'ms a step':22}" + "".join(f"{f'V = {v:,}':>15}" for v in vocabularies) + "  exponent")
    for name, head in HEADS.items():
        model, times = LanguageModel(Lookup(SIZE), LSTM(SIZE), head), []
        for words in vocabularies:
            run = steps.zipf_step(model, steps.zipf_lexicon(words), TRAINING)
            times.append(timing.medians({name: run}, rounds)[name])
            del run
        exponent = math.log(times[-1] / times[0]) / math.log(vocabularies[-1] / vocabularies[0])
        print(f"{name:22}" + "".join(f"{1e3 * t:15,.1f}" for t in times) + f"  {exponent:8.2f}")


def main():
    """Prints the table."""
    parser = timing.parser(__doc__, rounds=5)
    parser.add_argument("--vocabularies", type=int, nargs="+", default=VOCABULARIES)
    options = parser.parse_args()
    program.keep_memory()
    time_steps(options.vocabularies, options.rounds)


if __name__ == "__main__":
    main()
