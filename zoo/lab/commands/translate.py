"""zoo translate and zoo align: translations by runs, and word alignments."""

import argparse
import collections
import io
import itertools
import os
import sys
from collections.abc import Iterator
from typing import Any

from zoo.alignment.model1 import METHODS
from zoo.errors import UserError, quote
from zoo.lab.commands import options
from zoo.lab.commands.options import Option
from zoo.lab.evaluation.bleu_chrf_wer import TOKENIZERS

# Batches of lines that are read before any is written: enough to sort by length.
_BATCHES = 64
_LANGUAGE_WEIGHT = 0.1
_EXAMPLES = 3
# Options that only one of BeamSearch and Sampling takes, each named as the field.
_BEAM_FIELDS = ("beam", "length_normalisation")
_SAMPLING_FIELDS = ("temperature", "top_k", "nucleus", "seed")


TRANSLATE = (
    Option(
        "paths DIR ...",
        "folders of runs, several for an ensemble; then a file to translate; default: stdin, with "
        "a prompt at a terminal",
    ),
    Option("--split NAME", "translates a split of the first run's data"),
    Option("--bleu", "with --split: computes BLEU and chrF, and keeps them in the run's folder"),
    Option("--tokenizer", "with --bleu: sacrebleu's tokenizer; default: none", choices=TOKENIZERS),
    Option(
        "--examples N",
        f"with --bleu: sentences that are printed with reference and translation; default "
        f"{_EXAMPLES}",
        options.integer(0),
    ),
    Option("--output FILE", "file of translations to write; default: prints them"),
    Option(
        "--dictionary FILE",
        "replaces unknown words by a table of source word, tab, target word, as written by "
        "align --dictionary",
    ),
    Option(
        "--unknowns",
        "how the source word of an unknown word is found: by the run's marks or by attention; "
        "keep: unknown words stay; default: marks if the run has them, else attention if there is "
        "a dictionary",
        choices=("marks", "attention", "keep"),
    ),
    Option(
        "--alignments FILE",
        "file of links to write: the source word that each word attends to most, a line a "
        "hypothesis, as 0-0 2-1",
    ),
    Option("--beam N", "beam size; 1 is greedy search; default 12", options.integer(1, 10_000)),
    Option(
        "--nbest N", "writes the N best hypotheses of each sentence", options.integer(1, 10_000)
    ),
    Option("--length-normalisation A", "ranks by log p / length^A", options.number(0, 7)),
    Option("--sample", "samples translations, --nbest of each sentence"),
    Option("--temperature T", "with --sample; default 1", options.number(0, 1e9)),
    *options.TRUNCATION,
    Option("--seed N", "with --sample: seed; default 0", options.integer(0)),
    Option(
        "--longest N", "most tokens, with the boundary", options.integer(1, 100_000), default=200
    ),
    Option(
        "--longest-ratio R",
        "most tokens for a source of n words: R * n + 10",
        options.number(0, 1e6, above=True),
        default=2.0,
    ),
    Option("--batch N", "sentences of a batch", options.integer(1, 100_000), default=32),
    Option(
        "--language-model DIR", "adds the log-probability of a language model of the same words"
    ),
    Option(
        "--language-weight W",
        f"of --language-model; default {_LANGUAGE_WEIGHT}",
        options.number(0, 1e9),
    ),
)


def run_translate(arguments: argparse.Namespace):
    """Prints or writes the translations in the order of the lines; an empty line stays empty."""
    folders, file = arguments.paths, None
    if len(folders) > 1 and not os.path.isdir(folders[-1]):
        *folders, file = folders
    if arguments.split and file:
        raise UserError(f"--split {arguments.split} and {file} are two texts: give one of them.")
    arguments.typed = not arguments.split and file in (None, "-") and sys.stdin.isatty()
    _check_files(folders[0], arguments)
    search = _search(arguments)
    translator = _translator(folders, arguments)
    restoring = _restoring(translator, arguments)
    if arguments.bleu:
        _judge(restoring, search, arguments)
        return
    sources = _sources(translator, file, arguments.split)
    _write(_translations(restoring, search, sources, arguments), translator, arguments)


