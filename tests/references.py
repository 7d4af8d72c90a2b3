"""The formulas in numpy float64, a loop a sum, without a line of the code under test."""

import numpy as np


def log_sum_exp(numbers) -> float:
    """log sum_i exp(x_i); -inf entries add nothing."""
    largest = max(numbers)
    return largest + np.log(sum(np.exp(number - largest) for number in numbers))


# ---------------------------------------------------------------- softmax


def softmax_loss(hidden, weights, bias, targets):
    """(log sum_v exp(w_v . h + c_v) - (w_x . h + c_x) [N], log Z [N]) of hidden [N, D]."""
    losses, log_zs = [], []
    for h, target in zip(_doubles(hidden), targets, strict=True):
        logits = [w @ h + c for w, c in zip(_doubles(weights), _doubles(bias), strict=True)]
        log_zs.append(log_sum_exp(logits))
        losses.append(log_zs[-1] - logits[target])
    return np.array(losses), np.array(log_zs)


def softmax_gradients(hidden, weights, bias, targets, loss_weights, log_z_weights):
    """Of sum_n a_n loss_n + b_n log Z_n, by d log Z / d o_v = p_v and d o_v / d w_v = h.

    Returns:
      Gradients of (hidden, weights, bias).
    """
    hidden, weights, bias = _doubles(hidden), _doubles(weights), _doubles(bias)
    hidden_gradient, weights_gradient, bias_gradient = (
        np.zeros_like(x) for x in (hidden, weights, bias)
    )
    _, log_zs = softmax_loss(hidden, weights, bias, targets)
    for n, h in enumerate(hidden):
        for v, (w, c) in enumerate(zip(weights, bias, strict=True)):
            probability = np.exp(w @ h + c - log_zs[n])
            slope = probability * (loss_weights[n] + log_z_weights[n])
            if v == targets[n]:
                slope -= loss_weights[n]
            hidden_gradient[n] += slope * w
            weights_gradient[v] += slope * h
            bias_gradient[v] += slope
    return hidden_gradient, weights_gradient, bias_gradient


def softmax_log_probs(hidden, weights, bias, soft_cap=None, temperature=1.0):
    """log p of every word, [N, V], of hidden [N, D]."""
    rows = []
    for h in _doubles(hidden):
        logits = [w @ h + c for w, c in zip(_doubles(weights), _doubles(bias), strict=True)]
        if soft_cap is not None:
            logits = [soft_cap * np.tanh(logit / soft_cap) for logit in logits]
        logits = [logit / temperature for logit in logits]
        rows.append(np.array(logits) - log_sum_exp(logits))
    return np.array(rows)


def mixture_contexts(params, hidden):
    """(log pi [N, M], tanh(P_m h + q_m) [N, M, size]) of a mixture's params and hidden [N, D]."""
    components = params["prior"].shape[1]
    log_priors, contexts = [], []
    for h in _doubles(hidden):
        scores = h @ params["prior"]
        log_priors.append(scores - log_sum_exp(scores))
        projected = np.tanh(h @ params["projection"] + params["projection_bias"])
        contexts.append(np.split(projected, components))
    return np.array(log_priors), np.array(contexts)


# ---------------------------------------------------------------- features


def feature_matrix(features, names):
    """phi [V, F] of a dict {name: value} a word; values have float32's precision."""
    matrix = np.zeros((len(features), len(names)))
    for word, word_features in enumerate(features):
        for name, value in word_features.items():
            matrix[word, list(names).index(name)] = np.float32(value)
    return matrix


def signatures(features):
    """(the signature of each word, the features of each signature), in order of appearance."""
    distinct, word_signatures = [], []
    for word_features in features:
        if word_features not in distinct:
            distinct.append(word_features)
        word_signatures.append(distinct.index(word_features))
    return word_signatures, distinct


