"""Automata of grammars against a recogniser that knows nothing of automata."""

import dataclasses
import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.marks import slow
from zoo.base.arrays import memory
from zoo.cores import LSTM
from zoo.data.encoded_text import EncodedText
from zoo.data.vocabulary import Vocabulary
from zoo.decoding.generation import generate
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lexicon import Lexicon, with_features
from zoo.models import LanguageModel
from zoo.priors import Grammar, grammar_rules

# Each grammar as its file, and as plain productions of single symbols for the recogniser.
SUMS = (
    """
sum: product ("+" product)*   # what stands behind a sign is no part of it: "#"
product: atom ("*" atom)*
atom: /[xy]/ | "(" sum ")"
""",
    {
        "sum": [["product"], ["sum", "+", "product"]],
        "product": [["atom"], ["product", "*", "atom"]],
        "atom": [["x"], ["y"], ["(", "sum", ")"]],
    },
    ("x", "y", "+", "*", "(", ")", "z"),
)
# Ambiguous in every way: optional and repeated rules, rules that may be nothing, common beginnings.
DANGLING = (
    """
all: nothing twice nothing
twice: if | if if
if: "i" if "e" if
  | "i" if
  | "s" nothing
  | some "b"
some: ("s" | "b")+
nothing: ("n" nothing?)?
""",
    {
        "all": [["twice"], ["n+", "twice"], ["twice", "n+"], ["n+", "twice", "n+"]],
        "twice": [["if"], ["if", "if"]],
        "if": [["i", "if", "e", "if"], ["i", "if"], ["s"], ["s", "n+"], ["some", "b"]],
        "some": [["s"], ["b"], ["some", "s"], ["some", "b"]],
        "n+": [["n"], ["n", "n+"]],
    },
    ("i", "e", "s", "b", "n", "x"),
)
REGULAR = (
    """form: ("a" "b"? "c"* | 'b' "a")+\n""",
    {
        "form": [["part"], ["part", "form"]],
        "part": [["a"], ["a", "b"], ["a", "c+"], ["a", "b", "c+"], ["b", "a"]],
        "c+": [["c"], ["c", "c+"]],
    },
    ("a", "b", "c"),
)
GRAMMARS = {"sums": SUMS, "dangling": DANGLING, "regular": REGULAR}


def recogniser(productions):
    """derives(rule, words): whether the productions derive the words, by trying all splits."""

    @functools.cache
    def derives(symbol, words):
        if symbol not in productions:
            return words == (symbol,)
        return any(spans(tuple(right), words) for right in productions[symbol])

    @functools.cache
    def spans(right, words):
        if len(right) == 1:
            return derives(right[0], words)
        # No production here derives nothing, so that each symbol has a word at least.
        return any(
            derives(right[0], words[:cut]) and spans(right[1:], words[cut:])
            for cut in range(1, len(words) - len(right) + 2)
        )

    return lambda words: derives(next(iter(productions)), tuple(words))


def lexicon_of(words):
    words = ("</s>", *words)
    lexicon = Lexicon(words=words, counts=np.ones(len(words), int), boundary="</s>")
    background = np.log(np.arange(1, len(words) + 1) / sum(range(len(words) + 1)))
    return with_features(lexicon, [{word: 1.0} for word in words], background)


def compiled(folder, text, words, **options):
    """(the background, the lexicon with its tables)."""
    (folder / "forms.grammar").write_text(text, encoding="utf-8")
    background = Grammar(str(folder / "forms.grammar"), **options)
    lexicon = lexicon_of(words)
    prepared = background.prepare(lexicon, {})
    return background, dataclasses.replace(lexicon, background_tables=prepared)


def masses_after(background, lexicon, prefixes):
    """b of every word after the boundary and each prefix."""
    tables = background.tables(lexicon)
    width = 1 + max(map(len, prefixes))
    words = np.zeros((len(prefixes), width), int)  # boundaries, the last of which begins a form
    for row, prefix in zip(words, prefixes, strict=True):
        row[width - len(prefix) :] = [lexicon.ids[word] for word in prefix]
    step = jax.jit(
        lambda tables, words: background.log_probs(
            tables, background.apply(tables, words, background.initial_carry(len(words)))[0]
        )[:, -1]
    )
    return np.exp(step(tables, jnp.asarray(words)))


