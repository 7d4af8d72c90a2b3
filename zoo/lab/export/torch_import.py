"""Models that other programs trained, written as exports, which every command reads.

An import has the files of an export but its programs, tables and model card, which `zoo export`
makes of it. Its text is `data.Unknown`. Counts of words are known from a corpus alone.
"""

import collections
import itertools
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from zoo import configuration
from zoo.base import regular_files, temporary_files
from zoo.data import Unknown, Vocabulary
from zoo.errors import UserError, quote
from zoo.experiment import Evaluation, Experiment
from zoo.interop import joeynmt, lm_1b, tensorflow_files, torch_files, torch_models
from zoo.lab.export.folder import write_json, write_record
from zoo.lab.runs import checksums
from zoo.lab.runs.exported_run import PARAMS, safetensors
from zoo.lexicon import Lexicon

# The words between sentences, and of unknown words, in the programs' texts.
BOUNDARIES = ("<eos>", "</s>", "</S>", "xxeos", "xxbos", "xbos")
UNKNOWN = ("<unk>", "<UNK>", "_unk_", "xxunk", "UNK")
# Fields of the programs' dictionaries that list their words in the order of ids.
_LISTS = ("dictionary", "idx2word", "idx2item", "itos")


def read_words(path: str, size: int) -> list[str]:
    """Reads the words of a file, one a line or in a pickle, in the order of their ids."""
    if torch_files.is_pickled(path):
        return listed_words(torch_files.read(path))
    text = regular_files.read_text(path)
    lines = [*filter(None, map(str.strip, text.split("\n")))]
    return lines if len(lines) == size else text.split()  # as colorlessgreenRNNs reads them


def listed_words(saved: Any) -> list[str]:
    """Finds the words in a list, a dictionary of a program, or an object that holds one."""
    for name in _LISTS:
        saved = saved[name] if isinstance(saved, dict) and name in saved else saved
    if not isinstance(saved, list):
        raise UserError("it has no list of words: give --words FILE or --corpus DIR.")
    return [word.decode("utf-8") if isinstance(word, bytes) else word for word in saved]


def count_words(folder: str) -> collections.Counter:
    """Counts the training words of a folder of texts, in the order in which word_language_model and
    awd-lstm-lm number the words of all its texts."""
    counts: collections.Counter = collections.Counter()
    for name in ("train", "valid", "test"):
        with open(pathlib.Path(folder) / f"{name}.txt", encoding="utf-8") as lines:
            for word in itertools.chain.from_iterable((*line.split(), "<eos>") for line in lines):
                counts[word] += name == "train"
    return counts


def make_lexicon(
    words: list[str], counts: Mapping[str, int], boundary: str | None, unknown: str | None
) -> Lexicon:
    """Makes the lexicon of a model; marks that are None are looked for among the words."""
    if sum(len(word) > 1 for word in words) > len(words) / 2:  # white space is no character here
        words = [word if word.strip() else repr(word) for word in words]
    known = {*words}
    return Lexicon(
        words=tuple(words),
        counts=np.array([counts.get(word, 0) for word in words], np.int64),
        unknown=unknown or next(filter(known.__contains__, UNKNOWN), None),
        boundary=boundary or next(filter(known.__contains__, BOUNDARIES), None),
    )