def feature_sums(matrix, vectors):
    """sum_f phi_vf * vectors_f, [V, D]."""
    sums = np.zeros((len(matrix), len(vectors[0])))
    for row, values in enumerate(matrix):
        for value, vector in zip(values, _doubles(vectors), strict=True):
            sums[row] += value * vector
    return sums


def log_linear_log_probs(adaptors, features, log_background):
    """log b(x) + a . phi(x) - log Z, [N, V], of adaptors [N, F] and features [V, F]."""
    rows = []
    for adaptor in _doubles(adaptors):
        scores = [b + phi @ adaptor for b, phi in zip(log_background, features, strict=True)]
        rows.append(np.array(scores) - log_sum_exp(scores))
    return np.array(rows)


# ---------------------------------------------------------------- letters


def convolution(network, params, tables, words):
    """The vectors [N, size] of words by a zoo.layers.char_convolution.Convolution, window by
    window."""
    activation = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}[network.activation]
    pool = {"mean": np.mean, "max": np.max}[network.pooling]
    vectors = []
    for word in words:
        spelled = tables["letters"][word][: tables["lengths"][word]]
        letters = _doubles(params["letters"])[np.asarray(spelled)]
        pooled = []
        for width, filters in zip(network.widths, params["filters"], strict=True):
            windows = [letters[i : i + width].ravel() for i in range(len(letters) - width + 1)]
            x = [w @ _doubles(filters["weights"]) + _doubles(filters["bias"]) for w in windows]
            pooled += pool(x, axis=0).tolist()
        y = activation(np.array(pooled))
        for layer in params["highway"]:
            gate = sigmoid(y @ _doubles(layer["gate_weights"]) + _doubles(layer["gate_bias"]))
            y = gate * np.maximum(y @ layer["weights"] + layer["bias"], 0) + (1 - gate) * y
        if "projection" in params:
            y = y @ _doubles(params["projection"]["weights"]) + params["projection"]["bias"]
        vectors.append(y)
    return np.array(vectors)


# ---------------------------------------------------------------- LSTM


def sigmoid(number):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-number))


def lstm_layer(inputs, weights, hidden, cell, reset=None):
    """One layer, sequence by sequence and position by position.

    Args:
      inputs: [B, T, E]. weights: {"input": [E, 4 D], "recurrent": [D, 4 D], "bias": [4 D]}, whose
        columns are D for the input gate, D for the forget gate, D candidates, D output gates.
        With "projection" [D, R], a hidden state is the projected one. With "peepholes" [3, D], the
        input and the forget gate see the cell before, the output gate the new one.
      hidden, cell: [B, D or R], [B, D]. reset: bool [B, T] or None.

    Returns:
      (hidden of all positions [B, T, D], last hidden [B, D], last cell [B, D]).
    """
    inputs, outputs = _doubles(inputs), []
    hidden, cell = np.array(hidden, np.float64), np.array(cell, np.float64)
    size = cell.shape[1]
    for row, sequence in enumerate(inputs):
        states = []
        for time, x in enumerate(sequence):
            if reset is not None and reset[row, time]:
                hidden[row], cell[row] = 0, 0
            z = x @ _doubles(weights["input"]) + _doubles(weights["bias"])
            z = z + hidden[row] @ _doubles(weights["recurrent"])
            peepholes = _doubles(weights.get("peepholes", np.zeros((3, size))))
            input_gate = sigmoid(z[:size] + peepholes[0] * cell[row])
            forget_gate = sigmoid(z[size : 2 * size] + peepholes[1] * cell[row])
            cell[row] = forget_gate * cell[row] + input_gate * np.tanh(z[2 * size : 3 * size])
            output_gate = sigmoid(z[3 * size :] + peepholes[2] * cell[row])
            cell_output = output_gate * np.tanh(cell[row])
            hidden[row] = (
                cell_output @ weights["projection"] if "projection" in weights else cell_output
            )
            states.append(hidden[row].copy())
        outputs.append(states)
    return np.array(outputs), hidden, cell


