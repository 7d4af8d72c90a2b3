"""Recurrent language models that PyTorch's programs trained, as models of Zoo.

word_language_model (of PyTorch's examples), colorlessgreenRNNs, awd-lstm-lm, ULMFiT and flair name
their parameters alike: an encoder (the embedding), rnn or rnns, and a decoder (the head). The gates
have Zoo's order, and the matrices are transposed. The two biases of a layer are added, but for the
GRU's candidate, whose second bias the reset gate multiplies.
"""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np

from zoo.cores import GRU, LSTM, Elman, Stacked
from zoo.embeddings import Lookup
from zoo.errors import UserError, quote
from zoo.heads import Head, Softmax, SplitSoftmax
from zoo.interop.torch_files import Tensor
from zoo.models import LanguageModel

Arrays = dict[str, np.ndarray]
_NAME = re.compile(
    r"(?:.*\.)?(?:rnns?\.(?:(\d+)\.)?(?:module\.)?((?:weight|bias)_[ih]h)_l(\d+)(_raw)?"
    r"|((?:encoder|decoder|proj)\.(?:weight|bias)))"
)
# The encoder once more, by which fastai drops words.
_COPY = re.compile(r"(.*\.)?encoder_(dp\.emb|with_dropout\.embed)\.weight")
_CORES = {4: LSTM, 3: GRU, 1: Elman}  # by the number of their gates
_ACTIVATIONS = {"RNN_TANH": "tanh", "RNN_RELU": "relu"}  # by the mode of a module
# Tensors may share numbers, as tied weights do: all have at most so many times the file's.
_SHARES = 8


def language_model(saved: Any) -> tuple[LanguageModel, Arrays]:
    """Converts a module, a state dict, or a checkpoint that holds one of them.

    Returns (a model, its parameters by path, such as "core/0/input"); raises UserError for another
    model. awd-lstm-lm's checkpoints are lists of the model, its criterion and the optimiser.
    """
    module, criterion = [*saved, {}][:2] if isinstance(saved, list | tuple) else (saved, {})
    for name in ("state_dict", "model", "model_state"):
        module = child_dict(module, name) or module
    arrays, modes = collect(module)
    parts, others = {}, []
    for name, array in arrays.items():
        match = _NAME.fullmatch(name)
        if match:
            stack, kind, layer, is_raw, other = match.groups()
            part = other or f"{stack or layer}.{kind}"
            if is_raw or part not in parts:  # raw: the weights as they are without weight drop
                parts[part] = array
        elif not _COPY.fullmatch(name):
            others.append(name)
    missing = {"encoder.weight", "decoder.weight", "0.weight_ih", "0.weight_hh"} - parts.keys()
    if others or missing:
        found = quote(others, 3) or f"no {quote(sorted(missing))}"
        raise UserError(
            f"it has {found}: give a model of an encoder, LSTM, GRU or simple layers and a "
            "decoder, not a QRNN, a Transformer, an encoder-decoder or one of both directions."
        )
    table = parts.pop("encoder.weight")
    head, head_params = _head(parts, table, criterion)
    core, core_params = recurrent_core(parts, modes)
    params = {"embedding/table": table} | head_params | core_params
    params = {name: np.ascontiguousarray(array, np.float32) for name, array in params.items()}
    return LanguageModel(Lookup(table.shape[1]), core, head), params


def child_dict(module, name) -> dict:
    """Returns a dict within a dict; {} if there is none."""
    part = module.get(name) if isinstance(module, dict) else None
    return part if isinstance(part, dict) else {}


def collect(module) -> tuple[Arrays, set[str]]:
    """Returns (the arrays of a module and of those in it, the modes of its recurrent layers)."""
    tensors, modes, seen, modules = {}, set(), set(), [("", module)]
    for prefix, part in modules:
        if id(part) in seen or not isinstance(part, dict):
            continue
        seen.add(id(part))
        modes.add(str(part.get("mode")))
        for name, child in {**part, **child_dict(part, "_parameters")}.items():
            if isinstance(child, Tensor | np.ndarray) and jnp.issubdtype(child.dtype, jnp.floating):
                tensors[f"{prefix}{name}"] = child
        modules += [(f"{prefix}{name}.", x) for name, x in child_dict(part, "_modules").items()]
    storages = {id(x): x.nbytes for x in (getattr(x, "storage", x) for x in tensors.values())}
    if sum(x.nbytes for x in tensors.values()) > _SHARES * sum(storages.values()):
        raise UserError("its tensors have more numbers than the file: give a file of a model.")
    return {name: np.asarray(child, np.float32) for name, child in tensors.items()}, modes


