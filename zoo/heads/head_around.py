"""Heads that stand around another one, of which they show what that one is."""

from typing import TYPE_CHECKING

from zoo.arrays.types import Tables
from zoo.heads.head import Head


class HeadAround(Head):
    """A head around another one, its field `head`, whose tables are `tables["head"]`."""

    if TYPE_CHECKING:  # a field of each

        @property
        def head(self) -> Head: ...

    @property
    def draws_noise(self) -> bool:
        return self.head.draws_noise

    @property
    def ordered_by_frequency(self) -> bool:
        return self.head.ordered_by_frequency

    def form_taken(self, tables: Tables) -> str | None:
        return self.head.form_taken(tables["head"])

    def scores_per_token(self, vocabulary: int) -> int:
        return self.head.scores_per_token(vocabulary)
