"""Kneser-Ney models and their tables against dictionaries of counts."""

import collections
import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.marks import slow
from zoo.data import Corpus, Source, Text, Vocabulary
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.heads import LogLinear
from zoo.lexicon import with_features
from zoo.models import LanguageModel
from zoo.priors import KneserNey, backoff, kneser_ney


@dataclasses.dataclass(frozen=True)
class Letters(Source):
    """Sentences of letters, some of them often."""

    def splits(self):
        return ("train", "validation")

    def read(self, split):
        random = np.random.default_rng(len(split))
        shares = 1 / np.arange(1, 10) ** 1.3
        draw = random.choice(9, (60, 8), p=shares / shares.sum())
        lengths = random.integers(1, 9, 60)
        rows = zip(draw, lengths, strict=True)
        return Corpus(split, [["abcdefghi"[w] for w in row[:n]] for row, n in rows])

    def lexicon_entries(self):
        return {"j": ()}  # a word that is never seen


def built(order=3, **vocabulary):
    recipe = Experiment(
        data=Letters(),
        vocabulary=Vocabulary(unknown="refused", **vocabulary),
        model=LanguageModel(head=LogLinear(background=KneserNey(order))),
    )
    lexicon, corpora = recipe.build()
    features = [
        dict(zip(("x", "y"), (1.0, 2.0), strict=True)) if word in "aceg" else {word: 1.0}
        for word in lexicon.words
    ]
    return with_features(lexicon, features), corpora


def naive(sentences, words, order, boundary="</s>"):
    """b(context, word) by dictionaries: a context is a tuple of words, cut at boundaries."""
    raw = [collections.Counter() for _ in range(order)]
    for sentence in sentences:
        stream = [boundary, *sentence, boundary]
        for place in range(1, len(stream)):
            for length in range(order):
                if length <= place:
                    raw[length][tuple(stream[place - length : place + 1])] += 1
    adjusted = []
    for length, counts in enumerate(raw):
        if length + 1 == order:
            adjusted.append(dict(counts))
            continue
        before = collections.defaultdict(set)
        for longer in raw[length + 1]:
            before[longer[1:]].add(longer[0])
        adjusted.append({gram: len(before[gram]) or n for gram, n in counts.items()})
    tables = []
    for counts in adjusted:
        n = [sum(count == i for count in counts.values()) for i in (1, 2, 3, 4)]
        d = [0]
        if 0 not in n:
            y = n[0] / (n[0] + 2 * n[1])
            d = [1 - 2 * y * n[1] / n[0], 2 - 3 * y * n[2] / n[1], 3 - 4 * y * n[3] / n[2]]
        if any(not 0 < discount <= i for i, discount in enumerate(d, 1)):
            d = [0.5, 1, 1.5]  # of unigrams and bigrams there are too few with small counts
        tables.append((counts, [0, *d]))

    def probability(context, word):
        if context is None:
            return 1 / len(words)
        counts, d = tables[len(context)]
        followers = {v: counts[*context, v] for v in words if (*context, v) in counts}
        shorter = probability(context[1:] if context else None, word)
        if not followers:
            return shorter
        total = sum(followers.values())
        discount_mass = sum(d[min(count, 3)] for count in followers.values())
        discounted = followers[word] - d[min(followers[word], 3)] if word in followers else 0
        return discounted / total + discount_mass / total * shorter

    return probability


SEQUENCE = [*"abba", "</s>", *"cab", "</s>", *"jabacc"]


def contexts_after(background, tables, lexicon, words=tuple(SEQUENCE)):
    """(ids of one row of words, their contexts)."""
    ids = jnp.asarray([[lexicon.ids[word] for word in words]])
    return ids, background.apply(tables, ids, background.initial_carry(1))[0]


def expected_log_probs(probability, lexicon, order, resets):
    rows, context = [], []
    for place, word in enumerate(SEQUENCE):
        context = ([] if place in resets else context) + [word]
        if "</s>" in context:
            begin = len(context) - 1 - context[::-1].index("</s>")
        else:
            begin = 0
        used = tuple(context[begin:][-(order - 1) :])
        rows.append([probability(used, v) for v in lexicon.words])
    return np.log(rows)


