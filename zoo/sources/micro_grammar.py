"""Invented words, and left-to-right deterministic grammars with exactly computed entropies.

A rule rewrites the symbol on top of a stack as one word followed by a string of symbols, or as the
empty string. A symbol has at most one rule per word, and a symbol that may vanish never
starts with a word that may follow it (the LL(1) condition, which a test checks for the language).
A prefix therefore determines the stack, a sentence has one derivation, and every word is one
draw from an explicit distribution given the words before it.

`zoo.sources.micro` builds its language from these parts.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from zoo.errors import UserError

Symbol = tuple[str, ...]

ONSETS = ("b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "j", "l", "m", "n", "p", "pl", "r", "s",
          "t", "tr", "v")  # fmt: skip
NUCLEI = ("a", "e", "i", "o", "u", "ai", "au", "ou")
CODAS = ("", "", "", "", "r", "l", "n")

# The key, among the options of a symbol, of the rule that rewrites it as the empty string.
VANISH = ""


class WordForms:
    """The word forms of the language, invented from `seed`.

    `features[form]` gives the features of a form, and `other[form][name]` the form of the same
    lemma that differs in the feature `name` alone ("Gender" or "Number").
    """

    def __init__(self, seed: int):
        self.features: dict[str, tuple[str, ...]] = {}
        self.other: dict[str, dict[str, str]] = defaultdict(dict)
        self._generator = np.random.default_rng((seed, 0))

    def add(self, forms: Iterable[str], *features: str) -> list[str]:
        """Adds forms that share `features`; raises ValueError if one has an analysis already."""
        forms = list(forms)
        for form in forms:
            if form in self.features:
                raise ValueError(f"the form {form!r} has two analyses")
            self.features[form] = features
        return forms

    def paradigm(self, forms: Mapping[Any, str], *features: str) -> None:
        """Adds the forms of a lemma; each key is the inflection, e.g. ("Number:Sing",)."""
        for inflection, form in forms.items():
            self.add([form], *features[:1], *inflection, *features[1:])
            for rival, twin in forms.items():
                changed = [a for a, b in zip(inflection, rival, strict=True) if a != b]
                if len(changed) == 1 and not changed[0].startswith("Tense"):
                    self.other[form][changed[0].split(":")[0]] = twin

    def invent(
        self,
        count: int,
        tables: Sequence[Mapping[Any, str]],
        *features: str,
        capital: bool = False,
    ) -> dict[tuple[str, ...], list[str]]:
        """Invents `count` lemmas, drawing for each a new stem and one of the tables of endings."""
        forms = defaultdict(list)
        while count:
            stem = self._stem().capitalize() if capital else self._stem()
            table = tables[int(self._generator.integers(len(tables)))]
            lemma = {inflection: stem + ending for inflection, ending in table.items()}
            if any(form in self.features for form in lemma.values()):
                continue
            self.paradigm(lemma, *features)
            for inflection, form in lemma.items():
                forms[inflection].append(form)
            count -= 1
        return forms

    def _stem(self) -> str:
        parts = []
        for _ in range(1 if self._generator.random() < 0.7 else 2):
            for choices in (ONSETS, NUCLEI, CODAS):
                parts.append(choices[self._generator.integers(len(choices))])
        return "".join(parts) + ONSETS[self._generator.integers(len(ONSETS))]


def zipf(words: Sequence[str], exponent: float) -> dict[str, float]:
    """Returns {word: p}, with p of the word of rank r proportional to r^-exponent."""
    weights = np.arange(1, len(words) + 1) ** -float(exponent)
    probabilities = weights / weights.sum()
    if not probabilities.all():
        raise UserError(f"data.exponent is {exponent}, which leaves rare words nothing: lower it.")
    return dict(zip(words, probabilities.tolist(), strict=True))


class Option(NamedTuple):
    """One rule of a symbol.

    If `binds` is set, the emitted word controls the agreement of the symbols that follow it in the
    rule; otherwise they inherit the controller of the rewritten symbol.
    """

    probability: float
    continuation: tuple[Symbol, ...] = ()
    binds: bool = False


class Step(NamedTuple):
    """How one word of a sentence was emitted.

    `symbol` emitted it, `controller` is the position of the nearest binding word that the
    symbol descends from (-1 for none) and `log_prob` is log p(word | words before it), in nats.
    """

    symbol: Symbol
    controller: int
    log_prob: float


class Grammar:
    """A deterministic probabilistic grammar; `rules[symbol][word]` is an `Option`."""

    def __init__(self, start: Symbol, rules: Mapping[Symbol, Mapping[str, Option]]):
        self.start = start
        self.rules = {symbol: dict(options) for symbol, options in rules.items()}
        self._index = {symbol: row for row, symbol in enumerate(self.rules)}
        self._uses = self._expected_uses()
        self._draws = {
            symbol: (
                list(accumulate(option.probability for option in options.values())),
                list(options.items()),
            )
            for symbol, options in self.rules.items()
        }

    def entropy(self) -> float:
        r"""Computes the exact entropy of a sentence, in nats.

        The entropy H(A) of what a symbol A derives solves the linear equations
        $H(A) = h(A) + \sum_r p(r \mid A) \sum_{B \in r} H(B)$, h(A) being the entropy of the
        choice of the rule r. It is the entropy of the derivation, and so of the sentence,
        because each sentence has one derivation.
        """
        local = [
            -sum(option.probability * math.log(option.probability) for option in options.values())
            for options in self.rules.values()
        ]
        return float(self._uses @ np.array(local))

    def expected_length(self) -> float:
        """Computes the exact expected number of words of a sentence (no boundary token)."""
        emits = [
            sum(option.probability for word, option in options.items() if word != VANISH)
            for options in self.rules.values()
        ]
        return float(self._uses @ np.array(emits))

    def sample(self, generator: np.random.Generator) -> list[str]:
        """Draws one sentence."""
        words = []
        stack = [self.start]
        while stack:
            cumulative, options = self._draws[stack.pop()]
            # Rounding may leave the last cumulative sum just under one.
            choice = min(bisect_right(cumulative, generator.random()), len(options) - 1)
            word, option = options[choice]
            if word != VANISH:
                words.append(word)
            stack.extend(reversed(option.continuation))
        return words

    def token_log_probs(self, words: Sequence[str]) -> list[float]:
        """Returns log p(w_t | w_<t) of each word in nats, -inf from the first impossible one on."""
        steps, _ = self.follow(words)
        impossible = [-math.inf] * (len(words) - len(steps))
        return [step.log_prob for step in steps] + impossible

    def log_prob(self, words: Sequence[str]) -> float:
        """Returns the exact log-probability of a sentence, in nats; -inf if it is ungrammatical."""
        steps, stack = self.follow(words)
        complete = len(steps) == len(words) and not stack
        return math.fsum(step.log_prob for step in steps) if complete else -math.inf

    def next_words(self, prefix: Sequence[str]) -> dict[str, float]:
        """Returns the exact p(w | prefix) of the next words: {} after a whole sentence."""
        steps, stack = self.follow(prefix)
        if len(steps) < len(prefix):
            word = prefix[len(steps)]
            raise ValueError(f"{word!r} at position {len(steps)} cannot follow what precedes it")
        distribution: dict[str, float] = {}
        reach = 1.0
        for symbol, _ in reversed(stack):
            options = self.rules[symbol]
            for word, option in options.items():
                if word != VANISH:
                    distribution[word] = reach * option.probability
            if VANISH not in options:
                break
            reach *= options[VANISH].probability
        return distribution

    def follow(self, words: Sequence[str]) -> tuple[list[Step], list[tuple[Symbol, int]]]:
        """Returns the steps of the accepted words, and the stack of (symbol, controller) then.

        The steps end before the first word that cannot follow the preceding words.
        """
        steps: list[Step] = []
        stack = [(self.start, -1)]
        for position, word in enumerate(words):
            log_prob = 0.0
            while stack:
                symbol, controller = stack.pop()
                options = self.rules[symbol]
                option = options.get(word) if word != VANISH else None
                if option is not None:
                    log_prob += math.log(option.probability)
                    steps.append(Step(symbol, controller, log_prob))
                    inherited = position if option.binds else controller
                    stack.extend((part, inherited) for part in reversed(option.continuation))
                    break
                if VANISH not in options:
                    return steps, stack
                log_prob += math.log(options[VANISH].probability)
            if len(steps) <= position:
                return steps, stack
        return steps, stack

    def _expected_uses(self) -> np.ndarray:
        """Computes the expected number of rewritings of each symbol in a derivation.

        With M[A, B] the expected number of B in one rewriting of A, the numbers are the row of
        (I - M)^-1 = I + M + M^2 + ... at the start symbol, a sum that converges if and only if
        the spectral radius of M is below one.
        """
        size = len(self.rules)
        produced = np.zeros((size, size))
        for symbol, options in self.rules.items():
            for option in options.values():
                for part in option.continuation:
                    produced[self._index[symbol], self._index[part]] += option.probability
        first = np.zeros(size)
        first[self._index[self.start]] = 1.0
        return np.linalg.solve(np.eye(size) - produced.T, first)
