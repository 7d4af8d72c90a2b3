"""Models of the micro language beside the language itself: what `make quickstart` ends with.

The language's grammar gives the exact probability of every word of its test text, so a model's
figures stand beside the least that any model could reach, as a whole and by frequency band, and its
agreement beside sentences that the grammar allows and forbids.
"""

import math
import pathlib

import numpy as np

from zoo.data.micro import Micro
from zoo.errors import UserError
from zoo.evaluation import minimal_pairs, passport, plots
from zoo.evaluation.perplexity import Scores
from zoo.evaluation.run import Run

PAIRS, PAIRS_SEED = 2000, 7
SPLIT = "test"


def language_scores(language: Micro, corpus, text) -> Scores:
    """The language's own log-probabilities of a text, boundaries (certain, 0 nats) among them."""
    log_prob = np.zeros(len(text.words), np.float32)
    for start, sentence in zip(text.starts, corpus.sentences, strict=True):
        log_prob[start : start + len(sentence)] = language.token_log_probs(sentence)
    return Scores(log_prob, text.counted)


def agreement(run: Run, pairs) -> dict[str, float]:
    """Accuracy by phenomenon, with and without an attractor between the two words that agree."""
    scores = minimal_pairs.score_pairs(
        run.experiment.model,
        run.params,
        run.tables,
        run.lexicon,
        run.experiment.vocabulary,
        [(good, bad) for good, bad, _ in pairs],
    )
    right = scores.good > scores.bad
    found = {}
    for phenomenon in ("number", "gender"):
        for attractor in (False, True):
            chosen = np.array(
                [
                    about["phenomenon"] == phenomenon and about["attractor"] == attractor
                    for _, _, about in pairs
                ]
            )
            chosen &= scores.scored
            name = f"{phenomenon}, {'attractor' if attractor else 'no attractor'}"
            found[name] = float(right[chosen].mean())
    found["all"] = scores.accuracy
    return found


def report(workdirs: list[str], say=print) -> list[pathlib.Path]:
    """Prints the tables and writes the plots beside the first run; returns the plots' paths.

    Raises:
      UserError: a run is not of the micro language, or the runs are not of the same one.
    """
    names = [pathlib.Path(path).name for path in workdirs]
    if len(set(names)) < len(names):
        names = workdirs  # whole paths, where the folders' own names do not tell them apart
    runs = {name: Run.load(path) for name, path in zip(names, workdirs, strict=True)}
    languages = {run.experiment.data for run in runs.values()}
    if len(languages) != 1 or not isinstance(next(iter(languages)), Micro):
        raise UserError("micro-report takes runs of one micro language: give those of its configs.")
    (language,) = languages
    folder = pathlib.Path(workdirs[0]).parent
    pairs = language.minimal_pairs(PAIRS, PAIRS_SEED)

    totals, bands, accuracies, limit = {}, {}, {}, None
    for name, run in runs.items():
        corpus = run.read(SPLIT)
        text, scores = run.score(corpus)
        figures = passport.of_text(run, SPLIT, corpus, text, scores)
        passport.write(run, figures)
        own = language_scores(language, corpus, text)
        limit = (own, own.bands(text.occurrences(run.lexicon)))
        totals[name] = scores.log_perplexity
        bands[name] = figures["figures"]["bands"]
        accuracies[name] = agreement(run, pairs)

    own, own_bands = limit
    _say_totals(say, language, own, totals)
    _say_bands(say, own_bands, bands)
    _say_accuracies(say, accuracies)

    files = [folder / name for name in ("training.png", "bands.png", "agreement.png")]
    metrics = {name: run.path / "metrics.jsonl" for name, run in runs.items()}
    plots.training_curves(metrics, files[0], _validation_limit(language, next(iter(runs.values()))))
    by_band = {row["band"]: row["log_perplexity"] for row in own_bands}
    plots.bands(bands, files[1], by_band)
    plots.accuracy(accuracies, files[2])
    for path in files:
        say(f"wrote {path}")
    return files


def _validation_limit(language: Micro, run: Run) -> float:
    """The language's own log-perplexity of the validation text, nats per token."""
    corpus = run.read("validation")
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    return language_scores(language, corpus, text).log_perplexity


def _say_totals(say, language, own, totals):
    rate = language.entropy_rate()
    say(f"The micro language: entropy {rate:.4f} nats per token (perplexity {math.exp(rate):.2f}).")
    say(f"Its test text: {own.tokens:,} tokens, </s> after each sentence counted.\n")
    say(f"{'test text':18}{'nats per token':>16}{'perplexity':>12}{'above the limit':>17}")
    say(f"{'the language':18}{own.log_perplexity:16.4f}{own.perplexity:12.2f}{'':>17}")
    for name, value in totals.items():
        above = value - own.log_perplexity
        say(f"{name:18}{value:16.4f}{math.exp(value):12.2f}{above:17.4f}")


def _say_bands(say, own_bands, bands):
    say("\nPerplexity by how often the word occurred in training")
    say("(the language's own is no limit within a band, only over all of them):\n")
    names = "".join(f"{name:>14}" for name in bands)
    say(f"{'occurrences':18}{'tokens':>8}{'the language':>14}{names}")
    runs = [{row["band"]: f"{row['perplexity']:,.1f}" for row in rows} for rows in bands.values()]
    for row in own_bands:
        values = "".join(f"{run.get(row['band'], '-'):>14}" for run in runs)
        say(f"{row['band']:18}{row['tokens']:8,}{row['perplexity']:14,.1f}{values}")


def _say_accuracies(say, accuracies):
    say(f"\nAgreement: right of {PAIRS:,} pairs of a sentence and its ungrammatical twin\n")
    say(f"{'':26}" + "".join(f"{name:>14}" for name in accuracies))
    for phenomenon in next(iter(accuracies.values())):
        values = "".join(f"{run[phenomenon]:14.1%}" for run in accuracies.values())
        say(f"{phenomenon:26}{values}")
    say("")
