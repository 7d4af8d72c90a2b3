r"""The text format of grammars, and the automata to which they are compiled.

    # A comment. The first rule is the start; a rule goes on in lines that are indented.
    form: "answer" "(" variable "," goals ")"
    goals: goal | "(" goal ("," goal)+ ")"
    goal: /state|river/ "(" variable ")"        a word that matches a regular expression
        | "not" "(" goals ")"
    variable: "A" | "B"

Symbols stand one after the other, | between alternatives, * + ? after a repeated or optional part,
parentheses around groups. A grammar of one rule is a regular expression over words.

Each rule becomes a deterministic finite automaton whose edges are words or other rules. A rule on
an edge is a call, after which the automaton goes on where the edge leads. The state of a parse is
thus a stack of states, the innermost last.
"""

import dataclasses
import functools
import graphlib
import math
import pathlib
import re
import warnings
from collections.abc import Callable

from zoo.errors import UserError, shortened

_TOKEN = re.compile(
    r"""\s*(?:(?P<word>"[^"]+"|'[^']+')|(?P<pattern>/(?:[^/\\]|\\.)+/)"""
    r"""|(?P<rule>[A-Za-z_][\w-]*)|(?P<sign>[|()*+?])|(?P<comment>\#.*)|(?P<bad>\S))"""
)
# A sign of a regular expression, a number of repetitions, a class of letters, or a letter. No
# repetition of a repetition, which Python has only as possessive.
_LETTER = re.compile(
    r"""(?P<sign>\(\?:|\((?!\?)|[|)]|[*+?]\??(?![*+?{]))"""
    r"""|(?P<count>\{(?P<minimum>[0-9]{1,3})(?P<maximum>,[0-9]{0,3})?\}\??(?![*+?{]))"""
    r"""|(?P<letter>\[\^?\]?(?:[^\\\]]|\\.)*\]|\\[dDsSwW\W]|[^\\^${(|)*+?[])|(?P<bad>.)""",
    re.DOTALL,
)
# Most parentheses within each other, through which the parser recurses.
DEEPEST = 100
# Most letters and signs of a regular expression, with repetitions written out.
LONGEST_PATTERN = 10_000
# Most states and edges of the automaton of one rule, unless it has more symbols.
LARGEST = 50_000
# Most places in a rule at which an automaton may stand at once, for each of them on average.
PLACES = 20
# Most ways to read one word, in all states.
WAYS = 500_000
_HEAD = re.compile(r"([A-Za-z_][\w-]*)\s*:")

# A symbol is a (kind, text) pair: ("word", "("), ("pattern", "a|b") or ("rule", "goal"); in an
# automaton of a regular expression ("letter", "[a-z]").
Symbol = tuple[str, str]
# (the symbol that is read, the states that it pushes, the state that it leads to)
Shift = tuple[Symbol, tuple[int, ...], int]
# (words, levels of the stack)
Cost = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Automata:
    """The automata of all rules, their states numbered together."""

    edges: list[dict[Symbol, int]]
    final: list[bool]
    starts: dict[str, int]
    start: int
    lines: dict[str, int]
    order: list[str]  # of the rules; those with which another rule can begin come before it


