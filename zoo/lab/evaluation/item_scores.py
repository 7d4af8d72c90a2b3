"""Scores of single words and questions, kept beside the passport of a figure made of them.

Intervals and tests need them (`zoo.lab.evaluation.significance`) after the model is gone. Beside
`results/test.carried.json` lies `results/test.carried.scores.npz` with arrays of

    log_prob  float32 [tokens], nats, of the counted tokens in the order of the text,
    band      int8 [tokens], the number of the word's band by training count in `perplexity.BANDS`,
              -1 for a word that is read as <unk>, -2 where counts are not known, and
    lengths   int32 [sentences], counted tokens of each sentence: a text; or of
    right     int8 [questions], 1 where the answer is right, 0 where not, -1 where it was left out.

Log-probabilities are rounded to 1 / `PARTS` nats, which moves the mean of a thousand tokens by some
0.00001, so that a token takes some 2.5 bytes: 0.2 MB for the test text of the Penn Treebank. The
passport has their digest under "scores", so that scores of another evaluation are not taken for the
figure's.
"""

import math
import pathlib
from collections.abc import Iterable, Mapping

import numpy as np

from zoo.base.arrays import array_files
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.figures import AccuracyPassport, Passport
from zoo.lab.evaluation.perplexity import BAND_NAMES, BANDS, UNKNOWN, Band, Scores
from zoo.lab.runs import atomic_writes, checksums
from zoo.lexicon import Lexicon

Arrays = Mapping[str, np.ndarray]
SKIPPED = -1
_KINDS = {"log_prob": np.floating, "band": np.integer, "lengths": np.integer, "right": np.integer}
PARTS = 1024
# {name of a band: its number in kept scores}
BAND_NUMBERS = {UNKNOWN: -1, **{name: number for number, name in enumerate(BAND_NAMES)}}


def from_text(text: EncodedText, scores: Scores, lexicon: Lexicon) -> Arrays:
    """Returns the scores of a text, counted tokens alone."""
    sentence = np.repeat(np.arange(len(text.starts)), text.lengths)
    lengths = np.bincount(sentence[scores.counted], minlength=len(text.starts))
    log_prob = np.round(scores.log_prob[scores.counted] * PARTS) / PARTS
    band = np.searchsorted((0, *BANDS), text.occurrences(lexicon), side="right") - 2
    band[text.unknown(lexicon)] = BAND_NUMBERS[UNKNOWN]
    return {
        "log_prob": log_prob.astype(np.float32),
        "band": band[scores.counted].astype(np.int8),
        "lengths": lengths.astype(np.int32),
    }


def from_answers(right: np.ndarray, scored: np.ndarray | None = None) -> Arrays:
    """Returns which questions were answered right."""
    answers = np.asarray(right, bool).astype(np.int8)
    return {"right": answers if scored is None else np.where(scored, answers, np.int8(SKIPPED))}


def digest(arrays: Arrays) -> str:
    """Hashes the arrays, for the passport."""
    return checksums.json_digest(checksums.array_digests(dict(arrays)))


def path_of(result: pathlib.Path) -> pathlib.Path:
    """Returns the file of the scores of a result, RESULT.scores.npz for RESULT.json."""
    return result.with_suffix(".scores.npz")


def write(result: pathlib.Path, arrays: Arrays):
    """Writes the scores of a result beside it, whole or not at all."""
    atomic_writes.write_whole(path_of(result), lambda path: array_files.write(path, arrays))


def read(passport: Passport) -> Arrays | None:
    """Reads the scores of a result; None if none were kept with it."""
    if passport.scores is None or passport.place is None or not passport.place.scores.exists():
        return None
    _, path, prefix = passport.place
    try:
        arrays = array_files.read_arrays(path, _KINDS.__contains__, prefix)
        if prefix and not arrays:
            return None
        has_answers = isinstance(passport, AccuracyPassport)
        if {*arrays} != ({"right"} if has_answers else {"log_prob", "band", "lengths"}):
            raise ValueError(f"it has {', '.join(arrays) or 'nothing'}")
        for name, array in arrays.items():
            array_files.check(array, _KINDS[name], name)
        if "right" in arrays and not np.isin(arrays["right"], (SKIPPED, 0, 1)).all():
            raise ValueError("right has other numbers than -1, 0 and 1")
        if "lengths" in arrays:
            array_files.offsets(arrays["lengths"], len(arrays["log_prob"]), "lengths", "log_prob's")
            if len(arrays["band"]) != len(arrays["log_prob"]):
                raise ValueError("band has another length than log_prob")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} holds no scores ({error}): evaluate the run again.") from error
    if digest(arrays) != passport.scores:
        raise UserError(
            f"{path} has the scores of another evaluation than {prefix or 'the result'}: evaluate "
            "the run again."
        )
    return arrays


def statistics(
    arrays: Arrays, chosen: np.ndarray | None = None, log_prob: np.ndarray | None = None
) -> np.ndarray:
    """Computes (-sum log p, tokens) of each sentence that has counted tokens, float64 [L, 2]."""
    lengths = arrays["lengths"].astype(np.int64)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    losses = -np.asarray(arrays["log_prob"] if log_prob is None else log_prob, np.float64)
    if chosen is not None:
        sentence, losses = sentence[chosen], losses[chosen]
    tokens = np.bincount(sentence, minlength=len(lengths))
    return np.stack([np.bincount(sentence, losses, len(lengths)), tokens], 1)[tokens > 0]


def interval(sums: np.ndarray, reported: float) -> tuple[float, float]:
    """Computes the 95 % interval of a reported log-perplexity by bootstrap over sentences."""
    low, high = significance.bootstrap_interval(sums, log_perplexity)
    # Kept scores are rounded: the interval may miss the reported figure.
    return min(low, reported), max(high, reported)  # NaN stays, as the first argument


def band_intervals(
    bands: Iterable[Band], arrays: Arrays | None
) -> list[tuple[Band, tuple[float, float]]]:
    """Adds its interval to each band; NaN twice without scores or with one sentence."""
    rows = []
    for row in bands:
        ends = math.nan, math.nan
        if arrays is not None:
            chosen = np.asarray(arrays["band"]) == BAND_NUMBERS[row.band]
            ends = interval(statistics(arrays, chosen), row.log_perplexity)
        rows.append((row, ends))
    return rows


def log_perplexity(sums: np.ndarray) -> np.ndarray:
    """Computes nats per token, [...]."""
    return sums[..., 0] / sums[..., 1]
