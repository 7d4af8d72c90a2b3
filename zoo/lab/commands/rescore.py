"""zoo rescore: tunes feature weights on n-best lists, and re-ranks lists and lattices."""

import argparse
import collections
import dataclasses
import pathlib
from collections.abc import Iterator

import numpy as np

from zoo.errors import UserError
from zoo.lab.commands import options
from zoo.lab.commands.options import Inner
from zoo.lab.evaluation import bleu_chrf_wer, nbest, references, sentence_scores, significance
from zoo.lab.evaluation.bleu_chrf_wer import METRICS
from zoo.lab.evaluation.changes.new_lexicon import ADDED_WORDS
from zoo.lab.evaluation.run import short_names
from zoo.lab.evaluation.unknown_words import unknown_notes, unknown_share
from zoo.lab.options import Option
from zoo.lab.rescoring import lattice_rescoring, lattices, reranking, run_interpolation, tune
from zoo.lab.rescoring.lattice_rescoring import FEATURES, LatticeSearch
from zoo.lab.rescoring.model_features import (
    PROGRESS_SIZE,
    Columns,
    LatticeFolder,
    check_model_names,
)
from zoo.lab.rescoring.reranking import Weights
from zoo.lab.rescoring.run_interpolation import Interpolation
from zoo.lab.runs import output_files
from zoo.priors.arpa import SentenceScorer

# The type of a weight or a penalty, of either sign.
_WEIGHT = options.number(-1e9, 1e9)
_COLUMNS = (
    Option("--run DIR ...", "adds a run's log-probability as a feature"),
    Option("--arpa FILE ...", "adds log p under an n-gram model, named after its ARPA file"),
    Option("--word-count", "adds the number of words"),
    Option("--rank", "adds minus the logarithm of the rank in the list"),
    Option("--unknown-count", "adds the number of unknown words of each model"),
    *ADDED_WORDS,
    Option(
        "--lattices FOLDER",
        "lattices of the lists, ID.slf.gz: adds the acoustic score of the best path with a "
        "hypothesis's words, and its language score if the lattices have one",
    ),
    Option("--interpolation FILE", "adds the runs' mean, with the weights that interpolate wrote"),
    Option("--costs NAME=FILE ...", "adds costs of Kaldi n-best lists, lines of hypothesis, cost"),
    Option("--sparse", "takes features that a line does not name as 0"),
    Option("--also LISTS ...", "adds the best hypotheses of another system's lists"),
    Option("--also-best K", "hypotheses of a list of --also; default: 10", options.integer(1)),
)
_TUNE = (
    Option("lists LISTS", "n-best lists of Moses, Joshua or Kaldi, or lines of JSON"),
    Option(
        "references REFERENCES [...]",
        "lines of id, tab or blank, words; for lists numbered from 0 also a line a list",
    ),
    Option("--weights FILE", "file of weights to write; they are printed in any case"),
    Option("--metric", "wer for lists of a recogniser", choices=METRICS, required=True),
    Option("--tokenize NAME", "with --metric bleu: sacrebleu's tokenizer"),
    Option("--method", "", choices=tune.METHODS, default="mira"),
    Option("--seed N", "", options.integer(0), default=0),
    Option("--start FILE", "weights to start from; default: the first system's"),
    Option("--hold-out N", "evaluates on each N-th list, held out from tuning", options.integer(2)),
    Option(
        "--folds N",
        "cross-validates in N parts, and keeps the tuned weights only if they are better than "
        "the weights at the start",
        options.integer(2),
    ),
    Option("--test LISTS", "further lists to evaluate the weights on"),
    Option("--test-references FILE ...", "references of --test"),
    Option("--test-lattices FOLDER", "lattices of --test (needs --lattices)"),
    Option("--test-costs NAME=FILE ...", "costs of --test, as --costs"),
    *_COLUMNS,
)
_APPLY = (
    Option("lists LISTS", "lists with the tuned features; /dev/stdin reads standard input"),
    Option("weights WEIGHTS", "the file that tune wrote"),
    Option("--output FILE", "file of lists to write; default: prints them"),
    Option("--best", "writes the id and the best words of each list"),
    *_COLUMNS,
)
_ERRORS = (
    Option("hypotheses FILE", "lines of id and words, trn, or n-best lists with the best first"),
    Option("references REFERENCES", "lines of id, tab or blank, words; or trn"),
)
_INTERPOLATE = (
    Option("text TEXT", "a sentence a line"),
    Option("--run DIR ...", "folder of a run; give two or more, of the same words"),
    Option("--weights FILE", "file of weights to write; they are printed in any case"),
    *ADDED_WORDS,
)


