"""zoo bleu: scores of the translations of a split with their intervals, for one run or several."""

import argparse
import os
import pathlib

from zoo.commands import options
from zoo.errors import UserError


def add_bleu_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add(
        "results",
        nargs="+",
        metavar="DIR",
        help="folders of runs after translate --bleu, or the files of results that it wrote",
    )
    add("--split", default="test", metavar="NAME", help="default: %(default)s")
    add(
        "--samples",
        type=options.whole(1, 10**6),
        default=1000,
        help="resamples for intervals and tests; default: %(default)s",
    )
    add(
        "--by-length",
        type=options.whole(1),
        metavar="N",
        help="BLEU by source length instead: 1 to N words, N + 1 to 2 N, and so on",
    )
    add("--plot", metavar="FILE", help="with --by-length: the picture to write, .png, .pdf or .svg")


def run_bleu(arguments: argparse.Namespace):
    """Prints a table of scores, their 95 % intervals, and p of differences from the first run."""
    from zoo.evaluation import translation_quality
    from zoo.runs import output_files
    from zoo.runs.workdir import Workdir

    if arguments.plot and arguments.by_length is None:
        raise UserError(
            "--plot draws BLEU by length: give --by-length N, too, or leave --plot out."
        )
    if arguments.plot:
        from zoo.evaluation.reports import plot_style

        plot_style.check_file(arguments.plot)
    results = [translation_quality.read(path, arguments.split) for path in arguments.results]
    folder = pathlib.Path(arguments.results[0]).absolute()
    experiment = Workdir(folder if os.path.isdir(folder) else folder.parent.parent).experiment()
    corpus = experiment.vocabulary.read(experiment.data.as_written(), arguments.split)
    if arguments.by_length is not None:
        _by_length(arguments, results, experiment, corpus)
        return
    rows = translation_quality.compare(
        arguments.results, results, corpus.sentences, arguments.samples
    )
    output_files.show(translation_quality.table(rows, results[0][0]))


def _by_length(arguments, results, experiment, corpus):
    """Prints BLEU by the length of the source sentence, and draws it with --plot."""
    from zoo.evaluation import translation_quality
    from zoo.evaluation.reports import curve_plots
    from zoo.runs import output_files

    names = _names(arguments.results)
    translation_quality.check_results(names, results, corpus.sentences)
    lengths = [len(words) for words in experiment.source_of(corpus).sentences]
    rows = translation_quality.by_length(
        results, corpus.sentences, lengths, arguments.by_length, arguments.samples
    )
    signature = results[0][0]["figures"]["BLEU"]["signature"]
    output_files.show(translation_quality.length_table(names, rows), signature)
    if arguments.plot:
        spans = [f"{row.least}-{row.greatest}" for row in rows]
        curves = {
            name: [(row.scores[number], row.intervals[number]) for row in rows]
            for number, name in enumerate(names)
        }
        curve_plots.by_length(spans, [row.sentences for row in rows], curves, arguments.plot)


def _names(results):
    """Returns the runs' folder names for a table or picture; whole paths where two are equal."""
    paths = [pathlib.Path(result) for result in results]
    # A result is RUN/results/NAME.json; a folder is a run, or was given from within it.
    runs = [path.absolute().parent.parent if path.suffix == ".json" else path for path in paths]
    names = [run.name for run in runs]
    return names if "" not in names and len({*names}) == len(names) else [*map(str, results)]
