"""Questions and logical forms of the Overnight data, in the file format of SEMPRE."""

import dataclasses
import re

from zoo.errors import UserError
from zoo.sources import files
from zoo.sources.pairs import Prefixed
from zoo.sources.source import Corpus, ranged

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([()])|([^\s()"]+)|"')


@dataclasses.dataclass(frozen=True)
class Overnight(Prefixed):
    """Files of examples (Wang, Berant and Liang 2015), as in SEMPRE:

        (example (utterance "when is it") (original "...") (targetFormula (call ...)))

    The words of the utterance and the separator are a prefix: the model reads it, but is neither
    trained nor evaluated on it. The answer is the formula; its parentheses are words, too.

    Attributes:
      train: path of a file, perhaps with a range of its examples.
      validation: as `train`.
      tests: as `train`, for the test splits "test1", "test2" ... ("test" if one).
      package: a prefix removed from the symbols of formulas.
      separator: the word between question and formula; it must not occur in either.

    Example:
      >>> text = '(example (utterance "all cats") (targetFormula (call list cat)))'
      >>> _ = pathlib.Path("cats.examples").write_text(text)
      >>> corpus = papers.Overnight(train="cats.examples", validation="cats.examples").read("train")
      >>> " ".join(corpus.sentences[0]), corpus.prefixes
      ('all cats ||| ( call list cat )', [3])
    """

    package: str = "edu.stanford.nlp.sempre.overnight.SimpleWorld."

    def read(self, split):
        """Reads the examples of a split; raises UserError, with its number, for a malformed one."""
        part = self.part(split)
        path = files.find(part.path)
        sentences, prefixes = [], []
        for number, example in enumerate(_expressions(files.read_text(path), path), 1):
            pairs = [part for part in example if isinstance(part, list) and len(part) == 2]
            fields = {name: value for name, value in pairs if isinstance(name, str)}
            question, formula = fields.get("utterance"), fields.get("targetFormula")
            if example[:1] != ["example"] or not isinstance(question, str) or formula is None:
                raise UserError(
                    f"{path}: the expression {number} is not an example with one utterance, in "
                    "quotation marks, and one targetFormula."
                )
            answer = [symbol.removeprefix(self.package) for symbol in _flat(formula)]
            words = question.split()
            if self.separator in (*words, *answer):
                raise UserError(
                    f"{path}: the separator {self.separator!r} is among the words of example "
                    f"{number}: set data.separator, or data.of.separator within AsPairs, to "
                    "another word."
                )
            sentences.append([*words, self.separator, *answer])
            prefixes.append(len(words) + 1)
        return Corpus(part.path, ranged(part, sentences), prefixes=prefixes[part.range])


def _expressions(text, path):
    """Parses the expressions of a text as nested lists of strings."""
    stack: list = [[]]
    begins = []
    for match in _TOKEN.finditer(text):
        quoted, parenthesis, symbol = match.groups()
        if match[0] == '"' or (parenthesis == ")" and len(stack) == 1):
            line = text.count("\n", 0, match.start()) + 1
            wrong = "there is a ) too many" if parenthesis else "a quotation mark is never closed"
            raise UserError(f"{path}, line {line}: {wrong}.")
        if parenthesis == "(":
            stack.append([])
            begins.append(match.start())
        elif parenthesis == ")":
            expression = stack.pop()
            begins.pop()
            stack[-1].append(expression)
        else:
            stack[-1].append(symbol if quoted is None else quoted)
    if begins:
        line = text.count("\n", 0, begins[0]) + 1
        raise UserError(f"{path}, line {line}: a ( is never closed.")
    return stack[0]


def _flat(expression):
    """Flattens a nested expression into its words, including parentheses."""
    words, waiting = [], [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            words.append(part)
        else:
            words.append("(")
            waiting += [")", *reversed(part)]
    return words
