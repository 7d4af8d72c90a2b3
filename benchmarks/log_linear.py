"""The log-linear head with signatures against its dense formula and against a softmax.

One step forward and backward, gradients of the head's parameters and the hidden states, N = 256
tokens, D = 256, and a vocabulary with the sizes of French UD at M = 2,500: 42,894 words, 2,500 of
them with an identity feature, the others with one of 409 sets of 52 tags, 2,909 signatures in all.

    python -m benchmarks.log_linear
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import steps, timing
from zoo import lexicon as lexicons
from zoo.heads import LogLinear, Softmax
from zoo.losses import log_linear_log_probs

TOKENS, SIZE, VOCABULARY, TOP_WORDS, TAGS, TAG_SETS = 256, 256, 42_894, 2_500, 52, 409
MOST_DENSE = 100_000  # words up to which the features [V, F] fit beside the rest


def synthetic_lexicon(
    random: np.random.Generator, vocabulary: int = VOCABULARY, top_words: int = TOP_WORDS
) -> lexicons.Lexicon:
    """Makes a lexicon with Zipf counts and tag sets of 1 to 6 tags, all in use."""
    tag_sets = set()
    while len(tag_sets) < TAG_SETS:
        tag_sets.add(tuple(sorted(random.choice(TAGS, random.integers(1, 7), replace=False))))
    tag_sets = [{f"tag{tag:02}": 1.0 for tag in tags} for tags in sorted(tag_sets)]
    features = []
    for word in range(vocabulary):
        rank = word - top_words
        place = rank if 0 <= rank < TAG_SETS else random.integers(TAG_SETS)
        identity = "not top" if rank >= 0 else f"word{word:04}"
        features.append({identity: 1.0, **tag_sets[place]})
    counts = (1e6 / np.arange(1, vocabulary + 1)).astype(np.int64) + 1
    words = tuple(f"w{word}" for word in range(vocabulary))
    return lexicons.with_features(
        lexicons.Lexicon(words=words, counts=counts), features, np.log(counts / counts.sum())
    )


def dense_features(lexicon: lexicons.Lexicon) -> np.ndarray:
    """Returns the feature matrix phi, float32 [V, F]."""
    features = np.zeros((len(lexicon), len(lexicon.feature_names)), np.float32)
    word = np.repeat(np.arange(len(lexicon)), np.diff(lexicon.feature_offsets))
    features[word, lexicon.feature_ids] = lexicon.feature_values
    return features


def dense_side(lexicon: lexicons.Lexicon, hidden, targets):
    """Returns the mean loss of the dense formula and its gradients, as `steps.head_step`."""
    head = LogLinear()
    features, log_background = dense_features(lexicon), jnp.asarray(lexicon.log_background, "f4")

    def mean_loss(params, hidden, features):
        adaptor = head.adaptor(params, hidden)
        log_probs = log_linear_log_probs(adaptor, features, log_background)
        return -jnp.mean(log_probs[jnp.arange(TOKENS), targets])

    params = head.init(jax.random.key(0), SIZE, lexicon)
    step = jax.value_and_grad(mean_loss, argnums=(0, 1))
    return timing.compiled_side(step, params, hidden, features)


def sides(lexicon: lexicons.Lexicon) -> dict:
    """Returns sides of equal losses where the model is the same."""
    inputs = steps.random_tokens(SIZE, TOKENS, lexicon)
    loss_sides = {"signatures": steps.head_step(LogLinear(), lexicon, *inputs)}
    if len(lexicon) <= MOST_DENSE:
        loss_sides["dense formula"] = dense_side(lexicon, *inputs)
    return {**loss_sides, "softmax": steps.head_step(Softmax(), lexicon, *inputs)}


def main():
    """Prints the table."""
    rounds = timing.parser(__doc__, rounds=9).parse_args().rounds

    lexicon = synthetic_lexicon(np.random.default_rng(0))
    loss_sides = sides(lexicon)
    values = {name: float(side()[0]) for name, side in loss_sides.items()}
    signatures = len(lexicon.tables()["log_mass"])
    title = (
        f"N = {TOKENS}, D = {SIZE}, V = {VOCABULARY:,}, F = {len(lexicon.feature_names):,}, "
        f"S = {signatures:,}; forward and backward"
    )
    timing.compare(title, loss_sides, rounds, "signatures")
    difference = abs(values["signatures"] - values["dense formula"])
    print(f"  signatures and dense formula: losses differ by {difference:.1e} nats a token")


if __name__ == "__main__":
    main()
