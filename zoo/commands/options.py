"""Options that commands share: the folder of a run, changes of its lexicon, trust."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence

from zoo.commands import completion, program
from zoo.errors import UserError, printable, shortened

# Longer n-grams of letters tell nothing more of a word, and take memory.
_MOST_LETTERS = 20

# Options whose texts name no file.
_NO_FILES = (
    *("average", "label", "method", "metric", "nbest_format", "normaliser", "split", "state"),
    *("symmetrise", "tokenize", "tokenizer", "trust", "unknowns", "slf"),
)


class Parser(argparse.ArgumentParser):
    """A command's parser, which takes files before, between and behind options.

    By default argparse does not find an optional file behind an option, as in `translate DIR --beam
    5 FILE`.
    """

    _intermixes = False

    def parse_known_args(self, args=None, namespace=None):
        """Parses the arguments; returns (arguments, words that are left)."""
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
        help="allows the import of a function or component that the run names; may be repeated",
    )
    add(
        "--trust-paths",
        action="store_true",
        help="reads files that the run names, wherever they are",
    )
    add(
        "--no-compilation-cache",
        action="store_true",
        help="does not use the user's cache folder of compiled programs",
    )


def add_folder_to(parser: argparse.ArgumentParser, what: str):
    """Adds the folder of a run, DIR; --workdir DIR is another way to give it."""
    parser.add_argument("folder", nargs="?", metavar="DIR", help=what)
    parser.add_argument("--workdir", metavar="DIR", help="another way to give the folder")


def folder_of(arguments: argparse.Namespace) -> str:
    """Returns the folder of the run, for a command that has `add_folder_to`'s arguments."""
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
    """Parses a command line, by default the process's own.

    Files and configs that it names are trusted as the user's own (see `zoo.trust.permissions`).
    From here on JAX keeps compiled programs, unless --no-compilation-cache is given.
    """
    if completion.line() is not None:
        Parser._intermixes = True  # argcomplete follows the plain order of arguments
        completion.complete(parser)
    arguments = program.parse(parser, words)
    # Here, for --help needs none of them.
    from zoo.trust import permissions

    if not arguments.no_compilation_cache:
        from zoo.commands import compilation_cache

        compilation_cache.use()
    for text in check_given(arguments):
        for part in (text, *text.split(",")):  # two files of pairs
            permissions.name(permissions.names_of(part))
    if arguments.trust_paths:
        permissions.open_paths()
    return arguments


def add_picture_to(parser: argparse.ArgumentParser, default: str):
    """Adds --file, the picture that a command writes, and --label, the names of recipes in it."""
    add = parser.add_argument
    add(
        "--file",
        default=default,
        help="the picture to write: .png, .pdf or .svg; default: %(default)s",
    )
    add_label_to(parser)


def add_label_to(parser: argparse.ArgumentParser):
    """Adds --label, the names of recipes in what a command draws."""
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME",
        help="the name of a recipe; repeat it for each, in the order of the runs",
    )


def check_given(arguments: argparse.Namespace) -> list[str]:
    """Returns the texts among the arguments."""
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
    """Checks the files that a command is going to write, given as option=what its file is called.

    All other texts among the arguments may name files that it reads, except those in `_NO_FILES`.
    """
    from zoo.runs import output_files

    others = {
        name: value
        for name, value in vars(arguments).items()
        if name not in whats and name not in _NO_FILES
    }
    output_files.check_each(
        *((getattr(arguments, option), what) for option, what in whats.items()),
        read=check_given(argparse.Namespace(**others)),
    )


def add_to(parser: argparse.ArgumentParser):
    """Adds --lexicon, --add-words, --spread-unknown and --renormalise."""
    add = parser.add_argument
    add(
        "--add-words",
        metavar="FILE",
        help="adds the words of FILE, one a line, to the run's lexicon",
    )
    add(
        "--lexicon",
        metavar="FILE",
        help="replaces the run's lexicon by the words of FILE, one a line",
    )
    add(
        "--spread-unknown",
        action="store_true",
        help="with --add-words or --lexicon: new words share the probability of <unk>",
    )
    _add_letters(add)
    add(
        "--renormalise",
        action="store_true",
        help="normalises over the lexicon, for a head that normalises over all spellings",
    )


