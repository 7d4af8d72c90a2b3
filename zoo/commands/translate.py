"""zoo translate: translates sentences, by one run or an ensemble of runs."""

import argparse
import itertools
import os
import sys
from collections.abc import Iterator

from zoo import lazy
from zoo.alignment.model1 import METHODS
from zoo.commands import options, translation_input, translation_output
from zoo.errors import UserError, named

# Batches of lines that are read before any is written: enough to sort by length.
_BATCHES = 64
_TOKENIZERS = ("none", "13a", "intl", "char", "zh")
_LANGUAGE_WEIGHT = 0.1
# Options that only one of BeamSearch and Sampling takes, each named as the field.
_OF_THE_BEST = ("beam", "length_normalisation", "normaliser")
_OF_DRAWS = ("temperature", "top_k", "nucleus", "seed")


def add_translate_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo translate`."""
    add = parser.add_argument
    add(
        "paths",
        nargs="+",
        metavar="DIR",
        help="folders of runs, several for an ensemble; then a file to translate; default: stdin",
    )
    add("--split", metavar="NAME", help="translates a split of the first run's data")
    add(
        "--bleu",
        action="store_true",
        help="with --split: computes BLEU and chrF, and keeps them in the run's folder",
    )
    add(
        "--tokenizer", choices=_TOKENIZERS, help="with --bleu: sacrebleu's tokenizer; default: none"
    )
    add("--output", metavar="FILE", help="file of translations to write; default: prints them")
    add(
        "--dictionary",
        metavar="FILE",
        help="replaces unknown words by a table of source word, tab, target word, as written by "
        "align --dictionary",
    )
    add(
        "--unknowns",
        choices=("marks", "attention", "keep"),
        help="how the source word of an unknown word is found: by the run's marks or by attention; "
        "keep: unknown words stay; default: marks if the run has them, else attention if there is "
        "a dictionary",
    )
    add(
        "--alignments",
        metavar="FILE",
        help="file of links to write: the source word that each word attends to most, a line a "
        "hypothesis, as 0-0 2-1",
    )
    add(
        "--plot-attention",
        metavar="FILE",
        help="plots the attention weights of one sentence: .png, .pdf or .svg",
    )
    add(
        "--plot-gradients",
        metavar="FILE",
        help="plots how much each word depends on each source word of one sentence, by gradients, "
        "with or without attention: .png, .pdf or .svg",
    )
    add(
        "--beam",
        type=options.whole(1, 10_000),
        help="beam size; 1 is greedy search; default 12",
    )
    add(
        "--nbest",
        type=options.whole(1, 10_000),
        metavar="N",
        help="writes the N best hypotheses of each sentence",
    )
    add(
        "--nbest-format",
        choices=("moses", "plain"),
        help="moses: id ||| words ||| features ||| score; plain: words, a blank line after each "
        "list; default: moses",
    )
    add(
        "--length-normalisation",
        type=options.number(0, 7),
        metavar="A",
        help="ranks by log p / length^A; default 0",
    )
    add(
        "--normaliser",
        choices=("length", "gnmt"),
        help="what --length-normalisation divides by; gnmt: (5 + length) / 6; default: length",
    )
    add(
        "--sample",
        action="store_true",
        help="samples translations instead of searching for the best; --nbest N for each sentence",
    )
    add(
        "--temperature",
        type=options.number(0, 1e9),
        metavar="T",
        help="with --sample: temperature of the softmax; default 1",
    )
    options.add_truncation_to(parser)
    add("--seed", type=options.whole(0), help="with --sample: seed; default 0")
    add(
        "--shortest",
        type=options.whole(1, 100_000),
        default=1,
        help="least number of tokens, with the boundary; default: %(default)s",
    )
    add(
        "--longest",
        type=options.whole(1, 100_000),
        default=200,
        help="greatest number of tokens, with the boundary; default: %(default)s",
    )
    add(
        "--longest-ratio",
        type=options.number(0, 1e6, above=True),
        default=2.0,
        metavar="R",
        help="greatest number of tokens for a source of n words: R * n + 10; default 2",
    )
    add(
        "--batch",
        type=options.whole(1, 100_000),
        default=32,
        help="sentences of a batch; default: %(default)s",
    )
    add(
        "--average",
        choices=("probabilities", "logs"),
        default="probabilities",
        help="what an ensemble averages; default: %(default)s",
    )
    add(
        "--language-model",
        metavar="DIR",
        help="a language model of the same words, whose log-probability is added to the scores",
    )
    add(
        "--language-weight",
        type=options.number(0, 1e9),
        metavar="W",
        help=f"weight of --language-model; default {_LANGUAGE_WEIGHT}",
    )


def run_translate(arguments: argparse.Namespace):
    """Prints or writes the translations in the order of the lines; an empty line stays empty."""
    _check(arguments)
    folders, file = _folders_and_file(arguments.paths)
    if arguments.split and file:
        raise UserError(f"--split {arguments.split} and {file} are two texts: give one of them.")
    _check_files(folders[0], arguments)
    search = _search(arguments)
    translator = _translator(folders, arguments)
    restoring = _restoring(translator, arguments)
    if arguments.bleu:
        _judge(translator, search, restoring, arguments)
        return
    sources = translation_input.read(translator, file, arguments.split)
    for option in ("plot_attention", "plot_gradients"):
        if getattr(arguments, option):
            sources = translation_input.only_one(sources, option)
    translations = _translations(translator, search, restoring, sources, arguments)
    translation_output.write(translations, translator, arguments)


def _search(arguments):
    """Returns the beam search, or the sampling, that the options describe."""
    from zoo.decoding import BeamSearch, Sampling

    kind, own = (Sampling, _OF_DRAWS) if arguments.sample else (BeamSearch, _OF_THE_BEST)
    given = {name: getattr(arguments, name) for name in ("nbest", "shortest", "longest", *own)}
    return kind(**{name: value for name, value in given.items() if value is not None})


def _translator(folders, arguments):
    """Loads the runs of the folders, and the language model if there is one."""
    from zoo.evaluation.run import Run
    from zoo.evaluation.translators import Translator

    other, weight = arguments.language_model, arguments.language_weight
    return Translator(
        tuple(map(Run.load, folders)),
        arguments.average,
        Run.load(other) if other else None,
        _LANGUAGE_WEIGHT if weight is None else weight,
    )


def _check(arguments):
    """Raises UserError for options that contradict each other."""
    if arguments.bleu and not arguments.split:
        raise UserError("--bleu needs references: give --split NAME, as in --split test.")
    for option, needed in (
        ("tokenizer", "bleu"),
        ("nbest_format", "nbest"),
        ("language_weight", "language_model"),
    ):
        if getattr(arguments, option) is not None and not getattr(arguments, needed):
            option, needed = (name.replace("_", "-") for name in (option, needed))
            raise UserError(f"--{option} is for --{needed}: give both, or leave it out.")
    if arguments.unknowns == "keep" and arguments.dictionary:
        raise UserError(
            "--dictionary replaces unknown words, and --unknowns keep leaves them: give one of "
            "them."
        )
    for option in _OF_THE_BEST if arguments.sample else _OF_DRAWS:
        if getattr(arguments, option) is not None:
            option = option.replace("_", "-")
            other = "a search, and --sample draws" if arguments.sample else "draws"
            do = "leave one of them out" if arguments.sample else "give --sample, too"
            raise UserError(f"--{option} is for {other}: {do}.")
    if arguments.bleu and arguments.sample:
        raise UserError("--bleu evaluates the best translations found: leave --sample out.")
    others = ("nbest", "output", "alignments", "plot_attention", "plot_gradients")
    if arguments.bleu and any(getattr(arguments, option) for option in others):
        raise UserError(
            "--bleu evaluates the best hypothesis of each sentence and keeps it beside the run: "
            "leave --nbest, --output, --alignments, --plot-attention and --plot-gradients out."
        )


def _check_files(folder, arguments):
    """Raises UserError if an output file cannot be written."""
    from zoo.evaluation import passport

    if arguments.bleu:
        passport.check(folder)
    options.check_outputs(
        arguments,
        output="the translations",
        alignments="the alignments",
        plot_attention="the picture",
        plot_gradients="the picture",
    )
    for file in filter(None, (arguments.plot_attention, arguments.plot_gradients)):
        from zoo.comparison import plot_style

        plot_style.check_file(file)


def _folders_and_file(paths: list[str]) -> tuple[list[str], str | None]:
    """Returns (the folders of runs, the file after them or None)."""
    if len(paths) > 1 and not os.path.isdir(paths[-1]):
        return paths[:-1], paths[-1]
    return paths, None


def _translations(
    translator, search, restoring, sources, arguments
) -> Iterator[list[list[translation_output.Translation]]]:
    """Yields the translations of some sources at a time, with a progress bar; then prints notes on
    unknown words and on translations that were cut off."""
    from zoo.evaluation import sentence_scores

    with lazy.extra():
        from tqdm import tqdm

    missing: dict[str, int] = {}
    words = read_lines = cut = total = 0
    with tqdm(unit=" sentences", file=sys.stderr, disable=None) as bar:
        while some := list(itertools.islice(sources, arguments.batch * _BATCHES)):
            words += sum(map(len, some))
            for word, count in translator.unknown(some).items():
                missing[word] = missing.get(word, 0) + count
            read = some if restoring is None else restoring.annotate(some)
            hypotheses = translator.translate(
                read,
                search,
                arguments.batch,
                bar.update,
                ratio=arguments.longest_ratio,
                first_number=read_lines,
            )
            read_lines += len(hypotheses)
            total += sum(map(len, hypotheses))
            cut += sum(not one.complete for best in hypotheses for one in best)
            yield [
                [
                    translation_output.Translation(
                        one, _words(translator, restoring, one, given), given, seen
                    )
                    for one in best
                ]
                for given, seen, best in zip(some, read, hypotheses, strict=True)
            ]
    if missing:
        told = sentence_scores.share(words, sum(missing.values()), "the text")
        options.print_notes([f"{told}: {named([*missing])}"])
    if cut:
        options.print_notes(
            [
                f"{cut:,} of {total:,} translations are cut off at their greatest length: raise "
                "--longest-ratio, and --longest if it is less, to let them end"
            ]
        )


def _restoring(translator, arguments):
    """Returns the replacement of unknown words, for a run that marks them or where an option asks
    for it; else None."""
    from zoo.alignment import PositionalAll
    from zoo.evaluation import translators
    from zoo.evaluation.translators import Restoring
    from zoo.sources import pairs

    for option in ("alignments", "plot_attention"):
        if getattr(arguments, option):
            translators.check(translator, f"--{option.replace('_', '-')}")
    dictionary, by = arguments.dictionary, arguments.unknowns
    if dictionary is None and by is None and translator.runs[0].experiment.data.unknowns is None:
        return None
    restoring = Restoring(translator, pairs.read_dictionary(dictionary) if dictionary else {}, by)
    if (
        (arguments.alignments or arguments.plot_attention or arguments.plot_gradients)
        and isinstance(restoring.strategy, PositionalAll)
        and restoring.way == "marks"
    ):
        raise UserError(
            "this run's marks of unknown words take part in attention, and are removed from "
            "translations: give --unknowns keep for alignments or a picture of this run."
        )
    return restoring


def _words(translator, restoring, hypothesis, source) -> list[str]:
    """Returns the words of a hypothesis, its unknown words replaced."""
    if restoring is None:
        return translator.words(hypothesis)
    return restoring.words(hypothesis, source)


def _judge(translator, search, restoring, arguments):
    """Prints BLEU and chrF of a split, and keeps them with the hypotheses and a passport."""
    from zoo.evaluation import translation_quality
    from zoo.runs import output_files

    run, split = translator.runs[0], arguments.split
    corpus = translator.pairs(split)
    sources = iter(run.experiment.source_of(corpus).sentences)
    hypotheses = [
        " ".join(of_sentence[0].words if of_sentence else [])
        for some in _translations(translator, search, restoring, sources, arguments)
        for of_sentence in some
    ]
    references = [" ".join(words) for words in corpus.sentences]
    tokenizer = arguments.tokenizer or "none"
    scores = translation_quality.figures(hypotheses, references, tokenizer)
    how = translation_quality.decoding(
        translator, search, restoring and restoring.described(), arguments.longest_ratio
    )
    figures = translation_quality.of_run(run, split, corpus, tokenizer, scores, how)
    paths = translation_quality.write(run, figures, hypotheses)
    output_files.show(
        translation_quality.describe(split, figures), *(f"  {path}" for path in paths)
    )


# ---- zoo align: word alignment of two files that are translations of each other, line by line


def add_align_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("source", nargs="?", metavar="SOURCE", help="sentences, one a line, words between blanks")
    add(
        "target",
        nargs="?",
        metavar="TARGET",
        help="the translation of each line of SOURCE, on the same line",
    )
    add("--run", metavar="DIR", help="instead of files: the training pairs of a run")
    add("--output", metavar="FILE", help="the alignments to write; default: prints them")
    add(
        "--dictionary",
        metavar="FILE",
        help="writes each source word with its most frequent translation",
    )
    add(
        "--symmetrise",
        choices=METHODS,
        default="grow-diag",
        help="how the links of both directions are combined; default: %(default)s",
    )
    add(
        "--iterations",
        type=options.whole(1, 1000),
        default=5,
        metavar="N",
        help="steps of EM; default: %(default)s",
    )
    add("--lower-case", action="store_true", help="ignores the case of letters")


def run_align(arguments: argparse.Namespace):
    """Writes the links of each pair of sentences, a line a pair; progress goes to stderr."""
    from zoo.alignment import learn_dictionary
    from zoo.runs import output_files
    from zoo.sources import pairs

    options.check_outputs(arguments, output="the alignments", dictionary="the table")
    sources, targets = _pairs(arguments)
    links = _align(sources, targets, arguments.iterations, arguments.symmetrise)
    lines = [pairs.pharaoh(one) + "\n" for one in links]
    if arguments.output:
        output_files.write_lines(arguments.output, lines, "the alignments")
    else:
        sys.stdout.writelines(lines)
    if arguments.dictionary:
        dictionary = learn_dictionary(sources, targets, links)
        entries = [f"{source}\t{target}\n" for source, target in dictionary.items()]
        output_files.write_lines(arguments.dictionary, entries, "the dictionary")


def _pairs(arguments):
    """Reads both files; returns (source sentences, target sentences), each a list of words."""
    from zoo.sources import files

    if arguments.run:
        return _pairs_of(arguments)
    source, target = arguments.source, arguments.target
    if target is None:
        raise UserError("give two files, sources first, or --run DIR for the pairs of a run.")
    sides = []
    for path in (source, target):
        lines = files.lines(files.read(path)[1])
        lines = [line.lower() for line in lines] if arguments.lower_case else lines
        sides.append([[*map(sys.intern, line.split())] for line in lines])
    sources, targets = sides
    if len(sources) != len(targets):
        raise UserError(
            f"{source} has {len(sources):,} lines and {target} {len(targets):,}: give files whose "
            "lines are translations of each other."
        )
    return sources, targets


def _pairs_of(arguments):
    """Reads the training pairs of a run, unknown words as they are written."""
    from zoo.runs.workdir import Workdir

    if arguments.source:
        raise UserError(f"--run {arguments.run} has pairs of its own: leave the files out.")
    experiment = Workdir(arguments.run).experiment()
    corpus = experiment.vocabulary.read(experiment.data.as_written(), "train")
    sides = experiment.source_of(corpus), corpus
    return [(side.lower_cased() if arguments.lower_case else side).sentences for side in sides]


def _align(sources, targets, iterations, method):
    """Returns the links of each pair, symmetrised from the models of both directions."""
    from zoo.alignment import Model1, symmetrise

    def report(direction, words):
        def progress(step, log_likelihood):
            print(
                f"{direction}, step {step} of {iterations}: "
                f"{log_likelihood / max(1, words):.4f} nats per word",
                file=sys.stderr,
            )

        return progress

    sizes = [sum(map(len, side)) for side in (sources, targets)]
    forward = Model1.train(sources, targets, iterations, report("target given source", sizes[1]))
    there = forward.align(sources, targets)
    del forward
    backward = Model1.train(targets, sources, iterations, report("source given target", sizes[0]))
    back = [[(i, j) for j, i in links] for links in backward.align(targets, sources)]
    return [symmetrise(a, b, method) for a, b in zip(there, back, strict=True)]
