"""Re-ranks lists of translations by language models, and keeps weights and n-gram counts.

    python -m records.translation_lists lists/en_cs_plain_50_1 --run runs/czech_*_captions_* \\
        --references multi30k/{}.lc.norm.tok.cs --train multi30k/train.lc.norm.tok.cs

A folder has lists of each text as `zoo translate --nbest` writes them, such as
test_2018_flickr.nbest. The weights of the lists' own features, of the number of words and of one
run's log-probability are tuned for BLEU on val.nbest, as `zoo rescore tune` does, by MIRA and by
MERT. They are kept in the folder with the log-probabilities of the hypotheses, so that a second
call only scores under new runs.

The file records/lists/FOLDER.json has the weights, and names the choices: the first hypotheses, the
oracle, and what each run's weights choose. records/lists/FOLDER.npz has what BLEU is computed from,
[lists, choices, 10] of each text, and of each list whether its reference has a word that the
training text does not have, and whether one of its hypotheses has such a word of the reference.
"""

import argparse
import functools
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from records.cells import FOLDER, provenance
from records.list_scores import with_scores
from zoo.base.arrays import array_files
from zoo.lab.commands import options, program
from zoo.lab.evaluation import sentence_scores
from zoo.lab.evaluation.bleu_chrf_wer import TOKENIZERS, Bleu
from zoo.lab.evaluation.nbest import read_lists
from zoo.lab.rescoring import tune
from zoo.lab.rescoring.model_features import BATCH_SIZE, Columns, Lists
from zoo.sources import files

LISTS = FOLDER / "lists"
TUNED = "val"
METHODS = ("mira", "mert")
UNTUNED, ORACLE, NONE = "untuned", "oracle", "none"
NEW, FOUND = "new_words", "found_words"


class Part(NamedTuple):
    """The lists of one text, their hypotheses, and the reference of each list."""

    lists: Lists
    texts: list[str]
    references: list[str]


def read_part(file: pathlib.Path, references: str, metric: Bleu) -> Part:
    """Reads lists and their references.

    Args:
      file: of lists that are numbered from 0, by the lines of their text.
      references: the file with a line for each of the text.
      metric: with the tokenizer of the language.
    """
    nbest_lists = [*Columns(word_count=True).add(read_lists(str(file))[1])]
    lines = files.read_text(files.find(references)).split("\n")
    references_by_id: dict[str, tuple[str, ...]] = {
        nbest.id: (lines[int(nbest.id)],) for nbest in nbest_lists
    }
    return Part(
        tune.build_arrays(nbest_lists, references_by_id, metric),
        [hypothesis.text for nbest in nbest_lists for hypothesis in nbest.hypotheses],
        [text for (text,) in references_by_id.values()],
    )


def find_new_words(part: Part, training_words: set[str]) -> tuple[np.ndarray, np.ndarray]:
    """Tells of each list whether its reference has a word that training never saw, and whether one
    of its hypotheses has such a word of the reference, bool [lists] each."""
    new_words = [{*text.split()} - training_words for text in part.references]
    has_new = np.array([bool(words) for words in new_words])
    is_found = np.zeros(len(new_words), bool)
    for text, owner in zip(part.texts, part.lists.owners, strict=True):
        is_found[owner] |= not new_words[owner].isdisjoint(text.split())
    return has_new, is_found


