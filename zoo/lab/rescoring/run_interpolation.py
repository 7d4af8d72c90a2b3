"""Language models interpolated word by word, with weights by expectation maximisation.

    log p(w_t | w_<t) = log sum_k a_k p_k(w_t | w_<t),    a_k >= 0, sum_k a_k = 1.

On a text of N words, boundaries among them, the weights are found by repeating

    a_k <- 1/N sum_t a_k p_k(w_t) / sum_j a_j p_j(w_t),

which never lowers its probability (Jelinek and Mercer 1980).
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from zoo.base import strict_json
from zoo.errors import UserError, quote, shortened
from zoo.lab.evaluation import sentence_scores
from zoo.sources import files, foreign_formats

NAME = "interpolated"


def mix(log_probs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Computes log sum_k a_k p_k [words] from log p_k [models, words] and weights a_k [models]."""
    is_used = weights > 0
    logits = np.log(weights[is_used])[:, None] + log_probs[is_used].astype(np.float64)
    return np.logaddexp.reduce(logits, axis=0)


def tune_weights(log_probs: np.ndarray, rounds: int = 1000) -> np.ndarray:
    """Fits weights a [models] by EM to the words of a text, log p_k [models, words]."""
    weights = np.full(len(log_probs), 1 / len(log_probs))
    for _ in range(rounds):
        with np.errstate(divide="ignore"):
            shares = np.exp(np.log(weights)[:, None] + log_probs - mix(log_probs, weights))
        updated_weights = shares.mean(axis=1)
        updated_weights /= updated_weights.sum()
        if np.abs(updated_weights - weights).max() <= 1e-7:
            return updated_weights
        weights = updated_weights
    return weights


def read_text(path: str) -> list[str]:
    """Reads the lines of a text file that have words; raises UserError if none has."""
    texts = foreign_formats.check_text((text for _, text in files.read_lines(path)), path)
    lines = [line for line in map(files.bare, texts) if line.strip()]
    if not lines:
        raise UserError(f"{path} has no words: give a text that has some.")
    return lines


def to_json(content: dict) -> str:
    """Formats a dict as the JSON text of a file of weights."""
    return strict_json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def read_weights(
    path: str, field: str, example: str, shares: bool = False
) -> tuple[dict, dict[str, float]]:
    """Reads (JSON of a file, {name: weight} in its field); raises UserError for other files, and
    for weights outside 0 to 1 with `shares`. `example` is for the message."""
    file = files.find(path)
    try:
        shape = {field: dict, "added": list[str] | None}
        content = strict_json.parse(shape, strict_json.loads(files.read_text(file)))
        if not content[field]:
            raise ValueError("there are none")
    except ValueError as error:
        raise UserError(
            f'{file} has no weights ({error}): write {{"{field}": {{{example}}}}}.'
        ) from error
    for name, weight in content[field].items():
        if not strict_json.is_number(weight) or (shares and not 0 <= weight <= 1):
            number = "number from 0 to 1" if shares else "finite number"
            raise UserError(
                f"{file}: the weight of {shortened(name)!r} is {shortened(json.dumps(weight))}: "
                f"give a {number}."
            )
    return content, {name: float(weight) for name, weight in content[field].items()}


@dataclasses.dataclass(frozen=True)
class Interpolation:
    """Interpolation weights of runs, by the runs' names."""

    weights: dict[str, float]

    def text(self) -> str:
        """Formats the weights as the JSON text of their file."""
        return to_json({"interpolation": self.weights})

    @classmethod
    def read(cls, path: str) -> "Interpolation":
        """Reads the weights of a file; raises UserError unless they sum to 1."""
        _, weights = read_weights(path, "interpolation", '"run": 1', shares=True)
        total = math.fsum(weights.values())
        if abs(total - 1) > 1e-6:
            raise UserError(f"{files.find(path)}: the weights sum to {total:g}, not to 1.")
        return cls(weights)

    def score(self, runs: dict[str, Any], sentences: Sequence[list[str]], name: str) -> np.ndarray:
        """Computes log p of sentences under the weighted mean of the runs, float64 [sentences],
        nats; `name` names the text in errors."""
        weighted_runs = {run_name: runs[run_name] for run_name in self.weights}
        log_probs, starts = word_log_probs(weighted_runs, sentences, name)
        weights = np.array([*self.weights.values()])
        return np.add.reduceat(mix(log_probs, weights), starts) if len(starts) else np.zeros(0)

    def check_names(self, names: Sequence[str], path: str):
        """Raises UserError unless exactly the named runs have weights (in `path`)."""
        if {*self.weights} != {*names}:
            raise UserError(
                f"{path} has weights of {quote([*self.weights])}, and the runs are "
                f"{quote([*names])}: give exactly the runs that have weights."
            )

    def check(self, runs: dict[str, Any]):
        """Raises UserError unless every weight has a run, and these runs have the same words."""
        missing = [name for name in self.weights if name not in runs]
        if missing:
            raise UserError(f"no --run is called {quote(missing)}, which has a weight: give it.")
        check_same_words({name: runs[name] for name in self.weights})


def check_same_words(runs: dict[str, Any]):
    """Raises UserError unless all runs have the same words, so that their mean is normalised."""
    (first_name, first_run), *further_runs = runs.items()
    for name, run in further_runs:
        if {*run.lexicon.words} != {*first_run.lexicon.words}:
            raise UserError(
                f"{first_name} and {name} have different words, so that a mean of their "
                "probabilities is not normalised: train them with one vocabulary."
            )


def word_log_probs(
    runs: dict[str, Any], sentences: Sequence[list[str]], name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Computes log p of words and boundaries under each run, [runs, words], and sentences' first
    indices."""
    rows = [sentence_scores.word_log_probs(run, sentences, name) for run in runs.values()]
    return np.stack([log_prob for log_prob, _ in rows]), rows[0][1]
