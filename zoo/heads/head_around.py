"""The base class of heads that wrap another head, such as with a cache or an expert."""

import inspect
from typing import TYPE_CHECKING

import jax

from zoo.arrays.types import Params, Prepared, Tables
from zoo.heads.head import Head
from zoo.lexicon import Lexicon


class HeadAround(Head):
    """Base class of heads that wrap another one, `self.head`, whose tables are tables["head"].

    Such a head is like the inner one in all that `FORWARDED` names, unless it writes it itself.
    """

    if TYPE_CHECKING:  # a field of each

        @property
        def head(self) -> Head: ...

    def inner_params(self, params: Params) -> Params:
        """Returns the inner head's parameters, which most wrappers have as their own."""
        return params

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        return self.head.init(key, hidden_size, lexicon)

    def _tables(self, lexicon: Lexicon) -> Tables:
        """Returns {"head": the inner head's tables, "background": the background's}."""
        return self._with_background(self.head.tables(lexicon), lexicon)

    def _evaluation_tables(self, lexicon: Lexicon) -> Tables:
        return self._with_background(self.head.evaluation_tables(lexicon), lexicon)

    def _with_background(self, tables, lexicon):
        assert self.background is not None
        return {"head": tables, "background": self.background.tables(lexicon)}

    def _prepared(self, params: Params, tables: Tables) -> Prepared:
        return self.head.prepared(self.inner_params(params), tables["head"])


FORWARDED = (
    *("loss_draws", "has_log_probs", "ordered_by_frequency", "parameter_axes"),
    *("form_taken", "vocabulary_size", "scores_per_token", "prepared_shapes", "_penalties"),
    *("for_lexicon", "normalised_over", "warnings"),
)


def _forwarded(name):
    """Returns an attribute or a method that is the inner head's, of its parameters and tables."""
    written = vars(Head)[name]
    if isinstance(written, property):
        return property(lambda self: getattr(self.head, name))
    parameters = [*inspect.signature(written).parameters][1:]

    def method(self, *given):
        arguments = dict(zip(parameters, given, strict=True))
        if "params" in arguments:
            arguments["params"] = self.inner_params(arguments["params"])
        if "tables" in arguments:
            arguments["tables"] = arguments["tables"]["head"]
        return getattr(self.head, name)(*arguments.values())

    return method


for _name in FORWARDED:
    setattr(HeadAround, _name, _forwarded(_name))
