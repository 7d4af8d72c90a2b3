"""zoo compare, report, plot, sweep, rank, words and micro-report: tables and pictures of runs."""

import argparse
import os
import pathlib

from zoo.commands import options
from zoo.errors import UserError


def add_compare_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo compare`."""
    parser.add_argument(
        "workdirs",
        nargs="+",
        metavar="DIR",
        help="folders of evaluated runs, or records of runs: FILE.jsonl, FILE.jsonl:RUN",
    )
    parser.add_argument(
        "--parts",
        action="store_true",
        help="with figures and tests by the words' training counts, and under --unseen-weight",
    )
    parser.add_argument(
        "--split",
        action="append",
        default=[],
        help="only results on this split, as test or pairs:agreement-test; may be repeated",
    )


def run_compare(arguments: argparse.Namespace):
    """Prints the results of runs side by side."""
    from zoo.comparison.compare import compare
    from zoo.comparison.comparison import Wanted
    from zoo.runs import output_files

    output_files.show(compare(arguments.workdirs, arguments.parts, Wanted(splits=arguments.split)))


def add_report_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo report`."""
    add = parser.add_argument
    add(
        "workdirs",
        nargs="+",
        metavar="DIR",
        help="folders of runs, exports, or records of runs: FILE.jsonl, FILE.jsonl:RUN",
    )
    add(
        "-o",
        "--output",
        default="report.html",
        metavar="FILE",
        help="the page to write; default: %(default)s",
    )
    add("--split", help="the split whose first sentences are shown; default: the first test")
    add("--text", metavar="FILE", help="a text that is shown instead of a split")
    add(
        "--sentences",
        type=options.whole(1, 200),
        default=20,
        metavar="N",
        help="sentences that are shown; default: %(default)s",
    )
    options.add_label_to(parser)
    options.add_words_to(parser)


def run_report(arguments: argparse.Namespace):
    """Writes the page of runs."""
    from zoo.comparison import page_report

    if arguments.split and arguments.text:
        raise UserError("--split and --text exclude each other: give one of them.")
    options.check_outputs(arguments, output="the report")
    page_report.report(
        arguments.workdirs,
        arguments.output,
        arguments.split,
        arguments.text,
        arguments.sentences,
        arguments.label,
        load=lambda folder: options.run_with_words(folder, arguments),
    )


def add_plot_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo plot`."""
    add = parser.add_argument
    add(
        "workdirs",
        nargs="+",
        metavar="DIR",
        help="folders of runs, or records of runs: FILE.jsonl, FILE.jsonl:RUN",
    )
    add(
        "--of",
        choices=("curves", "bands", "agreement"),
        default="curves",
        help="learning curves, log-perplexity by the words' training counts, or accuracy on the "
        "pairs of zoo agreement; default: %(default)s",
    )
    add(
        "--against",
        choices=("step", "epoch", "minutes"),
        help="with curves: the horizontal axis; default: step",
    )
    add("--training", action="store_true", help="with curves: the training loss, too")
    add("--split", help="with bands: the text; default: the first test of all runs")
    options.add_picture_to(parser, "plot.png")


def run_plot(arguments: argparse.Namespace):
    """Draws what the runs' folders or records keep."""
    from zoo.comparison import agreement, bar_plots, learning_curves

    of, runs, file = arguments.of, arguments.workdirs, arguments.file
    curves = arguments.against or arguments.training
    if of != "curves" and curves:
        raise UserError(f"--against and --training are for learning curves: leave out --of {of}.")
    if of != "bands" and arguments.split:
        raise UserError("--split is for --of bands: give that, or leave --split out.")
    if of == "curves":
        against = arguments.against or "step"
        learning_curves.report(runs, file, against, arguments.training, arguments.label)
    elif of == "bands":
        bar_plots.plot_bands(runs, file, arguments.split, arguments.label)
    else:
        agreement.plot_kept(runs, file, arguments.label)


def add_sweep_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo sweep`."""
    add = parser.add_argument
    add("field", help="dotted name of a field, as for --set: vocabulary.features.0.count")
    add(
        "workdirs",
        nargs="+",
        metavar="DIR",
        help="folders of evaluated runs, or records of runs: FILE.jsonl, FILE.jsonl:RUN",
    )
    options.add_picture_to(parser, "sweep.png")


def run_sweep(arguments: argparse.Namespace):
    """Plots the results of runs against one field of their recipes."""
    from zoo.comparison import sweep

    sweep.report(arguments.field, arguments.workdirs, arguments.file, arguments.label)


def add_rank_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo rank`."""
    add = parser.add_argument
    add("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")
    add(
        "--contexts",
        type=options.whole(1),
        default=1024,
        help="rows of the matrix; default: %(default)s",
    )
    add("--split", default="validation", help="default: %(default)s")
    add("--file", default="rank.png", help="the picture to write: .png, .pdf or .svg")


def run_rank(arguments: argparse.Namespace):
    """Prints the ranks and plots the singular values."""
    from zoo.comparison import rank

    rank.report(arguments.workdirs, arguments.contexts, arguments.split, arguments.file)


def add_words_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo words`."""
    add = parser.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("--features", action="store_true", help="with the features of each word")
    add(
        "--tags",
        metavar="TEXT",
        help="prints instead how many words of a split or file were tagged by priors.Morphology's "
        "source, and how many were guessed",
    )
    add("--output", metavar="FILE", help="the table to write; default: prints it")


def run_words(arguments: argparse.Namespace):
    """Writes or prints the table of words, or prints how far its tags reach in a text."""
    from zoo.errors import UserError
    from zoo.evaluation import best_words, word_lists

    if arguments.tags is not None:
        if arguments.features or arguments.output:
            raise UserError("--tags prints shares alone: leave out --features and --output.")
        best_words.report(arguments.workdir, arguments.tags)
        return
    options.check_outputs(arguments, output="the table")
    word_lists.report(arguments.workdir, arguments.features, arguments.output)


def add_micro_report_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo micro-report`."""
    parser.add_argument("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")


def run_micro_report(arguments: argparse.Namespace):
    """Prints the models of the micro language beside the language itself."""
    from zoo.comparison import micro_report

    micro_report.report(arguments.workdirs)


# ---- zoo bleu: scores of the translations of a split with their intervals, for one run or several


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
        from zoo.comparison import plot_style

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
    from zoo.comparison import curve_plots
    from zoo.evaluation import translation_quality
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
