"""zoo text: a model of one's own text or pairs, from the raw files to a report, by other commands.

The recipe is one of configs/own/, with fields that `zoo.own_text` chooses by the text. The command
prints the line of `zoo train` that makes the same run.
"""

import argparse
import os
import shlex

from zoo.commands import options, program

_EXAMPLES = 5  # translations that are shown


def add_text_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo text`."""
    add = parser.add_argument
    add("text", metavar="TEXT", help="a UTF-8 text, or a folder or pattern of texts")
    add(
        "translation",
        nargs="?",
        metavar="TRANSLATION",
        help="for pairs: a second file, which translates the first line by line",
    )
    add("folder", metavar="DIR", help="folder of the run; training resumes in a folder with a run")
    add("--letters", action="store_true", help="every character is a token, instead of every word")
    add(
        "--language",
        action="append",
        default=[],
        metavar="CODE",
        help="language by whose rules words are found, as fr; none: text is tokenised; twice for "
        "two files; default: recognised by its frequent words",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="sets a field of the recipe, as training.epochs=5; may be repeated",
    )
    add("--dry-run", action="store_true", help="prints the recipe's command, and trains nothing")


def run_text(arguments: argparse.Namespace):
    """Makes the recipe, trains, evaluates, shows samples, and writes the report."""
    from zoo import own_text

    folder = arguments.folder
    texts = [path for path in (arguments.text, arguments.translation) if path]
    recipe = own_text.of_text(texts, arguments.letters, arguments.language)
    words = [*recipe.arguments(), *(word for one in arguments.set for word in ("--set", one))]
    print(*recipe.told, sep="\n")
    if arguments.dry_run:
        print(f"Train it: {program.command('train')} {shlex.join([*words, folder])}")
        return

    def run(name, *given):
        common = ["--no-compilation-cache"] * arguments.no_compilation_cache
        _run(name, [*given, *common])

    run("train", *words, folder)
    if len(texts) == 2:
        _judge_pairs(run, folder, recipe)
    else:
        table = os.path.join(folder, "surprisal.tsv")
        run("evaluate", folder, "--split", "test", "--surprisal", table)
        run("generate", folder, "--count", "3", "--temperature", "0.8")
    run("report", folder, "--output", os.path.join(folder, "report.html"))
    print(f"Open {folder}/report.html: learning curves, figures, the test text by surprisal.")


def _judge_pairs(run, folder, recipe):
    """Writes the dictionary of a run of pairs, evaluates it, and shows some translations."""
    from zoo.data import Pairs
    from zoo.evaluation.translators import DICTIONARY

    dictionary, examples = (os.path.join(folder, name) for name in (DICTIONARY, "examples.txt"))
    links = os.path.join(folder, "train.align")
    run("align", "--run", folder, "--output", links, "--dictionary", dictionary)
    run("evaluate", folder, "--split", "test")
    run("translate", folder, "--split", "test", "--bleu", "--dictionary", dictionary)
    (test,) = recipe.settings["data.tests"]
    lines = [row[1] for row in Pairs(test, test).rows("train")[0][:_EXAMPLES]]
    with open(examples, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    print("", *lines, sep="\n")
    run("translate", folder, examples, "--dictionary", dictionary)


def _run(name: str, words: list[str]):
    """Runs another command, and prints its line."""
    from zoo.commands.command_table import functions_of

    print(f"\n$ {program.command(name)} {shlex.join(words)}", flush=True)
    add_to, run = functions_of(name)
    parser = options.Parser(prog=f"{program.called()} {name}")
    add_to(parser)
    options.add_common_to(parser)
    run(options.parse(parser, words))
