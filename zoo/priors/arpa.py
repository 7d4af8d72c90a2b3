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
import pathlib
import re
from collections.abc import Iterable

import numpy as np

from zoo.errors import UserError, check_least, quote
from zoo.lexicon import Lexicon
from zoo.priors import backoff
from zoo.priors.prior import Texts
from zoo.sources import files

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
# log10 of a probability of 0, as ARPA files write it.
ZERO = -99.0
# log10 p of <unk> in a file without it, as in KenLM.
FLOOR = -100.0
# At most 18 digits: Python refuses to read numbers of thousands of digits.
_SECTION = re.compile(r"\\([0-9]{1,18})-grams:")
_COUNT = re.compile(r"ngram[ \t]+([0-9]{1,18})[ \t]*=[ \t]*([0-9]{1,18})")
_BLANK = " \t"  # a no-break space may be part of a word
_BLANKS = re.compile(r"[ \t]+")


@dataclasses.dataclass(frozen=True)
class Arpa(backoff.Backoff):
    """b(x | the last order - 1 words) of an ARPA file, restricted to the words of the lexicon.

    The lexicon's boundary is `<s>` in a context and `</s>` where it is predicted. Words of the
    lexicon that are not in the file share the unigram probability of `<unk>`; longer n-grams with
    `<unk>` apply only to the lexicon's own unknown word. A file without `<unk>` gives it 10^-100,
    as in KenLM. n-grams with words that are not in the lexicon are left out, and their mass with
    them: the head normalises.

    Attributes:
      path: the file, perhaps compressed with gzip; read once, when the run begins.
      order: longest n-grams to take from it.

    Example:
      >>> entries = ["-0.6\\t</s>", "-0.6\\tthe\\t-0.3", "-0.6\\tcat", "-0.6\\tsat", "-99\\t<s>"]
      >>> lines = ["\\\\data\\\\", "ngram 1=5", "ngram 2=1", "", "\\\\1-grams:", *entries, ""]
      >>> lines += ["\\\\2-grams:", "-0.1\\tthe cat", "", "\\\\end\\\\", ""]
      >>> _ = pathlib.Path("two.arpa").write_text("\\n".join(lines))
      >>> background = priors.Arpa("two.arpa", order=2)
      >>> lexicon = with_background(lexicon, background, [])
      >>> predict(background, lexicon, ["the"])  # 10^-0.1 the cat, else 10^-0.9
      {'</s>': 13, 'the': 13, 'cat': 79, 'sat': 13}
    """

    path: str
    order: int = 3

    def __post_init__(self):
        check_least(self, "priors.Arpa", order=2)

    def prepare(self, lexicon: Lexicon, texts: Texts) -> dict[str, np.ndarray]:
        """Reads the file and returns its back-off tables; see `backoff.prepare`."""
        file = files.find(self.path)
        levels = read(files.read_text(file), file)
        if len(levels) == 1:
            raise UserError(
                f"{file} has unigrams only: give a file with longer n-grams, or take "
                "vocabulary.background=Unigram."
            )
        if len(levels) < self.order:
            raise UserError(
                f"{file} has n-grams up to {len(levels)}: set order to {len(levels)} or less."
            )
        unigrams, *longer = levels[: self.order]
        contexts = _in_lexicon(levels[: self.order - 1], lexicon, predicted=False)
        grams = _in_lexicon(longer, lexicon, predicted=True)
        log_unigram = self._log_unigram(unigrams, lexicon, file)

        context_ids, gram_ids = (
            [np.array([*level], np.int64).reshape(-1, size) for size, level in enumerate(ngrams, n)]
            for n, ngrams in ((1, contexts), (2, grams))
        )
        trie_contexts = [*context_ids, *(level[:, :-1] for level in gram_ids)]
        trie, trie_nodes = _trie(trie_contexts, self.order, len(lexicon))
        weights = np.zeros(len(trie))
        for level, nodes in zip(contexts, trie_nodes, strict=False):
            weights[nodes] = [weight for _, weight in level.values()]
        in_nats = np.log(10)
        lists = []
        for nodes, ids, level in zip(trie_nodes[len(contexts) :], gram_ids, grams, strict=True):
            rank = np.lexsort((ids[:, -1], nodes))
            values = np.array([p for p, _ in level.values()]) * in_nats
            lists.append((nodes[rank], ids[rank, -1], values[rank]))
        arrays = {"log_unigram": log_unigram * in_nats, "log_backoff": weights * in_nats}
        return backoff.prepare(trie, "list_log_prob", lists, **arrays)

    def _log_unigram(self, unigrams, lexicon, file):
        """Returns log10 p(x), [V]; words that are not in the file share <unk>'s probability."""
        names = [END if word == lexicon.boundary else word for word in lexicon.words]
        names = [name if (name,) in unigrams else UNKNOWN for name in names]
        log10_by_name = {name: unigrams.get((name,), (FLOOR, 0.0))[0] for name in names}
        absent = [w for n, w in zip(names, lexicon.words, strict=True) if n == UNKNOWN]
        if absent and log10_by_name[UNKNOWN] == FLOOR:
            if lexicon.boundary in absent:
                raise UserError(
                    f"{file} has neither {END}, which ends sentences of the lexicon, nor "
                    f"{UNKNOWN}: take a model of whole sentences, or vocabulary.boundary=none."
                )
            files.warn_once(
                f"{file} has no {UNKNOWN}: words of the lexicon that it does not have "
                f"({len(absent):,}: {quote(absent, 3)}) share log10 p = {FLOOR:g}, as in KenLM"
            )
        for name, word in zip(names, lexicon.words, strict=True):
            if log10_by_name[name] == ZERO:
                raise UserError(
                    f"{file} gives no mass (log10 p({name}) is {ZERO}) to {word!r}, which is in "
                    "the lexicon: take a model that can predict it, or a vocabulary without it."
                )
        return np.array(
            [log10_by_name[n] - (math.log10(len(absent)) if n == UNKNOWN else 0) for n in names]
        )


