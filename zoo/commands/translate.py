"""zoo translate: translations of sentences, by one run or several together."""

import argparse
import itertools
import os
import sys
from collections.abc import Iterator

from zoo import lazy
from zoo.commands import options, source_lines, target_lines
from zoo.errors import UserError, named

# Lines that are read before any is written, in batches: enough to put like lengths together.
_BATCHES = 64
_TOKENIZERS = ("none", "13a", "intl", "char", "zh")
_LANGUAGE_WEIGHT = 0.1
# The options of either way, as its fields are called.
_OF_THE_BEST = ("beam", "length_normalisation", "normaliser")
_OF_DRAWS = ("temperature", "top_k", "nucleus", "seed")


def add_translate_to(parser: argparse.ArgumentParser):
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
    add("--tokenizer", choices=_TOKENIZERS, help="sacrebleu's, for --bleu; default: none")
    add("--output", metavar="FILE", help="the translations; default: prints them")
    add(
        "--dictionary",
        metavar="FILE",
        help="source word, tab, target word: puts in unknown words, as align --dictionary writes",
    )
    add(
        "--unknowns",
        choices=("marks", "attention", "keep"),
        help="what says which source word an unknown word is of; keep puts none in; default: marks "
        "where the run has them, else attention where there is a dictionary",
    )
    add(
        "--alignments",
        metavar="FILE",
        help="the source word that each word attends to most, a line a hypothesis: 0-0 2-1",
    )
    add(
        "--plot-attention",
        metavar="FILE",
        help="draws the attention of one sentence: .png, .pdf or .svg",
    )
    add(
        "--plot-gradients",
        metavar="FILE",
        help="draws how much each word depends on each source word of one sentence, with or "
        "without attention: .png, .pdf or .svg",
    )
    add(
        "--beam",
        type=options.whole(1, 10_000),
        help="hypotheses kept open; 1 is greedy; default 12",
    )
    add(
        "--nbest",
        type=options.whole(1, 10_000),
        metavar="N",
        help="the N best hypotheses of each sentence",
    )
    add(
        "--nbest-format",
        choices=("moses", "plain"),
        help="id ||| words ||| features ||| score, or the words alone, lists between blank lines; "
        "default: moses",
    )
    add(
        "--length-normalisation",
        type=options.number(0, 7),
        metavar="A",
        help="ranks by log p / length^A; default 0",
    )
    add(
        "--normaliser",
        choices=("length", "gnmt"),
        help="length by default; gnmt: (5 + length) / 6",
    )
    add(
        "--sample",
        action="store_true",
        help="draws translations instead of searching for the best; --nbest N of each sentence",
    )
    add("--temperature", type=options.number(0, 1e9), metavar="T", help="with --sample; default 1")
    options.add_truncation_to(parser)
    add("--seed", type=options.whole(0), help="of the draws; default 0")
    add(
        "--shortest",
        type=options.whole(1, 100_000),
        default=1,
        help="tokens at least, the boundary among them",
    )
    add(
        "--longest",
        type=options.whole(1, 100_000),
        default=200,
        help="tokens at most, the boundary among them",
    )
    add(
        "--longest-ratio",
        type=options.number(0, 1e6, above=True),
        default=2.0,
        metavar="R",
        help="tokens at most of a source of n words: R * n + 10; default 2",
    )
    add("--batch", type=options.whole(1, 100_000), default=32, help="sentences side by side")
    add(
        "--average", choices=("probabilities", "logs"), default="probabilities", help="of ensembles"
    )
    add("--language-model", metavar="DIR", help="a run over the same words, added to the scores")
    add(
        "--language-weight",
        type=options.number(0, 1e9),
        metavar="W",
        help=f"its factor; default {_LANGUAGE_WEIGHT}",
    )


