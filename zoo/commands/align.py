"""zoo align: word alignment of two files that are translations of each other, line by line."""

import argparse
import sys

from zoo.alignment.model1 import METHODS
from zoo.commands import options
from zoo.errors import UserError


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
    from zoo.sources import alignments

    options.check_outputs(arguments, output="the alignments", dictionary="the table")
    sources, targets = _pairs(arguments)
    links = _align(sources, targets, arguments.iterations, arguments.symmetrise)
    lines = [alignments.pharaoh(one) + "\n" for one in links]
    if arguments.output:
        output_files.write_lines(arguments.output, lines, "the alignments")
    else:
        sys.stdout.writelines(lines)
    if arguments.dictionary:
        entries = alignments.dictionary_lines(learn_dictionary(sources, targets, links))
        output_files.write_lines(arguments.dictionary, entries, "the dictionary")


def _pairs(arguments):
    """Reads both files; returns (source sentences, target sentences), each a list of words."""
    from zoo.sources import pairs

    if arguments.run:
        return _pairs_of(arguments)
    source, target = arguments.source, arguments.target
    if target is None:
        raise UserError("give two files, sources first, or --run DIR for the pairs of a run.")
    sides = []
    for path in (source, target):
        _, lines = pairs.read_lines(path)
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
