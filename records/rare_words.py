"""Measures whether models give a number to where a number must be, even one never seen.

    python -m records.rare_words runs/rare_words_softmax runs/rare_words_log_linear

Dymetman and Xiao (2016), section 3: after "the cost was" a log-linear model with a feature of
numbers knows that "37" may follow, which training never showed, and that "Grenoble", which is
equally frequent, may not. At each position of a text where a word of one kind stands, a digit
string or a proper name, its log-probability is compared with the log-probability of a word of the
other kind which is as frequent in training. Both directions are needed: a model may prefer numbers
everywhere.
"""

import dataclasses
import re
from typing import Any

import numpy as np

from records import probes
from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.lab.evaluation import item_scores, minimal_pairs, passport, sentence_scores
from zoo.lab.evaluation.figures import AccuracyPassport, PairPassport
from zoo.lab.table import COUNT, SCORE, SHARE, Column, Table
from zoo.lexicon import Lexicon
from zoo.priors.spelling_features import DIGITS
from zoo.sources.source import Corpus

# Occurrences in training.
BANDS = {"never": (0, 0), "1-3": (1, 3), "4-15": (4, 15)}
_NAME = re.compile(r"[^\W\d_]{2,}")


def kinds(lexicon: Lexicon) -> dict[str, list[int]]:
    """Returns {"number": word ids, "name": word ids} of the lexicon, by their spelling.

    A number is written in digits. A name has letters only, a capital first and small ones after it,
    and its spelling in lower case is not in the lexicon.
    """
    by_kind: dict = {"number": [], "name": []}
    for word_id, word in enumerate(lexicon.words):
        if DIGITS.fullmatch(word):
            by_kind["number"].append(word_id)
        elif _NAME.fullmatch(word) and word.istitle() and word.lower() not in lexicon.ids:
            by_kind["name"].append(word_id)
    return by_kind


def examples(
    corpus: Corpus, lexicon: Lexicon, limit: int = 500, seed: int = 0
) -> list[tuple[str, str, list[str], str, str]]:
    """Returns (kind, band, words before, word, twin) of rare words of a text.

    `twin` is drawn from the words of the other kind whose number of occurrences in training is
    nearest to the word's. The first word of a sentence, which always has a capital, is left out.
    """
    by_kind = kinds(lexicon)
    kind_by_word = {lexicon.words[word_id]: kind for kind in by_kind for word_id in by_kind[kind]}
    twin_ids = {"number": np.array(by_kind["name"]), "name": np.array(by_kind["number"])}
    occurrences: dict = {(kind, band): [] for kind in by_kind for band in BANDS}
    for sentence in corpus.sentences:
        for position, word in enumerate(sentence):
            kind = kind_by_word.get(word)
            if position == 0 or kind is None:
                continue
            count = lexicon.counts[lexicon.ids[word]]
            for band, (lowest, highest) in BANDS.items():
                if lowest <= count <= highest:
                    occurrences[kind, band].append((sentence[:position], word, count))
    generator = np.random.default_rng(seed)
    chosen = []
    for (kind, band), band_occurrences in occurrences.items():
        if not len(twin_ids[kind]):
            continue
        indices = sorted(generator.permutation(len(band_occurrences))[:limit])
        for before, word, count in (band_occurrences[number] for number in indices):
            distances = np.abs(lexicon.counts[twin_ids[kind]] - count)
            nearest = twin_ids[kind][distances == distances.min()]
            twin = lexicon.words[nearest[generator.integers(len(nearest))]]
            chosen.append((kind, band, before, word, twin))
    return chosen


def judge(run, split: str) -> tuple[PairPassport, item_scores.Arrays]:
    """Returns (the passport of a run's figures for the rare words of a split, which words are
    preferred).

    "cases" of the figures, by kind and band: the number of words, the share of words that are more
    probable than the other one, with its 95 % interval, and in "details" mean log p(word | words
    before) and log p(other | words before) in nats.
    """
    chosen = examples(run.read(split), run.lexicon)
    if not chosen:
        raise UserError(
            f"the split {split} has no rare number, nor a rare name, that is in the lexicon: give "
            "text with digits and capitals, and a vocabulary of all splits."
        )
    sentences = [
        sentence
        for _, _, before, word, twin in chosen
        for sentence in (before, [*before, word], [*before, twin])
    ]
    scored = sentence_scores.score(run, sentences, f"the split {split}")
    scores = scored.word_log_prob.reshape(-1, 3)
    words, twins = scores[:, 1] - scores[:, 0], scores[:, 2] - scores[:, 0]
    pairs = [(sentences[i], sentences[i + 1]) for i in range(1, len(sentences), 3)]
    together = minimal_pairs.PairScores(scores[:, 1], scores[:, 2], np.ones(len(pairs), bool))
    cases = _cases(chosen, words, twins, together)
    name = f"rare-words-{split}"
    record = minimal_pairs.passport_of(run, name, pairs, together, cases=cases)
    return record, together.answers()


def _cases(chosen, words, twins, together):
    cases = {}
    for kind in ("number", "name"):
        for band in BANDS:
            in_case = np.array([example[:2] == (kind, band) for example in chosen], bool)
            if in_case.any():
                details = {
                    "log_prob": float(words[in_case].mean()),
                    "log_prob_of_other": float(twins[in_case].mean()),
                }
                figures = together.select(in_case).figures()
                cases[f"{kind}, {band}"] = dataclasses.replace(figures, details=details)
    return cases


def describe(record: AccuracyPassport) -> str:
    """Formats the figures of a passport of `judge` as a table, a case a line."""
    figures: Any = record.figures
    columns = [Column("word, seen in training"), Column("words", COUNT), Column("word", SCORE)]
    columns += [Column("other", SCORE), Column("preferred", SHARE), Column("95 %", SHARE)]
    rows = []
    for name, case in figures.cases.items():
        log_probs = (case.details[side] for side in ("log_prob", "log_prob_of_other"))
        rows.append([name, case.pairs, *log_probs, case.accuracy, case.interval])
    title = (
        f"{record.split}: mean log-probability in nats, of the word that stands there and of one "
        "of the other kind"
    )
    lines = [title, *Table(columns, rows).text(), *passport.warnings(record.leak)]
    return "\n".join(lines)


if __name__ == "__main__":
    program.program(lambda: probes.main(__doc__, judge, describe))
