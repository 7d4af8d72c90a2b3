"""How time and memory grow with the vocabulary and with the size of a text.

Steps: a training step of the softmax, of the adaptive softmax and of importance sampling (LSTM-256,
B = 8, T = 16, words by Zipf's law, SGD; updates by rows where the head has them) over 10,000 to
1,000,000 words.

Commands: `train` (one epoch), `evaluate`, `score`, `rescore apply`, `compare` and a page of it, on
texts and lists of n, 2n and 4n words drawn from the lexicon of `models/english`. Each is a process
of its own; its CPU time and its peak memory are measured. The exponent leaves out the constant time
of the start: it is log2 of the time that the second doubling adds over the time that the first
adds, and 1 where time is proportional to n.

    taskset -c 0 python -m benchmarks.growth
"""

import json
import math
import pathlib
import shutil
import sys
import tempfile

import numpy as np

from benchmarks import steps, timing
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import AdaptiveSoftmax, ImportanceSampling, Softmax
from zoo.lab.commands import program
from zoo.lab.runs.workdir import Workdir
from zoo.models import LanguageModel
from zoo.optimizers import SGD

MODEL = timing.ROOT / "models/english"
VOCABULARIES = 10_000, 100_000, 400_000, 1_000_000
SIZE, BATCH, LENGTH = 256, 8, 16
HEADS = {
    "softmax": Softmax(),
    "adaptive softmax": AdaptiveSoftmax(cutoffs=(2_000, 8_000)),
    "importance sampling": ImportanceSampling(samples=1_024),
}
SENTENCE, LIST = 20, 50  # words of a sentence, hypotheses of a list
SIZES = 1, 2, 4


def time_steps(vocabularies, rounds):
    """Prints milliseconds of a step for each head and number of words."""
    print(f"{'ms a step':22}" + "".join(f"{f'V = {v:,}':>15}" for v in vocabularies) + "  exponent")
    for name, head in HEADS.items():
        model, times = LanguageModel(Lookup(SIZE), LSTM(SIZE), head), []
        for words in vocabularies:
            run = steps.one_step(model, SGD(1.0), 1.0, words, BATCH, LENGTH)
            times.append(timing.medians({name: run}, rounds)[name])
            del run
        exponent = math.log(times[-1] / times[0]) / math.log(vocabularies[-1] / vocabularies[0])
        print(f"{name:22}" + "".join(f"{1e3 * t:15,.1f}" for t in times) + f"  {exponent:8.2f}")


def write_inputs(folder: pathlib.Path, words: list[str], tokens: int):
    """Writes text.txt, validation.txt, lists.nbest and weights.json, of so many words."""
    random = np.random.default_rng(tokens)
    ranks = np.exp(random.uniform(0, np.log(len(words)), tokens)).astype(int) - 1
    sentences = [
        " ".join(words[rank] for rank in ranks[begin : begin + SENTENCE])
        for begin in range(0, tokens, SENTENCE)
    ]
    (folder / "text.txt").write_text("\n".join(sentences) + "\n")
    (folder / "validation.txt").write_text("\n".join(sentences[:100]) + "\n")
    rows = (
        f"{number // LIST} ||| {sentence} ||| score= {-number % LIST} ||| {-number % LIST}"
        for number, sentence in enumerate(sentences)
    )
    (folder / "lists.nbest").write_text("\n".join(rows) + "\n")
    weights = {"weights": {"score": 1.0, "one": 1.0}}
    (folder / "weights.json").write_text(json.dumps(weights))


def measured(command: list) -> tuple[float, float]:
    """Runs a command; returns its seconds of CPU time and its largest memory, MB."""
    _, usage = timing.run_process([sys.executable, "-m", "zoo", *map(str, command)])
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def commands(folder: pathlib.Path, models: list[pathlib.Path]) -> dict[str, list]:
    """Returns {name: command} for the inputs in a folder; `models` are two of one lexicon."""
    text, lists, (model, copy) = folder / "text.txt", folder / "lists.nbest", models
    recipe = {
        "data.train": text,
        "data.validation": folder / "validation.txt",
        "data.tests": (str(text),),
        "vocabulary.maximum_size": 3_000,  # which all sizes have
        "model.embedding.size": 64,
        "model.core.size": 64,
        "training.epochs": 1,
    }
    return {
        "train": [
            *("train", "--config", "own_text", folder / "run"),
            *(word for field, value in recipe.items() for word in ("--set", f"{field}={value}")),
        ],
        "evaluate --data": ["evaluate", model, "--data", text],
        "score": ["score", model, text, "--output", folder / "scores.tsv"],
        "score --words": ["score", model, text, "--words", "--output", folder / "words.tsv"],
        "rescore apply": [
            *("rescore", "apply", lists, folder / "weights.json"),
            *("--run", model, "--output", folder / "best.nbest"),
        ],
        "compare --data": ["compare", model, copy, "--data", text],
        "compare --page": ["compare", model, copy, "--text", text, "--page", folder / "page.html"],
    }


def measure_commands(tokens: int):
    """Prints seconds and megabytes of each command on n, 2n and 4n words, and exponents."""
    words = [word for word in Workdir(MODEL).lexicon().words if not word.startswith("<")]
    with tempfile.TemporaryDirectory() as place:
        models = [pathlib.Path(place) / name for name in ("one", "other")]
        for model in models:
            shutil.copytree(MODEL, model)
        usage_by_command: dict[str, list[tuple[float, float]]] = {}
        for times in SIZES:
            folder = pathlib.Path(place) / f"{times}"
            folder.mkdir()
            write_inputs(folder, words, times * tokens)
            for name, command in commands(folder, models).items():
                measured(command)  # its programs are compiled, and kept for the next time
                shutil.rmtree(folder / "run", ignore_errors=True)
                usage_by_command.setdefault(name, []).append(measured(command))
    sizes = "".join(f"{f'{times * tokens:,}':>12}" for times in SIZES)
    print(f"{'CPU seconds, MB; words':24}{sizes}  exponent   {sizes}")
    for name, values in usage_by_command.items():
        seconds, memory = zip(*values, strict=True)
        first, second = seconds[1] - seconds[0], seconds[2] - seconds[1]
        exponent = math.log2(second / first) if min(first, second) > 0 else math.nan
        row = "".join(f"{s:12.2f}" for s in seconds) + f"  {exponent:8.2f}   "
        print(f"{name:24}{row}" + "".join(f"{m:12,.0f}" for m in memory))


def main():
    """Prints both tables."""
    parser = timing.parser(__doc__, rounds=5, tokens=50_000)
    parser.add_argument("--vocabularies", type=int, nargs="+", default=VOCABULARIES)
    options = parser.parse_args()
    program.keep_memory()
    measure_commands(options.tokens)
    time_steps(options.vocabularies, options.rounds)


if __name__ == "__main__":
    main()
