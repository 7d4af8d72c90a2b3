"""Checkpoints as JoeyNMT writes them, and log p of target words by its equations in numpy."""

import dataclasses
import pathlib

import numpy as np

from tests.interop import torch_writer
from tests.interop.torch_programs import advance, draw, layer, layers_of, log_softmax

# In the order of ids, as to_file of JoeyNMT's vocabulary writes them.
MARKS = ["<unk>", "<pad>", "<s>", "</s>"]
SOURCE_WORDS = [*MARKS, "le", "chat", "a", "vu", "un", "chien", "."]
TARGET_WORDS = [*MARKS, "the", "cat", "has", "seen", "a", "dog", ".", "it", "ran"]
START, END = 2, 3
SOURCE_SIZE, TARGET_SIZE, HIDDEN = 5, 6, 8
CONFIG = """\
name: small
data: {{src: fr, trg: en, level: word, lowercase: {lower_case}}}
training: {{random_seed: 42, load_model: "best.ckpt"}}
model:
    tied_embeddings: False
    encoder: {{type: recurrent, embeddings: {{scale: {scale}}}}}
    decoder:
        embeddings: {{embedding_dim: 6, scale: False}}
        init_hidden: "{bridge}"
"""


@dataclasses.dataclass(frozen=True)
class Program:
    """Options of a model, as JoeyNMT's configurations name them."""

    rnn_type: str = "LSTM"
    attention: str = "luong"
    bridge: str = "bridge"
    input_feeding: bool = True
    encoder_layers: int = 1
    decoder_layers: int = 1
    encoder_size: int = 3
    bidirectional: bool = True
    scale: bool = False
    lower_case: bool = False

    def draw(self, random) -> dict[str, np.ndarray]:
        """Draws the state dict of a model."""
        memory = self.encoder_size * (1 + self.bidirectional)
        arrays = {
            "src_embed.lut.weight": draw(random, len(SOURCE_WORDS), SOURCE_SIZE),
            "trg_embed.lut.weight": draw(random, len(TARGET_WORDS), TARGET_SIZE),
            "decoder.att_vector_layer.weight": draw(random, HIDDEN, HIDDEN + memory),
            "decoder.att_vector_layer.bias": draw(random, HIDDEN),
            "decoder.output_layer.weight": draw(random, len(TARGET_WORDS), HIDDEN),
            "decoder.attention.key_layer.weight": draw(random, HIDDEN, memory),
        }
        if self.attention == "bahdanau":
            arrays["decoder.attention.query_layer.weight"] = draw(random, HIDDEN, HIDDEN)
            arrays["decoder.attention.energy_layer.weight"] = draw(random, 1, HIDDEN)
        if self.bridge == "bridge":
            arrays["decoder.bridge_layer.weight"] = draw(random, HIDDEN, memory)
            arrays["decoder.bridge_layer.bias"] = draw(random, HIDDEN)
        for number in range(self.encoder_layers):
            inputs = memory if number else SOURCE_SIZE
            for direction in ("", "_reverse")[: 1 + self.bidirectional]:
                weights = layer(random, self.rnn_type, inputs, self.encoder_size, number)
                arrays |= {f"encoder.rnn.{name}{direction}": x for name, x in weights.items()}
        fed = TARGET_SIZE + HIDDEN * self.input_feeding
        for number in range(self.decoder_layers):
            inputs = HIDDEN if number else fed
            weights = layer(random, self.rnn_type, inputs, HIDDEN, number)
            arrays |= {f"decoder.rnn.{name}": x for name, x in weights.items()}
        return arrays

    def write(self, folder: pathlib.Path, arrays: dict[str, np.ndarray]) -> pathlib.Path:
        """Writes a folder as JoeyNMT's training does; returns the path of the checkpoint."""
        settings = {"bridge": self.bridge, "scale": self.scale, "lower_case": self.lower_case}
        (folder / "config.yaml").write_text(CONFIG.format(**settings))
        for side, words in (("src", SOURCE_WORDS), ("trg", TARGET_WORDS)):
            (folder / f"{side}_vocab.txt").write_text("".join(f"{word}\n" for word in words))
        state = {"steps": 300, "best_ckpt_score": 12.5, "optimizer_state": {"param_groups": []}}
        return torch_writer.save(folder / "best.ckpt", {**state, "model_state": arrays})

    def encode(self, arrays, source: list[int]):
        """Returns (memory [S, M], the last layer's last state of both directions [M])."""
        table = arrays["src_embed.lut.weight"].astype(np.float64)
        inputs = [table[word] * (SOURCE_SIZE**0.5 if self.scale else 1) for word in source]
        for number in range(self.encoder_layers):
            outputs = []
            for direction in ("", "_reverse")[: 1 + self.bidirectional]:
                weights = layers_with(arrays, "encoder.rnn.", number, direction)
                states = self.run(weights, inputs[::-1] if direction else inputs)
                outputs.append((states[::-1] if direction else states, states[-1]))
            inputs = [*np.concatenate([states for states, _ in outputs], axis=1)]
            last = np.concatenate([state for _, state in outputs])
        return np.array(inputs), last

    def run(self, weights, inputs):
        """Runs a layer over vectors, from zeros."""
        state, states = (np.zeros(self.encoder_size),) * 2, []
        for x in inputs:
            state = advance(self.rnn_type, weights, x, *state)
            states.append(state[0])
        return states

    def log_probs(self, arrays, source: list[int], targets: list[int]) -> np.ndarray:
        """Computes log p [T, V] of the word at each position of targets, after those before it; the
        source has </s> at its end."""
        arrays = {name: x.astype(np.float64) for name, x in arrays.items()}
        memory, last = self.encode(arrays, source)
        start = np.zeros(HIDDEN)
        if self.bridge == "bridge":
            bridge = arrays["decoder.bridge_layer.weight"]
            start = np.tanh(bridge @ last + arrays["decoder.bridge_layer.bias"])
        elif self.bridge == "last":
            start = last[:HIDDEN]
        states = [(start, start) for _ in range(self.decoder_layers)]
        layers = layers_of(arrays, "decoder.rnn.", self.decoder_layers)
        vector, rows = np.zeros(HIDDEN), []
        for word in [START, *targets[:-1]]:
            x = arrays["trg_embed.lut.weight"][word]
            x = np.concatenate([x, vector]) if self.input_feeding else x
            for number, weights in enumerate(layers):
                states[number] = advance(self.rnn_type, weights, x, *states[number])
                x = states[number][0]
            scores = np.array([self.score(arrays, x, key) for key in memory])
            context = np.exp(scores) / np.exp(scores).sum() @ memory
            product = arrays["decoder.att_vector_layer.weight"] @ np.concatenate([x, context])
            vector = np.tanh(product + arrays["decoder.att_vector_layer.bias"])
            rows.append(log_softmax(arrays["decoder.output_layer.weight"] @ vector))
        return np.array(rows)

    def score(self, arrays, query, vector) -> float:
        key = arrays["decoder.attention.key_layer.weight"] @ vector
        if self.attention == "luong":
            return query @ key
        query = arrays["decoder.attention.query_layer.weight"] @ query
        return arrays["decoder.attention.energy_layer.weight"][0] @ np.tanh(query + key)


def layers_with(arrays, prefix: str, number: int, direction: str) -> dict[str, np.ndarray]:
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return {
        name: arrays[f"{prefix}{name}_l{number}{direction}"].astype(np.float64) for name in kinds
    }
