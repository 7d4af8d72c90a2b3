"""A grammar over a trained model, which sets the probabilities of words that it forbids to 0."""

import dataclasses
import pathlib

from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lab.evaluation.changes.change import Change
from zoo.lab.options import Option
from zoo.lab.runs import checksums
from zoo.priors import Grammar

# Fields of a grammar's background that, beside its rules, determine which words it allows.
_LIMITS = ("start", "longest", "depth", "stacks")


@dataclasses.dataclass(frozen=True)
class Constraint(Change):
    """p'(x) proportional to p(x) where some form of a grammar continues with x, else 0.

    It continues the words since the source's separator, or since the boundary if it has none: the
    head's uniform background becomes priors.Grammar, its parameters stay.
    """

    grammar: str  # the file
    digest: str = ""  # of the words that it allows, once the change is applied

    name = "constrained"
    options = (
        Option(
            "--constrain",
            "restricts answers to --grammar",
            rules="--constrain needs --grammar FILE: needs a grammar",
        ),
    )
    apart = True

    @classmethod
    def from_arguments(cls, arguments, run):
        return cls(arguments.grammar)

    @classmethod
    def from_recipe(cls, run):
        background = run.experiment.head.background
        if not isinstance(background, Grammar):
            return None
        # Hashes the arrays that the run keeps: the file may have changed since training.
        tables = checksums.array_digests(run.lexicon.background_tables)
        limits = {name: getattr(background, name) for name in _LIMITS}
        digest = checksums.json_digest({"tables": tables, **limits})[:16]
        return cls(background.path, digest)

    def apply(self, run):
        head = run.experiment.head
        if not isinstance(head, LogLinear) or head.background is not None:
            raise UserError(
                "--constrain needs a heads.LogLinear without a background of its own, and this "
                "run's head is another: leave --constrain out."
            )
        separators = {source.form.separator for source in run.experiment.data.texts()}
        if len(separators) > 1:
            raise UserError(
                f"the texts of {run.path} begin their answers in different ways: leave "
                "--constrain out."
            )
        if getattr(run.experiment.model, "order", None) == "target_reversed":
            raise UserError(
                f"{run.path} writes translations from the last word to the first "
                "(model.order=target_reversed), and a grammar reads from the first: leave "
                "--constrain out."
            )
        background = Grammar(self.grammar, start=separators.pop(), stacks=8, splits=())
        prepared = background.prepare(run.lexicon, {})
        # All forms give the same probabilities; "product" does not support such a background.
        form = "auto" if head.form == "product" else head.form
        head = dataclasses.replace(head, background=background, form=form)
        model = dataclasses.replace(run.experiment.model, head=head)
        lexicon = dataclasses.replace(run.lexicon, background_tables=prepared)
        changed = run.with_change(self, model, lexicon=lexicon)
        return dataclasses.replace(changed, changes=(*run.changes, self.from_recipe(changed)))

    @property
    def label(self):
        return f"{self.name}-{self.digest[:8]}"

    @property
    def column(self):
        return f"{self.name} by {pathlib.PurePath(self.grammar).name} [{self.digest[:8]}]"

    @property
    def sentence(self):
        return f"only as the grammar {self.grammar} allows"
