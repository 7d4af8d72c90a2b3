"""zoo compare: runs side by side, as text, picture or page."""

import argparse
import functools

from zoo.errors import UserError
from zoo.lab.commands import options
from zoo.lab.evaluation.changes.new_lexicon import ADDED_WORDS
from zoo.lab.options import Option

_SENTENCES = 20


COMPARE = (
    Option(
        "runs DIR ...",
        "folders of runs, exports, records of runs (FILE.jsonl, FILE.jsonl:RUN), or results "
        "that translate --bleu wrote",
    ),
    Option("--split NAME ...", "only results on this split, as test or pairs:agreement-test"),
    Option(
        "--by",
        "figures and tests by the words' training counts, and under --unseen-weight; accuracy "
        "on agreement pairs by distance",
        choices=("frequency", "distance"),
    ),
    Option("--plot FILE", "draws learning curves, or what --by asks for"),
    Option(
        "--against",
        "the axis of learning curves; default: step",
        choices=("step", "epoch", "minutes"),
    ),
    Option("--training", "draws the training loss, too"),
    Option("--page FILE", "writes a page: curves, figures, a text word by word, differences"),
    Option("--text FILE", "with --page: a text that is shown instead of a split"),
    Option(
        "--sentences N",
        f"with --page: sentences shown; default: {_SENTENCES}",
        options.integer(1, 200),
    ),
    options.LABEL,
    *ADDED_WORDS,
    Option(
        "--micro",
        "judges models of the micro language beside the language itself; draws training.png, "
        "bands.png and agreement.png in the folder of the first run's folder",
    ),
)


def run_compare(arguments: argparse.Namespace):
    """Prints, draws or writes the runs side by side."""
    if arguments.page:
        _write_page(arguments)
    elif arguments.micro:
        from zoo.lab import micro_report
        from zoo.lab.evaluation import perplexity

        with perplexity.on_terminal():
            micro_report.report_micro(arguments.runs)
    elif arguments.plot:
        _plot(arguments)
    else:
        _print(arguments)


def _one_split(arguments) -> str | None:
    """Returns the split that is named; raises UserError if there are several."""
    if len(arguments.split) > 1:
        raise UserError("--split is given twice, and one text is shown: give one of them.")
    return arguments.split[0] if arguments.split else None


def _write_page(arguments):
    """Writes the page of --page."""
    from zoo.lab.comparison import page_report

    options.check_outputs(arguments, page="the report")
    page_report.write_page(
        arguments.runs,
        arguments.page,
        _one_split(arguments),
        arguments.text,
        arguments.sentences or _SENTENCES,
        arguments.label,
        load=functools.partial(options.run_with_words, arguments=arguments),
    )


def _plot(arguments):
    """Draws learning curves, or the figures that --by asks for."""
    from zoo.lab.comparison import bar_plots, learning_curves

    runs, file, label = arguments.runs, arguments.plot, arguments.label
    if arguments.by == "frequency":
        bar_plots.plot_bands(runs, file, _one_split(arguments), label)
    elif arguments.by == "distance":
        bar_plots.plot_agreement(runs, file, _one_split(arguments), label)
    else:
        axis = arguments.against or "step"
        learning_curves.plot_curves(runs, file, axis, arguments.training, label)


def _print(arguments):
    """Prints the tables of kept figures, and of the scores of kept translations."""
    from zoo.lab.comparison import text_report, translations
    from zoo.lab.evaluation import results
    from zoo.lab.runs import output_files

    translated = translations.find_results(arguments.runs, arguments.split)
    folders = [run for run in arguments.runs if not translations.is_result_file(run)]
    has_figures = not translated or any(map(results.judged_splits, folders))
    has_figures = has_figures or bool(results.read_answers(folders))
    if has_figures:
        in_parts = arguments.by == "frequency"
        output_files.show(text_report.tables(folders, in_parts, arguments.split))
    for split, results_by_run in translated.items():
        try:
            lines = translations.score_table(results_by_run, split)
        except UserError as error:
            if not has_figures:
                raise
            options.print_notes([f"translations of {split}: {error}"])
        else:
            output_files.show(*[""] * has_figures, lines)
