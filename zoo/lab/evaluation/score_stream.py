"""Scores of the lines of a text, or of n-best lists, as they come: pipe in, pipe out.

Some thousand lines are held at a time, so that a list of a million takes no more memory than one of
ten thousand. Treebanks and tables of items are read whole.
"""

import itertools
import math
from collections.abc import Iterable, Iterator

from zoo.base import lazy
from zoo.errors import UserError
from zoo.lab.evaluation import evaluation_texts, sentence_scores
from zoo.lab.evaluation import nbest as nbest_lists
from zoo.lab.evaluation.perplexity import perplexity_of
from zoo.lab.evaluation.sentence_scores import Sentences
from zoo.lab.table import tsv_line
from zoo.sources import files

# Lines that are scored together: many enough to fill batches, and few to hold.
TOGETHER = 8192
# Lines at the beginning of a file from which its format is recognised.
HEAD = 1000


def chunks(run, path: str, nbest: bool = False, column: int | None = None) -> Iterator[Sentences]:
    """Yields the sentences of a file in chunks of some thousand; an n-best list is not divided."""
    if nbest or column is not None:
        rows = sentence_scores.rows(path, run.reading, nbest=nbest, column=column)
        yield from _row_chunks(_apart(rows, path) if nbest else rows, nbest)
    elif not evaluation_texts.is_readable(path):
        yield Sentences.from_text(run.read_file(path))
    else:
        yield from _text_chunks(run, path)


def _text_chunks(run, path):
    """Yields chunks of the lines of plain text, or all sentences of a file of another form."""
    form = run.experiment.data.form.column
    part = files.Part.parse(path)
    lines = files.read_lines(part.path)
    head = [*itertools.islice(lines, HEAD)]
    beginning = "\n".join(text for _, text in head)
    kind = evaluation_texts.detect_form(files.find(part.path), beginning, form)
    lines = itertools.chain(head, lines)
    if kind != "plain" or part.range != slice(None):
        text = "\n".join(text for _, text in lines)
        yield Sentences.from_text(evaluation_texts.from_content(text, path, run.reading, form))
        return
    rows = ((None, number, sentence_scores.words_of(text, run.reading)) for number, text in lines)
    yield from _row_chunks(rows, False)


def _row_chunks(rows: Iterable[tuple], nbest: bool) -> Iterator[Sentences]:
    """Groups rows (id or None, line, words) in chunks; an n-best list is not divided."""
    chunk: list[tuple] = []
    for row in rows:
        if len(chunk) >= TOGETHER and not (nbest and row[0] == chunk[-1][0]):
            yield Sentences.from_rows(chunk, nbest)
            chunk = []
        chunk.append(row)
    if chunk:
        yield Sentences.from_rows(chunk, nbest)


def _apart(rows, path):
    """Yields rows of n-best lists; raises UserError where a list continues after another one."""
    ids: set[str] = set()
    last_id = None
    for row in rows:
        if row[0] != last_id and row[0] in ids:
            raise nbest_lists.repetition_error(row[0], path, row[1])
        last_id = row[0]
        ids.add(last_id)
        yield row


class Stream:
    """The table of the scores of a file's sentences, and totals of those scored so far."""

    def __init__(self, run, path: str, nbest=False, column=None, base: float | None = None):
        sentence_scores.check_run(run)
        self.path, self.run, self.base = path, run, base
        self.parts = chunks(run, path, nbest, column)
        self.sentences = self.lists = self.words = self.unknown_words = 0
        self.log_prob = self.log_prob_known = 0.0
        self.nbest = False
        self.noted: dict[tuple[str, ...], None] = {}

    def lines(self) -> Iterator[str]:
        """Yields the lines of the table."""
        with lazy.extra():
            from tqdm import tqdm
        bar = tqdm(unit=" sentences", disable=None)
        for number, sentences in enumerate(self.parts):
            scores = sentence_scores.score(self.run, sentences.words, self.path)
            columns, rows = sentence_scores.table(sentences, scores, math.log(self.base or math.e))
            if not number:
                yield tsv_line(columns)
            yield from map(tsv_line, rows)
            self._add(sentences, scores)
            bar.update(len(rows))
        bar.close()
        if not self.words:
            raise UserError(f"{self.path} has no words to score: give a text that has some.")

    def _add(self, sentences, scores):
        # A blank line of a text has a row, and is no sentence; an empty hypothesis is one.
        is_sentence = (scores.words > 0) | sentences.nbest
        self.sentences += int(is_sentence.sum())
        self.words += int(scores.words.sum())
        self.unknown_words += int(scores.unknown.sum())
        self.log_prob += float(scores.log_prob[is_sentence].sum())
        self.log_prob_known += float(scores.log_prob_known[is_sentence].sum())
        self.nbest = sentences.nbest and sentences.ids is not None
        if sentences.ids is not None:
            self.lists += len({*sentences.ids})
        self.noted |= self.run.noted(sentences.words)

    def notes(self) -> list[str]:
        """Returns lines on how much was scored and on its unknown words."""
        words, unknown = self.words, self.unknown_words
        totals = f"{self.sentences:,} sentences"
        if self.nbest:
            totals = f"{self.lists:,} lists, {self.sentences:,} hypotheses"
        summary = (
            f"{self.path}: {totals}, {words:,} words, {unknown:,} of them read as <unk> "
            f"({unknown / max(1, words):.2%}), log-probability {self.log_prob:,.1f} nats"
        )
        notes = [summary, sentence_scores.warning(self.run.lexicon, unknown)]
        if unknown == words:
            notes.append(sentence_scores.share(words, unknown, self.path))
        notes += self.run.notes([*map(list, self.noted)])
        sums = None if self.base is None else self._sums(math.log(self.base))
        return [note for note in (*notes, sums) if note]

    def _sums(self, unit):
        """Formats the sums as KenLM's query does, whose tokens are words and ends of sentences."""
        tokens, unknown = self.words + self.sentences, self.unknown_words
        excluding = perplexity_of(-self.log_prob_known / (tokens - unknown))
        return (
            f"Total: {self.log_prob / unit:.4f}, excluding OOVs: {self.log_prob_known / unit:.4f}; "
            f"Perplexity including OOVs: {perplexity_of(-self.log_prob / tokens):.6g}, "
            f"excluding OOVs: {excluding:.6g}; OOVs: {unknown}, Tokens: {tokens}"
        )
