"""Questions and answers about a table of facts: small text for models with a knowledge base."""

import dataclasses

import numpy as np

from zoo.arrays import memory
from zoo.errors import UserError, check_least
from zoo.sources.source import Corpus, Form, Source
from zoo.sources.table_rows import read_table

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
        names = ("validation", "test", "train_questions", "other_questions")
        check_least(self, "papers.Facts", **dict.fromkeys(names, 1))

    @property
    def form(self):
        """The form of sentences with a prefix up to the separator."""
        return Form(separator=self.separator)

    def splits(self):
        """Returns ("train", "validation", "known", "test")."""
        return tuple(STREAMS)

    def read(self, split):
        """Draws the questions of a split.

        Raises:
          UserError: the split is unknown, the table is too small, or this machine lacks the memory
            for the questions of a split.
        """
        if split not in STREAMS:
            raise UserError(f"unknown split {split!r}: the data have {', '.join(STREAMS)}.")
        counts = dict.fromkeys(("train_questions", "other_questions"), QUESTION_BYTES)
        memory.check_fields(self, "data", **counts)
        relations, facts = read_table(self.path)
        facts = {subject: known for subject, known in facts.items() if len(known) >= 2}
        held = self.validation + self.test
        if len(facts) <= held:
            raise UserError(
                f"{self.path} has {len(facts)} subjects with two facts, and {held} are kept for "
                "validation and test: none is left to train on."
            )
        subjects = [*facts]
        first, last = len(subjects) - held, len(subjects) - self.test
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
        _, facts = read_table(self.path)
        entries: dict = {}
        for subject, known in facts.items():
            for name, word in (("subject", subject), *known.items()):
                entries[word] = tuple(sorted({*entries.get(word, ()), f"Class:{name}"}))
        return entries
