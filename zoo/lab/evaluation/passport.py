"""Passports of a run's figures: their fields, their files, and lines that describe them.

Every kind of judgement ends in a `Judgement`: of texts (`scored_texts`), questions (`exact_match`),
minimal pairs, and agreement.
"""

import argparse
import dataclasses
import datetime
import errno
import math
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import jax
import numpy as np

from zoo import configuration
from zoo.base import strict_json
from zoo.data import Corpus
from zoo.errors import UserError
from zoo.lab.evaluation import figures, item_scores, leakage
from zoo.lab.evaluation.changes import registry
from zoo.lab.evaluation.figures import AccuracyPassport, Passport, PerplexityPassport
from zoo.lab.evaluation.perplexity import PRECISION, UNKNOWN
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.unknown_words import describe_share
from zoo.lab.options import Option
from zoo.lab.runs import atomic_writes, location, output_files, seen_texts
from zoo.lab.runs.provenance import machine, revision, versions
from zoo.lab.runs.workdir import Workdir

READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_MANY_UNKNOWN = 0.2


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Judgement:
    """What a run was judged on and how it did; each kind of judgement makes one of its scores."""

    run: Run
    passport: Passport
    description: str  # the figures as text
    scores: item_scores.Arrays  # of words or questions, kept beside the passport
    rows: Sequence[Any] = ()  # named tuples: the figures, or the scores of each pair
    columns: Sequence[str] = ()  # of the table of rows that is kept; () keeps none
    notes: Sequence[str | None] = ()  # remarks on the text, and on how the run reads it
    warnings: Sequence[str | None] = ()  # remarks on the figures that `description` leaves out

    def keep(self) -> list[pathlib.Path]:
        """Writes the passport with its scores, and the table if there is one; returns the files."""
        result = write(self.run, self.passport, self.scores)
        if not self.columns:
            return [result]
        table = result.with_suffix(".tsv")
        rows = (row[: len(self.columns)] for row in self.rows)
        output_files.write_table(table, self.columns, rows)
        return [result, table]


class Metric:
    """Base class of the ways to judge a run."""

    # any of them asks for the metric, or sets one that needs no option
    options: ClassVar[tuple[Option, ...]] = ()
    needs_option: ClassVar[bool] = True

    def judge(self, run: Run, arguments: argparse.Namespace) -> Iterator[Judgement]:
        """Judges a run as a command line asks for."""
        raise NotImplementedError


# ---------------------------------------- the fields of a passport


def source_of(run: Run, corpus: Corpus) -> figures.SourceText | None:
    """Describes the sources of translations and their unknown words; None for other texts."""
    if corpus.source_text is None or len(run.source_lexicons) != 1:
        return None
    source, vocabulary = run.experiment.source_corpus(corpus), run.experiment.source_side_vocabulary
    missing = vocabulary.missing(source.sentences, run.source_lexicons[0])
    digest, words = seen_texts.digest_text(source.sentences)
    unknown = sum(missing.values())
    return figures.SourceText(source.name, digest, len(source.sentences), words, unknown)


def sentence_fields(run: Run, sentences: Sequence[list[str]]) -> dict[str, Any]:
    """Returns the fields of passports of sentences that each start from an empty state."""
    apart = dataclasses.replace(policies(run), state="sentences", batch=None)
    return {"policies": apart, **run_fields(run, sentences)}


def translation_fields(run: Run, corpus: Corpus) -> dict[str, Any]:
    """Returns the fields of passports of translations, or of texts that were drawn."""
    return {
        "data": data_of(corpus.name, corpus.sentences),
        "source": source_of(run, corpus),
        **sentence_fields(run, corpus.sentences),
    }


def data_of(path: str, sentences: Sequence[list[str]]) -> figures.JudgedText:
    """Describes a text."""
    digest, words = seen_texts.digest_text(sentences)
    return figures.JudgedText(path, digest, len(sentences), words)


def policies(run: Run) -> figures.Policies:
    """Returns the choices that change a figure without changing the model."""
    vocabulary, recipe = run.experiment.vocabulary, run.experiment.evaluation
    blank_lines = {source.form.blank_lines for source in run.experiment.data.texts()}
    return figures.Policies(
        state=recipe.state,
        batch=recipe.batch if recipe.state == "carried" else None,
        boundary=vocabulary.boundary,
        boundary_marks=vocabulary.boundary_marks if vocabulary.boundary != "none" else None,
        unknown=vocabulary.unknown,
        lower_case=vocabulary.lower_case,
        fused=run.experiment.data.form.fused,
        blank_lines="kept" if "kept" in blank_lines else None,
    )


