"""Tables of signatures, the distinct feature sets of a lexicon's words.

A linear function of the features is computed for signatures only and gathered for words. There are
two forms of it: sums of feature vectors, or, where signatures have many shared features, a sparse
product (zoo.sparse).
"""

import logging

import jax
import jax.numpy as jnp
import numpy as np

from zoo import sparse

logger = logging.getLogger(__name__)

# For the choice between the two: tokens of a batch and size of a state, and how many
# multiplications of a dense product take as long as one of a gathered number.
TYPICAL, GATHERED = 256, 4


def tables(lexicon) -> dict[str, np.ndarray]:
    """The tables of features and background: `mass_tables`, and features in one of two forms.

    As a rule `summed_tables`; `sparse_tables` where they promise to cost less than half of it.
    """
    form = sparse_tables if lexicon.prefers_sparse else summed_tables
    return {**mass_tables(lexicon), **form(lexicon)}


def prefers_sparse(lexicon) -> bool:
    """Whether scores should be a sparse product of the adaptor; logged with the counts.

    Estimates the multiplications that a step takes a token, forward and backward, in a batch of
    TYPICAL tokens with a state of TYPICAL size. A softmax over signatures: 3 S D, and for its
    weights 2 S D a shared feature, once a batch. A sparse product: 3 F D for the adaptor, 3 a
    feature of each signature, and a gathered number takes as long as GATHERED multiplications.
    """
    _, members = lexicon.signatures
    ids = np.concatenate([ids for ids, _ in members])
    signatures, features = len(members), len(lexicon.feature_names)
    shared = int((np.bincount(ids, minlength=features) > 1).sum())
    summed = signatures * (3 * TYPICAL + 2 * shared)
    sparse_product = 3 * features * TYPICAL + 3 * GATHERED * len(ids)
    chosen = 2 * sparse_product < summed
    logger.info(
        "%d words, %d signatures, %d features, %d of them shared, %.1f a signature: %s",
        *(len(lexicon), signatures, features, shared, len(ids) / signatures),
        "scores as a sparse product" if chosen else "a softmax over signatures",
    )
    return chosen


def mass_tables(lexicon) -> dict[str, np.ndarray]:
    """The signature of each word, and the background mass of and within signatures.

    Returns:
      signature: int32 [V]. log_mass: log B(s) [S], nats. log_within: log b(v)/B(s(v)) [V], nats.
    """
    signature, members = lexicon.signatures
    log_background = lexicon.log_background
    if log_background is None:
        log_background = np.full(len(lexicon), -np.log(len(lexicon)))
    mass = np.zeros(len(members))
    np.add.at(mass, signature, np.exp(log_background))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass = np.log(mass)
        # A signature without mass has words without mass: log(0 / 0) is log 0 here.
        log_within = np.where(
            np.isneginf(log_background), -np.inf, log_background - log_mass[signature]
        )
    return {
        "signature": signature,
        "log_mass": log_mass.astype(np.float32),
        "log_within": log_within.astype(np.float32),
    }


def sparse_tables(lexicon) -> dict:
    """of_signature, of_feature: the levels (see zoo.sparse) of phi [S, F] and its transpose.

    features: int32 [S, P], those of each signature; values: [S, P]. Both padded with 0.
    """
    _, members = lexicon.signatures
    lengths = np.array([len(ids) for ids, _ in members])
    rows = np.repeat(np.arange(len(members)), lengths)
    ids = np.concatenate([ids for ids, _ in members])
    values = np.concatenate([values for _, values in members])
    padded = np.arange(max(1, lengths.max()))[None] < lengths[:, None]
    features, feature_values = np.zeros(padded.shape, np.int32), np.zeros(padded.shape, np.float32)
    features[padded], feature_values[padded] = ids, values
    return {
        "of_signature": sparse.levels(rows, ids, values, len(members)),
        "of_feature": sparse.levels(ids, rows, values, len(lexicon.feature_names)),
        "features": features,
        "feature_values": feature_values,
    }


