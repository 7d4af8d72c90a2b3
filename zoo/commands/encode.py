"""zoo encode: text that is larger than the memory, as shards that runs map."""

import argparse


def add_to(parser: argparse.ArgumentParser):
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


def run(arguments: argparse.Namespace):
    """Makes the folder, and says what is in it."""
    from zoo.sources import shards

    record = shards.write(arguments.texts, arguments.output, arguments.keep_blank_lines)
    print(
        f"{arguments.output}: {record['words']:,} words, {record['types']:,} of them distinct, in "
        f"{record['sentences']:,} sentences; train on it: --set data.train={arguments.output}"
    )
