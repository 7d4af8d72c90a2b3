"""Evaluates a trained model: DIR [--split NAME] [--data PATH] ..."""

import argparse
import math
from collections.abc import Sequence

from zoo.commands import options
from zoo.data.batches import POLICIES
from zoo.errors import UserError
from zoo.evaluation import perplexity

_WEIGHT = options.number(0, 0.999999)


def add_evaluate_to(parser: argparse.ArgumentParser):
    """Adds the options of evaluation."""
    add = parser.add_argument
    options.add_folder_to(parser, "folder of a training run")
    add(
        "--split",
        action="append",
        default=[],
        help="a split to evaluate; may be repeated; default: all but train",
    )
    add(
        "--data",
        help="a file to evaluate instead of splits: text, CoNLL-U, a table of items, or pairs",
    )
    add(
        "--state",
        choices=POLICIES,
        help="state policy; default: the run's own, but sentences for tables of items and for the "
        "--surprisal of --data",
    )
    add("--surprisal", metavar="FILE", help="writes the surprisal of each word; for one text")
    add(
        "--minimal-pairs",
        action="append",
        default=[],
        metavar="FILE",
        help="minimal pairs in the format of CLAMS, BLiMP, or Marvin and Linzen, instead of splits "
        "unless --split is given; may be repeated",
    )
    add(
        "--pairs-table",
        metavar="FILE",
        help="the table of each pair's scores; default: beside the result",
    )
    add(
        "--unseen-weight",
        type=_unseen_weight,
        metavar="tune|NUMBER",
        help="also mixes the model with a uniform distribution over the words of the lexicon "
        "without training text; tune sets its weight on validation",
    )
    add("--no-scores", action="store_true", help="does not write the scores of single words")
    add(
        "--exact-match",
        action="store_true",
        help="answers the questions of the splits by greedy decoding, and counts correct answers",
    )
    add(
        "--dynamic",
        type=_dynamic,
        metavar="RULE[,RATE,DECAY[,EPSILON]]",
        help="trains the model on each segment of the text once it is scored (Krause et al. 2018); "
        "RULE is rms, or sgd with RATE and DECAY; EPSILON is of rms alone",
    )
    add("--grammar", metavar="FILE", help="with --exact-match: counts the answers that parse")
    add("--constrain", action="store_true", help="restricts answers to --grammar")
    options.add_to(parser)
    options.add_cache_to(parser)


def _dynamic(text: str) -> tuple:
    """Reads the argument of --dynamic: the fields of `DynamicEvaluation`, or the rule alone."""
    rule, *others = text.split(",")
    if rule not in ("rms", "sgd") or len(others) not in ((0, 2, 3) if rule == "rms" else (0, 2)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not rms, rms,RATE,DECAY[,EPSILON] or sgd,RATE,DECAY, such as "
            "sgd,0.1,0.001"
        )
    if not others:
        if rule == "sgd":
            raise argparse.ArgumentTypeError(
                "sgd has no usual rate and decay: give them, such as sgd,0.1,0.001"
            )
        return (rule,)
    rate, decay, *epsilon = others
    above_0 = options.number(0, 1e6, above=True)
    return rule, above_0(rate), options.number(0, 0.999)(decay), *map(above_0, epsilon)


def _unseen_weight(text: str) -> float:
    """Reads the weight of --unseen-weight, NaN for "tune"."""
    return math.nan if text == "tune" else _WEIGHT(text)


@perplexity.on_terminal()
def run_evaluate(arguments: argparse.Namespace):
    """Prints the figures and keeps each with its passport in DIR/results."""
    import numpy as np

    from zoo.evaluation import (
        best_words,
        exact_match,
        item_scores,
        leakage,
        minimal_pairs,
        passport,
        passport_text,
        sentence_scores,
    )
    from zoo.evaluation.dynamic_evaluation import RMS, DynamicEvaluation
    from zoo.runs import output_files

    folder = options.folder_of(arguments)
    passport.check(folder)
    options.check_outputs(arguments, surprisal="the table", pairs_table="the table")
    if arguments.pairs_table and len(arguments.minimal_pairs) != 1:
        raise UserError("--pairs-table is for the pairs of one file: give one --minimal-pairs.")
    run = options.run_of(folder, arguments).with_state(arguments.state)
    if arguments.dynamic and (arguments.minimal_pairs or arguments.exact_match):
        raise UserError("--dynamic is for texts: leave --minimal-pairs and --exact-match out.")
    if arguments.constrain:
        if arguments.grammar is None:
            raise UserError("--constrain needs a grammar: give --grammar FILE.")
        run = run.constrained(arguments.grammar)
    splits = arguments.split
    if not splits and not arguments.data and not arguments.minimal_pairs:
        splits = passport.unseen_splits(run)
    if arguments.surprisal and len(splits) + bool(arguments.data) != 1:
        raise UserError("--surprisal writes one text: give one --split NAME, or --data PATH.")

    run = options.with_cache(run, arguments.cache)
    if arguments.dynamic:
        rule, *others = arguments.dynamic
        own = DynamicEvaluation(rule, *others) if others else RMS
        run = run.with_dynamic(own)
    mixture = None
    if arguments.unseen_weight is not None:
        mixture = _mixture(run, arguments.unseen_weight)
    texts = passport.judge(
        run, splits, arguments.data or None, arguments.state, lines=bool(arguments.surprisal)
    )
    for judged in texts:
        if arguments.surprisal:  # before anything is printed: the reader may go, as head does
            best_words.write(
                arguments.surprisal, judged.given, judged.text, judged.scores, run.lexicon
            )
        if run.learns_from_text and judged.run.experiment.evaluation.state == "sentences":
            options.print_notes(
                [
                    "each sentence starts from an empty state, so that little of the text is left "
                    "to learn from: see --state carried"
                ]
            )
        options.print_notes(run.notes(judged.corpus.sentences))
        figures, result = passport.keep(judged, mixture, not arguments.no_scores)
        output_files.show(passport_text.describe(figures), f"  {result}")
        untrained = sentence_scores.warning(run.lexicon, figures["unknown_tokens"])
        options.print_notes([untrained])
        if arguments.exact_match:
            answers = exact_match.judge(run, judged.corpus, arguments.grammar)
            figures = passport.of_exact_match(run, judged.name, judged.corpus, answers)
            result = passport.write(run, figures, item_scores.of_answers(np.array(answers.correct)))
            output_files.show(exact_match.describe(judged.name, answers), f"  {result}")
    for path in arguments.minimal_pairs:
        pairs, scores = minimal_pairs.judge(run, path)
        sentences = [sentence for pair in pairs for sentence in pair[:2]]
        options.print_notes([*run.notes(sentences), run.share(sentences, path)])
        figures, result, table = minimal_pairs.keep(run, path, pairs, scores, arguments.pairs_table)
        output_files.show(minimal_pairs.describe(path, scores), f"  {result}", f"  {table}")
        options.print_notes(leakage.warnings(figures))


