"""Features of words from a table, such as a dictionary, a list of norms or an inflection table."""

import collections
import dataclasses
import logging
import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

from zoo.base.trust import permissions, user_modules
from zoo.errors import UserError, quote
from zoo.priors.prior import Corpora, Entries, FeaturePrior, Words
from zoo.sources import files, table_rows

logger = logging.getLogger(__name__)

_NOTHING = ("", "_")  # cells without a feature


class _FilePrior(FeaturePrior):
    """The base of the priors that read the features of words from a file."""

    path: str
    lower_case: bool
    remedy: ClassVar[str]  # where the file has no word of the lexicon

    def features(self, words: Words, corpora: Corpora, entries: Entries) -> list[dict[str, float]]:
        """Returns the features of each word that the file has."""
        path = files.find(self.path)
        table = self._read(path)
        keys = [self._key(word) for word in words]
        match_count = len(table.keys() & set(keys))
        logger.info("%d of %d words of %s are in the lexicon", match_count, len(table), path)
        if not match_count:
            examples = f", such as {quote([*table], 3)}," if table else ""
            raise UserError(
                f"none of the {len(table)} words of {path}{examples} is in the lexicon: give "
                f"{self.remedy}, or set lower_case=True of priors.{type(self).__name__} if the "
                "words differ only in case."
            )
        return [dict(table.get(key, {})) for key in keys]

    def _key(self, word):
        return word.lower() if self.lower_case else word

    def _read(self, path):
        """Reads {word: its features}; a subclass writes this itself."""
        raise self._unwritten("_read")


@dataclasses.dataclass(frozen=True)
class WordTable(_FilePrior):
    """Features of words from a file of columns separated by tabs; other words have none.

    The first line names the columns. "NOUN" in the column "POS" is the feature "POS:NOUN", as in a
    treebank; an item that names its own kind, "Number=Sing", is "Number:Sing" in any column. A word
    on several lines has the features of all of them. A cell that is empty or "_" has no feature.
    Cells in quotation marks are unquoted, and lines without a tab that start with "#" are skipped.
    The number of words that are in the lexicon is logged.

        form    POS     morphology                frequency
        chats   NOUN    Gender=Masc|Number=Plur   3.1

        priors.WordTable("lexicon.tsv", separator="|", numbers=("frequency",))

    Attributes:
      path: the file, UTF-8, found as data files are.
      columns: names of the columns, for a file without a line of names.
      word: the column of the words; the first if empty.
      kept: the columns of features; all but the words' column if empty.
      numbers: the columns of numbers: the column's name is the feature, the cell its value.
      separator: the text between several items of a cell; if empty, a cell is one item.
      lower_case: whether to ignore case.

    UniMorph's files have a lemma, a form and tags such as "V;PST" on a line. Read them with
    columns=("lemma", "form", "tag"), word="form", kept=("tag",), separator=";".

    Example:
      >>> text = "form\\tPOS\\ncat\\tNOUN\\nsat\\tVERB\\n"
      >>> _ = pathlib.Path("lexicon.tsv").write_text(text)
      >>> prior = priors.WordTable("lexicon.tsv")
      >>> prior.features(("the", "cat", "sat"), {}, {})
      [{}, {'POS:NOUN': 1.0}, {'POS:VERB': 1.0}]
    """

    path: str
    columns: tuple[str, ...] = ()
    word: str = ""
    kept: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    separator: str = ""
    lower_case: bool = False
    remedy: ClassVar[str] = "the column of the words as word="

    def _read(self, path):
        """Reads {word: its features} from the file."""
        lines = [*enumerate(files.read_text(path).split("\n"), 1)]
        lines = [(n, s) for n, s in lines if s.strip() and ("\t" in s or not s.startswith("#"))]
        if self.columns:
            columns, location = self.columns, "priors.WordTable.columns"
        else:
            if not lines:
                raise UserError(f"{path} has no line but comments: give the names of its columns.")
            (number, header), *lines = lines
            location = f"{path}, line {number}"
            columns = tuple(map(str.strip, table_rows.cells(header, location)))
        word_column, feature_columns = self._chosen_columns(columns, location)
        table: collections.defaultdict = collections.defaultdict(dict)
        for number, line in lines:
            location = f"{path}, line {number}"
            cells = [cell.strip() for cell in table_rows.cells(line, location)]
            if len(cells) != len(columns):
                raise UserError(
                    f"{location}: {len(cells)} columns where there should be {len(columns)} "
                    f"({', '.join(columns)}), separated by tabs: correct the line."
                )
            if not cells[word_column]:
                raise UserError(
                    f"{location}: the column {columns[word_column]!r} is empty: give a word."
                )
            features = table[self._key(cells[word_column])]
            for column in feature_columns:
                self._add(features, columns[column], cells[column], location)
        return table

    def _chosen_columns(self, columns, location):
        """Returns (the number of the words' column, the numbers of the columns of features)."""
        if not all(columns) or len(set(columns)) < len(columns):
            raise UserError(
                f"{location}: the columns are {quote([*columns])}: give each a name of its own, in "
                "the first line or as columns= of priors.WordTable."
            )
        requested_columns = ([self.word] if self.word else []) + [*self.kept, *self.numbers]
        missing = [name for name in requested_columns if name not in columns]
        if missing:
            raise UserError(
                f"{location}: the columns {quote([*columns])} do not include {missing[0]!r}, which "
                "priors.WordTable asks for: correct the first line or priors.WordTable."
            )
        word_column = columns.index(self.word) if self.word else 0
        chosen = {*self.kept, *self.numbers} if self.kept else {*columns} - {columns[word_column]}
        feature_columns = [number for number, name in enumerate(columns) if name in chosen]
        if not feature_columns:
            raise UserError(
                f"{location}: the words' column is the only one: add a column of features."
            )
        return word_column, feature_columns

    def _add(self, features, column, cell, location):
        """Adds the features of a cell to the features of its word."""
        if cell in _NOTHING:
            return
        if column in self.numbers:
            value = files.parse_number(cell, location, f"the column {column!r}")
            if features.setdefault(column, value) != value:
                raise UserError(
                    f"{location}: {column!r} is {value} here, and {features[column]} on an earlier "
                    "line of the same word: leave one of the lines out."
                )
            return
        for item in cell.split(self.separator) if self.separator else [cell]:
            item = item.strip()
            if item not in _NOTHING:
                kind, equals, value = item.partition("=")
                has_kind = equals and kind and value
                features[f"{kind}:{value}" if has_kind else f"{column}:{item}"] = 1.0


