"""zoo pull: an export from the Hugging Face hub."""

import argparse


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("repository", metavar="OWNER/NAME", help="on the Hugging Face hub")
    add("out", metavar="OUT", help="the folder to make")


def run(arguments: argparse.Namespace):
    """Makes the folder."""
    from zoo.export import hub

    print(hub.pull(arguments.repository, arguments.out))
