"""Open-vocabulary generation: words spelled letter by letter, in the lexicon or not.

A head that spells generates any string, and an embedding of letters reads it again. Neither depends
on the size of the lexicon, nor does a step of generation.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from zoo.data.vocabulary import Vocabulary
from zoo.decoding.beam import BeamSearch
from zoo.decoding.generation import read_prompt
from zoo.decoding.steps import Bound
from zoo.errors import UserError
from zoo.lexicon import Lexicon, spelling
from zoo.lexicon.spelling import BEGIN, END, PADDING

# Width of the beam that searches the most probable spelling.
BEAM = 32


def generate(
    model,
    params,
    lexicon: Lexicon,
    vocabulary: Vocabulary,
    *,
    prompt: str = "",
    count: int = 5,
    length: int = 30,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[list[str]]:
    """Generates texts as `generation.generate` does, of words that may be any strings; an embedding
    that has only one vector a word reads new words as the unknown word."""
    head = model.head
    if not head.spells:
        raise UserError(
            f"a {type(head).__name__} only generates words of the lexicon: leave --spell out, "
            "which is for heads.CharLSTM."
        )
    if temperature not in (0, 1):
        raise UserError(f"the temperature is {temperature}: give 1 or 0 to draw spellings.")
    prompt_words = read_prompt(prompt, count, length, seed, lexicon, vocabulary)
    prefix = ([lexicon.boundary] if lexicon.boundary else []) + prompt_words
    longest = max(head.spelling.longest, *(len(word.encode()) for word in prefix))
    read = functools.partial(_read_words, model, params, lexicon, longest)
    spell = _compiled(head, temperature == 0)

    carry = model.initial_carry(count)
    for word in prefix:
        hidden, carry = read([word] * count, carry)
    texts, open_texts = [list(prompt_words) for _ in range(count)], set(range(count))
    for position in range(length):
        key = jax.random.fold_in(jax.random.key(seed), position)
        letters = np.asarray(spell(params["head"], hidden, key))
        words = [spelling.word(row, lexicon, head.spelling) for row in letters]
        open_texts -= set(np.flatnonzero(letters[:, 0] == spelling.BOUNDARY).tolist())
        for row in open_texts:
            texts[row].append(words[row])
        if not open_texts:
            break
        hidden, carry = read(words, carry)
    return texts


@functools.cache
def _compiled(head, greedy):
    """Returns a compiled (params, hidden [B, D], key) -> spellings int32 [B, longest]."""
    if greedy:
        return jax.jit(
            lambda params, hidden, key: search_spellings(head, params, hidden, 1, BEAM)[1][:, 0]
        )
    return jax.jit(head.sample_spellings)


@functools.cache
def _compiled_states(model):
    def states(params, tables, words, carry):
        hidden, carry = model.hidden(params, tables, words[:, None], carry)
        return hidden[:, 0], carry

    return jax.jit(states)


def _read_words(model, params, lexicon, longest, words, carry):
    """Reads words as strings, in a lexicon made of them; returns (hidden [B, D], carry)."""
    marks = [mark for mark in (lexicon.boundary, lexicon.unknown) if mark is not None]
    # Equal words share a row. The other rows have the length of the longest possible word, so that
    # the tables of all steps have one shape.
    rows = dict.fromkeys((*marks, *words))
    fillers = ("x" * size for size in itertools.count(longest))
    while len(rows) <= len(marks) + len(words):
        rows[next(fillers)] = None
    word_lexicon = Lexicon(
        tuple(rows),
        np.zeros(len(rows), np.int64),
        unknown=lexicon.unknown,
        boundary=lexicon.boundary,
        alphabet=lexicon.letters,
    )
    embedding = model.embedding
    embedding_params = embedding.for_lexicon(params["embedding"], lexicon, word_lexicon)
    params = {**params, "embedding": embedding_params}
    tables = {"embedding": embedding.tables(word_lexicon)}
    word_ids = np.array([word_lexicon.ids[word] for word in words], np.int32)
    return _compiled_states(model)(params, tables, word_ids, carry)


def _next_letter(head, params, projected, symbols, carry):
    """Computes a step whose words are letters, numbered from the end mark."""
    state, rows = carry
    log_probs, state = head.spelling_step(params, projected[rows], END + symbols, state)
    return log_probs, (state, rows)


def search_spellings(head, params, hidden, k: int, width: int = 32):
    """Searches the k most probable spellings of a word, with a beam."""
    settings = BeamSearch(width, k, longest=head.spelling.longest, every_end=True)
    projected = head.hidden_projection(params, hidden)
    hypotheses = settings.search(
        jax.tree_util.Partial(Bound(_next_letter, head), params, projected),
        jnp.full(len(hidden), BEGIN - END),
        (head.spelling_start(projected), jnp.arange(len(hidden))),
        boundary=0,
    )
    is_letter = jnp.arange(head.spelling.longest)[None, None] < hypotheses.lengths[..., None]
    spellings = jnp.where(is_letter, END + hypotheses.words, PADDING)
    return hypotheses.log_prob, spellings, hypotheses.missed