def _tune(arguments):
    """Tunes feature weights on lists with references, prints figures, and writes the weights."""
    options.check_outputs(arguments, weights="the weights")
    metric = bleu_chrf_wer.make_metric(arguments.metric, arguments.tokenize or "none")
    columns = _columns(arguments)
    inputs = arguments.lists, arguments.references, arguments.costs
    lists = _arrays(*inputs, columns, arguments, metric)
    parts = tune.hold_out(lists, arguments.hold_out)
    if arguments.test:
        inputs = arguments.test, arguments.test_references, arguments.test_costs
        folder = arguments.test_lattices or arguments.lattices
        test_columns = dataclasses.replace(columns, lattices=folder and LatticeFolder(folder))
        test_lists = _arrays(*inputs, test_columns, arguments, metric)
        paths = arguments.test, arguments.lists
        parts["test"] = tune.match_features(test_lists, lists, paths, arguments.sparse)
    start = None
    if arguments.start:
        start_weights = Weights.read(arguments.start)
        if not arguments.sparse:
            start_weights.check(lists.names, arguments.lists)
        start = start_weights.as_array(lists)
    tuned_lists = parts["tuned on"]
    if len(tuned_lists.features) >= PROGRESS_SIZE:
        folds = f", and on {arguments.folds} parts of them" if arguments.folds else ""
        _report(f"tuning on {len(tuned_lists.ids):,} lists{folds}")
    settings = metric, arguments.method, arguments.seed, arguments.folds, start
    tuned, lines = tune.tune_if_better(tuned_lists, *settings)
    weights = Weights(dict(zip(lists.names, tuned.tolist(), strict=True)))
    figures = {
        name: tune.Figures.from_weights(part, metric, weights.as_array(part), arguments.seed)
        for name, part in parts.items()
    }
    record = {
        "metric": metric.signature(),
        "method": arguments.method,
        "seed": arguments.seed,
        "figures": {name: part.record() for name, part in figures.items()},
    }
    weights = Weights(weights.weights, columns.names, record)
    options.print_notes(
        [*columns.notes, *tune.collect_notes(tuned_lists, figures["tuned on"], metric, tuned)]
    )
    if arguments.weights:
        output_files.write_lines(arguments.weights, [weights.text()], "the weights")
    output_files.show(*tune.format_table(figures.items(), metric), *lines)
    output_files.show(*(f"{name}= {weight!r}" for name, weight in weights.weights.items()))


def _columns(arguments):
    """Builds the features that the options add to the lists."""
    mean = Interpolation.read(arguments.interpolation) if arguments.interpolation else None
    counts = arguments.word_count, arguments.unknown_count, arguments.rank
    names = short_names(arguments.arpa)
    ngrams = dict(zip(names, map(SentenceScorer, arguments.arpa), strict=True))
    folder = arguments.lattices and LatticeFolder(arguments.lattices)
    return Columns(_runs(arguments), *counts, mean, folder, ngrams, tell=_report)


def _report(work):
    """Prints a line about work that takes a while."""
    options.print_notes([f"{work} ..."])


def _runs(arguments):
    """Loads the runs of --run by short names."""
    runs = (options.run_with_words(path, arguments) for path in arguments.run)
    return dict(zip(short_names(arguments.run), runs, strict=True))


def _errors(arguments):
    """Prints hypotheses with errors beside their references, and the word error rate."""
    hypotheses = references.read_best(arguments.hypotheses)
    reference_texts = references.read_references(arguments.references, [*hypotheses])
    metric, counts, rows = bleu_chrf_wer.WordErrorRate(), collections.Counter[str](), []
    for id, text in hypotheses.items():
        rows.append(metric.statistics([text], (reference_texts[id],))[0])
        if rows[-1][:3].any():
            alignment = bleu_chrf_wer.align_words(text, reference_texts[id])
            title = f"{id}: errors {rows[-1][:3].sum():.0f}, words {rows[-1][3]:.0f}"
            output_files.show(title, *bleu_chrf_wer.alignment_lines(alignment), "")
            counts.update(bleu_chrf_wer.describe_edits(alignment))
    statistics = np.array(rows)
    substituted, inserted, deleted, words = statistics.sum(0)
    interval = significance.bounds(*significance.bootstrap_interval(statistics, metric.figure))
    frequent = ", ".join(f"{edit} ({count})" for edit, count in counts.most_common(10))
    output_files.show(
        f"WER {metric.figure(statistics.sum(0)):.2f} %{interval}: {substituted:,.0f} "
        f"substitutions, {inserted:,.0f} insertions, {deleted:,.0f} deletions in {words:,.0f} "
        "words",
        f"without errors: {sum(not row[:3].any() for row in rows):,} of {len(rows):,}",
        f"most frequent: {frequent or 'none'}",
    )


