"""zoo rescore: tunes feature weights on n-best lists, and re-ranks lists and lattices."""

import argparse
import dataclasses
import sys

from zoo import lazy
from zoo.commands import options, rescore_lattices
from zoo.errors import UserError


def add_rescore_to(parser: argparse.ArgumentParser):
    """Adds tune, apply, interpolate and lattices, each with its options."""
    from zoo.rescoring.bleu_chrf_wer import METRICS
    from zoo.rescoring.tune import METHODS

    commands = parser.add_subparsers(required=True, metavar="tune | apply | interpolate | lattices")
    tune = commands.add_parser("tune", help="tunes weights on lists with references")
    add = tune.add_argument
    add("lists", metavar="LISTS", help="n-best lists of Moses, Joshua or Kaldi, or lines of JSON")
    add(
        "references",
        nargs="*",
        metavar="REFERENCES",
        help="lines of id, tab or blank, words; for lists numbered from 0 also a line a list",
    )
    add(
        "--weights",
        metavar="FILE",
        help="file of weights to write; they are printed in any case",
    )
    add("--metric", choices=tuple(METRICS), required=True, help="wer for lists of a recogniser")
    add("--tokenize", metavar="NAME", help="with --metric bleu: sacrebleu's tokenizer")
    add("--method", choices=tuple(METHODS), default="mira", help="default: %(default)s")
    add("--seed", type=options.whole(0), default=0, help="default: %(default)s")
    add(
        "--start",
        metavar="FILE",
        help="weights to start from; default: the first system's",
    )
    add(
        "--hold-out",
        type=options.whole(2),
        metavar="N",
        help="holds out each N-th list from tuning, and evaluates on it",
    )
    add(
        "--folds",
        type=options.whole(2),
        metavar="N",
        help="cross-validates in N parts, and keeps the tuned weights only if they are better than "
        "the weights at the start",
    )
    add("--test", metavar="LISTS", help="further lists to evaluate the weights on")
    add(
        "--test-references",
        action="append",
        default=[],
        metavar="FILE",
        help="references of --test",
    )
    add("--test-lattices", metavar="FOLDER", help="lattices of --test (needs --lattices)")
    add(
        "--test-costs",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="costs of --test, as --costs",
    )
    _add_columns(tune)
    tune.set_defaults(do=_tune)
    apply = commands.add_parser("apply", help="re-ranks lists by tuned weights")
    add = apply.add_argument
    add(
        "lists",
        metavar="LISTS",
        help="lists with the features that were tuned; /dev/stdin reads standard input",
    )
    add("weights", metavar="WEIGHTS", help="the file that tune wrote")
    add("--output", metavar="FILE", help="file of lists to write; default: prints them")
    add("--best", action="store_true", help="writes the id and the best words of each list")
    _add_columns(apply)
    apply.set_defaults(do=_apply)
    interpolate = commands.add_parser(
        "interpolate", help="tunes interpolation weights of runs on a text"
    )
    add = interpolate.add_argument
    add("text", metavar="TEXT", help="a sentence a line")
    add(
        "--run",
        action="append",
        default=[],
        metavar="DIR",
        help="folder of a run; give two or more, of the same words",
    )
    add("--weights", metavar="FILE", help="file of weights to write; they are printed in any case")
    options.add_words_to(interpolate)
    interpolate.set_defaults(do=_interpolate)
    lattices = commands.add_parser("lattices", help="finds the best paths of lattices under a run")
    rescore_lattices.add_to(lattices)
    lattices.set_defaults(do=rescore_lattices.run)
    for command in (tune, apply, interpolate, lattices):
        options.add_common_to(command)


def _add_columns(parser):
    """Adds the options that read lists, and those that add features to them."""
    add = parser.add_argument
    add(
        "--run",
        action="append",
        default=[],
        metavar="DIR",
        help="adds a run's log-probability as a feature; may be repeated",
    )
    add("--word-count", action="store_true", help="adds the number of words")
    add("--rank", action="store_true", help="adds minus the logarithm of the rank in the list")
    add("--unknown-count", action="store_true", help="adds the number of unknown words of each run")
    options.add_words_to(parser)
    add(
        "--lattices",
        dest="lattices_of",
        metavar="FOLDER",
        help="lattices of the lists, ID.slf.gz: adds the acoustic score of the best path with a "
        "hypothesis's words, and its language score if the lattices have one",
    )
    add(
        "--interpolation",
        metavar="FILE",
        help="adds the runs' mean, with the weights that interpolate wrote",
    )
    add(
        "--costs",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="adds the costs of Kaldi n-best lists, lines of name of the hypothesis, cost",
    )
    add("--sparse", action="store_true", help="takes features that a line does not name as 0")
    add(
        "--also",
        action="append",
        default=[],
        metavar="LISTS",
        help="adds the best hypotheses of another system's lists for the same sentences",
    )
    add(
        "--also-best",
        type=options.whole(1),
        metavar="K",
        help="number of hypotheses from each list of --also; default: 10",
    )


def run_rescore(arguments: argparse.Namespace):
    """Runs the inner command: tune, apply, interpolate or lattices."""
    arguments.do(arguments)


