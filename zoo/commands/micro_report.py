"""zoo micro-report: models of the micro language beside the language itself."""

import argparse


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    parser.add_argument("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")


def run(arguments: argparse.Namespace):
    """Prints the report."""
    from zoo.evaluation.reports.micro_report import report

    report(arguments.workdirs)
