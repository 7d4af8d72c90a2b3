"""Re-scores lists of translations by encoder-decoders, and keeps n-gram counts of each sentence.

    python -m records.list_scores score lists/attention.{validation,test1}.nbest --run runs/one ...
    python -m records.list_scores keep lists runs/en_fr_{straight,reversed}_{0,1,2} ...

`score` computes log p(y_t | y_1 ... y_(t-1), x) of each token of the lists, whose hypotheses are
translations y of the sentences x of a split, exactly; LISTS is named SYSTEM.SPLIT.nbest. An
ensemble's probability of a token is the mean of its models'. `keep` tunes the weights of three
features on the lists of validation, the list's own log p and number of tokens, and log p by other
models, and re-ranks the lists of test1.

The file records/captions_sentences.npz has what BLEU is computed from, for each sentence of test1:
of the translations that the runs keep, named RUN/RESULT, and of the choices from lists, named
lists/SYSTEM/SCORED BY/WAY. records/captions_lists.json has the weights, and where they come from.
"""

import argparse
import dataclasses
import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from records import rows as rows_of
from records.cells import FOLDER, provenance
from zoo.base.arrays import array_files
from zoo.data import Corpus
from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.lab.evaluation import translation_quality
from zoo.lab.evaluation.nbest import NBestList, read_lists
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring import Bleu, Lists, tune

STATISTICS = FOLDER / "captions_sentences.npz"
WEIGHTS = FOLDER / "captions_lists.json"
TUNED, TEST = "validation", "test1"
SEARCH_SCORE, LENGTH, MODEL_SCORE = "LogProb", "Length", "other"


def token_log_probs(
    run: Run, sources: Sequence[list[str]], lists: Sequence[Sequence[list[str]]]
) -> np.ndarray:
    """Computes log p of each token of hypotheses and of the boundaries that end them, nats.

    Args:
      run: of an encoder-decoder.
      sources: words of the sentences.
      lists: the hypotheses of each sentence, as words.
    """
    pairs = zip(sources, lists, strict=True)
    repeated = [source for source, hypotheses in pairs for _ in hypotheses]
    texts = [words for hypotheses in lists for words in hypotheses]
    corpus = Corpus("the lists", texts, source_text=Corpus("the sources", repeated))
    _, scores = run.score_corpus(corpus)
    return scores.log_prob[scores.counted]


