"""A head without Flax: jax and optax alone, on a bigram model whose states are a table's rows.

python -m examples.optax_loop
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import generated
from zoo import heads  # zoo

# The line to change: heads.LogLinear(), heads.NCE(samples=32), heads.MixtureOfSoftmaxes() ...
HEAD = heads.Softmax()  # zoo
SIZE = 32


def main(head: heads.Head = HEAD, steps: int = 60) -> tuple[list[float], float]:
    """(losses of the steps, nats per token; perplexity of the validation text)."""
    lexicon = generated.lexicon()
    states_key, head_key, noise_key = jax.random.split(jax.random.key(0), 3)
    params = {
        "states": jax.random.normal(states_key, (len(lexicon), SIZE)),
        "head": head.init(head_key, SIZE, lexicon),  # zoo
    }
    tables = head.tables(lexicon)  # zoo
    optimizer = optax.adam(0.03)
    state = optimizer.init(params)

    def loss(params, tables, key, inputs, targets, weights):
        hidden = params["states"][inputs]
        weights /= weights.sum()
        return head.weighted_loss(params["head"], tables, hidden, targets, weights, key=key)  # zoo

    @jax.jit
    def step(params, state, tables, key, *batch):
        value, gradient = jax.value_and_grad(loss)(params, tables, key, *batch)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for number, batch in enumerate(generated.batches(lexicon, steps)):
        key = jax.random.fold_in(noise_key, number)
        params, state, value = step(params, state, tables, key, *map(jnp.asarray, batch))
        losses.append(float(value))
        if number % 20 == 0 or number == steps - 1:
            print(f"step {number:3}: loss {value:.3f} nats per token")
    texts = generated.sentences("validation", generated.VALIDATION)
    inputs, targets, weights = generated.batch(lexicon, texts)
    hidden = params["states"][inputs]
    log_prob = jax.jit(head.log_prob)(params["head"], tables, hidden, jnp.asarray(targets))  # zoo
    perplexity = float(np.exp(-(weights * log_prob).sum() / weights.sum()))
    print(f"{type(head).__name__}: exact perplexity {perplexity:.2f} of {len(lexicon)} words")
    return losses, perplexity


if __name__ == "__main__":
    main()
