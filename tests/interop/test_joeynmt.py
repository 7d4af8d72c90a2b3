"""Encoder-decoders of JoeyNMT have log p by its equations, computed by numpy in float64."""

import itertools

import jax
import numpy as np
import pytest

from tests.interop.joeynmt_programs import (
    END,
    SOURCE_WORDS,
    START,
    TARGET_WORDS,
    Program,
)
from tests.marks import slow
from zoo.data.batches import source_batch
from zoo.decoding import BeamSearch, steps
from zoo.errors import UserError
from zoo.interop import joeynmt, torch_files
from zoo.lexicon import Lexicon

SOURCES = [[4, 5, 6], [9], [7, 10, 0, 4, 4]]
TARGETS = [[5, 6, 7, END], [10, 4, 4, END], [12, 0, 1, 8]]


def lexicon(words):
    counts = np.zeros(len(words), np.int64)
    return Lexicon(words=tuple(words), counts=counts, boundary="</s>", unknown="<unk>")


LEXICONS = lexicon(TARGET_WORDS), lexicon(SOURCE_WORDS)


@pytest.fixture
def random():
    return np.random.default_rng(5)


def read(folder, program, arrays):
    """(model, its parameters, its tables) of a folder that is written and read again."""
    program.write(folder, arrays)
    return read_folder(folder)


def read_folder(folder):
    saved = torch_files.read(str(folder / "best.ckpt"))
    assert joeynmt.is_checkpoint(saved)
    config, *_ = joeynmt.read_configuration(str(folder / "config.yaml"))
    model, params = joeynmt.encoder_decoder(saved, config, START, END)
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), *LEXICONS))
    paths = jax.tree_util.tree_leaves_with_path(shapes)
    names = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in paths]
    assert {*names} == {*params}
    leaves = [params[name] for name in names]
    for leaf, (path, shape) in zip(leaves, paths, strict=True):
        assert leaf.shape == shape.shape, path
    tree = jax.tree.unflatten(jax.tree.structure(shapes), leaves)
    return model, tree, model.evaluation_tables(*LEXICONS)


def words_before(targets):
    return np.array([[END, *words[:-1]] for words in targets], np.int32)


def log_probs_by_zoo(model, params, tables, sources, targets):
    """log p [B, T] of each target word, by Zoo."""
    arrays = *source_batch(sources, longest=6), words_before(targets), np.array(targets, np.int32)
    return jax.jit(model.log_prob_and_log_z)(params, tables, *arrays)[0]


def check(folder, program, random):
    arrays = program.draw(random)
    model, params, tables = read(folder, program, arrays)
    log_prob = log_probs_by_zoo(model, params, tables, SOURCES, TARGETS)
    for row, (source, words) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        log_probs = program.log_probs(arrays, [*source, END], words)
        expected = log_probs[np.arange(len(words)), words]
        np.testing.assert_allclose(log_prob[row], expected, rtol=0, atol=5e-6)
    return model


PROGRAMS = {
    f"{attention}, {bridge}, {feeding}, {directions}, {layers}": Program(
        attention=attention,
        bridge=bridge,
        input_feeding=feeding == "fed",
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_size=8 if bridge == "last" else 3,
        bidirectional=directions == "both",
    )
    for attention, bridge, feeding, directions, layers in itertools.product(
        ("luong", "bahdanau"),
        ("bridge", "last", "zero"),
        ("fed", "not fed"),
        ("both", "one"),
        (1, 2),
    )
}
FAST = ("luong, bridge, fed, both, 2", "bahdanau, last, not fed, both, 1")


@pytest.mark.parametrize("name", [*FAST, *slow(*(n for n in PROGRAMS if n not in FAST))])
def test_log_probs_of_every_option(tmp_path, random, name):
    check(tmp_path, PROGRAMS[name], random)


@pytest.mark.parametrize("bridge", [*slow("bridge"), "last"])
def test_gated_recurrent_units(tmp_path, random, bridge):
    """In its default sizes, the encoder's two directions together have the decoder's."""
    program = Program("GRU", "bahdanau", bridge, encoder_layers=3, decoder_layers=2, encoder_size=4)
    assert check(tmp_path, program, random).encoder.merge == "concatenate"


@pytest.mark.slow
def test_vectors_that_are_scaled(tmp_path, random):
    check(tmp_path, Program(scale=True), random)


