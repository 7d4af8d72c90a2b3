"""Notes on the unknown words of a text: how many there are, and in which form a run knows them."""

import itertools
from collections.abc import Sequence

from zoo.data import text_notes
from zoo.lab.evaluation.run import Run
from zoo.lexicon import Lexicon
from zoo.sources import files


def unknown_notes(run: Run, sentences: Sequence[list[str]]) -> list[str]:
    """Returns notes on unknown words of a text that a run knows in another form."""
    unknown = [*run.experiment.vocabulary.missing(sentences, run.lexicon)]
    notes = text_notes.notes(sentences, unknown, run.lexicon, run.reading.language)
    return [*filter(None, notes)]


def phrases(run: Run, sentences: Sequence[list[str]]) -> dict[tuple[str, ...], None]:
    """Returns the words and phrases that `unknown_notes` on the sentences are about."""
    unknown = run.experiment.vocabulary.missing(sentences, run.lexicon)
    words = {*itertools.chain.from_iterable(sentences)}
    marks = (*text_notes.PUNCTUATION & words, *filter(files.MARK.fullmatch, words))
    spaced = map(str.split, text_notes.find_split_words(sentences, run.lexicon))
    return dict.fromkeys([*((word,) for word in (*unknown, *marks)), *map(tuple, spaced)])


def unknown_share(run: Run, sentences: Sequence[list[str]], text: str) -> str | None:
    """Returns a note on the share of unknown words in sentences; None without any."""
    unknown = run.experiment.vocabulary.missing(sentences, run.lexicon).values()
    return describe_share(sum(map(len, sentences)), sum(unknown), text)


def describe_share(words: int, unknown: int, text: str, to: str = "the run") -> str | None:
    """Returns a note on the share of unknown words in a text or lists; None without any."""
    if not unknown:
        return None
    if unknown == words:
        return (
            f"all {words:,} words of {text} are unknown to {to}, and nothing is measured but "
            "<unk>: give words in the language, tokenisation and case of its training text"
        )
    rate = unknown / words
    return f"{unknown:,} of the {words:,} words of {text} are unknown to {to} ({rate:.2%})"


def warning(lexicon: Lexicon, unknown: int) -> str | None:
    """Returns a warning if unknown words were scored as an <unk> that training never had."""
    has_unknown = unknown and lexicon.unknown is not None and lexicon.has_counts
    if not has_unknown or lexicon.counts[lexicon.unknown_id]:
        return None
    return (
        f"{unknown:,} unknown word{'s were' if unknown > 1 else ' was'} scored as "
        f"{lexicon.unknown}, which the training text never had, so that its probability means "
        "nothing: use the words that are known alone (log_prob_known, or known in a table of "
        "surprisal), give --add-words FILE, or train where some words of the training text are "
        f"{lexicon.unknown}, by vocabulary.minimum_count or maximum_size"
    )
