"""zoo try: which head to take for a text, found by training several for the same time."""

import argparse
import pathlib
import signal

from zoo.commands import options, program
from zoo.errors import Interrupted, UserError

_MINUTES = 10.0
_RATES = (0.3, 1.0, 3.0)
_FACTOR = options.number(0, 1e6, above=True)


def add_try_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo try`."""
    add = parser.add_argument
    add(
        "text",
        nargs="+",
        metavar="TEXT",
        help="a text; two for pairs; a treebank, as a .conllu file or a folder; or a config",
    )
    add("--letters", action="store_true", help="predicts every character of a text, not words")
    add(
        "--language",
        action="append",
        default=[],
        metavar="CODE",
        help="the language of a text, as fr, or none for tokenised text; for pairs, one for each; "
        "default: recognised",
    )
    add(
        "--minutes",
        type=options.number(0, 1e6, above=True),
        metavar="M",
        help=f"trains each run for M minutes, without compilation and validation; default: "
        f"{_MINUTES:g}",
    )
    add("--steps", type=options.whole(1), metavar="N", help="trains each run for N steps instead")
    add(
        "--heads",
        type=_names,
        default=[],
        metavar="NAME,...",
        help="the heads, or my_module:MyHead; default: some that fit the text's vocabulary",
    )
    add(
        "--seeds",
        type=options.whole(1, 100),
        default=3,
        metavar="N",
        help="runs of each head; default: %(default)s",
    )
    add(
        "--rates",
        type=_factors,
        default=_RATES,
        metavar="F,...",
        help="factors of the learning rate, each tried for a tenth of a run; 1 tries no other; "
        "default: 0.3,1,3",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="sets a field of the recipe that all heads share; may be repeated",
    )
    add(
        "--output",
        metavar="DIR",
        help="the folder of the trials, which the same command resumes; default: runs/try/TEXT",
    )


def _names(text: str) -> list[str]:
    """Reads the argument of --heads."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _factors(text: str) -> tuple[float, ...]:
    """Reads the argument of --rates."""
    return tuple(dict.fromkeys(_FACTOR(part) for part in text.split(",")))


def run_try(arguments: argparse.Namespace):
    """Makes the trials, or resumes them, and prints the comparison."""
    if arguments.minutes is not None and arguments.steps is not None:
        raise UserError("--minutes and --steps exclude each other: give one of them.")
    from zoo import configuration
    from zoo.comparison import trial_recipes, trial_summary, trials
    from zoo.comparison.trial_plan import Budget
    from zoo.runs import output_files

    experiment, told = trial_recipes.given_recipe(
        arguments.text, arguments.letters, arguments.language
    )
    experiment = configuration.apply_settings(experiment, arguments.set)
    output_files.show(*told)
    stem = pathlib.Path(arguments.text[-1]).stem
    folder = pathlib.Path(arguments.output or pathlib.Path("runs", "try", stem))
    minutes = arguments.minutes or (_MINUTES if arguments.steps is None else None)
    budget = Budget(minutes, arguments.steps, arguments.rates)
    wanted = trials.Trials(experiment, arguments.heads, folder, budget, arguments.seeds)
    try:
        found = trials.run(wanted)
    except (Interrupted, KeyboardInterrupt) as interruption:
        place = folder / f"{trial_summary.NAME}.txt"
        so_far = f" {place} compares the runs so far." if place.exists() else ""
        raise Interrupted(
            f"{str(interruption) or 'interrupted.'}{so_far} To resume: {program.again()}",
            getattr(interruption, "signal", signal.SIGINT),
        ) from None
    names = [str(folder / f"{trial_summary.NAME}{suffix}") for suffix in (".png", ".svg", ".json")]
    output_files.show("", found.text(), "", ", ".join(names))
