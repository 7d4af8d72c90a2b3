"""Options that commands share, and the table of those that need or exclude one another."""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from zoo.base import lazy
from zoo.errors import UserError, printable
from zoo.lab.commands import program
from zoo.lab.options import Option, attribute, integer, number

# Options whose texts name no file.
_NO_FILES = (
    *("label", "method", "metric", "rules", "split", "state", "symmetrise", "tokenize"),
    *("tokenizer", "trust", "unknowns", "slf"),
)


class Parser(argparse.ArgumentParser):
    """A command's parser, which takes files behind options, too: `translate DIR --beam 5 FILE`."""

    _intermixes = False

    def parse_known_args(self, args=None, namespace=None):
        """Parses the arguments; returns (arguments, unparsed words)."""
        takes_commands = any(
            action.nargs in (argparse.PARSER, argparse.REMAINDER) for action in self._actions
        )
        if takes_commands or self._intermixes:
            return super().parse_known_args(args, namespace)
        self._intermixes = True  # it calls this method for options and files in turn
        try:
            arguments, unparsed = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixes = False
        if unparsed:  # here, under the usage of this command
            self.error(f"unrecognized arguments: {' '.join(unparsed)}")
        return arguments, unparsed


class Inner(NamedTuple):
    """A command within a command, such as `rescore tune`."""

    about: str
    options: Sequence[Option]
    run: Callable[[argparse.Namespace], None]


def add_to(
    parser: argparse.ArgumentParser, table: Sequence[Option] | Mapping[str, Inner], command: str
):
    """Adds the options of a command, or its inner commands, and sets its rules."""
    if isinstance(table, Mapping):
        commands = parser.add_subparsers(required=True, metavar=" | ".join(table), dest="inner")
        for name, inner in table.items():
            inner_parser = commands.add_parser(name, help=inner.about)
            add_to(inner_parser, inner.options, f"{command} {name}")
        return
    parser.set_defaults(rules=read_rules(command, table))
    for option in (*table, *COMMON):
        option.add_to(parser)


def parse(
    parser: argparse.ArgumentParser, words: Sequence[str] | None = None
) -> argparse.Namespace:
    """Parses a command line, trusts the files that it names, and keeps compiled programs."""
    arguments = program.parse(parser, words)
    # Here, for --help needs none of them.
    from zoo.base.trust import permissions

    texts = collect_texts(arguments)
    check_rules(arguments)
    if not arguments.no_compilation_cache:
        program.keep_compiled()
    for text in texts:
        for part in (text, *text.split(",")):  # two files of pairs
            permissions.open_names(permissions.names_of(part))
    if arguments.trust_paths:
        permissions.open_paths()
    return arguments


def collect_texts(arguments: argparse.Namespace) -> list[str]:
    """Collects the texts among the arguments; raises UserError for an empty one."""
    texts = []
    for name, value in vars(arguments).items():
        for text in value if isinstance(value, list) else [value]:
            if text == "" and name != "prompt":
                raise UserError(
                    f"the argument {name.replace('_', '-')} is empty: give a value, or leave it "
                    "out."
                )
            if isinstance(text, str):
                texts.append(text)
    return texts


def check_outputs(arguments: argparse.Namespace, **labels: str):
    """Raises UserError if an output file cannot be written, or may also be an input.

    Labels name the outputs, as option="the table". Inputs are all texts of the other options but
    `_NO_FILES`.
    """
    from zoo.lab.runs import output_files

    texts = {
        name: value
        for name, value in vars(arguments).items()
        if name not in labels and name not in _NO_FILES
    }
    output_files.check_each(
        *((getattr(arguments, option), label) for option, label in labels.items()),
        inputs=collect_texts(argparse.Namespace(**texts)),
    )


# ------------------------- options that several commands have

COMMON = (
    Option("--trust MODULE:NAME ...", "allows the import of something that the run names"),
    Option("--trust-paths", "reads files that the run names, wherever they are"),
    Option("--no-compilation-cache", "does not use the user's cache folder of compiled programs"),
)
RUN = Option("folder DIR", "folder of a training run")
LABEL = Option("--label NAME ...", "the name of each recipe, in the order of the runs")
SET = Option("--set FIELD=VALUE ...", "sets a field of the recipe, as training.epochs=5")
TRUNCATION = (
    Option("--top-k K", "samples among the K most probable words only", integer(1)),
    Option(
        "--nucleus P",
        "samples among the fewest words whose probabilities sum to P; applied after --top-k",
        number(0, 1, above=True),
    ),
)


def run_with_words(workdir: str, arguments: argparse.Namespace):
    """Loads a run, and adds the words of `ADDED_WORDS`; a head that reads features of new words
    needs no spread of <unk>."""
    from zoo.heads.head import Head
    from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
    from zoo.lab.evaluation.run import Run

    run = Run.load(workdir)
    if not arguments.add_words:
        return run
    change = NewLexicon.from_arguments(arguments, run)
    is_open = type(run.experiment.language_model.head).for_lexicon is not Head.for_lexicon
    if is_open and not change.by_features:
        change = dataclasses.replace(change, spread=False, letters=0)
    return change.apply(run)


def write(lines: Iterable[str], file: str | None, label: str):
    """Writes lines to a file, or prints them as they come if none is named."""
    if file:
        from zoo.lab.runs import output_files

        output_files.write_lines(file, lines, label)
    elif sys.stdout.isatty():  # words of somebody else's model may be commands to it
        sys.stdout.writelines("\t".join(map(printable, line.split("\t"))) for line in lines)
    else:
        sys.stdout.writelines(lines)


