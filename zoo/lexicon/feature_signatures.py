"""Tables of signatures, the distinct feature sets of a lexicon's words.

A linear function of the features is computed for signatures only and gathered for words. A
log-linear head over V words in S signatures with F features can be

- a softmax over signatures whose weights, sums of feature vectors, are formed once a step; the
  features that several signatures share are summed by a dense product, or by a sparse one;
- a sparse product of the adaptors of some tokens at a time (zoo.losses.log_linear).

`choose_form` estimates the cost of each form from the counts of the lexicon.
"""

import dataclasses
import enum
import itertools
import logging
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import precision, products, row_lookup, sharded_functions, sparse_products
from zoo.base.arrays.precision import accumulator

logger = logging.getLogger(__name__)

# Tokens of a batch and size of a state, for the estimates.
TYPICAL_TOKENS = TYPICAL_SIZE = 256
# Costs in multiplications of a large dense product: of gathering and adding a number, of moving a
# number of the weights or of their gradient, and of a multiplication in a product with the few
# tokens that a sparse product takes at a time. Measured on one core with AVX-512.
GATHER_COST, MOVE_COST, FEW_TOKENS_COST = 20, 40, 1.5
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
    """Whether no other signature has the feature of an entry of phi, bool [m], of each signature's
    first MOST_PRIVATE such entries."""
    is_single = np.bincount(ids, minlength=features)[ids] == 1
    before = np.cumsum(is_single) - is_single  # in all rows; less those before the row, in it
    places = np.arange(len(rows))
    starts = np.maximum.accumulate(np.where(np.diff(rows, prepend=-1) > 0, places, 0))
    return is_single & (before - before[starts] < MOST_PRIVATE)


def costs(
    *, signatures: int, features: int, shared: int, entries: int, shared_entries: int
) -> dict[Form, float]:
    """Estimates the cost of a training step of each form, in multiplications of a product."""
    # Weights are written and their gradients read once a step; shared features are summed and
    # their gradients summed back.
    tokens, size = TYPICAL_TOKENS, TYPICAL_SIZE
    move_cost = MOVE_COST * (signatures + features) * size
    sum_cost = 3 * signatures * size * tokens + move_cost
    return {
        Form.DENSE_SUMS: sum_cost + 2 * signatures * shared * size,
        Form.SPARSE_SUMS: sum_cost + 2 * GATHER_COST * shared_entries * size,
        Form.PRODUCT: (
            3 * FEW_TOKENS_COST * features * size * tokens + 2 * GATHER_COST * entries * tokens
        ),
    }