def _tune(arguments):
    from zoo.rescoring import bleu_chrf_wer, tune
    from zoo.rescoring.reranking import Weights
    from zoo.runs import output_files

    options.check_outputs(arguments, weights="the weights")
    _check_tuned(arguments)
    metric = bleu_chrf_wer.metric_of(arguments.metric, arguments.tokenize or "none")
    columns = _columns(arguments)
    given = arguments.lists, arguments.references, arguments.costs
    lists = _arrays(*given, columns, arguments, metric)
    parts = _parts(lists, arguments.hold_out)
    if arguments.test:
        given = arguments.test, arguments.test_references, arguments.test_costs
        of_test = dataclasses.replace(
            columns, lattices=_lattices(arguments.test_lattices or arguments.lattices_of)
        )
        parts["test"] = _arrays(*given, of_test, arguments, metric)
        if arguments.sparse:  # a feature without a weight counts nothing
            parts["test"] = parts["test"].with_features(lists.names)
        elif {*parts["test"].names} != {*lists.names}:
            raise UserError(
                f"{arguments.test} has other features than {arguments.lists}: give lists of one "
                "system."
            )
    start = None
    if arguments.start:
        begin = Weights.read(arguments.start)
        if not arguments.sparse:
            begin.check(lists.names, arguments.lists)
        start = begin.of(lists)
    tuned, lines = _tuned(parts["tuned on"], metric, arguments, start)
    weights = Weights(dict(zip(lists.names, tuned.tolist(), strict=True)))
    figures = {
        name: tune.Figures.of(part, metric, weights.of(part), arguments.seed)
        for name, part in parts.items()
    }
    weights = Weights(weights.weights, columns.names, _made(arguments, metric, figures))
    options.print_notes([*columns.notes, *tune.notes(figures["tuned on"], metric, tuned)])
    if arguments.weights:
        output_files.write_lines(arguments.weights, [weights.text()], "the weights")
    output_files.show(*tune.table(figures.items(), metric), *lines)
    output_files.show(*(f"{name}= {weight!r}" for name, weight in weights.weights.items()))


def _check_tuned(arguments):
    """Raises UserError for an option that would be ignored."""
    if arguments.tokenize and arguments.metric != "bleu":
        raise UserError(
            f"--tokenize is for BLEU, and --metric is {arguments.metric}: leave it out, or give "
            "lists and references that are tokenised."
        )
    for option in ("test_references", "test_lattices", "test_costs"):
        if getattr(arguments, option) and not arguments.test:
            option = option.replace("_", "-")
            raise UserError(f"--{option} is for --test: give both, or leave it out.")


def _tuned(lists, metric, arguments, start):
    """Returns (the tuned weights, lines that report whether they are kept)."""
    from zoo.rescoring import tune

    given = lists, metric, arguments.method, arguments.seed
    if arguments.folds is None:
        return tune.tune(*given, start), []
    if not 2 <= arguments.folds <= len(lists.ids):
        raise UserError(
            f"--folds {arguments.folds}: give at least 2, and at most the number of lists, "
            f"{len(lists.ids)}."
        )
    begin = tune.first_start(lists, metric) if start is None else start
    validated, before = tune.cross_validate(*given, begin, arguments.folds)
    better = metric.sign * (validated - before) > 0
    kept = "the tuned weights are kept" if better else "the weights at the start are kept"
    line = f"cross-validated: {validated:.2f}, at the start {before:.2f}: {kept}"
    return (tune.tune(*given, begin) if better else begin), [line]


def _parts(lists, hold_out):
    """Splits the lists by --hold-out; returns {"tuned on": lists} and perhaps {"held out":
    lists}."""
    import numpy as np

    if hold_out is None:
        return {"tuned on": lists}
    held = np.arange(len(lists.ids)) % max(1, hold_out) == hold_out - 1
    if held.all() or not held.any():
        raise UserError(
            f"--hold-out {hold_out}: give at least 2, and at most the number of lists, "
            f"{len(lists.ids)}."
        )
    rows = {"tuned on": ~held, "held out": held}
    return {name: lists.some(np.flatnonzero(some)) for name, some in rows.items()}


def _columns(arguments):
    """Returns the features that the options add to the lists' own."""
    from zoo.rescoring.model_features import Columns
    from zoo.rescoring.run_interpolation import Interpolation

    if getattr(arguments, "test_lattices", None) and not arguments.lattices_of:
        raise UserError(
            "--test-lattices needs --lattices: give the folder of the lattices of LISTS, too."
        )
    if arguments.unknown_count and not arguments.run:
        raise UserError("--unknown-count counts the unknown words of a run: give --run DIR.")
    if arguments.interpolation and not arguments.run:
        raise UserError("--interpolation averages runs: give each as --run DIR.")
    mean = Interpolation.read(arguments.interpolation) if arguments.interpolation else None
    counts = arguments.word_count, arguments.unknown_count, arguments.rank
    runs = _runs(arguments) if arguments.run else {}
    return Columns(runs, *counts, mean, _lattices(arguments.lattices_of))


def _lattices(folder):
    from zoo.rescoring.model_features import LatticeFolder

    return LatticeFolder(folder) if folder else None


