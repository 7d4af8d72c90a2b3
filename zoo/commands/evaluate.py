"""zoo evaluate, score, generate and words: what a trained run knows of a text, and of its words."""

import argparse
import itertools
import math

from zoo.commands import options
from zoo.commands.options import Option
from zoo.data.batches import POLICIES
from zoo.decoding import open_vocabulary
from zoo.decoding.generation import generate, prompt_words, with_features
from zoo.errors import UserError
from zoo.evaluation import (
    agreement,
    best_words,
    exact_match,
    minimal_pairs,
    mixtures,
    passport,
    passport_text,
    perplexity,
    score_stream,
    sentence_scores,
    surprisal,
    word_lists,
)
from zoo.evaluation.run import Run, splits_of
from zoo.evaluation.sentence_scores import words_of
from zoo.runs import output_files

_WEIGHT = options.number(0, 0.999999)


def _unseen_weight(text: str) -> float:
    """Reads the weight of --unseen-weight, NaN for "tune"."""
    return math.nan if text == "tune" else _WEIGHT(text)


EVALUATE = (
    options.RUN,
    Option("--split NAME ...", "a split to evaluate; default: all but train"),
    Option("--data FILE", "a text, CoNLL-U, table of items, or pairs to evaluate, not splits"),
    Option(
        "--state", "default: the run's own, but sentences for tables of items", choices=POLICIES
    ),
    Option(
        "--minimal-pairs FILE ...",
        "minimal pairs in the format of CLAMS, BLiMP, or Marvin and Linzen, instead of splits "
        "unless --split is given",
    ),
    Option("--agreement", "agreement pairs made from a treebank, instead of its text"),
    Option("--exact-match", "counts the questions of the splits that greedy decoding answers"),
    Option("--grammar FILE", "with --exact-match: counts the answers that parse"),
    Option("--constrain", "restricts answers to --grammar"),
    Option(
        "--unseen-weight tune|NUMBER",
        "also mixes the model with a uniform distribution over the words of the lexicon "
        "without training text; tune sets its weight on validation",
        _unseen_weight,
    ),
    options.DYNAMIC,
    *options.LEXICON,
    options.CACHE,
)


@perplexity.on_terminal()
def run_evaluate(arguments: argparse.Namespace):
    """Prints the figures and keeps each with its passport in DIR/results."""
    passport.check(arguments.folder)
    run = options.run_of(arguments.folder, arguments).with_state(arguments.state)
    if arguments.constrain:
        run = run.constrained(arguments.grammar)
    run = options.learning(run, arguments)
    splits = arguments.split
    if arguments.agreement:
        _agreement(run, arguments)
    else:
        if not (splits or arguments.data or arguments.minimal_pairs):
            splits = passport.unseen_splits(run)
        _texts(run, splits, arguments)
    for path in arguments.minimal_pairs:
        _minimal_pairs(run, path)


def _texts(run, splits, arguments):
    """Evaluates splits and the file of --data, and the answers to their questions."""
    mixture = None
    if arguments.unseen_weight is not None:
        mixture = _mixture(run, arguments.unseen_weight)
    for judged in passport.judge(run, splits, arguments.data or None, arguments.state):
        _note(run, judged)
        figures, result = passport.keep(judged, mixture)
        output_files.show(passport_text.describe(figures), f"  {result}")
        untrained = sentence_scores.warning(run.lexicon, figures["unknown_tokens"])
        options.print_notes([untrained])
        if arguments.exact_match:
            answers = exact_match.judge(run, judged.corpus, arguments.grammar)
            result = exact_match.keep(run, judged.name, judged.corpus, answers)
            output_files.show(exact_match.describe(judged.name, answers), f"  {result}")


def _note(run, judged):
    """Prints notes on a text and on how it is read."""
    if run.learns_from_text and judged.run.experiment.evaluation.state == "sentences":
        options.print_notes(
            [
                "each sentence starts from an empty state, so that little of the text is left "
                "to learn from: see --state carried"
            ]
        )
    options.print_notes(run.notes(judged.corpus.sentences))


def _agreement(run, arguments):
    """Evaluates the agreement pairs of splits, and of the treebank of --data."""
    splits = arguments.split
    if not arguments.data:
        splits = splits_of(arguments.folder, splits)
    judged = [agreement.judge(run, split) for split in splits]
    if arguments.data:
        judged.append(agreement.judge_file(run, arguments.data))
    for record, scores, pairs in judged:
        output_files.show(agreement.describe(record))
        output_files.show(*(f"  {file}" for file in agreement.keep(run, record, scores, pairs)))


def _minimal_pairs(run, path):
    """Evaluates the minimal pairs of a file."""
    pairs, scores = minimal_pairs.judge(run, path)
    sentences = [sentence for pair in pairs for sentence in pair[:2]]
    options.print_notes([*run.notes(sentences), run.share(sentences, path)])
    figures, result, table = minimal_pairs.keep(run, path, pairs, scores)
    output_files.show(minimal_pairs.describe(path, scores), f"  {result}", f"  {table}")
    options.print_notes(passport_text.warnings(figures))


def _mixture(run, weight):
    """Returns the mixture that --unseen-weight asks for; prints a note if there is none."""
    mixture = mixtures.of_run(run, None if math.isnan(weight) else weight)
    if mixture is None:
        options.print_notes(["no word of the lexicon is without training text: nothing is mixed"])
    return mixture


