"""Modules of PyTorch in JoeyNMT's form, in checkpoints of PyTorch itself: `make torch-test`."""

import copy
import types

import numpy as np
import pytest

from tests.interop.joeynmt_programs import END, MARKS, SOURCE_WORDS, START, TARGET_WORDS, Program
from tests.interop.test_joeynmt import SOURCES, TARGETS, log_probs_by_zoo, read_folder

torch = pytest.importorskip("torch")
nn = torch.nn
NAMES = ("unk", "pad", "bos", "eos")  # of `MARKS`, in JoeyNMT's configurations


class Part(nn.Module):
    """A module of named modules."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)


def translator(kind: str, additive: bool, layers: int) -> nn.Module:
    """An encoder-decoder of JoeyNMT's names; the sizes of words' vectors, of the encoder's two
    directions, of the decoder's states and of the vocabularies are all different."""
    attention = {"key_layer": nn.Linear(6, 7, bias=False)}
    if additive:
        attention["query_layer"] = nn.Linear(7, 7, bias=False)
        attention["energy_layer"] = nn.Linear(7, 1, bias=False)
    rnn = getattr(nn, kind)
    decoder = Part(
        rnn=rnn(5 + 7, 7, layers, batch_first=True),
        att_vector_layer=nn.Linear(7 + 6, 7),
        output_layer=nn.Linear(7, 13, bias=False),
        attention=Part(**attention),
        bridge_layer=nn.Linear(6, 7),
    )
    return Part(
        src_embed=Part(lut=nn.Embedding(11, 4, padding_idx=1)),
        trg_embed=Part(lut=nn.Embedding(13, 5, padding_idx=1)),
        encoder=Part(rnn=rnn(4, 3, layers, batch_first=True, bidirectional=True)),
        decoder=decoder,
    )


def log_probs(model, source: list[int], targets: list[int]) -> "torch.Tensor":
    """Computes log p [T, V] of the word at each position of targets of one pair."""
    decoder, attention = model.decoder, model.decoder.attention
    memory, last = model.encoder.rnn(model.src_embed.lut(torch.tensor([source])))
    last = last[0] if isinstance(last, tuple) else last
    start = torch.tanh(decoder.bridge_layer(torch.cat([last[-2], last[-1]], dim=-1)))
    state = start.repeat(decoder.rnn.num_layers, 1, 1)
    if isinstance(decoder.rnn, nn.LSTM):
        state = state, state
    vector, rows, keys = torch.zeros(1, 1, 7), [], attention.key_layer(memory)
    for word in [START, *targets[:-1]]:
        inputs = torch.cat([model.trg_embed.lut(torch.tensor([[word]])), vector], dim=-1)
        query, state = decoder.rnn(inputs, state)
        scores = query @ keys.transpose(1, 2)
        if hasattr(attention, "energy_layer"):
            sums = torch.tanh(attention.query_layer(query) + keys)
            scores = attention.energy_layer(sums).transpose(1, 2)
        context = torch.softmax(scores, dim=-1) @ memory
        vector = torch.tanh(decoder.att_vector_layer(torch.cat([query, context], dim=-1)))
        rows.append(torch.log_softmax(decoder.output_layer(vector)[0, 0].double(), dim=-1))
    return torch.stack(rows)


