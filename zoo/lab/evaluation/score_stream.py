"""Scores of the lines of a text, or of n-best lists, as they come: pipe in, pipe out.

Some thousand lines are held at a time, so that a list of a million takes no more memory than one of
ten thousand. Treebanks and tables of items are read whole.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from zoo.base import lazy
from zoo.errors import UserError
from zoo.lab.evaluation import nbest as nbest_lists
from zoo.lab.evaluation import sentence_scores, unknown_words
from zoo.lab.evaluation.perplexity import perplexity_of
from zoo.lab.table import tsv_line
from zoo.sources import files, table_rows, text_formats
from zoo.sources.tokens import PLAIN, Reading, Sentence, TokenizedText

# Sentences that are scored together: many enough to fill batches, and few to hold.
TOGETHER = 8192


def open_sentences(run, path: str, nbest: bool = False, column: int | None = None) -> TokenizedText:
    """Reads the sentences of a file as they are needed: a text, or a field of each line."""
    if not nbest and column is None:
        form = run.experiment.data.form
        return text_formats.read_tokens(
            path, run.reading, form.column, form.blank_lines, streaming=True
        )
    return TokenizedText(path, read_fields(path, run.reading, nbest, column))


def read_fields(
    path: str, reading: Reading = PLAIN, nbest: bool = False, column: int | None = None
) -> Iterator[Sentence]:
    """Yields the sentence in a field of each line, or of each hypothesis with the id of its list;
    blank ones too."""
    lines = nbest_lists.read_lines(path) if nbest else files.read_lines(path)
    form, lines = nbest_lists.detect_format(lines)
    if nbest and column is None and form != "fields":
        for nbest_list in nbest_lists.parse_lists(lines, path, sparse=True)[1]:
            for hypothesis in sorted(nbest_list.hypotheses, key=lambda hypothesis: hypothesis.line):
                yield Sentence(hypothesis.line, nbest_list.id, reading.tokens(hypothesis.text))
        return
    field, ids = column or 1 + nbest, dict[str, None]()
    split = nbest_lists.split_fields if nbest else table_rows.cells
    for number, line in lines:
        location = f"{path}, line {number}"
        fields = split(line, location)
        if len(fields) < field:
            form = "id ||| words ||| ..." if nbest else "fields with tabs between them"
            raise UserError(
                f"{location}: field {field} is missing; write {form}, or give another --column."
            )
        text = fields[field - 1]
        text = nbest_lists.without_alignments(text, location) if nbest else text
        id = fields[0].strip()
        if nbest and id in ids and id != next(reversed(ids)):
            raise nbest_lists.repetition_error(id, path, number)
        ids |= {id: None} if nbest else {}
        yield Sentence(number, id if nbest else None, reading.tokens(text))


def chunks(sentences: Iterable[Sentence], nbest: bool = False) -> Iterator[list[Sentence]]:
    """Yields some thousand sentences at a time; an n-best list is not divided."""
    chunk: list[Sentence] = []
    for sentence in sentences:
        if len(chunk) >= TOGETHER and not (nbest and sentence.id == chunk[-1].id):
            yield chunk
            chunk = []
        chunk.append(sentence)
    if chunk:
        yield chunk


class Stream:
    """The table of the scores of a file's sentences, and totals of those scored so far."""

    def __init__(self, run, path: str, nbest=False, column=None, base: float | None = None):
        sentence_scores.check_run(run)
        self.path, self.run, self.nbest, self.base = path, run, nbest, base
        self.text = open_sentences(run, path, nbest, column)
        self.lists = 0
        # of sentences, words, unknown words, log p, and log p without unknown words
        self.totals = np.zeros(5)
        self.phrases: dict[tuple[str, ...], None] = {}

    def lines(self) -> Iterator[str]:
        """Yields the lines of the table."""
        with lazy.extra():
            from tqdm import tqdm
        bar = tqdm(unit=" sentences", disable=None)
        unit = math.log(self.base or math.e)
        for number, sentences in enumerate(chunks(self.text.sentences, self.nbest)):
            words = [sentence.words for sentence in sentences]
            scores = sentence_scores.score(self.run, words, self.path)
            columns, rows = sentence_scores.table(
                sentences, scores, self.text.columns, unit, self.nbest
            )
            if not number:
                yield tsv_line(columns)
            yield from map(tsv_line, rows)
            # A blank line of a text has a row, and is no sentence; an empty hypothesis is one.
            counted = (scores.words > 0) | self.nbest
            values = counted, scores.words, scores.unknown, scores.log_prob, scores.log_prob_known
            self.totals += [array[counted].sum() for array in values]
            self.lists += len({sentence.id for sentence in sentences})
            self.phrases |= unknown_words.phrases(self.run, words)
            bar.update(len(rows))
        bar.close()
        if not self.totals[1]:
            raise UserError(f"{self.path} has no words to score: give a text that has some.")

    def notes(self) -> list[str]:
        """Returns lines on how much was scored and on its unknown words."""
        sentences, words, unknown = map(int, self.totals[:3])
        totals = f"{sentences:,} sentences"
        if self.nbest:
            totals = f"{self.lists:,} lists, {sentences:,} hypotheses"
        summary = (
            f"{self.path}: {totals}, {words:,} words, {unknown:,} of them read as <unk> "
            f"({unknown / max(1, words):.2%}), log-probability {self.totals[3]:,.1f} nats"
        )
        notes = [summary, unknown_words.warning(self.run.lexicon, unknown)]
        if unknown == words:
            notes.append(unknown_words.describe_share(words, unknown, self.path))
        notes += unknown_words.unknown_notes(self.run, [*map(list, self.phrases)])
        if self.base is not None:
            # The sums of KenLM's query, whose tokens are words and ends of sentences.
            tokens, (total, known) = words + sentences, self.totals[3:]
            unit, excluding = math.log(self.base), perplexity_of(-known / (tokens - unknown))
            notes.append(
                f"Total: {total / unit:.4f}, excluding OOVs: {known / unit:.4f}; "
                f"Perplexity including OOVs: {perplexity_of(-total / tokens):.6g}, "
                f"excluding OOVs: {excluding:.6g}; OOVs: {unknown}, Tokens: {tokens}"
            )
        return [note for note in notes if note]
