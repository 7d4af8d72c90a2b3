"""Memory and tokens a second of training on memory-mapped text of 100 million tokens.

Words are drawn from a Zipf distribution over 50,000 types, in sentences of about 20. The text is
written and encoded once, into a given folder. Batches of batch rows alone, and steps of a small
model (LSTM 128, 1,024 noise words), are timed from all of it, from their first million tokens, and
from the same million in memory, each in its own process.

    python -m benchmarks.mapped_text FOLDER [--tokens 100000000]

With `--readers`, times what reads and counts texts whole: five-grams with Kneser-Ney smoothing of a
text and of 2, 4 and 10 copies of it, each with its words exchanged at random, so that n-grams do
not recur; a treebank once, and 2 and 4 times in one file; and with "drawn", texts of 25, 50 and 100
MB drawn as above, read into memory, counted and encoded. CPU time, each in its own process.

    python -m benchmarks.mapped_text FOLDER --readers ptb/ptb.train.txt ud_french/fr-ud-train.conllu
    python -m benchmarks.mapped_text FOLDER --readers drawn
"""

import dataclasses
import pathlib
import resource
import subprocess
import sys
import time

import jax
import numpy as np

from benchmarks import timing
from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Conllu, Text, Vocabulary
from zoo.data.vocabulary import encode
from zoo.embeddings import Lookup
from zoo.heads import ImportanceSampling
from zoo.lab.commands import program
from zoo.lab.runs.seen_texts import Texts
from zoo.lab.training import tasks
from zoo.lab.training.loop import Trainer
from zoo.lab.training.step import train_step
from zoo.models import LanguageModel
from zoo.optimizers import Adagrad
from zoo.priors import KneserNey
from zoo.sources import files

TYPES, BATCH, LENGTH = 50_000, 64, 20
IN_MEMORY = 50_000  # sentences
SYNTHETIC = "drawn"


def generate(path, tokens):
    """Writes the text, a block of sentences at a time."""
    random = np.random.default_rng(0)
    shares = 1 / np.arange(1, TYPES + 1)
    shares /= shares.sum()
    words = np.array([f"w{number}" for number in range(TYPES)])
    with open(path, "w", encoding="utf-8") as file:
        token_count = 0
        while token_count < tokens:
            block = words[random.choice(TYPES, 1_000_000, p=shares)].tolist()
            ends = np.cumsum(random.integers(10, 31, 40_000))
            start = 0
            for end in ends[ends < len(block)].tolist():
                file.write(" ".join(block[start:end]) + "\n")
                start = end
            token_count += start