def run_translate(arguments: argparse.Namespace):
    """Prints or writes the translations, in the order of the lines; an empty line stays one."""
    _check(arguments)
    folders, file = _folders_and_file(arguments.paths)
    if arguments.split and file:
        raise UserError(f"--split {arguments.split} and {file} are two texts: give one of them.")
    _check_files(folders[0], arguments)
    search = _search(arguments)
    translator = _translator(folders, arguments)
    restoring = _restoring(translator, arguments)
    if arguments.bleu:
        _judge(translator, search, restoring, arguments)
        return
    sources = source_lines.read(translator, file, arguments.split)
    for option in ("plot_attention", "plot_gradients"):
        if getattr(arguments, option):
            sources = source_lines.only_one(sources, option)
    translations = _translations(translator, search, restoring, sources, arguments)
    target_lines.write(translations, translator, arguments)


def _search(arguments):
    """The search for the best, or the draws."""
    from zoo.decoding import BeamSearch, Sampling

    kind, own = (Sampling, _OF_DRAWS) if arguments.sample else (BeamSearch, _OF_THE_BEST)
    given = {name: getattr(arguments, name) for name in ("nbest", "shortest", "longest", *own)}
    return kind(**{name: value for name, value in given.items() if value is not None})


def _translator(folders, arguments):
    """The runs of the folders, perhaps with a language model."""
    from zoo.evaluation.run import Run
    from zoo.evaluation.translators import Translator

    other, weight = arguments.language_model, arguments.language_weight
    return Translator(
        tuple(map(Run.load, folders)),
        arguments.average,
        Run.load(other) if other else None,
        _LANGUAGE_WEIGHT if weight is None else weight,
    )


def _check(arguments):
    """UserError for options that do not go together."""
    if arguments.bleu and not arguments.split:
        raise UserError("--bleu needs references: give --split NAME, as in --split test.")
    for option, needed in (
        ("tokenizer", "bleu"),
        ("nbest_format", "nbest"),
        ("language_weight", "language_model"),
    ):
        if getattr(arguments, option) is not None and not getattr(arguments, needed):
            option, needed = (name.replace("_", "-") for name in (option, needed))
            raise UserError(f"--{option} is for --{needed}: give both, or leave it out.")
    if arguments.unknowns == "keep" and arguments.dictionary:
        raise UserError(
            "--dictionary says what unknown words are, and --unknowns keep leaves them: give one."
        )
    for option in _OF_THE_BEST if arguments.sample else _OF_DRAWS:
        if getattr(arguments, option) is not None:
            option = option.replace("_", "-")
            other = "a search, and --sample draws" if arguments.sample else "draws"
            do = "leave one of them out" if arguments.sample else "give --sample, too"
            raise UserError(f"--{option} is for {other}: {do}.")
    if arguments.bleu and arguments.sample:
        raise UserError("--bleu judges the best translations that are found: leave --sample out.")
    others = ("nbest", "output", "alignments", "plot_attention", "plot_gradients")
    if arguments.bleu and any(getattr(arguments, option) for option in others):
        raise UserError(
            "--bleu judges the best hypothesis of each sentence and keeps them beside the run: "
            "leave --nbest, --output, --alignments, --plot-attention and --plot-gradients out."
        )


def _check_files(folder, arguments):
    """UserError if a file that is yet to be made could not be written."""
    from zoo.evaluation import passport

    if arguments.bleu:
        passport.check(folder)
    options.check_outputs(
        arguments,
        output="the translations",
        alignments="the alignments",
        plot_attention="the picture",
        plot_gradients="the picture",
    )
    for file in filter(None, (arguments.plot_attention, arguments.plot_gradients)):
        from zoo.evaluation.reports import plots

        plots.check_file(file)


def _folders_and_file(paths: list[str]) -> tuple[list[str], str | None]:
    """(the folders of runs, the file behind them or None)."""
    if len(paths) > 1 and not os.path.isdir(paths[-1]):
        return paths[:-1], paths[-1]
    return paths, None


