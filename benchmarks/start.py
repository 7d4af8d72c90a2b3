"""Seconds and peak memory from the command to the end of the first step, against PyTorch.

The zoo's side is `python train.py --config ptb_softmax` with two layers: once with an empty cache
of compiled programs ("cold"), then with the cache that this has filled. PyTorch's is a script of
the same work, this file with --pytorch: it reads the same texts, makes the lexicon, numbers the
words, and makes a step of the same model, eagerly, with dropout, clipping of the gradient's norm
and SGD. It writes no run folder, metrics or checkpoints. All are processes of their own, in turns,
with their files in the system's cache. Both sides compute on the CPU, also where there is a GPU.

    pip install torch==2.13.0
    ZOO_DATA=... taskset -c 0 python -m benchmarks.start
"""

import collections
import os
import statistics
import sys
import tempfile

from benchmarks import timing

BATCH, LENGTH, SIZE, LAYERS, LEARNING_RATE, CLIP, DROPOUT = 20, 35, 256, 2, 20.0, 0.25, 0.2
FIRST = "first step"


def pytorch(train: str, validation: str):
    """Trains the model of `ptb_softmax` for a step in PyTorch."""
    import torch

    read = []
    for path in (train, validation):
        with open(path, encoding="utf-8") as file:
            read.append([*map(sys.intern, file.read().replace("\n", " </s> ").split())])
    words = [word for word, _ in collections.Counter(read[0]).most_common()]
    ids = {word: number for number, word in enumerate(words)}
    text, _ = (torch.tensor([ids[word] for word in words]) for words in read)
    rows = text[: len(text) // BATCH * BATCH].view(BATCH, -1).t().contiguous()
    del read, text, ids

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(len(words), SIZE)
            self.core = torch.nn.LSTM(SIZE, SIZE, LAYERS, dropout=DROPOUT)
            self.head = torch.nn.Linear(SIZE, len(words))
            self.dropout = torch.nn.Dropout(DROPOUT)

        def forward(self, words, carry):
            hidden, carry = self.core(self.dropout(self.embedding(words)), carry)
            return self.head(self.dropout(hidden)), carry

    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE)
    carry = (torch.zeros(LAYERS, BATCH, SIZE), torch.zeros(LAYERS, BATCH, SIZE))
    logits, _ = model(rows[:LENGTH], carry)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[1 : LENGTH + 1].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    print(f"{FIRST}: {loss.item():.4f}", flush=True)


def texts() -> list[str]:
    """Returns the paths of the training and the validation text."""
    folder = os.environ.get("ZOO_DATA")
    if not folder:
        sys.exit("ZOO_DATA is not set: set it to the folder that has ptb/ptb.train.txt")
    return [f"{folder}/ptb/ptb.{split}.txt" for split in ("train", "valid")]


def measure(command: list[str], **environment: str) -> tuple[float, float, int]:
    """Measures a command until its first step: seconds by the clock and of the CPU, and bytes."""
    elapsed, usage = timing.run_process(command, FIRST, **environment)
    return elapsed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    """Prints a table of medians."""
    parser = timing.parser(__doc__, rounds=5)
    parser.add_argument("--pytorch", nargs=2, metavar="TEXT", help="is PyTorch's side")
    options = parser.parse_args()
    if options.pytorch:
        pytorch(*options.pytorch)
        return
    pytorch_command = [sys.executable, "-m", "benchmarks.start", "--pytorch", *texts()]
    figures = collections.defaultdict(list)
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("zoo, cold", "zoo"):
                command = [sys.executable, "-u", "train.py", "--config", "ptb_softmax"]
                command += [f"{folder}/run {name}", "--set", f"model.core.layers={LAYERS}"]
                figures[name].append(measure(command, XDG_CACHE_HOME=f"{folder}/cache"))
        figures["PyTorch"].append(measure(pytorch_command))
    kinds = ("by the clock", "ms"), ("of CPU time", "ms"), ("peak memory", "MB")
    for index, (title, unit) in enumerate(kinds):
        medians = {
            name: statistics.median(row[index] for row in rows) for name, rows in figures.items()
        }
        timing.print_table(f"command to first step, on the CPU, {title}", medians, "PyTorch", unit)


if __name__ == "__main__":
    main()
