"""A head that spells words, with its probabilities renormalised over the words of the lexicon."""

import dataclasses

from zoo.errors import UserError
from zoo.heads.head_around import nested
from zoo.lab.evaluation.changes.change import Change
from zoo.lab.options import Option


@dataclasses.dataclass(frozen=True)
class Renormalised(Change):
    """p(x | h) of a word divided by the sum over the words of the lexicon."""

    name = "renormalised"
    options = (Option("--renormalise", "normalises a head of all spellings over the lexicon"),)
    sentence = "renormalised over the lexicon"

    @classmethod
    def from_arguments(cls, arguments, run):
        return cls()

    @classmethod
    def from_recipe(cls, run):
        return cls() if any(head.renormalised for head in nested(run.experiment.head)) else None

    def apply(self, run):
        model = run.experiment.language_model
        if not model.head.spells:
            raise UserError(
                f"a {type(model.head).__name__} spells no words itself, so has nothing to "
                "renormalise: leave out --renormalise."
            )
        head = dataclasses.replace(model.head, renormalised=True)
        return run.with_change(self, dataclasses.replace(model, head=head))