def elman_layer(inputs, weights, hidden, reset=None, activation=np.tanh):
    """One layer of h' = f(x W + h U + b): (hidden of all positions, last hidden)."""
    outputs, hidden = [], np.array(hidden, np.float64)
    for row, sequence in enumerate(_doubles(inputs)):
        states = []
        for time, x in enumerate(sequence):
            if reset is not None and reset[row, time]:
                hidden[row] = 0
            z = x @ _doubles(weights["input"]) + _doubles(weights["bias"])
            hidden[row] = activation(z + hidden[row] @ _doubles(weights["recurrent"]))
            states.append(hidden[row].copy())
        outputs.append(states)
    return np.array(outputs), hidden


def gru_layer(inputs, weights, hidden, reset=None):
    """One layer, the reset gate after the product: (hidden of all positions, last hidden).

    The columns of weights are D for the reset gate, D for the update gate, D for candidates.
    """
    outputs, hidden = [], np.array(hidden, np.float64)
    size = hidden.shape[1]
    for row, sequence in enumerate(_doubles(inputs)):
        states = []
        for time, x in enumerate(sequence):
            if reset is not None and reset[row, time]:
                hidden[row] = 0
            input_part = x @ _doubles(weights["input"]) + _doubles(weights["bias"])
            recurrent_part = hidden[row] @ _doubles(weights["recurrent"])
            reset_gate = sigmoid(input_part[:size] + recurrent_part[:size])
            update = sigmoid(input_part[size : 2 * size] + recurrent_part[size : 2 * size])
            recalled = reset_gate * (
                recurrent_part[2 * size :] + _doubles(weights["recurrent_bias"])
            )
            candidate = np.tanh(input_part[2 * size :] + recalled)
            hidden[row] = (1 - update) * candidate + update * hidden[row]
            states.append(hidden[row].copy())
        outputs.append(states)
    return np.array(outputs), hidden


def stacked(layer, inputs, params, carry, reset=None, skip=False):
    """Layers on layers: (the output [B, T, *], the carry of each layer).

    Args:
      layer: a function of (inputs, weights, *state, reset). carry: for each layer its state, an
        array or a tuple of them.
      skip: every layer sees the inputs, too, and the output has the states of all layers.
    """
    outputs, last = [], []
    for weights, state in zip(params, carry, strict=True):
        x = outputs[-1] if outputs else inputs
        if skip and outputs:
            x = np.concatenate([inputs, x], axis=-1)
        state = state if isinstance(state, tuple) else (state,)
        hidden, *state = layer(x, weights, *state, reset)
        outputs.append(hidden)
        last.append(tuple(state))
    return np.concatenate(outputs, axis=-1) if skip else outputs[-1], tuple(last)


def lstm(inputs, params, carry, reset=None, skip=False):
    """Layers of LSTM on each other: (the output [B, T, *], ((hidden, cell) of each layer))."""
    return stacked(lstm_layer, inputs, params, carry, reset, skip)


# ---------------------------------------------------------------- gradients


def finite_differences(function, arrays, step=1e-5):
    """The gradient of function(arrays), a number, by central differences; arrays is a dict."""
    arrays = {name: np.array(array, np.float64) for name, array in arrays.items()}
    gradients = {}
    for name, array in arrays.items():
        gradients[name] = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            middle = array[place]
            array[place] = middle + step
            # As floats: JAX computes later, and may read the array then instead of a copy.
            above = float(function(arrays))
            array[place] = middle - step
            below = float(function(arrays))
            array[place] = middle
            gradients[name][place] = (above - below) / (2 * step)
    return gradients


def assert_rows_close(actual, expected, share):
    """No number of a row [..., D] is off by more than a share of the row's greatest."""
    errors = np.abs(_doubles(actual) - expected).max(-1) / np.abs(expected).max(-1)
    np.testing.assert_array_less(errors, share)


def log(array):
    """log x, -inf where x is 0."""
    with np.errstate(divide="ignore"):
        return np.log(array)


def _doubles(array):
    return np.asarray(array, np.float64)