def counts_sentence(run: Run) -> str:
    """Describes the tokens that figures count."""
    choices = policies(run)
    language = run.reading.language
    tokens = f"words (by the Moses tokenizer for {language})" if language else "words"
    words = {
        None: "characters" if run.lexicon.is_character_level else tokens,
        "split": "syntactic words (a fused form counts as the words in it)",
        "surface": "words as they are written (a fused form is one)",
        "kept": "syntactic words, and fused forms beside the words in them",
    }[choices.fused]
    marks = choices.boundary_marks
    boundaries = f"the {marks} boundaries" if marks != 1 else "the boundary"
    boundary = {
        "counted": f"{boundaries} after each sentence counted",
        "uncounted": f"{boundaries} after each sentence predicted but not counted",
        "none": "no boundaries, and the first word of the text not predicted",
    }[choices.boundary]
    if choices.blank_lines and choices.boundary != "none":
        boundary += ", blank lines being sentences without words"
    unknown = {
        "counted": "unknown words counted as <unk>",
        "skipped": "unknown words read as <unk> and not counted",
        "refused": "no unknown words",
    }[choices.unknown]
    sentence = f"{words}; {boundary}; {unknown}"
    return sentence.replace("word", "character") if run.lexicon.is_character_level else sentence


def run_fields(run: Run, sentences: Sequence[list[str]]) -> dict[str, Any]:
    """Returns the fields of passports of all kinds; `sentences` is the judged text."""
    leaves, model, lexicon = jax.tree.leaves(run.params), run.experiment.model, run.lexicon
    head, texts, workdir = run.experiment.head, run.seen_texts, Workdir(run.path)
    trained = run.lexicon if run.training_lexicon is None else run.training_lexicon
    of_training = figures.LexiconRecord(trained.words_set_digest(), len(trained))
    lexicons = [
        figures.LexiconRecord(words.words_set_digest(), len(words), words.digest())
        for words in (lexicon, *run.source_lexicons)
    ]
    over = head.normalised_over(lexicon)
    if run.experiment.vocabulary.subwords is not None:
        over = "all spellings in letters of the training text"
    classes = run.experiment.vocabulary.open_classes
    if classes:
        names = ", ".join(kind.name for kind in classes)
        over += f", among which {names} stand for all their strings"
    return {
        "normalised_over": over,
        "changes": tuple(change.to_json() for change in registry.changes_of(run)),
        "notes": model.warnings(lexicon),
        "lexicon": dataclasses.replace(lexicons[0], of_training=of_training),
        **{
            f"{name}_lexicon": record
            for name, record in zip(model.lexicon_names[1:], lexicons[1:], strict=True)
        },
        "trained_on": texts and texts.trained_on.about,
        "selected_on": texts and texts.selected_on.about,
        "not_known": texts and texts.not_known,
        "knowledge": texts and texts.knowledge,
        "overlap": texts and leakage.overlap_by_role(sentences, texts),
        "training": figures.TrainingRecord(
            seed=run.experiment.training.seed,
            recipe_sha256=workdir.recipe_digest(),
            recipe_but_seed=workdir.seedless_recipe_digest(),
            made_with=texts.made_with if texts else None,
            finished=workdir.is_finished(),
        ),
        "head": repr(head),
        "form": head.form_name(run.tables["head"]),
        "model": configuration.to_json(model),
        "vocabulary": configuration.to_json(run.experiment.vocabulary),
        "parameters": sum(math.prod(np.shape(leaf)) for leaf in leaves),
        "precision": ", ".join(sorted({str(leaf.dtype) for leaf in leaves})),
        "matmul_precision": PRECISION,
        "checkpoint": run.checkpoint,
        "started_from": workdir.start(),
        "versions": versions(),
        "revision": revision(),
        "command": tuple(sys.argv),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
    }


# ---------------------------------------- files of passports


def file_of(run: Run, passport: Passport, suffix: str = "") -> pathlib.Path:
    """Returns results/SPLIT.STATE.json, with part of a hash for texts and pairs given by path."""
    name = re.sub(r"[^\w.-]+", "_", passport.split)
    if ":" in passport.split:
        name += f"-{passport.data.sha256[:8]}"
    labels = (*(change.label for change in run.changes), suffix)
    parts = name, passport.policies.state, "-".join(filter(None, labels)), "json"
    return run.path / "results" / ".".join(filter(None, parts))


def check(folder: str | pathlib.Path):
    """Raises UserError if the folder of a run cannot hold results; makes and changes nothing."""
    if location.is_bucket(folder):  # only writing shows whether it can be written to
        return
    results = pathlib.Path(folder) / "results"
    # os.path's functions take any name; a name that is too long does not exist.
    place = results if os.path.exists(results) else results.parent
    is_file = os.path.exists(results) and not os.path.isdir(results)
    if is_file or (os.path.isdir(place) and not os.access(place, os.W_OK | os.X_OK)):
        raise UserError(f"{place} is not a folder that can be written to: judge a copy of the run.")


