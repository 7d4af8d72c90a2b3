"""BLEU and chrF of translations, and their passports."""

import hashlib
import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

from zoo.base import regular_files, strict_json
from zoo.data import Corpus
from zoo.decoding import BeamSearch
from zoo.decoding.batched_search import LONGEST_RATIO
from zoo.errors import UserError
from zoo.lab.evaluation import passport, significance
from zoo.lab.evaluation.bleu_chrf_wer import TOKENIZERS, Bleu, ChrF, Metric
from zoo.lab.evaluation.figures import Decoding, DecodingRun, Score, TranslationPassport
from zoo.lab.evaluation.results import TRANSLATION_FIELDS, check_comparable, read_passport
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.translators import Translator
from zoo.lab.runs import atomic_writes, location
from zoo.lab.runs.workdir import Workdir
from zoo.lab.table import SCORE, Column, Table

EXACT_MATCH = "exact match"
Translation = tuple[TranslationPassport, list[str]]  # a passport, and the hypotheses


def make_metrics(tokenizer: str) -> dict[str, Metric]:
    """Creates the metrics of translations, {name: metric}."""
    return {metric.name: metric for metric in (Bleu(tokenizer), ChrF())}


def figures(
    hypotheses: Sequence[str], references: Sequence[str], tokenizer: str
) -> dict[str, Score]:
    """Scores a corpus with one reference a sentence, {name: score}."""
    scores = {}
    for name, metric in make_metrics(tokenizer).items():
        score = metric.figure(metric.count_corpus(hypotheses, references).sum(0))
        scores[name] = Score(float(score), metric.signature())
    matches = sum(line == reference for line, reference in zip(hypotheses, references, strict=True))
    share = 100 * matches / max(1, len(references))
    scores[EXACT_MATCH] = Score(share, "translations that are the reference")
    return scores


def describe(name: str, record: TranslationPassport) -> str:
    """Formats the figures as lines of text."""
    lines = [
        f"{metric} {figure.score:.2f}  {figure.signature}"
        for metric, figure in record.figures.items()
    ]
    return "\n  ".join([f"{name}: {record.tokens:,} sentences, {record.counts}", *lines])


def passport_of(
    run: Run,
    split: str,
    corpus: Corpus,
    tokenizer: str,
    scores: dict[str, Score],
    decoding: Decoding,
) -> TranslationPassport:
    """Makes the passport of the scores of a run's translations of a split."""
    text = "tokenised, as the files are" if tokenizer == "none" else f"tokenised by {tokenizer}"
    return TranslationPassport(
        kind="translation",
        split=f"translation-{split}",
        figures=scores,
        tokenizer=tokenizer,
        tokens=len(corpus.sentences),
        counts=f"n-grams of text that is {text}",
        decoding=decoding,
        **passport.translation_fields(run, corpus),
    )


def decoding(
    translator: Translator,
    search: BeamSearch,
    unknowns: dict | None = None,
    ratio: float = LONGEST_RATIO,
) -> Decoding:
    """Describes the search and the models of a translator, for a passport."""
    model = translator.language_model
    return Decoding(
        search=search,
        runs=tuple(map(_decoding_run, translator.runs)),
        average=translator.average if len(translator.runs) > 1 else None,
        language_model=_decoding_run(model, translator.weight) if model else None,
        unknowns=unknowns,
        longest_ratio=None if ratio == LONGEST_RATIO else ratio,
    )


def _decoding_run(run, weight=None):
    return DecodingRun(str(run.path), Workdir(run.path).recipe_digest(), run.checkpoint, weight)