def read(text: str, path: pathlib.Path | str) -> Automata:
    """Reads a grammar and builds its automata."""
    rules: dict = {}
    lines: dict = {}
    name = None
    for number, line in enumerate(text.split("\n"), 1):
        head = _HEAD.match(line)
        if head:
            name = head[1]
            if name in rules:
                raise UserError(
                    f"{path}, line {number}: the rule {name} is already in line {lines[name]}: "
                    "put its alternatives together with |."
                )
            rules[name], lines[name] = [], number
            line = line[head.end() :]
        line_tokens = []
        for match in _TOKEN.finditer(line.rstrip()):
            kind = match.lastgroup
            if kind == "bad":
                raise UserError(
                    f"{path}, line {number}: {match[kind]!r} is not a symbol: quote words, put "
                    "regular expressions between slashes."
                )
            if kind and kind != "comment":
                line_tokens.append((kind, match[kind], number))
        if line_tokens and (name is None or not (head or line[0].isspace())):
            raise UserError(
                f"{path}, line {number}: begin a rule with its name and a colon, or indent the "
                "line to go on with the one before."
            )
        if line_tokens:
            rules[name] += line_tokens
    if not rules:
        raise UserError(f"{path} has no rules: write them as name: alternatives.")
    edges: list = []
    final: list = []
    starts = {}
    for name, tokens in rules.items():
        parser = _Parser(tokens, path, lines[name])
        for _, rule, number in (token for token in tokens if token[0] == "rule"):
            if rule not in rules:
                raise UserError(
                    f"{path}, line {number}: the rule {rule} is not defined: add it, or quote the "
                    "word."
                )
        starts[name] = len(edges)
        _determinise(parser, edges, final, name)
    automata = Automata(edges, final, starts, starts[next(iter(rules))], lines, [])
    automata.order.extend(_in_order(automata, path))
    return automata


class _Parser:
    """Recursive descent over the tokens of one rule, to a nondeterministic automaton:
    `moves[state]` is a list of (symbol, state), the symbol None a move without a word."""

    def __init__(self, tokens, path, line):
        self.tokens, self.path, self.line, self.position = tokens, path, line, 0
        self.moves, self.depth = [], 0

    def automaton(self):
        """Parses the rule to (moves, first state, last state)."""
        first, last = self._alternatives()
        if self.position < len(self.tokens):
            self._fail("a ) has no ( before it: take it out, or add the (")
        return self.moves, first, last

    def _fail(self, message):
        position = min(self.position, len(self.tokens) - 1)
        number = self.tokens[position][2] if self.tokens else self.line
        raise UserError(f"{self.path}, line {number}: {message}.")

    def _peek(self):
        return self.tokens[self.position][:2] if self.position < len(self.tokens) else (None, None)

    def _state(self):
        self.moves.append([])
        return len(self.moves) - 1

    def _alternatives(self):
        first, last = self._state(), self._state()
        while True:
            begin, end = self._sequence()
            self.moves[first].append((None, begin))
            self.moves[end].append((None, last))
            if self._peek() != ("sign", "|"):
                return first, last
            self.position += 1

    def _sequence(self):
        first = last = self._state()
        while self._peek()[0] is not None and self._peek() not in (("sign", "|"), ("sign", ")")):
            begin, end = self._repeated()
            self.moves[last].append((None, begin))
            last = end
        if first == last:
            self._fail("an alternative is empty: put ? after an optional part instead")
        return first, last

    def _repeated(self):
        begin, end = self._single()
        while self._peek() in (("sign", "*"), ("sign", "+"), ("sign", "?")):
            sign = self._peek()[1]
            self.position += 1
            first, last = self._state(), self._state()
            self.moves[first].append((None, begin))
            self.moves[end].append((None, last))
            if sign in "*?":
                self.moves[first].append((None, last))
            if sign in "*+":
                self.moves[end].append((None, begin))
            begin, end = first, last
        return begin, end

    def _single(self):
        """Parses a symbol or a group to (first state, last state)."""
        kind, text = self._peek()
        if kind == "sign" and text != "(":
            self._fail(f"{text} has nothing before it to repeat: put a symbol or a group there")
        self.position += 1
        if kind == "sign":
            self.depth += 1
            if self.depth > DEEPEST:
                self._fail(
                    f"more than {DEEPEST} parentheses stand within each other: take some out, or "
                    "write them as rules"
                )
            inner = self._alternatives()
            if self._peek() != ("sign", ")"):
                self._fail("a ( is never closed: add the )")
            self.position += 1
            self.depth -= 1
            return inner
        if kind in ("word", "pattern"):
            text = text[1:-1]
        if kind == "pattern":
            try:
                matcher(text, self.path, self.tokens[self.position - 1][2])
            # Numbers too long, parentheses too deep, and classes of an uncertain meaning, as [[a].
            except (re.error, ValueError, OverflowError, RecursionError, FutureWarning) as error:
                self.position -= 1
                pattern = shortened(text, 60)
                self._fail(f"/{pattern}/ is not a valid regular expression ({error}): correct it")
        first, last = self._state(), self._state()
        self.moves[first].append(((kind, text), last))
        return first, last


