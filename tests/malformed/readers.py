"""What the tables of this folder name: readers of a file, settings, and commands, each as one call.

A call takes the input and an empty folder, and is expected to raise UserError.
"""

import bz2
import contextlib
import functools
import gzip
import io
import json
import lzma
import os
import pathlib
import shlex
import sys
import unittest.mock

import jax
import numpy as np

import configs
import evaluate
import train
from zoo import __main__ as commands
from zoo import recipes
from zoo.cores import LSTM
from zoo.data import Characters, Conllu, Facts, Overnight, Prefixed, Realisations, Text
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.evaluation import sentence_scores
from zoo.evaluation.judgements import minimal_pairs
from zoo.evaluation.reports.compare import read_results
from zoo.evaluation.run import Run
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import Softmax
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel
from zoo.priors import Arpa, Grammar, KnowledgeBase, WordFunction, WordList
from zoo.runs.workdir import Workdir
from zoo.sources import files

WORDS = ("</s>", "<unk>", "a", "b", "(", ")", "7", "|||")
LEXICON = Lexicon(WORDS, np.arange(8), unknown="<unk>", boundary="</s>")
MODEL = LanguageModel(Lookup(size=2), LSTM(size=3), Softmax())
EXPERIMENT = Experiment(
    data=Text(train="train.txt", validation="validation.txt", tests=("test.txt",)),
    model=MODEL,
    training=Training(batch=2, length=3),
    evaluation=Evaluation(lanes=2, length=3),
)


def _npz(**arrays):
    """An archive as those of lexicons; bytes are JSON."""
    file = io.BytesIO()
    np.savez(
        file,
        **{
            name: np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.array(value)
            for name, value in arrays.items()
        },
    )
    return file.getvalue()


# What the inputs are written with, beside Python's literals.
NAMES = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "json": json.dumps,
    "npz": _npz,
    "EXPERIMENT": recipes.to_json(EXPERIMENT),
}


def _file(content, folder, suffix=""):
    path = folder / f"file{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def _source(kind, suffix="", **options):
    def read(content, folder):
        path = _file(content, folder, suffix)
        kind(train=path, validation=path, **options).read("train")

    return read


def _prior(make):
    def read(content, folder):
        make(_file(content, folder)).prepare(LEXICON, {})

    return read


def _path(read):
    def call(path, folder):
        with contextlib.chdir(folder):
            read(path)

    return call


@functools.cache
def _run():
    params = MODEL.init(jax.random.key(0), LEXICON)
    return Run(
        pathlib.Path("run"), EXPERIMENT, LEXICON, params, MODEL.evaluation_tables(LEXICON), 1
    )


def _program(program):
    """The command line of a program; "run" is a run that is not read from anywhere."""

    def call(line, folder):
        arguments = shlex.split(line)
        load, errors = Run.load, io.StringIO()
        (folder / "run").mkdir()
        (folder / "train.txt").write_text("a b\n")
        (folder / "pairs.txt").write_text("True\ta a\nFalse\ta b\n")
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stderr(errors),
            contextlib.redirect_stdout(io.StringIO()),
            unittest.mock.patch.object(sys, "argv", ["program", *arguments]),
            unittest.mock.patch.object(
                Run, "load", lambda path: _run() if str(path) == "run" else load(path)
            ),
        ):
            try:
                program.main()
            except SystemExit as end:  # of argparse, after how the program is used
                if end.code:
                    raise UserError(errors.getvalue().splitlines()[-1]) from end

    return call


def _workdir(name, read):
    """A work directory with a file in it of another content."""

    def call(content, folder):
        Workdir(folder / "run").claim(EXPERIMENT)
        LEXICON.save(folder / "run" / "lexicon.npz")
        path = folder / "run" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with contextlib.chdir(folder):
            read("run")

    return call


def _setting(setting, folder):
    settings = setting if isinstance(setting, list) else [setting]
    recipes.apply_settings(configs.load("micro_log_linear"), settings)


CALLS = {
    "files.find": _path(files.find),
    "files.Part.parse": _path(files.Part.parse),
    "Text: path": _path(lambda path: Text(train=path, validation="").read("train")),
    "Text: file": _source(Text),
    **{f"Text: {suffix}": _source(Text, suffix) for suffix in (".json", ".jsonl", ".csv", ".tsv")},
    "Text: .parquet": _source(Text, ".parquet"),
    "Conllu": _source(Conllu),
    "Conllu, surface": _source(Conllu, fused="surface"),
    "Characters": _source(Characters),
    "Prefixed": _source(Prefixed),
    "Realisations": _source(Realisations),
    "Realisations, last first": _source(Realisations, last_first=True),
    "Overnight": _source(Overnight),
    "Facts": lambda content, folder: Facts(_file(content, folder)).read("train"),
    "KnowledgeBase": _prior(KnowledgeBase),
    "Arpa": _prior(Arpa),
    "Grammar": _prior(Grammar),
    "WordList": lambda content, folder: WordList(_file(content, folder)).features(WORDS, {}, {}),
    "WordFunction": _path(lambda name: WordFunction(name).features(WORDS, {}, {})),
    "minimal pairs": lambda content, folder: minimal_pairs.read(_file(content, folder)),
    "sentences, second column": lambda content, folder: sentence_scores.read(
        _file(content, folder), column=2
    ),
    "n-best lists": lambda content, folder: sentence_scores.read(
        _file(content, folder), nbest=True
    ),
    "--lexicon": lambda content, folder: _run().with_lexicon(_file(content, folder)),
    "--set": _setting,
    "config file": lambda content, folder: configs.load(_file(content, folder, ".py")),
    "experiment.json": _workdir("experiment.json", lambda path: Workdir(path).experiment()),
    "lexicon.npz": _workdir("lexicon.npz", lambda path: Workdir(path).lexicon()),
    "results/test.json": _workdir("results/test.json", read_results),
    "train.py": _program(train),
    "evaluate.py": _program(evaluate),
    "python -m zoo": _program(commands),
}


def sentence(name, text, folder):
    """The sentence that the input, written as `text`, gets; paths are those within the folder."""
    with unittest.mock.patch.dict(os.environ, {"ZOO_DATA": str(folder / "data")}):
        try:
            CALLS[name](eval(text, dict(NAMES)), folder)  # of our own tables
        except UserError as error:
            return str(error).replace(f"{folder}/", "").replace(str(folder), "FOLDER")
    return None
