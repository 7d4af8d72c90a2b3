"""Surprisal word by word, as a table for psycholinguistics and error analysis."""

import math
from typing import NamedTuple

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.evaluation.perplexity import Scores
from zoo.lexicon import Lexicon
from zoo.runs import output_files
from zoo.sources.evaluation_texts import GivenText


class Row(NamedTuple):
    """A token as it was given, or a boundary; see `rows`."""

    sentence: int
    id: str
    position: int
    start: int
    end: int
    word: str
    read_as: str
    words: int
    known: bool
    training_count: int
    surprisal_nats: float
    surprisal_bits: float
    counted: bool


COLUMNS = Row._fields


def columns(given: GivenText) -> tuple[str, ...]:
    """Returns `COLUMNS` and the text's own columns, "given_" before a name among both."""
    return (*COLUMNS, *output_files.beside(COLUMNS, given.columns))


def rows(given: GivenText, text: EncodedText, scores: Scores, lexicon: Lexicon):
    """Yields a tuple of `columns`, told in docs/scoring.md, for each given token and boundary."""
    occurrences, unknown = text.occurrences(lexicon), text.unknown(lexicon)
    ends = [*text.starts[1:].tolist(), len(text.words)]
    spans = zip(text.starts.tolist(), ends, given.judged, strict=True)
    nats = -scores.log_prob.astype(np.float64)

    def row(begin, end):
        """Returns the columns of the words from `begin` to `end`."""
        chosen = slice(begin, end)
        total = float(nats[chosen].sum())
        return (
            " ".join(lexicon.words[word] for word in text.words[chosen]),
            end - begin,
            not unknown[chosen].any(),
            int(occurrences[chosen].min()),
            total,
            total / math.log(2),
            bool(scores.counted[chosen].all()),
        )

    for number, (begin, end, sentence) in enumerate(spans, 1):
        name = str(sentence.line) if sentence.id is None else sentence.id
        for position, token in enumerate(sentence.tokens, 1):
            after = begin + len(token.words)
            span = (token.start, token.end)
            yield (number, name, position, *span, token.text, *row(begin, after), *token.extra)
            begin = after
        position, length = len(sentence.tokens), sentence.length
        for boundary in range(begin, end):
            position += 1
            about = (number, name, position, length, length, lexicon.boundary)
            yield (*about, *row(boundary, boundary + 1), *sentence.extra)
