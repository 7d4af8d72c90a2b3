"""Experts: sources of knowledge outside the network that name the next word.

Dymetman and Xiao (2016), section 6: an "expert feature", 1 on a value that is looked up in a
knowledge base with the words so far. zoo.heads.with_expert makes a head use such a feature.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays.types import Carry, Context, Tables
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors.backgrounds.contextual import Contextual

# What an expert gives where it knows nothing.
NOTHING = -1


class Expert(Contextual):
    """A prior that names one or several words at each position.

    The contexts of `apply` are word ids, int32 [B, T] or [B, T, M]. Any of them may be `NOTHING`,
    and words may be repeated.
    """


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
      >>> known = with_background(lexicon, expert, [])
      >>> read = jnp.array([known.encode(["the", "capital", "of", "Estonia", "is"])])
      >>> named, _ = expert.apply(expert.tables(known), read, expert.initial_carry(1))
      >>> named.tolist()  # nothing, until the fourth word: word 5 is Tallinn
      [[-1, -1, -1, 5, 5]]
    """

    path: str

    def prepare(self, lexicon: Lexicon, texts) -> dict[str, np.ndarray]:
        """Reads the knowledge base.

        Args:
          lexicon: the words.
          texts: not used.

        Returns:
          subject: int32 [V], the number of the subject that each word names, or -1.
          relation: int32 [V], the number of the relation that each word names, or -1.
          value: int32 [subjects, relations], a word, or -1.
          begin: int32 [], the boundary, or -1.

        Raises:
          UserError: the table is malformed, or the lexicon has none of its subjects or relations.
        """
        from zoo.sources.tables import read_table  # not with every head

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
            [ids.get(of_subject.get(name), NOTHING) for name in relations]
            for of_subject in facts.values()
        ]
        begin = ids.get(lexicon.boundary, NOTHING)
        return {
            "subject": subject,
            "relation": relation,
            "value": np.array(value, np.int32),
            "begin": np.array(begin, np.int32),
        }

    def initial_carry(self, batch: int) -> Carry:
        """Returns (subject, relation) before any is named: -1, int32 [batch, 2]."""
        return jnp.full((batch, 2), NOTHING, jnp.int32)

    def apply(
        self, tables: Tables, words: jax.Array, carry: Carry, *, reset: jax.Array | None = None
    ) -> tuple[Context, Carry]:
        """Looks up (the value at each position, or -1, int32 [B, T]; carry)."""
        named = jnp.stack([tables["subject"][words], tables["relation"][words]], axis=-1)
        fresh = words == tables["begin"]
        forgotten = fresh if reset is None else fresh | reset

        def step(carry, inputs):
            new, forget = inputs
            carry = jnp.where(new >= 0, new, jnp.where(forget[:, None], NOTHING, carry))
            return carry, carry

        columns = jnp.moveaxis(named, 1, 0), forgotten.T
        carry, last = jax.lax.scan(step, carry, columns)
        subject, relation = jnp.moveaxis(last, 0, 1)[..., 0], jnp.moveaxis(last, 0, 1)[..., 1]
        known = (subject >= 0) & (relation >= 0)
        return jnp.where(known, tables["value"][subject, relation], NOTHING), carry
