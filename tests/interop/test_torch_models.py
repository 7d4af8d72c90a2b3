"""Models of five programs have log p by PyTorch's equations, computed by numpy in float64."""

import collections

import jax
import numpy as np
import pytest

from tests import examples
from tests.interop import torch_programs, torch_writer
from tests.interop.torch_programs import EMBEDDING, GATES, SIZE, WORDS, draw, layer, log_softmax
from tests.interop.torch_writer import named
from zoo.cores import GRU, LSTM, Elman, LastWords
from zoo.embeddings import CharCNN
from zoo.errors import UserError
from zoo.heads import Softmax, SplitSoftmax
from zoo.interop import torch_files, torch_models
from zoo.models import LanguageModel

TEXT = [3, 0, 12, 7, 7]


@pytest.fixture
def random():
    return np.random.default_rng(5)


def read(tmp_path, saved, legacy=False):
    """The model of an object that is saved and read again: (model, its parameters by path)."""
    path = torch_writer.save(tmp_path / "model.pt", saved, legacy)
    with torch_files.naming("model.pt"):
        return torch_models.language_model(torch_files.read(path))


def log_probs(model, params, words):
    """log p [T, V] of the word after each word, by Zoo."""
    lexicon = examples.plain_lexicon(WORDS)
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), lexicon))
    names = [
        jax.tree_util.keystr(path, simple=True, separator="/")
        for path, _ in jax.tree_util.tree_leaves_with_path(shapes)
    ]
    assert {*names} == {*params}
    tree = jax.tree.unflatten(jax.tree.structure(shapes), [params[name] for name in names])

    @jax.jit
    def scores(tree):
        tables = model.evaluation_tables(lexicon)
        hidden, *_ = model.states(tree, tables, np.array([words]), model.initial_carry(1))
        return model.head.log_probs(model.head_params(tree), tables["head"], hidden)[0]

    return scores(tree)


def whole_module(arrays: dict, kind: str):
    """The module of a state dict of word_language_model."""
    children: dict = collections.defaultdict(dict)
    for name, array in arrays.items():
        child, _, own = name.partition(".")
        children[child][own] = array
    parts = {
        name: torch_writer.module(
            named("torch.nn.modules", name), parameters, **({"mode": kind} if name == "rnn" else {})
        )
        for name, parameters in children.items()
    }
    return torch_writer.module(named("model", "RNNModel"), {}, parts, ntoken=WORDS)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("legacy", [False, True], ids=["archive", "before 1.6"])
def test_a_whole_module_of_word_language_model(tmp_path, random, kind, legacy):
    arrays = torch_programs.word_language_model(random, kind)
    model, params = read(tmp_path, whole_module(arrays, kind), legacy)
    expected = torch_programs.log_probs(kind, arrays, TEXT)
    np.testing.assert_allclose(log_probs(model, params, TEXT), expected, rtol=1e-6, atol=3e-6)


