"""zoo compare: runs side by side, as text, picture or page; judged anew on another text."""

import argparse
import functools
import os
import pathlib
from typing import Any

from zoo.commands import options
from zoo.commands.options import Option
from zoo.errors import UserError

# Words of a source sentence that are one group of --by length.
_LENGTHS = 5
_SENTENCES = 20
# Those of zoo.data.batches, which imports JAX: --help needs none.
_POLICIES = ("carried", "sentences")
_FILES = "translation-*.json"


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
        "on agreement pairs by distance; BLEU by the length of the source",
        choices=("frequency", "distance", "length"),
    ),
    Option("--plot FILE", "draws learning curves, or what --by or --sweep asks for"),
    Option(
        "--against",
        "the axis of learning curves; default: step",
        choices=("step", "epoch", "minutes"),
    ),
    Option("--training", "draws the training loss, too"),
    Option(
        "--sweep FIELD",
        "draws the results against one number of the recipes, as vocabulary.features.0.count; "
        "--plot default: sweep.png",
    ),
    Option("--page FILE", "writes a page: curves, figures, a text word by word, differences"),
    Option("--text FILE", "with --page: a text that is shown instead of a split"),
    Option(
        "--sentences N",
        f"with --page: sentences shown; default: {_SENTENCES}",
        options.whole(1, 200),
    ),
    options.LABEL,
    Option("--data FILE", "judges the runs on a treebank or text that none was made for"),
    Option("--state", "with --data: state policy; default: the runs' own", choices=_POLICIES),
    Option(
        "--unseen-weight",
        "with --data: also mixes each run with a uniform distribution over the words of its "
        "lexicon without training text, by a weight set on its validation text",
    ),
    *options.ADDED_WORDS,
    Option("--micro", "judges models of the micro language beside the language itself"),
)


def run_compare(arguments: argparse.Namespace):
    """Prints, draws or writes the runs side by side."""
    if arguments.page:
        _write_page(arguments)
    elif arguments.data or arguments.micro:
        _judge(arguments)
    elif arguments.sweep:
        from zoo.comparison import sweep

        file = arguments.plot or "sweep.png"
        sweep.report(arguments.sweep, arguments.runs, file, arguments.label)
    elif arguments.by == "length":
        _by_length(arguments)
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
    from zoo.comparison import page_report

    options.check_outputs(arguments, page="the report")
    page_report.report(
        arguments.runs,
        arguments.page,
        _one_split(arguments),
        arguments.text,
        arguments.sentences or _SENTENCES,
        arguments.label,
        load=functools.partial(options.run_with_words, arguments=arguments),
    )


def _judge(arguments):
    """Judges the runs on the text of --data, or beside the micro language."""
    from zoo.comparison import compare, micro_report
    from zoo.evaluation import perplexity

    runs = arguments.runs
    with perplexity.on_terminal():
        if arguments.micro:
            micro_report.report(runs)
        else:
            load = functools.partial(options.run_with_words, arguments=arguments)
            compare.report(runs, arguments.data, load, arguments.state, arguments.unseen_weight)


def _plot(arguments):
    from zoo.comparison import agreement, bar_plots, learning_curves

    runs, file, label = arguments.runs, arguments.plot, arguments.label
    if arguments.by == "frequency":
        bar_plots.plot_bands(runs, file, _one_split(arguments), label)
    elif arguments.by == "distance":
        agreement.plot_kept(runs, file, label)
    else:
        against = arguments.against or "step"
        learning_curves.report(runs, file, against, arguments.training, label)


def _print(arguments):
    """Prints the tables of kept figures, and of the scores of kept translations."""
    from zoo.comparison.compare import compare
    from zoo.comparison.comparison import Wanted
    from zoo.evaluation import results
    from zoo.runs import output_files

    translated = _translations(arguments)
    folders = [run for run in arguments.runs if not run.endswith(".json")]
    judged = not translated or any(map(results.judged_texts, folders))
    judged = judged or bool(results.read_answers(folders))
    if judged:
        wanted = Wanted(splits=arguments.split)
        output_files.show(compare(folders, arguments.by == "frequency", wanted))
    for split, of_runs in translated.items():
        try:
            lines = _scores(of_runs, split)
        except UserError as error:
            if not judged:
                raise
            options.print_notes([f"translations of {split}: {error}"])
        else:
            output_files.show(*[""] * judged, lines)


