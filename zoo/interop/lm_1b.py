"""lm_1b, the language model of Jozefowicz et al. (2016) that TensorFlow published, as one of Zoo.

Words enter by convolutions of their bytes, with two highway layers and a projection; two LSTMs with
projections and peepholes follow, and a softmax. A matrix is in parts, rows 0 to n - 1, n to 2 n - 1
and so on, except the softmax's: part i of 8 has the rows i, i + 8, ... Gates are in the order
input, candidate, forget, output. The program adds 1 to the bias of forget gates and -2 to the bias
of highway gates, which are added here.
"""

import numpy as np

from zoo.base import regular_files
from zoo.cores import LSTM
from zoo.embeddings import CharCNN
from zoo.errors import UserError, quote
from zoo.heads import Softmax
from zoo.layers.char_convolution import Convolution
from zoo.lexicon.spelling import Spelling
from zoo.models import LanguageModel

Arrays = dict[str, np.ndarray]
# Letters of a word without its marks.
_LONGEST = 48
# The bytes, which are in no word, for the marks of zoo.lexicon.spelling in their order: letters
# after a word, its begin, its end, none, the begin of a sentence, none. The byte 1, for the end of
# a sentence, is not read: the head alone predicts it, and the boundary is both.
_MARKS = [4, 2, 3, 4, 0, 4]


def language_model(arrays: Arrays) -> tuple[LanguageModel, Arrays]:
    """Takes the tensors of lm_1b out of `arrays`; returns (a model, its parameters by path).

    Raises UserError where tensors are missing, or where others of a matrix are left.
    """
    try:
        embedding, params = _embedding(arrays)
        core, core_params = _core(arrays)
        bias = arrays.pop("softmax/b")
        weights = np.stack(_parts(arrays, "softmax/W"), axis=1)
    except KeyError as error:
        raise UserError(f"it has no {error}: give the folder of all files of lm_1b.") from error
    others = [name for name in arrays if name.startswith(("char_embedding/", "softmax/"))]
    if others:
        raise UserError(f"it has {quote(others, 3)}: give the files of lm_1b and no others.")
    rows = weights.reshape(-1, weights.shape[-1])[: len(bias)]
    params |= core_params | {"head/weights": rows, "head/bias": bias}
    # Parts of a file lie anywhere; others need numbers at multiples of their size.
    params = {name: np.require(array, np.float32, ["C", "A"]) for name, array in params.items()}
    return LanguageModel(embedding, core, Softmax()), params


def _parts(arrays: Arrays, name: str) -> list[np.ndarray]:
    """Removes and returns the parts of a matrix."""
    parts = [arrays.pop(f"{name}_0")]
    while f"{name}_{len(parts)}" in arrays:
        parts.append(arrays.pop(f"{name}_{len(parts)}"))
    return parts


def _linear(arrays: Arrays, name: str, path: str) -> Arrays:
    """Removes and returns the weights and the bias of a linear map."""
    weights = np.concatenate(_parts(arrays, f"{name}/W"))
    return {f"{path}weights": weights, f"{path}bias": arrays.pop(f"{name}/b").reshape(-1)}


def _embedding(arrays: Arrays) -> tuple[CharCNN, Arrays]:
    letters = arrays.pop("char_embedding/W")
    kernels: list[np.ndarray] = []
    params = {"embedding/letters": np.concatenate([letters[_MARKS], letters])}
    while f"char_embedding/cnn_{len(kernels)}/kernel" in arrays:
        name, path = f"char_embedding/cnn_{len(kernels)}", f"embedding/filters/{len(kernels)}"
        kernels.append(arrays.pop(f"{name}/kernel"))  # [width, size of letters, 1, filters]
        params[f"{path}/weights"] = kernels[-1].reshape(-1, kernels[-1].shape[-1])
        params[f"{path}/bias"] = arrays.pop(f"{name}/b").reshape(-1)
    for layer in range(2):
        name, path = f"char_embedding/dense_{layer}", f"embedding/highway/{layer}/"
        params |= _linear(arrays, f"{name}/tr", path)
        params |= _linear(arrays, f"{name}/gate", f"{path}gate_")
        params[f"{path}gate_bias"] = params[f"{path}gate_bias"] - 2
    params |= _linear(arrays, "char_embedding/proj", "embedding/projection/")
    network = Convolution(
        spelling=Spelling(padding="fixed", longest=_LONGEST),
        letter_size=letters.shape[1],
        widths=tuple(len(kernel) for kernel in kernels),
        filters=tuple(kernel.shape[-1] for kernel in kernels),
        pooling="max",
        highway=2,
    )
    return CharCNN(len(params["embedding/projection/bias"]), network), params


def _core(arrays: Arrays) -> tuple[LSTM, Arrays]:
    params: Arrays = {}
    for layer in range(2):
        name, path = f"lstm/lstm_{layer}", f"core/{layer}"
        projection = np.concatenate(_parts(arrays, f"{name}/W_P"))
        cells, size = projection.shape
        weights = _reorder_gates(np.concatenate(_parts(arrays, f"{name}/W")))
        bias = _reorder_gates(arrays.pop(f"{name}/B"))
        bias[cells : 2 * cells] += 1
        peepholes = np.stack([arrays.pop(f"{name}/W_{gate}_diag") for gate in "IFO"])
        params |= {f"{path}/input": weights[:-size], f"{path}/recurrent": weights[-size:]}
        params |= {f"{path}/bias": bias, f"{path}/peepholes": peepholes}
        params[f"{path}/projection"] = projection
    return LSTM(cells, layers=2, projection=size, peepholes=True), params


def _reorder_gates(array: np.ndarray) -> np.ndarray:
    gates = np.split(array, 4, axis=-1)
    return np.concatenate([gates[gate] for gate in (0, 2, 1, 3)], axis=-1)


def read_words(path: str, size: int) -> list[str]:
    """Reads the words of the program's vocabulary; rows of the softmax without one are <row N>."""
    lines = regular_files.read_text(path).rstrip("\n").split("\n")
    words = [line.strip(" \t\r\f\v") for line in lines if line != "!!!MAXTERMID"]
    words += [""] * (size - len(words))
    last = {word: row for row, word in enumerate(words) if word}
    return [word if row == last.get(word) else f"<row {row}>" for row, word in enumerate(words)]
