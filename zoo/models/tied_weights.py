"""Tied weights: a head whose output vectors are the embedding's table (Press and Wolf 2017)."""

import dataclasses

import jax

from zoo.arrays.types import Params
from zoo.cores.core import Core
from zoo.cores.recurrent_layers import Stacked
from zoo.embeddings import Embedding
from zoo.errors import UserError
from zoo.heads import Head
from zoo.heads.head import HeadAround
from zoo.lexicon import Lexicon


def head_params(head: Params, embedding: Params) -> Params:
    """Returns a tied head's parameters with the embedding's table as its output vectors."""
    return {**head, "weights": embedding["table"]}


def check(
    embedding: Embedding,
    core: Core,
    head: Head,
    embedding_params: Params,
    hidden_size: int,
    lexicon: Lexicon,
):
    """Raises UserError if a tied head cannot share the embedding's table."""
    while isinstance(head, HeadAround):
        head = head.head  # the parameters are the inner head's
    kinds, of_embedding = (part.kinds or () for part in (head, embedding))
    if set(kinds) != set(of_embedding):
        raise UserError(
            f"a tied {type(head).__name__} shares the embedding's table, whose features are "
            f"{', '.join(of_embedding) or 'of all kinds'}, and the head's are "
            f"{', '.join(kinds) or 'of all kinds'}: give both the same kinds, or set "
            "model.head.tied=False."
        )
    untied = dataclasses.replace(head, tied=False)
    shapes = jax.eval_shape(lambda key: untied.init(key, hidden_size, lexicon), jax.random.key(0))
    wanted = shapes["weights"].shape
    table = embedding_params.get("table")
    given = None if table is None else table.shape
    if given != wanted:
        other = ""
        if given and given[0] == wanted[0]:
            if getattr(head, "size", 0):  # of a mixture's contexts
                other = f", a head with model.head.size={given[1]}"
            elif isinstance(core, Stacked) and hidden_size == core.cells(core.layers - 1):
                other = f", a core with model.core.last_size={given[1]}"
        raise UserError(
            f"a tied {type(head).__name__} shares the embedding's table, which must have the shape "
            f"{wanted} and is {given} in {embedding}: take an embedding of the same kind with "
            f"model.embedding.size={wanted[1]}{other}, or set model.head.tied=False."
        )
