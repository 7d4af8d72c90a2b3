"""Items of the machine and of decoding: rates of products, beam search, drawn texts."""

import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import beam_search, drawn_texts
from benchmarks.on_gpu.rows import Rows, Work
from zoo.decoding import BeamSearch, beam
from zoo.decoding.batched_search import translate

CALLS = 10  # of one product before the wait
LONGEST = 60  # words of a hypothesis


def machine(rows: Rows):
    """Measures rates of products and of memory, and the time to start a program."""
    rows.write(case="device", side=rows.device_name)
    for size in (16,) if rows.small else (4096, 8192):
        for precision in ("float32", "tf32", "bfloat16"):
            narrow = precision == "bfloat16"
            sides = {
                "XLA": functools.partial(_product, size, narrow),
                "PyTorch": functools.partial(_torch_product, rows, size, narrow),
            }
            work = Work(2.0 * size**3, "TFLOP/s", 1e12)
            rows.case(f"product of {size:,}", sides, precision, work, CALLS)
    numbers = 1_000 if rows.small else 1 << 28
    work = Work(8.0 * numbers, "GB/s", 1e9)
    rows.case("numbers read and written", _added(rows, numbers), work=work, calls=CALLS)
    rows.case("start of a program, and the wait for it", _added(rows, 1))


def _repeated(function, *arguments, wait=lambda result: None, calls=CALLS):
    def side():
        for _ in range(calls):
            result = function(*arguments)
        wait(result)

    return side


def _product(size, narrow):
    dtype = jnp.bfloat16 if narrow else jnp.float32
    keys = jax.random.split(jax.random.key(0))
    matrices = tuple(jax.random.normal(key, (size, size), dtype) for key in keys)
    product = jax.jit(jnp.matmul).lower(*matrices).compile()
    return _repeated(product, *matrices, wait=jax.block_until_ready)


def _torch_product(rows, size, narrow):
    module = rows.pytorch()
    dtype = module.bfloat16 if narrow else module.float32
    matrices = (module.randn(size, size, dtype=dtype) for _ in range(2))
    return _repeated(module.matmul, *matrices, wait=lambda result: result[-1, -1].item())


def _added(rows, numbers) -> dict:
    """Returns builders of x + 1, which reads and writes all numbers."""
    calls = CALLS if numbers > 1 else 1

    def ours():
        x = jax.random.normal(jax.random.key(0), (numbers,))
        add = jax.jit(lambda x: x + 1).lower(x).compile()
        return _repeated(add, x, wait=jax.block_until_ready, calls=calls)

    def added_by_pytorch():
        x = rows.pytorch().randn(numbers)
        return _repeated(x.add, 1, wait=lambda result: result[-1].item(), calls=calls)

    return {"XLA": ours, "PyTorch": added_by_pytorch}


def decoding(rows: Rows):
    """Measures a beam of 12 with the step's rows at a time, and drawn texts."""
    _beam(rows, 2 if rows.small else 96)
    for texts in (3,) if rows.small else (32, 256):
        for temperature in (0.8, 0.0):
            _texts(rows, texts, temperature)


def _beam(rows, sentences):
    params, start = beam_search.starting()
    lengths = np.random.default_rng(0).integers(4, 24, size=sentences)
    sources = [[1] * length for length in lengths]
    settings = BeamSearch(beam_search.BEAM, longest=LONGEST)

    def zoo(count):
        inner = beam._search.__wrapped__
        search = jax.jit(
            lambda *arguments, **static: inner(*arguments, **static),
            static_argnames=("settings", "boundary"),
        )

        def side():
            with mock.patch.multiple(beam, ROWS=count, _search=search):
                translate(
                    start, sources, settings, boundary=beam_search.BOUNDARY, batch=beam_search.BATCH
                )

        return side

    def opponent(module, through):
        return module.torch_side(params, lengths, beam_search.BATCH, through)

    sides = {
        **rows.eager_and_compiled("pytorch_beam", opponent),
        "zoo, 64 rows": lambda: zoo(64),
        "zoo, 384 rows": lambda: zoo(384),
    }
    name = f"beam of {beam_search.BEAM}, {sentences} sentences, 2 x LSTM-{beam_search.SIZE}"
    work = Work(sentences, "sentences/s")
    rows.case(f"{name}, V = {beam_search.VOCABULARY:,}", sides, work=work)


def _texts(rows, texts, temperature):
    model, params, tables = drawn_texts.starting()

    def opponent(module, through):
        return module.torch_side(params, texts, temperature, through)

    sides = {
        **rows.eager_and_compiled("generation", opponent),
        "zoo": lambda: drawn_texts.zoo_side(model, params, tables, texts, temperature),
    }
    name = f"{texts} texts of {drawn_texts.WORDS} words, temperature {temperature}"
    work = Work(texts * drawn_texts.WORDS, "words/s")
    rows.case(f"{name}, 2 x LSTM-{drawn_texts.SIZE}", sides, work=work)
