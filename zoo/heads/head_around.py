"""The base class of heads that wrap another head, such as with a cache or an expert."""

from collections.abc import Iterator
from typing import Any

import jax

from zoo.base.arrays.parameter_sharding import Axes
from zoo.base.arrays.types import Params, Prepared, Tables
from zoo.heads.head import Head
from zoo.lexicon import Lexicon


class HeadAround(Head):
    """Base class of heads that wrap another one, `self.head`, whose tables are tables["head"].

    The methods and properties below are the inner head's, unless a subclass overrides them.
    """

    head: Head

    @property
    def tied(self) -> bool:  # type: ignore[override]
        return self.head.tied

    @property
    def loss_draws(self) -> bool:
        return self.head.loss_draws

    @property
    def has_log_probs(self) -> bool:
        return self.head.has_log_probs

    @property
    def ordered_by_frequency(self) -> bool:
        return self.head.ordered_by_frequency

    @property
    def parameter_axes(self) -> Axes:
        return self.head.parameter_axes

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

    def prepared_shapes(self, tables: Tables, hidden_size: int) -> Any:
        return self.head.prepared_shapes(tables["head"], hidden_size)

    def _penalties(self, params: Params, hidden: jax.Array) -> jax.Array | None:
        return self.head._penalties(self.inner_params(params), hidden)

    def form_name(self, tables: Tables) -> str | None:
        return self.head.form_name(tables["head"])

    def vocabulary_size(self, params: Params, tables: Tables) -> int | None:
        return self.head.vocabulary_size(self.inner_params(params), tables["head"])

    def scores_per_token(self, vocabulary: int) -> int:
        return self.head.scores_per_token(vocabulary)

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        return self.head.for_lexicon(self.inner_params(params), lexicon, new_lexicon)

    def normalised_over(self, lexicon: Lexicon) -> str:
        return self.head.normalised_over(lexicon)

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        return self.head.warnings(lexicon)


def nested(head: Head) -> Iterator[Head]:
    """Yields a head and those inside it, the innermost last."""
    yield head
    if isinstance(head, HeadAround):
        yield from nested(head.head)
