"""zoo data, encode, export and pull: corpora, text as shards, and runs as files without Zoo."""

import argparse
import pathlib


def add_data_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo data`."""
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="a corpus of --list, or ud_LANGUAGE_TREEBANK")
    add("--list", action="store_true", help="lists the corpora and exits")
    add(
        "--into",
        metavar="DIR",
        help="folder to fetch into; default: $ZOO_DATA, or the working folder",
    )
    add(
        "--release",
        default="master",
        metavar="TAG",
        help="release of the treebanks, as r2.14; default: the last",
    )
    add("--mirror", metavar="URL", help="URL below which the corpora's own addresses are mirrored")


def run_data(arguments: argparse.Namespace):
    """Fetches the corpora, or lists them."""
    from zoo.errors import UserError
    from zoo.runs import location
    from zoo.sources import fetch, files

    if arguments.list or not arguments.names:
        for name, corpus in fetch.CORPORA.items():
            print(f"{name:22} {corpus.about}")
        print(
            f"{fetch.TREEBANK_FORM:22} any Universal Dependencies treebank, as ud_czech_pdt "
            "or ud_french_partut; each has a licence of its own"
        )
        if not arguments.list:
            raise UserError("name a corpus, as in python -m zoo data wikitext-2.")
        return
    folder = pathlib.Path(arguments.into or files.data_folder() or ".")
    location.check_writable(folder)
    for name in arguments.names:
        fetch.fetch(name, folder, release=arguments.release, mirror=arguments.mirror)


def add_encode_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo encode`."""
    add = parser.add_argument
    add(
        "texts",
        nargs="+",
        metavar="TEXT",
        help="files of plain text, a sentence a line; folders or patterns of them",
    )
    add("--output", required=True, metavar="DIR", help="the folder of shards to write")
    add("--keep-blank-lines", action="store_true", help="keeps blank lines as empty sentences")


def run_encode(arguments: argparse.Namespace):
    """Writes the shards, and prints their numbers of words and sentences."""
    from zoo.sources import shards

    record = shards.write(arguments.texts, arguments.output, arguments.keep_blank_lines)
    print(
        f"{arguments.output}: {record['words']:,} words, {record['types']:,} of them distinct, in "
        f"{record['sentences']:,} sentences; train on it: --set data.train={arguments.output}"
    )


# ------- zoo export and zoo pull: runs exported to files that do not need Zoo, and fetched


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
    from zoo.export import folder, hub

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