def cached(file: pathlib.Path, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Returns the arrays of a file, which is made first unless it exists."""
    if not file.exists():
        array_files.write(file, make())
    return {**np.load(file)}


def scores(
    run: pathlib.Path, folder: pathlib.Path, parts: dict[str, Part]
) -> dict[str, np.ndarray]:
    """Computes log p of every hypothesis under a run, {part: float64 [hypotheses]}, nats.

    New words of the lists have probabilities by their letters, or share the probability of <unk>.

    Args:
      run: of the language model.
      folder: to write the words of the lists to.
      parts: the lists.
    """
    words = {word for part in parts.values() for text in part.texts for word in text.split()}
    file = folder / "words.txt"
    file.write_text("".join(f"{word}\n" for word in sorted(words)), encoding="utf-8")
    ways = {"spread_unknown": True, "spread_letters": None, "spread_features": False}
    flags = argparse.Namespace(add_words=str(file), **ways)
    model = options.run_with_words(str(run), flags)
    log_probs = {}
    for name, part in parts.items():
        batches = (part.texts[i : i + BATCH_SIZE] for i in range(0, len(part.texts), BATCH_SIZE))
        scored = (
            sentence_scores.score(model, [text.split() for text in batch], name)
            for batch in batches
        )
        log_probs[name] = np.concatenate([batch.log_prob for batch in scored])
    return log_probs


def add_scores(
    run: pathlib.Path | None, folder: pathlib.Path, parts: dict[str, Part]
) -> dict[str, Lists]:
    """Returns the lists of each part, with log p under a run as a feature if there is a run."""
    if run is None:
        return {name: part.lists for name, part in parts.items()}
    columns = cached(folder / f"{run.name}.npz", functools.partial(scores, run, folder, parts))
    return {name: with_scores(part.lists, columns[name]) for name, part in parts.items()}


def tune_weights(lists: Lists, metric: Bleu, method: str) -> dict[str, np.ndarray]:
    """Tunes weights, and returns them by the name that they have in a file."""
    return {"weights": tune.tune(lists, metric, method, 0)}


def rerank(
    folder: pathlib.Path, parts: dict[str, Part], runs: Sequence[pathlib.Path], metric: Bleu
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, dict[str, float]]]:
    """Returns ({choice: {part: the chosen row of each list}}, {RUN/METHOD: tuned weights}).

    Args:
      folder: to keep scores and weights in.
      parts: the lists, with those to tune on.
      runs: of the models; the lists are also re-ranked by none of them.
      metric: to tune for.
    """
    choices = {
        UNTUNED: {name: part.lists.first_rows() for name, part in parts.items()},
        ORACLE: {name: tune.oracle_rows(part.lists, metric) for name, part in parts.items()},
    }
    weights = {}
    for run in (None, *runs):
        lists = add_scores(run, folder, parts)
        run_name = NONE if run is None else run.name
        for method in METHODS:
            make = functools.partial(tune_weights, lists[TUNED], metric, method)
            tuned_weights = cached(folder / f"{run_name}.{method}.npz", make)["weights"]
            choice = f"{run_name}/{method}"
            weights[choice] = dict(zip(lists[TUNED].names, tuned_weights.tolist(), strict=True))
            choices[choice] = {name: lists[name].choose(tuned_weights) for name in lists}
    return choices, weights


def keep(
    folder: pathlib.Path, runs: Sequence[pathlib.Path], references: str, train: str, metric: Bleu
):
    """Writes both files of the lists of a folder.

    Args:
      folder: of lists.
      runs: of language models.
      references: the files of references, with {} for the name of a text.
      train: the file of the training text.
      metric: to tune for.

    Raises:
      UserError: the code was not committed.
    """
    contents = provenance()
    parts = {
        file.stem: read_part(file, references.format(file.stem), metric)
        for file in sorted(folder.glob("*.nbest"))
    }
    training_words = {*files.read_text(files.find(train)).split()}
    choices, weights = rerank(folder, parts, runs, metric)
    arrays = {}
    for name, part in parts.items():
        counts = [part.lists.statistics[rows[name]] for rows in choices.values()]
        # Equal choices of a list stand side by side, and are compressed.
        arrays[name] = np.stack(counts, axis=1).astype(np.int16)
        arrays[f"{name}/{NEW}"], arrays[f"{name}/{FOUND}"] = find_new_words(part, training_words)
    contents |= {
        "signature": metric.signature(),
        "hypotheses": {name: len(part.texts) for name, part in parts.items()},
        "choices": [*choices],
        "weights": weights,
    }
    LISTS.mkdir(exist_ok=True)
    array_files.write(LISTS / f"{folder.name}.npz", arrays)
    file = LISTS / f"{folder.name}.json"
    file.write_text(json.dumps(contents) + "\n", encoding="utf-8")


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="DIR", help="of lists")
    parser.add_argument("--run", nargs="*", default=[], type=pathlib.Path, metavar="DIR")
    parser.add_argument("--references", required=True, metavar="FILE", help="{} is the text's name")
    parser.add_argument("--train", required=True, metavar="FILE", help="the training text")
    parser.add_argument("--tokenize", default="none", choices=TOKENIZERS)
    arguments = program.parse(parser)
    metric = Bleu(arguments.tokenize)
    for folder in arguments.folders:
        keep(folder, arguments.run, arguments.references, arguments.train, metric)


if __name__ == "__main__":
    program.program(main)