@pytest.mark.parametrize("order", [*slow(2, 3), 4])
def test_the_model_is_that_of_the_dictionaries(order):
    lexicon, corpora = built(order)
    probability = naive(corpora["train"].sentences, lexicon.words, order)
    background = KneserNey(order)
    tables = background.tables(lexicon)
    words = jnp.asarray([[lexicon.ids[word] for word in SEQUENCE]] * 2)
    resets = np.zeros(words.shape, bool)
    resets[1, [3, 5, 8, 11]] = True  # 5 is the last word of a part
    expected = np.stack(
        [
            expected_log_probs(probability, lexicon, order, set(np.flatnonzero(row)))
            for row in resets
        ]
    )
    np.testing.assert_allclose(np.exp(expected).sum(-1), np.ones(words.shape), rtol=1e-9)

    @jax.jit
    def evaluate(tables, words, resets):
        contexts, end = background.apply(tables, words, background.initial_carry(2), reset=resets)
        carry, parts = background.initial_carry(2), []
        for part in (slice(0, 1), slice(1, 6), slice(6, 8), slice(8, None)):
            outputs, carry = background.apply(tables, words[:, part], carry, reset=resets[:, part])
            parts.append(outputs)
        log_probs = background.log_probs(tables, contexts)
        log_prob = background.log_prob(tables, contexts, words)
        return contexts, jnp.concatenate(parts, axis=1), end, carry, log_probs, log_prob

    contexts, in_parts, end, end_of_parts, log_probs, log_prob = evaluate(tables, words, resets)
    np.testing.assert_array_equal(in_parts, contexts)
    np.testing.assert_array_equal(end_of_parts, end)
    np.testing.assert_allclose(log_probs, expected, rtol=1e-5, atol=1e-5)
    chosen = np.take_along_axis(np.asarray(log_probs), np.asarray(words)[..., None], -1)[..., 0]
    np.testing.assert_allclose(log_prob, chosen, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("dense", "window"), [(16, 16), (1, 2), (2, 3), (10**6, 4)])
@pytest.mark.slow
def test_masses_of_signatures(monkeypatch, dense, window):
    """However the lists are kept: as dense rows, or in one or many windows."""
    monkeypatch.setattr(backoff, "DENSE", dense)
    monkeypatch.setattr(backoff, "WINDOW", window)
    monkeypatch.setattr(backoff, "WINDOWS", 5)
    lexicon, _ = built(3)
    background = KneserNey(3)
    tables = background.tables(lexicon)
    words, contexts = contexts_after(background, tables, lexicon)
    signature, members = lexicon.signatures
    masses = np.exp(background.log_masses(tables, contexts, signature, len(members)))
    probabilities = np.exp(background.log_probs(tables, contexts))
    expected = probabilities @ np.eye(len(members))[signature]
    np.testing.assert_allclose(masses, expected, rtol=1e-5)
    np.testing.assert_allclose(masses.sum(-1), np.ones(words.shape), rtol=1e-5)


@pytest.mark.slow
def test_contexts_without_boundaries_run_on():
    lexicon, corpora = built(2, boundary="none")
    background = KneserNey(2)
    tables = background.tables(lexicon)
    text = [word for sentence in corpora["train"].sentences for word in sentence]
    pairs = collections.Counter(itertools.pairwise(text))
    assert sum(count for (first, _), count in pairs.items() if first == "a") > 20
    followers = {second for first, second in pairs if first == "a"}
    _, contexts = contexts_after(background, tables, lexicon, "a")
    probabilities = np.exp(background.log_probs(tables, contexts))[0, 0]
    stored_tables = lexicon.background_tables
    node = int(contexts[0, 0, 0])
    is_listed = probabilities - stored_tables["backoff"][node] * stored_tables["unigram"] > 1e-7
    assert {lexicon.words[word] for word in np.flatnonzero(is_listed)} == followers


