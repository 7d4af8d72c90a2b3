"""Features of words from a user's own function."""

import dataclasses
import math
from collections.abc import Iterable, Mapping

from zoo.errors import UserError
from zoo.priors.prior import FeaturePrior
from zoo.sources.source import Corpus
from zoo.trust import permissions, user_modules


@dataclasses.dataclass(frozen=True)
class WordFunction(FeaturePrior):
    """Features of a word that a user's function returns.

    The function takes a word and returns {feature name: value}, or the names of features that have
    the value 1. It is given by its name, so that a recipe can be saved and loaded:

        priors.WordFunction("my_features:capitals")

    Attributes:
      function: "module:name"; the module lies beside the config or in the working folder, or is
        installed. It is imported when features are computed, never when a recipe is read. For a
        run that somebody else trained it is imported only if the user names it too: see
        zoo.trust.permissions.

    Example:
      >>> text = "def capitals(word):\\n    return {'Capitals': sum(c.isupper() for c in word)}"
      >>> _ = pathlib.Path("my_features.py").write_text(text)
      >>> prior = priors.WordFunction("my_features:capitals")
      >>> prior.features(("McCartney",), {}, {})
      [{'Capitals': 2.0}]
    """

    function: str

    def features(
        self,
        words: tuple[str, ...],
        corpora: dict[str, Corpus],
        entries: dict[str, tuple[str, ...]],
    ) -> list[dict[str, float]]:
        """Calls the function on each word and returns its features.

        Exceptions of the function and of its module are not caught.

        Raises:
          UserError: the function does not exist, or returns neither names of features nor a dict of
            names and finite numbers.
        """
        function = self._load()
        return [self._of_word(function, word) for word in words]

    def _load(self):
        permissions.check_function(self.function)
        try:
            function = user_modules.value(self.function)
        except user_modules.Missing as error:
            raise UserError(
                f"priors.WordFunction cannot find {self.function!r} ({error}): write module:name "
                "of a function beside the config, in the working folder, or where else Python "
                "imports from."
            ) from error
        if not callable(function):
            raise UserError(
                f"priors.WordFunction: {self.function!r} is not a function: name a function that "
                "takes a word."
            )
        return function

    def _of_word(self, function, word):
        try:
            given = function(word)
            if isinstance(given, str):  # whose letters would be taken for names
                given = [given]
            elif isinstance(given, Iterable) and not isinstance(given, Mapping):
                given = [*given]  # a generator of the user's may raise, too
        except Exception as error:  # the user's own
            error.add_note(f"{self.function} was given the word {word!r}.")
            raise
        try:
            named = given if isinstance(given, Mapping) else dict.fromkeys(given, 1.0)
            features = {name: float(value) for name, value in named.items()}
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{self.function} gives {given!r} for {word!r} ({error}): return names of features "
                "or a dict of name and number."
            ) from error
        for name, value in features.items():
            if not isinstance(name, str) or not math.isfinite(value):
                raise UserError(
                    f"{self.function} gives {name!r}: {value} for {word!r}: return names with "
                    "finite numbers."
                )
        return features