def _search(arguments):
    """Returns the beam search, or the sampling, that the options describe."""
    from zoo.decoding import BeamSearch, Sampling

    kind, names = (Sampling, _SAMPLING_FIELDS) if arguments.sample else (BeamSearch, _BEAM_FIELDS)
    settings = {name: getattr(arguments, name) for name in ("nbest", "longest", *names)}
    return kind(**{name: value for name, value in settings.items() if value is not None})


def _translator(folders, arguments):
    """Loads the runs of the folders, and the language model if there is one."""
    from zoo.lab.evaluation.run import Run
    from zoo.lab.evaluation.translators import Translator

    folder, weight = arguments.language_model, arguments.language_weight
    return Translator(
        tuple(map(Run.load, folders)),
        language_model=Run.load(folder) if folder else None,
        weight=_LANGUAGE_WEIGHT if weight is None else weight,
    )


def _check_files(folder, arguments):
    """Raises UserError if an output file cannot be written."""
    from zoo.lab.evaluation import passport

    if arguments.bleu:
        passport.check(folder)
    options.check_outputs(arguments, output="the translations", alignments="the alignments")


def _translations(restoring, search, sources, arguments) -> Iterator[list]:
    """Yields the translations of some sources at a time; then prints notes on the text."""
    from zoo.lab.evaluation import unknown_words

    missing: collections.Counter[str] = collections.Counter()
    words = count = cut_off = total = empty = 0
    batch_size = 1 if arguments.typed else arguments.batch * _BATCHES
    sizes = {"batch": arguments.batch, "ratio": arguments.longest_ratio}
    with options.progress("sentences", hidden=arguments.typed) as bar:
        while batch := list(itertools.islice(sources, batch_size)):
            words += sum(map(len, batch))
            missing.update(restoring.translator.unknown(batch))
            lists = restoring.translate(batch, search, done=bar.update, first_number=count, **sizes)
            count += len(lists)
            total += sum(map(len, lists))
            cut_off += sum(not x.hypothesis.complete for best in lists for x in best)
            empty += sum(not best[0].words for best in lists if best)
            yield lists
    if missing:
        note = unknown_words.describe_share(words, missing.total(), "the text")
        options.print_notes([f"{note}: {quote([*missing])}"])
    if cut_off:
        options.print_notes(
            [
                f"{cut_off:,} of {total:,} translations are cut off at their greatest length: "
                "raise --longest-ratio, and --longest if it is less, to let them end"
            ]
        )
    if empty and not arguments.nbest:  # a list shows that of each hypothesis
        options.print_notes([f"{empty:,} of {count:,} lines have a translation without words"])


def _restoring(translator, arguments):
    """Returns the replacement of unknown words, by the run's marks or as the options ask."""
    from zoo.alignment import PositionalAll
    from zoo.lab.evaluation import translators
    from zoo.lab.evaluation.translators import Restoring
    from zoo.sources import pairs

    if arguments.alignments:
        translators.check(translator, "--alignments")
    dictionary, by = arguments.dictionary, arguments.unknowns
    if dictionary is None and by is None and translator.runs[0].experiment.data.unknowns is None:
        by = "keep"
    restoring = Restoring(translator, pairs.read_dictionary(dictionary) if dictionary else {}, by)
    if (
        arguments.alignments
        and isinstance(restoring.strategy, PositionalAll)
        and restoring.way == "marks"
    ):
        raise UserError(
            "this run's marks of unknown words take part in attention, and are removed from "
            "translations: give --unknowns keep for alignments of this run."
        )
    return restoring