def _runs(arguments):
    """Loads the runs of --run; returns {name: run}."""
    from zoo.evaluation.run import short_names

    names = short_names(arguments.run)
    return {
        name: options.run_with_words(path, arguments)
        for name, path in zip(names, arguments.run, strict=True)
    }


def _interpolate(arguments):
    """Prints perplexities of runs and of their mean, and writes its weights."""
    import numpy as np

    from zoo.evaluation import sentence_scores
    from zoo.rescoring import run_interpolation
    from zoo.runs import output_files
    from zoo.sources import files

    if len(arguments.run) < 2:
        raise UserError("interpolate takes two runs or more: give each as --run DIR.")
    options.check_outputs(arguments, weights="the weights")
    runs = _runs(arguments)
    for run in runs.values():
        sentence_scores.check_hypotheses(run)
    run_interpolation.check_same_words(runs)
    first = next(iter(runs.values()))
    lines = [text for _, text in files.read_lines(arguments.text) if text.strip()]
    if not lines:
        raise UserError(f"{arguments.text} has no words: give a text that has some.")
    sentences = [sentence_scores.words_by(first, text) for text in lines]
    options.print_notes([first.share(sentences, arguments.text)])
    log_probs, _ = run_interpolation.word_log_probs(runs, sentences, arguments.text)
    tuned = run_interpolation.tune_weights(log_probs)
    weights = run_interpolation.Interpolation(dict(zip(runs, tuned.tolist(), strict=True)))
    if arguments.weights:
        output_files.write_lines(arguments.weights, [weights.text()], "the weights")
    for name, values, weight in zip(runs, log_probs, tuned, strict=True):
        print(f"{name}: perplexity {np.exp(-values.mean()):.2f}, weight {weight:.4f}")
    mean = run_interpolation.mix(log_probs, tuned).mean()
    print(f"their mean: perplexity {np.exp(-mean):.2f}, {log_probs.shape[1]:,} words with </s>")


def _read(path, costs, arguments):
    """Reads a file of lists and merges the lists of --also; returns (format, lists)."""
    from zoo.rescoring.reranking import merge_lists
    from zoo.sources import nbest

    files: dict[str, str] = {}
    for text in costs:
        name, _, file = text.partition("=")
        if not name or not file:
            raise UserError(f"--costs {text}: write NAME=FILE.")
        if name in files:
            raise UserError(f"--costs {text}: the name {name!r} comes twice: give another one.")
        files[name] = file
    form, lists = nbest.read_lists(path, files, sparse=arguments.sparse)
    best = 10 if arguments.also_best is None else arguments.also_best
    if arguments.also_best is not None and not arguments.also:
        raise UserError("--also-best is for --also: give both, or leave it out.")
    if arguments.also:
        others = [nbest.read_lists(other, sparse=arguments.sparse)[1] for other in arguments.also]
        lists = merge_lists(lists, others, best, arguments.sparse)
    return form, lists


def _counted(lists):
    """Yields the lists, and counts them in a progress bar on a terminal."""
    with lazy.extra():
        from tqdm import tqdm

    return tqdm(lists, unit=" lists", disable=None)


def _arrays(path, references, costs, columns, arguments, metric):
    """Reads the lists of a file and their references; returns them as arrays."""
    from zoo.rescoring import tune
    from zoo.sources.nbest import read_references

    _, unscored = _read(path, costs, arguments)
    lists = [*columns.add(_counted(unscored))]
    if references:
        ids = [one.id for one in lists]
        columns_of = [read_references(file, ids) for file in references]
        wanted = {id: tuple(column[id] for column in columns_of) for id in ids}
    else:
        for one in lists:
            if one.reference is None:
                raise UserError(
                    f"{path}, line {one.hypotheses[0].line}: the list {one.id!r} has no reference: "
                    "give a file of references."
                )
        wanted = {one.id: (str(one.reference),) for one in lists}
    return tune.arrays(lists, wanted, metric)


def _made(arguments, metric, figures):
    """Returns the record of how weights were tuned, for their file."""
    return {
        "metric": metric.signature(),
        "method": arguments.method,
        "seed": arguments.seed,
        "figures": {
            name: {
                "lists": part.lists,
                **{kind: getattr(part, kind).value for kind in ("untuned", "tuned", "oracle")},
            }
            for name, part in figures.items()
        },
    }


def _apply(arguments):
    from zoo.rescoring import reranking
    from zoo.rescoring.reranking import Weights
    from zoo.runs import output_files

    options.check_outputs(arguments, output="the lists")
    weights = Weights.read(arguments.weights)
    form, lists = _read(arguments.lists, arguments.costs, arguments)
    columns = _columns(arguments)
    weights.check_added(columns.names, arguments.weights)
    added = columns.add(_counted(lists))
    reordered = reranking.reorder(added, weights, arguments.lists, arguments.sparse)
    lines = reranking.lines(reordered, form, arguments.best)
    if arguments.output:
        output_files.write_lines(arguments.output, lines, "the lists")
    else:
        sys.stdout.writelines(lines)
    options.print_notes(columns.notes)
