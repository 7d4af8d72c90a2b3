"""`micro`: a small artificial language with gender and number agreement, and exact entropies.

Its closed class is French-like and its open class is invented by rule, with Zipfian lemmas and
a long tail of rare forms. Nouns have a gender; determiners, adjectives and verbs agree with
them, also across a prepositional phrase or a relative clause whose noun may differ. The words
come from a grammar read left to right (`Grammar`), so the entropy of the
language and the probability of each word given those before it are known exactly.
"""

import dataclasses
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, cycle, islice, product
from typing import Any, NamedTuple

import numpy as np

from zoo.base.arrays import memory
from zoo.errors import UserError, check_above, check_least, check_seed
from zoo.sources.source import Corpus, Source, check_split

# ---- left-to-right deterministic grammars with exactly computed entropies
# A rule rewrites the symbol on top of a stack as one word followed by a string of symbols, or as
# the empty string. A symbol has at most one rule per word, and a symbol that may vanish never
# starts with a word that may follow it (the LL(1) condition, which a test checks for the language).
# A prefix therefore determines the stack, a sentence has one derivation, and every word is one draw
# from an explicit distribution given the words before it.

Symbol = tuple[str, ...]
# The key, among the options of a symbol, of the rule that rewrites it as the empty string.
VANISH = ""


class Option(NamedTuple):
    """One rule of a symbol."""

    probability: float
    continuation: tuple[Symbol, ...] = ()
    # whether the emitted word controls the agreement of the symbols that follow it in the rule,
    # which otherwise inherit the controller of the rewritten symbol
    binds: bool = False


class Step(NamedTuple):
    """How one word of a sentence was emitted."""

    symbol: Symbol
    controller: int  # position of the nearest binding word that the symbol descends from; or -1
    log_prob: float  # log p(word | words before it), nats


class Grammar:
    """A deterministic probabilistic grammar; `rules[symbol][word]` is an `Option`."""

    def __init__(self, start: Symbol, rules: Mapping[Symbol, Mapping[str, Option]]):
        self.start = start
        self.rules = {symbol: dict(options) for symbol, options in rules.items()}
        self._draws = {
            symbol: (
                list(accumulate(option.probability for option in options.values())),
                list(options.items()),
            )
            for symbol, options in self.rules.items()
        }

    def entropy(self) -> float:
        """Computes the exact entropy of a sentence, in nats."""
        # H(A) = h(A) + sum_r p(r | A) sum_{B in r} H(B), h(A) being the entropy of the choice of
        # the rule r of a symbol A. A sentence has one derivation, and so its entropy.
        local = [
            -sum(option.probability * math.log(option.probability) for option in options.values())
            for options in self.rules.values()
        ]
        return float(self._expected_uses() @ np.array(local))

    def expected_length(self) -> float:
        """Computes the exact expected number of words of a sentence (no boundary token)."""
        emits = [
            sum(option.probability for word, option in options.items() if word != VANISH)
            for options in self.rules.values()
        ]
        return float(self._expected_uses() @ np.array(emits))

    def sample(self, generator: np.random.Generator) -> list[str]:
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

    def follow(self, words: Sequence[str]) -> tuple[list[Step], list[tuple[Symbol, int]]]:
        """Returns the steps of the words, up to the first that cannot follow those before it, and
        the stack of (symbol, controller) then."""
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
        """Computes the expected number of rewritings of each symbol in a derivation."""
        # With M[A, B] the expected number of B in one rewriting of A, it is the row of
        # (I - M)^-1 = I + M + M^2 + ... at the start symbol.
        size, index = len(self.rules), {symbol: row for row, symbol in enumerate(self.rules)}
        produced = np.zeros((size, size))
        for symbol, options in self.rules.items():
            for option in options.values():
                for part in option.continuation:
                    produced[index[symbol], index[part]] += option.probability
        first = np.zeros(size)
        first[index[self.start]] = 1.0
        return np.linalg.solve(np.eye(size) - produced.T, first)


# ---- invented words

ONSETS = ("b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "j", "l", "m", "n", "p", "pl", "r", "s",
          "t", "tr", "v")  # fmt: skip
