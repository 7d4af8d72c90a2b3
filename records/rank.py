"""Measures the rank of heads' log-probability matrices: how many directions distributions span.

    python -m records.rank runs/ptb_softmax runs/ptb_mixture --file rank.png

Yang et al., "Breaking the softmax bottleneck" (2018), section 2. Let A[n, x] = log p(x | h_n) over
held-out contexts h_n and all words. The logits of a softmax with hidden states of D numbers have
rank D + 1 at most, and taking log Z from each row adds one: rank A <= D + 2, whatever the text. A
head that mixes distributions is not bound so.
"""

import dataclasses
import pathlib

import jax
import numpy as np

from zoo.data.batches import Batches
from zoo.errors import UserError
from zoo.lab.commands import options, program
from zoo.lab.commands.options import Option
from zoo.lab.comparison import plot_style, seeds
from zoo.lab.evaluation import leakage, passport
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.evaluation.run import Run, short_names
from zoo.lab.runs import output_files
from zoo.sources.source import Corpus


@dataclasses.dataclass(frozen=True, eq=False)
class Spectrum:
    """The singular values of a matrix of log-probabilities."""

    singular_values: np.ndarray  # of the [contexts, V] matrix, float64, largest first
    bound: int

    @property
    def rank(self) -> int:
        """Number of singular values above the matrix's float32 precision; the rest is rounding."""
        precision = np.finfo(np.float32).eps * max(self.bound, 1) ** 0.5
        return int((self.singular_values > self.singular_values[0] * precision).sum())


def log_prob_matrix(run: Run, corpus: Corpus, contexts: int) -> np.ndarray:
    """Computes log p of every word, float32 [contexts, V], after contexts spread over the text."""
    recipe, model = run.experiment.evaluation, run.experiment.language_model
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    boundary = run.lexicon.boundary_id
    batch_rows = Batches(text, recipe.batch, recipe.length, recipe.state, boundary)

    @jax.jit
    def states(params, tables, words, reset, carry):
        hidden, context, carry = model.states(params, tables, words, carry, reset=reset)
        return (hidden, context), carry

    @jax.jit
    def log_probs(params, tables, state):
        hidden, context = state
        return model.head.log_probs(model.head_params(params), tables, hidden, context=context)

    carry, pieces = model.initial_carry(batch_rows.batch), []
    for batch in batch_rows:
        batch_states, carry = states(run.params, run.tables, batch.words, batch.reset, carry)
        mask = batch.positions >= 0
        pieces.append(jax.tree.map(lambda x, mask=mask: np.asarray(x)[mask], batch_states))
    outputs = jax.tree.map(lambda *parts: np.concatenate(parts), *pieces)
    total = len(jax.tree.leaves(outputs)[0])
    positions = np.linspace(0, total - 1, min(contexts, total)).astype(int)
    return np.concatenate(
        [
            np.asarray(
                log_probs(run.params, run.tables["head"], jax.tree.map(lambda x: x[part], outputs))  # noqa: B023
            )
            for part in np.array_split(positions, max(1, len(positions) // 64))
        ]
    )


def spectrum(matrix: np.ndarray) -> Spectrum:
    """Computes the singular values of a matrix, by numpy in float64."""
    values = np.linalg.svd(np.asarray(matrix, np.float64), compute_uv=False)
    return Spectrum(values, len(values))


def draw(values: dict[str, np.ndarray], file: str | pathlib.Path, contexts: int):
    """Draws singular values of log-probability matrices, largest first, on a logarithmic scale."""
    title = "Singular values of the log-probability matrix"
    label = f"number of the singular value, of {contexts:,} contexts"
    with plot_style.picture(file, [title], label, "divided by the largest") as (axes,):
        numbers = seeds.number_recipes([*values])
        for number, (name, curve) in zip(numbers, values.items(), strict=True):
            axes.plot(range(1, len(curve) + 1), curve, color=plot_style.colour(number), label=name)
        # Smaller values are rounding of float32.
        axes.set(yscale="log", ylim=(1e-8, 1.5))
        axes.yaxis.set_major_formatter(plot_style.PLAIN)


def report(workdirs: list[str], contexts: int, split: str, file: str, log=output_files.show):
    """Prints rank and spectrum of each run on one split and draws them in one picture."""
    plot_style.check_file(file)
    curves = {}
    for name, workdir in zip(short_names(workdirs), workdirs, strict=True):
        run = Run.load(workdir)
        with jax.default_matmul_precision(PRECISION):
            corpus = run.read(split)
            matrix = log_prob_matrix(run, corpus, contexts)
        if not np.isfinite(matrix).all():
            raise UserError(
                f"{workdir} gives some words probability 0, and with log-probabilities that are "
                "not finite the matrix has no rank: leave this run out."
            )
        singular = spectrum(matrix)
        curves[f"{name}: rank {singular.rank}"] = (
            singular.singular_values / singular.singular_values[0]
        )
        model = run.experiment.language_model
        log(
            f"{name}: rank {singular.rank} of at most {singular.bound} ({contexts} contexts of "
            f"{split}, D = {model.core.output_size}, {type(model.head).__name__})"
        )
        if seen_texts := run.seen_texts:
            shared = leakage.overlap_by_role(corpus.sentences, seen_texts)
            for line in passport.warnings(shared.leak(split)):
                log(line)
    draw(curves, file, len(matrix))
    log(file)


OPTIONS = (
    Option("runs DIR ...", "folders of trained runs"),
    Option("--contexts N", "rows of the matrix", options.integer(1), default=1024),
    Option("--split NAME", "a split of the runs' data", default="validation"),
    Option("--file FILE", "the picture to write: .png, .pdf or .svg", default="rank.png"),
)


def main():
    """Runs the program."""
    parser = options.Parser(description=__doc__.partition("\n")[0])
    options.add_to(parser, OPTIONS, "rank")
    arguments = options.parse(parser)
    report(arguments.runs, arguments.contexts, arguments.split, arguments.file)


if __name__ == "__main__":
    program.program(main)
