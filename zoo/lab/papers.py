"""Papers: sources of the data of a single paper each.

The questions of Overnight (Wang, Berant and Liang 2015), the meanings and texts of the E2E
challenge (Novikova, Dusek and Rieser 2017), and questions about a table of facts. Nothing within
zoo imports this module.

The examples begin in an empty folder with

    >>> import pathlib
    >>> from zoo.lab import papers
"""

import dataclasses
import re

import numpy as np

from zoo.base.arrays import memory
from zoo.errors import UserError, check_least
from zoo.sources import files, table_rows
from zoo.sources.pairs import Prefixed
from zoo.sources.source import Corpus, Form, Source, check_split

__all__ = ["Facts", "Overnight", "Realisations"]

# ---- questions and answers about a table of facts: small text for models with a knowledge base

# Question and answer. {c} is a subject, {r} and {s} are two relations, {rc} and {sc} their values.
# Some of the answers have no value.
FORMS = (
    ("what is the {r} of {c} ?", "it is {rc} ."),
    ("please name the {r} of {c} .", "the {r} of that country is {rc} ."),
    ("what are the {r} and the {s} of {c} ?", "its {r} is {rc} and its {s} is {sc} ."),
    ("what do you know of {c} and its {r} ?", "its {r} is called {rc} ."),
    ("is the {r} of {c} well known ?", "i cannot tell you that ."),
    ("who asked for the {r} of {c} ?", "nobody asked for its {r} today ."),
)
STREAMS = {"train": 1, "validation": 2, "known": 3, "test": 4}
# Least bytes of a question with its answer: the lists of words and features.
QUESTION_BYTES = 160


@dataclasses.dataclass(frozen=True)
class Facts(Source):
    """Generated questions and answers about the subjects of a table.

    The splits "train", "validation" and "test" have different subjects; "known" has further
    questions about the subjects of "train". A question is a prefix: the model reads it, but is not
    trained on it. Every token has a feature: "Word:x" for a word of the forms, "Class:capital" for
    a value of that relation, "Class:subject" for a subject.

    Attributes:
      path: the table, see priors.KnowledgeBase.
      validation: number of subjects of "validation", taken before the subjects of "test".
      test: number of subjects of "test", the last of the table.
      train_questions: number of questions of "train".
      other_questions: number of questions of each other split.
      seed: seed of the draws.
      separator: the word between question and answer.

    Example:
      >>> rows = "\\tcapital\\tid", "Estonia\\tTallinn\\tEE", "Italy\\tRome\\tIT", "Peru\\tLima\\tP"
      >>> _ = pathlib.Path("facts.tsv").write_text("\\n".join(rows) + "\\n")
      >>> source = papers.Facts("facts.tsv", 1, 1, train_questions=2, other_questions=1)
      >>> " ".join(source.read("test").sentences[0])
      'who asked for the capital of Peru ? ||| nobody asked for its capital today .'
    """

    generated = True

    path: str
    validation: int = 13
    test: int = 13
    train_questions: int = 2000
    other_questions: int = 200
    seed: int = 0
    separator: str = "|||"

    def __post_init__(self):
        check_least(
            self, "papers.Facts", validation=1, test=1, train_questions=1, other_questions=1
        )

    @property
    def form(self):
        return Form(separator=self.separator)

    def splits(self):
        return tuple(STREAMS)

    def read(self, split):
        """Draws the questions of a split, if they fit the memory."""
        check_split(split, self.splits())
        counts = dict.fromkeys(("train_questions", "other_questions"), QUESTION_BYTES)
        memory.check_fields(self, "data", **counts)
        relations, facts = table_rows.read_table(self.path)
        facts = {subject: values for subject, values in facts.items() if len(values) >= 2}
        held_out = self.validation + self.test
        if len(facts) <= held_out:
            raise UserError(
                f"{self.path} has {len(facts)} subjects with two facts, and {held_out} are kept "
                "for validation and test: none is left to train on."
            )
        subjects = [*facts]
        first, last = len(subjects) - held_out, len(subjects) - self.test
        parts = {"validation": slice(first, last), "test": slice(last, None)}
        subjects = subjects[parts.get(split, slice(first))]
        generator = np.random.default_rng((self.seed, STREAMS[split]))
        count = self.train_questions if split == "train" else self.other_questions
        entries = self.lexicon_entries()
        sentences, prefixes = [], []
        for _ in range(count):
            subject = subjects[generator.integers(len(subjects))]
            r, s = generator.permutation([name for name in relations if name in facts[subject]])[:2]
            words = {"c": subject, "r": r, "s": s}
            words |= {"rc": facts[subject][r], "sc": facts[subject][s]}
            question, answer = (
                form.format(**words).split() for form in FORMS[generator.integers(len(FORMS))]
            )
            sentences.append([*question, self.separator, *answer])
            prefixes.append(len(question) + 1)
        features = [
            [entries.get(word) or (f"Word:{word}",) for word in sentence] for sentence in sentences
        ]
        return Corpus(f"facts-{split}", sentences, features, prefixes)

    def lexicon_entries(self):
        """Returns all subjects and values of the table with their classes, whatever the split."""
        _, facts = table_rows.read_table(self.path)
        entries: dict = {}
        for subject, values in facts.items():
            for name, word in (("subject", subject), *values.items()):
                entries[word] = tuple(sorted({*entries.get(word, ()), f"Class:{name}"}))
        return entries


