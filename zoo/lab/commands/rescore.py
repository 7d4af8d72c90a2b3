"""zoo rescore: tunes feature weights on n-best lists, and re-ranks lists and lattices."""

import argparse
import collections
import dataclasses
import gzip
import itertools
import pathlib
from collections.abc import Iterator

import numpy as np

from zoo.base import lazy
from zoo.errors import UserError, named, printable, shortened
from zoo.lab.commands import options
from zoo.lab.commands.options import Inner, Option
from zoo.lab.evaluation import nbest, sentence_scores, significance
from zoo.lab.evaluation.nbest import read_references
from zoo.lab.evaluation.run import short_names
from zoo.lab.rescoring import bleu_chrf_wer, lattices, reranking, run_interpolation, tune
from zoo.lab.rescoring.bleu_chrf_wer import METRICS
from zoo.lab.rescoring.lattice_rescoring import FULL_NODES, LatticeSearch
from zoo.lab.rescoring.lattices import read_lattices, read_symbols
from zoo.lab.rescoring.model_features import MANY, Columns, LatticeFolder, check_names
from zoo.lab.rescoring.reranking import Weights, merge_lists
from zoo.lab.rescoring.run_interpolation import Interpolation
from zoo.lab.rescoring.tune import METHODS
from zoo.lab.runs import output_files
from zoo.priors.arpa import SentenceScorer
from zoo.sources import files

