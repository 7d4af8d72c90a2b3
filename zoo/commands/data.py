"""zoo data: fetches free corpora."""

import argparse
import pathlib


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="of --list, or ud_LANGUAGE_TREEBANK")
    add("--list", action="store_true", help="lists the corpora and leaves")
    add("--into", metavar="DIR", help="folder of data; default: $ZOO_DATA, or the working folder")
    add("--release", default="master", metavar="TAG", help="of treebanks, as r2.14; default: last")
    add("--mirror", metavar="URL", help="address with a copy of the corpora's own ones below it")


def run(arguments: argparse.Namespace):
    """Fetches the corpora, or lists them."""
    from zoo.errors import UserError
    from zoo.runs import atomic_files
    from zoo.sources import fetch, files, free_corpora

    if arguments.list or not arguments.names:
        for name, corpus in free_corpora.CORPORA.items():
            print(f"{name:22} {corpus.about}")
        print(
            f"{free_corpora.TREEBANK_FORM:22} any Universal Dependencies treebank, as ud_czech_pdt"
        )
        if not arguments.list:
            raise UserError("name a corpus, as in python -m zoo data wikitext-2.")
        return
    folder = pathlib.Path(arguments.into or files.data_folder() or ".")
    atomic_files.check_writable(folder)
    for name in arguments.names:
        fetch.fetch(name, folder, release=arguments.release, mirror=arguments.mirror)