def _in_lexicon(levels, lexicon, predicted):
    """Returns the n-grams as tuples of ids, without n-grams of words outside the lexicon."""
    ids = {word: word_id for word_id, word in enumerate(lexicon.words) if word != lexicon.boundary}
    context, last = dict(ids), dict(ids)
    if lexicon.boundary is not None:
        context[BEGIN] = last[END] = lexicon.ids[lexicon.boundary]
    if lexicon.unknown is not None:
        context[UNKNOWN] = last[UNKNOWN] = lexicon.ids[lexicon.unknown]
    final = last if predicted else context
    return [
        {
            (*(context[word] for word in gram[:-1]), final[gram[-1]]): values
            for gram, values in level.items()
            if gram[-1] in final and all(word in context for word in gram[:-1])
        }
        for level in levels
    ]


def _trie(contexts, order, vocabulary):
    """Returns the trie of all contexts, and the nodes of the contexts of each array."""
    paddings = (((0, 0), (order - 1 - array.shape[1], 0)) for array in contexts)
    padded = [np.pad(*pair, constant_values=-1) for pair in zip(contexts, paddings, strict=True)]
    trie = backoff.Trie(np.concatenate(padded).T[::-1], vocabulary)
    nodes = np.empty_like(trie.nodes)
    nodes[trie.order] = trie.nodes
    return trie, np.split(nodes, np.cumsum([len(array) for array in contexts])[:-1])


