"""zoo pull: an export from the Hugging Face hub, or a run from a bucket."""

import argparse


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("repository", metavar="OWNER/NAME", help="on the Hugging Face hub; or gs://bucket/run")
    add("out", metavar="OUT", help="the folder to make")


def run(arguments: argparse.Namespace):
    """Makes the folder."""
    from zoo.export import hub
    from zoo.runs import location

    pull = location.fetch if location.is_address(arguments.repository) else hub.pull
    print(pull(arguments.repository, arguments.out))
