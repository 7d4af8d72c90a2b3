"""Log-probabilities of sentences: the lines of a text, or the hypotheses of n-best lists.

    log p(w_1 ... w_n </s>) = sum_t log p(w_t | w_<t) + log p(</s> | w_1 ... w_n),

each sentence from the boundary and an empty state. `zoo.sources.nbest` reads n-best lists.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from zoo.data import Corpus
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError
from zoo.evaluation import prefix_sharing
from zoo.lexicon import Lexicon
from zoo.runs import output_files
from zoo.sources import evaluation_texts, streams
from zoo.sources import nbest as nbest_lists
from zoo.sources.evaluation_texts import GivenText, Reading

PLAIN = Reading()
# Sentences that are remembered, and their words at most.
CACHED, CACHED_WORDS = 1 << 14, 64
LINE_BREAK = "\n"
COLUMNS = ("line", "words", "unknown", "log_prob", "log_prob_known")


class Row(NamedTuple):
    """The score of a sentence."""

    sentence: str
    words: int
    unknown: int
    log_prob: float  # log p(w_1 ... w_n </s>), nats
    log_prob_known: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SentenceScores:
    """Arrays [n] of the scores of n sentences."""

    words: np.ndarray
    unknown: np.ndarray
    of_known: np.ndarray  # float64, nats, the sum of log p over the words of the lexicon
    of_unknown: np.ndarray  # float64, nats, the sum of log p over the words read as <unk>
    of_boundary: np.ndarray  # float64, nats, the sum of log p over the boundaries after the words

    def __repr__(self):
        return f"SentenceScores({len(self.words):,} sentences, {self.words.sum():,} words)"

    @property
    def of_words(self) -> np.ndarray:
        """Sum of log p over the words, without the boundaries, float64 [n], nats."""
        return self.of_known + self.of_unknown

    @property
    def log_prob(self) -> np.ndarray:
        """log p of each sentence, float64 [n], nats."""
        return self.of_words + self.of_boundary

    def rows(self, sentences: Sequence[str]) -> list[Row]:
        """Returns a row for each sentence."""
        arrays = self.words, self.unknown, self.log_prob, self.log_prob_known
        columns = (array.tolist() for array in arrays)
        return [Row(*values) for values in zip(sentences, *columns, strict=True)]

    @property
    def log_prob_known(self) -> np.ndarray:
        """log p of each sentence without the factors of unknown words, float64 [n], nats."""
        return self.of_known + self.of_boundary


def score(
    model,
    params,
    tables,
    lexicon: Lexicon,
    vocabulary: Vocabulary,
    sentences: list[list[str]],
    name: str = "the text",
) -> SentenceScores:
    """Scores sentences, each from an empty state; common beginnings are computed once."""
    first = _before_sentences(lexicon)
    if first is None:
        raise UserError(
            "a sentence is scored from the boundary on, and this run has none: train with "
            "vocabulary.boundary=counted or uncounted."
        )
    distinct = {words: number for number, words in enumerate(dict.fromkeys(map(tuple, sentences)))}
    text = vocabulary.encode(Corpus(name, [*map(list, distinct)]), lexicon)
    log_prob = prefix_sharing.score(model, params, tables, text, lexicon.ids[first])

    counts = np.diff(text.starts, append=len(text.words))
    sentence = np.repeat(np.arange(len(distinct)), counts)
    lengths = np.array([*map(len, distinct)], np.int64)
    is_word = np.arange(len(text.words)) - text.starts[sentence] < lengths[sentence]

    def sums(values):
        return np.bincount(sentence, values, minlength=len(distinct))

    def part(chosen):
        return sums(np.where(chosen, log_prob, 0).astype(np.float64))

    unread = text.unknown(lexicon)
    unknown = sums(unread).astype(np.int64)
    parts = (part(is_word & ~unread), part(unread), part(~is_word))
    back = np.array([distinct[tuple(words)] for words in sentences], np.int64)
    return SentenceScores(*(array[back] for array in (lengths, unknown, *parts)))


def _before_sentences(lexicon):
    """Returns the word before a sentence: the boundary, or the line break among characters."""
    breaks = lexicon.of_characters and LINE_BREAK in lexicon.ids
    return lexicon.boundary or (LINE_BREAK if breaks else None)


@dataclasses.dataclass(frozen=True, eq=False)
class Sentences:
    """The sentences of a file."""

    words: list[list[str]]
    lines: list[int]
    ids: list[str] | None = None
    nbest: bool = False
    columns: tuple[str, ...] = ()
    extra: list[tuple[str, ...]] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, text: GivenText) -> "Sentences":
        """Makes the sentences of a text of any kind."""
        sentences = text.sentences
        ids = [sentence.id for sentence in sentences if sentence.id is not None]
        return cls(
            [sentence.words for sentence in sentences],
            [sentence.line for sentence in sentences],
            ids if len(ids) == len(sentences) else None,
            columns=text.columns,
            extra=[sentence.extra for sentence in sentences],
        )

    @classmethod
    def of_rows(cls, rows: Sequence[tuple], nbest: bool) -> "Sentences":
        """Makes the sentences of the rows of a file."""
        ids, lines, words = ([*values] for values in zip(*rows, strict=True))
        return cls(words, lines, ids if nbest else None, nbest)


def rows(
    path: str, reading: Reading = PLAIN, *, nbest: bool = False, column: int | None = None
) -> Iterator[tuple[str, int, list[str]]]:
    """Yields (first field or id of the list, line, words) of each sentence while it reads a file.

    A sentence is a field of a line, words between blanks; blank lines are sentences, too.
    """
    field = 1 + nbest if column is None else column
    if field < 1:
        raise UserError(f"--column {field}: fields are counted from 1.")
    form, lines = nbest_lists.form_of(
        nbest_lists.lines_of(path) if nbest else streams.read_lines(path)
    )
    if nbest and column is None and form != "fields":
        _, lists = nbest_lists.lists_of(lines, path, sparse=True)
        for one in lists:
            for hypothesis in one.hypotheses:
                yield one.id, hypothesis.line, words_of(hypothesis.text, reading)
        return
    for number, line in lines:
        fields = nbest_lists.fields(line) if nbest else line.split("\t")
        if len(fields) < max(field, 1 + nbest):
            form = "id ||| words ||| ..." if nbest else "fields with tabs between them"
            raise UserError(
                f"{path}, line {number}: field {max(field, 1 + nbest)} is missing; write {form}, "
                "or give another --column."
            )
        yield fields[0].strip(), number, words_of(fields[field - 1], reading)


def words_of(text: str, reading: Reading) -> list[str]:
    """Splits a line into the words that a model reads."""
    return [word for token in evaluation_texts.tokens_of(text, reading) for word in token.words]


def ranks(ids: list[str], log_prob: np.ndarray) -> np.ndarray:
    """Ranks each hypothesis in its list, int64 [n]: 1 for the most probable.

    Among equally probable hypotheses the earlier comes first.
    """
    lists = collections.defaultdict(list)
    for row, name in enumerate(ids):
        lists[name].append(row)
    rank_of = np.empty(len(ids), np.int64)
    for rows in lists.values():
        order = np.argsort(-log_prob[rows], kind="stable")
        rank_of[np.array(rows)[order]] = np.arange(1, len(rows) + 1)
    return rank_of


def table(sentences: Sentences, scores: SentenceScores) -> tuple[tuple[str, ...], list[tuple]]:
    """Returns (the names of the columns, a row for each sentence), log-probabilities in nats.

    Named sentences have a column "id" before these, and n-best lists a column "rank" after them,
    see `ranks`. The further columns of a table of items come last.
    """
    values = (scores.words, scores.unknown, scores.log_prob, scores.log_prob_known)
    columns: tuple[str, ...] = COLUMNS
    rows: list[tuple] = [*zip(sentences.lines, *values, strict=True)]
    if sentences.ids is not None:
        columns = ("id", *columns)
        rows = [(name, *row) for name, row in zip(sentences.ids, rows, strict=True)]
    if sentences.nbest and sentences.ids is not None:
        rank_of = ranks(sentences.ids, scores.log_prob)
        columns, rows = (*columns, "rank"), [(*r, p) for r, p in zip(rows, rank_of, strict=True)]
    if sentences.columns:
        columns = (*columns, *output_files.beside(columns, sentences.columns))
        rows = [(*row, *extra) for row, extra in zip(rows, sentences.extra, strict=True)]
    return columns, rows


def warning(lexicon: Lexicon, unknown: int) -> str | None:
    """Returns a warning if scores of unknown words mean nothing; else None.

    They mean nothing where <unk> was not a word of the training text.
    """
    if not unknown or lexicon.unknown is None or lexicon.counts[lexicon.ids[lexicon.unknown]]:
        return None
    return (
        f"{unknown:,} unknown word{'s were' if unknown > 1 else ' was'} scored as "
        f"{lexicon.unknown}, which the training text never had, so that its probability means "
        "nothing: use the words that are known alone (log_prob_known, or known in a table of "
        "surprisal), give --add-words FILE, or train where some words of the training text are "
        f"{lexicon.unknown}, by vocabulary.minimum_count or maximum_size"
    )


def share(words: int, unknown: int, of: str) -> str | None:
    """Returns a note on the share of unknown words in a text or lists; None without any."""
    if not unknown:
        return None
    if unknown == words:
        return (
            f"all {words:,} words of {of} are unknown to the run, and nothing is measured but "
            "<unk>: give words in the language, tokenisation and case of its training text"
        )
    return (
        f"{unknown:,} of the {words:,} words of {of} are unknown to the run ({unknown / words:.2%})"
    )


def score_words(run, sentences: list[list[str]], name: str) -> SentenceScores:
    """Scores sentences of words or characters under a run; see `score`. All may be empty."""
    model, vocabulary = run.experiment.language_model, run.experiment.vocabulary
    # A text must have words: where all sentences are empty, a word is scored beside them.
    beside = [] if any(sentences) else [[run.lexicon.words[0]]]
    scores = score(
        model, run.params, run.tables, run.lexicon, vocabulary, [*sentences, *beside], name
    )
    fields = (getattr(scores, field.name) for field in dataclasses.fields(scores))
    return SentenceScores(*(array[: len(sentences)] for array in fields))


def word_log_probs(run, sentences: Sequence[list[str]], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Computes log p of each word and boundary of sentences, and where each sentence starts."""
    first = _before_sentences(run.lexicon)
    if first is None:
        raise UserError(f"{run.path} has no boundary, from which a sentence is scored.")
    beside = [] if any(sentences) else [[run.lexicon.words[0]]]
    text = run.experiment.vocabulary.encode(Corpus(name, [*sentences, *beside]), run.lexicon)
    log_prob = prefix_sharing.score(
        run.experiment.language_model, run.params, run.tables, text, run.lexicon.ids[first]
    )
    end = text.starts[len(sentences)] if beside else len(log_prob)
    return log_prob[:end].astype(np.float64), text.starts[: len(sentences)]