def add_cache_to(parser: argparse.ArgumentParser):
    """Adds --cache."""
    parser.add_argument(
        "--cache",
        type=_cache,
        metavar="N[,FLATNESS,WEIGHT]",
        help="with a memory of the last N words (Grave et al. 2017), so that the model learns from "
        "the text; flatness and weight are set on validation unless given",
    )


def _cache(text: str) -> tuple[int, float | None, float | None]:
    """Reads the argument of --cache."""
    size, *others = text.split(",")
    if len(others) not in (0, 2):
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 40)!r} is not N or N,FLATNESS,WEIGHT, such as 500 or 500,0.3,0.1"
        )
    if not others:
        return whole(1, 100_000)(size), None, None
    flatness, weight = others
    return whole(1, 100_000)(size), number(0, 1e6, above=True)(flatness), number(0, 0.999)(weight)


def with_cache(run, cache: tuple[int, float | None, float | None] | None):
    """Returns a run with the cache of `add_cache_to`'s argument, or the run itself without one."""
    if cache is None:
        return run
    from zoo.evaluation import mixtures

    size, flatness, weight = cache
    if flatness is None or weight is None:
        flatness, weight = mixtures.tuned_cache(run, size)
        print_notes([f"cache: flatness {flatness:g}, weight {weight:g}, set on validation"])
    return run.with_cache(size, flatness, weight)


def run_of(workdir: str, arguments: argparse.Namespace):
    """Loads the run of a folder, changed as the options of `add_to` ask."""
    from zoo.evaluation.run import Run

    if arguments.lexicon and arguments.add_words:
        raise UserError(
            "--lexicon replaces the words of the run's lexicon, and --add-words keeps them: give "
            "one of the two."
        )
    file = arguments.lexicon or arguments.add_words
    spread, letters = _spread(arguments)
    if spread and not file:
        raise UserError(f"{spread} is for new words: give --add-words FILE or --lexicon FILE, too.")
    run = Run.load(workdir).with_lexicon(file, bool(spread), bool(arguments.add_words), letters)
    return run.renormalised() if arguments.renormalise else run


def add_words_to(parser: argparse.ArgumentParser):
    """Adds --add-words and --spread-unknown, for commands that take one run or several."""
    add = parser.add_argument
    add(
        "--add-words",
        metavar="FILE",
        help="adds the words of FILE, one a line, to each run's lexicon",
    )
    add(
        "--spread-unknown",
        action="store_true",
        help="with --add-words: new words share the probability of <unk> in runs without features",
    )
    _add_letters(add)


def add_truncation_to(parser: argparse.ArgumentParser):
    """Adds --top-k and --nucleus, for commands that sample words."""
    add = parser.add_argument
    add("--top-k", type=whole(1), metavar="K", help="samples among the K most probable words only")
    add(
        "--nucleus",
        type=number(0, 1, above=True),
        metavar="P",
        help="samples among the fewest words whose probabilities sum to P; applied after --top-k",
    )


def _add_letters(add):
    add(
        "--spread-letters",
        type=whole(1, _MOST_LETTERS),
        metavar="N",
        help="as --spread-unknown, in proportion to a letter N-gram model of the known words",
    )


def _spread(arguments) -> tuple[str, int]:
    """Returns (the option that spreads the unknown word's probability over new words, "" for none;
    the order of its letter n-gram, 0 for none)."""
    letters = arguments.spread_letters
    if letters is None:
        return "--spread-unknown" * arguments.spread_unknown, 0
    return "--spread-letters", letters


def run_with_words(workdir: str, arguments: argparse.Namespace):
    """Loads a run, and adds the words of `add_words_to`'s arguments to its lexicon."""
    from zoo.evaluation.run import Run
    from zoo.heads.head import Head

    run = Run.load(workdir)
    spread, letters = _spread(arguments)
    if not arguments.add_words:
        if spread:
            raise UserError(f"{spread} is for new words: give --add-words FILE, too.")
        return run
    head = run.experiment.language_model.head
    of_words = type(head).for_lexicon is Head.for_lexicon
    shared = bool(spread) and of_words
    return run.with_lexicon(arguments.add_words, shared, add=True, letters=letters * shared)


def print_notes(notes: Iterable[str | None]):
    """Prints remarks on stderr, each on a line, apart from the command's output."""
    for note in filter(None, notes):
        print(printable(note), file=sys.stderr)
