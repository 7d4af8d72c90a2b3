"""A grammar as a background: only words that can still lead to a complete form have any mass.

Xiao, Dymetman and Gardent (2016) and Dymetman and Xiao (2016), section 4, "a-priori constrained
output". The automaton of the grammar reads the words along the sequence. Its carry is a set of
stacks of states, a single stack where the grammar is not ambiguous so far. The stacks are arrays of
a bounded depth, so that the automaton runs within a jitted step.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import memory
from zoo.base.arrays.types import Carry, Context, Tables
from zoo.errors import UserError, check_least
from zoo.lexicon import Lexicon
from zoo.priors import grammar_rules
from zoo.priors.prior import ContextualBackground, Reset, Texts, lexicon_tables, scan_words
from zoo.sources import files

# More words, or levels, than any form has.
NEVER = 2**30


@dataclasses.dataclass(frozen=True)
class Grammar(ContextualBackground):
    """b(x | c) = b(x) if some form of the grammar begins with the words so far and x, else 0.

    b(x) is the lexicon's background. A form begins after the word `start`, or at each boundary, and
    ends with the boundary. Outside forms, and after a word that the grammar does not allow there,
    b(x | c) is b(x). Every form that is drawn parses, and is complete within `longest` words.

    Attributes:
      path: the file of the grammar, in the format of `zoo.priors.grammar_rules`. It is read once,
        when the run begins. A regular expression never matches the unknown word: where the unknown
        word may stand, the grammar needs "<unk>".
      start: the word after which a form begins; "" if the text consists of forms only.
      longest: the largest number of words of a form.
      depth: levels of the stack; forms that are nested more deeply have no mass.
      stacks: the number of readings of an ambiguous beginning that are kept.
      splits: the splits whose forms must be forms of the grammar.

    Example:
      >>> _ = pathlib.Path("forms.grammar").write_text('form: "the" ("cat" | "sat")')
      >>> background = priors.Grammar("forms.grammar")
      >>> even = with_features(lexicon, [{}] * 4, np.log(np.full(4, 0.25)))
      >>> lexicon = with_background(even, background, [["the", "cat"]])
      >>> predict(background, lexicon, ["</s>", "the"])
      {'</s>': 0, 'the': 0, 'cat': 25, 'sat': 25}
    """

    path: str
    start: str = ""
    longest: int = 128
    depth: int = 16
    stacks: int = 4
    splits: tuple[str, ...] = ("train",)

    def __post_init__(self):
        check_least(self, "priors.Grammar", longest=1, depth=1, stacks=1)

    def prepare(self, lexicon: Lexicon, texts: Texts) -> dict[str, np.ndarray]:
        """Compiles the grammar to the arrays of its automaton; see `_compile`."""
        file = files.find(self.path)
        if lexicon.boundary is None:
            raise UserError(
                "priors.Grammar needs a boundary that ends a form: set vocabulary.boundary to "
                "counted or uncounted."
            )
        if self.start and self.start not in lexicon.ids:
            raise UserError(
                f"priors.Grammar.start is {self.start!r}, which is not in the lexicon: give a word "
                "of the lexicon after which forms begin."
            )
        automata = grammar_rules.read(files.read_text(file), file)
        tables = _compile(automata, lexicon, file)
        words, levels = tables["fewest"][automata.start], tables["levels"][automata.start]
        if words > self.longest or levels >= self.depth:
            raise UserError(
                f"the shortest form of {file} has {words} words and {levels + 1} levels: set "
                "longest and depth of priors.Grammar to at least these."
            )
        for split, text in texts.items():
            self._check_forms(tables, lexicon, split, text, file)
        return tables

    def _check_forms(self, tables, lexicon, split, text, file):
        """Raises UserError for the first form that the automaton does not allow."""
        sentences = [part.tolist() for part in np.split(text.words, text.starts[1:])]
        violations = self.violations(jax.tree.map(jnp.asarray, tables), lexicon, sentences)
        for number, position in enumerate(violations):
            if position >= 0:
                word = lexicon.words[sentences[number][position]]
                raise UserError(
                    f"sentence {number + 1} of {split} is not a form of {file}: its word "
                    f"{position + 1}, {word!r}, cannot stand there. Correct the grammar, raise "
                    "longest, depth or stacks, or leave the split out of splits."
                )

    def violations(
        self, tables: Tables, lexicon: Lexicon, sentences: list[list[int]]
    ) -> np.ndarray:
        """Returns the position of the first word of each sentence that the grammar does not allow,
        -1 for none; sentences are word ids with their boundaries."""
        # Only a word that is not allowed has no mass.
        tables = tables | self._marks(lexicon) | {"log_background": jnp.zeros(len(lexicon))}
        size, width = min(64, len(sentences)), max(map(len, sentences))
        rows = -(-len(sentences) // size) * size
        words = np.full((rows, width + 1), lexicon.boundary_id, np.int32)
        for row, sentence in zip(words, sentences, strict=False):
            row[1 : 1 + len(sentence)] = sentence
        inside = np.arange(width) < np.array([*map(len, sentences)])[:, None]

        @jax.jit
        def is_forbidden(tables: Tables, words: jax.Array) -> jax.Array:
            contexts, _ = self.apply(tables, words[:, :-1], self.initial_carry(len(words)))
            return jnp.isneginf(self.log_prob(tables, contexts, words[:, 1:]))

        parts = [np.asarray(is_forbidden(tables, part)) for part in np.split(words, rows // size)]
        forbidden = np.concatenate(parts)[: len(sentences)] & inside
        return np.where(forbidden.any(axis=1), forbidden.argmax(axis=1), -1)

    def _marks(self, lexicon):
        begin = lexicon.ids[self.start] if self.start else lexicon.boundary_id
        return lexicon_tables(lexicon) | {"begin": jnp.asarray(begin, jnp.int32)}

    def tables(self, lexicon: Lexicon) -> Tables:
        return super().tables(lexicon) | self._marks(lexicon)

    def initial_carry(self, batch: int) -> Carry:
        """Returns the carry outside any form: no stack."""
        return {
            "stack": jnp.zeros((batch, self.stacks, self.depth), jnp.int32),
            "size": jnp.zeros((batch, self.stacks), jnp.int32),
            "left": jnp.zeros(batch, jnp.int32),
        }

    def apply(self, tables: Tables, words: jax.Array, carry: Carry, *, reset: Reset = None):
        """Computes the contexts after words [B, T], and the carry; see `Contextual.apply`.

        A context has "stack", the states [B, T, stacks, depth], the innermost last; "size", the
        number of states of each stack, [B, T, stacks], 0 for no stack; "left", the number of words
        that may still come, [B, T].
        """

        def step(carry: Carry, word: jax.Array, fresh: jax.Array):
            inside = (carry["size"] > 0).any(-1) & ~fresh
            read = self._read(tables, carry, tables["class"][word])
            begins = (word == tables["begin"]) & (~inside if self.start else True)
            goes_on = inside & (word != tables["boundary"])
            first = jnp.zeros((word.shape[0], self.stacks), jnp.int32).at[:, 0].set(1)
            size = jnp.where(goes_on[:, None], read["size"], 0)
            stack = read["stack"]
            bottom = jnp.where(begins[:, None], tables["first"], stack[:, 0, 0][:, None])
            stack = stack.at[:, 0, 0].set(bottom[:, 0])
            carry = {
                "stack": stack,
                "size": jnp.where(begins[:, None], first, size),
                "left": jnp.where(begins, self.longest, carry["left"] - 1),
            }
            return carry, carry

        return scan_words(step, carry, words, reset)

    def _may_move(self, tables, contexts, classes=None):
        """Returns a mask of the moves allowed from each state of each stack: a state may read a
        word only if all states above it on its stack are complete."""
        stack, size, budget = contexts["stack"], contexts["size"], contexts["left"]
        level = jnp.arange(self.depth).reshape((1,) * (stack.ndim - 1) + (self.depth,))
        on_stack = level < size[..., None]
        # From the innermost state outwards: whether all inner states are complete.
        done = jnp.where(on_stack, tables["ends"][stack], True)
        open_ = jnp.cumprod(done[..., ::-1], axis=-1)[..., ::-1].astype(bool)
        complete = jnp.concatenate([open_[..., 1:], jnp.ones_like(open_[..., :1])], axis=-1)
        fewest = jnp.where(on_stack, tables["fewest"][stack], 0)
        below = jnp.cumsum(fewest, axis=-1) - fewest
        entry = (stack,) if classes is None else (stack, _beside(classes, stack))
        room, words = tables["move_room"][entry], tables["move_words"][entry]
        move_axes = (None,) * (room.ndim - stack.ndim)
        # A state that cannot read has neither room nor time for any move.
        may_read = on_stack & complete
        room_left = jnp.where(may_read, self.depth - level, -1)[(..., *move_axes)]
        words_left = jnp.where(may_read, _beside(budget, stack) - below, -1)[(..., *move_axes)]
        return (room <= room_left) & (words < words_left)

    def _may_end(self, tables, contexts):
        """Whether each form may end here: all states of one of its stacks are complete."""
        level = jnp.arange(self.depth).reshape((1,) * (contexts["stack"].ndim - 1) + (-1,))
        on_stack = level < contexts["size"][..., None]
        done = jnp.where(on_stack, tables["ends"][contexts["stack"]], True).all(-1)
        return (done & (contexts["size"] > 0)).any(-1)

    def _read(self, tables, contexts, classes):
        """Computes the stacks after a word of the classes [B]; size 0 where it is not allowed."""
        stack = contexts["stack"]
        allowed = self._may_move(tables, contexts, classes)
        shift = tables["moves"][stack, _beside(classes, stack)]
        batch, _, _, moves = shift.shape
        shift, allowed = shift.reshape(batch, -1), allowed.reshape(batch, -1)
        # More than are kept, for some may be equal.
        count = min(2 * self.stacks, allowed.shape[1])
        chosen = jnp.argsort(~allowed, axis=-1, stable=True)[:, :count].astype(jnp.int32)
        is_move = jnp.take_along_axis(allowed, chosen, axis=-1)
        shift = jnp.take_along_axis(shift, chosen, axis=-1)
        source, level = chosen // (self.depth * moves), chosen // moves % self.depth
        source_stack = jnp.take_along_axis(contexts["stack"], source[..., None], axis=1)
        offset = jnp.arange(self.depth).reshape(1, 1, -1) - level[..., None]
        pushed = tables["pushed"][shift]
        width = pushed.shape[-1]
        pushed_states = jnp.take_along_axis(pushed, jnp.clip(offset, 0, width - 1), axis=-1)
        size = jnp.where(is_move, level + tables["height"][shift], 0)
        stack = jnp.where(offset < 0, source_stack, pushed_states)
        inside = jnp.arange(self.depth).reshape(1, 1, -1) < size[..., None]
        stack = jnp.where(inside, stack, 0)
        equal = (stack[:, :, None] == stack[:, None]).all(-1) & (size[:, :, None] == size[:, None])
        earlier = jnp.tril(jnp.ones((count, count), bool), -1)[None]
        size = jnp.where((equal & earlier).any(-1), 0, size)
        survivors = jnp.argsort(size == 0, axis=-1, stable=True)[:, : self.stacks]
        padding = self.stacks - survivors.shape[1]
        stack = jnp.take_along_axis(stack, survivors[..., None], axis=1)
        size = jnp.take_along_axis(size, survivors, axis=-1)
        return {
            "stack": jnp.pad(stack, ((0, 0), (0, padding), (0, 0))),
            "size": jnp.pad(size, ((0, 0), (0, padding))),
        }

    def log_prob(self, tables: Tables, contexts: Context, words: jax.Array) -> jax.Array:
        allowed = self._may_move(tables, contexts, tables["class"][words]).any((-1, -2, -3))
        allowed = jnp.where(words == tables["boundary"], self._may_end(tables, contexts), allowed)
        allowed |= ~(contexts["size"] > 0).any(-1)
        return jnp.where(allowed, tables["log_background"][words], -jnp.inf)

    def log_probs(self, tables: Tables, contexts: Context) -> jax.Array:
        classes = self._may_move(tables, contexts).any((-1, -3, -4))
        allowed, ended = classes[..., tables["class"]], self._may_end(tables, contexts)
        is_boundary = jnp.arange(allowed.shape[-1]) == tables["boundary"]
        is_boundary = is_boundary.reshape((1,) * (allowed.ndim - 1) + (-1,))
        allowed = jnp.where(is_boundary, ended[..., None], allowed)
        allowed |= ~(contexts["size"] > 0).any(-1)[..., None]
        log_background = jnp.broadcast_to(tables["log_background"], allowed.shape)
        return jnp.where(allowed, log_background, -jnp.inf)


def _compile(automata, lexicon, path) -> dict[str, np.ndarray]:
    """Compiles automata to arrays for the words of a lexicon."""
    marks, boundary = (lexicon.boundary, lexicon.unknown), lexicon.ids[lexicon.boundary]
    words_by_symbol = {}
    for symbol in sorted({symbol for edges in automata.edges for symbol in edges}):
        kind, text = symbol
        if kind == "word":
            word_id = lexicon.ids.get(text)
            words_by_symbol[symbol] = frozenset(() if word_id in (None, boundary) else (word_id,))
        elif kind == "pattern":
            matches = grammar_rules.matcher(text)
            words_by_symbol[symbol] = frozenset(
                word_id
                for word_id, word in enumerate(lexicon.words)
                if word not in marks and matches(word)
            )
    symbol_lists: list = [[] for _ in range(len(lexicon))]
    for symbol, words in words_by_symbol.items():
        for word in words:
            symbol_lists[word].append(symbol)
    classes: dict = {(): 0}
    class_ids = [classes.setdefault(tuple(symbols), len(classes)) for symbols in symbol_lists]
    classes_by_symbol: dict = {}
    for symbols, word_class in classes.items():
        for symbol in symbols:
            classes_by_symbol.setdefault(symbol, []).append(word_class)

    completions = grammar_rules.completions(automata, lambda symbol: bool(words_by_symbol[symbol]))
    if math.isinf(completions[automata.start][0]):
        raise UserError(
            f"{path} has no form that consists of words of the lexicon only: correct the grammar, "
            "or give a vocabulary with its words."
        )
    reached = grammar_rules.skips(automata)
    shifts: dict = {}
    moves: dict = {}
    for state, state_shifts in enumerate(grammar_rules.shifts(automata, path)):
        for symbol, pushed, target in sorted(state_shifts):
            entries = (*pushed, target)
            if any(math.isinf(completions[entry][0]) for entry in entries):
                continue
            number = shifts.setdefault(entries, len(shifts) + 1)
            for word_class in classes_by_symbol.get(symbol, ()):
                moves.setdefault((state, word_class), {})[number] = None
    states, width = len(automata.edges), max(map(len, shifts), default=1)
    choices = max(map(len, moves.values()), default=1)
    note = f"{path}, of {states:,} states, {len(classes):,} classes of words and {choices:,} moves,"
    memory.check(note, 3 * 4 * states * len(classes) * choices, memory.host_memory())
    tables: dict[str, np.ndarray] = {
        "class": np.array(class_ids, np.int32),
        "first": np.array(automata.start, np.int32),
        "ends": np.array([any(automata.final[q] for q in reach) for reach in reached]),
        # A state that cannot be completed is never on a stack.
        "fewest": np.array([min(words, NEVER) for words, _ in completions], np.int32),
        "levels": np.array([min(levels, NEVER) for _, levels in completions], np.int32),
        "moves": np.zeros((states, len(classes), choices), np.int32),
        "pushed": np.zeros((len(shifts) + 1, width), np.int32),
        "height": np.zeros(len(shifts) + 1, np.int32),
    }
    move_words, move_room = np.full((2, len(shifts) + 1), NEVER, np.int32)
    for (state, word_class), numbers in moves.items():
        tables["moves"][state, word_class, : len(numbers)] = list(numbers)
    for entries, number in shifts.items():
        tables["pushed"][number, : len(entries)] = entries
        tables["height"][number] = len(entries)
        move_words[number] = min(sum(completions[entry][0] for entry in entries), NEVER)
        move_room[number] = max(
            height + completions[entry][1] for height, entry in enumerate(entries, 1)
        )
    move_table = tables["moves"]
    return tables | {"move_words": move_words[move_table], "move_room": move_room[move_table]}


def _beside(array, stack):
    """Appends axes of size 1 to an array until it has as many axes as the stacks."""
    return array.reshape(array.shape + (1,) * (stack.ndim - array.ndim))