# ---------------------------------------- zoo score: log-probabilities of sentences and words


SCORE = (
    options.RUN,
    Option("file [FILE]", "text, a sentence a line; or CoNLL-U, or a table of items"),
    Option("--output FILE", "the tab-separated table to write; default: prints it"),
    Option("--words", "writes the surprisal of each word, beside the columns of its table"),
    Option("--split NAME", "with --words: a split of the run's data instead of FILE"),
    Option(
        "--state",
        "with --words: state policy; default: sentences for FILE, the run's own for a split",
        choices=POLICIES,
    ),
    Option("--nbest", "FILE has n-best lists: id ||| hypothesis ||| ..."),
    Option(
        "--column N", "the sentence is field N of a line, between tabs or |||", options.whole(1)
    ),
    options.DYNAMIC,
    *options.LEXICON,
    options.CACHE,
)


@perplexity.on_terminal()
def run_score(arguments: argparse.Namespace):
    """Writes or prints the table of scores."""
    if not (arguments.file or arguments.split):
        raise UserError("no text is named: give FILE, or --words --split NAME.")
    options.check_outputs(arguments, output="the table")
    run = options.learning(options.run_of(arguments.folder, arguments), arguments)
    if arguments.words:
        _score_words(run, arguments)
    else:
        nbest, column = arguments.nbest, arguments.column
        score_stream.report(run, arguments.file, arguments.output, nbest, column)


def _score_words(run, arguments):
    """Writes or prints the surprisal of each word of a text."""
    splits = [arguments.split] if arguments.split else []
    (judged,) = passport.judge(run, splits, arguments.file, arguments.state, lines=True)
    _note(run, judged)
    columns = surprisal.columns(judged.given)
    rows = surprisal.rows(judged.given, judged.text, judged.scores, run.lexicon)
    lines = map(output_files.line, itertools.chain([columns], rows))
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
    options.CACHE,
    Option("--seed N", "", options.whole(0), default=0),
    Option(
        "--prompt TEXT",
        "words that each text begins with; default: none, or a line break for a model of "
        "characters",
        default="",
    ),
    Option("--count N", "number of texts", options.whole(1), default=5),
    Option(
        "--length N",
        "greatest number of words of a text after the prompt; default: "
        f"{_LENGTH}, or {_LENGTH_OF_CHARACTERS} for a model of characters",
        options.whole(1),
    ),
    Option("--spell", "open vocabulary: words spelled letter by letter, by a head that spells"),
    Option("--features", "prints a word a line, with its features"),
)


def run_generate(arguments: argparse.Namespace):
    """Prints the texts, one a line, or one a paragraph with --features.

    Texts of characters have lines of their own; a rule stands between them.
    """
    from zoo.sources import moses

    run = options.with_cache(Run.load(arguments.folder), arguments.cache)
    model, vocabulary = run.experiment.language_model, run.experiment.vocabulary
    language = run.experiment.data.form.language
    if not arguments.prompt and run.lexicon.of_characters and run.lexicon.boundary is None:
        arguments.prompt = _BREAK if _BREAK in run.lexicon.ids else " "
    if not run.lexicon.of_characters:
        arguments.prompt = " ".join(words_of(arguments.prompt, run.reading))
    prompt = [prompt_words(arguments.prompt, run.lexicon, vocabulary)]
    unknown = None if arguments.spell else run.share(prompt, "the prompt")
    options.print_notes([*run.notes(prompt), unknown])
    names = ("prompt", "count", "length", "temperature", "seed")
    chosen = {name: getattr(arguments, name) for name in names}
    if arguments.length is None:
        chosen["length"] = _LENGTH_OF_CHARACTERS if run.lexicon.of_characters else _LENGTH
    truncation = {"top_k": arguments.top_k, "nucleus": arguments.nucleus}
    if arguments.spell:
        texts = open_vocabulary.generate(model, run.params, run.lexicon, vocabulary, **chosen)
    else:
        texts = generate(
            model, run.params, run.tables, run.lexicon, vocabulary, **chosen, **truncation
        )
    for number, words in enumerate(texts):
        if arguments.features:
            opened = vocabulary.open_words(run.lexicon)
            print(with_features(words, run.lexicon, opened), end="\n\n")
        elif run.lexicon.of_characters:
            print(*([_RULE] if number else []), "".join(words).removeprefix(_BREAK), sep="\n")
        else:
            print(moses.text(words, language))


# ---------------------------------------- zoo words: the lexicon of a run


WORDS = (
    options.RUN,
    Option("--features", "with the features of each word"),
    Option(
        "--tags TEXT",
        "prints instead how many words of a split or file were tagged by priors.Morphology's "
        "source, and how many were guessed",
    ),
    Option("--output FILE", "the table to write; default: prints it"),
)


def run_words(arguments: argparse.Namespace):
    """Writes or prints the table of words, or prints how far its tags reach in a text."""
    if arguments.tags is not None:
        best_words.report(arguments.folder, arguments.tags)
        return
    options.check_outputs(arguments, output="the table")
    word_lists.report(arguments.folder, arguments.features, arguments.output)
