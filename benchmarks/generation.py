"""Words of generated or scored texts a second, against a loop in PyTorch.

An LSTM of 2 x 256 cells with a softmax over V = 10,000 and random parameters; a batch of texts, 50
words each, drawn at temperature 0.8 or most probable first (greedy). PyTorch draws in a loop under
`inference_mode` from cumulative probabilities, with one random number a text: a word costs a
twentieth of `torch.multinomial`, which draws V numbers. Greedy texts are equal on both sides; drawn
ones have the same mean log p, to within three standard errors.

    pip install torch==2.13.0
    python -m benchmarks.generation [--texts 32]

With `--score FILE`, the log p of a plain text's sentences under `models/english`, each from an
empty state: what `zoo evaluate` and `zoo score` compute of it, from reading to the passport or the
table. PyTorch sums the log p of 32 sentences at a time, sorted by length.

    python -m benchmarks.generation --score $ZOO_DATA/ptb/ptb.train.txt
"""

import collections
import functools
import itertools

import jax
import numpy as np
import torch

from benchmarks import pytorch, timing
from benchmarks.steps import random_model
from zoo.decoding import sample, steps
from zoo.lab.evaluation import scored_texts
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.score_stream import Stream
from zoo.lab.training import product_counts

SIZE, LAYERS, VOCABULARY, WORDS, BOUNDARY = 256, 2, 10_000, 50, 0
# Initial scale of the head: the most probable word has p of about 0.1.
SCALE = 8.0
TEMPERATURES = 0.8, 0.0
# Sentences of a batch of PyTorch's, and lines of a text by which the programs are compiled.
SENTENCES, FIRST_LINES = 32, 1000


def zoo_side(model, params, tables, texts, temperature):
    """Returns a function that draws texts and returns (words [texts, n], log p [texts, n])."""
    step, keys = steps.from_language_model(model, params, tables), iter(range(2**31))
    words, carry = np.full(texts, BOUNDARY, np.int32), model.initial_carry(texts)

    def run():
        key = jax.random.key(next(keys))
        return [*map(np.asarray, sample(step, words, carry, key, WORDS, temperature=temperature))]

    search = functools.partial(sample, step, words, carry, jax.random.key(0), WORDS)
    run.products = functools.partial(product_counts.count_products, search)
    return run


def torch_side(params, texts, temperature, through):
    """Returns the same in PyTorch."""
    embedding = pytorch.embedding(params["embedding"])
    core = pytorch.recurrent("LSTM", params["core"])
    head = pytorch.linear(params["head"])

    @through
    def distributions(hidden):
        log_probs = torch.log_softmax(head(hidden), dim=1)
        if not temperature:
            return log_probs, log_probs
        return log_probs, torch.softmax(log_probs / temperature, dim=1)

    @torch.inference_mode()
    def run():
        words, carry = torch.full((texts, 1), BOUNDARY), None
        tokens = torch.empty(texts, WORDS, dtype=torch.int64)
        log_prob = torch.empty(texts, WORDS)
        for position in range(WORDS):
            hidden, carry = core(embedding(words), carry)
            log_probs, probs = distributions(hidden[:, 0])
            if temperature:
                sums = probs.cumsum(dim=1)
                words = torch.searchsorted(sums, torch.rand(texts, 1) * sums[:, -1:])
            else:
                words = probs.argmax(dim=1, keepdim=True)
            tokens[:, position] = words[:, 0]
            log_prob[:, position] = log_probs.gather(1, words)[:, 0]
        return tokens.cpu().numpy(), log_prob.cpu().numpy()

    return run


def sides(texts, temperature):
    """Returns sides that draw texts at a temperature."""
    model, params, tables = random_model(SIZE, LAYERS, VOCABULARY, SCALE)
    build = functools.partial(torch_side, params, texts, temperature)
    zoo = zoo_side(model, params, tables, texts, temperature)
    return {**pytorch.eager_and_compiled(build), pytorch.ZOO: zoo}