def choose_form(lexicon, forms: tuple[Form, ...] = tuple(Form)) -> Form:
    """Chooses the form with the least estimated cost, and logs it with the estimate."""
    sets, features = lexicon.signatures[1], len(lexicon.feature_names)
    rows, ids, _ = sets.entries()
    shared_ids = ids[~is_private(rows, ids, features)]
    shared = len(np.unique(shared_ids))
    estimates = costs(
        signatures=len(sets),
        features=features,
        shared=shared,
        entries=len(ids),
        shared_entries=len(shared_ids),
    )
    form = min(forms, key=estimates.__getitem__)
    logger.info(
        "%d words, %d signatures, %d features, %d of them shared, %.1f a signature: %s, "
        "estimated at %.2f of a softmax over the words",
        *(len(lexicon), len(sets), features, shared, len(ids) / len(sets), form.value),
        estimates[form] / (3 * len(lexicon) * TYPICAL_SIZE * TYPICAL_TOKENS),
    )
    return form


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FeatureSets(Sequence):
    """The feature sets, (feature ids, values), of words or of signatures."""

    offsets: np.ndarray  # int64 [S + 1]; set s has the entries from offsets[s] to offsets[s + 1]
    ids: np.ndarray
    values: np.ndarray

    def __repr__(self):
        return f"FeatureSets({len(self):,} sets, {len(self.ids):,} entries)"

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, number):
        number = range(len(self))[number]
        entries = slice(self.offsets[number], self.offsets[number + 1])
        return self.ids[entries], self.values[entries]

    def select(self, numbers: np.ndarray) -> "FeatureSets":
        """Returns some of the sets, in the given order."""
        lengths = np.diff(self.offsets)[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        chosen = np.arange(offsets[-1]) + np.repeat(self.offsets[numbers] - offsets[:-1], lengths)
        return FeatureSets(offsets, self.ids[chosen], self.values[chosen])

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns (signatures, feature ids, values) of the entries of phi [S, F], by signature."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.ids, self.values


def group_words(words: FeatureSets) -> tuple[np.ndarray, FeatureSets]:
    """Returns (the number of each word's feature set, int32 [V]; the sets by their first words)."""
    bits = words.values.view(f"i{words.values.itemsize}")
    entries = np.stack([words.ids, bits], axis=1)
    as_bytes, starts = entries.tobytes(), words.offsets * entries.dtype.itemsize * 2
    numbers: dict[bytes, int] = {}
    signature = np.array(
        [
            numbers.setdefault(as_bytes[start:stop], len(numbers))
            for start, stop in itertools.pairwise(starts.tolist())
        ],
        np.int32,
    )
    return signature, words.select(np.unique(signature, return_index=True)[1])


def tables(lexicon, form: Form | None = None) -> dict[str, np.ndarray]:
    """Makes the tables of the background (`mass_tables`) and of the features in a form."""
    form = form or lexicon.signature_form
    form_tables = product_tables(lexicon) if form is Form.PRODUCT else summed_tables(lexicon, form)
    return mass_tables(lexicon) | form_tables


def mass_tables(lexicon) -> dict[str, np.ndarray]:
    """Computes {"signature": int32 [V], "log_mass": log B(s), [S], "log_within": log b(v)/B(s(v)),
    [V]}, nats."""
    signature, members = lexicon.signatures
    log_background = lexicon.background_log_probs
    log_mass = np.full(len(members), -np.inf)
    np.logaddexp.at(log_mass, signature, log_background)  # masses may be below any float
    with np.errstate(invalid="ignore"):
        # A signature without mass has words without mass: log(0 / 0) is log 0 here.
        log_within = np.where(
            np.isneginf(log_background), -np.inf, log_background - log_mass[signature]
        )
    return {
        "signature": signature,
        "log_mass": log_mass.astype(np.float32),
        "log_within": log_within.astype(np.float32),
    }


def _pad(rows, ids, values, height, filling):
    """Pads the entries of each row to (ids, values), both [height, most entries of a row]."""
    counts = np.bincount(rows, minlength=height)
    is_entry = np.arange(max(1, counts.max()))[None] < counts[:, None]
    padded_ids = np.full(is_entry.shape, filling, np.int32)
    padded_values = np.zeros(is_entry.shape, np.float32)
    padded_ids[is_entry], padded_values[is_entry] = ids, values
    return padded_ids, padded_values


def feature_tables(lexicon) -> dict:
    """Makes {"features": int32 [S, P], "feature_values": [S, P]} of signatures, padded with 0."""
    sets = lexicon.signatures[1]
    rows, ids, values = sets.entries()
    features, feature_values = _pad(rows, ids, values, len(sets), 0)
    return {"features": features, "feature_values": feature_values}


def product_tables(lexicon) -> dict:
    """Makes `feature_tables` and the levels (see zoo.base.arrays.sparse_products) of phi [S, F],
    "of_signature", and of its transpose, "of_feature"."""
    rows, ids, values = lexicon.signatures[1].entries()
    signature_count = len(lexicon.signatures[1])
    # For scores of few tokens at a time, fewer levels save more than fewer slots.
    width = 8
    return {
        "of_signature": sparse_products.levels(rows, ids, values, signature_count, width),
        "of_feature": sparse_products.levels(ids, rows, values, len(lexicon.feature_names), width),
        **feature_tables(lexicon),
    }


def summed_tables(lexicon, form: Form) -> dict:
    """Makes the tables of signatures that `sum_features` takes.

    A feature of a single signature (a word's identity, as a rule) is private and is summed by a
    gather; other features (tags) are shared and are summed by a product, dense if they are few.

    Gives shared_features: the ids of the shared features, int32 [shared]. shared_place: int32 [F],
    the slot of a feature among them, or `shared` if it is private. shared_values, if dense: phi of
    the shared features, [S, shared]. shared_of_signature, shared_of_feature, if sparse: the levels
    (see zoo.base.arrays.sparse_products) of the matrix shared_values and of its transpose; and
    `feature_tables`. private_features: int32 [S, P], padded with F. private_values: [S, P], padded
    with 0. private_signature: int32 [F], the one signature that has the feature, or S if it is
    shared. private_signature_value: [F], its value there, or 0 if it is shared.
    """
    signature_count, feature_count = len(lexicon.signatures[1]), len(lexicon.feature_names)
    rows, ids, values = lexicon.signatures[1].entries()
    private = is_private(rows, ids, feature_count)
    shared = np.flatnonzero(np.bincount(ids[~private], minlength=feature_count)).astype(np.int32)
    slot = np.full(feature_count, len(shared), np.int32)
    slot[shared] = np.arange(len(shared))
    private_signature = np.full(feature_count, signature_count, np.int32)
    private_signature[ids[private]] = rows[private]
    private_signature_value = np.zeros(feature_count, np.float32)
    private_signature_value[ids[private]] = values[private]
    private_features, private_values = _pad(
        rows[private], ids[private], values[private], signature_count, feature_count
    )
    arrays = {
        "shared_features": shared,
        "shared_place": slot,
        "private_features": private_features,
        "private_values": private_values,
        "private_signature": private_signature,
        "private_signature_value": private_signature_value,
    }
    rows, columns, values = rows[~private], slot[ids[~private]], values[~private]
    if form is Form.DENSE_SUMS or not len(shared):
        arrays["shared_values"] = np.zeros((signature_count, len(shared)), np.float32)
        arrays["shared_values"][rows, columns] = values
        return arrays
    return {
        **arrays,
        "shared_of_signature": sparse_products.levels(rows, columns, values, signature_count),
        "shared_of_feature": sparse_products.levels(columns, rows, values, len(shared)),
        **feature_tables(lexicon),
    }


def form_of(tables: dict[str, jax.Array]) -> Form:
    """Returns the form of tables; sums without any shared feature are dense."""
    if "of_signature" in tables:
        return Form.PRODUCT
    return Form.DENSE_SUMS if "shared_values" in tables else Form.SPARSE_SUMS


def feature_count(tables: dict) -> int:
    """Returns F, the number of features, of tables in any form."""
    if "of_feature" in tables:
        return len(tables["of_feature"][-1]["columns"])
    return len(tables["shared_place"])


def _take_rows(rows, row_ids):
    """Returns rows[row_ids], and 0 where an id is not a row."""
    if not len(rows):
        return jnp.zeros((*row_ids.shape, rows.shape[1]), rows.dtype)
    return jnp.take(rows, row_ids, axis=0, mode="fill", fill_value=0)


@jax.custom_vjp
def _sums(vectors, tables):
    sums, wide = vectors[tables["shared_features"]], accumulator(vectors)
    if "shared_values" in tables:
        sums = products.matmul(tables["shared_values"].astype(wide), sums)
    else:
        levels = tables["shared_of_signature"], tables["shared_of_feature"]
        sums = sparse_products.product(*levels, sums.astype(wide))
    values = tables["private_values"].astype(wide)
    # A loop, not an array with an axis more: the sum is fused with its gathers.
    for p, features in enumerate(tables["private_features"].T):
        sums += values[:, p, None] * _take_rows(vectors, features)
    return sums


def _sums_backward(residuals, cotangent):
    tables, vectors = residuals
    if "shared_values" in tables:
        values = precision.rounded_as(tables["shared_values"].astype(cotangent.dtype), vectors)
        shared = products.einsum("sf,sd->fd", values, cotangent)
    else:
        shared = sparse_products.product_of_parts(tables["shared_of_feature"], cotangent)
    # Each private feature belongs to one signature, and each shared one has one slot: the
    # transposes of the gathers are gathers too, which are many times faster than the scatters
    # that autodiff would make of them.
    values = tables["private_signature_value"].astype(cotangent.dtype)[:, None]
    private = values * _take_rows(cotangent, tables["private_signature"])
    gradient = private + _take_rows(shared, tables["shared_place"])
    return gradient.astype(vectors.dtype), None


_sums.defvjp(lambda vectors, tables: (_sums(vectors, tables), (tables, vectors)), _sums_backward)


def sum_features(tables: dict[str, jax.Array], vectors: jax.Array) -> jax.Array:
    """Computes sum_f phi_sf * vectors_f of each signature, [S, D], in at least float32."""
    vectors = sharded_functions.replicate_rows(vectors)
    if "of_signature" in tables:
        tables = jax.tree.map(sharded_functions.replicate_rows, tables)
        vectors = vectors.astype(accumulator(vectors))
        return sparse_products.product(tables["of_signature"], tables["of_feature"], vectors)
    return _sums(vectors, tables)


def sum_features_of(tables: dict[str, jax.Array], vectors: jax.Array, words: jax.Array):
    """Computes the vectors of words, sum_f phi_f * vectors_f. Gives [..., D]."""
    signatures = tables["signature"][words]
    if "features" not in tables:
        return sum_features(tables, vectors)[signatures]
    # Only the signatures of the given words are summed.
    rows = row_lookup.take(vectors, tables["features"][signatures])
    values = tables["feature_values"][signatures].astype(accumulator(vectors))
    return products.einsum("...p,...pd->...d", values, rows)