def _judge(restoring, search, arguments):
    """Prints BLEU and chrF of a split, and keeps them with the hypotheses and a passport."""
    from zoo.lab.evaluation import translation_quality
    from zoo.lab.runs import output_files

    translator, split = restoring.translator, arguments.split
    run = translator.runs[0]
    corpus = translator.pairs(split)
    sources = run.experiment.source_corpus(corpus).sentences
    hypotheses = [
        " ".join(translations[0].words if translations else [])
        for batch in _translations(restoring, search, iter(sources), arguments)
        for translations in batch
    ]
    references = [" ".join(words) for words in corpus.sentences]
    tokenizer = arguments.tokenizer or "none"
    scores = translation_quality.figures(hypotheses, references, tokenizer)
    decoding = translation_quality.decoding(
        translator, search, restoring.describe(), arguments.longest_ratio
    )
    figures = translation_quality.passport_of(run, split, corpus, tokenizer, scores, decoding)
    paths = translation_quality.write(run, figures, hypotheses)
    output_files.show(
        translation_quality.describe(split, figures), *(f"  {path}" for path in paths)
    )
    examples = zip(map(" ".join, sources), references, hypotheses, strict=True)
    count = _EXAMPLES if arguments.examples is None else arguments.examples
    for source, reference, hypothesis in itertools.islice(examples, count):
        output_files.show(
            f"\nsource       {source}\nreference    {reference}\ntranslation  {hypothesis}"
        )


def _sources(translator, file, split) -> Iterator[list[str]]:
    """Yields the words of each source sentence."""
    from zoo.sources import files, foreign_formats

    if split:
        run = translator.runs[0]
        yield from run.experiment.source_corpus(translator.pairs(split)).sentences
    elif file and file != "-":
        lines = foreign_formats.check_text(files.lines(files.read(file)[1]), file)
        yield from map(translator.read, lines)
    else:
        yield from map(translator.read, _standard_input())


def _standard_input() -> Iterator[str]:
    """Yields the lines of standard input, at a terminal with a prompt before each."""
    from zoo.sources import files

    def typed():
        print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            print(file=sys.stderr)
        return line

    lines = iter(typed, "") if sys.stdin.isatty() else sys.stdin
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape", newline="\n")
    for number, line in enumerate(lines, 1):
        if any("\udc80" <= letter <= "\udcff" for letter in line):
            raise UserError(
                f"standard input, line {number}: not UTF-8: convert it, for instance with iconv "
                "-f latin1 -t utf-8."
            )
        if "\0" in line:
            raise UserError(f"standard input, line {number}: binary: give UTF-8 text.")
        yield from (text for _, text in files.split_line(line, number))


def _write(translation_lists, translator, arguments):
    """Writes the lines of translations and their alignments."""
    from zoo.alignment import most_attended
    from zoo.lab.evaluation import translators
    from zoo.lab.runs import output_files
    from zoo.sources import pairs

    links: list[str] = []

    def lines():
        for number, translations in enumerate(itertools.chain.from_iterable(translation_lists)):
            for translation in translations if arguments.alignments else ():
                words = translation.hypothesis, translation.read
                weights = translators.attention_weights(translator, *words)
                links.append(pairs.pharaoh(most_attended(weights)) + "\n")
            if arguments.alignments and not translations:
                links.append("\n")
            yield _lines(number, translations, translator, arguments)
            sys.stdout.flush()  # a line out for each line in

    # All of them first: an error of reading is none of writing.
    output = list(lines()) if arguments.output else lines()
    options.write(output, arguments.output, "the translations")
    if arguments.alignments:
        output_files.write_lines(arguments.alignments, links, "the alignments")


