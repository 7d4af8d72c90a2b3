"""zoo rescore lattices: the best paths of lattices under a run."""

import argparse
import pathlib
import sys
from collections.abc import Iterator


def add_to(parser: argparse.ArgumentParser):
    """Adds the options of the command."""
    add = parser.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("lattices", nargs="+", metavar="LATTICE", help="SLF of HTK, or Kaldi's text form; .gz too")
    add("--weight", type=float, default=1.0, help="of the run's log-probability; default 1")
    add("--language-weight", type=float, default=1.0, metavar="W", help="of the lattice's own l=")
    add("--word-penalty", type=float, default=0.0, metavar="P", help="added for each word")
    add("--history", type=int, metavar="N", help="merges paths that share N words; default: all")
    add("--beam", type=float, default=float("inf"), help="in score, at each node; default: none")
    add("--nbest", type=int, metavar="N", help="lists in Moses' format: id ||| words ||| ...")
    add("--output", metavar="FILE", help="default: prints them")


def run(arguments: argparse.Namespace):
    """Prints or writes a line a lattice, its id and the words; or n-best lists."""
    from zoo.evaluation.run import Run
    from zoo.rescoring.lattices import LatticeSearch
    from zoo.runs import outputs

    search = LatticeSearch(
        weight=arguments.weight,
        language_weight=arguments.language_weight,
        word_penalty=arguments.word_penalty,
        history=arguments.history,
        beam=arguments.beam,
        nbest=1 if arguments.nbest is None else arguments.nbest,
    )
    if arguments.output:
        outputs.check(arguments.output, "the paths")
    lines = _lines(search, Run.load(arguments.workdir), arguments)
    if arguments.output:
        outputs.write_lines(arguments.output, list(lines), "the paths")
    else:
        sys.stdout.writelines(lines)


def _lines(search, run, arguments) -> Iterator[str]:
    from zoo.sources import nbest
    from zoo.sources.lattices import read_lattices

    for path in arguments.lattices:
        for lattice in read_lattices(path, pathlib.Path(path).name.partition(".")[0]):
            paths = search.search(run, lattice)
            if arguments.nbest is None:
                yield " ".join((lattice.id, *paths[0].words)) + "\n"
                continue
            for one in paths:
                features = {"first": one.first, "lm": one.log_prob}
                yield nbest.line(lattice.id, one.words, features, one.score) + "\n"
