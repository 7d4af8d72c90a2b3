"""zoo export and zoo pull: runs as files that need none of this code; to and from the hub."""

import argparse


def add_export_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("out", metavar="OUT", help="the folder to make")
    add("--licence", metavar="TEXT", help="of the data, for the model card")
    add("--push", metavar="OWNER/NAME", help="uploads it to the Hugging Face hub, too")
    add("--public", action="store_true", help="with --push: a new repository is seen by all")


def run_export(arguments: argparse.Namespace):
    """Makes the folder, and says how large its files are."""
    from zoo.errors import UserError
    from zoo.export import folder, hub

    if arguments.public and not arguments.push:
        raise UserError("--public is for --push: give both, or leave it out.")
    out = folder.write(arguments.workdir, arguments.out, arguments.licence)
    for file in sorted(path for path in out.rglob("*") if path.is_file()):
        print(f"{file.stat().st_size:12,} {file}")
    if arguments.push:
        print(hub.push(out, arguments.push, private=not arguments.public))


def add_pull_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("repository", metavar="OWNER/NAME", help="on the Hugging Face hub; or gs://bucket/run")
    add("out", metavar="OUT", help="the folder to make")


def run_pull(arguments: argparse.Namespace):
    """Makes the folder."""
    from zoo.export import hub
    from zoo.runs import location

    pull = location.fetch if location.is_address(arguments.repository) else hub.pull
    print(pull(arguments.repository, arguments.out))