def test_discounts_by_hand():
    # Ten counts of 1, four of 2, two of 3, one of 4: the ratio is 10 / 18.
    counts = np.repeat([1, 2, 3, 4], [10, 4, 2, 1])
    expected = [1 - 2 * 10 / 18 * 0.4, 2 - 3 * 10 / 18 * 0.5, 3 - 4 * 10 / 18 * 0.5]
    np.testing.assert_allclose(kneser_ney.discounts(counts), expected)
    np.testing.assert_allclose(kneser_ney.discounts(np.array([1, 1, 5])), [0.5, 1.0, 1.5])


def test_a_model_without_splits_is_refused():
    with pytest.raises(UserError, match=r"priors\.KneserNey\.splits is empty"):
        KneserNey(splits=())
    with pytest.raises(UserError, match="no split 'corpus'"):
        Experiment(
            data=Letters(),
            model=LanguageModel(head=LogLinear(background=KneserNey(2, ("corpus",)))),
        ).build()


@pytest.mark.realdata("ptb")
def test_the_penn_treebank_has_the_perplexity_that_others_report():
    """148.3, the trigrams "KN3" of Mikolov et al. (2011), table 1, on the same files."""
    source = Text("ptb/ptb.train.txt", "ptb/ptb.valid.txt", ("ptb/ptb.test.txt",))
    vocabulary, background = Vocabulary(), KneserNey(3)
    lexicon, corpora = vocabulary.build(source)
    texts = {split: vocabulary.encode(corpora[split], lexicon) for split in ("train", "test")}
    prepared = background.prepare(lexicon, {"train": texts["train"]})
    tables = background.tables(dataclasses.replace(lexicon, background_tables=prepared))
    targets = texts["test"].words[None]
    words = np.roll(targets, 1)  # the text ends with the boundary, from which it begins

    @jax.jit
    def log_prob(tables, words, targets):
        contexts, _ = background.apply(tables, words, background.initial_carry(1))
        return background.log_prob(tables, contexts, targets)

    scores = np.asarray(log_prob(tables, words, targets), np.float64)
    assert np.exp(-scores.mean()) == pytest.approx(148.3, abs=0.05)


def test_contexts_of_another_order_are_refused():
    lexicon = built(order=3)[0]
    background = KneserNey(order=3)
    tables = background.tables(lexicon)
    contexts, words = jnp.zeros((2, 5, 6), jnp.int32), jnp.zeros((2, 5), jnp.int32)
    for function, arguments in ((background.log_prob, (words,)), (background.log_probs, ())):
        with pytest.raises(ValueError, match="contexts have 6 nodes a token, and KneserNey"):
            function(tables, contexts, *arguments)


DAMAGED = {
    "node_start has": ("node_start", 1, 2**31 - 1),
    "node_start ends at": ("node_start", -1, 2**31 - 1),
    "list_start has": ("list_start", 2, 2**31 - 1),
    "levels ends at": ("levels", -1, 2**31 - 1),
    "list_word has a number that no word of": ("list_word", 3, 99),
    "node_word has a number that no word of": ("node_word", 3, -1),
}


@pytest.mark.parametrize("reason", DAMAGED)
def test_damaged_tables_are_refused(reason):
    name, place, value = DAMAGED[reason]
    lexicon, _ = built()
    lexicon.background_tables[name][place] = value
    with pytest.raises(UserError, match=rf"n-grams of its background \({reason}.*: put back"):
        KneserNey(3).tables(lexicon)


def test_tables_of_another_shape_or_type_are_refused():
    for name, change in {
        "node_start": lambda array: array[:-1],
        "unigram": lambda array: array[1:],
        "list_word": lambda array: array.astype(np.float32),
        "backoff": lambda array: array[None],
        "levels": lambda array: array[:0],
    }.items():
        lexicon, _ = built()
        lexicon.background_tables[name] = change(lexicon.background_tables[name])
        with pytest.raises(UserError, match=r"does not have the n-grams of its background"):
            KneserNey(3).tables(lexicon)


def test_a_node_that_is_its_own_parent_is_refused():
    lexicon, _ = built()
    tables = lexicon.background_tables
    tables["node_start"][:3] = 1, 1, len(tables["node_word"])  # node 1 would be behind itself
    tables["node_start"][3:] = len(tables["node_word"])
    with pytest.raises(UserError, match=r"node_start has a node before its parent"):
        KneserNey(3).tables(lexicon)
