"""A recogniser's first pass: prefix beam search over letters, with a language model beside it.

python -m examples.prefix_beam_search

The search is algorithm 1 of Hannun et al. (2014, arXiv:1408.2873): a prefix ends in a letter or in
the blank of connectionist temporal classification, and the model is asked whenever a word is done.
Scores of frames are made up: letters of a sentence, with noise.
"""

import collections
import math
import tempfile
from typing import NamedTuple

import numpy as np

import zoo
from zoo.lab.commands import command_table

BLANK = 0
# What it costs to be this of all unknown words, nats.
UNKNOWN = 5.0
SETTINGS = (
    *("data.nouns=24", "data.adjectives=8", "data.verbs=8", "data.places=4", "data.quantities=4"),
    *("data.years=4", "data.train_sentences=2000", "training.epochs=6"),
    *("vocabulary.unknown=counted", "vocabulary.minimum_count=2"),
)


class Words(NamedTuple):
    """What the model knows of the words of a prefix that are done.

    Attributes:
      log_prob: theirs, nats. count: how many. next: log p of each word after them, [V].
      states: of one row.
    """

    log_prob: float
    count: int
    next: np.ndarray
    states: object


def spoken(sentence: str, letters: str, noise: float, seed: int = 0) -> np.ndarray:
    """Made-up log p(symbol | frame), float [frames, 1 + letters]; symbol 0 is the blank."""
    generator = np.random.default_rng(seed)
    symbols = [number for letter in sentence for number in (letters.index(letter) + 1, BLANK)]
    scores = noise * generator.normal(size=(len(symbols), len(letters) + 1))
    scores[np.arange(len(symbols)), symbols] += 3
    return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)


def search(run, frames: np.ndarray, letters: str, weight: float, bonus=4.0, beam=16) -> str:
    """The prefix of the highest score,

        log p(frames | prefix) + weight * log p(words) + bonus * how many words.

    Args:
      run: what `zoo.load` gives. frames: log p(symbol), [T, 1 + letters]. letters: one is a blank.
    """
    log_probs, states = run.step(run.boundary, run.initial_states())
    words_by_prefix = {"": Words(0.0, 0, log_probs[0], states)}
    open_prefixes = {"": (0.0, -math.inf)}  # log p of those that end in a blank, and in a letter
    for frame in frames:
        longer = _extend_prefixes(open_prefixes, frame, letters)
        _read_words(run, words_by_prefix, longer)

        def score(prefix, longer=longer):
            words = words_by_prefix[_done(prefix)]
            return np.logaddexp(*longer[prefix]) + weight * words.log_prob + bonus * words.count

        best = sorted(longer, key=score, reverse=True)[:beam]
        open_prefixes = {prefix: longer[prefix] for prefix in best}
    # The last word and the end of the sentence.
    ends: dict[str, np.ndarray] = {}
    for prefix, pair in open_prefixes.items():
        if prefix:
            done = prefix.rstrip() + " "
            ends[done] = np.logaddexp(ends.get(done, -math.inf), pair)
    _read_words(run, words_by_prefix, ends)

    def total(prefix):
        words = words_by_prefix[prefix]
        log_prob = words.log_prob + words.next[run.id(run.boundary)]
        return np.logaddexp(*ends[prefix]) + weight * log_prob + bonus * words.count

    return max(ends, key=total).strip() if ends else ""


def _done(prefix):
    """The words of a prefix that are done, each with the blank behind it."""
    return prefix[: prefix.rfind(" ") + 1]


def _extend_prefixes(prefixes, frame, letters):
    """{prefix: (log p where it ends in a blank, where it ends in a letter)} a frame later."""
    scores = collections.defaultdict(lambda: [-math.inf, -math.inf])
    for prefix, (blank, letter) in prefixes.items():
        log_prob = np.logaddexp(blank, letter)
        scores[prefix][0] = np.logaddexp(scores[prefix][0], log_prob + frame[BLANK])
        for symbol, character in enumerate(letters, 1):
            if prefix.endswith(character):  # said on, or once more after a blank
                scores[prefix][1] = np.logaddexp(scores[prefix][1], letter + frame[symbol])
            if character == " " and prefix[-1:] in ("", " "):
                continue
            before = blank if prefix.endswith(character) else log_prob
            entry = scores[prefix + character]
            entry[1] = np.logaddexp(entry[1], before + frame[symbol])
    return scores


def _read_words(run, words_by_prefix, prefixes):
    """Puts the words of prefixes that are done into `words_by_prefix`: one step for all of them."""
    unread = [prefix for prefix in {*map(_done, prefixes)} if prefix not in words_by_prefix]
    if not unread:
        return
    parts = [prefix.strip().rpartition(" ") for prefix in unread]
    parents = [words_by_prefix[words + " " if words else ""] for words, _, _ in parts]
    ids = [run.id(word) for _, _, word in parts]
    states = type(parents[0].states).batched([parent.states for parent in parents])
    log_probs, states = run.step(ids, states)
    for row, (prefix, parent) in enumerate(zip(unread, parents, strict=True)):
        log_prob = parent.log_prob + float(parent.next[ids[row]])
        if prefix.split()[-1] not in run.words:  # some unknown word came, and this one of them
            log_prob -= UNKNOWN
        words_by_prefix[prefix] = Words(log_prob, parent.count + 1, log_probs[row], states[row])


def main(folder: str, sentences: list[str], noise: float = 0.65) -> list[tuple[str, str, str]]:
    """(sentence, what is found without the model, what is found with it) of each; prints them.

    Args:
      folder: a run. sentences: what is said. noise: standard deviation of the made-up scores.
    """
    run = zoo.load(folder)
    letters = "".join(sorted({*" ", *"".join(sentences)}))
    results = []
    for seed, sentence in enumerate(sentences):
        frames = spoken(sentence, letters, noise, seed)
        unfused = search(run, frames, letters, weight=0.0, bonus=0.0)
        fused = search(run, frames, letters, weight=1.0)
        print(f"said:               {sentence}")
        print(f"letters alone:      {unfused}")
        print(f"and language model: {fused}")
        results.append((sentence, unfused, fused))
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        settings = [part for text in SETTINGS for part in ("--set", text)]
        command_table.run("train", ["--config", "micro_softmax", folder, *settings])
        run_data = zoo.load(folder).read("validation")
        main(folder, [" ".join(words) for words in run_data.sentences[:3]])
