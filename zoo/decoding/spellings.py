"""The most probable spellings of a head that spells, by beam search over letters."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from zoo.decoding.beam import BeamSearch
from zoo.lexicon.spelling import BEGIN, END, PADDING


@dataclasses.dataclass(frozen=True)
class _NextLetter:
    """A step whose words are letters, counted from the end mark."""

    head: Any

    def __call__(self, params, projected, symbols, carry):
        state, rows = carry
        log_probs, state = self.head.spelling_step(params, projected[rows], END + symbols, state)
        return log_probs, (state, rows)


def most_probable(head, params, hidden, k: int, width: int = 32):
    """The k most probable spellings, of words or of anything, that a beam search finds.

    Args:
      head: a heads.CharLSTM.
      params: its parameters.
      hidden: [N, D].
      k: at most `width`, the unfinished spellings kept at each letter.

    Returns:
      (log-probabilities over all spellings [N, k], nats, falling; spellings int32 [N, k, longest],
      PADDING after END; missed [N], nats: no spelling that the beam let go is more probable. Where
      that is not above the last log-probability, the k are the most probable of all).

    Raises:
      UserError: k is above the width.
    """
    settings = BeamSearch(width, k, longest=head.spelling.longest, every_end=True)
    projected = head.hidden_projection(params, hidden)
    hypotheses = settings.search(
        jax.tree_util.Partial(_NextLetter(head), params, projected),
        jnp.full(len(hidden), BEGIN - END),
        (head.spelling_start(projected), jnp.arange(len(hidden))),
        boundary=0,
    )
    there = jnp.arange(head.spelling.longest)[None, None] < hypotheses.lengths[..., None]
    return hypotheses.log_prob, jnp.where(there, END + hypotheses.words, PADDING), hypotheses.missed