def words_by(run, text: str) -> list[str]:
    """Splits a hypothesis into the words that a run reads, or into characters if it reads these.

    Among characters, blanks are left out if the run's lexicon does not have them, as in Chinese,
    and a line break ends the line if the lexicon has it.
    """
    if not run.lexicon.of_characters:
        return words_of(text, run.reading)
    text = text.lower() if run.experiment.vocabulary.lower_case else text
    ids = run.lexicon.ids
    characters = [letter for letter in text if letter != " " or letter in ids]
    return [*characters, *([LINE_BREAK] if LINE_BREAK in ids else [])]


def check_hypotheses(run):
    """Raises UserError unless a run scores hypotheses: sentences, or lines of characters."""
    if not run.lexicon.of_characters:
        check_run(run)


def check_run(run):
    """Raises UserError unless a run's texts are plain sentences of words."""
    if run.lexicon.of_characters:
        raise UserError(
            f"the words of {run.path} are characters, blanks among them, and words between blanks "
            "are scored: judge its text with python -m zoo evaluate DIR --data FILE "
            "--surprisal FILE."
        )
    if any(source.form.separator for source in run.experiment.data.texts()):
        raise UserError(
            f"{run.path} was trained on what follows a question or a condition, not on sentences: "
            "judge its text with python -m zoo evaluate DIR --data FILE --surprisal FILE."
        )


