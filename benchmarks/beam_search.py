"""Beam search in sentences a second, against a beam in a Python loop over the same jitted step.

A beam of 12, an LSTM of 2 x 512 cells with a softmax over V = 10,000, sentences of 4 to 24 words,
as in Multi30k. A language model with random parameters makes the steps; its distributions are as
peaked as a trained translator's, and it ends a sentence after as many words as its source has. The
loop decodes one sentence at a time, or 32 side by side. It selects and reorders hypotheses with
numpy, and stops as early as the jitted search. All sides find the same scores.

    python -m benchmarks.beam_search
    python -m benchmarks.beam_search --sentences 32 --beams 12 50 100 200 300  # and of lists
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from zoo.cores import LSTM
from zoo.decoding import BeamSearch, steps
from zoo.decoding.batched_search import translate
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel

VOCABULARY, SIZE, LAYERS, BEAM, BATCH, BOUNDARY = 10_000, 512, 2, 12, 32, 0
# Initial scales of the embedding and the head: the most probable word has p of about 0.5.
SCALES = 1.0, 12.0
# log p of the boundary before and after the given length.
BEFORE, AFTER = math.log(1e-6), math.log(0.9)


def ending(step, words, carry):
    """Replaces the boundary's probability in a step by one that depends on the length left."""
    carry, remaining = carry
    log_probs, carry = step(words, carry)
    end = jnp.where(remaining > 0, BEFORE, AFTER)[:, None]
    log_scale = jnp.log1p(-jnp.exp(end)) - jnp.log1p(-jnp.exp(log_probs[:, BOUNDARY, None]))
    at_boundary = jnp.arange(VOCABULARY)[None] == BOUNDARY
    return jnp.where(at_boundary, end, log_probs + log_scale), (carry, remaining - 1)


def starting():
    """Returns the model's parameters, and start(sources, lengths) -> (step, carry), as for a
    translator."""
    embedding, head = Lookup(SIZE, initial_scale=SCALES[0]), Softmax(initial_scale=SCALES[1])
    model = LanguageModel(embedding, LSTM(SIZE, layers=LAYERS), head)
    lexicon = Lexicon(tuple(map(str, range(VOCABULARY))), np.ones(VOCABULARY, np.int64))
    params = model.init(jax.random.key(0), lexicon)
    inner = steps.from_language_model(model, params, model.tables(lexicon))
    step = jax.tree_util.Partial(ending, inner)

    def start(sources, lengths):
        return step, (model.initial_carry(len(sources)), jnp.asarray(lengths))

    return params, start


@jax.jit
def one_step(step, words, carry):
    return step(words, carry)


@jax.jit
def reordered(carry, rows):
    return jax.tree.map(lambda leaf: leaf[rows], carry)


def in_a_loop(start, lengths, longest):
    """Returns the best score of each sentence, decoded side by side in a Python loop."""
    step, carry = start(np.zeros((len(lengths), 1), np.int32), np.asarray(lengths, np.int32))
    count = len(lengths)
    carry = jax.tree.map(lambda leaf: jnp.repeat(leaf, BEAM, axis=0), carry)
    open_scores = np.full((count, BEAM), -np.inf, np.float32)
    open_scores[:, 0] = 0
    last = np.full(count * BEAM, BOUNDARY, np.int32)
    hypotheses = [[[] for _ in range(BEAM)] for _ in lengths]
    best = np.full(count, -np.inf, np.float32)
    for _ in range(longest):
        log_probs, carry = one_step(step, last, carry)
        scores = np.asarray(log_probs).reshape(count, BEAM, -1) + open_scores[..., None]
        rows = np.zeros((count, BEAM), np.int64)
        for sentence in range(count):
            flat = scores[sentence].ravel()
            # At most one end per hypothesis.
            chosen = np.argpartition(-flat, 2 * BEAM)[: 2 * BEAM]
            chosen = chosen[np.argsort(-flat[chosen])]
            ends = chosen % VOCABULARY == BOUNDARY
            ended = chosen[:BEAM][ends[:BEAM]]
            best[sentence] = max(best[sentence], flat[ended].max(initial=-np.inf))
            chosen = chosen[~ends][:BEAM]
            open_scores[sentence] = flat[chosen]
            parents, words = np.divmod(chosen, VOCABULARY)
            hypotheses[sentence] = [
                hypotheses[sentence][parent] + [int(word)]
                for parent, word in zip(parents, words, strict=True)
            ]
            rows[sentence] = sentence * BEAM + parents
            last[sentence * BEAM : (sentence + 1) * BEAM] = words
        if (open_scores.max(axis=1) <= best).all():
            break
        carry = reordered(carry, rows.ravel())
    return best.tolist()


def main():
    """Prints two tables."""
    parser = timing.parser(__doc__, rounds=9)
    parser.add_argument("--sentences", type=int, default=64, help="sentences of the comparison")
    parser.add_argument("--beams", type=int, nargs="*", default=(), help="widths of lists to time")
    options = parser.parse_args()
    lengths = np.random.default_rng(0).integers(4, 24, size=4 * options.sentences)
    _, start = starting()

    def jitted(count, beam=BEAM, nbest=1):
        settings = BeamSearch(beam, nbest, longest=60)
        sources = [[1] * length for length in lengths[:count]]
        translations = translate(start, sources, settings, boundary=BOUNDARY, batch=BATCH)
        return [hypotheses[0].score for hypotheses in translations]

    def loop(side_by_side):
        # Sorted by length, as in `translate`.
        sorted_lengths = np.sort(lengths[: options.sentences])
        best_scores = []
        for first in range(0, len(sorted_lengths), side_by_side):
            best_scores += in_a_loop(start, sorted_lengths[first : first + side_by_side], 60)
        return best_scores

    sides = {
        "jitted": functools.partial(jitted, options.sentences),
        "loop, sentence by sentence": functools.partial(loop, 1),
        f"loop, {BATCH} sentences side by side": functools.partial(loop, BATCH),
    }
    scores = [sorted(side()) for side in sides.values()]
    for side_scores in scores[1:]:
        np.testing.assert_allclose(side_scores, scores[0], rtol=1e-4)
    times = timing.medians(sides, options.rounds)
    title = (
        f"beam of {BEAM}, {options.sentences} sentences, V = {VOCABULARY:,}, LSTM {LAYERS} x {SIZE}"
    )
    timing.print_table(title, times, "jitted")
    for name, seconds in times.items():
        print(f"  {name}: {options.sentences / seconds:.1f} sentences a second")
    counts = [options.sentences * times for times in (1, 2, 4)]
    sides = {f"{count} sentences": functools.partial(jitted, count) for count in counts}
    times = timing.medians(sides, max(3, options.rounds // 3))
    print("milliseconds a sentence, jitted")
    for count, (name, seconds) in zip(counts, times.items(), strict=True):
        print(f"  {name}: {1e3 * seconds / count:.2f}")
    sides = {
        f"lists of a beam of {beam}": functools.partial(jitted, options.sentences, beam, beam)
        for beam in options.beams
    }
    for name, seconds in timing.medians(sides, max(3, options.rounds // 3)).items():
        print(f"  {name}, {options.sentences} sentences: {1e3 * seconds / options.sentences:.2f}")


if __name__ == "__main__":
    main()
