"""zoo rescore lattices: the best paths of lattices under runs, or lattices with new scores."""

import argparse
import dataclasses
import gzip
import pathlib
import sys
from collections.abc import Iterator

from zoo.commands import options
from zoo.commands.options import Option
from zoo.errors import UserError, named, shortened
from zoo.evaluation.run import short_names
from zoo.rescoring import lattices, reranking
from zoo.rescoring.lattice_rescoring import LatticeSearch
from zoo.rescoring.lattices import read_lattices, read_symbols
from zoo.rescoring.model_features import check_names
from zoo.rescoring.reranking import Weights
from zoo.rescoring.run_interpolation import NAME, Interpolation
from zoo.runs import output_files
from zoo.sources import files, nbest

# Features of paths in lists and in files of weights: {name: its setting of the search}.
FEATURES = {
    "acoustic": "acoustic_weight",
    "language": "language_weight",
    "posterior": "posterior_weight",
    "words": "word_penalty",
}


LATTICES = (
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
    Option("--symbols FILE", "Kaldi's words.txt, for lattices of numbered words"),
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
    Option("--together N", "lattices of a batch", options.whole(1, 10_000), default=16),
    Option("--nbest N", "writes n-best lists in Moses' format", options.whole(1, 10_000)),
    Option("--slf FOLDER", "writes lattices with new scores into FOLDER, as ID.slf.gz"),
    Option("--kaldi", "writes lattices with new scores in Kaldi's text format"),
    Option("--output FILE", "file to write; default: prints"),
    *options.ADDED_WORDS,
)


def run(arguments: argparse.Namespace):
    """Prints or writes the best path of each lattice, or n-best lists, or lattices with new
    scores."""
    folders = [arguments.folder, *arguments.run]
    names = short_names(folders)
    mean = Interpolation.read(arguments.interpolation) if arguments.interpolation else None
    if mean is not None and {*mean.weights} != {*names}:
        raise UserError(
            f"{arguments.interpolation} has weights of {named([*mean.weights])}, and the runs are "
            f"{named(names)}: give exactly the runs that have weights."
        )
    columns = [NAME] if mean is not None else ["lm"] if len(names) == 1 else names
    if arguments.nbest is not None:
        check_names(columns, FEATURES)
    search = LatticeSearch(
        **_weights(arguments, columns),
        shares=None if mean is None else tuple(mean.weights[name] for name in names),
        history=arguments.history,
        beam=arguments.beam,
        look_ahead=arguments.look_ahead,
        most=arguments.most or None,
        nbest=1 if arguments.nbest is None else arguments.nbest,
    )
    search.check_models(len(folders))
    options.check_outputs(arguments, output="the paths")
    if arguments.slf:
        folder = pathlib.Path(arguments.slf)  # is made, but not the folder that it lies in
        output_files.check(folder / "a.slf.gz" if folder.exists() else folder, "the lattices")
    runs = [options.run_with_words(folder, arguments) for folder in folders]
    words: set[str] = set()
    lines = _lines(search, runs, columns, arguments, words)
    options.write(lines, arguments.output, "the paths")
    shares = [
        one.share([[*words]], f"the lattices, each counted once, by {name},")
        for name, one in zip(names, runs, strict=True)
    ]
    options.print_notes(shares)


def _weights(arguments, columns):
    """Returns the settings of the search that are weights, from the options or --weights."""
    if not arguments.weights:
        given = {name: getattr(arguments, name) for name in ("weight", *FEATURES.values())}
        given = {name: value for name, value in given.items() if value not in (None, [])}
        weight = given.pop("weight", [1.0] * len(columns))
        return {"weight": tuple(weight), **given}
    weights = Weights.read(arguments.weights)
    weights.check((*FEATURES, *columns), arguments.weights)
    settings = {setting: weights.weights[name] for name, setting in FEATURES.items()}
    return {"weight": tuple(weights.weights[name] for name in columns), **settings}


def _lines(search, runs, columns, arguments, words) -> Iterator[str]:
    searched = search.search_all(
        runs,
        _read(arguments, search, words),
        together=arguments.together,
        expand=bool(arguments.slf or arguments.kaldi),
    )
    for one in options.progress("lattices", searched):
        if one.dropped:
            _warn(one, search.most)
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


def _read(arguments, search, words):
    """Yields the lattices of files, and collects their words; raises UserError for an id that
    occurs twice."""
    symbols = read_symbols(arguments.symbols) if arguments.symbols else None
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


def _warn(one, most):
    print(
        f"note: {one.id}: {one.dropped:,} hypotheses were dropped at nodes that had more than "
        f"{most:,}: the best path may be among them; --history N merges more, --most N keeps more.",
        file=sys.stderr,
    )


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