NUCLEI = ("a", "e", "i", "o", "u", "ai", "au", "ou")
CODAS = ("", "", "", "", "r", "l", "n")


class WordForms:
    """The word forms of the language: its closed class, and words that are invented from `seed`."""

    def __init__(self, seed: int):
        self.features: dict[str, tuple[str, ...]] = {}
        # {form: {"Gender" or "Number": the form of the lemma that differs in it alone}}
        self.twins: dict[str, dict[str, str]] = defaultdict(dict)
        self._generator = np.random.default_rng((seed, 0))
        for (gender, number), words in DETERMINERS.items():
            gender_features = [f"Gender:{gender}"] if gender else []
            self.add(words, "POS:DET", *gender_features, f"Number:{number}")
        self.add(["en", "à", "devant", *PREPOSITIONS], "POS:ADP")
        self.add(["qui", "que"], "POS:PRON", "Class:Relative")
        self.add(DEGREES, "POS:ADV", "Class:Degree")
        self.add([",", "."], "POS:PUNCT")
        self.add(["écus"], "POS:NOUN", "Gender:Masc", "Number:Plur", "Class:Unit")
        self.paradigm(COPULA, "POS:AUX", "Class:Copula")
        self.paradigm(PRICE, "POS:VERB", "Class:Price")

    def add(self, forms: Iterable[str], *features: str) -> None:
        """Adds forms that share `features`."""
        self.features |= dict.fromkeys(forms, features)

    def paradigm(self, forms: Mapping[Any, str], *features: str) -> None:
        """Adds the forms of a lemma; each key is the inflection, e.g. ("Number:Sing",)."""
        for inflection, form in forms.items():
            self.add([form], *features[:1], *inflection, *features[1:])
            for rival, twin in forms.items():
                differences = [a for a, b in zip(inflection, rival, strict=True) if a != b]
                if len(differences) == 1 and not differences[0].startswith("Tense"):
                    self.twins[form][differences[0].split(":")[0]] = twin

    def invent(
        self, count: int, tables: Sequence[Mapping[Any, str]], *features: str, capital: bool = False
    ) -> dict[tuple[str, ...], list[str]]:
        """Invents `count` lemmas, drawing for each a new stem and one of the tables of endings."""
        forms, generator = defaultdict(list), self._generator
        while count:
            syllables = 1 if generator.random() < 0.7 else 2
            sounds = (*(ONSETS, NUCLEI, CODAS) * syllables, ONSETS)
            stem = "".join(choices[generator.integers(len(choices))] for choices in sounds)
            stem = stem.capitalize() if capital else stem
            table = tables[int(generator.integers(len(tables)))]
            lemma = {inflection: stem + ending for inflection, ending in table.items()}
            if any(form in self.features for form in lemma.values()):
                continue
            self.paradigm(lemma, *features)
            for inflection, form in lemma.items():
                forms[inflection].append(form)
            count -= 1
        return forms


def zipf(words: Sequence[str], exponent: float) -> dict[str, float]:
    """Returns {word: p}, with p of the word of rank r proportional to r^-exponent."""
    weights = np.arange(1, len(words) + 1) ** -float(exponent)
    probabilities = weights / weights.sum()
    if not probabilities.all():
        raise UserError(f"data.exponent is {exponent}, which leaves rare words nothing: lower it.")
    return dict(zip(words, probabilities.tolist(), strict=True))


# ---- the language

