"""What the tables of this folder name: readers of a file, settings, and commands, each as one call.

A call takes the input and an empty folder, and is expected to raise UserError.
"""

import bz2
import contextlib
import dataclasses
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
from tests import scored_sentences
from zoo import __main__ as commands
from zoo import configuration
from zoo.alignment import PositionalAll
from zoo.attention import Luong
from zoo.cores import LSTM
from zoo.data import Characters, Conllu, Pairs, Prefixed, Text
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import Softmax
from zoo.lab.evaluation import minimal_pairs, translation_quality
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
from zoo.lab.evaluation.load import LoadedModel
from zoo.lab.evaluation.results import read_results
from zoo.lab.evaluation.run import Run
from zoo.lab.papers import Facts, Overnight, Realisations
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import tasks
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel, SequenceToSequence
from zoo.priors import Arpa, Grammar, KnowledgeBase, WordFunction, WordList
from zoo.sources import files, pairs

WORDS = ("</s>", "<unk>", "a", "b", "(", ")", "7", "|||")
LEXICON = Lexicon(WORDS, np.arange(8), unknown="<unk>", boundary="</s>")
MODEL = LanguageModel(Lookup(size=2), LSTM(size=3), Softmax())
EXPERIMENT = Experiment(
    data=Text(train="train.txt", validation="validation.txt", tests=("test.txt",)),
    model=MODEL,
    training=Training(batch=2, length=3),
    evaluation=Evaluation(batch=2, length=3),
)
FILES = ("train.en", "train.fr")
TRANSLATION = Experiment(
    data=Pairs(FILES, FILES, (FILES,)),
    model=SequenceToSequence(Lookup(size=2), LSTM(size=3), Softmax()),
    training=Training(batch=2),
    evaluation=Evaluation(state="sentences", batch=2),
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
    "EXPERIMENT": configuration.to_json(EXPERIMENT),
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
    return _run_of("run", EXPERIMENT, LEXICON)


def _run_of(name, experiment, *lexicons):
    model = experiment.model
    params, tables = model.init(jax.random.key(0), *lexicons), model.evaluation_tables(*lexicons)
    lexicon, *source_lexicons = lexicons
    path = pathlib.Path(name)
    return LoadedModel(
        path, experiment, lexicon, params, tables, 1, source_lexicons=tuple(source_lexicons)
    )


@functools.cache
def _runs():
    """The runs that are not read from anywhere, by their folders."""
    words = Lexicon((*WORDS[:-1], "c"), np.arange(8), unknown="<unk>", boundary="</s>")
    lexicons = LEXICON, LEXICON
    model_changes = {
        "turned": {"order": "target_reversed"},
        "attentive": {"attention": Luong()},
    }
    models = {
        name: dataclasses.replace(TRANSLATION.model, **c) for name, c in model_changes.items()
    }
    marked = dataclasses.replace(TRANSLATION.data, unknowns=PositionalAll(), alignments=("a", "a"))
    recipes = {
        "pairs": (TRANSLATION, *lexicons),
        "others": (TRANSLATION, words, LEXICON),
        "sources": (TRANSLATION, LEXICON, words),
        "words": (EXPERIMENT, words),
        **{
            name: (dataclasses.replace(TRANSLATION, model=model), *lexicons)
            for name, model in models.items()
        },
    }
    recipes["marked"] = (dataclasses.replace(recipes["attentive"][0], data=marked), *lexicons)
    return {"run": _run(), **{name: _run_of(name, *parts) for name, parts in recipes.items()}}


def _program(program):
    """The command line of a program; the runs of `_runs` are not read from anywhere."""

    def call(line, folder):
        arguments = shlex.split(line)
        load, errors = LoadedModel.load, io.StringIO()
        for name, loaded in _runs().items():
            (folder / name).mkdir()
            if name in arguments and name != "run":
                Workdir(folder / name).claim(loaded.experiment)
        (folder / "train.txt").write_text("a b\n")
        (folder / "train.en").write_text("a b\n7 a\n")
        (folder / "train.fr").write_text("b a\na 7\n")
        (folder / "empty.txt").write_text("")
        (folder / "words.txt").write_text("a\nz\n")
        (folder / "nbest.txt").write_text("0 ||| a b ||| 0\n")
        (folder / "pairs.txt").write_text("True\ta a\nFalse\ta b\n")
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stderr(errors),
            contextlib.redirect_stdout(io.StringIO()),
            unittest.mock.patch.object(sys, "argv", ["program", *arguments]),
            unittest.mock.patch.object(
                Run, "load", lambda path: _runs().get(str(path)) or load(path)
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
    configuration.apply_settings(configs.load("micro_log_linear"), settings)


def _translations(content, folder):
    """A result of translations, beside which one line lies."""
    file = "results/translation-test.beam-1.json"

    def read(run):
        pathlib.Path(run, file).with_suffix(".txt").write_text("a\n")
        translation_quality.read(pathlib.Path(run, file))

    _workdir(file, read)(content, folder)


def _side_by_side(sides, folder):
    """Two files of pairs, the second of which is a .fr."""
    paths = [
        _file(side, folder, suffix) for side, suffix in zip(sides, (".en", ".fr"), strict=True)
    ]
    Pairs((*paths,), (*paths,), empty="refused").read("train")


def _pairs_table(suffix):
    def read(content, folder):
        paths = (_file(content, folder, suffix),)
        Pairs(paths, paths, empty="refused").read("train")

    return read


def _paths_of_pairs(paths, folder):
    with contextlib.chdir(folder):
        pathlib.Path("a.en").write_text("a\nb\n")
        pathlib.Path("a.fr").write_text("A\nB\n")
        Pairs(paths, paths, empty="refused").read("train")


def _alignments(content, folder):
    """Of two pairs, of two words and one, and of one word and three."""
    sources, targets = [["a", "b"], ["c"]], [["A"], ["B", "C", "D"]]
    pairs.read_alignments(_file(content, folder), sources, targets)


def _translation(setting, folder):
    """Settings of a translation recipe, which is then prepared."""
    with contextlib.chdir(folder):
        pathlib.Path("train.en").write_text("a b c\nd e f\n")
        pathlib.Path("train.fr").write_text("A B C\nD E F\n")
        pathlib.Path("short.align").write_text("0-0\n")
        pathlib.Path("outside.align").write_text("0-0\n3-0\n")
        pathlib.Path("good.align").write_text("0-0\n\n")
        pathlib.Path("marks.fr").write_text("A <unkpos_1>\nB\n")
        settings = setting if isinstance(setting, list) else [setting]
        recipe = configuration.apply_settings(TRANSLATION, settings)
        task = tasks.prepare(recipe)
        task.init(jax.random.key(0))


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
    "sentences, second column": lambda content, folder: scored_sentences.read(
        _file(content, folder), column=2
    ),
    "n-best lists": lambda content, folder: scored_sentences.read(
        _file(content, folder), nbest=True
    ),
    "--lexicon": lambda content, folder: NewLexicon(_file(content, folder)).apply(_run()),
    "--set": _setting,
    "config file": lambda content, folder: configs.load(_file(content, folder, ".py")),
    "experiment.json": _workdir("experiment.json", lambda path: Workdir(path).experiment()),
    "results/translation-test.json": _translations,
    "Pairs: two files": _side_by_side,
    "Pairs: paths": _paths_of_pairs,
    **{f"Pairs: {s}": _pairs_table(s) for s in (".tsv", ".csv", ".json", ".jsonl", ".parquet")},
    "alignments": _alignments,
    "dictionary": lambda content, folder: pairs.read_dictionary(_file(content, folder)),
    "--set of a translation": _translation,
    "lexicon.npz": _workdir("lexicon.npz", lambda path: Workdir(path).lexicon()),
    "results/test.json": _workdir("results/test.json", lambda path: read_results([path])),
    "train.py": _program(train),
    "evaluate.py": _program(evaluate),
    "python -m zoo": _program(commands),
}


def sentence(call, text, names, folder):
    """The sentence that the input, written as `text` with the names, gets from a call; paths are
    those within the folder."""
    with unittest.mock.patch.dict(os.environ, {"ZOO_DATA": str(folder / "data")}):
        try:
            call(eval(text, dict(names)), folder)  # of our own tables
        except UserError as error:
            return str(error).replace(f"{folder}/", "").replace(str(folder), "FOLDER")
    return None
