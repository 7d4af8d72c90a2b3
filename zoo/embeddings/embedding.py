"""The contract of an embedding: from words to vectors."""

import jax

from zoo.errors import UserError


class Embedding:
    """What every embedding offers. Subclasses are frozen dataclasses; methods are pure functions.

    tables(lexicon) -> pytree of arrays, what the embedding needs to know of the words
    init(key, lexicon) -> params
    apply(params, tables, words [...]) -> [..., E]
    for_lexicon(params, lexicon, other) -> params for another lexicon than the trained one
    """

    size: int
    # Names of the parameters that `apply` reads by `zoo.arrays.rows.take` alone; see
    # Head.row_tables.
    row_tables = ()

    def tables(self, lexicon) -> dict[str, jax.Array]:
        """Nothing, unless an embedding says otherwise."""
        return {}

    def for_lexicon(self, params, lexicon, other):
        """The parameters for words that were not there in training; UserError if there are none."""
        raise UserError(
            f"{type(self).__name__} embeddings know nothing of words that they were not trained "
            "on: CharCNN, Features, Lookup and Concat of these can take another lexicon."
        )

    def notes(self, lexicon) -> dict[str, int]:
        """What was lost of the words, by name, such as how many were cut; kept in passports."""
        return {}
