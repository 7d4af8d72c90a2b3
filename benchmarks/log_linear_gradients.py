"""Bias and variance of sampled gradients of a log-linear model against the exact one.

The gradient of -log p(x) with respect to the adaptor is E_p[phi] - phi(x). Here E_p[phi] is
estimated by importance sampling (K draws and x, as the head does, or the draws alone) or by
contrastive divergence (K steps), with draws from the background or uniform ones; see
zoo.losses.sampled_log_linear. The lexicon is `benchmarks.log_linear.synthetic_lexicon`, and x is
drawn from the model. Adaptors are random, small or large, so that the model is close to its
background or far from it.

For R estimates g of a gradient G: bias |mean g - G| / |G|, of which chance alone causes about the
"noise" column, |std| / sqrt(R) / |G|; spread sqrt(sum_f var g_f) / |G|. For the last column, "at
p", x is drawn anew from p for each estimate, so that the mean of the exact gradient is 0:
|mean g| / sqrt(mean |G|^2) is the bias that would drive training away from the true model; chance
causes about 1 / sqrt(R) of it.

    python -m benchmarks.log_linear_gradients
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from benchmarks.log_linear import synthetic_lexicon
from zoo.losses import sampled_log_linear

CHUNK = 50
METHODS = ("importance", "draws alone", "contrastive")


def estimates(method, log_scores, log_proposal, target, draws, repeats, random):
    """Draws the words, int [R, slots], and weights, float [R, slots], of R estimates of E_p[phi].

    `target` has an x for each estimate.
    """
    words = random.choice(len(log_proposal), size=(repeats, draws), p=np.exp(log_proposal))
    log_weights = log_scores - log_proposal
    if method != "draws alone":
        words = np.concatenate([target[:, None], words], axis=1)
    if method != "contrastive":
        return words, np.asarray(
            sampled_log_linear.importance_weights(jnp.asarray(log_weights[words]))
        )
    key = jax.random.key(int(random.integers(2**31)))
    places = sampled_log_linear.metropolis_choice(key, jnp.asarray(log_weights[words]))
    return words[np.arange(repeats), places][:, None], np.ones((repeats, 1))


def gradients(method, draws, case, log_proposal, targets, random):
    """Yields an estimate of the gradient for each x of chunks of targets."""
    log_scores, features, _, _ = case
    for chunk in targets:
        words, weights = estimates(method, log_scores, log_proposal, chunk, draws, CHUNK, random)
        for target, sample, sample_weights in zip(chunk, words, weights, strict=True):
            yield sample_weights @ features[sample] - features[target]


def row(method, draws, case, log_proposal, repeats, random):
    """Computes (bias, noise, spread, bias at p) relative to the norm of the exact gradient."""
    _, features, probabilities, target = case
    gradient = probabilities @ features - features[target]
    total, squares = np.zeros_like(gradient), np.zeros_like(gradient)
    targets = itertools.repeat(np.full(CHUNK, target), repeats // CHUNK)
    for estimate in gradients(method, draws, case, log_proposal, targets, random):
        total += estimate
        squares += estimate**2
    mean = total / repeats
    spread = np.sqrt(np.maximum(squares / repeats - mean**2, 0).sum())
    norm = np.linalg.norm(gradient)
    bias = np.linalg.norm(mean - gradient) / norm
    truth = at_truth(method, draws, case, log_proposal, repeats, random)
    return bias, spread / np.sqrt(repeats) / norm, spread / norm, truth


def at_truth(method, draws, case, log_proposal, repeats, random):
    """Computes |mean of estimates| / sqrt(mean |G|^2), with x drawn from p for each estimate."""
    _, features, probabilities, _ = case
    squares = probabilities @ ((features - probabilities @ features) ** 2).sum(-1)
    targets = (
        random.choice(len(probabilities), size=CHUNK, p=probabilities)
        for _ in range(repeats // CHUNK)
    )
    total = sum(gradients(method, draws, case, log_proposal, targets, random))
    return np.linalg.norm(total / repeats) / np.sqrt(squares)


def main():
    """Prints the tables."""
    repeats = timing.parser(__doc__, repeats=1000).parse_args().repeats  # a multiple of CHUNK
    random = np.random.default_rng(0)
    lexicon = synthetic_lexicon(random)
    _, members = lexicon.signatures
    # Signatures represent their words: a word has the features of its signature.
    features = np.zeros((len(members), len(lexicon.feature_names)))
    for place, (ids, values) in enumerate(members):
        features[place, ids] = values
    mass = np.bincount(lexicon.signatures[0], weights=np.exp(lexicon.log_background))
    proposals = {"background": np.log(mass / mass.sum()), "uniform": -np.log(mass.size)}
    for scale in (0.5, 2.0):
        adaptor = scale * random.normal(size=features.shape[1])
        log_scores = np.log(mass) + features @ adaptor
        probabilities = np.exp(log_scores - np.logaddexp.reduce(log_scores))
        target = random.choice(mass.size, p=probabilities / probabilities.sum())
        case = log_scores, features, probabilities / probabilities.sum(), target
        divergence = probabilities @ np.log(probabilities / mass * mass.sum())
        print(
            f"adaptor of scale {scale}: KL(model | background) {divergence:.2f} nats; "
            f"{repeats:,} estimates"
        )
        columns = "".join(f"{name:>9}" for name in ("bias", "noise", "spread", "at p"))
        print(f"  {'method':14}{'proposal':12}{'K':>6}{columns}")
        for method in METHODS:
            for name, log_proposal in proposals.items():
                log_proposal = np.broadcast_to(log_proposal, mass.shape)
                for draws in (1, 10, 100, 1000):
                    figures = row(method, draws, case, log_proposal, repeats, random)
                    values = "".join(f"{figure:9.3f}" for figure in figures)
                    print(f"  {method:14}{name:12}{draws:6}{values}")


if __name__ == "__main__":
    main()
