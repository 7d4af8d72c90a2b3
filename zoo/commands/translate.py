"""zoo translate: translations of sentences, by one run or several together."""

import argparse
import itertools
import os
import sys
from collections.abc import Iterator
from typing import Any

from zoo.commands import options
from zoo.errors import UserError, named

# Lines that are read before any is written, in batches: enough to put like lengths together.
_BATCHES = 64
_TOKENIZERS = ("none", "13a", "intl", "char", "zh")


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add(
        "paths",
        nargs="+",
        metavar="DIR",
        help="folders of runs, several for an ensemble; then perhaps a file, else stdin is read",
    )
    add("--split", metavar="NAME", help="translates a split of the first run's data")
    add("--bleu", action="store_true", help="with --split: BLEU and chrF, kept beside the run")
    add("--tokenizer", choices=_TOKENIZERS, default="none", help="sacrebleu's, for --bleu")
    add("--output", metavar="FILE", help="the translations; default: prints them")
    add(
        "--dictionary",
        metavar="FILE",
        help="source word, tab, target word: puts in unknown words, as align --dictionary writes",
    )
    add("--beam", type=int, default=12, help="hypotheses kept open; 1 is greedy; default 12")
    add("--nbest", type=int, metavar="N", help="the N best hypotheses of each sentence")
    add(
        "--nbest-format",
        choices=("moses", "plain"),
        default="moses",
        help="id ||| words ||| features ||| score, or the words alone, lists between blank lines",
    )
    add(
        "--length-normalisation",
        type=float,
        default=0.0,
        metavar="A",
        help="ranks by log p / length^A; default 0",
    )
    add("--normaliser", choices=("length", "gnmt"), default="length", help="gnmt: (5 + length) / 6")
    add("--shortest", type=int, default=1, help="tokens at least, the boundary among them")
    add("--longest", type=int, default=200, help="tokens at most, the boundary among them")
    add("--batch", type=int, default=32, help="sentences side by side")
    add(
        "--average", choices=("probabilities", "logs"), default="probabilities", help="of ensembles"
    )
    add("--language-model", metavar="DIR", help="a run over the same words, added to the scores")
    add("--language-weight", type=float, default=0.1, metavar="W", help="its factor; default 0.1")


def run(arguments: argparse.Namespace):
    """Prints or writes the translations, in the order of the lines; an empty line stays one."""
    from zoo.decoding import BeamSearch
    from zoo.evaluation.run import Run
    from zoo.evaluation.translation import Translator
    from zoo.runs import outputs

    _check(arguments)
    folders, file = _folders_and_file(arguments.paths)
    if arguments.split and file:
        raise UserError(f"--split {arguments.split} and {file} are two texts: give one of them.")
    if arguments.output:
        outputs.check(arguments.output, "the translations")
    search = BeamSearch(
        beam=arguments.beam,
        nbest=arguments.nbest or 1,
        length_normalisation=arguments.length_normalisation,
        normaliser=arguments.normaliser,
        shortest=arguments.shortest,
        longest=arguments.longest,
    )
    other = arguments.language_model
    translator = Translator(
        tuple(map(Run.load, folders)),
        arguments.average,
        Run.load(other) if other else None,
        arguments.language_weight,
    )
    if arguments.bleu:
        _judge(translator, search, arguments)
        return
    lines = _translated(translator, search, _sources(translator, file, arguments.split), arguments)
    if arguments.output:
        outputs.write_lines(arguments.output, list(lines), "the translations")
    else:
        for line in lines:
            sys.stdout.write(line)
            sys.stdout.flush()


def _check(arguments):
    """UserError for options that do not go together."""
    if arguments.batch < 1:
        raise UserError(f"--batch {arguments.batch}: give at least 1.")
    if arguments.nbest is not None and arguments.nbest < 1:
        raise UserError(f"--nbest {arguments.nbest}: give at least 1.")
    if arguments.bleu and not arguments.split:
        raise UserError("--bleu needs references: give --split NAME, as in --split test.")
    if arguments.bleu and (arguments.nbest or arguments.output):
        raise UserError(
            "--bleu judges the best hypothesis of each sentence and keeps them beside the run: "
            "leave --nbest and --output out."
        )


def _folders_and_file(paths: list[str]) -> tuple[list[str], str | None]:
    """(the folders of runs, the file behind them or None)."""
    if len(paths) > 1 and not os.path.isdir(paths[-1]):
        return paths[:-1], paths[-1]
    return paths, None