def equal_texts(drawn, reference):
    """Raises AssertionError unless words are equal, and log p in float32."""
    np.testing.assert_array_equal(drawn[0], reference[0])
    np.testing.assert_allclose(drawn[1], reference[1], rtol=1e-4, atol=1e-5)


def equal_means(drawn, reference):
    """Raises AssertionError unless mean log p of a text's word is alike."""
    drawn, reference = (log_prob.mean(axis=1) for _, log_prob in (drawn, reference))
    error = np.sqrt(drawn.var() / len(drawn) + reference.var() / len(reference))
    np.testing.assert_allclose(drawn.mean(), reference.mean(), rtol=0, atol=3 * error)


def torch_scorer(run, path, through):
    """Returns a function that sums log p of a text's words in PyTorch, of its first lines."""
    lexicon, params = run.lexicon, run.params
    unknown, boundary = lexicon.ids[lexicon.unknown], lexicon.boundary_id
    embedding = pytorch.embedding(params["embedding"])
    core = pytorch.recurrent("LSTM", params["core"])
    head = pytorch.linear({**params["head"], "weights": params["embedding"]["table"]})
    functional, pad_sequence = torch.nn.functional, torch.nn.utils.rnn.pad_sequence
    cross_entropy = functools.partial(functional.cross_entropy, reduction="sum")
    loss = through(lambda hidden, words: cross_entropy(head(hidden), words))

    def ids(line):
        words = [lexicon.ids.get(word, unknown) for word in line.lower().split()]
        return torch.tensor([*words, boundary])

    @torch.inference_mode()
    def score(lines=None):
        with open(path, encoding="utf-8") as file:
            sentences = sorted(map(ids, itertools.islice(file, lines)), key=len)
        total = 0.0
        for first in range(0, len(sentences), SENTENCES):
            group = sentences[first : first + SENTENCES]
            words = pad_sequence(group, batch_first=True, padding_value=-1)
            before = functional.pad(words[:, :-1].clamp(min=0), (1, 0), value=boundary)
            is_word = words >= 0
            total -= loss(core(embedding(before))[0][is_word], words[is_word]).item()
        return total

    return score


def score_text(path, device):
    """Prints the table of a text, which each side scores once."""
    run = Run.load(timing.ROOT / "models" / "english")

    def evaluate(lines=None):
        (scored,) = scored_texts.score(run, [], path if lines is None else f"{path}[:{lines}]")
        record = scored.judgement().passport
        return -record.figures.log_perplexity * record.tokens

    def score(lines=None):
        stream = Stream(run, path if lines is None else f"{path}[:{lines}]")
        collections.deque(stream.lines(), maxlen=0)
        return stream.totals[3]

    sides = pytorch.eager_and_compiled(functools.partial(torch_scorer, run, path))
    times = {}
    for name, side in {**sides, "zoo evaluate": evaluate, "zoo score": score}.items():
        side(FIRST_LINES)
        begun = timing.clock()()
        log_prob = side()
        times[name] = timing.clock()() - begun
        print(f"  log p by {name}: {log_prob:,.1f}")
    print(timing.machine())
    timing.print_table(f"{path}, {device}", times, min(sides, key=times.__getitem__))


def main():
    """Prints a table a temperature, or the table of a text."""
    parser = timing.parser(__doc__, rounds=9, texts=32)
    parser.add_argument("--score", metavar="FILE", help="a text to score")
    options, device = pytorch.begin(parser)
    if options.score:
        score_text(options.score, device)
        return
    for temperature in TEMPERATURES:
        times = pytorch.compare(
            f"{options.texts} texts of {WORDS} words, temperature {temperature}, V = "
            f"{VOCABULARY:,}, LSTM {LAYERS} x {SIZE}, {device}",
            sides(options.texts, temperature),
            options.rounds,
            equal=equal_means if temperature else equal_texts,
        )
        for name, seconds in times.items():
            print(f"  {name}: {options.texts * WORDS / seconds:,.0f} words a second")


if __name__ == "__main__":
    main()