def read(text: str, path: pathlib.Path | str) -> list[dict[tuple[str, ...], tuple[float, float]]]:
    """Reads an ARPA file, values below -99 as -99, so that log-probabilities are finite."""
    announced_counts = {}
    levels: list = []
    lines = {}
    begun = False
    ended = False
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip(_BLANK)
        if not line or ended or not begun:
            begun |= line == "\\data\\"  # whatever stands before it
        elif match := _COUNT.fullmatch(line):
            announced_counts[int(match[1])], lines[int(match[1])] = int(match[2]), number
        elif match := _SECTION.fullmatch(line):
            order = int(match[1])
            if order != len(levels) + 1 or order not in announced_counts:
                _fail(path, number, f"the {order}-grams come out of order or were not announced")
            levels.append({})
            lines[order] = number
        elif line == "\\end\\":
            ended = True
        elif not levels:
            _fail(path, number, f"{line!r} is neither 'ngram N=COUNT' nor '\\N-grams:'")
        else:
            gram, values = _entry(line, len(levels), path, number)
            if gram in levels[-1]:
                also = ", as <unk> or <UNK>: keep one" if UNKNOWN in gram else ""
                _fail(path, number, f"{' '.join(gram)!r} is there a second time{also}")
            levels[-1][gram] = values
    if not begun:
        raise UserError(
            f"{path} is not an ARPA file: it has no line '\\data\\'. Give an n-gram model as KenLM "
            "and SRILM write them."
        )
    if not ended:
        raise UserError(
            f"{path} has no \\end\\ at its end: it is cut short, or not an ARPA file. Give the "
            "whole file."
        )
    if not levels and not any(announced_counts.values()):
        raise UserError(f"{path} has no n-grams: give a model with some.")
    for order, count in announced_counts.items():
        size = len(levels[order - 1]) if order <= len(levels) else 0
        if size != count:
            _fail(path, lines[order], f"the file announces {count} {order}-grams and has {size}")
    return levels


class SentenceScorer:
    """Scores of sentences by the n-grams of an ARPA file; unlike `Arpa` it needs no lexicon."""

    def __init__(self, path: str):
        self.levels = read(files.read_text(files.find(path)), path)
        if (END,) not in self.levels[0]:
            raise UserError(f"{path} has no {END}, which ends sentences: give a model that has it.")

    def score(self, texts: Iterable[str]) -> np.ndarray:
        """Computes (log p(words </s> | <s>), nats, words, unknown words), float64 [3, texts]."""
        rows = []
        for text in texts:
            words = [word if (word,) in self.levels[0] else UNKNOWN for word in text.split()]
            sentence = (BEGIN, *words, END)
            starts = range(2 - len(self.levels), len(words) + 3 - len(self.levels))
            grams = (sentence[max(0, start) : start + len(self.levels)] for start in starts)
            log_10 = math.fsum(map(self._log10, grams))
            rows.append((math.log(10) * log_10, len(words), words.count(UNKNOWN)))
        return np.array(rows).reshape(-1, 3).T

    def _log10(self, gram):
        """Computes log10 p of the last word after the others."""
        level = self.levels[len(gram) - 1]
        if gram in level or len(gram) == 1:
            return level.get(gram, (FLOOR, 0.0))[0]
        weight = self.levels[len(gram) - 2].get(gram[:-1], (0.0, 0.0))[1]
        return weight + self._log10(gram[1:])


def _fail(path, number, message):
    raise UserError(f"{path}, line {number}: {message}.")


def _entry(line, order, path, number):
    """Parses a line to (n-gram, (log10 probability, log10 back-off weight))."""
    first, *fields = _BLANKS.split(line)
    if len(fields) not in (order, order + 1):
        _fail(path, number, f"a {order}-gram has {order} words between its two numbers")
    try:
        weight = float(fields[order]) if len(fields) > order else 0.0
        probability = float(first)
    except ValueError:
        _fail(path, number, f"{line!r} does not begin with a number, or end with one")
    if not probability <= 0 or not weight <= -ZERO:
        _fail(path, number, f"log10 of a probability is {probability}, of a weight {weight}")
    # Some programs write <UNK>; KenLM reads both as one word, too.
    words = (UNKNOWN if word == UNKNOWN.upper() else word for word in fields[:order])
    return tuple(words), (max(probability, ZERO), max(weight, ZERO))
