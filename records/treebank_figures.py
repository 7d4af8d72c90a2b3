"""Keeps the figures of eleven treebanks, read from the runs of `records.treebanks`.

records/treebanks.json has figures of each treebank, and records/treebanks.npz sums over each
sentence of its test, named TREEBANK/SIDE: -log p of all tokens, of those that training read as
<unk>, and of these where new words compete in each of the ways, nats, float32
[runs, 2 + ways, sentences]. TREEBANK/tokens are the numbers of tokens, all and <unk>, int32
[2, sentences].
"""

import collections
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from records import cells
from records.keep import check
from zoo.base.arrays import array_files
from zoo.data import Corpus
from zoo.heads import LogLinear
from zoo.lab.evaluation import best_words, item_scores
from zoo.lab.evaluation.results import read_passport
from zoo.lab.evaluation.run import Run

RECORD = cells.FOLDER / "treebanks.json"
SUMS = RECORD.with_suffix(".npz")
# Ways in which new words compete for the probability of <unk>, as results are named.
WAYS = ("letters-5", "features")
TEST = "test.sentences"
PAIRS = "pairs_agreement-test"


def keep(treebank: str, runs_by_side: Mapping[str, Sequence[pathlib.Path]], **figures: Any):
    """Adds a treebank to the record, or replaces it.

    Args:
      treebank: its name.
      runs_by_side: {side: runs of its best trial}, judged; "tags" has features.
      figures: further figures of it.

    Raises:
      UserError: code that was not committed computes the figures, or made a run or a result.
    """
    sums = {}
    figures |= {"accuracies": {}, "pairs": 0}
    for side, runs in runs_by_side.items():
        judged = [_read_sums(run) for run in runs]
        sums[f"{treebank}/{side}"] = np.stack([run_sums for run_sums, *_ in judged])
        _, sums[f"{treebank}/tokens"], figures["new_words"] = judged[0]
        paths = (path for run in runs for path in sorted(run.glob(f"results/{PAIRS}*.json")))
        answers: list[Any] = [read_passport(path).figures for path in paths]
        figures["accuracies"][side] = [accuracy.accuracy for accuracy in answers]
        figures["pairs"] = max([figures["pairs"], *(accuracy.pairs for accuracy in answers)])
    run = Run.load(runs_by_side["tags"][0])
    names = run.lexicon.feature_names
    figures["values"] = sum(not name.startswith("Word:") for name in names)
    figures["contributions"] = contributions(run, run.read("test"))
    kept: dict = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    treebanks = {**kept.get("treebanks", {}), treebank: figures}
    if SUMS.exists():
        sums = array_files.read_arrays(SUMS, lambda name: True) | sums
    contents = {**cells.provenance(), "treebanks": treebanks}
    RECORD.write_text(json.dumps(contents, ensure_ascii=False, indent=1) + "\n", "utf-8")
    array_files.write(SUMS, sums)


def _read_sums(run):
    """Reads (the sums of a run, the numbers of tokens, the number of new words)."""
    arrays = _scores(run, TEST)
    lengths, unknown = arrays["lengths"], arrays["band"] == item_scores.BAND_NUMBERS["unknown"]
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    log_probs, new_words = [arrays["log_prob"], arrays["log_prob"] * unknown], 0
    for way in WAYS:
        for path in run.glob(f"results/{TEST}.lexicon-*-spread-{way}.json"):
            log_probs.append(_scores(run, path.stem)["log_prob"] * unknown)
            (new_words,) = (
                count for note, count in read_passport(path).notes.items() if "share" in note
            )
    sums = [np.bincount(sentence, -values, len(lengths)) for values in log_probs]
    tokens = [lengths, np.bincount(sentence, unknown, len(lengths))]
    return np.array(sums, np.float32), np.array(tokens, np.int32), new_words


def _scores(run, result):
    path = run / "results" / f"{result}.json"
    passport = read_passport(path)
    check(passport, path)
    arrays = item_scores.read(passport)
    assert arrays is not None
    return arrays


def contributions(run: Run, corpus: Corpus) -> dict[str, float]:
    """Computes how far each kind of feature raises the known words of a text over the background.

    By Dymetman and Xiao (2016), equation 12, a feature f of the word x adds a_f phi_f(x) to its
    score, with the adaptor a = W h + c. With the background b, a kind has the mean over the words
    of the text that training has seen of

        sum_(f of the kind) a_f (phi_f(x) - sum_y b(y) phi_f(y)).

    Args:
      run: with a log-linear head.
      corpus: the text.

    Returns:
      {kind: nats a word}, the greatest first.
    """
    head: Any = run.experiment.head
    assert isinstance(head, LogLinear)
    text, states = best_words.states(run, corpus)
    lexicon, parameters = run.lexicon, run.experiment.language_model.head_params(run.params)
    known = states.predicted & (text.words != lexicon.unknown_id)
    words, hidden = text.words[known], states.hidden[known]
    counts = np.bincount(words, minlength=len(lexicon))
    sums = np.zeros((len(lexicon), hidden.shape[1]))
    np.add.at(sums, words, hidden)
    rows = {name: row for row, name in enumerate(lexicon.feature_names)}
    features = np.zeros((len(lexicon), len(rows)))
    for word in range(len(lexicon)):
        for name, value in lexicon.features_of(word).items():
            features[word, rows[name]] = value
    features -= np.exp(lexicon.background_log_probs) @ features
    weights, bias = (np.asarray(parameters[name], np.float64) for name in ("weights", "bias"))
    nats = (weights * (features.T @ sums)).sum(1) + bias * (features.T @ counts)
    by_kind: collections.Counter = collections.Counter()
    for name, row in rows.items():
        by_kind[name.partition(":")[0]] += float(nats[row] / counts.sum())
    return dict(by_kind.most_common())
