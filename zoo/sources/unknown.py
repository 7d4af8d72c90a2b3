"""A text that is not known, of a model that was trained elsewhere."""

import dataclasses

from zoo.errors import UserError
from zoo.sources.source import Form, Source
from zoo.sources.text import Characters, Text


@dataclasses.dataclass(frozen=True)
class Unknown(Source):
    """The text of a model that was trained elsewhere, of which Zoo knows nothing.

    Other texts are read as by `Text` or `Characters`.

    Attributes:
      is_character_level: whether the tokens are characters, not words between white space.

    Example:
      >>> data.Unknown().with_test("text.txt").read("test").sentences
      [['the', 'cat', 'sat'], ['the', 'cat']]
    """

    is_character_level: bool = False

    @property
    def form(self):
        return Form(plain=not self.is_character_level)

    def with_test(self, path):
        kind = Characters if self.is_character_level else Text
        return kind(train=path, validation=path, tests=(path,))

    def splits(self):
        return ("train", "validation", "test")

    def read(self, split):
        raise UserError(
            f"the {split} text is not known, for the model was trained elsewhere: give a text, as "
            "in --data FILE."
        )