def _determinise(parser, edges, final, rule):
    """Adds the deterministic automaton's states to `edges` and `final`, the first one first."""
    moves, first, last = parser.automaton()
    largest = max(LARGEST, 2 * len(moves))

    closure = functools.cache(functools.partial(_closure, moves))
    sets = [closure(frozenset([first]))]
    number_by_states, count, places = {sets[0]: len(edges)}, 0, 0
    for states in sets:  # which grows
        nexts: dict = {}
        for symbol, state in (move for source in sorted(states) for move in moves[source]):
            if symbol is not None:
                nexts.setdefault(symbol, set()).add(state)
        out = {}
        for symbol, targets in nexts.items():
            target = closure(frozenset(targets))
            if target not in number_by_states:
                number_by_states[target] = number_by_states[sets[0]] + len(sets)
                sets.append(target)
            out[symbol] = number_by_states[target]
            places += len(target)
        edges.append(out)
        final.append(last in states)
        count += 1 + len(out)
        # A rule of n symbols may have 2^n states, each of n places in it.
        if len(number_by_states) + count > largest or places > PLACES * largest:
            raise UserError(
                f"{parser.path}, line {parser.line}: the rule {rule} has more than {largest:,} "
                "states and edges, or may stand at too many places at once: write parts that begin "
                "alike, are repeated, or may be left out, as rules of their own."
            )


def _closure(moves, states: frozenset[int]) -> frozenset[int]:
    """Returns all states that the given states reach without a symbol, themselves included."""
    reached, waiting = set(states), list(states)
    while waiting:
        for symbol, state in moves[waiting.pop()]:
            if symbol is None and state not in reached:
                reached.add(state)
                waiting.append(state)
    return frozenset(reached)


