"""Recurrent encoder-decoders that JoeyNMT trained, as models of Zoo.

Kreutzer, Bastings and Riezler, "Joey NMT: a minimalist NMT toolkit for novices" (2019). The layers
are PyTorch's, of which the encoder's read both directions of the layer below. A decoder begins
with <s>, which is never read later, and ends with </s>, which is never read at all: so the vector
of <s> takes the row of </s>, with which Zoo's decoders begin.
"""

import collections
import dataclasses
import math
import re
from typing import Any

import numpy as np

from zoo.attention import Bahdanau, Luong
from zoo.base import lazy, regular_files
from zoo.cores import Bidirectional, Core
from zoo.embeddings import Lookup
from zoo.errors import UserError, quote
from zoo.heads import Softmax
from zoo.interop import torch_models
from zoo.interop.torch_models import Arrays
from zoo.models import SequenceToSequence

_LAYER = re.compile(r"(encoder|decoder)\.rnn\.((?:weight|bias)_[ih]h)_l(\d+)(_reverse)?")
_TABLES = {
    "trg_embed.lut.weight": "embedding/table",
    "src_embed.lut.weight": "source_embedding/table",
    "decoder.output_layer.weight": "head/weights",
}
_PRODUCTS = {
    "decoder.attention.key_layer.weight": "attention/keys",
    "decoder.att_vector_layer.weight": "attention/state",
    "decoder.att_vector_layer.bias": "attention/state_bias",
}
_BAHDANAU = {
    "decoder.attention.query_layer.weight": "attention/queries",
    "decoder.attention.energy_layer.weight": "attention/vector",
}
_BRIDGE = {
    "decoder.bridge_layer.weight": "bridge/weights",
    "decoder.bridge_layer.bias": "bridge/bias",
}


def is_checkpoint(saved: Any) -> bool:
    return "src_embed.lut.weight" in torch_models.child_dict(saved, "model_state")


def read_configuration(path: str) -> tuple[dict, list[bool], dict[str, str]]:
    """Reads a file config.yaml; returns (the part of the model, whether texts of the target and the
    source are read in lower case, the marks by JoeyNMT's names)."""
    with lazy.extra():
        import yaml
    config = yaml.safe_load(regular_files.read_text(path))
    data, marks = config["data"], {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    texts = [data[side] if isinstance(data[side], dict) else data for side in ("trg", "src")]
    if any(text.get("level") == "char" for text in texts):
        raise UserError("its level is char: give a model of words or subwords.")
    lower_case = [bool(text.get("lowercase")) for text in texts]
    return config["model"], lower_case, marks | (data.get("special_symbols") or {})


def encoder_decoder(
    saved: Any, config: dict, start: int, boundary: int
) -> tuple[SequenceToSequence, Arrays]:
    """Converts a checkpoint, with the configuration of the model, to (a model, its parameters by
    path); raises UserError for another model. `start`, `boundary`: ids of the marks before and
    after a target."""
    arrays, _ = torch_models.collect(saved["model_state"])
    layers: dict[str, Arrays] = collections.defaultdict(dict)
    for match in filter(None, map(_LAYER.fullmatch, [*arrays])):
        side, kind, layer, backward = match.groups()
        layers[side + (backward or "")][f"{layer}.{kind}"] = arrays.pop(match[0])
    is_additive, has_bridge = (any(x in arrays for x in names) for names in (_BAHDANAU, _BRIDGE))
    paths = _PRODUCTS | (_BAHDANAU if is_additive else {}) | (_BRIDGE if has_bridge else {})
    difference = sorted(arrays.keys() ^ (_TABLES | paths).keys())
    if difference:
        raise UserError(
            f"it differs from recurrent layers with attention in {quote(difference, 3)}: give an "
            "encoder-decoder of LSTM or GRU layers, not a Transformer."
        )
    core, params = torch_models.recurrent_core(layers["decoder"], set())
    bridge = "last" if config["decoder"].get("init_hidden") == "last" else "zeros"
    encoder, encoder_params = _encoder(layers, core.size if bridge == "last" else 0)
    params |= encoder_params | {path: arrays[name].T for name, path in paths.items()}
    params |= {path: arrays[name] for name, path in _TABLES.items()}
    # JoeyNMT's attentional states are of (hidden state : context), Zoo's of (context : hidden).
    params["attention/state"] = np.roll(params["attention/state"], -core.size, axis=0)
    if is_additive:
        params["attention/vector"] = params["attention/vector"][:, 0]
        params["attention/keys_bias"] = np.zeros(core.size)
    # One table of vectors of both sides is the source's.
    sides = "encoder" if config.get("tied_embeddings") else "decoder", "encoder"
    sizes = []
    for side, path in zip(sides, ("embedding/table", "source_embedding/table"), strict=True):
        sizes.append(params[path].shape[1])
        if config[side]["embeddings"].get("scale"):
            params[path] = params[path] * np.float32(math.sqrt(sizes[-1]))
    params["embedding/table"][boundary] = params["embedding/table"][start]
    model = SequenceToSequence(
        embedding=Lookup(sizes[0]),
        core=core,
        head=Softmax(bias=False),
        source_embedding=Lookup(sizes[1]),
        encoder=encoder,
        attention=Bahdanau() if is_additive else Luong(),
        input_feeding=len(params["core/0/input"]) > sizes[0],
        bridge="projection" if has_bridge else bridge,
        source_boundary=True,
        order="forward",
    )
    return model, {name: np.ascontiguousarray(x, np.float32) for name, x in params.items()}


def _encoder(layers, size: int) -> tuple[Core, Arrays]:
    """Returns (the encoder's core, its parameters); of both directions, the forward state alone
    starts a decoder of the same size."""
    core, forward = torch_models.recurrent_core(layers["encoder"], set())
    if "encoder_reverse" not in layers:
        return core, {name.replace("core", "encoder"): x for name, x in forward.items()}
    _, backward = torch_models.recurrent_core(layers["encoder_reverse"], set())
    params = {}
    for direction, weights in {"forward": forward, "backward": backward}.items():
        for name, array in weights.items():
            _, layer, kind = name.split("/")
            pair = f"{layer}/" if core.layers > 1 else ""
            params[f"encoder/{pair}{direction}/0/{kind}"] = array
    merge = "forward" if core.size == size else "concatenate"
    return Bidirectional(dataclasses.replace(core, layers=1), merge, core.layers), params