def ensemble(model_log_probs: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """Computes log p of hypotheses under the mean of models, token by token, [hypotheses].

    Args:
      model_log_probs: of each model, log p of the tokens of each hypothesis.
    """
    return np.array(
        [
            (np.logaddexp.reduce(tokens, axis=0) - np.log(len(tokens))).sum()
            for tokens in zip(*model_log_probs, strict=True)
        ]
    )


# ---- files of lists, SYSTEM.SPLIT.nbest, and of scores beside them, SYSTEM.SPLIT.RUN.npy


def pairs(run: Run, split: str) -> tuple[Sequence[list[str]], list[str]]:
    """Reads the sentences of a split and their translations.

    Args:
      run: whose data has the split.
      split: its name.
    """
    corpus = run.experiment.vocabulary.read(run.experiment.data.as_written(), split)
    references = [" ".join(words) for words in corpus.sentences]
    return run.experiment.source_corpus(corpus).sentences, references


def scores_file(lists: pathlib.Path, run: pathlib.Path) -> pathlib.Path:
    """Returns the file of the scores of lists by a run."""
    return lists.with_name(f"{lists.name.removesuffix('.nbest')}.{run.name}.npy")


def score(lists: Sequence[pathlib.Path], runs: Sequence[pathlib.Path]):
    """Writes the scores of lists by runs, unless they are written already.

    Args:
      lists: their files.
      runs: their folders.
    """
    for path in runs:
        run = Run.load(path)
        for file in lists:
            _, split, _ = file.name.split(".")
            sources, _ = pairs(run, split)
            hypotheses = [[h.words for h in nbest.hypotheses] for nbest in read_lists(str(file))[1]]
            if len(hypotheses) != len(sources):
                raise UserError(
                    f"{file} has {len(hypotheses)} lists, not {len(sources)}, of {split}: give all."
                )
            flat = token_log_probs(run, sources, hypotheses)
            np.save(scores_file(file, path), flat.astype(np.float32))
            print(f"{path}: {file}, {len(flat):,} tokens", flush=True)


def read_scores(file: pathlib.Path, lists: Sequence[NBestList], runs: Sequence[str]) -> np.ndarray:
    """Reads log p of the hypotheses of lists under runs together, [hypotheses]; 0 without runs.

    Args:
      file: of the lists.
      lists: in the order of the file.
      runs: names of the runs, whose scores stand beside the file.
    """
    ends = np.cumsum([len(h.words) + 1 for nbest in lists for h in nbest.hypotheses])
    if not runs:
        return np.zeros(len(ends))
    run_log_probs = []
    for run in runs:
        flat = np.load(scores_file(file, pathlib.Path(run))).astype(np.float64)
        if len(flat) != ends[-1]:
            raise UserError(f"the scores of {file} by {run} are of other lists: score them again.")
        run_log_probs.append(np.split(flat, ends[:-1]))
    return ensemble(run_log_probs)


# ---- the choices from lists


def arrays_of(lists: Sequence[NBestList], references: Sequence[str]) -> Lists:
    """Returns lists as arrays, with the features `SEARCH_SCORE` and `LENGTH`.

    Args:
      lists: with these features.
      references: of each list.
    """
    references_by_id: dict[str, tuple[str, ...]] = {
        nbest.id: (text,) for nbest, text in zip(lists, references, strict=True)
    }
    return tune.build_arrays(lists, references_by_id, Bleu()).with_features((SEARCH_SCORE, LENGTH))


def with_scores(lists: Lists, scores: np.ndarray) -> Lists:
    """Adds the feature `MODEL_SCORE` to lists.

    Args:
      lists: with the first two features.
      scores: the third, [hypotheses].
    """
    features = np.column_stack([lists.features, scores])
    return dataclasses.replace(lists, names=(*lists.names, MODEL_SCORE), features=features)


def choices(tuned: Lists, test: Lists, power: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns (the chosen row of each list of the test by each way, the tuned weights).

    Args:
      tuned: the lists of validation.
      test: others.
      power: of the length by which the search divided its scores.
    """
    metric = Bleu()
    weights = tune.tune(tuned, metric, "mira", seed=0)
    search_score, length, model_score = test.features.T
    ways = {
        "untuned": test.first_rows(),
        "alone": test.best_rows(model_score / length**power),
        "even": test.best_rows((search_score + model_score) / length**power),
        "tuned": test.choose(weights),
        "oracle": tune.oracle_rows(test, metric),
    }
    return ways, weights


def rescore_lists(
    folder: pathlib.Path,
    references: Mapping[str, Sequence[str]],
    systems: Mapping[str, Mapping[str, Sequence[str]]],
    power: float,
) -> tuple[dict[str, np.ndarray], dict[str, dict]]:
    """Returns ({SYSTEM/SCORED BY/WAY: counts of each sentence}, {SYSTEM/SCORED BY: weights}).

    Args:
      folder: of the lists and their scores.
      references: {split: of each sentence}.
      systems: {SYSTEM: {SCORED BY: names of runs}}.
      power: see `choices`.
    """
    counts, weights = {}, {}
    for system, scorers in systems.items():
        files = [folder / f"{system}.{split}.nbest" for split in (TUNED, TEST)]
        nbest_lists = [[*read_lists(str(file))[1]] for file in files]
        array_lists = [
            arrays_of(lists, references[split])
            for lists, split in zip(nbest_lists, (TUNED, TEST), strict=True)
        ]
        for scorer, runs in scorers.items():
            tuned, test = (
                with_scores(arrays, read_scores(file, lists, runs))
                for arrays, file, lists in zip(array_lists, files, nbest_lists, strict=True)
            )
            ways, tuned_weights = choices(tuned, test, power)
            for way, rows in ways.items():
                counts[f"{system}/{scorer}/{way}"] = test.statistics[rows]
            weights[f"{system}/{scorer}"] = {
                "weights": dict(zip(test.names, tuned_weights.tolist(), strict=True)),
                "validation": {
                    "untuned": float(Bleu().figure(tuned.statistics[tuned.first_rows()].sum(0))),
                    "tuned": tune.evaluate(tuned, Bleu(), tuned_weights),
                },
                "hypotheses": {TUNED: len(tuned.features), TEST: len(test.features)},
            }
    return counts, weights


def count_ngrams(run: pathlib.Path, references: Sequence[str]) -> Iterable[tuple[str, np.ndarray]]:
    """Yields (RUN/RESULT, counts of each sentence) of the translations of the test by a run.

    Args:
      run: its folder.
      references: of each sentence.
    """
    metric = Bleu()
    for file in sorted((run / "results").glob(f"translation-{TEST}.*.json")):
        _, lines = translation_quality.read(file)
        yield f"{run.name}/{file.stem}", metric.count_corpus(lines, references)


def keep(folder: pathlib.Path, runs: Sequence[pathlib.Path], power: float):
    """Writes both files.

    Args:
      folder: of lists.
      runs: folders of runs that have translated the test; the first reads the text.
      power: of the length by which searches divided their scores.
    """
    contents = provenance()
    first = Run.load(runs[0])
    pairs_by_split = {split: pairs(first, split) for split in (TUNED, TEST)}
    references = {split: split_pairs[1] for split, split_pairs in pairs_by_split.items()}
    counts, weights = rescore_lists(folder, references, rows_of.LISTS, power)
    arrays = {f"lists/{name}": array for name, array in counts.items()}
    for run in runs:
        arrays |= dict(count_ngrams(run, references[TEST]))
    arrays["source_words"] = np.array([len(words) for words in pairs_by_split[TEST][0]])
    array_files.write(STATISTICS, {name: array.astype(np.int16) for name, array in arrays.items()})
    contents |= {
        "signature": Bleu().signature(),
        "length_normalisation": power,
        "weights": weights,
    }
    WEIGHTS.write_text(json.dumps(contents) + "\n", encoding="utf-8")


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    scoring = commands.add_parser("score", help="writes scores beside lists")
    scoring.add_argument("lists", nargs="+", type=pathlib.Path, metavar="LISTS")
    scoring.add_argument("--run", nargs="+", type=pathlib.Path, metavar="DIR", required=True)
    keeping = commands.add_parser("keep", help="re-ranks, and keeps the counts")
    keeping.add_argument("folder", type=pathlib.Path, metavar="FOLDER", help="of lists")
    keeping.add_argument("runs", nargs="+", type=pathlib.Path, metavar="DIR")
    keeping.add_argument("--length-normalisation", type=float, required=True, metavar="A")
    arguments = program.parse(parser)
    if arguments.command == "score":
        score(arguments.lists, arguments.run)
    else:
        keep(arguments.folder, arguments.runs, arguments.length_normalisation)


if __name__ == "__main__":
    program.program(main)
