"""Options that commands share: a run's folder; which words, normalised over what; trust."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence

from zoo.commands import program
from zoo.errors import UserError, printable, shortened

# More say nothing of words, and take memory.
_MOST_LETTERS = 20

# Options whose texts name no file.
_NO_FILES = (
    *("average", "method", "metric", "nbest_format", "normaliser", "split", "state"),
    *("symmetrise", "tokenize", "tokenizer", "trust", "unknowns", "slf"),
)


class Parser(argparse.ArgumentParser):
    """A command's parser, which takes files before, between and behind options.

    argparse by itself leaves an optional file out where an option stands between it and what comes
    before, as in `translate DIR --beam 5 FILE`.
    """

    _intermixes = False

    def parse_known_args(self, args=None, namespace=None):
        """The arguments, and what is left of them."""
        takes_commands = any(
            action.nargs in (argparse.PARSER, argparse.REMAINDER) for action in self._actions
        )
        if takes_commands or self._intermixes:
            return super().parse_known_args(args, namespace)
        self._intermixes = True  # it calls this method for options and files in turn
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixes = False


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """Makes the type of an option that takes a whole number from `least` to `most`.

    Every numeric option has its bounds here or in `number`, and is refused before any work is done.
    """

    def read(text: str) -> int:
        with contextlib.suppress(ValueError):
            if least <= int(text) <= most:
                return int(text)
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 40)!r} is not a whole number from {least:,} to {most:,}"
        )

    return read


def number(least: float, most: float, above: bool = False) -> Callable[[str], float]:
    """Makes the type of an option that takes a number from `least` to `most`; with `above`, only
    one above `least`. Bounds leave room in float32 for sums and products."""

    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            if least <= float(text) <= most and not (above and float(text) == least):
                return float(text)
        start = f"above {least:g}, at most" if above else f"from {least:,.12g} to"
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 40)!r} is not a number {start} {most:,.12g}"
        )

    return read


# The type of a weight or a penalty, of either sign.
weight = number(-1e9, 1e9)


def add_common_to(parser: argparse.ArgumentParser):
    """Adds --trust, --trust-paths and --no-compilation-cache."""
    add = parser.add_argument
    add(
        "--trust",
        action="append",
        default=[],
        metavar="MODULE:NAME",
        help="a function or component that the run names and that may be imported; may be repeated",
    )
    add("--trust-paths", action="store_true", help="reads what the run names wherever it lies")
    add(
        "--no-compilation-cache",
        action="store_true",
        help="neither reads nor keeps compiled programs in the user's cache folder",
    )


def add_folder_to(parser: argparse.ArgumentParser, what: str):
    """Adds the folder of a run, DIR; --workdir DIR is another way to give it."""
    parser.add_argument("folder", nargs="?", metavar="DIR", help=what)
    parser.add_argument("--workdir", metavar="DIR", help="the same folder, as it was given before")


def folder_of(arguments: argparse.Namespace) -> str:
    """The folder of the run, of a command that has `add_folder_to`'s arguments.

    Raises:
      UserError: there is none, or there are two.
    """
    folder, workdir = arguments.folder, arguments.workdir
    if folder and workdir and folder != workdir:
        raise UserError(
            f"{folder} and --workdir {workdir} are two folders for one run: give one of them."
        )
    if not (folder or workdir):
        raise UserError("no run is named: give its folder, as in runs/first.")
    return folder or workdir


def parse(
    parser: argparse.ArgumentParser, words: Sequence[str] | None = None
) -> argparse.Namespace:
    """The arguments of a command line, by default the process's own.

    What they name is the user's own (see `zoo.trust.permissions`).

    From here on JAX keeps what it compiles, unless they say otherwise.

    Raises:
      UserError: an argument is empty, as "$FILE" is where the variable is not set: it would be
        taken for none, or for the working folder.
    """
    arguments = program.parse(parser, words)
    # Here, for --help needs none of them.
    from zoo.sources import files
    from zoo.trust import permissions

    if not arguments.no_compilation_cache:
        from zoo.commands import compilation_cache

        compilation_cache.use()
    for text in check_given(arguments):
        permissions.name(files.names_in(text))
    if arguments.trust_paths:
        permissions.open_paths()
    return arguments


def check_given(arguments: argparse.Namespace) -> list[str]:
    """The texts among the arguments.

    Raises:
      UserError: one is empty.
    """
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


def check_outputs(arguments: argparse.Namespace, **whats: str):
    """Checks the files that a command is to write, {option: what its file is called}.

    All other texts among its arguments may be names of what it reads, but for `_NO_FILES`.

    Raises:
      UserError: as `zoo.runs.outputs.check_each`.
    """
    from zoo.runs import outputs

    others = {
        name: value
        for name, value in vars(arguments).items()
        if name not in whats and name not in _NO_FILES
    }
    outputs.check_each(
        *((getattr(arguments, option), what) for option, what in whats.items()),
        read=check_given(argparse.Namespace(**others)),
    )


def add_to(parser: argparse.ArgumentParser):
    """Adds --lexicon, --add-words, --spread-unknown and --renormalise."""
    add = parser.add_argument
    add("--add-words", metavar="FILE", help="words, one a line, beside those of training")
    add("--lexicon", metavar="FILE", help="words, one a line, in the place of those of training")
    add(
        "--spread-unknown",
        action="store_true",
        help="with one of these: new words share the probability of the run's unknown word",
    )
    _add_letters(add)
    add(
        "--renormalise",
        action="store_true",
        help="over the words of the lexicon, where the head's sum to one over all spellings",
    )


def run_of(workdir: str, arguments: argparse.Namespace):
    """The run of a folder, with what the options change of it; UserError as Run's methods raise."""
    from zoo.evaluation.run import Run

    if arguments.lexicon and arguments.add_words:
        raise UserError(
            "--lexicon puts words in the place of those of training, and --add-words keeps these: "
            "give one of the two."
        )
    file = arguments.lexicon or arguments.add_words
    spread, letters = _spread(arguments)
    if spread and not file:
        raise UserError(
            f"{spread} is for words that training had not: give --add-words FILE or --lexicon FILE."
        )
    run = Run.load(workdir).with_lexicon(file, bool(spread), bool(arguments.add_words), letters)
    return run.renormalised() if arguments.renormalise else run