def measure(train, validation, steps):
    """Returns seconds of preparation, tokens a second, and memory."""
    head = ImportanceSampling(samples=1024)
    recipe = Experiment(
        data=Text(train=train, validation=validation),
        vocabulary=Vocabulary(minimum_count=3),
        model=LanguageModel(Lookup(size=128), LSTM(size=128), head),
        training=Training(
            batch=BATCH, length=LENGTH, optimizer=Adagrad(learning_rate=0.2), row_sparse=True
        ),
        evaluation=Evaluation(batch=32, length=20),
    )
    start = time.perf_counter()
    task = tasks.prepare(recipe, 1)
    figures = {"tokens": len(task.text.words), "prepared": time.perf_counter() - start}
    start = time.perf_counter()
    Texts.from_text("train", task.corpora["train"].sentences)
    figures["hashes of sentences"] = time.perf_counter() - start
    batches = task.epoch(0)
    start = time.perf_counter()
    for index in range(2000):
        task.part(batches, index * (len(batches) - 1) // 2000)
    figures["batches: tokens a second"] = 2000 * BATCH * LENGTH / (time.perf_counter() - start)
    trainer = Trainer(task, recipe.training, pathlib.Path("unused"), 1, log=lambda line: None)
    figures["steps: tokens a second"] = _steps(trainer, batches, steps)
    figures["memory, GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return figures


def _steps(trainer, batches, steps):
    """Measures the tokens a second of the trainer's step, including making the batches."""
    devices, task = trainer.devices, trainer.task
    step = devices.compile(
        train_step,
        loss=task.loss,
        optimizer=trainer.optimizer,
        usual_weight=task.usual_weight,
    )
    tables = devices.place(task.tables)
    key = devices.place(jax.random.key_data(jax.random.key(0)))
    state = devices.copy_state(trainer.initial_state())
    start = 0.0
    for number in range(steps + 3):
        if number == 3:  # compiled, and warm
            jax.block_until_ready(state)
            start = time.perf_counter()
        state, _ = step(state, tables, devices.split(task.part(batches, number)), key)
    jax.block_until_ready(state)
    return steps * BATCH * LENGTH / (time.perf_counter() - start)


def read_or_count(path, copies, folder):
    """Prints the CPU time and memory of reading a text or treebank, or of counting n-grams."""
    program.keep_memory()
    is_treebank = path.endswith(".conllu")
    larger, texts = folder / "copies.conllu", [str(folder / "drawn.txt"), str(folder / "few.txt")]
    vocabulary = Vocabulary(minimum_count=3)
    if path == SYNTHETIC:
        vocabulary.build(Text(texts[1], texts[1]))
    elif is_treebank:
        with open(larger, "w", encoding="utf-8") as file:
            for _ in range(copies):
                file.write(files.read(path)[1])
    else:
        lexicon, corpora = Vocabulary().build(Text(path, path))
        text = encode(lexicon, corpora["train"].sentences)
        random, exchanged = np.random.default_rng(0), np.arange(len(lexicon))
        word_ids = np.delete(exchanged, lexicon.boundary_id)
        words = [text.words]
        for _ in range(copies - 1):
            exchanged[word_ids] = random.permutation(word_ids)
            words.append(exchanged[text.words].astype(np.int32))
        text = dataclasses.replace(text, words=np.concatenate(words))
        KneserNey(order=2).prepare(lexicon, {"train": encode(lexicon, [["the"]])})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    start = time.process_time()
    if path == SYNTHETIC:
        lexicon, corpora = vocabulary.build(Text(*texts))
        tokens = len(vocabulary.encode(corpora["train"], lexicon).words)
    elif is_treebank:
        tokens = sum(map(len, Conllu(str(larger), str(larger)).read("train").sentences))
    else:
        tokens = len(text.words)
        KneserNey(order=5).prepare(lexicon, {"train": text})
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3 - before
    rate = f"{tokens / seconds:,.0f} a second"
    print(f"{path} x {copies}: {tokens:,} tokens, {seconds:.2f} s, {rate}, {memory:.0f} MB more")


def main():
    """Writes and encodes the text if it does not exist, and prints the measurements."""
    parser = timing.parser(__doc__, tokens=100_000_000, steps=300)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--readers", nargs="+", help="texts and treebanks to read and count")
    arguments = parser.parse_args()
    folder = arguments.folder
    if arguments.readers:
        folder.mkdir(parents=True, exist_ok=True)
        for path in arguments.readers:
            is_read = path == SYNTHETIC or path.endswith(".conllu")
            for copies in (1, 2, 4) if is_read else (1, 2, 4, 10):
                if path == SYNTHETIC:
                    generate(folder / "few.txt", 1000)
                    generate(folder / "drawn.txt", copies * 5_000_000)
                timing.in_own_process(read_or_count, path, copies, folder)
        return
    text, encoded, beginning = (folder / name for name in ("text.txt", "encoded", "beginning.txt"))
    if not encoded.exists():
        folder.mkdir(parents=True, exist_ok=True)
        generate(text, arguments.tokens)
        generate(folder / "validation.txt", 10_000)
        start = time.perf_counter()
        command = [sys.executable, "-m", "zoo", "encode", str(text), "--output", str(encoded)]
        subprocess.run(command, check=True)
        print(f"encoded in {time.perf_counter() - start:.0f} s")
        print(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6:.2f} GB for that")
    with open(text, encoding="utf-8") as lines:  # a text is read whole, whatever its range
        beginning.write_text("".join(next(lines) for _ in range(IN_MEMORY)))
    validation = str(folder / "validation.txt")
    for train in (f"{encoded}", f"{encoded}[:{IN_MEMORY}]", str(beginning)):
        print(train, timing.in_own_process(measure, train, validation, arguments.steps))


if __name__ == "__main__":
    main()