def test_beam_search_finds_what_a_search_of_all_translations_finds(tmp_path, random):
    """All translations of up to three words, in a beam that holds all of two."""
    program, longest = Program(attention="bahdanau", encoder_layers=2), 3
    arrays = program.draw(random)
    model, params, tables = read(tmp_path, program, arrays)
    words = range(len(TARGET_WORDS))
    scores = {}
    for first, second in itertools.product(words, words):
        log_probs = program.log_probs(arrays, [*SOURCES[0], END], [first, second, 0])
        if first == END:
            scores[(END,)] = log_probs[0, END]
        elif second == END:
            scores[(first, END)] = log_probs[0, first] + log_probs[1, END]
        else:
            begun = log_probs[0, first] + log_probs[1, second]
            scores |= {(first, second, word): begun + log_probs[2, word] for word in words}
    expected = sorted(scores.items(), key=lambda item: -item[1])[:4]
    step, carry = steps.from_sequence_to_sequence(
        model, params, tables, *source_batch([SOURCES[0]], longest=6)
    )
    search = BeamSearch(beam=len(words) ** 2, nbest=4, longest=longest, length_normalisation=0)
    found = search.search(step, np.array([END]), carry, boundary=END)
    for rank, (translation, log_prob) in enumerate(expected):
        assert found.words[0, rank, : len(translation)].tolist() == [*translation]
        assert float(found.log_prob[0, rank]) == pytest.approx(log_prob, abs=1e-5)


def test_attention_to_the_end_of_a_source_has_no_column(tmp_path, random):
    program = Program()
    model, params, tables = read(tmp_path, program, program.draw(random))
    batch = source_batch(SOURCES, longest=6)
    weights = jax.jit(model.attention_weights)(params, tables, *batch, words_before(TARGETS))
    assert weights.shape == (3, 4, 6)
    assert (np.asarray(weights[1, :, :5]) == 0).all() and (np.asarray(weights) > 0).any()
    assert (np.asarray(weights).sum(-1) < 1).all()


@pytest.mark.parametrize(
    "name",
    ["encoder.layers.0.feed_forward.weight", "decoder.output_layer.bias", "encoder.rnn.weight_l0"],
)
def test_a_model_with_another_parameter_is_refused(tmp_path, random, name):
    arrays = Program().draw(random) | {name: np.zeros((2, 3), np.float32)}
    with pytest.raises(UserError, match=f"attention in '{name}': give an encoder-decoder of LSTM"):
        read(tmp_path, Program(), arrays)


def test_a_model_without_attention_or_of_other_layers_is_refused(tmp_path, random):
    arrays = Program().draw(random)
    del arrays["decoder.attention.key_layer.weight"]
    with pytest.raises(UserError, match=r"in 'decoder\.attention\.key_layer\.weight': give"):
        read(tmp_path, Program(), arrays)
    arrays = Program().draw(random)
    arrays["decoder.rnn.weight_hh_l0"] = arrays["decoder.rnn.weight_hh_l0"][:16]
    with pytest.raises(UserError, match=r"have \[8\] cells and \[2\.0\] gates"):
        read(tmp_path, Program(), arrays)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("{src: fr, trg: en, lowercase: True}", ([True, True], "<unk>")),
        ("{src: {lang: fr}, trg: {lang: en, lowercase: True}}", ([True, False], "<unk>")),
        ("{src: fr, trg: en, special_symbols: {unk_token: UNK}}", ([False, False], "UNK")),
    ],
)
def test_configurations_of_both_forms(tmp_path, data, expected):
    (tmp_path / "config.yaml").write_text(f"data: {data}\nmodel: {{encoder: 3}}\n")
    model, lower_case, marks = joeynmt.read_configuration(str(tmp_path / "config.yaml"))
    assert (lower_case, marks["unk_token"]) == expected
    assert model == {"encoder": 3} and marks["eos_token"] == "</s>"


def test_a_model_of_characters_is_refused(tmp_path):
    (tmp_path / "config.yaml").write_text("data: {src: {level: char}, trg: {}}\nmodel: {}\n")
    with pytest.raises(UserError, match="its level is char: give a model of words"):
        joeynmt.read_configuration(str(tmp_path / "config.yaml"))
