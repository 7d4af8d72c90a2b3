"""Report of `make quickstart` on models of the micro language beside the language itself.

The language's grammar gives the exact probability of every word of its test text, so a model's
figures stand beside the least that any model could reach, as a whole and by frequency band, and its
agreement beside sentences that the grammar allows and forbids.
"""

import math
import pathlib
from typing import Any

import numpy as np

from zoo.comparison import agreement as agreement_report
from zoo.comparison import bar_plots, curve_plots, learning_curves, plot_style
from zoo.comparison.comparison import Comparison
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.evaluation import item_scores, minimal_pairs, passport, scored_texts
from zoo.evaluation.perplexity import Scores, perplexity_of
from zoo.evaluation.results import check_comparable
from zoo.evaluation.run import Run
from zoo.runs import output_files
from zoo.sources.micro import Micro
from zoo.sources.source import Corpus

PAIRS, PAIRS_SEED = 2000, 7
SPLIT = "test"


def language_scores(language: Micro, corpus: Corpus, text: EncodedText, counted) -> Scores:
    """Computes the language's own log-probabilities of a text; boundaries are certain, 0 nats."""
    log_prob = np.zeros(len(text.words), np.float32)
    for start, sentence in zip(text.starts, corpus.sentences, strict=True):
        log_prob[start : start + len(sentence)] = language.grammar.token_log_probs(sentence)
    return Scores(log_prob, counted)


def agreement(
    run: Run, pairs: list[tuple[list[str], list[str], dict]]
) -> tuple[dict, item_scores.Arrays]:
    """Returns (the passport of a run's accuracy on pairs, which pairs are right).

    Its figures have "cases" too: the figures by phenomenon, with and without an attractor between
    the two words that agree, and of all pairs.
    """
    plain = [(good, bad) for good, bad, _ in pairs]
    scores = minimal_pairs.score_pairs(run, plain)
    cases = {}
    for phenomenon in ("number", "gender"):
        for attractor in (False, True):
            wanted = (phenomenon, attractor)
            chosen = [(about["phenomenon"], about["attractor"]) == wanted for *_, about in pairs]
            name = f"{phenomenon}, {'attractor' if attractor else 'no attractor'}"
            cases[name] = scores.chosen(np.array(chosen, bool)).figures()
    cases["all"] = scores.figures()
    record = minimal_pairs.passport_of(run, "micro-agreement", plain, scores)
    return {**record, "figures": {**record["figures"], "cases": cases}}, scores.answers()


def report(workdirs: list[str], log=output_files.show) -> list[pathlib.Path]:
    """Prints the tables, keeps the figures in each run's results and draws the plots.

    The plots lie beside the first run.
    """
    for workdir in workdirs:
        passport.check(workdir)
    compared = Comparison.of(workdirs)
    runs = {name: Run.load(path) for name, path in compared.paths.items()}
    language = _language_of(runs)
    folder = pathlib.Path(workdirs[0]).parent
    files = [folder / name for name in ("training.png", "bands.png", "agreement.png")]
    for path in files:
        plot_style.check_file(path)
    pairs = language.minimal_pairs(PAIRS, PAIRS_SEED)

    passports, agreements, kept, answers = {}, {}, {}, {}
    own: Any = None
    words_seen: Any = None
    for name, run in runs.items():
        (scored,) = scored_texts.score(run, [SPLIT])
        text, judgement = scored.text, scored.judgement()
        passports[name], kept[name] = judgement.passport, judgement.scores
        agreements[name], answers[name] = agreement(run, pairs)
        if own is None:  # all runs share it, as is checked below
            own = language_scores(language, scored.corpus, text, scored.scores.counted)
            words_seen = text.occurrences(run.lexicon), text.unknown(run.lexicon)
    first, *others = passports
    for name in others:
        check_comparable(passports[first], passports[name], (first, name))
    for name, run in runs.items():
        passport.write(run, passports[name], kept[name])
        passport.write(run, agreements[name], answers[name])

    figures = {name: record["figures"] for name, record in passports.items()}
    bands = {name: record["bands"] for name, record in figures.items()}
    cases = {name: record["figures"]["cases"] for name, record in agreements.items()}
    own_bands = own.bands(*words_seen)
    _log_rate(log, language, runs[first].experiment.vocabulary)
    log(f"Its test text: {own.tokens:,} tokens: {passports[first]['counts']}.\n")
    _log_totals(log, own, {name: record["log_perplexity"] for name, record in figures.items()})
    for name, record in passports.items():
        for line in passport.warnings(record):
            log(f"{name}: {line.strip()}")
    _log_bands(log, own_bands, bands)
    _log_accuracies(log, cases)

    _draw(files, language, runs, compared.groups, bands, kept, own_bands, cases)
    for path in files:
        log(f"wrote {path}")
    return files