def matcher(pattern: str, path: pathlib.Path | str = "", line: int = 0) -> Callable[[str], object]:
    """Returns a function that tells whether a word matches a regular expression.

    Its automaton stands at all possible places at once: Python's own matcher tries them in turn,
    exponentially many for (a+)+b, and a number that grows with a power of the word for a*a*a*b.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        re.compile(pattern)
        tokens = _letters(pattern, line)
        letters = {text for kind, text, _ in tokens if kind == "letter"}
        is_letter = {text: re.compile(text).fullmatch for text in letters}
    moves, first, last = _Parser(tokens, path, line).automaton()
    start = _closure(moves, frozenset([first]))

    @functools.lru_cache(256)
    def step(states: frozenset[int], letter: str) -> frozenset[int]:
        arrows = (arrow for state in states for arrow in moves[state])
        targets = (target for symbol, target in arrows if symbol and is_letter[symbol[1]](letter))
        return _closure(moves, frozenset(targets))

    return lambda word: last in functools.reduce(step, word, start)


def _letters(pattern: str, line: int) -> list[tuple[str, str, int]]:
    """Splits a regular expression into letters and signs, with x{2,3} written out as x x x?."""
    tokens: list[tuple[str, str, int]] = []
    groups, begin = [0], 0  # where open groups begin, and the last letter or group
    for match in _LETTER.finditer(pattern):
        kind, text = match.lastgroup or "", match[0]
        if kind == "bad":
            raise ValueError(
                "words are matched by letters, classes of letters, groups, |, *, +, ?, {m} and "
                f"{{m,n}} below 1000, not by {shortened(pattern[match.start() :], 40)}"
            )
        if kind == "count":
            part, minimum, is_open = tokens[begin:], int(match["minimum"]), match["maximum"] == ","
            maximum = int((match["maximum"] or ",")[1:] or minimum + is_open)
            sign = ("sign", "*" if is_open else "?", line)  # x{2,} is x x x*
            tokens[begin:] = part * minimum + [*part, sign] * (maximum - minimum)
        elif kind == "letter":
            begin = len(tokens)
            tokens.append((kind, text, line))
        else:
            begin = groups.pop() if text == ")" else begin
            groups += [len(tokens)] if text[0] == "(" else []
            tokens.append((kind, text[0], line))  # (?: is a group, and *? repeats as * does
        if len(tokens) > LONGEST_PATTERN:
            raise ValueError(f"it has more than {LONGEST_PATTERN:,} letters and signs")
    return tokens


def skips(automata: Automata) -> list[frozenset[int]]:
    """Returns the set of states that each state reaches without reading a word, itself included."""
    empty_symbols: set = set()  # rules that may be nothing
    while True:
        moves = [
            [
                (None if symbol in empty_symbols else symbol, target)
                for symbol, target in out.items()
            ]
            for out in automata.edges
        ]
        reached = [_closure(moves, frozenset([state])) for state in range(len(moves))]
        next_empty_symbols = {
            ("rule", rule)
            for rule, start in automata.starts.items()
            if any(automata.final[state] for state in reached[start])
        }
        if next_empty_symbols == empty_symbols:
            return reached
        empty_symbols = next_empty_symbols


def _in_order(automata, path):
    """Orders the rules so that each comes after those with which it can begin."""
    reached = skips(automata)
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for rule, start in automata.starts.items():
        symbols = (symbol for state in reached[start] for symbol in automata.edges[state])
        sorter.add(rule, *(text for kind, text in symbols if kind == "rule"))
    try:
        return [*sorter.static_order()]
    except graphlib.CycleError as error:
        rule = min(error.args[1], key=automata.lines.__getitem__)
        raise UserError(
            f"{path}, line {automata.lines[rule]}: the rule {rule} can begin with itself: "
            'write a repetition instead, such as sum: product ("+" product)*.'
        ) from error


def completions(automata: Automata, is_possible: Callable[[Symbol], bool]) -> list[Cost]:
    """Computes the cheapest completion of each state: its words and stack levels to an end."""
    values = [(0, 0) if final else (math.inf, math.inf) for final in automata.final]
    has_improved = True
    while has_improved:
        has_improved = False
        for state in reversed(range(len(values))):  # most edges lead to later states
            for (kind, text), target in automata.edges[state].items():
                words, levels = values[target]
                if kind == "rule":
                    inner = values[automata.starts[text]]
                    pushed = 0 if is_end(automata, target) else 1
                    value = (words + inner[0], max(levels, pushed + inner[1]))
                elif is_possible((kind, text)):
                    value = (words + 1, levels)
                else:
                    continue
                if value < values[state]:
                    values[state], has_improved = value, True
    return values


def is_end(automata: Automata, state: int) -> bool:
    """Whether a rule can only end in the state, so that a call that leads there needs no stack."""
    return automata.final[state] and not automata.edges[state]


def shifts(automata: Automata, path: pathlib.Path | str) -> list[set[Shift]]:
    """Returns, for each state, the moves that read one word; see `Shift`."""
    reached, count = skips(automata), 0
    results_by_state: dict[int, set] = {}
    firsts = [automata.starts[rule] for rule in automata.order]
    for state in dict.fromkeys([*firsts, *range(len(automata.edges))]):
        results = set()
        edges = [edge for source in reached[state] for edge in automata.edges[source].items()]
        for (kind, text), target in edges:
            if kind != "rule":
                results.add(((kind, text), (), target))
                continue
            pushed = () if is_end(automata, target) else (target,)
            for symbol, inner_pushed, inner_target in results_by_state[automata.starts[text]]:
                results.add((symbol, pushed + inner_pushed, inner_target))
        count += len(results)
        # Rules that begin with two others each may begin in 2^n ways.
        if count > WAYS:
            _, rule = max((first, r) for r, first in automata.starts.items() if first <= state)
            raise UserError(
                f"{path}, line {automata.lines[rule]}: up to the rule {rule}, words can be read in "
                f"more than {WAYS:,} ways: have fewer rules begin with several others."
            )
        results_by_state[state] = results
    return [results_by_state[state] for state in range(len(automata.edges))]
