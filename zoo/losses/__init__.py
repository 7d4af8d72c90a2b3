"""Losses of output layers: plain functions of arrays, which work without a `zoo.heads.Head`.

The heads compute their losses with these functions. A function takes only arrays: no component, no
lexicon, no dict of parameters. It can be jitted and differentiated. Logarithms are natural, losses
in nats, and sums are kept in at least float32. `[...]` stands for any leading axes, the same in all
arguments. Train on a `weighted_` loss, a weighted sum over tokens: it is faster than to weigh the
losses and sum them, and it handles padding.

A wrong shape raises a ValueError that names the argument, when the function is traced. A target,
rank or signature that is not in the vocabulary raises a ValueError, too; in compiled code, where
its value is not known, it makes the loss NaN.

Examples assume `import jax`, `import jax.numpy as jnp`, `import numpy as np`, `from zoo import
losses` and `np.set_printoptions(precision=4, suppress=True)`; a test runs them.
"""

from typing import TYPE_CHECKING

from zoo.losses.adaptive import adaptive_log_probs as adaptive_log_probs
from zoo.losses.adaptive import adaptive_loss as adaptive_loss
from zoo.losses.adaptive import adaptive_sample as adaptive_sample
from zoo.losses.adaptive import adaptive_top_k as adaptive_top_k
from zoo.losses.adaptive import weighted_adaptive_loss as weighted_adaptive_loss
from zoo.losses.chosen_words import softmax_word_log_probs as softmax_word_log_probs
from zoo.losses.chosen_words import top_k_kl_divergence as top_k_kl_divergence
from zoo.losses.entropy import Statistics as Statistics
from zoo.losses.entropy import softmax_js_divergence as softmax_js_divergence
from zoo.losses.entropy import softmax_kl_divergence as softmax_kl_divergence
from zoo.losses.entropy import softmax_statistics as softmax_statistics
from zoo.losses.hierarchical import hierarchical_log_probs as hierarchical_log_probs
from zoo.losses.hierarchical import hierarchical_loss as hierarchical_loss
from zoo.losses.hierarchical import hierarchical_sample as hierarchical_sample
from zoo.losses.hierarchical import hierarchical_top_k as hierarchical_top_k
from zoo.losses.huffman import huffman_paths as huffman_paths
from zoo.losses.huffman import path_log_probs as path_log_probs
from zoo.losses.huffman import path_loss as path_loss
from zoo.losses.importance import blackout_loss as blackout_loss
from zoo.losses.importance import importance_loss as importance_loss
from zoo.losses.log_linear import adaptor_penalty as adaptor_penalty
from zoo.losses.log_linear import log_expert_mass as log_expert_mass
from zoo.losses.log_linear import log_linear_log_probs as log_linear_log_probs
from zoo.losses.log_linear import log_linear_loss as log_linear_loss
from zoo.losses.log_linear import log_linear_weights as log_linear_weights
from zoo.losses.log_linear import sparse_log_linear_log_probs as sparse_log_linear_log_probs
from zoo.losses.log_linear import sparse_log_linear_loss as sparse_log_linear_loss
from zoo.losses.log_linear import weighted_sparse_log_linear_loss as weighted_sparse_log_linear_loss
from zoo.losses.low_rank import add_low_rank as add_low_rank
from zoo.losses.mixture import mixture_log_probs as mixture_log_probs
from zoo.losses.mixture import mixture_loss as mixture_loss
from zoo.losses.mixture import weighted_mixture_loss as weighted_mixture_loss
from zoo.losses.nce import nce_loss as nce_loss
from zoo.losses.noise_sampling import NoiseSample as NoiseSample
from zoo.losses.noise_sampling import alias_table as alias_table
from zoo.losses.noise_sampling import draw_noise as draw_noise
from zoo.losses.noise_sampling import log_expected_count as log_expected_count
from zoo.losses.noise_sampling import noise_tables as noise_tables
from zoo.losses.noise_sampling import sample_noise as sample_noise
from zoo.losses.sampled_log_linear import importance_weights as importance_weights
from zoo.losses.sampled_log_linear import metropolis_choice as metropolis_choice
from zoo.losses.sampled_log_linear import metropolis_walk as metropolis_walk
from zoo.losses.softmax import softmax_loss as softmax_loss
from zoo.losses.token_blocks import weighted_sum as weighted_sum
from zoo.losses.top_k import softmax_sample as softmax_sample
from zoo.losses.top_k import softmax_top_k as softmax_top_k
from zoo.losses.weighted_softmax import TokenReport as TokenReport
from zoo.losses.weighted_softmax import weighted_softmax_loss as weighted_softmax_loss

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = sorted(name for name, value in globals().items() if callable(value))
