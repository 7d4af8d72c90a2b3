"""zoo evaluate, score, generate and words: what a trained run knows of a text, and of its words."""

import argparse
import itertools
import math
import sys
from collections.abc import Iterator

from zoo.data.batches import POLICIES
from zoo.decoding.generation import format_features
from zoo.errors import UserError
from zoo.lab.commands import options
from zoo.lab.evaluation import passport, perplexity, score_stream, scored_texts, surprisal
from zoo.lab.evaluation.agreement import Agreement
from zoo.lab.evaluation.changes import registry
from zoo.lab.evaluation.changes.cache import Cache
from zoo.lab.evaluation.changes.constraint import Constraint
from zoo.lab.evaluation.exact_match import ExactMatch
from zoo.lab.evaluation.load import LoadedModel
from zoo.lab.evaluation.minimal_pairs import MinimalPairs
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.scored_texts import Perplexity
from zoo.lab.evaluation.suites import Suites
from zoo.lab.evaluation.unknown_words import unknown_notes, unknown_share
from zoo.lab.options import Option, has_any
from zoo.lab.runs import output_files
from zoo.lab.runs.workdir import Workdir
from zoo.lab.table import format_for_terminal, tsv_line

_TOKENIZE = Option(
    "--tokenize LANGUAGE", "splits texts by the Moses tokenizer for runs on tokenised text"
)
METRICS = (Agreement(), Perplexity(), ExactMatch(), MinimalPairs(), Suites())
EVALUATE = (
    options.RUN,
    Option("--split NAME ...", "a split to evaluate; default: all but train"),
    Option("--data FILE", "a text, CoNLL-U, table of items, or pairs to evaluate, not splits"),
    Option("--state", "default: the run's own; sentences or items of tables", choices=POLICIES),
    *(option for metric in METRICS for option in metric.options),
    *(option for kind in registry.KINDS for option in kind.options),
    _TOKENIZE,
)


def _load(arguments, kinds, state=None):
    """Loads the run of DIR with the changes that the options ask for, and tells notes on it."""
    run = Run.load(arguments.folder).with_state(state)
    if arguments.tokenize is not None:
        run = run.with_tokenizer(arguments.tokenize)
    run = registry.apply(run, arguments, kinds)
    options.print_notes([*run.changed_sources, *(change.note for change in run.changes)])
    return run


@perplexity.on_terminal()
def run_evaluate(arguments: argparse.Namespace):
    """Prints the figures and keeps each with its passport in DIR/results."""
    passport.check(arguments.folder)
    run = _load(arguments, registry.KINDS, arguments.state)
    for metric in METRICS:
        if metric.needs_option and not has_any(arguments, metric.options):
            continue
        for judgement in metric.judge(run, arguments):
            options.print_notes(judgement.notes)
            output_files.show(judgement.description, *(f"  {file}" for file in judgement.keep()))
            options.print_notes(judgement.warnings)


# ---------------------------------------- zoo score: log-probabilities of sentences and words


# A grammar is for answers.
_SCORED = tuple(kind for kind in registry.KINDS if kind is not Constraint)
SCORE = (
    options.RUN,
    Option("file [FILE]", "text, a sentence a line; or CoNLL-U, or a table of items"),
    Option("--output FILE", "the tab-separated table to write; default: prints it"),
    Option("--words", "writes the surprisal of each word, beside the columns of its table"),
    Option("--split NAME", "with --words: a split of the run's data instead of FILE"),
    Option(
        "--state",
        "with --words: state policy; default: sentences or items of FILE, the run's own of a split",
        choices=POLICIES,
    ),
    Option("--nbest", "FILE has n-best lists: id ||| hypothesis ||| ..."),
    Option(
        "--column N", "the sentence is field N of a line, between tabs or |||", options.integer(1)
    ),
    Option(
        "--base B",
        "logarithms to base B, 10 as in ARPA files, and a last line of sums; default: e",
        options.number(1, 1e6, above=True),
    ),
    *(option for kind in _SCORED for option in kind.options),
    _TOKENIZE,
)


@perplexity.on_terminal()
def run_score(arguments: argparse.Namespace):
    """Writes or prints the table of scores."""
    if not (arguments.file or arguments.split):
        raise UserError("no text is named: give FILE, or --words --split NAME.")
    options.check_outputs(arguments, output="the table")
    run = _load(arguments, _SCORED)
    if arguments.words:
        _score_words(run, arguments)
    else:
        form = arguments.nbest, arguments.column, arguments.base
        stream = score_stream.Stream(run, arguments.file, *form)
        options.write(stream.lines(), arguments.output, "the table")
        options.print_notes(stream.notes())


