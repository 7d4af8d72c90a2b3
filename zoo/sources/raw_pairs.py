"""Untokenised sentence pairs: the words of each side are found by the rules of its language."""

import dataclasses

from zoo.errors import UserError
from zoo.sources import moses
from zoo.sources.pairs import Pairs
from zoo.sources.source import Form


@dataclasses.dataclass(frozen=True)
class RawPairs(Pairs):
    """Untokenised sentences and their translations, split into words by the Moses tokenizer.

    Sentences to be translated are tokenised in the same way, and translations are written without
    blanks before punctuation. See `zoo.sources.moses` for the rules.

    Attributes:
      train: one or two paths as for `Pairs`.
      validation: as `train`.
      tests: as `train`, for the test splits "test1", "test2" ... ("test" if one).
      languages: the languages of sources and translations, such as ("en", "fr"); "" for a side
        whose words stand between blanks.

    Example:
      >>> _ = pathlib.Path("raw.en").write_text("It's late.\\n")
      >>> _ = pathlib.Path("raw.fr").write_text("L'homme dort.\\n")
      >>> both = "raw.en", "raw.fr"
      >>> source = data.RawPairs(train=both, validation=both, languages=("en", "fr"))
      >>> source.read("train").sentences
      [["L'", 'homme', 'dort', '.']]
    """

    languages: tuple[str, str] = ("en", "en")

    def __post_init__(self):
        super().__post_init__()
        if len(self.languages) != 2:
            raise UserError(
                f"data.languages is {self.languages}: give two, of sources and translations, as in "
                '("en", "fr").'
            )
        for language in filter(None, self.languages):
            moses.check(language, "data.languages")

    @property
    def form(self):
        """The form of pairs in two languages."""
        source, target = self.languages
        return Form(pairs=True, language=target, source_language=source)
