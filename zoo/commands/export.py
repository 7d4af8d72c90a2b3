"""zoo export and zoo pull: runs exported to files that do not need Zoo, and fetched."""

import argparse


def add_export_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo export`."""
    add = parser.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("out", metavar="OUT", help="the folder to write")
    add("--licence", metavar="TEXT", help="licence of the data, for the model card")
    add("--push", metavar="OWNER/NAME", help="also uploads the folder to the Hugging Face hub")
    add("--public", action="store_true", help="with --push: makes a new repository public")


def run_export(arguments: argparse.Namespace):
    """Writes the folder, prints the size of each file, and uploads it with --push."""
    from zoo.errors import UserError
    from zoo.export import folder, hub

    if arguments.public and not arguments.push:
        raise UserError("--public is for --push: give --push OWNER/NAME, too, or leave it out.")
    out = folder.write(arguments.workdir, arguments.out, arguments.licence)
    for file in sorted(path for path in out.rglob("*") if path.is_file()):
        print(f"{file.stat().st_size:12,} {file}")
    if arguments.push:
        print(hub.push(out, arguments.push, private=not arguments.public))


def add_pull_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo pull`."""
    add = parser.add_argument
    add(
        "repository",
        metavar="OWNER/NAME",
        help="a repository of the Hugging Face hub; or gs://bucket/run",
    )
    add("out", metavar="OUT", help="the folder to write")


def run_pull(arguments: argparse.Namespace):
    """Downloads the folder, and prints where it is."""
    from zoo.export import hub
    from zoo.runs import location

    pull = location.fetch if location.is_address(arguments.repository) else hub.pull
    print(pull(arguments.repository, arguments.out))
