"""zoo data, encode, export, import and pull: corpora, encoded text, and runs as files."""

import argparse
import pathlib

from zoo.lab.commands import options
from zoo.lab.commands.options import Option

DATA = (
    Option("names NAME [...]", "a corpus of --list, or ud_LANGUAGE_TREEBANK"),
    Option("--list", "lists the corpora and exits"),
    Option("--into DIR", "folder to fetch into; default: $ZOO_DATA, or the working folder"),
    Option("--release TAG", "release of the treebanks, as r2.14", default="master"),
    Option("--mirror URL", "URL below which the corpora's own addresses are mirrored"),
)


def run_data(arguments: argparse.Namespace):
    """Fetches the corpora, or lists them."""
    from zoo.errors import UserError
    from zoo.lab.runs import location
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


ENCODE = (
    Option("texts TEXT ...", "what data.Text reads: files, folders, patterns, hub:NAME:SPLIT"),
    Option("--output DIR", "the folder to write", required=True),
    Option("--keep-blank-lines", "keeps blank lines as empty sentences"),
    Option("--column NAME", "the column of text of tables and data sets", default="text"),
)


def run_encode(arguments: argparse.Namespace):
    """Writes the encoded text, and prints their numbers of words and sentences."""
    from zoo.sources import mapped_text

    record = mapped_text.write(
        arguments.texts, arguments.output, arguments.keep_blank_lines, arguments.column
    )
    print(
        f"{arguments.output}: {record['words']:,} words, {record['types']:,} of them distinct, in "
        f"{record['sentences']:,} sentences; train on it: --set data.train={arguments.output}"
    )


# ------- zoo export and zoo pull: runs exported to files that do not need Zoo, and fetched


EXPORT = (
    options.RUN,
    Option("out OUT", "the folder to write"),
    Option("--licence TEXT", "licence of the data, for the model card"),
    Option(
        "--torch",
        "writes a state dict of word_language_model, and the words, instead",
        rules="--torch excludes --licence: has no model card",
    ),
)


def run_export(arguments: argparse.Namespace):
    """Writes the folder, and prints the size of each file."""
    from zoo.lab.export import folder

    if arguments.torch:
        out = folder.write_torch(arguments.folder, arguments.out)
    else:
        out = folder.write(arguments.folder, arguments.out, arguments.licence)
    for file in sorted(path for path in out.rglob("*") if path.is_file()):
        print(f"{file.stat().st_size:12,} {file}")


IMPORT = (
    Option("file FILE", "what PyTorch saved; safetensors; or the folder of lm_1b's files ckpt-*"),
    Option("out OUT", "the folder to write"),
    Option(
        "--words FILE",
        "the words in the order of their ids, one a line or in a pickle",
        rules="--words excludes --corpus: lists the words",
    ),
    Option("--corpus DIR", "train.txt, valid.txt and test.txt, which the program was given"),
    Option("--boundary WORD", "the word between sentences; default: <eos> or the like"),
    Option("--unknown WORD", "the word that stands for unknown words; default: <unk> or the like"),
    Option("--lower-case", "reads texts in lower case, as the training text was"),
)


def run_import(arguments: argparse.Namespace):
    """Writes the folder, and prints what the model is."""
    from zoo.lab.evaluation.run import Run
    from zoo.lab.export import torch_import

    names = ("file", "out", "words", "corpus", "boundary", "unknown", "lower_case")
    options.print_notes(torch_import.write(*(getattr(arguments, name) for name in names)))
    run = Run.load(arguments.out)
    marks = f"boundary {run.lexicon.boundary}, unknown words {run.lexicon.unknown}"
    print(f"{run.summary}; {type(run.experiment.model.component('core')).__name__}, {marks}")


PULL = (
    Option("repository OWNER/NAME", "a repository of the Hugging Face hub; or gs://bucket/run"),
    Option("out OUT", "the folder to write"),
)


def run_pull(arguments: argparse.Namespace):
    """Downloads the folder, and prints where it is."""
    from zoo.lab.runs import hub, location

    pull = location.fetch if location.is_address(arguments.repository) else hub.pull
    print(pull(arguments.repository, arguments.out))
