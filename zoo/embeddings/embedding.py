"""The contract of an embedding: from words to vectors."""

import jax


class Embedding:
    """What every embedding offers. Subclasses are frozen dataclasses; methods are pure functions.

    tables(lexicon) -> pytree of arrays, what the embedding needs to know of the words
    init(key, lexicon) -> params
    apply(params, tables, words [...]) -> [..., E]
    """

    size: int
    # Names of the parameters that `apply` reads by `zoo.rows.take` alone; see Head.row_tables.
    row_tables = ()

    def tables(self, lexicon) -> dict[str, jax.Array]:
        """Nothing, unless an embedding says otherwise."""
        return {}
