"""Shapes of what a head is given, looked at before anything is computed.

Heads flatten tokens into rows; targets of another shape than the states' would give numbers, and
wrong ones. Looking costs nothing in compiled code, which knows shapes before it runs.
"""

import functools

import jax.numpy as jnp

# Methods that take hidden states and targets.
CHECKED = ("loss", "weighted_loss", "log_prob_and_log_z", "log_prob")


def checked(method):
    """The method of a head, after `check` of its arguments."""

    @functools.wraps(method)
    def function(self, params, tables, hidden, targets, *others, **options):
        check(f"{type(self).__name__}.{method.__name__}", hidden, targets)
        return method(self, params, tables, hidden, targets, *others, **options)

    return function


def check(name: str, hidden, targets):
    """ValueError unless targets are whole numbers, [...] where hidden states are [..., D]."""
    states, wanted = jnp.shape(hidden), jnp.shape(hidden)[:-1]
    if not states or jnp.shape(targets) != wanted:
        raise ValueError(
            f"{name}: hidden states of the shape {states} need targets of the shape {wanted}, one "
            f"for each state, and these have {jnp.shape(targets)}"
        )
    if not jnp.issubdtype(jnp.result_type(targets), jnp.integer):
        raise ValueError(
            f"{name}: targets are places of words in the lexicon, whole numbers, and these are "
            f"{jnp.result_type(targets)}"
        )
