"""Counts the word errors that runs leave in a recogniser's lists, and keeps them.

    python -m records.word_errors runs/speech_{softmax,log_linear}_{0,1,2}

`zoo rescore tune` finds the weights of each run, and of none, on the lists of speech/dev, and `zoo
rescore apply` re-ranks the lists of speech/test. For each utterance of the test, in the order of
the lists, records/speech_lists.json has the words of its reference and the errors of the first
hypothesis, of the best one, and of those that the runs choose. The table of docs/results/texts.md
is computed from these numbers.
"""

import argparse
import json
import pathlib
import tempfile

from records.cells import FOLDER, provenance
from zoo import __main__ as zoo
from zoo.lab.commands import program
from zoo.lab.evaluation.bleu_chrf_wer import WordErrorRate
from zoo.lab.evaluation.nbest import read_lists
from zoo.lab.evaluation.references import read_references
from zoo.lab.evaluation.run import short_names

FILE = FOLDER / "speech_lists.json"
TUNED, TEST = "speech/dev", "speech/test"


def count_errors(path: str, references: str) -> tuple[list[int], list[list[int]]]:
    """Returns the words of each list's reference, and the errors of each of its hypotheses."""
    _, lists = read_lists(path)
    lists = [*lists]
    gold = read_references(references, [nbest.id for nbest in lists])
    metric = WordErrorRate()
    counts = [
        metric.statistics([h.text for h in nbest.hypotheses], (gold[nbest.id],)) for nbest in lists
    ]
    words = [int(list_statistics[0, 3]) for list_statistics in counts]
    return words, [list_statistics[:, :3].sum(1).astype(int).tolist() for list_statistics in counts]


def rerank(run: pathlib.Path | None, folder: pathlib.Path) -> str:
    """Ranks the lists of the test anew by a run, or by none; returns the file of lists.

    A softmax spreads the probability of <unk> over the words of the lists.
    """
    features = ["--word-count"]
    if run is not None:
        words = folder / "words.txt"
        lists = [nbest for part in (TUNED, TEST) for nbest in read_lists(f"{part}/nbest.txt")[1]]
        texts = {word for nbest in lists for h in nbest.hypotheses for word in h.text.split()}
        words.write_text("".join(f"{word}\n" for word in sorted(texts)), encoding="utf-8")
        features += ["--run", str(run), "--add-words", str(words)]
        features += ["--spread-unknown"] if "softmax" in run.name else []
    weights, best = str(folder / "weights.json"), str(folder / "test.nbest")
    tuned = ["tune", f"{TUNED}/nbest.txt", f"{TUNED}/refs.tsv", "--metric", "wer"]
    zoo.main(
        ["rescore", *tuned, "--weights", weights, "--lattices", f"{TUNED}/lattices", *features]
    )
    applied = ["apply", f"{TEST}/nbest.txt", weights, "--output", best]
    zoo.main(["rescore", *applied, "--lattices", f"{TEST}/lattices", *features])
    return best


def measure_errors(runs: list[pathlib.Path]) -> dict:
    """Returns the content of the file: where it comes from, and errors of each utterance."""
    origin = provenance()
    words, errors = count_errors(f"{TEST}/nbest.txt", f"{TEST}/refs.tsv")
    chosen = {}
    names = short_names([*map(str, runs)])
    for name, run in [("none", None), *zip(names, runs, strict=True)]:
        with tempfile.TemporaryDirectory() as folder:
            best = rerank(run, pathlib.Path(folder))
            chosen[name] = [counts[0] for counts in count_errors(best, f"{TEST}/refs.tsv")[1]]
    return {
        **origin,
        "words": words,
        "untuned": [counts[0] for counts in errors],
        "oracle": [min(counts) for counts in errors],
        "chosen": chosen,
    }


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=pathlib.Path, metavar="DIR")
    contents = measure_errors(program.parse(parser).runs)
    FILE.write_text(json.dumps(contents) + "\n", encoding="utf-8")


if __name__ == "__main__":
    program.program(main)