def add_words_to(parser: argparse.ArgumentParser):
    """Adds --add-words and --spread-unknown, for one run or several beside each other."""
    add = parser.add_argument
    add(
        "--add-words", metavar="FILE", help="words, one a line, beside those of each run's training"
    )
    add(
        "--spread-unknown",
        action="store_true",
        help="with it: they share the probability of <unk> in runs that know words by no features",
    )
    _add_letters(add)


def add_truncation_to(parser: argparse.ArgumentParser):
    """Adds --top-k and --nucleus, of what draws words."""
    add = parser.add_argument
    add("--top-k", type=whole(1), metavar="K", help="draws from the K most probable words alone")
    add(
        "--nucleus",
        type=number(0, 1, above=True),
        metavar="P",
        help="draws from the fewest words alone whose probabilities add up to P; after --top-k",
    )


def _add_letters(add):
    add(
        "--spread-letters",
        type=whole(1, _MOST_LETTERS),
        metavar="N",
        help="as --spread-unknown, in proportion to an N-gram model of the letters of known words",
    )


def _spread(arguments) -> tuple[str, int]:
    """(the option by which new words share the probability of the unknown word, "" for none; the
    letters of an n-gram, 0 for none)."""
    letters = arguments.spread_letters
    if letters is None:
        return "--spread-unknown" * arguments.spread_unknown, 0
    return "--spread-letters", letters


def run_with_words(workdir: str, arguments: argparse.Namespace):
    """The run of a folder, with the words of `add_words_to`'s arguments beside its own.

    Raises:
      UserError: the run's head has parameters of words, and nothing is to be spread; or as Run's
        methods raise.
    """
    from zoo.evaluation.run import Run
    from zoo.heads.head import Head

    run = Run.load(workdir)
    spread, letters = _spread(arguments)
    if not arguments.add_words:
        if spread:
            raise UserError(f"{spread} is for words that training had not: --add-words FILE.")
        return run
    head = run.experiment.language_model.head
    of_words = type(head).for_lexicon is Head.for_lexicon
    shared = bool(spread) and of_words
    return run.with_lexicon(arguments.add_words, shared, add=True, letters=letters * shared)


def print_notes(notes: Iterable[str]):
    """Prints remarks on a text on stderr, each on a line: they are no part of the output."""
    for note in notes:
        print(printable(note), file=sys.stderr)
