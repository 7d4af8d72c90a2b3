"""Surprisal word by word, as a table for psycholinguistics and error analysis."""

from typing import NamedTuple

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.errors import quote
from zoo.lab.evaluation.perplexity import Scores, bits
from zoo.lab.table import user_columns
from zoo.lexicon import Lexicon
from zoo.sources.tokens import TokenizedText


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
    training_count: int | None
    surprisal_nats: float
    surprisal_bits: float
    counted: bool
    token: str = ""  # the ID of a treebank's token

    @classmethod
    def from_columns(cls, values: tuple, text: TokenizedText) -> "Row":
        """Makes a row of the values of `columns`, without a table's own columns."""
        return cls(*values[: len(COLUMNS)], *values[len(COLUMNS) + len(text.columns) :])


COLUMNS = Row._fields[:-1]


def columns(text: TokenizedText) -> tuple[str, ...]:
    """Returns `COLUMNS` and the text's own columns, with "given_" before names that are in both."""
    return (*COLUMNS, *user_columns(COLUMNS, (*text.columns, *text.token_columns)))


def critical_note(run, text: TokenizedText) -> str | None:
    """Returns a note on critical regions with unknown words; None without any."""
    if "critical" not in text.columns:
        return None
    place = text.columns.index("critical")
    tokens = (token for sentence in text.sentences for token in sentence.tokens)
    regions = [[*t.words] for t in tokens if t.words and t.text == t.extra[place]]
    missing = run.experiment.vocabulary.missing(regions, run.lexicon)
    unknown = sum(not missing.keys().isdisjoint(region) for region in regions)
    if not unknown:
        return None
    return (
        f"critical regions with unknown words: {unknown:,} of {len(regions):,} "
        f"({quote([*missing], 3)}): leave them out (known is FALSE), or give --add-words FILE"
    )


def rows(tokenized: TokenizedText, text: EncodedText, scores: Scores, lexicon: Lexicon):
    """Yields rows of `columns`, described in docs/scoring.md: one for each boundary and token, or
    for each of a token's readers."""
    occurrences, unknown = text.occurrences(lexicon), text.unknown(lexicon)
    ends = [*text.starts[1:].tolist(), len(text.words)]
    spans = zip(text.starts.tolist(), ends, tokenized.sentences, strict=True)
    nats = -scores.log_prob.astype(np.float64)

    def row(begin, end):
        """Returns the columns of the words from `begin` to `end`."""
        chosen = slice(begin, end)
        total = float(nats[chosen].sum())
        return (
            text.read_as(lexicon, begin, end),
            end - begin,
            not unknown[chosen].any(),
            int(min(occurrences[chosen], default=0)) if lexicon.has_counts else None,
            total,
            bits(total),
            bool(scores.counted[chosen].all()),
        )

    for number, (begin, end, sentence) in enumerate(spans, 1):
        name = str(sentence.line) if sentence.id is None else sentence.id
        for position, token in enumerate(sentence.tokens, 1):
            after = begin + len(token.words)
            span = (token.start, token.end)
            word = (number, name, position, *span, token.text, *row(begin, after))
            yield from ((*word, *extra) for extra in (token.extra, *token.further_extras))
            begin = after
        position, length = len(sentence.tokens), sentence.length
        for boundary in range(begin, end):
            position += 1
            about = (number, name, position, length, length, lexicon.boundary)
            token_cells = [""] * len(tokenized.token_columns)
            yield (*about, *row(boundary, boundary + 1), *sentence.extra, *token_cells)