def _lines(number, translations, translator, arguments) -> str:
    """Formats the output of a sentence: a translation, or an n-best list."""
    from zoo.lab.evaluation import nbest

    if not arguments.nbest:
        return translator.detokenize(translations[0].words if translations else []) + "\n"
    lines: list[Any] = []
    for h, words, *_ in translations:
        # A hypothesis that did not end has no boundary among its tokens.
        features = {"LogProb": h.log_prob, "Length": len(h.log_probs), "Ended": h.complete}
        lines.append(nbest.line(number, words, features, h.score))
    if not translations:
        features = {"LogProb": 0.0, "Length": 0, "Ended": True}
        lines.append(nbest.line(number, [], features, 0.0))
    return "".join(f"{line}\n" for line in lines)


# ---- zoo align: word alignment of two files that are translations of each other, line by line


ALIGN = (
    Option("source [SOURCE]", "sentences, one a line, words between blanks"),
    Option("target [TARGET]", "the translation of each line of SOURCE, on the same line"),
    Option("--run DIR", "instead of files: the training pairs of a run"),
    Option("--output FILE", "the alignments to write; default: prints them"),
    Option("--dictionary FILE", "writes each source word with its most frequent translation"),
    Option(
        "--symmetrise",
        "combines the links of both directions",
        choices=METHODS,
        default="grow-diag",
    ),
    Option("--iterations N", "steps of EM", options.integer(1, 1000), default=5),
    Option("--lower-case", "ignores the case of letters"),
)


def run_align(arguments: argparse.Namespace):
    """Writes the links of each pair of sentences, a line a pair; progress goes to stderr."""
    from zoo.alignment import learn_dictionary
    from zoo.lab.runs import output_files
    from zoo.sources import pairs

    options.check_outputs(arguments, output="the alignments", dictionary="the table")
    sources, targets = _pairs(arguments)
    links = _align(sources, targets, arguments.iterations, arguments.symmetrise)
    options.write([pairs.pharaoh(x) + "\n" for x in links], arguments.output, "the alignments")
    if arguments.dictionary:
        dictionary = learn_dictionary(sources, targets, links)
        entries = [f"{source}\t{target}\n" for source, target in dictionary.items()]
        output_files.write_lines(arguments.dictionary, entries, "the dictionary")


def _pairs(arguments):
    """Reads both files; returns (source sentences, target sentences), each a list of words."""
    from zoo.sources import pairs

    if arguments.run:
        return _run_pairs(arguments)
    source, target = arguments.source, arguments.target
    if target is None:
        raise UserError("give two files, sources first, or --run DIR for the pairs of a run.")
    fold = str.lower if arguments.lower_case else str
    rows = pairs.side_by_side(source, target)
    words = ([[*map(sys.intern, fold(side).split())] for side in sides] for _, *sides in rows)
    sources, targets = map(list, zip(*words, strict=True))
    return sources, targets


def _run_pairs(arguments):
    """Reads the training pairs of a run, unknown words as they are written."""
    from zoo.lab.runs.workdir import Workdir

    experiment = Workdir(arguments.run).experiment()
    corpus = experiment.vocabulary.read(experiment.data.as_written(), "train")
    sides = experiment.source_corpus(corpus), corpus
    return [(side.lower_cased() if arguments.lower_case else side).sentences for side in sides]


def _align(sources, targets, iterations, method):
    """Returns the links of each pair, symmetrised from the models of both directions."""
    from zoo.alignment import Model1, symmetrise

    def report(direction, words):
        def progress(step, log_likelihood):
            print(
                f"{direction}, step {step} of {iterations}: "
                f"{log_likelihood / max(1, words):.4f} nats per word",
                file=sys.stderr,
            )

        return progress

    sizes = [sum(map(len, side)) for side in (sources, targets)]
    forward = Model1.train(sources, targets, iterations, report("target given source", sizes[1]))
    forward_links = forward.align(sources, targets)
    del forward
    backward = Model1.train(targets, sources, iterations, report("source given target", sizes[0]))
    backward_links = [[(i, j) for j, i in links] for links in backward.align(targets, sources)]
    return [symmetrise(a, b, method) for a, b in zip(forward_links, backward_links, strict=True)]