# -------------------------- features of the words of a list, such as places or first names


@dataclasses.dataclass(frozen=True)
class WordList(_FilePrior):
    """The feature "List:name" for the words of a file, one word a line; other words have none.

    A line may have a tab and a number after the word, the feature's value. Empty lines and lines
    that start with "#" are skipped. The number of words that are in the lexicon is logged.

    Attributes:
      path: the file, UTF-8, found as data files are.
      name: the name of the feature; the path if empty.
      lower_case: whether to ignore case.

    Example:
      >>> _ = pathlib.Path("animals.txt").write_text("cat\\ndog\\t2\\n")
      >>> prior = priors.WordList("animals.txt", name="animal")
      >>> prior.features(("the", "cat", "dog"), {}, {})
      [{}, {'List:animal': 1.0}, {'List:animal': 2.0}]
    """

    path: str
    name: str = ""
    lower_case: bool = False
    remedy: ClassVar[str] = "another list"

    def _read(self, path):
        table, name = {}, f"List:{self.name or self.path}"
        for number, line in enumerate(files.read_text(path).split("\n"), 1):
            if not line.strip() or line.startswith("#"):
                continue
            word, tab, value = line.partition("\t")
            word = word.strip()
            if not word or len(word.split()) > 1:
                raise UserError(
                    f"{path}, line {number}: {line.strip()!r} is not one word: write a word a "
                    "line, perhaps with a tab and a number after it."
                )
            location = f"{path}, line {number}"
            amount = files.parse_number(value.strip(), location, "the value") if tab else 1.0
            table[self._key(word)] = {name: amount}
        return table


# -------------------------------------------- features of words from a user's own function


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
        zoo.base.trust.permissions.

    Example:
      >>> text = "def capitals(word):\\n    return {'Capitals': sum(c.isupper() for c in word)}"
      >>> _ = pathlib.Path("my_features.py").write_text(text)
      >>> prior = priors.WordFunction("my_features:capitals")
      >>> prior.features(("McCartney",), {}, {})
      [{'Capitals': 2.0}]
    """

    function: str

    def features(self, words: Words, corpora: Corpora, entries: Entries) -> list[dict[str, float]]:
        """Returns the features that the function gives each word; its exceptions are not caught."""
        function = self._load()
        return [self._call(function, word) for word in words]

    def _load(self):
        """Imports the function, if the user trusts it."""
        workdir = permissions.stranger(self.function)
        if workdir is not None:
            raise UserError(
                f"{workdir} was not trained here by you, and needs the function {self.function}, "
                f"which would be run: look at it, and add --trust {self.function} if you trust it."
            )
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

    def _call(self, function, word):
        """Returns {feature: value} of a word; UserError unless these are names and numbers."""
        try:
            output = function(word)
            if isinstance(output, str):  # whose letters would be taken for names
                output = [output]
            elif isinstance(output, Iterable) and not isinstance(output, Mapping):
                output = [*output]  # a generator of the user's may raise, too
        except Exception as error:  # the user's own
            error.add_note(f"{self.function} was given the word {word!r}.")
            raise
        try:
            values = output if isinstance(output, Mapping) else dict.fromkeys(output, 1.0)
            features = {name: float(value) for name, value in values.items()}
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{self.function} gives {output!r} for {word!r} ({error}): return names of "
                "features or a dict of name and number."
            ) from error
        for name, value in features.items():
            if not isinstance(name, str) or not math.isfinite(value):
                raise UserError(
                    f"{self.function} gives {name!r}: {value} for {word!r}: return names with "
                    "finite numbers."
                )
        return features