GENDERS = ("Masc", "Fem")
NUMBERS = ("Sing", "Plur")
PLURAL = {"Sing": "", "Plur": "s"}
TENSES = {"Pres": 0.65, "Past": 0.35}
CONJUGATION = {  # endings of a verb, by inflection
    ("Number:Sing", "Tense:Pres"): "e",
    ("Number:Plur", "Tense:Pres"): "ent",
    ("Number:Sing", "Tense:Past"): "ait",
    ("Number:Plur", "Tense:Past"): "aient",
}
COPULA = dict(zip(CONJUGATION, ("est", "sont", "était", "étaient"), strict=True))
PRICE = {inflection: "coût" + ending for inflection, ending in CONJUGATION.items()}
# Plural determiners hide the gender, as in French: the noun or adjective after them shows it.
DETERMINERS = {
    ("Masc", "Sing"): ("le", "un", "ce", "son"),
    ("Fem", "Sing"): ("la", "une", "cette", "sa"),
    ("", "Plur"): ("les", "des", "ces", "ses"),
}
DETERMINER_SHARES = (0.45, 0.30, 0.10, 0.15)
DETERMINER_KINDS = {("Masc", "Sing"): 0.3, ("Fem", "Sing"): 0.3, ("", "Plur"): 0.4}
PREPOSITIONS = {"avec": 0.4, "sans": 0.2, "pour": 0.25, "contre": 0.15}
DEGREES = {"très": 0.5, "trop": 0.3, "peu": 0.2}
NOUN_ENDINGS = {"Masc": ("on", "eur", "ard", "et", "in"), "Fem": ("elle", "ure", "ance", "ine")}
ADJECTIVE_TABLES = [
    {
        (f"Gender:{gender}", f"Number:{number}"): ending + PLURAL[number]
        for gender, ending in zip(GENDERS, endings, strict=True)
        for number in NUMBERS
    }
    for endings in (("if", "ive"), ("al", "ale"), ("u", "ue"))
]
PLACE_ENDINGS = ("ville", "mont", "ac", "ogne")
PRENOMINALS = 12
ADVERBS = 40
LAST_YEAR = 1999
# Symbols that emit a word agreeing with a noun to its left.
AGREEING = {"core", "transitive", "predicative", "adjective", "modifier"}
STREAMS = {"train": 1, "validation": 2, "test": 3}
# Least bytes of a sentence (the lists of its words and features), and of the forms of a lemma.
SENTENCE_BYTES, LEMMA_BYTES = 160, 200


class _Rules(defaultdict[Symbol, dict[str, Option]]):
    """The rules of the language; each call adds a share of a symbol's probability."""

    def add(self, symbol, share, words: Mapping[str, float], *continuation, binds=False):
        for word, probability in words.items():
            self[symbol][word] = Option(share * probability, continuation, binds)

    def phrase(self, symbol: Symbol, share: float, role: str, *continuation: Symbol) -> None:
        """Adds rules by which `symbol` begins with a determiner and a noun in `role`."""
        for (gender, number), kind in DETERMINER_KINDS.items():
            words = dict(zip(DETERMINERS[gender, number], DETERMINER_SHARES, strict=True))
            self.add(symbol, share * kind, words, ("nominal", role, gender, number), *continuation)