# ------------- scores of kept translations, with their intervals and tests


def _translations(arguments) -> dict[str, dict[str, Any]]:
    """Returns {split: {name: file}} of the results of translations that runs keep, or that are
    named."""
    from zoo.evaluation.records import is_record
    from zoo.runs import location

    found: dict[str, dict[str, Any]] = {}
    for name, run in zip(_names(arguments.runs), arguments.runs, strict=True):
        if is_record(run):
            continue
        given = location.path_of(run)
        if run.endswith(".json"):
            files = [given]
        elif location.is_bucket(given) or os.path.isdir(run):  # a name that is too long, too
            files = sorted((given / "results").glob(_FILES))
        else:
            continue
        splits = [file.name.removeprefix("translation-").partition(".")[0] for file in files]
        for file, split in zip(files, splits, strict=True):
            if arguments.split and split not in arguments.split:
                continue
            alone = splits.count(split) == 1
            called = name if alone else f"{name} ({file.stem.partition('.')[2]})"
            found.setdefault(split, {})[called] = file
    return found


def _names(results) -> list[str]:
    """Returns the runs' folder names for a table or picture; whole paths where two are equal."""
    paths = [pathlib.Path(result) for result in results]
    # A result is RUN/results/NAME.json; a folder is a run, or was given from within it.
    runs = [path.absolute().parent.parent if path.suffix == ".json" else path for path in paths]
    names = [run.name for run in runs]
    return names if "" not in names and len({*names}) == len(names) else [*map(str, results)]


def _read(of_runs, split):
    """Returns (results of translations, the experiment of the first, the text they translate)."""
    from zoo.evaluation import translation_quality
    from zoo.runs import location
    from zoo.runs.workdir import Workdir

    results = [translation_quality.read(file, split) for file in of_runs.values()]
    first = next(iter(of_runs.values()))
    whole = first if location.is_bucket(first) else first.absolute()
    experiment = Workdir(whole.parent.parent).experiment()
    corpus = experiment.vocabulary.read(experiment.data.as_written(), split)
    return results, experiment, corpus


def _scores(of_runs, split) -> str:
    """Formats scores with their 95 % intervals, and p of differences from the first run."""
    from zoo.evaluation import significance, translation_quality

    results, _, corpus = _read(of_runs, split)
    samples = significance.SAMPLES
    rows = translation_quality.compare([*of_runs], results, corpus.sentences, samples)
    return translation_quality.table(rows, results[0][0])


def _by_length(arguments):
    """Prints BLEU by the length of the source sentence, and draws it with --plot."""
    from zoo.comparison import curve_plots, plot_style
    from zoo.evaluation import translation_quality
    from zoo.runs import output_files

    if arguments.plot:
        plot_style.check_file(arguments.plot)
    split = _one_split(arguments) or "test"
    of_runs = _translations(arguments).get(split)
    if not of_runs:
        raise UserError(
            f"no run has translations of {split}: python -m zoo translate DIR --split {split} "
            "--bleu makes them."
        )
    names = [*of_runs]
    results, experiment, corpus = _read(of_runs, split)
    translation_quality.check_results(names, results, corpus.sentences)
    lengths = [len(words) for words in experiment.source_of(corpus).sentences]
    rows = translation_quality.by_length(results, corpus.sentences, lengths, _LENGTHS)
    signature = results[0][0]["figures"]["BLEU"]["signature"]
    output_files.show(translation_quality.length_table(names, rows), signature)
    if arguments.plot:
        spans = [f"{row.least}-{row.greatest}" for row in rows]
        curves = {
            name: [(row.scores[number], row.intervals[number]) for row in rows]
            for number, name in enumerate(names)
        }
        curve_plots.by_length(spans, [row.sentences for row in rows], curves, arguments.plot)