@pytest.mark.parametrize(
    ("kind", "additive", "layers"), [("LSTM", False, 2), ("LSTM", True, 1), ("GRU", True, 2)]
)
def test_checkpoints_of_a_training(tmp_path, kind, additive, layers):
    torch.manual_seed(3)
    model = translator(kind, additive, layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for source, words in zip(SOURCES, TARGETS, strict=True):
        optimizer.zero_grad()
        rows = log_probs(model, [*source, END], words)
        (-rows[torch.arange(len(words)), torch.tensor(words)].sum()).backward()
        optimizer.step()
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
    Program().write(tmp_path, {})
    state = {
        "steps": 3,
        "total_tokens": 12,
        "best_ckpt_score": float("inf"),
        "best_ckpt_iter": 3,
        "model_state": model.state_dict(),
        "optimizer_state": optimizer.state_dict(),
        "scheduler_state": scheduler.state_dict(),
        "train_iter_state": torch.Generator().get_state(),
    }
    torch.save(state, tmp_path / "best.ckpt")
    scores = log_probs_by_zoo(*read_folder(tmp_path), SOURCES, TARGETS)
    for row, (source, words) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        with torch.no_grad():
            expected = log_probs(model, [*source, END], words).numpy()
        np.testing.assert_allclose(
            scores[row], expected[np.arange(len(words)), words], rtol=0, atol=5e-6
        )


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("attention", ["luong", "bahdanau"])
@pytest.mark.parametrize(
    ("bridge", "encoder_size", "layers"), [("bridge", 3, 2), ("last", 8, 3), ("zero", 4, 1)]
)
@pytest.mark.parametrize("input_feeding", [True, False])
def test_models_of_joeynmt_itself(
    tmp_path, kind, attention, bridge, encoder_size, layers, input_feeding
):
    """Of its version 2.3.0, computed in float64, where it is installed beside PyTorch."""
    models = pytest.importorskip("joeynmt.model")
    yaml = pytest.importorskip("yaml")
    vocabularies = pytest.importorskip("joeynmt.vocabulary")
    tokens = {f"{name}_token": mark for name, mark in zip(NAMES, MARKS, strict=True)}
    marks = tokens | {f"{name}_id": number for number, name in enumerate(NAMES)}
    symbols = types.SimpleNamespace(**marks, sep_token=None, sep_id=None, lang_tags=[])
    sides = {"src": SOURCE_WORDS, "trg": TARGET_WORDS}
    lists = {side: vocabularies.Vocabulary(words[4:], symbols) for side, words in sides.items()}
    layer = {"type": "recurrent", "rnn_type": kind, "num_layers": layers, "dropout": 0.2}
    encoder = {"hidden_size": encoder_size, "bidirectional": True}
    decoder = {"hidden_size": 8, "init_hidden": bridge, "attention": attention}
    config = {
        "embed_initializer": "normal",
        "embed_init_weight": 1.0,
        "tied_softmax": bridge == "last",
        "encoder": {**layer, **encoder, "embeddings": {"embedding_dim": 5, "scale": True}},
        "decoder": {**layer, **decoder, "input_feeding": input_feeding},
    }
    config["decoder"]["embeddings"] = {"embedding_dim": 8, "scale": bridge == "zero"}
    torch.manual_seed(5)
    model = models.build_model(copy.deepcopy(config), lists["src"], lists["trg"]).eval()
    data = {side: {"lang": side, "level": "word"} for side in sides}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"data": data, "model": config}))
    torch.save({"model_state": model.state_dict()}, tmp_path / "best.ckpt")
    scores = np.asarray(log_probs_by_zoo(*read_folder(tmp_path), SOURCES, TARGETS))
    order = sorted(range(3), key=lambda row: -len(SOURCES[row]))  # as its batches are
    padded = [[*SOURCES[row], END, *(5 - len(SOURCES[row])) * [1]] for row in order]
    source, targets = torch.tensor(padded), torch.tensor([TARGETS[row] for row in order])
    with torch.no_grad():
        logits, *_ = model.double()._encode_decode(
            src=source,
            trg_input=torch.cat([torch.full((3, 1), START), targets[:, :-1]], dim=1),
            src_mask=(source != 1)[:, None],
            src_length=(source != 1).sum(1),
            trg_mask=None,
        )
    expected = torch.log_softmax(logits, dim=-1).gather(2, targets[:, :, None])[:, :, 0]
    np.testing.assert_allclose(scores[order], expected.numpy(), rtol=0, atol=5e-6)
