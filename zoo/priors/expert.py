"""Experts: what a source of knowledge outside the network says the next word would be.

Dymetman and Xiao (2016), section 6: an "expert feature", 1 on a value that is got from a knowledge
base and the words so far. What is made of it is the matter of zoo.heads.with_expert.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from zoo import files
from zoo.errors import UserError
from zoo.priors.contextual import Contextual

# What an expert gives where it knows nothing.
NOTHING = -1


class Expert(Contextual):
    """Names at most one word for each position.

    The contexts that `apply` gives are int32 [B, T]: a word, or `NOTHING`.
    """


@dataclasses.dataclass(frozen=True)
class KnowledgeBase(Expert):
    """The value of the last relation, of the last subject, that the sentence has named so far.

    After "the capital of Estonia is" it is "Tallinn", and so it is after each later word until the
    sentence names another relation or subject. A sentence ends at the boundary.

    Attributes:
      path: a table, columns separated by tabs: the first line has a name for the column of subjects
        and then the relations; each other line a subject and the value of each relation, a word
        each, perhaps empty. It is read once, when the run begins.
    """

    path: str

    def prepare(self, lexicon, texts):
        """subject, relation: int32 [V], the number of what each word names, or -1; value: int32
        [subjects, relations], words; begin: the boundary, or -1. UserError for a bad table."""
        relations, facts = read_table(self.path)
        subject, relation = np.full((2, len(lexicon)), NOTHING, np.int32)
        for numbers, names in ((subject, facts), (relation, relations)):
            for number, name in enumerate(names):
                if name in lexicon.ids:
                    numbers[lexicon.ids[name]] = number
        if (subject < 0).all() or (relation < 0).all():
            raise UserError(
                f"the text has no subject of {self.path}, or none of its relations "
                f"{', '.join(relations)}: nothing could be looked up."
            )
        value = [
            [lexicon.ids.get(of_subject.get(name), NOTHING) for name in relations]
            for of_subject in facts.values()
        ]
        begin = lexicon.ids.get(lexicon.boundary, NOTHING)
        return {
            "subject": subject,
            "relation": relation,
            "value": np.array(value, np.int32),
            "begin": np.array(begin, np.int32),
        }

    def initial_carry(self, batch):
        """Neither subject nor relation is named: -1 each, [batch, 2]."""
        return jnp.full((batch, 2), NOTHING, jnp.int32)

    def apply(self, tables, words, carry, *, reset=None):
        """words [B, T] -> (the word that the knowledge base has, or -1, [B, T]; carry)."""
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


def read_table(path: str) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
    """(relations, {subject: {relation: value}}) of a table as KnowledgeBase describes it.

    Raises:
      UserError: the table is wrong; its line is named.
    """
    found = files.find(path)
    lines = files.read_text(found).split("\n")
    _, *relations = _cells(lines[0])
    if not all(relations) or len(set(relations)) < max(1, len(relations)):
        raise UserError(
            f"{found}, line 1: name the column of subjects and then each relation once, between "
            "tabs."
        )
    facts = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        subject, *values = _cells(line)
        if len(values) != len(relations) or any(len(cell.split()) > 1 for cell in _cells(line)):
            raise UserError(
                f"{found}, line {number}: write a subject and {len(relations)} values between "
                "tabs, a word each or nothing."
            )
        if not subject or subject in facts:
            raise UserError(f"{found}, line {number}: a line has one subject, and a subject one.")
        facts[subject] = {r: v for r, v in zip(relations, values, strict=True) if v}
    if not facts:
        raise UserError(f"{found} has no facts: give a line a subject.")
    return tuple(relations), facts


def _cells(line):
    return [cell.strip() for cell in line.rstrip("\r").split("\t")]
