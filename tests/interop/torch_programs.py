"""Parameters of the programs whose models are read, and log p of words by PyTorch's equations."""

import numpy as np

WORDS, EMBEDDING, SIZE = 13, 5, 7
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def layer(random, kind: str, inputs: int, size: int, number: int = 0) -> dict[str, np.ndarray]:
    """Draws the parameters of a layer of `torch.nn.LSTM` and the like."""
    rows = GATES[kind] * size
    shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, size)}
    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
    return {f"{name}_l{number}": draw(random, *shape) for name, shape in shapes.items()}


def draw(random, *shape) -> np.ndarray:
    return random.normal(scale=0.7, size=shape).astype(np.float32)


def word_language_model(random, kind: str = "LSTM", tied: bool = False) -> dict[str, np.ndarray]:
    """Draws the state dict of a model of two layers."""
    size = EMBEDDING if tied else SIZE
    table = draw(random, WORDS, EMBEDDING)
    layers = layer(random, kind, EMBEDDING, size) | layer(random, kind, size, size, 1)
    return {
        "encoder.weight": table,
        **{f"rnn.{name}": array for name, array in layers.items()},
        "decoder.weight": table if tied else draw(random, WORDS, size),
        "decoder.bias": draw(random, WORDS),
    }


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def advance(kind: str, weights: dict, x, hidden, cell):
    """Computes (h', c') of a position, by the equations in the documentation of PyTorch."""
    of_input = weights["weight_ih"] @ x + weights["bias_ih"]
    of_hidden = weights["weight_hh"] @ hidden + weights["bias_hh"]
    if kind == "LSTM":
        i, f, g, o = np.split(of_input + of_hidden, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(cell), cell
    if kind == "GRU":
        (r, z, n), (r_hidden, z_hidden, n_hidden) = np.split(of_input, 3), np.split(of_hidden, 3)
        update = sigmoid(z + z_hidden)
        candidate = np.tanh(n + sigmoid(r + r_hidden) * n_hidden)
        return (1 - update) * candidate + update * hidden, cell
    total = of_input + of_hidden
    return (np.tanh(total) if kind == "RNN_TANH" else np.maximum(total, 0)), cell


def hidden_states(kind: str, table, layers: list[dict], words: list[int]) -> np.ndarray:
    """Computes the last layer's states [T, D] of words, from states of zeros, in float64."""
    layers = [{name: x.astype(np.float64) for name, x in weights.items()} for weights in layers]
    states = [[np.zeros(weights["weight_hh"].shape[1])] * 2 for weights in layers]
    outputs = []
    for word in words:
        x = table[word].astype(np.float64)
        for number, weights in enumerate(layers):
            states[number] = advance(kind, weights, x, *states[number])
            x = states[number][0]
        outputs.append(x)
    return np.array(outputs)


def log_softmax(scores) -> np.ndarray:
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))


def layers_of(arrays: dict[str, np.ndarray], prefix: str, count: int) -> list[dict]:
    """The layers of a state dict, each without its number."""
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [{name: arrays[f"{prefix}{name}_l{n}"] for name in kinds} for n in range(count)]


def log_probs(kind: str, arrays: dict[str, np.ndarray], words: list[int]) -> np.ndarray:
    """Computes log p [T, V] of the word after each word, of a `word_language_model`."""
    hidden = hidden_states(kind, arrays["encoder.weight"], layers_of(arrays, "rnn.", 2), words)
    return log_softmax(
        hidden @ arrays["decoder.weight"].T.astype(np.float64) + arrays["decoder.bias"]
    )
