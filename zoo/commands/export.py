"""zoo export: a run as files that need none of this code; also from and to the hub."""

import argparse


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("out", metavar="OUT", help="the folder to make")
    add("--licence", metavar="TEXT", help="of the data, for the model card")
    add("--push", metavar="OWNER/NAME", help="uploads it to the Hugging Face hub, too")
    add("--public", action="store_true", help="with --push: a new repository is seen by all")


def run(arguments: argparse.Namespace):
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
