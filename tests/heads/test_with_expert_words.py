"""An expert that names several words, against the dense formula in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from tests.heads.test_with_expert import CLOSE, SIZE, TARGETS, VOCABULARY, WEIGHTS, Told, of_targets
from zoo.heads import LogLinear, Softmax, WithExpert
from zoo.priors.experts import NOTHING

# Repeats, nothing at all, and gaps: what a question or the last words may name.
CONTEXTS = np.array(
    [
        [[3, NOTHING, 3, 5], [NOTHING] * 4, [12, 4, NOTHING, NOTHING]],
        [[7, 8, 9, 10], [NOTHING, 10, 10, 10], [0, 1, 2, 3]],
    ]
)
HEADS = {
    "softmax": Softmax(),
    "sums of features": LogLinear(form="dense_sums"),
    "a product of features": LogLinear(form="product"),  # whose words have no scores of their own
}


def reference(head, params, hidden):
    """log p' of every word, [2, 3, V]."""
    inner, rows = params["head"], np.reshape(hidden, (-1, SIZE))
    if isinstance(head.head, Softmax):
        log_probs = references.softmax_log_probs(rows, inner["weights"], inner["bias"])
    else:
        matrix = references.feature_matrix(examples.FEATURES, examples.lexicon().feature_names)
        adaptors = [np.asarray(inner["weights"]) @ h + np.asarray(inner["bias"]) for h in rows]
        log_probs = references.log_linear_log_probs(adaptors, matrix, examples.log_background())
    scores = np.array(log_probs).reshape(2, 3, VOCABULARY)
    for place in np.ndindex(2, 3):
        gate = np.asarray(hidden)[place] @ np.asarray(params["weights"]) + params["bias"]
        for word in {*CONTEXTS[place].tolist()} - {NOTHING}:
            scores[(*place, word)] += gate
        scores[place] -= references.log_sum_exp(scores[place])
    return scores


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADS)
def test_probabilities_and_gradients_are_those_of_the_formula(name, float64, random):
    head, lexicon = WithExpert(Told(), HEADS[name]), examples.lexicon()
    hidden = jnp.asarray(random.normal(size=(2, 3, SIZE)))
    params, tables = examples.random_params(head, random, SIZE, lexicon), head.tables(lexicon)
    expected = reference(head, params, hidden)
    log_probs = head.log_probs(params, tables, hidden, context=CONTEXTS)
    np.testing.assert_allclose(log_probs, expected, **CLOSE)

    def objective(arrays):
        inner = {name: arrays[f"head {name}"] for name in params["head"]}
        nested = {"head": inner, "weights": arrays["weights"], "bias": arrays["bias"]}
        return nested, arrays["hidden"]

    def in_numpy(arrays):
        found = of_targets(reference(head, *objective(arrays)))
        return -np.sum((WEIGHTS * found)[WEIGHTS > 0])

    def summed(arrays):
        nested, hidden = objective(arrays)
        return head.weighted_loss(nested, tables, hidden, TARGETS, WEIGHTS, context=CONTEXTS)

    arrays = {f"head {name}": leaf for name, leaf in params["head"].items()}
    arrays |= {"weights": params["weights"], "bias": params["bias"], "hidden": hidden}
    value, gradients = jax.jit(jax.value_and_grad(summed))(arrays)
    np.testing.assert_allclose(value, in_numpy(arrays), **CLOSE)
    for name, slope in references.finite_differences(in_numpy, arrays).items():
        np.testing.assert_allclose(gradients[name], slope, **CLOSE, err_msg=name)


def test_probabilities_of_targets_are_those_of_all_words(random):
    head, lexicon = WithExpert(Told(), Softmax()), examples.lexicon()
    hidden = jnp.asarray(random.normal(size=(2, 3, SIZE)))
    params = examples.random_params(head, random, SIZE, lexicon)
    given = params, head.tables(lexicon), hidden
    log_probs = head.log_probs(*given, context=CONTEXTS)
    np.testing.assert_allclose(log_probs, reference(head, params, hidden), rtol=1e-4, atol=1e-5)
    found = head.log_prob(*given, TARGETS, context=CONTEXTS)
    np.testing.assert_allclose(found, of_targets(log_probs), rtol=1e-4, atol=1e-5)