class CachedScores:
    """Scores of sentences under a run; the score of a repeated sentence is looked up.

    The last CACHED different sentences of at most CACHED_WORDS words are remembered: hypotheses of
    neighbouring lists are often alike, and memory stays bounded.
    """

    def __init__(self, run):
        """Starts with an empty cache."""
        self.run = run
        self.known: dict[tuple[str, ...], tuple] = {}
        self.words = self.unknown = 0  # in all sentences so far

    def score(self, sentences: list[list[str]], name: str) -> SentenceScores:
        """Returns the scores of sentences; see `score_words`."""
        new = [*dict.fromkeys(words for words in map(tuple, sentences) if words not in self.known)]
        values = dict(self.known)
        if new:
            scores = score_words(self.run, [*map(list, new)], name)
            columns = (getattr(scores, field.name) for field in dataclasses.fields(scores))
            values.update(zip(new, zip(*columns, strict=True), strict=True))
        rows = [values[words] for words in map(tuple, sentences)]
        short = {words: row for words, row in values.items() if len(words) <= CACHED_WORDS}
        self.known = dict(itertools.islice(short.items(), max(0, len(short) - CACHED), None))
        if not rows:
            return score_words(self.run, [], name)
        scored = SentenceScores(*map(np.array, zip(*rows, strict=True)))
        self.words += int(scored.words.sum())
        self.unknown += int(scored.unknown.sum())
        return scored
