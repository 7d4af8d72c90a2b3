"""zoo compare: the results of runs side by side."""

import argparse


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    parser.add_argument(
        "workdirs",
        nargs="+",
        metavar="DIR",
        help="folders of evaluated runs, or records of runs: FILE.jsonl, FILE.jsonl:RUN",
    )


def run(arguments: argparse.Namespace):
    """Prints the table."""
    from zoo.evaluation.reports.compare import compare
    from zoo.runs import outputs

    outputs.show(compare(arguments.workdirs))