@pytest.mark.parametrize("name", ["sums", "regular", *slow("dangling")])
def test_the_next_words_are_those_that_lead_to_a_form(tmp_path, name):
    """Of all beginnings of at most `longest` words, against all forms of so many."""
    text, productions, words = GRAMMARS[name]
    longest = 5
    background, lexicon = compiled(tmp_path, text, words, longest=longest, stacks=16)
    parses = recogniser(productions)
    forms = [
        form
        for length in range(1, longest + 1)
        for form in itertools.product(words, repeat=length)
        if parses(form)
    ]
    assert len(forms) > 40
    nexts = {}
    for form in forms:
        for cut in range(longest + 1):
            if cut <= len(form):
                following = form[cut] if cut < len(form) else "</s>"
                nexts.setdefault(form[:cut], set()).add(following)
    unigram = np.exp(lexicon.log_background)
    prefixes = sorted(nexts)
    for prefix, masses in zip(prefixes, masses_after(background, lexicon, prefixes), strict=True):
        allowed = [word in nexts[prefix] for word in lexicon.words]
        expected = np.where(allowed, unigram, 0)
        np.testing.assert_allclose(masses, expected, rtol=1e-5, err_msg=str(prefix))


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("limits", [(3, 9, 1), (5, 12, 3)], ids=str)
@pytest.mark.slow
def test_whatever_is_drawn_parses(tmp_path, name, limits):
    """However tight the limits: a form is complete in time, and no draw is stuck."""
    depth, longest, stacks = limits
    text, productions, words = GRAMMARS[name]
    background, lexicon = compiled(
        tmp_path, text, words, depth=depth, longest=longest, stacks=stacks
    )
    model = LanguageModel(Lookup(4), LSTM(5), LogLinear(background=background))
    params = examples.random_params(model, np.random.default_rng(limits), lexicon, scale=0.7)
    tables = model.tables(lexicon)
    texts = generate(
        model, params, tables, lexicon, Vocabulary(), count=60, length=longest + 1, seed=depth
    )
    parses = recogniser(productions)
    assert all(0 < len(form) <= longest and parses(form) for form in texts)
    assert len(set(map(tuple, texts))) > 8


def test_single_words_have_the_mass_that_they_have_among_all(tmp_path):
    text, _, words = DANGLING
    background, lexicon = compiled(tmp_path, text, words)
    tables = background.tables(lexicon)
    sequence = ("</s>", "n", "n", "i", "s", "e", "b", "b", "x", "s", "</s>")
    before = jnp.asarray([[lexicon.ids[word] for word in sequence]])

    @jax.jit
    def evaluate(tables, before, words):
        contexts, _ = background.apply(tables, before, background.initial_carry(1))
        return background.log_probs(tables, contexts), background.log_prob(tables, contexts, words)

    for word in range(len(lexicon)):
        log_probs, log_prob = evaluate(tables, before, jnp.full(before.shape, word))
        np.testing.assert_array_equal(log_prob, log_probs[..., word])
    assert np.isneginf(log_probs).any(-1).sum() == 9  # free from the wrong word to the boundary


def test_forms_after_a_question(tmp_path):
    text, _, words = REGULAR
    background, lexicon = compiled(tmp_path, text, (*words, "|"), start="|")
    unigram = np.exp(lexicon.log_background)
    free = masses_after(background, lexicon, [("c", "b", "c")])
    np.testing.assert_allclose(free[0], unigram, rtol=1e-5)
    inside = masses_after(background, lexicon, [("c", "|", "b")])
    allowed = [word == "a" for word in lexicon.words]
    np.testing.assert_allclose(inside[0], np.where(allowed, unigram, 0), rtol=1e-5)
    # After a word that no form has there, and after the end of a form, all are free again.
    for words in (("c", "|", "c"), ("|", "a", "</s>")):
        masses = masses_after(background, lexicon, [words])
        np.testing.assert_allclose(masses[0], unigram, rtol=1e-5)


def test_resets_and_parts_of_a_sequence(tmp_path):
    text, _, words = SUMS
    background, lexicon = compiled(tmp_path, text, words)
    tables = background.tables(lexicon)
    words = jnp.asarray([[lexicon.ids[word] for word in ("</s>", "x", "+", "(", "y", "</s>", "x")]])
    reset = jnp.zeros(words.shape, bool).at[0, 4].set(True)
    contexts, end = background.apply(tables, words, background.initial_carry(1), reset=reset)
    first, carry = background.apply(tables, words[:, :3], background.initial_carry(1))
    second, carry = background.apply(tables, words[:, 3:], carry, reset=reset[:, 3:])
    parts = jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=1), first, second)
    inside = np.asarray(contexts["size"] > 0).any(-1)
    np.testing.assert_array_equal(inside, [[1, 1, 1, 1, 0, 1, 1]])
    jax.tree.map(np.testing.assert_array_equal, parts, contexts)
    jax.tree.map(np.testing.assert_array_equal, carry, end)