@dataclasses.dataclass(frozen=True)
class Micro(Source):
    """The micro language and its corpus.

    Within a class the lemma of rank r has a probability proportional to r^-exponent.

    Attributes:
      nouns: the number of lemmas.
      adjectives: the number of lemmas.
      verbs: the number of lemmas.
      places: the number of lemmas.
      quantities: the number of digit strings.
      years: the number of digit strings.
      exponent: of the ranks of lemmas.
      seed: sets both the shapes of the words and the sentences drawn, but no probability: the exact
        entropies do not depend on it.
      train_sentences: the sentences of the training text.
      validation_sentences: the sentences of the validation text.
      test_sentences: the sentences of the test text.

    Raises:
      UserError: there are too few lemmas.

    Example:
      >>> source = data.Micro(nouns=2, adjectives=2, verbs=2, places=2, train_sentences=2)
      >>> corpus = source.read("train")
      >>> len(corpus.sentences), len(corpus.sentences[0]) == len(corpus.features[0])
      (2, True)
    """

    generated = True

    nouns: int = 600
    adjectives: int = 160
    verbs: int = 100
    places: int = 160
    quantities: int = 200
    years: int = 120
    exponent: float = 1.0
    seed: int = 0
    train_sentences: int = 6000
    validation_sentences: int = 600
    test_sentences: int = 2000

    def __post_init__(self):
        lemmas = ("nouns", "adjectives", "verbs", "places", "quantities", "years")
        check_least(self, "data", **dict.fromkeys(lemmas, 2))
        if self.quantities + self.years >= LAST_YEAR:
            raise UserError(f"micro needs quantities + years below {LAST_YEAR}.")
        check_above(self, "data", exponent=0)
        check_seed(self.seed, "data.seed")

    def splits(self):
        return tuple(STREAMS)

    def read(self, split: str) -> Corpus:
        """Draws the sentences of a split from a random stream of its own, if they fit memory."""
        check_split(split, self.splits())
        lemmas = dict.fromkeys(("nouns", "adjectives", "verbs", "places"), LEMMA_BYTES)
        sentence_bytes = dict.fromkeys((f"{name}_sentences" for name in STREAMS), SENTENCE_BYTES)
        memory.check_fields(self, "data", **lemmas, **sentence_bytes)
        generator = np.random.default_rng((self.seed, STREAMS[split]))
        count = getattr(self, f"{split}_sentences")
        forms, grammar = self._language
        sentences = [grammar.sample(generator) for _ in range(count)]
        features = [[forms.features[word] for word in sentence] for sentence in sentences]
        return Corpus(f"micro-{split}", sentences, features)

    def lexicon_entries(self) -> dict[str, tuple[str, ...]]:
        return dict(self._language[0].features)

    def entropy_rate(self, boundaries: int = 1) -> float:
        """Computes H(sentence) / E[tokens], in nats per token.

        Boundaries add no entropy, because a sentence ends in a full stop found nowhere else. This
        is the limit of -log p(corpus) / tokens as the corpus grows: the least mean loss a model can
        reach.

        Args:
          boundaries: how many boundaries of a sentence count as tokens.
        """
        return self.grammar.entropy() / (self.grammar.expected_length() + boundaries)

    def minimal_pairs(self, count: int, seed: int) -> list[tuple[list[str], list[str], dict]]:
        """Draws minimal pairs: grammatical sentences, each with a twin that breaks one agreement.

        The twin differs in one verb or adjective, whose number or gender is wrong. The four cases
        of phenomenon and attractor take turns, so that they are equally frequent, unlike in the
        corpus.

        Args:
          count: the number of pairs.
          seed: the seed of the draws.

        Returns:
          (sentence, twin, information) for each pair. The information has the "phenomenon"
          ("number" or "gender"), the "distance" in tokens from the noun to the wrong word, and
          whether there is an "attractor": a noun between them that differs from the controlling
          noun in that feature.
        """
        generator = np.random.default_rng((self.seed, 4, seed))
        pairs = []
        cases = product(("number", "gender"), (False, True))
        for phenomenon, attractor in islice(cycle(cases), count):
            while True:
                sentence = self.grammar.sample(generator)
                candidates = [
                    (position, twin, distance)
                    for position, name, twin, distance, attracted in self._agreements(sentence)
                    if name.lower() == phenomenon and attracted == attractor
                ]
                if candidates:
                    break
            position, twin, distance = candidates[generator.integers(len(candidates))]
            wrong = [*sentence[:position], twin, *sentence[position + 1 :]]
            facts = {"phenomenon": phenomenon, "distance": distance, "attractor": attractor}
            pairs.append((sentence, wrong, facts))
        return pairs

    def _agreements(self, sentence: list[str]) -> list[tuple[int, str, str, int, bool]]:
        forms, grammar = self._language
        entries, (steps, _) = forms.features, grammar.follow(sentence)
        controllers = []
        for position, (symbol, controller, _) in enumerate(steps):
            if symbol[0] not in AGREEING:
                continue
            for name, twin in forms.twins.get(sentence[position], {}).items():
                values = [
                    next(feature for feature in entries[word] if feature.startswith(name))
                    for word in sentence[controller:position]
                    if "POS:NOUN" in entries[word]
                ]
                attractor = any(value != values[0] for value in values)
                controllers.append((position, name, twin, position - controller, attractor))
        return controllers

    @property
    def grammar(self) -> Grammar:
        """The grammar that generates the sentences, with their exact probabilities and entropy."""
        return self._language[1]

    @cached_property
    def _language(self) -> tuple[WordForms, Grammar]:
        forms = WordForms(self.seed)
        rules = _Rules(dict)
        self._add_sentences(forms, rules)
        self._add_nominals(forms, rules)
        self._add_predicates(forms, rules)
        return forms, Grammar(("sentence",), rules)

    def _add_sentences(self, forms: WordForms, rules: _Rules) -> None:
        """Adds sentences: a subject and a predicate, with a date or place before or after them."""
        years = [str(LAST_YEAR - rank) for rank in range(self.years)]
        forms.add(years, "POS:NUM", "Class:Number", "NumType:Year")
        endings = [{(): ending} for ending in PLACE_ENDINGS]
        place_names = forms.invent(self.places, endings, "POS:PROPN", "Class:Place", capital=True)
        places = zipf(place_names[()], self.exponent)
        rules.add(("year",), 1.0, zipf(years, self.exponent))
        rules.add(("place",), 1.0, places)
        rules.add(("comma",), 1.0, {",": 1.0})
        rules.add(("sentence",), 0.10, {"en": 1.0}, ("year",), ("comma",), ("clause",))
        rules.add(("sentence",), 0.08, {"à": 1.0}, ("place",), ("comma",), ("clause",))
        rules.phrase(("sentence",), 0.82, "subject", ("tail",))
        rules.phrase(("clause",), 1.0, "subject", ("tail",))
        rules.add(("tail",), 0.10, {"en": 1.0}, ("year",), ("stop",))
        rules.add(("tail",), 0.10, {"à": 1.0}, ("place",), ("stop",))
        rules.add(("tail",), 0.80, {".": 1.0})
        rules.add(("stop",), 1.0, {".": 1.0})
        rules.phrase(("phrase",), 1.0, "other")
        rules.phrase(("embedded",), 1.0, "embedded")
        rules.phrase(("complement",), 0.85, "other")
        rules.add(("complement",), 0.15, places)
        rules.phrase(("object",), 0.93, "other")
        rules.add(("object",), 0.07, places)

    def _add_nominals(self, forms: WordForms, rules: _Rules) -> None:
        """Adds nouns with their adjectives, prepositional phrases and relative clauses."""
        before = forms.invent(PRENOMINALS, ADJECTIVE_TABLES, "POS:ADJ", "Class:Prenominal")
        adjectives = forms.invent(self.adjectives, ADJECTIVE_TABLES, "POS:ADJ")
        for gender in GENDERS:
            tables = [
                {(f"Number:{number}",): ending + PLURAL[number] for number in NUMBERS}
                for ending in NOUN_ENDINGS[gender]
            ]
            share = self.nouns // 2 if gender == GENDERS[0] else self.nouns - self.nouns // 2
            nouns = forms.invent(share, tables, "POS:NOUN", f"Gender:{gender}")
            for number in NUMBERS:
                agreement = (gender, number)
                heads = zipf(nouns[f"Number:{number}",], self.exponent)
                inflection = (f"Gender:{gender}", f"Number:{number}")
                prenominal = zipf(before[inflection], self.exponent)
                modifier = ("modifier", *agreement)
                attachment = ("attachment", *agreement)
                follows = {
                    "subject": (modifier, ("core", *agreement)),
                    "embedded": (modifier, ("transitive", number)),
                    "other": (modifier,),
                }
                for role, follow in follows.items():
                    head = ("head", role, *agreement)
                    rules.add(head, 1.0, heads, *follow, binds=True)
                    # A singular determiner shows the gender; a plural one leaves it to chance.
                    visible_gender, chance = (gender, 1.0) if number == "Sing" else ("", 0.5)
                    nominal = ("nominal", role, visible_gender, number)
                    rules.add(nominal, 0.88 * chance, heads, *follow, binds=True)
                    rules.add(nominal, 0.12 * chance, prenominal, head)
                postnominal = zipf(adjectives[inflection], self.exponent)
                rules.add(("adjective", *agreement), 1.0, postnominal)
                rules.add(("predicative", *agreement), 0.8, postnominal)
                rules.add(("predicative", *agreement), 0.2, DEGREES, ("adjective", *agreement))
                # No adjective after an attachment: it could belong to either noun.
                rules.add(modifier, 0.25, postnominal, attachment)
                for symbol, stop, go in ((modifier, 0.42, 0.33), (attachment, 0.75, 0.25)):
                    rules.add(symbol, stop, {VANISH: 1.0})
                    rules.add(symbol, 0.45 * go, {"devant": 1.0}, ("complement",))
                    rules.add(symbol, 0.25 * go, PREPOSITIONS, ("phrase",))
                    rules.add(symbol, 0.18 * go, {"qui": 1.0}, ("core", *agreement))
                    rules.add(symbol, 0.12 * go, {"que": 1.0}, ("embedded",))

    def _add_predicates(self, forms: WordForms, rules: _Rules) -> None:
        """Adds verbs and the copula, which agree in number, and their objects and complements."""
        quantities = [str(number) for number in range(2, self.quantities + 2)]
        forms.add(quantities, "POS:NUM", "Class:Number", "NumType:Card")
        rules.add(("quantity",), 1.0, zipf(quantities, self.exponent))
        rules.add(("unit",), 1.0, {"écus": 1.0})
        adverbs = forms.invent(ADVERBS, [{(): "ment"}], "POS:ADV")
        rules.add(("manner",), 0.3, zipf(adverbs[()], self.exponent))
        rules.add(("manner",), 0.7, {VANISH: 1.0})
        share = round(0.7 * self.verbs)
        tables = [CONJUGATION]
        transitive = forms.invent(share, tables, "POS:VERB", "Class:Transitive")
        intransitive = forms.invent(self.verbs - share, tables, "POS:VERB", "Class:Intransitive")
        for number, (tense, chance) in product(NUMBERS, TENSES.items()):
            inflection = (f"Number:{number}", f"Tense:{tense}")
            governing = zipf(transitive[inflection], self.exponent)
            rules.add(("transitive", number), chance, governing)
            for gender in GENDERS:
                core = ("core", gender, number)
                objectless = zipf(intransitive[inflection], self.exponent)
                predicative = ("predicative", gender, number)
                rules.add(core, 0.27 * chance, {COPULA[inflection]: 1.0}, predicative)
                rules.add(core, 0.42 * chance, governing, ("object",))
                rules.add(core, 0.22 * chance, objectless, ("manner",))
                price = {PRICE[inflection]: 1.0}
                rules.add(core, 0.09 * chance, price, ("quantity",), ("unit",))


