"""The contract of an embedding: from words to vectors."""


class Embedding:
    """What every embedding offers. Subclasses are frozen dataclasses; methods are pure functions.

    init(key, lexicon) -> params
    apply(params, tables, words [...]) -> [..., E]
    """

    size: int