BAD = {
    "undefined": ('a: "x" b\n', 1, "the rule b is not defined"),
    "open": ('a: "x"\nb: ("x" |\n  "y"\n', 3, r"a \( is never closed"),
    "closed": ('a: "x" )\n', 1, r"a \) has no \( before it"),
    "empty": ('a: "x" | \n', 1, "an alternative is empty"),
    "nothing to repeat": ('a: * "x"\n', 1, r"\* has nothing before it to repeat"),
    "twice": ('a: "x"\n\na: "y"\n', 3, "already in line 1"),
    "stray": ('a: "x" = "y"\n', 1, "'=' is not a symbol"),
    "pattern": ('a: "x"\n  | /[/\n', 2, "is not a valid regular expression"),
    **{
        f"pattern {pattern}": (f"a: /x+/\n  | /{pattern}/\n", 2, "words are matched by letters, cl")
        for pattern in ("(?=x)y", "^x", "x$", r"(x)\1", "(?i)x", "x*+", r"x\b", "{x", "x{1000}")
    },
    "many letters": ("a: /(x{99}){102}/\n", 1, "it has more than 10,000 letters and signs"),
    "repetitions": ("a: /x{3,2}/\n", 1, "min repeat greater than max repeat"),
    "a class of another meaning in future": ("a: /[[x]/\n", 1, "Possible nested set"),
    "nested": (
        f"a: {'(' * 101}b{')' * 101}\n" + 'b: "x"\n',
        1,
        "more than 100 parentheses stand within each other",
    ),
    "deeply nested": (f'a: {"(" * 5000}"x"{")" * 5000}\n', 1, "more than 100 parentheses stand"),
    "nested in a pattern": (f"a: /{'(' * 101}x{')' * 101}/\n", 1, "more than 100 parentheses"),
    "deeply nested in a pattern": (
        f"a: /{'(' * 2000}x{')' * 2000}/\n",
        1,
        r"/\({60}\.\.\./ is not a valid regular expression \(maximum recursion depth",
    ),
    "left": ('a: b\nb: c? d\nc: "x"\nd: b "y"\n', 2, "the rule b can begin with itself"),
    "many states": (
        's: "x"\nt: ("a" | "b")* "a"' + ' ("a" | "b")' * 14 + "\n",
        2,
        "the rule t has more than 50,000 states and edges",
    ),
    "no head": ('"x"\n', 1, "begin a rule with its name"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_grammars_are_named_with_their_line(case):
    text, line, message = BAD[case]
    with pytest.raises(UserError, match=rf"^forms\.grammar, line {line}: .*{message}"):
        grammar_rules.read(text, "forms.grammar")


PATTERNS = (
    *("(a+)+b", "(?:a|ab)*b?", "([a-b]+-)*[^-]", r"(\w|a\.)+?", "(a?|(.b)*)+", "([]a]-)*"),
    *("a*a*a*a*a*a*a*a*a*a*a*a*b", ".*.*.*=.*", "a{2}", "(ab?){2,}", "(a|b){1,3}-?", "a{0}b{0,2}?"),
    *("((a)|b{1,2}){2}", r"[^\w]+|a", "-{2}", "(a{2}){2}b*?"),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_as_python_has_them(pattern):
    """Yet in linear time: Python would try 2^5000 ways for (a+)+b, and 5000^12 for a*a* ... b."""
    matches, expected = grammar_rules.matcher(pattern), re.compile(pattern).fullmatch
    for size in range(6):
        for letters in itertools.product("ab-.]", repeat=size):
            word = "".join(letters)
            assert matches(word) == bool(expected(word)), word
    matches("a" * 5000 + "!")


def test_a_training_form_that_is_none_is_named(tmp_path):
    text, _, words = SUMS
    background, lexicon = compiled(tmp_path, text, words)
    forms = [["x", "+", "y"], ["(", "x", "x", ")"]]
    ids = [[lexicon.ids[word] for word in (*form, "</s>")] for form in forms]
    words = np.concatenate(ids)
    flags = np.ones(len(words), bool)
    encoded = EncodedText(words, flags, flags, np.array([0, 4]))
    with pytest.raises(
        UserError, match=r"sentence 2 of train is not a form of .*: its word 3, 'x'"
    ):
        background.prepare(lexicon, {"train": encoded})
    good = EncodedText(words[:4], flags[:4], flags[:4], np.array([0]))
    assert set(background.prepare(lexicon, {"train": good})) == set(background.prepare(lexicon, {}))


def test_grammars_without_a_form_in_the_lexicon(tmp_path):
    with pytest.raises(UserError, match="has no form that consists of words of the lexicon"):
        compiled(tmp_path, 'a: "x" b\nb: "z" b | "q"\n', ("x", "z"))
    with pytest.raises(UserError, match="has 3 words and 1 levels"):
        compiled(tmp_path, 'a: "x" "x" "x"\n', ("x",), longest=2)
    # A rule within another takes a level where more is to come after it, and none at the end.
    within = 'a: "x" b "x"\nb: "x" c\nc: "x" d "x"\nd: "x"\n'
    compiled(tmp_path, within, ("x",), depth=3)
    with pytest.raises(UserError, match="has 6 words and 3 levels"):
        compiled(tmp_path, within, ("x",), depth=2)
    # A shortest form of 2^40 words, more than an int32 holds.
    text = "".join(f"r{n}: r{n + 1} r{n + 1}\n" for n in range(40)) + 'r40: "x"\n'
    with pytest.raises(UserError, match=r"the shortest form of .* has 1073741824 words"):
        compiled(tmp_path, text, ("x",))


def test_rules_that_begin_with_two_others_each_are_limited(tmp_path):
    """Each level doubles the ways to read a word: 4, 8, ... 2^30."""
    levels = (
        f'a{n}: a{n + 1} "x" | b{n + 1} "y"\nb{n}: a{n + 1} "z" | b{n + 1} "w"\n' for n in range(30)
    )
    text = "".join(levels) + 'a30: "x"\nb30: "y"\n'
    message = r"\.grammar, line \d+: up to the rule [ab]\d+, words can be read in more than 500,000"
    with pytest.raises(UserError, match=message):
        compiled(tmp_path, text, ("x", "y"))


def test_a_long_list_of_words_is_a_rule():
    """One that is repeated has an edge from each word to each, unless it is a rule of its own."""
    words = " | ".join(f'"w{number}"' for number in range(60_000))
    automata = grammar_rules.read(f"s: word*\nword: {words}\n", "list.grammar")
    start = automata.starts["word"]
    assert len(automata.edges[start]) == 60_000 and not automata.final[start]
    assert automata.final[:start] == [True, True] and all(automata.final[start + 1 :])
    short_list = " | ".join(f'"w{number}"' for number in range(300))
    with pytest.raises(UserError, match=r"list\.grammar, line 1: the rule s has more than 50,000"):
        grammar_rules.read(f"s: ({short_list})*\n", "list.grammar")


def test_a_rule_whose_states_are_of_many_places_is_refused(monkeypatch):
    """Each of its 513 states, with two edges, stands for some hundred places."""
    parts = ['(("a" | "b")* "a"' + n * ' ("a" | "b")' + ")" for n in range(9)]
    text = f"s: {' | '.join(parts)}\n"
    assert len(grammar_rules.read(text, "forms.grammar").edges) == 2**9 + 1
    monkeypatch.setattr(grammar_rules, "LARGEST", 3000)  # more than its states and edges
    with pytest.raises(UserError, match=r"line 1: the rule s .* at too many places at once"):
        grammar_rules.read(text, "forms.grammar")


def test_a_table_larger_than_memory_is_refused(tmp_path, monkeypatch):
    """Of 51 states (one after each word), 51 classes (each word's, and <unk>'s), 1 move."""
    words = [f"w{number}" for number in range(50)]
    text = "s: " + " ".join(f'"{word}"' for word in words) + "\n"
    monkeypatch.setattr(memory, "host_memory", lambda: 3 * 4 * 51 * 51 - 1)
    message = (
        r"forms\.grammar, of 51 states, 51 classes of words and 1 moves, needs at least 31,212 b"
    )
    with pytest.raises(UserError, match=message):
        compiled(tmp_path, text, words)
    monkeypatch.setattr(memory, "host_memory", lambda: 3 * 4 * 51 * 51)
    _, lexicon = compiled(tmp_path, text, words)
    assert lexicon.background_tables["moves"].shape == (51, 51, 1)


def test_a_long_chain_of_rules_is_read_and_deep_parentheses_are_refused(tmp_path):
    lines = [f'r{number}: r{number + 1} "x"\n' for number in range(1500)]
    automata = grammar_rules.read("".join(lines) + 'r1500: "a"\n', "chain.grammar")
    ((symbol, pushed, _),) = grammar_rules.shifts(automata, "chain.grammar")[automata.start]
    assert symbol == ("word", "a") and len(pushed) == 1500
    with pytest.raises(UserError, match="more than 100 parentheses stand within each other"):
        compiled(tmp_path, "s: " + "(" * 2000 + '"a"' + ")" * 2000 + "\n", ("a",))
    deepest = "s: " + "(" * 100 + '"a"' + ")" * 100 + ' ("a") ("a")\n'
    assert grammar_rules.read(deepest, "forms.grammar").final == [False, False, False, True]
