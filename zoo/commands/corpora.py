"""zoo data and zoo encode: corpora fetched, and text encoded as shards."""

import argparse
import pathlib


def add_data_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="of --list, or ud_LANGUAGE_TREEBANK")
    add("--list", action="store_true", help="lists the corpora and leaves")
    add("--into", metavar="DIR", help="folder of data; default: $ZOO_DATA, or the working folder")
    add("--release", default="master", metavar="TAG", help="of treebanks, as r2.14; default: last")
    add("--mirror", metavar="URL", help="address with a copy of the corpora's own ones below it")


def run_data(arguments: argparse.Namespace):
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


def add_encode_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add(
        "texts",
        nargs="+",
        metavar="TEXT",
        help="plain text, folders or patterns of it, a line a sentence",
    )
    add("--output", required=True, metavar="DIR", help="the folder to make")
    add("--keep-blank-lines", action="store_true", help="as sentences without words")


def run_encode(arguments: argparse.Namespace):
    """Makes the folder, and says what is in it."""
    from zoo.sources import shards

    record = shards.write(arguments.texts, arguments.output, arguments.keep_blank_lines)
    print(
        f"{arguments.output}: {record['words']:,} words, {record['types']:,} of them distinct, in "
        f"{record['sentences']:,} sentences; train on it: --set data.train={arguments.output}"
    )