def _draw(files, language, runs, groups, bands, kept, own_bands, cases):
    """Draws learning curves, bands and agreement of recipes."""
    curves = [_curve(group, [runs[run] for run in group.runs]) for group in groups]
    limit = _validation_limit(language, next(iter(runs.values())))
    curve_plots.draw_learning_curves(curves, files[0], learning_curves.LABELS["step"], limit)
    rows = {run: item_scores.with_intervals(of_run, kept[run]) for run, of_run in bands.items()}
    by_band = {row["band"]: row["log_perplexity"] for row in own_bands}
    of_recipes = {group: [rows[run] for run in group.runs] for group in groups}
    bar_plots.bands(of_recipes, files[1], by_band)
    counts = {
        run: {case: (one["right"], one["pairs"]) for case, one in of_run.items()}
        for run, of_run in cases.items()
    }
    agreement_report.draw(counts, groups, str(files[2]))


def _curve(recipe, runs):
    """Returns the learning curves of the seeds of a recipe, of validation and training."""
    lines = [
        learning_curves.of_run(str(run.path), learning_curves.WITH_TRAINING["step"]) for run in runs
    ]
    validation, training = (
        [learning_curves.points(of_run, field=field) for of_run in lines]
        for field in (learning_curves.LOSS, learning_curves.TRAINING)
    )
    return curve_plots.Curve(recipe, validation, training)


def _language_of(runs):
    """Returns the language of all runs, which must be one."""
    languages = {run.experiment.data for run in runs.values()}
    if len(languages) != 1 or not isinstance(next(iter(languages)), Micro):
        raise UserError("--micro takes runs of one micro language: give runs of its configs.")
    for name, run in runs.items():
        if run.experiment.vocabulary.lower_case:
            raise UserError(
                f"{name} was trained with vocabulary.lower_case=true, and the grammar knows its "
                "words as they are spelt only: train with lower_case=false."
            )
    return languages.pop()


def _validation_limit(language: Micro, run: Run) -> float:
    """Computes the language's own log-perplexity of the validation text, nats per token."""
    corpus = run.read("validation")
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    return language_scores(language, corpus, text, text.counted).log_perplexity


def _log_rate(log, language, vocabulary):
    marks = vocabulary.boundary_marks if vocabulary.boundary == "counted" else 0
    rate = language.entropy_rate(marks)
    log(f"The micro language: entropy {rate:.4f} nats per token (perplexity {math.exp(rate):.2f}).")


def _log_totals(log, own, totals):
    log(f"{'test text':18}{'nats per token':>16}{'perplexity':>12}{'above the language':>20}")
    log(f"{'the language':18}{own.log_perplexity:16.4f}{own.perplexity:12.2f}")
    for name, value in totals.items():
        above = value - own.log_perplexity
        log(f"{name:18}{value:16.4f}{perplexity_of(value):12.2f}{above:20.4f}")


def _log_bands(log, own_bands, bands):
    log("\nPerplexity by how often the word occurred in training")
    log("(no model is below the language on all words together, but one may be within a band):\n")
    names = "".join(f"{name:>14}" for name in bands)
    log(f"{'occurrences':18}{'tokens':>8}{'the language':>14}{names}")
    runs = [{row["band"]: f"{row['perplexity']:,.1f}" for row in rows} for rows in bands.values()]
    for row in own_bands:
        values = "".join(f"{run.get(row['band'], '-'):>14}" for run in runs)
        log(f"{row['band']:18}{row['tokens']:8,}{row['perplexity']:14,.1f}{values}")


def _log_accuracies(log, cases):
    log(f"\nAgreement: right of {PAIRS:,} pairs of a sentence and its ungrammatical twin\n")
    log(f"{'':26}" + "".join(f"{name:>14}" for name in cases))
    for phenomenon in next(iter(cases.values())):
        values = "".join(f"{run[phenomenon]['accuracy']:14.1%}" for run in cases.values())
        log(f"{phenomenon:26}{values}")
    log("")
