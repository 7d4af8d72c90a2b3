"""Report of `make quickstart` on models of the micro language beside the language itself.

The language's grammar gives the exact probability of every word of its test text, so a model's
figures stand beside the least that any model could reach, as a whole and by frequency band, and its
agreement beside sentences that the grammar allows and forbids.
"""

import math
import pathlib
from typing import Any

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.lab.comparison import bar_plots, learning_curves, plot_style
from zoo.lab.comparison.comparison import Comparison
from zoo.lab.comparison.learning_curves import Curve
from zoo.lab.evaluation import item_scores, minimal_pairs, passport, scored_texts
from zoo.lab.evaluation.perplexity import Scores, perplexity_of
from zoo.lab.evaluation.results import check_comparable
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files
from zoo.sources.micro import Micro
from zoo.sources.source import Corpus

PAIRS, PAIRS_SEED = 2000, 7
SPLIT = "test"


def score_by_grammar(language: Micro, corpus: Corpus, text: EncodedText, counted) -> Scores:
    """Scores a text by the exact probabilities of the grammar that made it; boundaries get log p 0.
    `counted` is the mask of tokens that count."""
    log_prob = np.zeros(len(text.words), np.float32)
    for start, sentence in zip(text.starts, corpus.sentences, strict=True):
        log_prob[start : start + len(sentence)] = language.grammar.token_log_probs(sentence)
    return Scores(log_prob, counted)


def judge_agreement(
    run: Run, pairs: list[tuple[list[str], list[str], dict]]
) -> tuple[dict, item_scores.Arrays]:
    """Judges a run on (good, bad, traits) pairs: (passport with accuracies by case, answers)."""
    sentence_pairs = [(good, bad) for good, bad, _ in pairs]
    scores = minimal_pairs.score_pairs(run, sentence_pairs)
    cases = {}
    for phenomenon in ("number", "gender"):
        for attractor in (False, True):
            case = (phenomenon, attractor)
            is_case = [(traits["phenomenon"], traits["attractor"]) == case for *_, traits in pairs]
            name = f"{phenomenon}, {'attractor' if attractor else 'no attractor'}"
            cases[name] = scores.select(np.array(is_case, bool)).figures()
    cases["all"] = scores.figures()
    record = minimal_pairs.passport_of(run, "micro-agreement", sentence_pairs, scores)
    return {**record, "figures": {**record["figures"], "cases": cases}}, scores.answers()


def report_micro(workdirs: list[str]) -> list[pathlib.Path]:
    """Judges runs of the micro language and saves that, prints tables beside the language, and
    draws plots beside the first run; returns the plots' paths."""
    for workdir in workdirs:
        passport.check(workdir)
    comparison = Comparison.from_paths(workdirs)
    runs = {name: Run.load(path) for name, path in comparison.paths.items()}
    language = _shared_language(runs)
    folder = pathlib.Path(workdirs[0]).parent
    files = [folder / name for name in ("training.png", "bands.png", "agreement.png")]
    for path in files:
        plot_style.check_file(path)
    pairs = language.minimal_pairs(PAIRS, PAIRS_SEED)

    passports, agreements, scores, answers = {}, {}, {}, {}
    ideal: Any = None
    words_seen: Any = None
    for name, run in runs.items():
        (scored,) = scored_texts.score(run, [SPLIT])
        text, judgement = scored.text, scored.judgement()
        passports[name], scores[name] = judgement.passport, judgement.scores
        agreements[name], answers[name] = judge_agreement(run, pairs)
        if ideal is None:  # all runs share it, as is checked below
            ideal = score_by_grammar(language, scored.corpus, text, scored.scores.counted)
            words_seen = text.occurrences(run.lexicon), text.unknown(run.lexicon)
    first = next(iter(passports))
    for name in passports:
        check_comparable(passports[first], passports[name], (first, name))
    for name, run in runs.items():
        passport.write(run, passports[name], scores[name])
        passport.write(run, agreements[name], answers[name])

    figures = {name: record["figures"] for name, record in passports.items()}
    bands = {name: record["bands"] for name, record in figures.items()}
    cases = {name: record["figures"]["cases"] for name, record in agreements.items()}
    ideal_bands = ideal.bands(*words_seen)
    output_files.show(
        _entropy_line(language, runs[first].experiment.vocabulary),
        f"Its test text: {ideal.tokens:,} tokens: {passports[first]['counts']}.\n",
        *_total_lines(ideal, {name: record["log_perplexity"] for name, record in figures.items()}),
        *(
            f"{name}: {line.strip()}"
            for name, record in passports.items()
            for line in passport.warnings(record)
        ),
        *_band_lines(ideal_bands, bands),
        *_accuracy_lines(cases),
    )
    lines, missing = learning_curves.read_available(
        {name: run.path for name, run in runs.items()}, learning_curves.WITH_TRAINING["step"]
    )
    _draw_plots(files, language, runs, comparison.groups, lines, bands, scores, ideal_bands, cases)
    files = files if lines else files[1:]
    output_files.show(*missing.values(), *(f"wrote {path}" for path in files))
    return files


