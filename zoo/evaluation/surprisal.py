"""Surprisal word by word, as a table for psycholinguistics and error analysis."""

import math
import pathlib

from zoo.data import Corpus
from zoo.data.encoded import EncodedText
from zoo.evaluation import outputs
from zoo.evaluation.perplexity import Scores
from zoo.lexicon import Lexicon

COLUMNS = (
    "sentence",
    "position",
    "word",
    "known",
    "training_count",
    "surprisal_nats",
    "surprisal_bits",
    "counted",
)
# Characters may be words, and would break the table.
BLANKS = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": "\\r"})


def rows(corpus: Corpus, text: EncodedText, scores: Scores, lexicon: Lexicon):
    """A tuple of `COLUMNS` for each word and each boundary, in the order of the text.

    sentence and position count from 1; a boundary stands at the end of its sentence. The word is
    the one of the text even where the model reads <unk>; then known is "no", also where the text
    itself has <unk>, and training_count is that of all that was <unk> in training. Line breaks and
    tabs among characters are written \\n, \\r and \\t.
    surprisal = -log p(word | words before), empty where nothing was predicted. counted: "yes" where
    perplexities count it: the sum over those rows divided by their number is the log-perplexity.
    """
    occurrences, unknown = text.occurrences(lexicon), text.unknown(lexicon)
    ends = [*text.starts[1:].tolist(), len(text.words)]
    places = zip(text.starts.tolist(), ends, corpus.sentences, strict=True)
    for number, (start, end, sentence) in enumerate(places, 1):
        spellings = sentence + [lexicon.boundary] * (end - start - len(sentence))
        for position, (place, word) in enumerate(zip(range(start, end), spellings, strict=True), 1):
            nats = -float(scores.log_prob[place])
            yield (
                number,
                position,
                word.translate(BLANKS),
                _yes(not unknown[place]),
                int(occurrences[place]),
                "" if math.isnan(nats) else f"{nats:.6f}",
                "" if math.isnan(nats) else f"{nats / math.log(2):.6f}",
                _yes(scores.counted[place]),
            )


def write(path: str | pathlib.Path, corpus, text, scores, lexicon):
    """Writes the table; see `rows`."""
    outputs.write_table(path, COLUMNS, rows(corpus, text, scores, lexicon))


def _yes(value):
    return "yes" if value else "no"
