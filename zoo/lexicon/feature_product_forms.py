"""The forms in which a linear function of signatures' features is computed, and their costs.

A log-linear head over V words in S signatures with F features can be

- a softmax over signatures whose weights, sums of feature vectors, are formed once a step; the
  features that several signatures share are summed by a dense product, or by a sparse one;
- a sparse product of the adaptors of some tokens at a time (zoo.losses.feature_scores).

The cost of each form is estimated from the counts of the lexicon.
"""

import dataclasses
import enum
import logging

import numpy as np

logger = logging.getLogger(__name__)

# Tokens of a batch and size of a state, for the estimates.
TYPICAL_TOKENS = TYPICAL_SIZE = 256
# Costs in multiplications of a large dense product: of gathering and adding a number, of moving a
# number of the weights or of their gradient, and of a multiplication in a product with the few
# tokens that a sparse product takes at a time. Measured on one core with AVX-512.
GATHERED, MOVED, FEW_TOKENS = 20, 40, 1.5
# Private features of a signature; further ones are summed with the shared features.
MOST_PRIVATE = 4


class Form(enum.Enum):
    """The way in which scores are computed; the value is its description in the log."""

    DENSE_SUMS = "a softmax over signatures"
    SPARSE_SUMS = "a softmax over signatures, their shared features a sparse sum"
    PRODUCT = "scores as a sparse product"


# The forms that give the weights of a softmax.
SUMS = (Form.DENSE_SUMS, Form.SPARSE_SUMS)
# The forms by their names in recipes and passports.
BY_NAME = {form.name.lower(): form for form in Form}


def is_private(rows: np.ndarray, ids: np.ndarray, features: int) -> np.ndarray:
    """Finds the entries of phi whose feature no other signature has.

    Only the first MOST_PRIVATE such entries of a signature count.

    Gives bool [m].
    """
    alone = np.bincount(ids, minlength=features)[ids] == 1
    before = np.cumsum(alone) - alone  # in all rows; less those before the row, in it
    places = np.arange(len(rows))
    starts = np.maximum.accumulate(np.where(np.diff(rows, prepend=-1) > 0, places, 0))
    return alone & (before - before[starts] < MOST_PRIVATE)


@dataclasses.dataclass(frozen=True)
class Counts:
    """The counts of a lexicon from which costs are estimated."""

    words: int
    signatures: int
    features: int
    shared: int
    entries: int
    shared_entries: int

    @classmethod
    def of(cls, lexicon) -> "Counts":
        """Counts the words, signatures and features of a lexicon."""
        _, sets = lexicon.signatures
        features = len(lexicon.feature_names)
        rows, ids, _ = sets.entries()
        shared = ids[~is_private(rows, ids, features)]
        return cls(
            words=len(lexicon),
            signatures=len(sets),
            features=features,
            shared=int(np.count_nonzero(np.bincount(shared, minlength=features))),
            entries=len(ids),
            shared_entries=len(shared),
        )


def costs(counts: Counts) -> dict[Form, float]:
    """Estimates the cost of a step of each form, in multiplications of a dense product.

    A step is forward and backward, with TYPICAL_TOKENS tokens N and a state of TYPICAL_SIZE D. A
    softmax over S classes takes 3 S D N. Its weights are written and their gradients read once a
    step, and shared features are summed and their gradients summed back.
    """
    tokens, size = TYPICAL_TOKENS, TYPICAL_SIZE
    moved = MOVED * (counts.signatures + counts.features) * size
    summed = 3 * counts.signatures * size * tokens + moved
    return {
        Form.DENSE_SUMS: summed + 2 * counts.signatures * counts.shared * size,
        Form.SPARSE_SUMS: summed + 2 * GATHERED * counts.shared_entries * size,
        Form.PRODUCT: (
            3 * FEW_TOKENS * counts.features * size * tokens
            + 2 * GATHERED * counts.entries * tokens
        ),
    }


def choose_form(lexicon, forms: tuple[Form, ...] = tuple(Form)) -> Form:
    """Chooses the form with the least estimated cost, and logs it with the estimate."""
    counts = Counts.of(lexicon)
    estimates = costs(counts)
    form = min(forms, key=estimates.__getitem__)
    logger.info(
        "%d words, %d signatures, %d features, %d of them shared, %.1f a signature: %s, "
        "estimated at %.2f of a softmax over the words",
        *(counts.words, counts.signatures, counts.features, counts.shared),
        *(counts.entries / counts.signatures, form.value),
        estimates[form] / (3 * counts.words * TYPICAL_SIZE * TYPICAL_TOKENS),
    )
    return form
