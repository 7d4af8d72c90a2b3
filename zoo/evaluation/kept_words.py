"""The words to which kept scores belong, read from a run's data; no model is run.

Scores of a result (`zoo.evaluation.item_scores`) are numbers in the order of the text. The text is
read again, and is refused unless its hash is the passport's.
"""

from typing import NamedTuple

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.evaluation import item_scores, passport
from zoo.evaluation.run import Run


class KeptWords(NamedTuple):
    """The words of a text with the scores that were kept of them."""

    text: EncodedText  # as word ids
    positions: np.ndarray  # int64 [n], positions in the text of the counted words
    log_prob: np.ndarray  # float32 [n], nats, of these words


def read(run: Run, record: dict, arrays: item_scores.Arrays | None) -> KeptWords:
    """Reads the words of a result."""
    name = record["split"]
    if arrays is None:
        raise UserError(
            f"no scores of the words of {name} are kept: python -m zoo evaluate {run.path} keeps "
            "them."
        )
    if record["lexicon"]["words"] != run.lexicon.words_set_digest():
        raise UserError(f"{name} was judged over other words than the run's own.")
    data = run.experiment.data
    splits = [part for split in data.splits() for part in (split, *data.parts(split))]
    if name not in splits:
        raise UserError(f"{name} is a text given by its path, not a split of the run.")
    corpus = run.read(name)
    if passport.data_of(corpus.name, corpus.sentences)["sha256"] != record["data"]["sha256"]:
        raise UserError(
            f"{corpus.name} has changed since {name} was judged: evaluate the run again."
        )
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    positions = np.flatnonzero(text.counted)
    if run.lexicon.boundary is None:  # the first word of the text is context only
        positions = positions[positions > 0]
    if len(positions) != len(arrays["log_prob"]):
        raise UserError(
            f"{len(arrays['log_prob']):,} scores are kept of {name}, and it has "
            f"{len(positions):,} counted words: evaluate the run again."
        )
    return KeptWords(text, positions, arrays["log_prob"])
