"""The expected features of a log-linear model by sampling, where all words are too many.

The gradient of -log p(x) with respect to the adaptor a is E_p[phi] - phi(x) (Dymetman and Xiao
2016, section 2.3), p proportional to w(v) = b(v) exp(a . phi(v)). For large or infinite V the paper
names two ways to approximate E_p[phi]. Both draw words v from a proposal q and need no Z:

    importance sampling       sum_k u_k phi(v_k), u = w(v_k) / q(v_k) divided by its sum; biased by
                              O(1 / K), consistent
    contrastive divergence    phi of the last state of a Markov chain of a few steps that starts at
                              the observed x and leaves p invariant (Hinton 2002); biased by what
                              the chain has not forgotten

`log_weights` are log w(v) - log q(v) in nats: a . phi(v) alone if q is the background.
"""

import jax
import jax.numpy as jnp


def importance_weights(log_weights):
    """u_k = exp(log_weights_k) / sum_j exp(log_weights_j), [..., K], of K draws from q.

    sum_k u_k f(v_k) estimates E_p[f] for any f (self-normalised importance sampling).
    """
    return jax.nn.softmax(log_weights, axis=-1)


def metropolis_choice(key, log_weights):
    """The last state of an independence chain over given proposals, int32 [...].

    The chain stands at the observed word, place 0. Each step goes to the next draw v' of q with
    probability min(1, w(v') q(v) / (w(v) q(v'))), v being where it stands: the rule of Hastings
    (1970), under which p stays p.

    Args:
      log_weights: [..., 1 + n], of the observed word and n draws from q.

    Returns:
      Places in 0 ... n. Contrastive divergence takes phi of that word for E_p[phi].
    """
    thresholds = jnp.log(jax.random.uniform(key, log_weights.shape, log_weights.dtype))

    def step(state, proposal):
        place, log_weight = state
        new_place, new_log_weight, threshold = proposal
        accepted = threshold < new_log_weight - log_weight
        return (
            jnp.where(accepted, new_place, place),
            jnp.where(accepted, new_log_weight, log_weight),
        ), None

    first, *rest = (jnp.moveaxis(x, -1, 0) for x in (log_weights, thresholds))
    places = jnp.arange(1, first.shape[0], dtype=jnp.int32)
    initial = (jnp.zeros(first.shape[1:], jnp.int32), first[0])
    (place, _), _ = jax.lax.scan(step, initial, (places, first[1:], rest[0][1:]))
    return place
