"""Log-probabilities of sentences: of the lines of a text, or of the hypotheses of n-best lists.

    log p(w_1 ... w_n </s>) = sum_t log p(w_t | w_<t) + log p(</s> | w_1 ... w_n),

each sentence from the boundary and an empty state. The format of n-best lists is that of
`zoo.sources.nbest`.
"""

import collections
import dataclasses
import pathlib
import sys

import numpy as np

from zoo.data import Corpus
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError
from zoo.evaluation import tree_scores
from zoo.lexicon import Lexicon
from zoo.runs import outputs
from zoo.sources import files, given
from zoo.sources import nbest as nbest_lists
from zoo.sources.given import GivenText, Reading

PLAIN = Reading()
COLUMNS = ("line", "words", "unknown", "log_prob", "log_prob_known")


@dataclasses.dataclass(frozen=True, eq=False)
class SentenceScores:
    """Arrays [n], of each sentence.

    words: int64, how many there are. unknown: int64, how many of them were read as <unk>: words
    outside the lexicon, and <unk> where the sentence itself has it.
    of_known, of_unknown, of_boundary: float64, nats, the sum of log p over these words, those, and
    the boundaries after them.
    """

    words: np.ndarray
    unknown: np.ndarray
    of_known: np.ndarray
    of_unknown: np.ndarray
    of_boundary: np.ndarray

    @property
    def of_words(self) -> np.ndarray:
        """Sum of log p over the words, without the boundaries, float64 [n], nats."""
        return self.of_known + self.of_unknown

    @property
    def log_prob(self) -> np.ndarray:
        """log p of each sentence, float64 [n], nats."""
        return self.of_words + self.of_boundary

    @property
    def log_prob_known(self) -> np.ndarray:
        """log p of each sentence without the factors of words outside the lexicon, float64 [n],
        nats."""
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
    """Scores sentences, each from an empty state; what several begin with is computed once.

    Args:
      params: on the device.
      tables: on the device.
      sentences: words in the vocabulary's case; some may be empty.
      name: where they come from, for messages.

    Raises:
      UserError: the vocabulary has no boundary to start from, or refuses a word, or no sentence has
        words.
    """
    if lexicon.boundary is None:
        raise UserError(
            "a sentence is scored from the boundary on, and this run has none: train with "
            "vocabulary.boundary=counted or uncounted."
        )
    distinct = {words: number for number, words in enumerate(dict.fromkeys(map(tuple, sentences)))}
    text = vocabulary.encode(Corpus(name, [*map(list, distinct)]), lexicon)
    log_prob = tree_scores.score(model, params, tables, text, lexicon.ids[lexicon.boundary])

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


@dataclasses.dataclass(frozen=True, eq=False)
class Sentences:
    """The sentences of a file.

    words: of each, as the model reads them. lines: where each begins, from 1. ids: their names, in
    n-best lists the list of each; None in plain text. nbest: whether these are lists. columns: what
    a table says of each beside the sentence; extra: the values of these.
    """

    words: list[list[str]]
    lines: list[int]
    ids: list[str] | None = None
    nbest: bool = False
    columns: tuple[str, ...] = ()
    extra: list[tuple[str, ...]] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, text: GivenText) -> "Sentences":
        """The sentences of a text of any kind."""
        sentences = text.sentences
        ids = [sentence.id for sentence in sentences if sentence.id is not None]
        return cls(
            [sentence.words for sentence in sentences],
            [sentence.line for sentence in sentences],
            ids if len(ids) == len(sentences) else None,
            columns=text.columns,
            extra=[sentence.extra for sentence in sentences],
        )


def read(
    path: str, reading: Reading = PLAIN, *, nbest: bool = False, column: int | None = None
) -> Sentences:
    """The fields of the lines of a file that are sentences, blank ones too; words between blanks.

    Args:
      nbest: fields are parted by "|||"; the first is the list's id and the second the hypothesis.
        Without `column` lists of JSON and of Kaldi are read as well; see `zoo.sources.nbest`.
      column: which field is the sentence, from 1; without nbest fields are parted by tabs.

    Raises:
      UserError: a line, which is named, has no such field.
    """
    file = files.find(path)
    field = 1 + nbest if column is None else column
    if field < 1:
        raise UserError(f"--column {field}: fields are counted from 1.")
    words, ids = [], []
    lines = files.read_text(file).removesuffix("\n").split("\n")
    if nbest and column is None and nbest_lists.form_of(lines[0]) != "fields":
        _, lists = nbest_lists.lists_of(enumerate(lines, 1), str(file), sparse=True)
        return _of_lists(lists, reading)
    for number, line in enumerate(lines, 1):
        fields = nbest_lists.fields(line) if nbest else line.split("\t")
        if len(fields) < max(field, 1 + nbest):
            form = "id ||| words ||| ..." if nbest else "fields with tabs between them"
            raise UserError(
                f"{file}, line {number}: there is no field {max(field, 1 + nbest)}; write {form}, "
                "or give another --column."
            )
        words.append(_words(fields[field - 1], reading))
        ids.append(fields[0].strip())
    return Sentences(words, [*range(1, len(words) + 1)], ids if nbest else None, nbest)


def _of_lists(lists, reading) -> Sentences:
    """The hypotheses of n-best lists, in their order."""
    pairs = [(one.id, hypothesis) for one in lists for hypothesis in one.hypotheses]
    words = [_words(hypothesis.text, reading) for _, hypothesis in pairs]
    return Sentences(
        words, [hypothesis.line for _, hypothesis in pairs], [id for id, _ in pairs], True
    )


