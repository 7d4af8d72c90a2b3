"""Log-probabilities of sentences: of the lines of a text, or of the hypotheses of n-best lists.

    log p(w_1 ... w_n </s>) = sum_t log p(w_t | w_<t) + log p(</s> | w_1 ... w_n),

each sentence from the boundary and an empty state. The format of n-best lists is that of
`zoo.sources.nbest`.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from zoo.data import Corpus
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError
from zoo.evaluation import prefix_sharing
from zoo.lexicon import Lexicon
from zoo.runs import outputs
from zoo.sources import evaluation_texts, streams
from zoo.sources import nbest as nbest_lists
from zoo.sources.evaluation_texts import GivenText, Reading

PLAIN = Reading()
# Sentences that are remembered, and their words at most.
CACHED, CACHED_WORDS = 1 << 14, 64
LINE_BREAK = "\n"
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
    """The word that stands before a sentence: the boundary, or of characters the line break."""
    breaks = lexicon.of_characters and LINE_BREAK in lexicon.ids
    return lexicon.boundary or (LINE_BREAK if breaks else None)


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

    @classmethod
    def of_rows(cls, rows: Sequence[tuple], nbest: bool) -> "Sentences":
        """Of (id, line, words) of each sentence; the id counts in n-best lists alone."""
        ids, lines, words = ([*values] for values in zip(*rows, strict=True))
        return cls(words, lines, ids if nbest else None, nbest)


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
    return Sentences.of_rows([*rows(path, reading, nbest=nbest, column=column)], nbest)


def rows(
    path: str, reading: Reading = PLAIN, *, nbest: bool = False, column: int | None = None
) -> Iterator[tuple[str, int, list[str]]]:
    """(first field or id of the list, line, words) of each sentence, as the file is read; see
    `read`."""
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
                f"{path}, line {number}: there is no field {max(field, 1 + nbest)}; write {form}, "
                "or give another --column."
            )
        yield fields[0].strip(), number, words_of(fields[field - 1], reading)


def words_of(text: str, reading: Reading) -> list[str]:
    """The words of a line, as a model reads them."""
    return [word for token in evaluation_texts.tokens_of(text, reading) for word in token.words]


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


def warning(lexicon: Lexicon, unknown: int) -> str | None:
    """What is to be known of the scores of unknown words, if there are any and <unk> was no word of
    the training text; else None."""
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
    elif evaluation_texts.is_one(path):
        sentences = Sentences.of(evaluation_texts.read(path, run.reading, data.form.column))
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


def word_log_probs(run, sentences: Sequence[list[str]], name: str) -> tuple[np.ndarray, np.ndarray]:
    """log p of each word and boundary of sentences, and where each sentence starts.

    Args:
      run: of a language model with a boundary.
      sentences: words as the run reads them; some may be empty.
      name: where they come from, for messages.

    Returns:
      (float64 [n], nats; int64 [sentences]).
    """
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
    """The words of a hypothesis as a run reads them: characters, if these are its words.

    Blanks are left out then if the run knows none, as in Chinese, and a line break ends the line if
    it knows that.
    """
    if not run.lexicon.of_characters:
        return words_of(text, run.reading)
    text = text.lower() if run.experiment.vocabulary.lower_case else text
    ids = run.lexicon.ids
    characters = [letter for letter in text if letter != " " or letter in ids]
    return [*characters, *([LINE_BREAK] if LINE_BREAK in ids else [])]


def check_hypotheses(run):
    """UserError unless a run can score hypotheses: sentences of words, or lines of characters."""
    if not run.lexicon.of_characters:
        check_run(run)


def check_run(run):
    """UserError unless a run's texts are plain sentences of words."""
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
    """Scores of sentences under a run, of which those that come again are not computed again.

    The last CACHED different sentences of at most CACHED_WORDS words are remembered: hypotheses of
    neighbouring lists are often alike, and memory stays bounded.
    """

    def __init__(self, run):
        """None is remembered yet."""
        self.run = run
        self.known: dict[tuple[str, ...], tuple] = {}

    def score(self, sentences: list[list[str]], name: str) -> SentenceScores:
        """The scores of sentences; see `score_words`."""
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
        return SentenceScores(*map(np.array, zip(*rows, strict=True)))
