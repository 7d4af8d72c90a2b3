"""Hypotheses a second: n-best lists as prefix trees, against padded batches of PyTorch's.

Real lists are scored by an LSTM of 2 x 256 cells with a softmax over the words of the lists, with
random parameters. PyTorch's batches have 32 hypotheses of similar length, cut after the longest,
and its softmax reads only real words. All sides compute the same scores.

    pip install torch==2.13.0
    python -m benchmarks.rescoring dev/nbest.txt
"""

import functools
import itertools

import jax
import numpy as np
import torch

from benchmarks import pytorch, same_device, timing
from zoo.cores import LSTM
from zoo.data import Corpus, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.lab.commands import program
from zoo.lab.evaluation import nbest, sentence_scores
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel

BOUNDARY, UNKNOWN, SIZE, ROWS = "</s>", "<unk>", 256, 32


def read(path, lists, words):
    """Reads the first lists: returns (their hypotheses as text, a lexicon of their words)."""
    nbest_lists = itertools.islice(nbest.read_lists(path)[1], lists)
    sentences = [h.words for nbest_list in nbest_lists for h in nbest_list.hypotheses]
    types = dict.fromkeys((BOUNDARY, UNKNOWN, *itertools.chain.from_iterable(sentences)))
    spelled = [*types, *(f"{number}" for number in range(max(0, words - len(types))))]
    lexicon = Lexicon(
        tuple(spelled), np.ones(len(spelled), np.int64), unknown=UNKNOWN, boundary=BOUNDARY
    )
    return Vocabulary().encode(Corpus(path, sentences), lexicon), lexicon


def padded_in_pytorch(params, text, rows, boundary, through):
    """Returns a function that scores hypotheses in PyTorch, in batches with similar lengths."""
    embedding = pytorch.embedding(params["embedding"])
    core = pytorch.recurrent("LSTM", params["core"])
    head = pytorch.linear(params["head"])

    @through
    def losses(hidden, targets):
        return torch.nn.functional.cross_entropy(head(hidden), targets, reduction="none")

    sentences = [
        pytorch.tensor(text.words[start : start + length])
        for start, length in zip(text.starts, text.lengths, strict=True)
    ]
    order = np.argsort(text.lengths, kind="stable")

    @torch.inference_mode()
    def score():
        sums = np.zeros(len(order))
        for first in range(0, len(order), rows):
            chosen = order[first : first + rows]
            targets = torch.nn.utils.rnn.pad_sequence(
                [sentences[sentence] for sentence in chosen], batch_first=True, padding_value=-1
            )
            words = torch.nn.functional.pad(targets[:, :-1], (1, 0), value=boundary)
            inside = targets >= 0
            hidden, _ = core(embedding(words.clamp(min=0)))
            word_losses = torch.zeros(targets.shape)
            word_losses[inside] = losses(hidden[inside], targets[inside])
            sums[chosen] = -word_losses.sum(dim=1, dtype=torch.float64).cpu().numpy()
        return sums

    return score


def main():
    """Prints a table, and hypotheses a second."""
    parser = timing.parser(__doc__, rounds=3, count=20, words=10_000)
    parser.add_argument("lists", help="n-best lists of Moses or Joshua")
    options = parser.parse_args()
    program.keep_memory()
    text, lexicon = read(options.lists, options.count, options.words)
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE, layers=2), Softmax())
    params = model.init(jax.random.key(0), lexicon)
    tables, boundary = model.evaluation_tables(lexicon), lexicon.boundary_id

    def tree():
        log_prob = sentence_scores.score_tree(model, params, tables, text, boundary)
        return np.add.reduceat(log_prob.astype(np.float64), text.starts)

    device = same_device.share_device(torch)
    build = functools.partial(padded_in_pytorch, params, text, ROWS, boundary)
    sides = {pytorch.ZOO: tree, **pytorch.eager_and_compiled(build)}
    tokens = int(text.lengths.sum())
    title = f"{len(text.starts):,} hypotheses, {tokens:,} tokens, V = {len(lexicon):,}, 2 x {SIZE}"
    times = pytorch.compare(f"{title}, {device}", sides, options.rounds, equal_scores)
    for name, seconds in times.items():
        print(f"  {name}: {len(text.starts) / seconds:,.0f} hypotheses a second")


def equal_scores(scores, reference):
    """Raises AssertionError unless log-probabilities of hypotheses are equal to float32."""
    np.testing.assert_allclose(scores, reference, rtol=1e-5)


if __name__ == "__main__":
    main()