def test_a_module_of_pytorch_0_3(tmp_path, random):
    arrays = torch_programs.word_language_model(random)
    old = {name: torch_writer.OldParameter(array) for name, array in arrays.items()}
    model, params = read(tmp_path, whole_module(old, "LSTM"), legacy=True)
    expected = torch_programs.log_probs("LSTM", arrays, TEXT)
    np.testing.assert_allclose(log_probs(model, params, TEXT), expected, rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("holder", [None, "state_dict", "model"])
def test_a_tied_state_dict(tmp_path, random, holder):
    arrays = torch_programs.word_language_model(random, tied=True)
    saved = {f"module.{name}": array for name, array in arrays.items()}
    model, params = read(tmp_path, {holder: saved, "epoch": 3} if holder else saved)
    assert model.head == Softmax(tied=True)
    assert "head/weights" not in params
    expected = torch_programs.log_probs("LSTM", arrays, TEXT)
    np.testing.assert_allclose(log_probs(model, params, TEXT), expected, rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("tied", [False, True])
def test_a_state_dict_of_a_model_is_word_language_models(tmp_path, random, kind, tied):
    """What was read is written again, so that PyTorch's equations give the same log p."""
    arrays = torch_programs.word_language_model(random, kind, tied)
    written = torch_models.state_dict(*read(tmp_path, whole_module(arrays, kind)))
    assert {name: array.shape for name, array in written.items()} == {
        name: array.shape for name, array in arrays.items()
    }
    assert all(array.flags.c_contiguous for array in written.values())
    expected = torch_programs.log_probs(kind, arrays, TEXT)
    found = torch_programs.log_probs(kind, written, TEXT)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=2e-6)
    if kind in ("LSTM", "GRU"):  # of which a state dict tells all
        model, params = read(tmp_path, written)
        np.testing.assert_allclose(log_probs(model, params, TEXT), expected, rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize(
    "model",
    [
        LanguageModel(core=LSTM(projection=3)),
        LanguageModel(core=LSTM(peepholes=True)),
        LanguageModel(core=GRU(layers=2, last_size=5)),
        LanguageModel(core=LSTM(layers=2, skip=True)),
        LanguageModel(core=Elman(activation="sigmoid")),
        LanguageModel(core=LastWords()),
        LanguageModel(head=Softmax(soft_cap=3.0)),
        LanguageModel(head=SplitSoftmax()),
        LanguageModel(embedding=CharCNN()),
    ],
    ids=repr,
)
def test_a_model_that_word_language_model_does_not_have_is_refused(model):
    with pytest.raises(UserError, match="word_language_model does not have the model"):
        torch_models.state_dict(model, {})


def test_half_precision_is_read_as_it_is(tmp_path, random):
    arrays = torch_programs.word_language_model(random)
    halves = {name: array.astype(np.float16) for name, array in arrays.items()}
    model, params = read(tmp_path, halves)
    exact = {name: array.astype(np.float32) for name, array in halves.items()}
    expected = torch_programs.log_probs("LSTM", exact, TEXT)
    np.testing.assert_allclose(log_probs(model, params, TEXT), expected, rtol=1e-6, atol=3e-6)


def awd_layers(random):
    """Three layers of awd-lstm-lm, of which the last has the size of the vectors."""
    sizes = (EMBEDDING, SIZE, SIZE, EMBEDDING)
    return [layer(random, "LSTM", *sizes[n : n + 2]) for n in range(3)]


def plain(weights: dict) -> dict:
    return {name.removesuffix("_l0"): array for name, array in weights.items()}


def awd_module(random, layers, table, bias):
    """awd-lstm-lm's model, whose recurrent weights are dropped: the dropped ones are not used."""
    rnns = {}
    for number, weights in enumerate(layers):
        raw = {f"{k}_raw" if k == "weight_hh_l0" else k: x for k, x in weights.items()}
        lstm = torch_writer.module(named("torch.nn.modules.rnn", "LSTM"), raw, mode="LSTM")
        lstm.weight_hh_l0 = draw(random, *weights["weight_hh_l0"].shape)
        rnns[str(number)] = torch_writer.module(
            named("weight_drop", "WeightDrop"), {}, {"module": lstm}
        )
    encoder = torch_writer.module(named("torch.nn.modules.sparse", "Embedding"), {"weight": table})
    decoder = torch_writer.module(
        named("torch.nn.modules.linear", "Linear"), {"weight": table, "bias": bias}
    )
    parts = {
        "lockdrop": torch_writer.module(named("locked_dropout", "LockedDropout")),
        "encoder": encoder,
        "rnns": torch_writer.module(named("torch.nn.modules.container", "ModuleList"), {}, rnns),
        "decoder": decoder,
    }
    return torch_writer.module(named("model", "RNNModel"), {}, parts, tie_weights=True)


def test_a_checkpoint_of_awd_lstm_lm(tmp_path, random):
    layers, table, bias = awd_layers(random), draw(random, WORDS, EMBEDDING), draw(random, WORDS)
    criterion = torch_writer.module(named("splitcross", "SplitCrossEntropyLoss"), splits=[0, 10**8])
    optimizer = torch_writer.module(named("torch.optim.sgd", "SGD"))
    saved = [awd_module(random, layers, table, bias), criterion, optimizer]
    model, params = read(tmp_path, saved, legacy=True)
    assert (model.core.size, model.core.layers, model.core.last_size) == (SIZE, 3, EMBEDDING)
    hidden = torch_programs.hidden_states("LSTM", table, [*map(plain, layers)], TEXT)
    expected = log_softmax(hidden @ table.T.astype(np.float64) + bias)
    np.testing.assert_allclose(log_probs(model, params, TEXT), expected, rtol=1e-6, atol=3e-6)


def test_the_split_softmax_of_awd_lstm_lm(tmp_path, random):
    """As `SplitCrossEntropyLoss.logprob` computes it: the first tail has the last class."""
    layers, table, bias = awd_layers(random), draw(random, WORDS, EMBEDDING), draw(random, WORDS)
    tails, tail_bias = draw(random, 2, EMBEDDING), draw(random, 2)
    criterion = torch_writer.module(
        named("splitcross", "SplitCrossEntropyLoss"),
        {"tail_vectors": tails, "tail_bias": tail_bias},
        splits=[0, 4, 9, 10**8],
    )
    model, params = read(tmp_path, [awd_module(random, layers, table, bias), criterion, None])
    assert model.head == SplitSoftmax(cutoffs=(4, 9), tied=True)
    hidden = torch_programs.hidden_states("LSTM", table, [*map(plain, layers)], TEXT)
    scores, tail_scores = hidden @ table.T.astype(np.float64) + bias, hidden @ tails.T + tail_bias
    head = log_softmax(np.concatenate([scores[:, :4], tail_scores], axis=1))
    expected = np.concatenate(
        [
            head[:, :4],
            head[:, [-1]] + log_softmax(scores[:, 4:9]),
            head[:, [-2]] + log_softmax(scores[:, 9:]),
        ],
        axis=1,
    )
    np.testing.assert_allclose(np.exp(expected).sum(axis=1), 1)
    np.testing.assert_allclose(log_probs(model, params, TEXT), expected, rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("version", ["0.7", "1"])
def test_names_of_ulmfit(tmp_path, random, version):
    layers, table, bias = awd_layers(random), draw(random, WORDS, EMBEDDING), draw(random, WORDS)
    copy, raw = {"0.7": ("encoder_with_dropout.embed", "module."), "1": ("encoder_dp.emb", "")}[
        version
    ]
    arrays = {"0.encoder.weight": table, f"0.{copy}.weight": table}
    for number, weights in enumerate(layers):
        names = {name: f"0.rnns.{number}.module.{name}" for name in weights}
        if version == "1":  # both, of which the dropped ones are not used
            arrays[names["weight_hh_l0"]] = draw(random, *weights["weight_hh_l0"].shape)
        names["weight_hh_l0"] = f"0.rnns.{number}.{raw}weight_hh_l0_raw"
        arrays |= {names[name]: array for name, array in weights.items()}
    arrays["1.decoder.weight"] = table
    if version == "1":
        arrays["1.decoder.bias"] = bias
    model, params = read(tmp_path, {"model": arrays, "opt": {}})
    assert model.head == Softmax(tied=True, bias=version == "1")
    hidden = torch_programs.hidden_states("LSTM", table, [*map(plain, layers)], TEXT)
    scores = hidden @ table.T.astype(np.float64) + (bias if version == "1" else 0)
    np.testing.assert_allclose(
        log_probs(model, params, TEXT), log_softmax(scores), rtol=1e-6, atol=3e-6
    )


def test_flairs_product_before_the_decoder(tmp_path, random):
    arrays = torch_programs.word_language_model(random)
    inner = {"proj.weight": draw(random, 4, SIZE), "proj.bias": draw(random, 4)}
    arrays |= inner | {"decoder.weight": draw(random, WORDS, 4)}
    model, params = read(tmp_path, {"state_dict": arrays, "nout": 4})
    layers = torch_programs.layers_of(arrays, "rnn.", 2)
    hidden = torch_programs.hidden_states("LSTM", arrays["encoder.weight"], layers, TEXT)
    states = hidden @ inner["proj.weight"].T.astype(np.float64) + inner["proj.bias"]
    expected = log_softmax(states @ arrays["decoder.weight"].T + arrays["decoder.bias"])
    np.testing.assert_allclose(log_probs(model, params, TEXT), expected, rtol=1e-6, atol=3e-6)


def test_simple_layers_that_do_not_tell_their_activation_are_refused(tmp_path, random):
    with pytest.raises(UserError, match="tanh or ReLU: give the whole module"):
        read(tmp_path, torch_programs.word_language_model(random, "RNN_TANH"))


def without(name):
    return lambda arrays: arrays.pop(name)


def renamed(name, other):
    def change(arrays):
        arrays[other] = arrays.pop(name)

    return change


def added(name, *shape):
    return lambda arrays: arrays.update({name: np.ones(shape, np.float32)})


REFUSED = {
    "QRNN": (
        added("rnns.0.layers.0.linear.module.weight_raw", 3, 3),
        "has 'rnns.0.layers.0.linear",
    ),
    "bidirectional": (added("rnn.weight_ih_l0_reverse", 28, 5), "has 'rnn.weight_ih_l0_reverse'"),
    "Transformer": (added("transformer_encoder.layers.0.norm1.weight", 3), "has 'transformer_enc"),
    "a projection": (added("rnn.weight_hr_l0", 3, 7), "has 'rnn.weight_hr_l0'"),
    "no encoder": (without("encoder.weight"), "has no 'encoder.weight'"),
    "no layer": (renamed("rnn.weight_hh_l0", "rnn.weight_hh_l7"), "has no '0.weight_hh'"),
    "a missing layer": (renamed("rnn.weight_hh_l1", "rnn.weight_hh_l4"), "1.weight_hh"),
    "of two gates": (added("rnn.weight_hh_l0", 14, 7), r"cells and \[2.0, 4.0\] gates"),
    "a layer of three axes": (added("rnn.weight_hh_l0", 3, 3, 3), "model.pt cannot be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_another_model_is_refused(tmp_path, random, name):
    arrays = torch_programs.word_language_model(random)
    change, reason = REFUSED[name]
    change(arrays)
    with pytest.raises(UserError, match=reason):
        read(tmp_path, arrays)


def test_tensors_that_repeat_the_numbers_of_the_file_are_refused(tmp_path):
    numbers = np.ones(1000, np.float32)
    parts = {
        f"rnn.weight_hh_l{n}": torch_writer.Part(numbers, 0, (10, 100), (100, 1)) for n in range(9)
    }
    with pytest.raises(UserError, match="more numbers than the file"):
        read(tmp_path, parts)
