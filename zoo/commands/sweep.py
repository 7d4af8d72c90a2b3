"""zoo sweep: the results of runs against one number of their experiments."""

import argparse


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("field", help="its dotted name, as for --set: vocabulary.features.0.count")
    add(
        "workdirs",
        nargs="+",
        metavar="DIR",
        help="folders of evaluated runs, or records of runs: FILE.jsonl, FILE.jsonl:RUN",
    )
    add("--file", default="sweep.png", help="the picture to write: .png, .pdf or .svg")


def run(arguments: argparse.Namespace):
    """Draws the picture."""
    from zoo.evaluation.reports.sweep import report

    report(arguments.field, arguments.workdirs, arguments.file)