def recurrent_core(parts, modes) -> tuple[Stacked, Arrays]:
    """Returns (the core of the recurrent layers, its parameters), from parts such as
    "0.weight_ih" and the modes of their modules."""
    params, sizes, gates = {}, [], set()
    for layer in range(sum(part.endswith("weight_hh") for part in parts)):
        recurrent = parts[f"{layer}.weight_hh"]
        rows, size = recurrent.shape
        zeros = np.zeros(rows, np.float32)
        bias, hidden_bias = (parts.get(f"{layer}.bias_{side}h", zeros) for side in "ih")
        sizes.append(size)
        gates.add(rows / size)
        if rows == 3 * size:
            params[f"core/{layer}/recurrent_bias"] = hidden_bias[2 * size :]
            hidden_bias = np.append(hidden_bias[: 2 * size], zeros[2 * size :])
        params[f"core/{layer}/input"] = parts[f"{layer}.weight_ih"].T
        params[f"core/{layer}/recurrent"] = recurrent.T
        params[f"core/{layer}/bias"] = bias + hidden_bias
    options = {"size": sizes[0], "layers": len(sizes)}
    if sizes[-1] != sizes[0]:
        options["last_size"] = sizes[-1]
    kind = _CORES.get(min(gates))
    if kind is None or len(gates) > 1 or len({*sizes[:-1]}) > 1:
        raise UserError(
            f"its recurrent layers have {sizes} cells and {sorted(gates)} gates: give a model of "
            "LSTM, GRU or simple layers, of which only the last may have another size."
        )
    if kind is not Elman:
        return kind(**options), params
    activations = {_ACTIVATIONS[mode] for mode in modes & _ACTIVATIONS.keys()}
    if len(activations) != 1:
        raise UserError(
            "it has simple recurrent layers and does not tell whether they have tanh or ReLU: give "
            "the whole module, as torch.save(model, FILE) writes it."
        )
    return Elman(**options, activation=activations.pop()), params


def _head(parts, table, criterion) -> tuple[Head, Arrays]:
    """Returns (the head of the decoder, its parameters)."""
    weights, bias = parts["decoder.weight"], parts.get("decoder.bias")
    if "proj.weight" in parts:  # flair's nout, a product before the decoder
        inner_bias = weights.astype(np.float64) @ parts["proj.bias"]
        bias = inner_bias if bias is None else bias + inner_bias
        weights = weights.astype(np.float64) @ parts["proj.weight"]
    tied = np.array_equal(table, weights)
    params = {} if tied else {"head/weights": weights}
    if bias is not None:
        params["head/bias"] = bias
    tails, _ = collect(criterion)
    if not tails:
        return Softmax(tied=tied, bias=bias is not None), params
    # Of the classes of the tails, the criterion reads the last for the first tail.
    params |= {
        "head/classes": tails["tail_vectors"][::-1],
        "head/class_bias": tails["tail_bias"][::-1],
    }
    return SplitSoftmax(cutoffs=tuple(criterion["splits"][1:-1]), tied=tied), params


def state_dict(model: LanguageModel, params: Arrays) -> Arrays:
    """Names the parameters of a model, by path, as word_language_model names those of its RNNModel;
    raises UserError for a model that it does not have."""
    core: Any = model.core
    head = model.head
    is_plain = type(model.embedding) is Lookup and type(head) is Softmax and head.soft_cap is None
    options = (getattr(core, name, 0) for name in ("skip", "last_size", "projection", "peepholes"))
    activation = getattr(core, "activation", "tanh")
    is_known = type(core) in _CORES.values() and activation in _ACTIVATIONS.values()
    if not is_plain or not is_known or any(options):
        raise UserError(
            f"word_language_model does not have the model {model}: give a run of "
            "embeddings.Lookup, heads.Softmax, and cores.LSTM, GRU or Elman (tanh or ReLU) whose "
            "layers have one size, without skip, projection or peepholes."
        )
    table = params["embedding/table"]
    arrays = {
        "encoder.weight": table,
        "decoder.weight": params.get("head/weights", table),
        "decoder.bias": params.get("head/bias", np.zeros(len(table), np.float32)),
    }
    for layer in range(core.layers):
        bias = params[f"core/{layer}/bias"]
        hidden_bias = np.zeros_like(bias)
        if type(core) is GRU:
            hidden_bias[2 * core.size :] = params[f"core/{layer}/recurrent_bias"]
        for side, name, side_bias in (("ih", "input", bias), ("hh", "recurrent", hidden_bias)):
            arrays[f"rnn.weight_{side}_l{layer}"] = params[f"core/{layer}/{name}"].T
            arrays[f"rnn.bias_{side}_l{layer}"] = side_bias
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}