def _interpolate(arguments):
    """Prints perplexities of runs and of their mean, and writes its weights."""
    if len(arguments.run) < 2:
        raise UserError("interpolate takes two runs or more: give each as --run DIR.")
    options.check_outputs(arguments, weights="the weights")
    runs = _runs(arguments)
    for run in runs.values():
        sentence_scores.check_hypotheses(run)
    run_interpolation.check_same_words(runs)
    first = next(iter(runs.values()))
    lines = run_interpolation.read_text(arguments.text)
    sentences = [sentence_scores.words_by(first, text) for text in lines]
    share = unknown_share(first, sentences, arguments.text)
    options.print_notes([share, *unknown_notes(first, sentences)])
    if len(sentences) >= PROGRESS_SIZE:
        _report(f"scoring {len(sentences):,} sentences under {', '.join(runs)}")
    log_probs, _ = run_interpolation.word_log_probs(runs, sentences, arguments.text)
    tuned = run_interpolation.tune_weights(log_probs)
    weights = Interpolation(dict(zip(runs, tuned.tolist(), strict=True)))
    if arguments.weights:
        output_files.write_lines(arguments.weights, [weights.text()], "the weights")
    for name, values, weight in zip(runs, log_probs, tuned, strict=True):
        print(f"{name}: perplexity {np.exp(-values.mean()):.2f}, weight {weight:.4f}")
    mean = run_interpolation.mix(log_probs, tuned).mean()
    print(f"their mean: perplexity {np.exp(-mean):.2f}, {log_probs.shape[1]:,} words with </s>")


def _read(path, costs, arguments):
    """Reads a file of lists and merges the lists of --also; returns (format, lists)."""
    cost_files: dict[str, str] = {}
    for text in costs:
        name, _, file = text.partition("=")
        if not name or not file:
            raise UserError(f"--costs {text}: write NAME=FILE.")
        if name in cost_files:
            raise UserError(f"--costs {text}: the name {name!r} comes twice: give another one.")
        cost_files[name] = file
    form, lists = nbest.read_lists(path, cost_files, sparse=arguments.sparse)
    best = 10 if arguments.also_best is None else arguments.also_best
    if arguments.also:
        systems = [nbest.read_lists(file, sparse=arguments.sparse)[1] for file in arguments.also]
        lists = reranking.merge_lists(lists, systems, best, arguments.sparse)
    return form, lists


def _arrays(path, references, costs, columns, arguments, metric):
    """Reads the lists of a file and their references; returns them as arrays."""
    lists = [*columns.add(_read(path, costs, arguments)[1])]
    return tune.build_arrays(lists, tune.collect_references(lists, references, path), metric)


def _apply(arguments):
    """Applies tuned weights to lists, and writes the re-ranked lists."""
    options.check_outputs(arguments, output="the lists")
    weights = Weights.read(arguments.weights)
    form, lists = _read(arguments.lists, arguments.costs, arguments)
    columns = _columns(arguments)
    weights.check_added(columns.names, arguments.weights)
    reordered = reranking.reorder(columns.add(lists), weights, arguments.lists, arguments.sparse)
    lines = reranking.format_lists(reordered, form, arguments.best)
    options.write(lines, arguments.output, "the lists")
    options.print_notes(columns.notes)


# ---- zoo rescore lattices

_LATTICES = (
    options.RUN,
    Option("lattices LATTICE ...", "HTK's SLF or Kaldi's text format, also .gz"),
    Option("--run DIR ...", "a further run"),
    Option(
        "--weight WEIGHT ...",
        "weight of a run's log-probability; one for each run, in their order; default 1",
        _WEIGHT,
    ),
    Option(
        "--interpolation FILE",
        "scores with the runs' mean, by the weights that interpolate wrote, and one --weight",
    ),
    *(
        Option(f"--{name} W", meaning, _WEIGHT)
        for name, meaning in (
            ("acoustic-weight", "weight of the lattice's own a=; default 1"),
            ("language-weight", "weight of the lattice's own l=; default 1"),
            ("posterior-weight", "weight of the logarithm of links' p=; default 0"),
            ("word-penalty", "score added for each word; default 0"),
        )
    ),
    Option(
        "--weights FILE",
        "weights that tune wrote for lists of --nbest, in place of the options of weights",
    ),
    Option("--words FILE", "Kaldi's words.txt, for lattices of numbered words"),
    Option(
        "--history N",
        "merges paths of the same last N words; default: of all words",
        options.integer(1),
    ),
    Option(
        "--beam N",
        "drops hypotheses this much below the best score of a node; default: none",
        options.number(0, float("inf"), above=True),
        default=float("inf"),
    ),
    Option(
        "--look-ahead BEAM",
        "drops hypotheses this much below the best score, each with the recogniser's best "
        "path to the end; default: none",
        options.number(0, float("inf"), above=True),
        default=float("inf"),
    ),
    Option("--most N", "most hypotheses of a node; 0: no limit", options.integer(0), default=1000),
    Option("--nbest N", "writes n-best lists in Moses' format", options.integer(1, 10_000)),
    Option("--slf FOLDER", "writes lattices with new scores into FOLDER, as ID.slf.gz"),
    Option("--kaldi", "writes lattices with new scores in Kaldi's text format"),
    Option("--output FILE", "file to write; default: prints"),
    *ADDED_WORDS,
)