def _words(text, reading):
    return [word for token in given.tokens_of(text, reading) for word in token.words]


def ranks(ids: list[str], log_prob: np.ndarray) -> np.ndarray:
    """The rank of each hypothesis in its list, int64 [n]: 1 for the most probable; of equally
    probable ones the earlier comes first."""
    lists = collections.defaultdict(list)
    for row, name in enumerate(ids):
        lists[name].append(row)
    rank_of = np.empty(len(ids), np.int64)
    for rows in lists.values():
        order = np.argsort(-log_prob[rows], kind="stable")
        rank_of[np.array(rows)[order]] = np.arange(1, len(rows) + 1)
    return rank_of


def table(sentences: Sentences, scores: SentenceScores) -> tuple[tuple[str, ...], list[tuple]]:
    """(names of the columns, a row for each sentence), log-probabilities in nats.

    Sentences with names have one column more before these, "id", and n-best lists one after them,
    "rank", see `ranks`; what a table says of its sentences comes last.
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
        columns = (*columns, *outputs.beside(columns, sentences.columns))
        rows = [(*row, *extra) for row, extra in zip(rows, sentences.extra, strict=True)]
    return columns, rows


def summary(path: str, sentences: Sentences, scores: SentenceScores) -> str:
    """How much was scored, as one line of text."""
    lines, words, unknown = len(scores.words), int(scores.words.sum()), int(scores.unknown.sum())
    what = f"{lines:,} sentences"
    if sentences.nbest and sentences.ids is not None:
        what = f"{len({*sentences.ids}):,} lists, {lines:,} hypotheses"
    return (
        f"{path}: {what}, {words:,} words, {unknown:,} of them read as <unk> "
        f"({unknown / max(1, words):.2%}), log-probability {scores.log_prob.sum():,.1f} nats"
    )


def warning(lexicon: Lexicon, scores: SentenceScores) -> str | None:
    """What is to be known of the scores of unknown words, if there are any and <unk> was no word of
    the training text; else None."""
    unknown = int(scores.unknown.sum())
    if not unknown or lexicon.unknown is None or lexicon.counts[lexicon.ids[lexicon.unknown]]:
        return None
    return (
        f"{unknown:,} unknown words were scored as {lexicon.unknown}, which the training text "
        "never had, so that its probability means nothing: use log_prob_known, give --add-words "
        "FILE, or train with vocabulary.minimum_count=2."
    )


def judge(run, path: str, nbest: bool = False, column: int | None = None):
    """(`Sentences` of a file, their `SentenceScores`) under a run's model.

    Raises:
      UserError: the run's text is no plain sentences of words, or what `read` and `score` raise.
    """
    check_run(run)
    data = run.experiment.data
    if nbest or column is not None:
        sentences = read(path, run.reading, nbest=nbest, column=column)
    elif given.is_one(path):
        sentences = Sentences.of(given.read(path, run.reading, data.column))
    else:
        sentences = Sentences.of(run.given(path))
    return sentences, score_by(run, sentences.words, path)


def score_by(run, sentences: list[list[str]], name: str) -> SentenceScores:
    """The `score` of sentences under a run's model.

    Args:
      sentences: words as the run reads them.
      name: where they come from, for messages.
    """
    check_run(run)
    model, vocabulary = run.experiment.language_model, run.experiment.vocabulary
    return score(model, run.params, run.tables, run.lexicon, vocabulary, sentences, name)


def score_words(run, sentences: list[list[str]], name: str) -> SentenceScores:
    """The `score` of sentences under a run's model, which may all be empty; of characters too.

    Args:
      sentences: words as the run reads them.
      name: where they come from, for messages.
    """
    model, vocabulary = run.experiment.language_model, run.experiment.vocabulary
    # A text has words: where all sentences are empty, a word is scored beside them.
    beside = [] if any(sentences) else [[run.lexicon.words[0]]]
    scores = score(
        model, run.params, run.tables, run.lexicon, vocabulary, [*sentences, *beside], name
    )
    fields = (getattr(scores, field.name) for field in dataclasses.fields(scores))
    return SentenceScores(*(array[: len(sentences)] for array in fields))


def check_run(run):
    """UserError unless a run's texts are plain sentences of words."""
    if run.lexicon.of_characters:
        raise UserError(
            f"the words of {run.path} are characters, blanks among them, and words between blanks "
            "are scored: judge its text with python -m zoo evaluate DIR --data FILE "
            "--surprisal FILE."
        )
    if any(source.separator for source in run.experiment.data.texts()):
        raise UserError(
            f"{run.path} was trained on what follows a question or a condition, not on sentences: "
            "judge its text with python -m zoo evaluate DIR --data FILE --surprisal FILE."
        )


def report(
    run,
    path: str,
    file: str | pathlib.Path | None = None,
    nbest: bool = False,
    column: int | None = None,
):
    """Writes the table of `judge` to a file, or prints it; `summary` and `warning` go to stderr."""
    sentences, scores = judge(run, path, nbest, column)
    columns, rows = table(sentences, scores)
    if file is not None:
        outputs.write_table(file, columns, rows)
    else:
        sys.stdout.writelines(map(outputs.line, (columns, *rows)))
    notes = (warning(run.lexicon, scores), *run.notes(sentences.words))
    lines = (summary(path, sentences, scores), *notes)
    print(*filter(None, lines), sep="\n", file=sys.stderr)