def _draw_plots(files, language, runs, groups, lines, bands, scores, ideal_bands, cases):
    """Draws learning curves, frequency bands and agreement beside the language's own."""
    by_group = {group: [*group.select(lines).values()] for group in groups}
    curves = [Curve.from_validations(group, seeds) for group, seeds in by_group.items() if seeds]
    if curves:
        limit = _validation_limit(language, next(iter(runs.values())))
        learning_curves.draw_curves(curves, files[0], limit=limit)
    rows = {run: item_scores.with_intervals(bands[run], scores[run]) for run in bands}
    by_band = {row["band"]: row["log_perplexity"] for row in ideal_bands}
    bars = {group: bar_plots.band_bars([rows[run] for run in group.runs]) for group in groups}
    bar_plots.draw_bands(bars, files[1], by_band)
    title = "Agreement in the micro language"
    bar_plots.draw_accuracy(bar_plots.accuracy_bars(cases, groups), files[2], title)


def _shared_language(runs):
    """Returns the micro language of all runs; raises UserError unless they share one."""
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
    return score_by_grammar(language, corpus, text, text.counted).log_perplexity


def _entropy_line(language, vocabulary):
    """Describes the language's own entropy and perplexity per token."""
    marks = vocabulary.boundary_marks if vocabulary.boundary == "counted" else 0
    rate = language.entropy_rate(marks)
    perplexity = f"perplexity {math.exp(rate):.2f}"
    return f"The micro language: entropy {rate:.4f} nats per token ({perplexity})."


def _total_lines(ideal, totals):
    """Yields the table of {run: nats per token} beside the language's own figures."""
    yield f"{'test text':18}{'nats per token':>16}{'perplexity':>12}{'above the language':>20}"
    yield f"{'the language':18}{ideal.log_perplexity:16.4f}{ideal.perplexity:12.2f}"
    for name, value in totals.items():
        above = value - ideal.log_perplexity
        yield f"{name:18}{value:16.4f}{perplexity_of(value):12.2f}{above:20.4f}"


def _band_lines(ideal_bands, bands):
    """Yields the table of perplexities by frequency band, of the language and of each run."""
    yield "\nPerplexity by how often the word occurred in training"
    yield "(no model is below the language on all words together, but one may be within a band):\n"
    names = "".join(f"{name:>14}" for name in bands)
    yield f"{'occurrences':18}{'tokens':>8}{'the language':>14}{names}"
    runs = [{row["band"]: f"{row['perplexity']:,.1f}" for row in rows} for rows in bands.values()]
    for row in ideal_bands:
        values = "".join(f"{run.get(row['band'], '-'):>14}" for run in runs)
        yield f"{row['band']:18}{row['tokens']:8,}{row['perplexity']:14,.1f}{values}"


def _accuracy_lines(cases):
    """Yields the table of {run: {case: its figures}}, the accuracies on agreement pairs."""
    yield f"\nAgreement: right of {PAIRS:,} pairs of a sentence and its ungrammatical twin\n"
    yield f"{'':26}" + "".join(f"{name:>14}" for name in cases)
    for phenomenon in next(iter(cases.values())):
        values = "".join(f"{run[phenomenon]['accuracy']:14.1%}" for run in cases.values())
        yield f"{phenomenon:26}{values}"
    yield ""
