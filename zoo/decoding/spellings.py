"""The most probable spellings of a head that spells, by beam search over letters."""

import jax
import jax.numpy as jnp

from zoo.decoding import beam
from zoo.lexicon.spelling import BEGIN, END, PADDING


def most_probable(head, params, hidden, k: int, width: int = 32):
    """The k most probable spellings, of words or of anything, that a beam search finds.

    Args:
      head: a heads.CharLSTM. params: its parameters. hidden: [N, D].
      k: at most `width`, the unfinished spellings kept at each letter.

    Returns:
      (log-probabilities over all spellings [N, k], nats, falling; spellings int32 [N, k, longest],
      PADDING after END; missed [N], nats: no spelling that the beam let go is more probable. Where
      that is not above the last log-probability, the k are the most probable of all).

    Raises:
      UserError: k is above the width.
    """

    def of_position(projected):
        projected = jnp.repeat(projected[None], width, axis=0)
        found = beam.search(
            lambda symbols, state: head.spelling_step(params, projected, END + symbols, state),
            head.spelling_start(projected),
            start=BEGIN - END,
            end=0,
            length=head.spelling.longest,
            count=k,
            width=width,
        )
        ends = found.sequences == 0
        ended = jnp.cumsum(ends, axis=-1) - ends > 0
        return found._replace(sequences=jnp.where(ended, PADDING, END + found.sequences))

    return tuple(jax.vmap(of_position)(head.hidden_projection(params, hidden)))