def _mixture(run, weight):
    """Returns the mixture that --unseen-weight asks for; prints a note if there is none."""
    from zoo.evaluation import mixtures

    mixture = mixtures.of_run(run, None if math.isnan(weight) else weight)
    if mixture is None:
        options.print_notes(["no word of the lexicon is without training text: nothing is mixed"])
    return mixture


def add_score_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo score`."""
    add = parser.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("text", metavar="FILE", help="text, a sentence a line; or CoNLL-U, or a table of items")
    add("--output", metavar="FILE", help="the tab-separated table to write; default: prints it")
    add("--nbest", action="store_true", help="FILE has n-best lists: id ||| hypothesis ||| ...")
    add(
        "--column",
        type=options.whole(1),
        metavar="N",
        help="the sentence is the N-th field of a line, separated by tabs or |||",
    )
    options.add_to(parser)
    options.add_cache_to(parser)


def run_score(arguments: argparse.Namespace):
    """Writes or prints the table of scores."""
    from zoo.evaluation import score_stream

    options.check_outputs(arguments, output="the table")
    run = options.with_cache(options.run_of(arguments.workdir, arguments), arguments.cache)
    score_stream.report(run, arguments.text, arguments.output, arguments.nbest, arguments.column)


def main(words: Sequence[str] | None = None):
    """Runs the script evaluate.py; `words` are its command line, by default the process's own."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_evaluate_to(parser)
    options.add_common_to(parser)
    run_evaluate(options.parse(parser, words))


# ---------------------------------------- zoo generate: samples text from a language model

# Default lengths of a text, in tokens.
_LENGTH, _LENGTH_OF_CHARACTERS = 30, 200
_RULE = "-" * 40
# Where a text of characters begins.
_BREAK = "\n"


def add_generate_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo generate`."""
    add = parser.add_argument
    options.add_folder_to(parser, "folder of a training run")
    add(
        "--temperature",
        type=options.number(0, 1e9),
        default=1.0,
        help="0: always the most probable word; default: %(default)s",
    )
    options.add_truncation_to(parser)
    options.add_cache_to(parser)
    add("--seed", type=options.whole(0), default=0, help="default: %(default)s")
    add(
        "--prompt",
        default="",
        metavar="TEXT",
        help="words that each text begins with; default: none, or a line break for a model of "
        "characters",
    )
    add("--count", type=options.whole(1), default=5, help="number of texts; default: %(default)s")
    add(
        "--length",
        type=options.whole(1),
        help="greatest number of words of a text after the prompt; default: "
        f"{_LENGTH}, or {_LENGTH_OF_CHARACTERS} for a model of characters",
    )
    add(
        "--spell",
        action="store_true",
        help="open vocabulary: words spelled letter by letter, by a head that spells",
    )
    add("--features", action="store_true", help="prints a word a line, with its features")


def run_generate(arguments: argparse.Namespace):
    """Prints the texts, one a line, or one a paragraph with --features.

    Texts of characters have lines of their own; a rule stands between them.
    """
    from zoo.decoding import open_vocabulary
    from zoo.decoding.generation import generate, prompt_words, with_features
    from zoo.errors import UserError
    from zoo.evaluation.run import Run
    from zoo.evaluation.sentence_scores import words_of
    from zoo.sources import moses

    run = options.with_cache(Run.load(options.folder_of(arguments)), arguments.cache)
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
        if any(value is not None for value in truncation.values()):
            raise UserError(
                "--spell draws letters, without truncation: leave out --top-k and --nucleus."
            )
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