def _translations(
    translator, search, restoring, sources, arguments
) -> Iterator[list[list[target_lines.Translation]]]:
    """The hypotheses of some sources at a time; a bar shows progress, and a note names unknown
    words."""
    with lazy.extra():
        from tqdm import tqdm

    missing: dict[str, int] = {}
    read_lines = cut = total = 0
    with tqdm(unit=" sentences", file=sys.stderr, disable=None) as bar:
        while some := list(itertools.islice(sources, arguments.batch * _BATCHES)):
            for word, count in translator.unknown(some).items():
                missing[word] = missing.get(word, 0) + count
            read = some if restoring is None else restoring.annotate(some)
            hypotheses = translator.translate(
                read,
                search,
                arguments.batch,
                bar.update,
                ratio=arguments.longest_ratio,
                first_number=read_lines,
            )
            read_lines += len(hypotheses)
            total += sum(map(len, hypotheses))
            cut += sum(not one.complete for best in hypotheses for one in best)
            yield [
                [
                    target_lines.Translation(one, _words(translator, restoring, one, given), seen)
                    for one in best
                ]
                for given, seen, best in zip(some, read, hypotheses, strict=True)
            ]
    if missing:
        count = sum(missing.values())
        options.print_notes(
            [
                f"unknown to the run and read as <unk>: {count:,} word{'s' * (count > 1)} of the "
                f"text, {named([*missing])}"
            ]
        )
    if cut:
        options.print_notes(
            [
                f"{cut:,} of {total:,} translations are cut off at their greatest length: raise "
                "--longest-ratio, and --longest if it is below that, if they should end"
            ]
        )


def _restoring(translator, arguments):
    """The component that puts in unknown words, for a run that marks them or where it is asked for;
    else None."""
    from zoo.alignment import PositionalAll
    from zoo.evaluation import attention_maps
    from zoo.evaluation.unknown_replacement import Restoring
    from zoo.sources import alignments

    for option in ("alignments", "plot_attention"):
        if getattr(arguments, option):
            attention_maps.check(translator, f"--{option.replace('_', '-')}")
    dictionary, by = arguments.dictionary, arguments.unknowns
    if dictionary is None and by is None and translator.runs[0].experiment.data.unknowns is None:
        return None
    restoring = Restoring(
        translator, alignments.read_dictionary(dictionary) if dictionary else {}, by
    )
    if (
        (arguments.alignments or arguments.plot_attention or arguments.plot_gradients)
        and isinstance(restoring.strategy, PositionalAll)
        and restoring.way == "marks"
    ):
        raise UserError(
            "attention is paid to each word and to its mark, which is taken out: give --unknowns "
            "keep for alignments or a picture of this run."
        )
    return restoring


def _words(translator, restoring, hypothesis, source) -> list[str]:
    """The words of a hypothesis, unknown ones put in."""
    if restoring is None:
        return translator.words(hypothesis)
    return restoring.words(hypothesis, source)


def _judge(translator, search, restoring, arguments):
    """Prints BLEU and chrF of a split, and keeps them with hypotheses and passport."""
    from zoo.evaluation import bleu
    from zoo.runs import outputs

    run, split = translator.runs[0], arguments.split
    corpus = translator.pairs(split)
    sources = iter(run.experiment.source_of(corpus).sentences)
    hypotheses = [
        " ".join(of_sentence[0].words if of_sentence else [])
        for some in _translations(translator, search, restoring, sources, arguments)
        for of_sentence in some
    ]
    references = [" ".join(words) for words in corpus.sentences]
    tokenizer = arguments.tokenizer or "none"
    scores = bleu.figures(hypotheses, references, tokenizer)
    how = bleu.decoding(
        translator, search, restoring and restoring.described(), arguments.longest_ratio
    )
    figures = bleu.of_run(run, split, corpus, tokenizer, scores, how)
    paths = bleu.write(run, figures, hypotheses)
    outputs.show(bleu.describe(split, figures), *(f"  {path}" for path in paths))
