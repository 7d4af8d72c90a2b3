"""Every head and core, compiled for accelerators that are not here, by pmap and by a mesh.

    python -m tests.heads.compiled_layouts            # on eight v5e
    python -m tests.heads.compiled_layouts H100:8

prints the table of docs/scaling.md: what a chip holds and sends in a training step. It needs the
compiler of the accelerator, see `zoo.lab.training.compile_for`.
"""

import sys

import jax

from tests.heads.measured_layouts import HEADS, lexicon
from zoo import cores, heads
from zoo.data import Micro
from zoo.embeddings import Lookup
from zoo.experiment import Experiment, Parallel, Training
from zoo.lab.training import compile_for, compiled_programs
from zoo.lab.training.compile_for import Target
from zoo.models import LanguageModel
from zoo.optimizers import SGD

ROWS, LENGTH, SIZE, VOCABULARY = 64, 16, 128, 32768
CORES = {
    "LSTM": cores.LSTM(size=SIZE),
    "GRU": cores.GRU(size=SIZE),
    "Elman": cores.Elman(size=SIZE),
    "n-gram": cores.NGram(size=SIZE),
    "last words": cores.LastWords(cores.GRU(size=SIZE), words=2),
}
MODELS = {name: (cores.LSTM(size=SIZE), head) for name, head in HEADS.items()}
MODELS |= {f"softmax, {name}": (core, heads.Softmax()) for name, core in CORES.items()}
LAYOUTS = {"pmap": 1, "mesh 2 x 4": 4, "mesh 1 x 8": 8}


def compile_step(name: str, target: Target, model: int):
    """The training step of a model of MODELS, on a mesh if words lie on several devices."""
    core, head = MODELS[name]
    size = VOCABULARY + 1 if name == "Huffman" else VOCABULARY
    parts = LanguageModel(embedding=Lookup(SIZE), core=core, head=head)
    training = Training(batch=ROWS, length=LENGTH, optimizer=SGD(0.1))
    recipe = Experiment(data=Micro(), model=parts, training=training, parallel=Parallel(model))
    step, devices = compile_for.place_step(recipe, lexicon(size), target)
    return compile_for.lower_step(step, devices).compile(target.options)


def count_sent(program) -> tuple[float, int]:
    """Bytes that a chip sends in a step, and how many collectives run in loops."""
    collectives, _ = compiled_programs.read(program.as_text())
    sent = sum(each.sent * each.times for each in collectives)
    return sent, sum(each.times for each in collectives if each.in_loop)


def cells(name: str, target: Target) -> list[str]:
    """What a chip holds, sends and sends in loops, in each layout."""
    texts = []
    for count in LAYOUTS.values():
        try:
            program = compile_step(name, target, count)
        except Exception as error:  # what the compiler cannot do is a cell of the table
            texts.append(repr(error).partition("\\n")[0][:60])
            continue
        sent, in_loops = count_sent(program)
        stats = program.memory_analysis()
        memory = stats.argument_size_in_bytes + stats.temp_size_in_bytes
        texts.append(f"{memory / 1e6:,.0f}; {sent / 1e6:,.1f}; {in_loops:,}")
    return texts


def main(text: str = "v5e:2x4"):
    target = Target.from_text(text)
    print(f"| MB held; MB sent; runs in loops, {text} | {' | '.join(LAYOUTS)} |")
    print(f"|---|{'---|' * len(LAYOUTS)}")
    for name in MODELS:
        print(f"| {name} | {' | '.join(cells(name, target))} |", flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    main(*sys.argv[1:])