# ---- questions and logical forms of the Overnight data, in the file format of SEMPRE

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([()])|([^\s()"]+)|"')


@dataclasses.dataclass(frozen=True)
class Overnight(Prefixed):
    """Files of examples (Wang, Berant and Liang 2015), as in SEMPRE:

        (example (utterance "when is it") (original "...") (targetFormula (call ...)))

    The words of the utterance and the separator are a prefix: the model reads it, but is neither
    trained nor evaluated on it. The answer is the formula; its parentheses are words, too.

    Attributes:
      train: path of a file, perhaps with a range of its examples.
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

    def _pairs(self, path):
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
            yield f"{path}, example {number}", question.split(), answer


def _expressions(text, path):
    """Parses the expressions of a text as nested lists of strings."""
    stack: list = [[]]
    starts = []
    for match in _TOKEN.finditer(text):
        quoted, parenthesis, symbol = match.groups()
        if match[0] == '"' or (parenthesis == ")" and len(stack) == 1):
            line = text.count("\n", 0, match.start()) + 1
            problem = "there is a ) too many" if parenthesis else "a quotation mark is never closed"
            raise UserError(f"{path}, line {line}: {problem}.")
        if parenthesis == "(":
            stack.append([])
            starts.append(match.start())
        elif parenthesis == ")":
            expression = stack.pop()
            starts.pop()
            stack[-1].append(expression)
        else:
            stack[-1].append(symbol if quoted is None else quoted)
    if starts:
        line = text.count("\n", 0, starts[0]) + 1
        raise UserError(f"{path}, line {line}: a ( is never closed.")
    return stack[0]


def _flat(expression):
    """Flattens a nested expression into its words, including parentheses."""
    words, pending = [], [expression]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            words.append(part)
        else:
            words.append("(")
            pending += [")", *reversed(part)]
    return words


# ---- meaning representations and the sentences that express them, character by character

# Blanks that tokenisers insert: before punctuation and clitics, after signs, in "20 - 25".
_SPACED = re.compile(r" (?=[.,;:!?)])| (?=(?:n't|'\w{0,2})\b)|(?<=[(£$]) |(?<=\d) (?=-)|(?<=\d -) ")
# A slot with its value, which may have commas.
_SLOT = re.compile(r"[^\s,\[\]][^,\[\]]*\[[^\]]*\]")
_SLOTS = re.compile(rf"{_SLOT.pattern}(?:, {_SLOT.pattern})*")


@dataclasses.dataclass(frozen=True)
class Realisations(Prefixed):
    """CSV files with a meaning representation and a sentence a row.

    The E2E challenge (Novikova, Dusek and Rieser 2017) has such files: "name[Alimentum],
    area[riverside]" and "Alimentum is near the river."

    Every character is a token. The meaning and the separator are a prefix: the model reads it, but
    is neither trained nor evaluated on it. The blanks that tokenisers insert before punctuation are
    removed, so that tokenised and untokenised files can be combined.

    Attributes:
      train: path of a file, perhaps with a range of its rows.
      meaning: the column of meanings.
      sentence: the column of sentences.
      separator: the character between meaning and sentence; it must not occur in either.
      last_first: whether the slots of a meaning are reversed: the name, with which most sentences
        begin, then directly precedes the sentence (as Sutskever, Vinyals and Le 2014 reverse source
        sentences).

    Example:
      >>> text = 'mr,ref\\n"name[One], food[two]",One has two .\\n'
      >>> _ = pathlib.Path("meanings.csv").write_text(text)
      >>> corpus = papers.Realisations(train="meanings.csv", validation="meanings.csv")
      >>> corpus = corpus.read("train")
      >>> "".join(corpus.sentences[0]), corpus.prefixes
      ('name[One], food[two]|One has two.', [21])
    """

    is_character_level = True

    meaning: str = "mr"
    sentence: str = "ref"
    separator: str = "|"
    last_first: bool = False

    def __post_init__(self):
        if len(self.separator) != 1:
            raise UserError(f"data.separator is {self.separator!r}: give a single character.")

    def _pairs(self, path):
        """Yields the meaning and the sentence of each row of a table."""
        names, rows = table_rows.rows(files.read_text(path), path)
        for column in (self.meaning, self.sentence):
            if column not in names:
                raise UserError(
                    f"{path} has no column {column!r}, but {', '.join(names)}: set data.meaning "
                    "and data.sentence."
                )
        for number, (_, row) in enumerate(rows, 1):
            location = f"{path}, row {number}"
            meaning, sentence = (
                " ".join(_SPACED.sub("", row.get(column) or "").split())
                for column in (self.meaning, self.sentence)
            )
            if not meaning or not sentence:
                raise UserError(f"{location}: write a meaning and a sentence.")
            if self.last_first:
                if not _SLOTS.fullmatch(meaning):
                    raise UserError(
                        f"{location}: {meaning!r} is not of the form a[b], c[d], so that its slots "
                        "cannot be reversed: correct it, or set data.last_first=false."
                    )
                meaning = ", ".join(reversed(_SLOT.findall(meaning)))
            yield location, meaning, sentence