# ----------- artificial translations: sentences of the micro language, and their reversals


@dataclasses.dataclass(frozen=True)
class MicroPairs(Source):
    """Sentences of `Micro` and their translations, the same sentences letter by letter backwards.

    A translation has the words in reverse order, each spelled backwards. All agreement is kept, and
    every token of a translation has the features of its form. A source has only one translation: a
    decoder that knows its source can predict the translation exactly.

    Attributes:
      language: the language of the sources.
      longest: most words of a sentence; longer sentences are dropped.

    Example:
      >>> language = data.MicroPairs().language
      >>> small = dict.fromkeys(("train_sentences", "validation_sentences", "test_sentences"), 9)
      >>> corpus = data.MicroPairs(dataclasses.replace(language, **small)).read("train")
      >>> target, source = corpus.sentences[0], corpus.source_text.sentences[0]
      >>> target == [word[::-1] for word in source[::-1]]
      True
    """

    generated = True

    language: Micro = Micro(
        nouns=24, adjectives=12, verbs=12, places=8, quantities=6, years=4, train_sentences=16000
    )
    longest: int = 8

    def __post_init__(self):
        check_least(self, "data", longest=1)

    def splits(self):
        return self.language.splits()

    def read(self, split):
        """Draws a split's sentences of at most `longest` words, and reverses them."""
        corpus = self.language.read(split)
        features = corpus.features or []
        short = [n for n, words in enumerate(corpus.sentences) if len(words) <= self.longest]
        if not short:
            raise UserError(
                f"data.longest={self.longest}: no sentence of the micro language is this short: "
                "raise it."
            )
        sources = [corpus.sentences[number] for number in short]
        return Corpus(
            corpus.name,
            [[word[::-1] for word in reversed(words)] for words in sources],
            [[*reversed(features[number])] for number in short],
            source_text=Corpus(corpus.name, sources),
        )

    def lexicon_entries(self):
        return {word[::-1]: features for word, features in self.language.lexicon_entries().items()}