def summed_tables(lexicon) -> dict[str, np.ndarray]:
    """What `sum_features` takes.

    A feature of a single signature (a word's identity, as a rule) is private and is summed by a
    gather; the others (tags) are shared and are summed by a dense product with few columns.

    Returns:
      shared_values: phi of the shared features, [S, shared]. shared_features: their ids.
      private_features: int32 [S, P], padded with F. private_values: [S, P], padded with 0.
      private_signature: int32 [F], the one signature that has the feature, or S if it is shared.
      private_signature_value: [F], its value there, or 0 if it is shared.
    """
    _, members = lexicon.signatures
    signature_count, feature_count = len(members), len(lexicon.feature_names)
    uses = np.bincount(np.concatenate([ids for ids, _ in members]), minlength=feature_count)
    shared = np.flatnonzero(uses > 1).astype(np.int32)
    column = np.full(feature_count, -1)
    column[shared] = np.arange(len(shared))
    shared_values = np.zeros((signature_count, len(shared)), np.float32)
    privates = []
    private_signature = np.full(feature_count, signature_count, np.int32)
    private_signature_value = np.zeros(feature_count, np.float32)
    for place, (ids, values) in enumerate(members):
        alone = uses[ids] == 1
        shared_values[place, column[ids[~alone]]] = values[~alone]
        privates.append((ids[alone], values[alone]))
        private_signature[ids[alone]] = place
        private_signature_value[ids[alone]] = values[alone]
    width = max(len(ids) for ids, _ in privates)
    private_features = np.full((signature_count, width), feature_count, np.int32)
    private_values = np.zeros((signature_count, width), np.float32)
    for place, (ids, values) in enumerate(privates):
        private_features[place, : len(ids)] = ids
        private_values[place, : len(ids)] = values
    return {
        "shared_values": shared_values,
        "shared_features": shared,
        "private_features": private_features,
        "private_values": private_values,
        "private_signature": private_signature,
        "private_signature_value": private_signature_value,
    }


@jax.custom_vjp
def _sum_private(vectors, tables):
    gathered = jnp.take(vectors, tables["private_features"], axis=0, mode="fill", fill_value=0)
    return jnp.einsum("sp,spd->sd", tables["private_values"].astype(vectors.dtype), gathered)


def _sum_private_forward(vectors, tables):
    return _sum_private(vectors, tables), tables


def _sum_private_backward(tables, cotangent):
    # Each private feature belongs to one signature: the transpose of the gather is a gather too,
    # which is many times faster than the scatter that autodiff would make of it.
    rows = jnp.take(cotangent, tables["private_signature"], axis=0, mode="fill", fill_value=0)
    return tables["private_signature_value"].astype(cotangent.dtype)[:, None] * rows, None


_sum_private.defvjp(_sum_private_forward, _sum_private_backward)


def sum_features(tables: dict[str, jax.Array], vectors: jax.Array) -> jax.Array:
    """The vector of each signature, sum_f phi_sf * vectors_f.

    Args:
      tables: of `Lexicon.tables`. vectors: [F, D], one for each feature.

    Returns:
      [S, D].
    """
    if "of_signature" in tables:
        return sparse.product(tables["of_signature"], tables["of_feature"], vectors)
    shared = tables["shared_values"].astype(vectors.dtype) @ vectors[tables["shared_features"]]
    return shared + _sum_private(vectors, tables)


def sum_features_of(tables: dict[str, jax.Array], vectors: jax.Array, words: jax.Array):
    """The vectors of words int32 [...], sum_f phi_f * vectors_f: [..., D]."""
    signatures = tables["signature"][words]
    if "of_signature" not in tables:
        return sum_features(tables, vectors)[signatures]
    # Signatures are as good as words here: those that are not asked for are left out.
    values = tables["feature_values"][signatures].astype(vectors.dtype)
    return jnp.einsum("...p,...pd->...d", values, vectors[tables["features"][signatures]])
