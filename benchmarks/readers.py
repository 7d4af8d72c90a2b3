"""Time and memory of reading, counting and encoding texts.

Five-grams with Kneser-Ney smoothing of a text and of 2, 4 and 10 copies of it, each with its words
exchanged at random, so that n-grams do not recur, and the log p of the text under them; a treebank
once, and 2 and 4 times in one file; and with "drawn", texts of 25, 50 and 100 MB, read into memory,
counted and encoded: words by Zipf's law over 50,000 types, in sentences of about 20. CPU time, each
in its own process.

    python -m benchmarks.readers FOLDER ptb/ptb.train.txt ud_french/fr-ud-train.conllu drawn

With `--encode N`, draws N tokens, encodes them by `zoo encode`, and prints the peak memory of that
and of the first steps of `ptb_is` on all of them, and on a million of them read into memory.

    python -m benchmarks.readers FOLDER --encode 50000000
"""

import dataclasses
import pathlib
import resource
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from zoo.data import Conllu, Text, Vocabulary
from zoo.data.vocabulary import encode
from zoo.lab.commands import program
from zoo.priors import KneserNey
from zoo.sources import files

TYPES = 50_000
IN_MEMORY = 50_000  # sentences
STEPS = 300
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
        tokens, background = len(text.words), KneserNey(order=5)
        prepared = background.prepare(lexicon, {"train": text})
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3 - before
    rate = f"{tokens / seconds:,.0f} a second"
    print(f"{path} x {copies}: {tokens:,} tokens, {seconds:.2f} s, {rate}, {memory:.0f} MB more")
    if path != SYNTHETIC and not is_treebank:
        lexicon = dataclasses.replace(lexicon, background_tables=prepared)
        measure_log_prob(background, lexicon, text.words[None])


def measure_log_prob(background, lexicon, words):
    """Prints the seconds of loading a background, and its words a second, of words [1, T]."""
    start = time.process_time()
    tables = jax.block_until_ready(background.tables(lexicon))
    print(f"  loaded in {time.process_time() - start:.2f} s,", end=" ")

    def log_prob(tables, words):
        before = jnp.roll(words, 1, axis=1).at[:, 0].set(lexicon.boundary_id)
        contexts, _ = background.apply(tables, before, background.initial_carry(1))
        return background.log_prob(tables, contexts, words)

    seconds = timing.best_seconds(timing.compiled_side(jax.jit(log_prob), tables, words))
    print(f"log p of {words.size / seconds:,.0f} words a second")


def measure_encoding(folder, tokens):
    """Prints seconds and peak memory of encoding a drawn text, and of steps on it."""
    text, encoded, beginning = (folder / name for name in ("text.txt", "encoded", "beginning.txt"))
    generate(text, tokens)
    generate(folder / "few.txt", 10_000)
    with open(text, encoding="utf-8") as lines:
        beginning.write_text("".join(next(lines) for _ in range(IN_MEMORY)))
    _print_usage("encode", ["-m", "zoo", "encode", text, "--output", encoded])
    for train in (encoded, beginning):
        settings = {
            "data.train": train,
            "data.validation": f"{folder / 'few.txt'}[:100]",
            "data.tests": "()",
            "training.validate_every": STEPS,
        }
        overrides = [f"--set={name}={value}" for name, value in settings.items()]
        command = ["-u", "train.py", "--config", "ptb_is", folder / f"run {train.name}", *overrides]
        _print_usage(f"{STEPS} steps on {train.name}", command, until=f"step {STEPS}: ")


def _print_usage(name, command, until=None):
    _, usage = timing.run_process([sys.executable, *map(str, command)], until)
    seconds = usage.ru_utime + usage.ru_stime
    print(f"{name}: {seconds:.0f} s of CPU time, {usage.ru_maxrss / 1e6:.2f} GB", flush=True)


def main():
    """Prints the measurements."""
    parser = timing.parser(__doc__, encode=0)
    parser.add_argument("folder", type=pathlib.Path, help="for the texts that are drawn")
    parser.add_argument("texts", nargs="*", help="texts and treebanks to read and count")
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for path in options.texts:
        is_read = path == SYNTHETIC or path.endswith(".conllu")
        for copies in (1, 2, 4) if is_read else (1, 2, 4, 10):
            if path == SYNTHETIC:
                generate(folder / "few.txt", 1000)
                generate(folder / "drawn.txt", copies * 5_000_000)
            timing.in_own_process(read_or_count, path, copies, folder)
    if options.encode:
        measure_encoding(folder, options.encode)


if __name__ == "__main__":
    main()
