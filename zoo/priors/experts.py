"""Experts: sources of knowledge outside the network that name the next word.

Dymetman and Xiao (2016), section 6: an "expert feature", 1 on a value that is looked up in a
knowledge base with the words so far. zoo.heads.with_expert makes a head use such a feature.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays.types import Carry, Tables
from zoo.errors import UserError, check_least
from zoo.lexicon import Lexicon
from zoo.priors.prior import Contextual, Reset, Texts, scan_words

# What an expert gives where it knows nothing.
NOTHING = -1


class Expert(Contextual):
    """A prior that names words at each position: contexts are word ids, int32 [B, T] or [B, T, M],
    any of them `NOTHING`, perhaps repeated."""


@dataclasses.dataclass(frozen=True)
class KnowledgeBase(Expert):
    """The value of the last relation of the last subject that the sentence has named so far.

    After "the capital of Estonia is" it is "Tallinn", and so it is after each later word until the
    sentence names another relation or subject. A sentence ends at the boundary.

    Attributes:
      path: a table, columns separated by tabs. The first line has a name for the column of subjects
        and then the relations; each other line has a subject and the value of each relation, one
        word each, perhaps empty. It is read once, when the run begins.

    Example:
      >>> text = "\\tcapital\\nEstonia\\tTallinn\\nItaly\\tRome\\n"
      >>> _ = pathlib.Path("facts.tsv").write_text(text)
      >>> lexicon = Lexicon(("the", "capital", "of", "Estonia", "is", "Tallinn"), np.ones(6, int))
      >>> expert = priors.KnowledgeBase("facts.tsv")
      >>> lexicon = with_background(lexicon, expert, [])
      >>> text = jnp.array([lexicon.encode(["the", "capital", "of", "Estonia", "is"])])
      >>> word_ids, _ = expert.apply(expert.tables(lexicon), text, expert.initial_carry(1))
      >>> word_ids.tolist()  # nothing, until the fourth word: word 5 is Tallinn
      [[-1, -1, -1, 5, 5]]
    """

    path: str

    def prepare(self, lexicon: Lexicon, texts: Texts) -> dict[str, np.ndarray]:
        """Reads the table, and numbers its subjects and relations."""
        from zoo.sources.table_rows import read_table

        relations, facts = read_table(self.path)
        subject, relation = np.full((2, len(lexicon)), NOTHING, np.int32)
        for numbers, names in ((subject, facts), (relation, relations)):
            for number, name in enumerate(names):
                if name in lexicon.ids:
                    numbers[lexicon.ids[name]] = number
        if (subject < 0).all() or (relation < 0).all():
            raise UserError(
                f"the text has no subject of {self.path}, or none of its relations "
                f"{', '.join(relations)}, so that nothing could be looked up: give a table whose "
                "subjects and relations are words of the text."
            )
        ids: dict = lexicon.ids
        value = [
            [ids.get(value_by_relation.get(name), NOTHING) for name in relations]
            for value_by_relation in facts.values()
        ]
        return {
            # [V], the number of the subject, and of the relation, that each word names, or -1
            "subject": subject,
            "relation": relation,
            "value": np.array(value, np.int32),  # [subjects, relations], a word, or -1
            "begin": np.array(ids.get(lexicon.boundary, NOTHING), np.int32),  # the boundary, or -1
        }

    def initial_carry(self, batch: int) -> Carry:
        """Returns (subject, relation) before any is named: -1, int32 [batch, 2]."""
        return jnp.full((batch, 2), NOTHING, jnp.int32)

    def apply(self, tables: Tables, words: jax.Array, carry: Carry, *, reset: Reset = None):
        """Looks up (the value at each position, or -1, int32 [B, T]; carry)."""
        mentions = jnp.stack([tables["subject"][words], tables["relation"][words]], axis=-1)
        fresh = words == tables["begin"]
        forgotten = fresh if reset is None else fresh | reset

        def step(carry: Carry, mention: jax.Array, forget: jax.Array):
            carry = jnp.where(mention >= 0, mention, jnp.where(forget[:, None], NOTHING, carry))
            return carry, carry

        last, carry = scan_words(step, carry, mentions, forgotten)
        subject, relation = last[..., 0], last[..., 1]
        has_both = (subject >= 0) & (relation >= 0)
        return jnp.where(has_both, tables["value"][subject, relation], NOTHING), carry


# --------------- experts that name words of the context, because words tend to be repeated
# As a feature of context and word, phi(k, x) = 1 if x is one of these words (Dymetman and Xiao
# 2016, section 2). With the last n words the feature is a cache. With the words of a question or a
# condition it is a way to copy names that have no weights of their own.


@dataclasses.dataclass(frozen=True)
class RecentWords(Expert):
    """The last n words, without the marks of the lexicon.

    Attributes:
      words: n.

    Example:
      >>> lexicon = Lexicon(("the", "cat", "sat"), np.ones(3, int))
      >>> expert = priors.RecentWords(words=2)
      >>> lexicon = with_background(lexicon, expert, [])
      >>> text = jnp.array([lexicon.encode(["the", "cat", "sat"])])
      >>> word_ids, _ = expert.apply(expert.tables(lexicon), text, expert.initial_carry(1))
      >>> word_ids.tolist()
      [[[-1, 0], [0, 1], [1, 2]]]
    """

    words: int = 20

    def __post_init__(self):
        check_least(self, "priors.RecentWords", words=1)

    def prepare(self, lexicon: Lexicon, texts: Texts) -> dict[str, np.ndarray]:
        """Returns {"named": int32 [V], the id of each word, or -1 for a mark}."""
        return {"named": _without_marks(lexicon)}

    def initial_carry(self, batch: int) -> Carry:
        """Returns the carry before any word: -1, int32 [batch, words]."""
        return jnp.full((batch, self.words), NOTHING, jnp.int32)

    def apply(self, tables: Tables, words: jax.Array, carry: Carry, *, reset: Reset = None):
        """Returns (the last words at each position, int32 [B, T, words], -1 for none; carry)."""

        def step(carry: Carry, word: jax.Array, forget: jax.Array):
            carry = jnp.where(forget[:, None], NOTHING, carry)
            carry = jnp.concatenate([carry[:, 1:], word[:, None]], axis=1)
            return carry, carry

        return scan_words(step, carry, tables["named"][words], reset)


@dataclasses.dataclass(frozen=True)
class PrefixWords(Expert):
    """The words before the separator of a sentence, named at the positions after it.

    Attributes:
      separator: the word between the given prefix and the learnt rest; see data.Prefixed.
      most: the number of words that are kept; later ones are not named.

    Example:
      >>> lexicon = Lexicon(("</s>", "|||", "a", "b"), np.ones(4, int), boundary="</s>")
      >>> expert = priors.PrefixWords(most=3)
      >>> lexicon = with_background(lexicon, expert, [])
      >>> text = jnp.array([lexicon.encode(["a", "b", "|||", "a", "</s>"])])
      >>> word_ids, _ = expert.apply(expert.tables(lexicon), text, expert.initial_carry(1))
      >>> word_ids[0, 2:].tolist()
      [[2, 3, -1], [2, 3, -1], [-1, -1, -1]]
    """

    separator: str = "|||"
    most: int = 32

    def __post_init__(self):
        check_least(self, "priors.PrefixWords", most=1)

    def prepare(self, lexicon: Lexicon, texts: Texts) -> dict[str, np.ndarray]:
        if self.separator not in lexicon.ids or lexicon.boundary is None:
            raise UserError(
                "priors.PrefixWords needs sentences that end with a boundary and have "
                f"{self.separator!r} after the given prefix: set its separator to the data's, and "
                "vocabulary.boundary."
            )
        return {
            "named": _without_marks(lexicon),
            "begin": np.array(lexicon.boundary_id, np.int32),
            "separator": np.array(lexicon.ids[self.separator], np.int32),
        }

    def initial_carry(self, batch: int) -> Carry:
        return {
            "words": jnp.full((batch, self.most), NOTHING, jnp.int32),  # of the prefix, then -1
            "count": jnp.zeros(batch, jnp.int32),  # the number of these words
            "after": jnp.zeros(batch, bool),  # whether the separator was read
        }

    def apply(self, tables: Tables, words: jax.Array, carry: Carry, *, reset: Reset = None):
        """Returns (the words of the prefix at each position, [B, T, most], -1 for none; carry)."""
        forgotten = words == tables["begin"]
        forgotten = forgotten if reset is None else forgotten | reset
        places = jnp.arange(self.most)

        def step(carry: Carry, word: jax.Array, forget: jax.Array):
            begun = ~forget[:, None]
            prefix, count = jnp.where(begun, carry["words"], NOTHING), carry["count"] * ~forget
            after = (carry["after"] & ~forget) | (word == tables["separator"])
            word_id = tables["named"][word]
            is_next = (~after & (word_id >= 0))[:, None] & (places[None] == count[:, None])
            prefix = jnp.where(is_next, word_id[:, None], prefix)
            count = jnp.minimum(count + is_next.any(axis=1), self.most)
            carry = {"words": prefix, "count": count, "after": after}
            return carry, jnp.where(after[:, None], prefix, NOTHING)

        return scan_words(step, carry, words, forgotten)


def _without_marks(lexicon):
    """Returns the id of each word, int32 [V], or -1 for <unk> and the boundary."""
    marks = (lexicon.unknown, lexicon.boundary)
    numbers = [NOTHING if word in marks else n for n, word in enumerate(lexicon.words)]
    return np.array(numbers, np.int32)
