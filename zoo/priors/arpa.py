r"""n-gram backgrounds from ARPA files, as KenLM, SRILM and others write them.

    \data\
    ngram 1=3
    ngram 2=1

    \1-grams:
    -0.7 <tab> le <tab> -0.3        log10 p(le), le, log10 of the back-off weight of the context le
    ...
    \2-grams:
    -0.2 <tab> le chat
    \end\

    p(x | c) = the listed value if c x is listed, backoff(c) p(x | c') otherwise.
"""

import dataclasses
import math
import re

import numpy as np

from zoo import files
from zoo.errors import UserError, check_least
from zoo.priors import backoff

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
_SECTION = re.compile(r"\\(\d+)-grams:$")
_COUNT = re.compile(r"ngram\s+(\d+)\s*=\s*(\d+)$")


@dataclasses.dataclass(frozen=True)
class Arpa(backoff.Backoff):
    """b(x | the last order - 1 words) of an ARPA file, restricted to the words of the lexicon.

    The lexicon's boundary is <s> in a context and </s> where it is predicted. Words that the file
    does not have share the probability of <unk>. n-grams of words that the lexicon does not have
    are left out, and their mass with them: the head normalises.

    Attributes:
      path: the file; read once, when the run begins. order: longest n-grams to take from it.
    """

    path: str
    order: int = 3

    def __post_init__(self):
        check_least(self, "priors.Arpa", order=2)

    def prepare(self, lexicon, texts):
        """The back-off tables; UserError names the line where the file is wrong."""
        found = files.find(self.path)
        listed = read(files.read_text(found), found)
        if len(listed) < self.order:
            raise UserError(
                f"{found} has n-grams up to {len(listed)}: set order to {len(listed)} or less."
            )
        unigrams, *longer = listed[: self.order]
        contexts = _in_lexicon(listed[: self.order - 1], lexicon, predicted=False)
        grams = _in_lexicon(longer, lexicon, predicted=True)
        unigram = self._unigram(unigrams, lexicon, found)

        arrays = [
            np.array(list(level), np.int64).reshape(-1, size)
            for size, level in enumerate(contexts, 1)
        ]
        before = [
            np.array([gram[:-1] for gram in level], np.int64).reshape(-1, size)
            for size, level in enumerate(grams, 1)
        ]
        trie = backoff.Trie([*arrays, *before], len(lexicon))
        weights = np.ones(len(trie))
        for level, nodes in zip(contexts, trie.nodes(), strict=False):
            weights[nodes] = [10**weight for _, weight in level.values()]
        known = [{(word,): p for word, p in enumerate(unigram)}]
        known += [{gram: 10**p for gram, (p, _) in level.items()} for level in grams]
        backoffs = [{gram: 10**weight for gram, (_, weight) in level.items()} for level in contexts]

        def probability(gram):
            if gram in known[len(gram) - 1]:
                return known[len(gram) - 1][gram]
            weight = backoffs[len(gram) - 2].get(gram[:-1], 1.0)
            return weight * probability(gram[1:])

        lists = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        for level, nodes in zip(grams, trie.nodes()[len(arrays) :], strict=True):
            shorter = np.array([probability(gram[1:]) for gram in level])
            listed = np.array([10**p for p, _ in level.values()])
            words = np.array([gram[-1] for gram in level], np.int64)
            lists.append((nodes, words, listed - weights[nodes] * shorter))
        columns = (np.concatenate(column) for column in zip(*lists, strict=True))
        return backoff.prepare(unigram, trie, weights, *columns)

    def _unigram(self, unigrams, lexicon, found):
        """p(x), [V]: unknown words share the probability of <unk>."""
        names = [END if word == lexicon.boundary else word for word in lexicon.words]
        there = np.array([(name,) in unigrams and name != UNKNOWN for name in names])
        if there.all():
            return np.array([10 ** unigrams[(name,)][0] for name in names])
        if (UNKNOWN,) not in unigrams:
            raise UserError(
                f"{found} has neither {lexicon.words[int(np.argmin(there))]!r}, which is in the "
                f"lexicon, nor {UNKNOWN}: take a model that has one of them."
            )
        share = 10 ** unigrams[(UNKNOWN,)][0] / (~there).sum()
        return np.array(
            [
                10 ** unigrams[(name,)][0] if known else share
                for name, known in zip(names, there, strict=True)
            ]
        )


def _in_lexicon(levels, lexicon, predicted):
    """n-grams as tuples of ids, those with words outside the lexicon left out.

    Args:
      predicted: whether the last word is one that is predicted, or the whole a context.
    """
    ids = {word: place for place, word in enumerate(lexicon.words) if word != lexicon.boundary}
    context, last = dict(ids), dict(ids)
    if lexicon.boundary is not None:
        context[BEGIN] = last[END] = lexicon.ids[lexicon.boundary]
    final = last if predicted else context
    return [
        {
            (*(context[word] for word in gram[:-1]), final[gram[-1]]): values
            for gram, values in level.items()
            if gram[-1] in final and all(word in context for word in gram[:-1])
        }
        for level in levels
    ]


def read(text: str, path) -> list[dict[tuple[str, ...], tuple[float, float]]]:
    """For each order {n-gram: (log10 probability, log10 back-off weight, 0 if there is none)}.

    Raises:
      UserError: with the path and the line where the form is wrong.
    """
    promised, levels, order, ended = {}, [], None, False

    def fail(number, what):
        raise UserError(f"{path}, line {number}: {what}.")

    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or ended:
            continue
        if order is None and not promised and not line.startswith(("ngram", "\\1-grams")):
            continue  # whatever stands before the counts
        if match := _COUNT.match(line):
            promised[int(match[1])] = int(match[2])
        elif match := _SECTION.match(line):
            order = int(match[1])
            if order != len(levels) + 1 or order not in promised:
                fail(number, f"the {order}-grams come out of order or were not announced")
            levels.append({})
        elif line == "\\end\\":
            ended = True
        elif order is None:
            fail(number, f"{line!r} is neither 'ngram N=COUNT' nor '\\N-grams:'")
        else:
            probability, *rest = line.split()
            if len(rest) not in (order, order + 1):
                fail(number, f"a {order}-gram has {order} words between its two numbers")
            try:
                weight = float(rest[order]) if len(rest) > order else 0.0
                probability = float(probability)
            except ValueError:
                fail(number, f"{line!r} does not begin with a number, or end with one")
            if not probability <= 0 or not math.isfinite(weight):
                fail(number, f"log10 of a probability is {probability}, of a weight {weight}")
            levels[-1][tuple(rest[:order])] = (probability, weight)
    if not ended:
        raise UserError(f"{path} has no \\end\\ at its end: it is cut short, or no ARPA file.")
    for order, many in promised.items():
        if order > len(levels) or len(levels[order - 1]) != many:
            there = len(levels[order - 1]) if order <= len(levels) else 0
            raise UserError(f"{path} announces {many} {order}-grams and has {there}.")
    return levels
