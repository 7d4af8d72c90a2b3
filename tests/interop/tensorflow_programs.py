"""Tensors of a small lm_1b, its words, and log p of words by its program's equations."""

import numpy as np

LETTER, EMBEDDING, CELLS, STATE = 3, 5, 7, 4
WIDTHS, FILTERS = (1, 2, 3, 3), (2, 1, 3, 5)
WORDS = [
    *("</S>", "<S>", "the", "cat", "<UNK>", "sat", "\u017elu\u0165ou\u010dk\u00fd", "dog", "."),
    *("x" * 47, "x" * 48, "x" * 60, "a", "saw", "on", "it", "ran", "of", "mat"),
]
ROWS = 21  # of the softmax: two more than there are words, and not a multiple of 8
PARTS = 8


def parts(name: str, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """A matrix as it is saved: its rows in eight parts, here of one or two rows."""
    return {f"{name}_{n}": rows for n, rows in enumerate(np.array_split(matrix, PARTS))}


def draw_model(random) -> dict[str, np.ndarray]:
    """Draws the tensors of a model of two layers."""

    def draw(*shape):
        return random.normal(scale=0.6, size=shape).astype(np.float32)

    arrays = {"char_embedding/W": draw(256, LETTER)}
    for number, (width, filters) in enumerate(zip(WIDTHS, FILTERS, strict=True)):
        arrays[f"char_embedding/cnn_{number}/kernel"] = draw(width, LETTER, 1, filters)
        arrays[f"char_embedding/cnn_{number}/b"] = draw(1, 1, 1, filters)
    total = sum(FILTERS)
    for name in ("dense_0/gate", "dense_0/tr", "dense_1/gate", "dense_1/tr", "proj"):
        size = EMBEDDING if name == "proj" else total
        arrays |= parts(f"char_embedding/{name}/W", draw(total, size))
        arrays[f"char_embedding/{name}/b"] = draw(1, size)
    for layer, inputs in enumerate((EMBEDDING, STATE)):
        arrays |= parts(f"lstm/lstm_{layer}/W", draw(inputs + STATE, 4 * CELLS))
        arrays |= parts(f"lstm/lstm_{layer}/W_P", draw(CELLS, STATE))
        arrays[f"lstm/lstm_{layer}/B"] = draw(4 * CELLS)
        for gate in "FIO":
            arrays[f"lstm/lstm_{layer}/W_{gate}_diag"] = draw(CELLS)
    rows = draw(-(-ROWS // PARTS) * PARTS, STATE)  # some are of no word
    arrays |= {f"softmax/W_{number}": rows[number::PARTS] for number in range(PARTS)}
    return arrays | {"softmax/b": draw(ROWS)}


def spell(word: str | None) -> list[int]:
    """The 50 numbers of a word's letters; None is the begin of a sentence."""
    letters = [0] if word is None else list(word.encode())[:48]
    letters = [2, *letters, 3]
    return letters + [4] * (50 - len(letters))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_probs(arrays: dict, words: list[str | None]) -> np.ndarray:
    """Computes log p [T, V] of what follows each word, from states of zeros, in float64."""
    arrays = {name: x.astype(np.float64) for name, x in arrays.items()}

    def joined(name):
        return np.concatenate([arrays[f"{name}_{number}"] for number in range(PARTS)])

    def linear(name, x):
        return x @ joined(f"char_embedding/{name}/W") + arrays[f"char_embedding/{name}/b"][0]

    states = [(np.zeros(STATE), np.zeros(CELLS))] * 2
    weights = np.zeros((len(arrays["softmax/W_0"]) * PARTS, STATE))
    for number in range(PARTS):
        for row, vector in enumerate(arrays[f"softmax/W_{number}"]):
            weights[PARTS * row + number] = vector
    outputs = []
    for word in words:
        letters = arrays["char_embedding/W"][spell(word)]
        maxima = []
        for number, width in enumerate(WIDTHS):
            kernel = arrays[f"char_embedding/cnn_{number}/kernel"][:, :, 0]
            sums = [
                np.tensordot(letters[start : start + width], kernel, 2)
                for start in range(50 - width + 1)
            ]
            bias = arrays[f"char_embedding/cnn_{number}/b"].ravel()
            maxima += np.maximum(np.array(sums) + bias, 0).max(axis=0).tolist()
        x = np.array(maxima)
        for number in range(2):
            gate = sigmoid(linear(f"dense_{number}/gate", x) - 2)
            x = gate * np.maximum(linear(f"dense_{number}/tr", x), 0) + (1 - gate) * x
        x = linear("proj", x)
        for layer, (hidden, cell) in enumerate(states):
            name = f"lstm/lstm_{layer}"
            z = np.append(x, hidden) @ joined(f"{name}/W") + arrays[f"{name}/B"]
            i, j, f, o = np.split(z, 4)
            f_seen, i_seen, o_seen = (arrays[f"{name}/W_{gate}_diag"] for gate in "FIO")
            kept = sigmoid(f + 1 + f_seen * cell) * cell
            cell = kept + sigmoid(i + i_seen * cell) * np.tanh(j)
            x = (sigmoid(o + o_seen * cell) * np.tanh(cell)) @ joined(f"{name}/W_P")
            states[layer] = x, cell
        scores = weights[:ROWS] @ x + arrays["softmax/b"]
        outputs.append(scores - np.log(np.exp(scores).sum()))
    return np.array(outputs)
