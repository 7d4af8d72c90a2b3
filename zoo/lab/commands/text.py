"""zoo text and zoo try: a model of one's own text or pairs, and which head to take for it."""

import argparse
import os
import pathlib
import shlex
import signal

from zoo.errors import Interrupted
from zoo.lab.commands import options, program
from zoo.lab.commands.options import Option

_MINUTES = 10.0
_RATES = (0.3, 1.0, 3.0)
_FACTOR = options.number(0, 1e6, above=True)

# ------------- zoo text: from the text to a report on one run, by other commands
# The recipe is a config with fields that `zoo.lab.own_text` chooses by the text. The command prints
# the line of `zoo train` that makes the same run.


_READING = (
    Option("--letters", "every character is a token, instead of every word"),
    Option(
        "--language CODE ...",
        "language by whose rules words are found, as fr; none: text is tokenised; twice for "
        "two files; default: recognised by its frequent words",
    ),
    Option(
        "--lines",
        "what a line of the text is; wrapped: a piece of a paragraph, which ends at a blank line; "
        "default: recognised by the ends of lines",
        choices=("sentences", "paragraphs", "wrapped"),
    ),
)
TEXT = (
    Option("text TEXT", "a UTF-8 text, a folder or pattern of texts, a treebank, or a config"),
    Option("translation [TRANSLATION]", "for pairs: a file that translates the first line by line"),
    Option("folder DIR", "folder of the run; training resumes in a folder with a run"),
    *_READING,
    options.SET,
    Option("--dry-run", "prints the recipe's command, and trains nothing"),
)


def _choose_recipe(texts, arguments):
    """Chooses the recipe of texts and prints notes on it; returns (the recipe, its experiment)."""
    from zoo import configuration
    from zoo.lab import own_text
    from zoo.lab.runs import output_files

    recipe = own_text.choose(texts, arguments.letters, arguments.language, arguments.lines or "")
    experiment = configuration.apply_settings(recipe.experiment(), arguments.set)
    output_files.show(*recipe.notes)
    return recipe, experiment


def run_text(arguments: argparse.Namespace):
    """Makes the recipe, trains, evaluates, shows samples, and writes the report."""
    from zoo.lab.commands import command_table
    from zoo.lab.evaluation.run import first_test
    from zoo.lab.evaluation.translators import DICTIONARY
    from zoo.models import SequenceToSequence

    folder = arguments.folder
    texts = [path for path in (arguments.text, arguments.translation) if path]
    recipe, experiment = _choose_recipe(texts, arguments)
    words = [*recipe.arguments(), *(word for text in arguments.set for word in ("--set", text))]
    if arguments.dry_run:
        print(f"Train it: {program.command('train')} {shlex.join([*words, folder])}")
        return

    def run(name, *parts):
        """Prints and runs a command."""
        line = [*parts, *["--no-compilation-cache"] * arguments.no_compilation_cache]
        print(f"\n$ {program.command(name)} {shlex.join(line)}", flush=True)
        command_table.run(name, line, f"{program.prog()} {name}")

    split = first_test(experiment)
    run("train", *words, folder)
    if isinstance(experiment.model, SequenceToSequence):
        dictionary, links = (os.path.join(folder, name) for name in (DICTIONARY, "train.align"))
        run("align", "--run", folder, "--output", links, "--dictionary", dictionary)
        run("evaluate", folder, "--split", split)
        run("translate", folder, "--split", split, "--bleu", "--dictionary", dictionary)
    else:
        table = os.path.join(folder, "surprisal.tsv")
        run("evaluate", folder, "--split", split)
        run("score", folder, "--words", "--split", split, "--output", table)
        run("generate", folder, "--count", "3", "--temperature", "0.8")
    run("compare", folder, "--page", os.path.join(folder, "report.html"))
    print(f"Open {folder}/report.html: learning curves, figures, the test text by surprisal.")


# ------------- zoo try: several heads trained on a text for the same time


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _factors(text: str) -> tuple[float, ...]:
    return tuple(dict.fromkeys(_FACTOR(part) for part in text.split(",")))


TRY = (
    Option("text TEXT ...", "a text; two for pairs; a treebank, a file or folder; or a config"),
    *_READING,
    Option(
        "--minutes M",
        f"trains each run for M minutes, without compilation and validation; default: {_MINUTES:g}",
        options.number(0, 1e6, above=True),
    ),
    Option("--steps N", "trains each run for N steps instead", options.integer(1)),
    Option(
        "--heads NAME,...",
        "the heads, or my_module:MyHead; default: some that fit the text's vocabulary",
        _names,
        default=[],
    ),
    Option("--seeds N", "runs of each head", options.integer(1, 100), default=3),
    Option(
        "--rates F,...",
        "factors of the learning rate, each tried for a tenth of a run; 1 tries no other; "
        "default: 0.3,1,3",
        _factors,
        default=_RATES,
    ),
    options.SET,
    Option("--output DIR", "folder of the trials, for resuming too; default: runs/try/TEXT"),
)


def run_try(arguments: argparse.Namespace):
    """Makes the trials, or resumes them, and prints the comparison."""
    from zoo.lab.own_text import summary, trials
    from zoo.lab.own_text.plan import Budget
    from zoo.lab.runs import output_files

    _, experiment = _choose_recipe(arguments.text, arguments)
    stem = pathlib.Path(arguments.text[-1]).stem
    folder = pathlib.Path(arguments.output or pathlib.Path("runs", "try", stem))
    minutes = arguments.minutes or (_MINUTES if arguments.steps is None else None)
    budget = Budget(minutes, arguments.steps, arguments.rates)
    plan = trials.Trials(experiment, arguments.heads, folder, budget, arguments.seeds)
    try:
        comparison = trials.run_trials(plan)
    except (Interrupted, KeyboardInterrupt) as interruption:
        place = folder / f"{summary.NAME}.txt"
        hint = f" {place} compares the runs so far." if place.exists() else ""
        raise Interrupted(
            f"{str(interruption) or 'interrupted.'}{hint} To resume: {program.command_line()}",
            getattr(interruption, "signal", signal.SIGINT),
        ) from None
    output_files.show("", comparison.text(), "", folder / f"{summary.NAME}.json")
