"""log p of every word, [N, V], of each head of the contract, by numpy.

Of a dict of parameters and hidden states [N, D], over the thirteen words of examples.lexicon.
"""

import numpy as np

from tests import examples, references
from zoo.layers.char_convolution import Convolution
from zoo.lexicon.spelling import Spelling
from zoo.losses import huffman_paths


def softmax(params, hidden, soft_cap=None):
    bias = params["bias"] if "bias" in params else np.zeros(len(params["weights"]))
    return references.softmax_log_probs(hidden, params["weights"], bias, soft_cap)


def log_linear(params, hidden):
    lexicon = examples.lexicon()
    matrix = references.feature_matrix(examples.FEATURES, lexicon.feature_names)
    adaptors = [params["weights"] @ h + params["bias"] for h in hidden]
    return references.log_linear_log_probs(adaptors, matrix, examples.log_background())


def mixture(params, hidden, soft_cap=None):
    log_priors, contexts = references.mixture_contexts(params, hidden)
    rows = []
    for log_prior, token_contexts in zip(log_priors, contexts, strict=True):
        table = params["weights"], params["bias"]
        component_log_probs = references.softmax_log_probs(token_contexts, *table, soft_cap)
        joint = [
            [prior + p for p in log_p]
            for prior, log_p in zip(log_prior, component_log_probs, strict=True)
        ]
        rows.append([references.log_sum_exp(column) for column in zip(*joint, strict=True)])
    return np.array(rows)


def mixture_of_contexts(params, hidden):
    log_priors, contexts = references.mixture_contexts(params, hidden)
    states = [
        sum(np.exp(p) * g for p, g in zip(prior, token_contexts, strict=True))
        for prior, token_contexts in zip(log_priors, contexts, strict=True)
    ]
    return references.softmax_log_probs(states, params["weights"], params["bias"])


# Counts fall with the place of a word, so that its rank by frequency is its place.
def adaptive(params, hidden):
    """A head of three words, tails of five."""
    rows = []
    head_log_probs = references.softmax_log_probs(hidden, params["head"], params["head_bias"])
    for head_log_p, h in zip(head_log_probs, hidden, strict=True):
        parts = [*head_log_p[:3]]
        for tail in range(2):
            weights = params[f"tail_{tail}"]
            projected = [h @ params[f"projection_{tail}"]]
            (within,) = references.softmax_log_probs(projected, weights, np.zeros(len(weights)))
            parts += [head_log_p[3 + tail] + p for p in within]
        rows.append(parts)
    return np.array(rows)


def split_softmax(params, hidden):
    """A head of three words, tails of five."""
    rows, scores = [], hidden @ params["weights"].T + params["bias"]
    class_scores = hidden @ params["classes"].T + params["class_bias"]
    for word_scores, tail_scores in zip(scores, class_scores, strict=True):
        log_z = references.log_sum_exp([*word_scores[:3], *tail_scores])
        row = [*(word_scores[:3] - log_z)]
        for tail, words in enumerate((word_scores[3:8], word_scores[8:])):
            log_z_tail = references.log_sum_exp(words)
            row += [tail_scores[tail] - log_z + score - log_z_tail for score in words]
        rows.append(row)
    return np.array(rows)


def hierarchical(params, hidden):
    """Classes of five words, the last of three."""
    rows = []
    class_log_probs = references.softmax_log_probs(hidden, params["classes"], params["class_bias"])
    for class_log_p, h in zip(class_log_probs, hidden, strict=True):
        parts = []
        for c, size in enumerate((5, 5, 3)):
            weights, bias = params["weights"][c][:size], params["bias"][c][:size]
            (within,) = references.softmax_log_probs([h], weights, bias)
            parts += [class_log_p[c] + p for p in within]
        rows.append(parts)
    return np.array(rows)


def huffman(params, hidden):
    nodes, turns = huffman_paths(examples.lexicon().counts)
    return np.array(
        [
            [
                sum(
                    np.log(references.sigmoid(s * (params["weights"][n] @ h + params["bias"][n])))
                    for n, s in zip(path, ways, strict=True)
                    if s
                )
                for path, ways in zip(nodes, turns, strict=True)
            ]
            for h in hidden
        ]
    )


NETWORK = Convolution(Spelling(unit="characters"), letter_size=2, widths=(2,), initial_scale=0.2)


def cnn_softmax(params, hidden, soft_cap=None):
    tables = NETWORK.tables(examples.lexicon())
    vectors = references.convolution(NETWORK, params["network"], tables, range(13))
    if "correction" in params:
        vectors = vectors + params["correction"] @ params["projection"]
    return references.softmax_log_probs(hidden, vectors, np.zeros(13), soft_cap)