def progress(unit: str, items: Iterable | None = None, hidden: bool = False):
    """Returns a progress bar, which is written twice a minute outside a terminal."""
    with lazy.extra():
        from tqdm import tqdm

    intervals = {} if sys.stderr.isatty() else {"delay": 30, "mininterval": 30}
    return tqdm(items, unit=f" {unit}", file=sys.stderr, disable=hidden, **intervals)


def print_notes(notes: Iterable[str | None]):
    """Prints remarks on stderr, each on a line, apart from the command's output."""
    for note in filter(None, notes):
        print(printable(note), file=sys.stderr)


# ------------------------- options that need or exclude one another, by command
# "--metric bleu" is this value of an option, "--run DIR" the option with any value, and SOURCE an
# argument without a name. Behind the colon stands what the option is or does, for the message.

_LISTS_RULES = """
--unknown-count needs --run DIR, --arpa FILE: counts the unknown words of models
--interpolation needs --run DIR: averages runs
--also-best needs --also LISTS
"""
RULES = {
    "try": "--minutes excludes --steps",
    "evaluate": """
        --tokenize needs --data FILE, --minimal-pairs FILE: is for other texts than the run's own
        """,
    "score": """
        --split excludes FILE: is a text of the run's data
        --split needs --words
        --split excludes --tokenize: has the words of the run's data
        --state needs --words
        --words excludes --nbest, --column, --base: writes the words of a text, in nats and bits
        """,
    "generate": "--spell excludes --top-k, --nucleus: draws letters, without truncation",
    "translate": """
        --bleu needs --split NAME: needs references
        --tokenizer needs --bleu
        --examples needs --bleu
        --language-weight needs --language-model DIR
        --unknowns keep excludes --dictionary: leaves unknown words as they are
        --temperature needs --sample: is for draws
        --top-k needs --sample: is for draws
        --nucleus needs --sample: is for draws
        --seed needs --sample: is for draws
        --sample excludes --beam, --length-normalisation, --bleu: draws, and searches for no best
        --bleu excludes --nbest, --output, --alignments: keeps the best translations beside the run
        """,
    "align": "--run excludes SOURCE: has pairs of its own",
    "rescore tune": f"""{_LISTS_RULES}
        --tokenize needs --metric bleu: is for BLEU
        --test-references needs --test LISTS
        --test-lattices needs --test LISTS
        --test-costs needs --test LISTS
        --test-lattices needs --lattices FOLDER
        """,
    "rescore apply": _LISTS_RULES,
    "rescore lattices": """
        --kaldi excludes --nbest: writes lattices and --nbest lists
        --weights excludes --weight, --acoustic-weight, --language-weight: has all weights
        --weights excludes --posterior-weight, --word-penalty: has all weights
        """,
    "compare": """
        --micro excludes --page, --plot, --by: judges by the micro language itself
        --micro excludes --split, --label: judges by the micro language itself
        --page excludes --plot, --by: shows all that runs keep
        --by distance needs --plot FILE
        --against needs --plot FILE: is for learning curves
        --against excludes --by: is for learning curves
        --training needs --plot FILE: is for learning curves
        --training excludes --by: is for learning curves
        --text needs --page FILE
        --text excludes --split: is shown in place of a split
        --sentences needs --page FILE
        --label needs --plot FILE, --page FILE
        --add-words needs --page FILE
        """,
}


class Rule(NamedTuple):
    """An option that needs one of several other options, or excludes all of them."""

    option: str
    needs: bool
    choices: list[str]
    reason: str


def read_rules(command: str, table: Sequence[Option]) -> list[Rule]:
    """Reads the rules of a command from `RULES` and from its options, without choices that it does
    not have."""
    names = {attribute(option.usage) for option in table}
    lines = [RULES.get(command, ""), *(option.rules for option in table)]
    rules = []
    for line in filter(None, map(str.strip, "\n".join(lines).splitlines())):
        rule, _, reason = line.partition(": ")
        kind = " needs " if " needs " in rule else " excludes "
        option, choices = rule.split(kind)
        present = [choice for choice in choices.split(", ") if attribute(choice) in names]
        if present:
            rules.append(Rule(option, kind == " needs ", present, reason))
    return rules


def check_rules(arguments: argparse.Namespace):
    """Raises UserError for the first rule of the command that its line breaks."""

    def is_given(option):
        """Whether the line has an option, or this value of it."""
        argument, value = getattr(arguments, attribute(option)), option.partition(" ")[2]
        if value.islower():
            return argument == value
        return argument is not None and argument is not False and argument != []

    for option, needs, choices, reason in getattr(arguments, "rules", ()):
        present = [choice for choice in choices if is_given(choice)]
        if not is_given(option) or bool(present) == needs:
            continue
        if present:
            present_names = " and ".join(present)
            reason = reason or f"and {present_names} exclude each other"
            raise UserError(f"{option} {reason}: leave out {present_names}, or {option}.")
        names = " or ".join(x if x.split()[-1].islower() else x.partition(" ")[0] for x in choices)
        raise UserError(
            f"{option} {reason or f'is for {names}'}: give {' or '.join(choices)}, too, or leave "
            f"{option} out."
        )
