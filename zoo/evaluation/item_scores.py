"""Scores of single words and questions, kept beside the passport of a figure made of them.

Intervals and tests need them (`zoo.evaluation.significance`), long after the model is gone. Beside
`results/test.carried.json` lies `results/test.carried.scores.npz` with arrays of

    log_prob  float32 [tokens], nats, of the counted tokens in the order of the text, and
    lengths   int32 [sentences], counted tokens of each sentence: a text; or of
    right     int8 [questions], 1 where the answer is right, 0 where not, -1 where it was left out.

A token takes some 3.7 bytes: 0.3 MB for the test text of the Penn Treebank. The passport has their
digest under "scores", so that scores of another evaluation are not taken for the figure's.
"""

import pathlib
from collections.abc import Mapping

import numpy as np

from zoo.arrays import array_files
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.evaluation.perplexity import Scores
from zoo.runs import atomic_files, checksums

Arrays = Mapping[str, np.ndarray]
SKIPPED = -1
_KINDS = {"log_prob": np.floating, "lengths": np.integer, "right": np.integer}


def of_text(text: EncodedText, scores: Scores) -> Arrays:
    """Returns the scores of a text, counted tokens alone.

    Args:
      text: as word ids.
      scores: of its words.
    """
    sentence = np.repeat(np.arange(len(text.starts)), text.lengths)
    lengths = np.bincount(sentence[scores.counted], minlength=len(text.starts))
    log_prob = scores.log_prob[scores.counted].astype(np.float32)
    return {"log_prob": log_prob, "lengths": lengths.astype(np.int32)}


def of_answers(right: np.ndarray, asked: np.ndarray | None = None) -> Arrays:
    """Returns which questions were answered right.

    Args:
      right: bool [n].
      asked: bool [n], whether the question counts; all if None.
    """
    answers = np.asarray(right, bool).astype(np.int8)
    return {"right": answers if asked is None else np.where(asked, answers, np.int8(SKIPPED))}


def digest(arrays: Arrays) -> str:
    """Hashes the arrays, for the passport.

    Args:
      arrays: the scores.
    """
    return checksums.of_json(checksums.of_arrays(dict(arrays)))


def path_of(result: pathlib.Path) -> pathlib.Path:
    """Returns the file of the scores of a result, RESULT.scores.npz for RESULT.json.

    Args:
      result: the passport's file.
    """
    return result.with_suffix(".scores.npz")


def write(result: pathlib.Path, arrays: Arrays):
    """Writes the scores of a result beside it, whole or not at all.

    Args:
      result: the passport's file.
      arrays: the scores.
    """

    def save(path):
        with open(path, "wb") as file:  # numpy would add .npz to a path without it
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    atomic_files.write_whole(path_of(result), save)


def read(result: pathlib.Path, passport: dict) -> Arrays | None:
    """Reads the scores of a result; None if none were kept with it.

    Args:
      result: the passport's file.
      passport: of the result.

    Raises:
      UserError: as `read_archive`.
    """
    return read_archive(path_of(result), passport)


def read_archive(path: pathlib.Path, passport: dict, prefix: str = "") -> Arrays | None:
    """Reads the scores of a result from an archive of arrays; None if it has none.

    Args:
      path: the archive.
      passport: of the result.
      prefix: the beginning of the names of its arrays, where the archive has scores of several.

    Raises:
      UserError: they cannot be read, or belong to another evaluation.
    """
    expected = passport.get("scores")
    if expected is None or not path.exists():
        return None
    try:
        arrays = array_files.unpacked(path, _KINDS.__contains__, prefix)
        if prefix and not arrays:
            return None
        _check(arrays, passport)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} holds no scores ({error}): evaluate the run again.") from error
    if digest(arrays) != expected:
        raise UserError(
            f"{path} has the scores of another evaluation than {prefix or 'the result'}: evaluate "
            "the run again."
        )
    return arrays


def _check(arrays, passport):
    """Raises ValueError unless arrays belong to a figure of this kind and are consistent."""
    of_answers = "accuracy" in passport.get("figures", {})
    if {*arrays} != ({"right"} if of_answers else {"log_prob", "lengths"}):
        raise ValueError(f"it has {', '.join(arrays) or 'nothing'}")
    for name, array in arrays.items():
        array_files.check(array, _KINDS[name], name)
    if "right" in arrays:
        if not np.isin(arrays["right"], (SKIPPED, 0, 1)).all():
            raise ValueError("right has other numbers than -1, 0 and 1")
    elif (arrays["lengths"] < 0).any() or arrays["lengths"].sum() != len(arrays["log_prob"]):
        raise ValueError("lengths do not add up to log_prob's")


def statistics(arrays: Arrays) -> np.ndarray:
    """Computes (-sum log p, tokens) of each sentence that has counted tokens, float64 [L, 2].

    `log_perplexity` is a figure of their sums.

    Args:
      arrays: the scores of a text.
    """
    lengths = arrays["lengths"].astype(np.int64)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    losses = np.bincount(sentence, -arrays["log_prob"].astype(np.float64), len(lengths))
    return np.stack([losses, lengths], 1)[lengths > 0]


def log_perplexity(sums: np.ndarray) -> np.ndarray:
    """Computes nats per token, [...].

    Args:
      sums: of `statistics` over sentences, [..., 2].
    """
    return sums[..., 0] / sums[..., 1]