def _rescore_lattices(arguments):
    """Prints or writes the best paths of lattices, n-best lists, or lattices with new scores."""
    folders = [arguments.folder, *arguments.run]
    names = short_names(folders)
    mean = Interpolation.read(arguments.interpolation) if arguments.interpolation else None
    if mean is not None:
        mean.check_names(names, arguments.interpolation)
    columns = [run_interpolation.NAME] if mean is not None else ["lm"] if len(names) == 1 else names
    if arguments.nbest is not None:
        check_model_names(columns, FEATURES)
    search = LatticeSearch(
        **_search_weights(arguments, columns),
        shares=None if mean is None else tuple(mean.weights[name] for name in names),
        history=arguments.history,
        beam=arguments.beam,
        look_ahead=arguments.look_ahead,
        max_hypotheses=arguments.most or None,
        nbest=1 if arguments.nbest is None else arguments.nbest,
    )
    count = len(search.weights)
    if count != len(columns):
        models = f"{len(folders)} models" if mean is None else "the mean of the models"
        raise UserError(f"there are {count} weights for {models}: give {len(columns)}.")
    options.check_outputs(arguments, output="the paths")
    if arguments.slf:
        folder = pathlib.Path(arguments.slf)  # is made, but not the folder that it lies in
        output_files.check(folder / "a.slf.gz" if folder.exists() else folder, "the lattices")
    _report(f"searching the lattices under {', '.join(names)}")
    runs = [options.run_with_words(folder, arguments) for folder in folders]
    words: set[str] = set()
    options.write(
        _lattice_lines(search, runs, columns, arguments, words), arguments.output, "the paths"
    )
    for name, run in zip(names, runs, strict=True):
        options.print_notes(lattice_rescoring.unknown_word_notes(words, run, name))


def _search_weights(arguments, columns):
    """Returns the settings of the search that are weights, from the options or --weights."""
    if arguments.weights:
        return lattice_rescoring.read_settings(arguments.weights, columns)
    settings = {name: getattr(arguments, name) for name in ("weight", *FEATURES.values())}
    settings = {name: value for name, value in settings.items() if value not in (None, [])}
    weight = settings.pop("weight", [1.0] * len(columns))
    return {"weights": tuple(weight), **settings}


def _lattice_lines(search, runs, columns, arguments, words) -> Iterator[str]:
    """Searches lattices, writes them with --slf, and yields the output lines."""
    unsearched = _read_lattices(arguments, search, words)
    searched = search.search_all(runs, unsearched, expand=bool(arguments.slf or arguments.kaldi))
    for result in options.progress("lattices", searched):
        options.print_notes([search.dropped_note(result)])
        if arguments.slf:
            lattices.write_slf(result.lattice, arguments.slf, arguments.lattices)
        if arguments.kaldi:
            yield from lattices.kaldi_lines(result.lattice)
        else:
            yield from result.lines(None if arguments.nbest is None else columns)


def _read_lattices(arguments, search, words):
    """Yields the lattices of files, collects their words, and prints notes on them."""
    symbols = lattices.read_symbols(arguments.words) if arguments.words else None
    posterior_note = None
    for path, lattice in lattices.read_files(arguments.lattices, symbols):
        words.update(lattice.words)
        options.print_notes([search.size_note(lattice)])
        if posterior_note is None:  # once
            posterior_note = search.posterior_note(lattice, path)
            options.print_notes([posterior_note])
        # A file of weights has the whole weight of a word.
        penalty = 0.0 if arguments.weights else lattice.word_penalty
        yield dataclasses.replace(lattice, word_penalty=penalty)


RESCORE = {
    "tune": Inner("tunes weights on lists with references", _TUNE, _tune),
    "apply": Inner("re-ranks lists by tuned weights", _APPLY, _apply),
    "errors": Inner("aligns hypotheses with references, word by word", _ERRORS, _errors),
    "interpolate": Inner(
        "tunes interpolation weights of runs on a text", _INTERPOLATE, _interpolate
    ),
    "lattices": Inner("finds the best paths of lattices under a run", _LATTICES, _rescore_lattices),
}


def run_rescore(arguments: argparse.Namespace):
    """Runs an inner command of rescore."""
    RESCORE[arguments.inner].run(arguments)
