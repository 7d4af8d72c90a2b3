"""Losses of output layers: plain functions of arrays, which work without a `zoo.heads.Head`.

The heads compute their losses with these functions. A function takes only arrays: no component, no
lexicon, no dict of parameters. It can be jitted and differentiated. Logarithms are natural, losses
in nats, and sums are kept in at least float32. `[...]` stands for any leading axes, the same in all
arguments. Train on a `weighted_` loss, a weighted sum over tokens: it is faster than to weigh the
losses and sum them, and it handles padding.

A wrong shape raises a ValueError that names the argument, when the function is traced. Examples
assume `import jax`, `import jax.numpy as jnp`, `import numpy as np`, `from zoo import losses` and
`np.set_printoptions(precision=4, suppress=True)`; a test runs them.
"""

from zoo.losses.adaptive import (
    adaptive_log_probs,
    adaptive_loss,
    adaptive_sample,
    adaptive_top_k,
    weighted_adaptive_loss,
)
from zoo.losses.blackout import blackout_loss
from zoo.losses.entropy import Statistics, softmax_kl_divergence, softmax_statistics
from zoo.losses.hierarchical import (
    hierarchical_log_probs,
    hierarchical_loss,
    hierarchical_sample,
    hierarchical_top_k,
)
from zoo.losses.huffman import huffman_paths, path_log_probs, path_loss
from zoo.losses.importance import importance_loss
from zoo.losses.log_linear import (
    adaptor_penalty,
    log_expert_mass,
    log_linear_log_probs,
    log_linear_loss,
    log_linear_weights,
    sparse_log_linear_log_probs,
    sparse_log_linear_loss,
    weighted_sparse_log_linear_loss,
)
from zoo.losses.mixture import mixture_log_probs, mixture_loss, weighted_mixture_loss
from zoo.losses.nce import nce_loss
from zoo.losses.noise_sampling import (
    NoiseSample,
    alias_table,
    draw_noise,
    log_expected_count,
    noise_tables,
    sample_noise,
)
from zoo.losses.sampled_log_linear import importance_weights, metropolis_choice, metropolis_walk
from zoo.losses.softmax import softmax_loss, weighted_softmax_loss
from zoo.losses.token_blocks import weighted_sum
from zoo.losses.top_k import softmax_sample, softmax_top_k

__all__ = [  # noqa: RUF022 in groups
    # Softmax: exact, without a [tokens, V] array
    "Statistics",
    "softmax_kl_divergence",
    "softmax_loss",
    "softmax_sample",
    "softmax_statistics",
    "softmax_top_k",
    "weighted_softmax_loss",
    # Log-linear models: words as sets of features over a background
    "adaptor_penalty",
    "log_linear_log_probs",
    "log_linear_loss",
    "log_linear_weights",
    "sparse_log_linear_log_probs",
    "sparse_log_linear_loss",
    "weighted_sparse_log_linear_loss",
    "importance_weights",
    "metropolis_choice",
    "metropolis_walk",
    "log_expert_mass",
    # Mixtures of softmaxes
    "mixture_log_probs",
    "mixture_loss",
    "weighted_mixture_loss",
    # Clusters, classes and trees
    "adaptive_log_probs",
    "adaptive_loss",
    "adaptive_sample",
    "adaptive_top_k",
    "weighted_adaptive_loss",
    "hierarchical_log_probs",
    "hierarchical_loss",
    "hierarchical_sample",
    "hierarchical_top_k",
    "huffman_paths",
    "path_log_probs",
    "path_loss",
    # Sampled losses, for training only
    "blackout_loss",
    "importance_loss",
    "nce_loss",
    # Noise words of sampled losses
    "NoiseSample",
    "alias_table",
    "draw_noise",
    "log_expected_count",
    "noise_tables",
    "sample_noise",
    # Sums over tokens with weights
    "weighted_sum",
]