def write(
    run: Run, record: TranslationPassport, hypotheses: Sequence[str]
) -> tuple[pathlib.Path, pathlib.Path]:
    """Keeps a passport among the results of a run, and the hypotheses beside it, a line each."""
    decoding = record.decoding
    default = BeamSearch(decoding.search.beam)
    variant = f"beam-{default.beam}"
    if record.tokenizer != "none":
        variant += f"-{record.tokenizer}"
    if decoding != Decoding(default, decoding.runs[:1], None, None):
        text = strict_json.dumps(decoding, sort_keys=True)
        variant += f"-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    result = passport.write(run, record, suffix=variant)
    path = result.with_suffix(".txt")
    text = "".join(f"{line}\n" for line in hypotheses)
    with location.convert_errors(path):
        atomic_writes.write_text(path, text)
    return result, path


def read(file: Any) -> Translation:
    """Reads (passport, hypotheses) of a result of translations."""
    try:
        record = read_passport(file)
        lines = regular_files.read_text(file.with_suffix(".txt"))
        hypotheses = lines.removesuffix("\n").split("\n")
        if not isinstance(record, TranslationPassport):
            raise ValueError(f"it is of the kind {record.kind!r}")
        if len(hypotheses) != record.tokens:
            raise ValueError(f"{len(hypotheses)} hypotheses, not {record.tokens}")
        if record.tokenizer not in TOKENIZERS:
            raise ValueError(f"its tokenizer is {record.tokenizer!r}")
    except (OSError, ValueError, UserError) as error:
        cause = error.__cause__ or error  # the cause names the field that the passport lacks
        raise UserError(
            f"{file} cannot be read as a result of translations ({cause}): give a result of "
            "python -m zoo translate --bleu."
        ) from error
    return record, hypotheses


def check_results(
    names: Sequence[str], results: Sequence[Translation], references: list[list[str]]
):
    """Raises UserError unless figures are of the same quantity and of these references."""
    first = results[0][0]
    for name, (candidate, _) in zip(names[1:], results[1:], strict=True):
        check_comparable(first, candidate, (names[0], name), TRANSLATION_FIELDS, "translate")
    if passport.data_of("", references).sha256 != first.data.sha256:
        raise UserError(
            f"the text of {first.split} has changed since {names[0]} was judged: translate it "
            "again."
        )


def compare(
    names: Sequence[str],
    results: Sequence[Translation],
    references: list[list[str]],
) -> list[dict[str, Any]]:
    """Returns the scores of runs with their intervals, and tests against the first run."""
    check_results(names, results, references)
    reference_lines = [" ".join(words) for words in references]
    rows: list[dict[str, Any]] = [{"run": name} for name in names]
    for name, metric in make_metrics(results[0][0].tokenizer).items():
        figure = metric.figure
        counts = [metric.count_corpus(lines, reference_lines) for _, lines in results]
        for number, (row, run_counts) in enumerate(zip(rows, counts, strict=True)):
            p = significance.paired_test(counts[0], run_counts, figure) if number else None
            row[name] = {
                "score": float(figure(run_counts.sum(0))),
                "interval": significance.bootstrap_interval(run_counts, figure),
                "p": p,
            }
    return rows


def table(rows: list[dict[str, Any]], record: TranslationPassport) -> str:
    """Formats the rows of `compare` as text, with a line on the text and its counted tokens."""
    metrics = [metric for metric in rows[0] if metric != "run"]
    columns = [Column("run")]
    for metric in metrics:
        columns += [Column(metric, SCORE), Column("p", ".4f", joined=True)]
    cells = []
    for row in rows:
        scores = (row[metric] for metric in metrics)
        pairs = (((score["score"], *score["interval"]), score["p"]) for score in scores)
        cells.append([row["run"], *itertools.chain(*pairs)])
    lines = [*Table(columns, cells).text()]
    note = "in brackets 95 % by sentences drawn anew"
    if len(rows) > 1:
        note += f"; p of the difference from {rows[0]['run']}, by sentences exchanged"
    lines.append(f"{record.tokens:,} sentences of {record.data.path}, {record.counts}; {note}")
    lines += [figure.signature for name, figure in record.figures.items() if name in rows[0]]
    return "\n".join(lines)