def write(
    run: Run, passport: Passport, scores: item_scores.Arrays | None = None, suffix: str = ""
) -> pathlib.Path:
    """Writes a passport into the run's results; replaces a passport of the same name atomically."""
    path = file_of(run, passport, suffix)
    if scores is not None:
        passport = dataclasses.replace(passport, scores=item_scores.digest(scores))
    text = strict_json.dumps(passport, indent=2, ensure_ascii=False) + "\n"
    try:
        with location.convert_errors(path):
            path.parent.mkdir(exist_ok=True)
            if scores is not None:
                item_scores.write(path, scores)
            atomic_writes.write_text(path, text)
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        raise UserError(
            f"{path} cannot be written ({error.strerror}): judge a copy of the run."
        ) from error
    return path


# ---------------------------------------- lines on the conditions of a figure


def unfinished(passport: Passport) -> list[str]:
    """Returns a line where a run was judged before the end of its training."""
    if passport.checkpoint is None or passport.training.finished is not False:
        return []
    return [f"! judged at step {passport.checkpoint:,}, before its training was finished"]


def _outside(passport):
    """Describes how many words of a text are outside the lexicon."""
    tokens, marks = passport.out_of_vocabulary, passport.unknown_tokens
    if not tokens:
        return "0 outside the lexicon" + (f" ({marks:,} written <unk>)" if marks else "")
    type_rate = passport.out_of_vocabulary_types / passport.types
    rates = f"{passport.out_of_vocabulary_rate:.2%} of words, {type_rate:.2%} of types"
    return f"{tokens:,} outside the lexicon ({rates})"


def seen_text_lines(passport: Passport) -> list[str]:
    """Returns lines about the texts that the model of a figure has seen, one a role."""
    overlap = passport.overlap
    if overlap is None:
        return ["trained on, selected on: not recorded"]
    lines = [f"in the training text: {overlap.trained_on}"]
    if figures.is_validation(passport.split):
        lines.append("selected on this text, as a validation text is for")
    else:
        lines.append(f"in the text that chose the checkpoint: {overlap.selected_on}")
    unknown = passport.not_known or ()
    return lines + [f"not known: the texts that {part} had seen" for part in unknown]


def warnings(leak: str | None) -> list[str]:
    """Returns the warning of a figure whose text the model saw: one line, or none."""
    return [f"  not a figure of unseen text: {leak}"] if leak else []


def prior_line(passport: PerplexityPassport | AccuracyPassport) -> str:
    return f"priors that saw this text: {', '.join(passport.priors_saw_this_text) or 'none'}"


def conditions(passport: PerplexityPassport) -> list[str]:
    """Returns lines on the text, the words that count, and what the model knew of them."""
    data, policies, source = passport.data, passport.policies, passport.source
    character = passport.counts.startswith("characters")
    word, sentence = ("character", "line") if character else ("word", "sentence")
    lines = [
        f"tokens: {passport.counts}",
        f"text: {data.path}, {data.sentences:,} {sentence}s, {data.words:,} {word}s, "
        f"{_outside(passport)}; state: {policies.state}; "
        f"normalised over {passport.normalised_over}",
    ]
    if policies.state == "carried" and source is None:
        choice = "" if policies.boundary == "none" else "; --state sentences empties it"
        lines.append(f"read on: each {sentence} begins with the state of the one before{choice}")
    unknown = sum(row.tokens for row in passport.figures.bands if row.band == UNKNOWN)
    rate = unknown / passport.tokens
    if passport.out_of_vocabulary == data.words:
        lines.append(f"! {describe_share(data.words, data.words, 'the text')}")
    elif rate >= _MANY_UNKNOWN:
        lines.append(
            f"! <unk>, which is easy to predict, is {rate:.0%} of the tokens: the perplexity is "
            "lower than with the words themselves"
        )
    if source is not None:
        outside = f"{source.out_of_vocabulary:,} outside the lexicon"
        lines.append(f"given: {source.path}, {source.words:,} words, {outside}")
    trained = {text.digest for text in passport.trained_on or ()}
    lines += [
        *seen_text_lines(passport),
        *(
            f"{', '.join(text.gave)} from {text.text} [{text.digest[:8]}]"
            for text in passport.knowledge or ()
            if text.digest not in trained
        ),
        prior_line(passport),
        *(line.strip() for line in warnings(passport.leak)),
        *unfinished(passport),
    ]
    lines += [change.sentence for change in passport.all_changes]
    if passport.figures.impossible:
        lines.append(passport.figures.impossible.sentence)
    return lines