_COLUMNS = (
    Option("--run DIR ...", "adds a run's log-probability as a feature"),
    Option("--arpa FILE ...", "adds log p under an n-gram model, named after its ARPA file"),
    Option("--word-count", "adds the number of words"),
    Option("--rank", "adds minus the logarithm of the rank in the list"),
    Option("--unknown-count", "adds the number of unknown words of each model"),
    *options.ADDED_WORDS,
    Option(
        "--lattices FOLDER",
        "lattices of the lists, ID.slf.gz: adds the acoustic score of the best path with a "
        "hypothesis's words, and its language score if the lattices have one",
    ),
    Option("--interpolation FILE", "adds the runs' mean, with the weights that interpolate wrote"),
    Option("--costs NAME=FILE ...", "adds costs of Kaldi n-best lists, lines of hypothesis, cost"),
    Option("--sparse", "takes features that a line does not name as 0"),
    Option("--also LISTS ...", "adds the best hypotheses of another system's lists"),
    Option("--also-best K", "hypotheses of a list of --also; default: 10", options.whole(1)),
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
    Option("--method", "", choices=METHODS, default="mira"),
    Option("--seed N", "", options.whole(0), default=0),
    Option("--start FILE", "weights to start from; default: the first system's"),
    Option("--hold-out N", "evaluates on each N-th list, held out from tuning", options.whole(2)),
    Option(
        "--folds N",
        "cross-validates in N parts, and keeps the tuned weights only if they are better than "
        "the weights at the start",
        options.whole(2),
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
    *options.ADDED_WORDS,
)


def _tune(arguments):
    options.check_outputs(arguments, weights="the weights")
    metric = bleu_chrf_wer.metric_of(arguments.metric, arguments.tokenize or "none")
    columns = _columns(arguments)
    given = arguments.lists, arguments.references, arguments.costs
    lists = _arrays(*given, columns, arguments, metric)
    parts = _parts(lists, arguments.hold_out)
    if arguments.test:
        given = arguments.test, arguments.test_references, arguments.test_costs
        folder = arguments.test_lattices or arguments.lattices
        of_test = dataclasses.replace(columns, lattices=folder and LatticeFolder(folder))
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
    options.print_notes(
        [*columns.notes, *tune.notes(parts["tuned on"], figures["tuned on"], metric, tuned)]
    )
    if arguments.weights:
        output_files.write_lines(arguments.weights, [weights.text()], "the weights")
    output_files.show(*tune.table(figures.items(), metric), *lines)
    output_files.show(*(f"{name}= {weight!r}" for name, weight in weights.weights.items()))


def _tuned(lists, metric, arguments, start):
    """Returns (the tuned weights, lines that report whether they are kept)."""
    given = lists, metric, arguments.method, arguments.seed
    if len(lists.features) >= MANY:
        parts = f", and on {arguments.folds} parts of them" if arguments.folds else ""
        _tell(f"tuning on {len(lists.ids):,} lists{parts}")
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
    """Splits the lists by --hold-out: {"tuned on": lists} and perhaps {"held out": lists}."""
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
    mean = Interpolation.read(arguments.interpolation) if arguments.interpolation else None
    counts = arguments.word_count, arguments.unknown_count, arguments.rank
    names = short_names(arguments.arpa)
    ngrams = dict(zip(names, map(SentenceScorer, arguments.arpa), strict=True))
    folder = arguments.lattices and LatticeFolder(arguments.lattices)
    return Columns(_runs(arguments), *counts, mean, folder, ngrams, tell=_tell)


def _tell(what):
    options.print_notes([f"{what} ..."])


def _runs(arguments):
    names = short_names(arguments.run)
    return {
        name: options.run_with_words(path, arguments)
        for name, path in zip(names, arguments.run, strict=True)
    }


def _errors(arguments):
    """Prints hypotheses with errors beside their references, and the word error rate."""
    with lazy.extra():
        import jiwer
    hypotheses = nbest.read_best(arguments.hypotheses)
    references = read_references(arguments.references, [*hypotheses])
    metric, wrong, rows = bleu_chrf_wer.WordErrorRate(), collections.Counter[str](), []
    for id, text in hypotheses.items():
        rows.append(metric.statistics([text], (references[id],))[0])
        if rows[-1][:3].any():
            aligned = bleu_chrf_wer.align(text, references[id])
            shown = jiwer.visualize_alignment(aligned, show_measures=False).splitlines()[2:]
            title = f"{id}: errors {rows[-1][:3].sum():.0f}, words {rows[-1][3]:.0f}"
            output_files.show(*(printable(line.rstrip()) for line in (title, *shown)), "")
            wrong.update(_edits(aligned))
    statistics = np.array(rows)
    substituted, inserted, deleted, words = statistics.sum(0)
    interval = significance.bounds(*significance.bootstrap_interval(statistics, metric.figure))
    most = ", ".join(f"{error} ({count})" for error, count in wrong.most_common(10))
    output_files.show(
        f"WER {metric.figure(statistics.sum(0)):.2f} %{interval}: {substituted:,.0f} "
        f"substitutions, {inserted:,.0f} insertions, {deleted:,.0f} deletions in {words:,.0f} "
        "words",
        f"without errors: {sum(not row[:3].any() for row in rows):,} of {len(rows):,}",
        f"most frequent: {printable(most) or 'none'}",
    )


def _edits(aligned) -> Iterator[str]:
    """Yields the edits of an alignment as "right -> wrong", of one word each."""
    right, wrong = aligned.references[0], aligned.hypotheses[0]
    for part in aligned.alignments[0]:
        if part.type != "equal":
            before = right[part.ref_start_idx : part.ref_end_idx]
            after = wrong[part.hyp_start_idx : part.hyp_end_idx]
            for pair in itertools.zip_longest(before, after, fillvalue="***"):
                yield " -> ".join(pair)


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
    lines = [files.bare(text) for _, text in files.read_lines(arguments.text)]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise UserError(f"{arguments.text} has no words: give a text that has some.")
    sentences = [sentence_scores.words_by(first, text) for text in lines]
    options.print_notes([first.share(sentences, arguments.text), *first.notes(sentences)])
    if len(sentences) >= MANY:
        _tell(f"scoring {len(sentences):,} sentences under {', '.join(runs)}")
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
    if arguments.also:
        others = [nbest.read_lists(other, sparse=arguments.sparse)[1] for other in arguments.also]
        lists = merge_lists(lists, others, best, arguments.sparse)
    return form, lists


def _arrays(path, references, costs, columns, arguments, metric):
    """Reads the lists of a file and their references; returns them as arrays."""
    _, unscored = _read(path, costs, arguments)
    lists = [*columns.add(unscored)]
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
    options.check_outputs(arguments, output="the lists")
    weights = Weights.read(arguments.weights)
    form, lists = _read(arguments.lists, arguments.costs, arguments)
    columns = _columns(arguments)
    weights.check_added(columns.names, arguments.weights)
    added = columns.add(lists)
    reordered = reranking.reorder(added, weights, arguments.lists, arguments.sparse)
    lines = reranking.lines(reordered, form, arguments.best)
    options.write(lines, arguments.output, "the lists")
    options.print_notes(columns.notes)


# ---- zoo rescore lattices

# Features of paths in lists and in files of weights: {name: its setting of the search}.
FEATURES = {
    "acoustic": "acoustic_weight",
    "language": "language_weight",
    "posterior": "posterior_weight",
    "words": "word_penalty",
}
# Links of a lattice whose search without --history takes minutes.
LARGE = 20_000
_LATTICES = (
    options.RUN,
    Option("lattices LATTICE ...", "HTK's SLF or Kaldi's text format, also .gz"),
    Option("--run DIR ...", "a further run"),
    Option(
        "--weight WEIGHT ...",
        "weight of a run's log-probability; one for each run, in their order; default 1",
        options.weight,
    ),
    Option(
        "--interpolation FILE",
        "scores with the runs' mean, by the weights that interpolate wrote, and one --weight",
    ),
    *(
        Option(f"--{name} W", what, options.weight)
        for name, what in (
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
        options.whole(1),
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
    Option("--most N", "most hypotheses of a node; 0: no limit", options.whole(0), default=1000),
    Option("--nbest N", "writes n-best lists in Moses' format", options.whole(1, 10_000)),
    Option("--slf FOLDER", "writes lattices with new scores into FOLDER, as ID.slf.gz"),
    Option("--kaldi", "writes lattices with new scores in Kaldi's text format"),
    Option("--output FILE", "file to write; default: prints"),
    *options.ADDED_WORDS,
)


def _rescore_lattices(arguments):
    """Prints or writes the best paths of lattices, n-best lists, or lattices with new scores."""
    folders = [arguments.folder, *arguments.run]
    names = short_names(folders)
    mean = Interpolation.read(arguments.interpolation) if arguments.interpolation else None
    if mean is not None and {*mean.weights} != {*names}:
        raise UserError(
            f"{arguments.interpolation} has weights of {named([*mean.weights])}, and the runs are "
            f"{named(names)}: give exactly the runs that have weights."
        )
    columns = [run_interpolation.NAME] if mean is not None else ["lm"] if len(names) == 1 else names
    if arguments.nbest is not None:
        check_names(columns, FEATURES)
    search = LatticeSearch(
        **_search_weights(arguments, columns),
        shares=None if mean is None else tuple(mean.weights[name] for name in names),
        history=arguments.history,
        beam=arguments.beam,
        look_ahead=arguments.look_ahead,
        most=arguments.most or None,
        nbest=1 if arguments.nbest is None else arguments.nbest,
    )
    if (given := len(search.weights)) != len(columns):
        of = f"{len(folders)} models" if mean is None else "the mean of the models"
        raise UserError(f"there are {given} weights for {of}: give {len(columns)}.")
    options.check_outputs(arguments, output="the paths")
    if arguments.slf:
        folder = pathlib.Path(arguments.slf)  # is made, but not the folder that it lies in
        output_files.check(folder / "a.slf.gz" if folder.exists() else folder, "the lattices")
    _tell(f"searching the lattices under {', '.join(names)}")
    runs = [options.run_with_words(folder, arguments) for folder in folders]
    words: set[str] = set()
    lines = _lattice_lines(search, runs, columns, arguments, words)
    options.write(lines, arguments.output, "the paths")
    for name, one in zip(names, runs, strict=True):
        of = f"the lattices, each counted once, by {name},"
        unknown = [*one.experiment.vocabulary.missing([sorted(words)], one.lexicon)]
        note = sentence_scores.share(len(words), len(unknown), of)
        options.print_notes([note and f"{note}: {named(unknown)}", *one.notes([sorted(words)])])


def _search_weights(arguments, columns):
    """Returns the settings of the search that are weights, from the options or --weights."""
    if not arguments.weights:
        given = {name: getattr(arguments, name) for name in ("weight", *FEATURES.values())}
        given = {name: value for name, value in given.items() if value not in (None, [])}
        weight = given.pop("weight", [1.0] * len(columns))
        return {"weights": tuple(weight), **given}
    weights = Weights.read(arguments.weights)
    weights.check((*FEATURES, *columns), arguments.weights)
    settings = {setting: weights.weights[name] for name, setting in FEATURES.items()}
    return {"weights": tuple(weights.weights[name] for name in columns), **settings}


def _lattice_lines(search, runs, columns, arguments, words) -> Iterator[str]:
    searched = search.search_all(
        runs,
        _read_lattices(arguments, search, words),
        expand=bool(arguments.slf or arguments.kaldi),
    )
    for one in options.progress("lattices", searched):
        if one.dropped:
            note = (
                f"note: {one.id}: {one.dropped:,} hypotheses beyond {search.most:,} of a node, or "
                f"{FULL_NODES * search.most:,} of nodes computed together, were dropped: the best "
                "path may be among them; --history N merges more, --most N keeps more."
            )
            options.print_notes([note])
        if arguments.slf:
            _write_slf(one, arguments)
        if arguments.kaldi:
            yield from lattices.kaldi_lines(one.lattice)
        elif arguments.nbest is None:
            yield reranking.best_line(one.id, " ".join(one.paths[0].words))
        else:
            for path in one.paths:
                values = *path.parts, float(len(path.words)), *path.log_probs
                features = dict(zip((*FEATURES, *columns), values, strict=True))
                yield nbest.line(one.id, path.words, features, path.score) + "\n"


def _read_lattices(arguments, search, words):
    """Yields the lattices of files, each with an id of its own, and collects their words."""
    symbols = read_symbols(arguments.words) if arguments.words else None
    seen: dict[str, str] = {}
    noted = search.posterior_weight != 0
    for path in arguments.lattices:
        for lattice in read_lattices(path, files.stem(pathlib.Path(path)), symbols):
            if lattice.id in seen:
                raise UserError(
                    f"{path}: the lattice {shortened(lattice.id, 80)!r} was read from "
                    f"{seen[lattice.id]} already: give each once."
                )
            seen[lattice.id] = path
            words.update(lattice.words)
            if len(lattice.links) >= LARGE and search.history is None:
                note = (
                    f"note: the search of {lattice.id}, {lattice.nodes:,} nodes and "
                    f"{len(lattice.links):,} links, may take minutes: give --history 2 --beam 30"
                )
                options.print_notes([note])
            if not noted and lattice.language_in_posteriors:
                noted = True
                note = (
                    f"{path} has no language scores l=, and its posteriors p=, which contain the "
                    "recogniser's language model, have weight 0: give --posterior-weight W, or "
                    "--weights FILE"
                )
                options.print_notes([note])
            # A file of weights has the whole weight of a word.
            penalty = 0.0 if arguments.weights else lattice.word_penalty
            yield dataclasses.replace(lattice, word_penalty=penalty)


def _write_slf(one, arguments):
    """Writes a lattice as ID.slf.gz; the same lattice gives the same bytes."""
    if pathlib.PurePath(one.id).name != one.id:
        raise UserError(
            f"the lattice {shortened(one.id, 80)!r} cannot have a file of its name: give --kaldi."
        )
    content = "".join(lattices.slf_lines(one.lattice)).encode()

    def write(path):
        path.write_bytes(gzip.compress(content, mtime=0))

    folder = pathlib.Path(arguments.slf)
    folder.mkdir(exist_ok=True)
    file = folder / f"{one.id}.slf.gz"
    output_files.check_each((file, "the lattice"), read=arguments.lattices)
    output_files.write(file, write, "the lattice")


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
    RESCORE[arguments.inner].run(arguments)