def _score_words(run, arguments):
    """Writes or prints the surprisal of each word of a text."""
    splits = [arguments.split] if arguments.split else []
    (scored,) = scored_texts.score(run, splits, arguments.file, arguments.state, lines=True)
    source = arguments.file or arguments.split
    share = unknown_share(run, scored.corpus.sentences, source)
    options.print_notes([*scored.notes, share, surprisal.critical_note(run, scored.tokenized)])
    columns = surprisal.columns(scored.tokenized)
    rows = surprisal.rows(scored.tokenized, scored.text, scored.scores, run.lexicon)
    lines: Iterator[str] = map(tsv_line, itertools.chain([columns], rows))
    if arguments.output is None and sys.stdout.isatty():
        lines = format_for_terminal(columns, [*rows])
    options.write(lines, arguments.output, "the table")


# ---------------------------------------- zoo generate: samples text from a language model

# Default lengths of a text, in tokens.
_LENGTH, _LENGTH_OF_CHARACTERS = 30, 200
_RULE = "-" * 40
# Where a text of characters begins.
_BREAK = "\n"


GENERATE = (
    options.RUN,
    Option("--temperature T", "0: the most probable words", options.number(0, 1e9), default=1.0),
    *options.TRUNCATION,
    *Cache.options,
    Option("--seed N", "", options.integer(0), default=0),
    Option(
        "--prompt TEXT",
        "words that each text begins with; default: none, or a line break for a model of "
        "characters",
        default="",
    ),
    Option("--count N", "number of texts", options.integer(1), default=5),
    Option(
        "--length N",
        "greatest number of words of a text after the prompt; default: "
        f"{_LENGTH}, or {_LENGTH_OF_CHARACTERS} for a model of characters",
        options.integer(1),
    ),
    Option("--spell", "open vocabulary: words spelled letter by letter, by a head that spells"),
    Option("--features", "prints a word a line, with its features"),
)


def run_generate(arguments: argparse.Namespace):
    """Prints the texts, one a line or paragraph; a rule stands between texts of characters."""
    run = registry.apply(LoadedModel.load(arguments.folder), arguments, [Cache])
    options.print_notes(change.note for change in run.changes)
    is_character_level, settings = run.lexicon.is_character_level, vars(arguments)
    if not arguments.prompt and is_character_level and run.lexicon.boundary is None:
        settings["prompt"] = _BREAK if _BREAK in run.lexicon.ids else " "
    if arguments.length is None:
        settings["length"] = _LENGTH_OF_CHARACTERS if is_character_level else _LENGTH
    prompt = [run.words_in(arguments.prompt)]
    unknown = None if arguments.spell else unknown_share(run, prompt, "the prompt")
    options.print_notes([*unknown_notes(run, prompt), unknown])
    names = ("prompt", "count", "length", "temperature", "seed", "spell")
    truncation = () if arguments.spell else ("top_k", "nucleus")
    texts = run.draw(**{name: settings[name] for name in (*names, *truncation)})
    empty = sum(len(words) == len(prompt[0]) for words in texts)
    if empty:
        note = f"{empty:,} of {len(texts):,} texts end with the prompt: the next word is"
        change = "give another --prompt, --seed or --temperature"
        options.print_notes([f"{note} {run.lexicon.boundary}; {change}"])

    def text(number, words):
        """Formats a sampled text."""
        if arguments.features:
            open_words = run.experiment.vocabulary.open_words(run.lexicon)
            return f"{format_features(words, run.lexicon, open_words)}\n\n"
        if is_character_level:
            rule = f"{_RULE}\n" if number else ""
            return rule + "".join(words).removeprefix(_BREAK) + "\n"
        return f"{run.detokenize(words)}\n"

    options.write(itertools.starmap(text, enumerate(texts)), None, "the texts")


# ---------------------------------------- zoo words: the lexicon of a run


WORDS = (
    options.RUN,
    Option("--features", "with the features of each word"),
    Option("--output FILE", "the table to write; default: prints it"),
)


def run_words(arguments: argparse.Namespace):
    """Writes or prints the table of words."""
    options.check_outputs(arguments, output="the table")
    lexicon = Workdir(arguments.folder).lexicon()
    counts = lexicon.counts if lexicon.has_counts else [None] * len(lexicon)
    columns: tuple[str, ...] = ("word", "training_count")
    rows: list[tuple] = [*zip(lexicon.words, counts, strict=True)]
    if arguments.features:
        if not lexicon.feature_names:
            raise UserError(
                f"the words of {arguments.folder} have no features: leave --features out."
            )
        columns = (*columns, "features")
        rows = [(*row, _features(lexicon.features_of(word))) for word, row in enumerate(rows)]
    options.write(map(tsv_line, (columns, *rows)), arguments.output, "the table")


def _features(values) -> str:
    """Formats a word's features, with values unless they are 1."""
    return " ".join(
        name if math.isclose(value, 1) else f"{name}={value:.7g}" for name, value in values.items()
    )