def _sources(translator, file, split) -> Iterator[list[str]]:
    """The words of each source."""
    from zoo.sources import files

    if split:
        run = translator.runs[0]
        yield from run.experiment.source_of(translator.pairs(split)).sentences
    elif file and file != "-":
        text = files.read_text(files.find(file))
        yield from map(translator.read, text.removesuffix("\n").split("\n") if text else [])
    else:
        for line in sys.stdin:
            yield translator.read(line.removesuffix("\n"))


def _translated(translator, search, sources, arguments) -> Iterator[str]:
    """Lines of output, of some batches of sources at a time."""
    first = 0
    for some in _hypotheses(translator, search, sources, arguments):
        for number, of_sentence in enumerate(some, first):
            yield _lines(number, of_sentence, arguments)
        first += len(some)


def _hypotheses(translator, search, sources, arguments) -> Iterator[list]:
    """Of some sources at a time, (hypothesis, its words) of each; says how far it is, and which
    words were unknown."""
    from tqdm import tqdm

    restoring = _restoring(translator, arguments.dictionary)
    missing: dict[str, int] = {}
    with tqdm(unit=" sentences", file=sys.stderr, disable=None) as bar:
        while some := list(itertools.islice(sources, arguments.batch * _BATCHES)):
            for word, count in translator.unknown(some).items():
                missing[word] = missing.get(word, 0) + count
            read = some if restoring is None else restoring.annotate(some)
            found = translator.translate(read, search, arguments.batch, bar.update)
            yield [
                [(one, _words(translator, restoring, one, source)) for one in hypotheses]
                for source, hypotheses in zip(some, found, strict=True)
            ]
    if missing:
        count = sum(missing.values())
        options.print_notes(
            [
                f"unknown to the run and read as <unk>: {count:,} word{'s' * (count > 1)} of the "
                f"text, {named([*missing])}"
            ]
        )


def _restoring(translator, dictionary):
    """What puts in unknown words: for a run that marks them, and where a dictionary is given."""
    from zoo.evaluation.unknown_words import Restoring
    from zoo.sources import alignments

    if dictionary is None and translator.runs[0].experiment.data.unknowns is None:
        return None
    return Restoring(translator, alignments.read_dictionary(dictionary) if dictionary else {})


def _words(translator, restoring, hypothesis, source) -> list[str]:
    """The words of a hypothesis, unknown ones put in."""
    if restoring is None:
        return translator.words(hypothesis)
    return restoring.words(hypothesis, source)


def _lines(number, hypotheses, arguments) -> str:
    """The output of a sentence, of (hypothesis, its words)."""
    from zoo.sources import nbest

    if not arguments.nbest:
        return " ".join(hypotheses[0][1] if hypotheses else []) + "\n"
    if arguments.nbest_format == "plain":
        return "".join(" ".join(words) + "\n" for _, words in hypotheses) + "\n"
    lines: list[Any] = []
    for one, words in hypotheses:
        # A hypothesis that did not end has no boundary among its tokens.
        features = {"LogProb": one.log_prob, "Length": len(one.log_probs), "Ended": one.complete}
        lines.append(nbest.line(number, words, features, one.score))
    if not hypotheses:
        features = {"LogProb": 0.0, "Length": 0, "Ended": True}
        lines.append(nbest.line(number, [], features, 0.0))
    return "".join(f"{line}\n" for line in lines)


def _judge(translator, search, arguments):
    """Prints BLEU and chrF of a split, and keeps them with hypotheses and passport."""
    from zoo.evaluation import bleu

    run, split = translator.runs[0], arguments.split
    corpus = translator.pairs(split)
    sources = iter(run.experiment.source_of(corpus).sentences)
    hypotheses = [
        " ".join(of_sentence[0][1] if of_sentence else [])
        for some in _hypotheses(translator, search, sources, arguments)
        for of_sentence in some
    ]
    references = [" ".join(words) for words in corpus.sentences]
    found = bleu.figures(hypotheses, references, arguments.tokenizer)
    how = bleu.decoding(translator, search)
    figures = bleu.of_run(run, split, corpus, arguments.tokenizer, found, how)
    paths = bleu.write(run, figures, hypotheses)
    print(bleu.describe(split, figures), *paths, sep="\n  ")