def write(
    file: str,
    out: str,
    words: str | None = None,
    corpus: str | None = None,
    boundary: str | None = None,
    unknown: str | None = None,
    lower_case: bool = False,
) -> list[str]:
    """Writes the model of a file, or of a folder of TensorFlow's checkpoints, as an export, which
    exists whole or not at all; returns notes.

    Its words are in the file `words` or in a corpus, or else in the model's file; JoeyNMT's are in
    files beside it.
    """
    save_file = safetensors().save_file  # before any work begins, if it is missing
    is_folder = pathlib.Path(file).is_dir()
    saved = tensorflow_files.read_folder(file) if is_folder else torch_files.read(file)
    options = words, corpus, boundary, unknown, lower_case
    if not joeynmt.is_checkpoint(saved):
        experiment, params, lexicons = _read_language_model(file, saved, *options)
    elif any(options):
        raise UserError(
            f"{file} is JoeyNMT's, with words and configuration beside it: leave the options out."
        )
    else:
        experiment, params, lexicons = _read_joeynmt(file, saved)
    start = jax.eval_shape(lambda: experiment.model.init(jax.random.key(0), *lexicons))
    difference = checksums.first_difference(params, checksums.leaf_names(start))
    if difference:
        name, array, expected = difference
        raise UserError(f"{file}: {name} is {array} and should be {expected}: give another model.")
    recipe = configuration.to_json(experiment)
    with temporary_files.folder(out) as folder:
        save_file(params, folder / PARAMS)
        files = [f"{name}.npz" for name in experiment.model.lexicon_names]
        for name, lexicon in zip(files, lexicons, strict=True):
            lexicon.save(folder / name)
            shutil.copymode(folder / name, folder / PARAMS)  # which is for its owner alone
        write_json(folder / "experiment.json", recipe)
        sources = tensorflow_files.paths(file) if is_folder else [file]
        digests = " ".join(map(checksums.file_digest, sources))
        source_file = {"file": pathlib.Path(file).name, "sha256": digests}
        facts = {"checkpoint": 0, "data": "", "imported": source_file}
        write_record(folder, (PARAMS, *files, "experiment.json"), facts)
    if isinstance(saved, dict) and saved.get("is_forward_lm") is False:
        return [
            "it reads text from its end: give lines with their characters in reverse, as by rev"
        ]
    return [f"left out of the model: {quote([*saved], 3)}"] if is_folder and saved else []


def _check_size(words, size, file):
    """Raises UserError unless a model has as many words."""
    if len(words) != size:
        raise UserError(
            f"it has {len(words):,} words, and {file} has {size:,}: give the words of this model, "
            "in the order of their ids."
        )


def _read_language_model(file, saved, words, corpus, boundary, unknown, lower_case):
    """Converts what PyTorch or TensorFlow saved; returns (the experiment, parameters by path, its
    lexicon)."""
    is_folder = pathlib.Path(file).is_dir()
    with torch_files.naming(file, "TensorFlow" if is_folder else torch_files.PROGRAMS):
        model, params = (lm_1b if is_folder else torch_models).language_model(saved)
    size = len(params["head/bias" if is_folder else "embedding/table"])
    with torch_files.naming(words or corpus or file):
        counts = count_words(corpus) if corpus else {}
        read = lm_1b.read_words if is_folder else read_words
        listed = read(words, size) if words else [*counts] or listed_words(saved)
        _check_size(listed, size, file)
        lexicon = make_lexicon(listed, counts, boundary, unknown)
    vocabulary = Vocabulary(
        lower_case=lower_case,
        unknown="counted" if lexicon.unknown else "refused",
        boundary="counted" if lexicon.boundary else "none",
    )
    # With a carried state, in one row: others would begin within the text.
    evaluation = Evaluation("sentences" if lexicon.boundary else "carried", batch=1)
    source = Unknown(lexicon.is_character_level)
    return Experiment(source, vocabulary, model, evaluation=evaluation), params, [lexicon]


def _read_joeynmt(file: str, saved: Any):
    """Reads JoeyNMT's configuration and words beside a checkpoint; returns (the experiment, the
    parameters by path, the lexicons)."""
    folder, lexicons = pathlib.Path(file).parent, []
    path = str(folder / "config.yaml")
    with torch_files.naming(path):
        config, lower_case, marks = joeynmt.read_configuration(path)
    for side in ("trg", "src"):
        path = str(folder / f"{side}_vocab.txt")
        size = saved["model_state"][f"{side}_embed.lut.weight"].shape[0]
        with torch_files.naming(path):
            words = read_words(path, size)
            _check_size(words, size, file)
            lexicons.append(make_lexicon(words, {}, marks["eos_token"], marks["unk_token"]))
    with torch_files.naming(file):
        ids = [lexicons[0].ids[marks[mark]] for mark in ("bos_token", "eos_token")]
        model, params = joeynmt.encoder_decoder(saved, config, *ids)
    vocabulary, source = (Vocabulary(lower_case=is_lower) for is_lower in lower_case)
    return Experiment(Unknown(), vocabulary, model, source_vocabulary=source), params, lexicons
