"""A text coloured by surprisal, whose words show what the model expected in their place."""

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.heads import LogLinear
from zoo.lab.comparison import html_parts
from zoo.lab.comparison.html_parts import number
from zoo.lab.evaluation import best_words, surprisal
from zoo.lab.evaluation.best_words import BestWords, Contributions
from zoo.lab.evaluation.perplexity import Scores
from zoo.lab.evaluation.run import Run, first_test
from zoo.lab.evaluation.scored_texts import for_text, split_text
from zoo.lab.table import escape
from zoo.lexicon import Lexicon
from zoo.sources.source import Corpus
from zoo.sources.tokens import TokenizedText

# Levels of surprisal, nats: below 1, below 2 ... They have a colour and a bar each.
LEVELS = (1, 2, 4, 7, 10)


class ScoredText(NamedTuple):
    """A text with the predictions of a run."""

    run: str
    run_id: int
    name: str
    lexicon: Lexicon
    corpus: Corpus
    rows: list[surprisal.Row]
    text: EncodedText  # as word ids
    best: BestWords
    features: list[Contributions] | None
    no_features_reason: str


def text_section(scored_texts: list[ScoredText], reasons: dict[str, str]) -> str:
    """Returns the section of a text under each run, and of differences from the first run where
    both have the same tokens."""
    panels = [(scored_text.run, text_panel(scored_text)) for scored_text in scored_texts]
    for candidate in scored_texts[1:]:
        if [*map(_token_key, scored_texts[0].rows)] == [*map(_token_key, candidate.rows)]:
            name = f"{scored_texts[0].run} against {candidate.run}"
            panels.append((name, difference_panel(scored_texts[0], candidate)))
    parts = [switchable_panels(panels)] if panels else []
    return "".join([*parts, html_parts.omissions(reasons.items())])


def switchable_panels(panels: list[tuple[str, str]]) -> str:
    """Returns panels (title, HTML) of which one is shown at a time, with a button for each."""
    if len(panels) == 1:
        return f'<div class="panel"><h3>{escape(panels[0][0])}</h3>{panels[0][1]}</div>'
    buttons = "".join(
        f'<label><input type="radio" name="panel" value="{number}"'
        f"{'' if number else ' checked'}>{escape(name)}</label>"
        for number, (name, _) in enumerate(panels)
    )
    bodies = "".join(
        f'<div class="panel" data-panel="{number}"{" hidden" if number else ""}>{body}</div>'
        for number, (_, body) in enumerate(panels)
    )
    return f'<fieldset class="switch"><legend>Text under</legend>{buttons}</fieldset>{bodies}'


def text_panel(scored_text: ScoredText) -> str:
    """Returns the text coloured by the surprisal of a run, with a summary of it."""
    rows, reason = scored_text.rows, scored_text.no_features_reason
    counted = [row for row in rows if row.counted]
    tokens, unknown = sum(row.words for row in counted), sum(not row.known for row in counted)
    nats = sum(row.surprisal_nats for row in counted) / tokens if tokens else math.nan
    summary = (
        f"{scored_text.name}: the first {rows[-1].sentence:,} sentences, {tokens:,} counted "
        f"tokens ({unknown:,} unknown), {number(nats, 4)} nats per token on these."
    )
    classes = [surprisal_class(row.surprisal_nats) for row in rows]
    notes = html_parts.omission(reason, "Features") if reason else ""
    if not scored_text.best.words.size:
        reason = "this head spells its words and has no list of them."
        notes += html_parts.omission(reason, "Best words")
    details = html_parts.json_data(word_details(scored_text))
    words = coloured_words(scored_text, classes, str(scored_text.run_id), details)
    return f"<p>{escape(summary)}</p>" + surprisal_legend() + words + notes


def difference_panel(baseline: ScoredText, candidate: ScoredText) -> str:
    """Returns the text coloured by how much better one of two runs predicts each word."""
    rows = zip(baseline.rows, candidate.rows, strict=True)
    gains = [second.surprisal_nats - first.surprisal_nats for first, second in rows]

    def describe(gain):
        better = baseline.run if gain > 0 else candidate.run
        return f"{better} is better by {number(abs(gain), 2)} nats"

    counted = [(gain, row) for gain, row in zip(gains, baseline.rows, strict=True) if row.counted]
    tokens, total = sum(row.words for _, row in counted), sum(gain for gain, _ in counted)
    summary = (
        f"On these {tokens:,} tokens {describe(total)} in all; the section below has the whole "
        "text with its interval."
    )
    details = []
    for first, second, gain in zip(
        word_details(baseline), word_details(candidate), gains, strict=True
    ):
        parts = [
            {**part, "run": f"{scored_text.run}: {word['about'][0]}"}
            for scored_text, word in ((baseline, first), (candidate, second))
            for part in word["parts"]
        ]
        about = first["about"] if math.isnan(gain) else [describe(gain)]
        details.append({"word": first["word"], "about": about, "parts": parts})
    legend = colour_legend(difference_classes(baseline.run, candidate.run))
    html_id, classes = f"{baseline.run_id}-{candidate.run_id}", [*map(difference_class, gains)]
    words = coloured_words(baseline, classes, html_id, html_parts.json_data(details))
    return f"<p>{escape(summary)}</p>" + legend + words


def coloured_words(scored_text: ScoredText, classes: list[str], html_id: str, details: str) -> str:
    """Returns a text as HTML, each word in the colour of its class; `html_id` links it to
    `details`, JSON, for the script."""
    joint, layout = ("", " characters") if scored_text.lexicon.is_character_level else (" ", "")
    sentences: dict[int, list[str]] = {}
    for index, (row, css_class) in enumerate(zip(scored_text.rows, classes, strict=True)):
        sentences.setdefault(row.sentence, []).append(word_span(index, row, css_class))
    body = "".join(
        _source_line(scored_text.corpus.source_text, index)
        + f'<p class="sentence">{joint.join(words)}</p>'
        for index, words in enumerate(sentences.values())
    )
    return (
        f'<div class="words" data-words="{html_id}"><div class="text{layout}" role="group" '
        f'aria-label="Text, whose words show their details: arrow keys go from word to word">'
        f'{body}</div><div class="details" aria-live="polite"><p class="hint">Point at a word, '
        "tap it, or go to it with Tab and the arrow keys, to see what the model expected.</p>"
        f'</div></div><script type="application/json" id="words-{html_id}">{details}</script>'
    )


def _source_line(sources, index):
    """Returns the source sentence of a translation as HTML; "" without sources, None."""
    if sources is None:
        return ""
    return f'<p class="source">{escape(" ".join(sources.sentences[index]))}</p>'


def surprisal_class(nats: float) -> str:
    """Returns the CSS class of a surprisal: "s0" below the first of `LEVELS`, ... "off" for NaN."""
    if math.isnan(nats):
        return "off"
    return f"s{sum(nats >= level for level in LEVELS)}"


def word_span(index: int, row: surprisal.Row, css_class: str) -> str:
    """Returns a word as HTML, in the colour of its class, to be pointed at or tapped."""
    # An unknown word looks easy: <unk> has the probability of all unknown words.
    marks = ("" if row.counted else " uncounted") + ("" if row.known else " unknown")
    return (
        f'<span class="w {css_class}{marks}" data-word="{index}" role="button" '
        f'tabindex="{0 if index == 0 else -1}">{escape(show_blanks(row.word))}</span>'
    )


def colour_legend(levels: list[tuple[str, str]]) -> str:
    """Returns the legend of (class, meaning) pairs as HTML."""
    marks = "".join(f'<span class="w {level}">{escape(name)}</span> ' for level, name in levels)
    return f'<p class="scale">{marks}</p>'


def surprisal_legend() -> str:
    """Returns the legend of the levels of surprisal as HTML."""
    ends = ["0", *map(str, LEVELS)]
    names = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
    names.append(f"{ends[-1]} nats or more")
    levels = [(f"s{number}", name) for number, name in enumerate(names)]
    return colour_legend([*levels, ("unknown", "read as <unk>, any unknown word")])


# ---- details of the words of a text: surprisal, best words and features, as JSON for the script

# Features of a word that are shown one by one.
FEATURES = 8


def word_details(scored_text: ScoredText) -> list[dict[str, Any]]:
    """Returns the details of each token, which the page shows when it is pointed at."""
    details, position = [], 0
    for row in scored_text.rows:
        parts = [_model_word(scored_text, index) for index in range(position, position + row.words)]
        details.append({"word": show_blanks(row.word), "about": describe_word(row), "parts": parts})
        position += row.words
    return details


def show_blanks(word: str) -> str:
    """Makes blanks and line breaks visible in a word of nothing else; other words stay."""
    return word if word.strip() else word.replace("\n", "⏎").replace(" ", "␣").replace("\t", "⇥")


def describe_word(row: surprisal.Row) -> list[str]:
    """Describes a word: its surprisal, its probability, and how the model knows it."""
    if math.isnan(row.surprisal_nats):
        return ["not predicted: the text begins with it"]
    lines = [
        f"surprisal {number(row.surprisal_nats, 2)} nats, {number(row.surprisal_bits, 2)} bits; "
        f"probability {html_parts.probability(-row.surprisal_nats)}"
    ]
    if not row.known:
        lines.append("read as an unknown word")
    elif row.read_as != row.word:
        lines.append(f"read as {row.read_as}")
    if row.training_count is not None:
        times = "once" if row.training_count == 1 else f"{row.training_count:,} times"
        lines.append(f"{times} in training" if row.training_count else "never in training")
    if not row.counted:
        lines.append("not counted in the perplexity")
    return lines


def _model_word(scored_text, position):
    """Returns the word that the model read at a position, its best words and features."""
    lexicon, best = scored_text.lexicon.words, scored_text.best
    part: dict[str, Any] = {"read": show_blanks(lexicon[scored_text.text.words[position]])}
    part["best"] = [
        [show_blanks(lexicon[word]), html_parts.probability(float(log_prob))]
        for word, log_prob in zip(best.words[position], best.log_probs[position], strict=True)
    ]
    if scored_text.features is not None:
        part["why"] = contribution_rows(scored_text.features[position])
    return part


def contribution_rows(parts: Contributions) -> list[list[str]]:
    """Returns rows [name, nats] of the background, the first `FEATURES` features (sorted by size),
    the sum of the others, −log Z and log p."""
    lines = [("background, log b(x)", parts.log_background), *parts.features[:FEATURES]]
    remaining = parts.features[FEATURES:]
    if remaining:
        lines.append((f"{len(remaining):,} further features", sum(nats for _, nats in remaining)))
    lines += [("− log Z", -parts.log_z), ("sum, log p(x | h)", parts.log_prob)]
    return [[name, number(nats, 2)] for name, nats in lines]


# ----------------------------- the first sentences of a text with the predictions of a run

# Best words at a position, and words of a text that are shown at most.
BEST, WORDS = 5, 1500


def score_text(
    run_name: str, run_id: int, run: Run, split: str | None, file: str | None, sentences: int
) -> ScoredText:
    """Scores the first sentences of `file`, or else `split`, or else the first test split.

    The result has best words and features; `run_id` tells its HTML ids from other runs'.
    """
    run.experiment.check_whole_words("the list of best words")
    name = split or first_test(run.experiment)
    if file is not None:
        text = run.read_file(file)
        run = for_text(run, text, None, lines=True)
    else:
        text = split_text(run, name, run.read(name))
    text = first_sentences(run, text, sentences)
    corpus = text.corpus
    encoded, states = best_words.states(run, corpus)
    best = best_words.best_words(run, encoded, states, BEST)
    scores = Scores(best.log_prob, encoded.counted & states.predicted)
    # A word, by sentence, id and position, has one row, however many readers it has.
    rows = {row[:3]: row for row in surprisal.rows(text, encoded, scores, run.lexicon)}
    word_rows = [surprisal.Row.from_columns(row, text) for row in rows.values()]
    about = run_name, run_id, file or f"{name}, {corpus.name}", run.lexicon, corpus
    return ScoredText(*about, word_rows, encoded, best, *_features(run, encoded, states))


def first_sentences(run: Run, text: TokenizedText, sentences: int) -> TokenizedText:
    """Returns the first sentences of a text, at most `sentences` and `WORDS` words."""
    lengths = np.cumsum([len(sentence.words) for sentence in text.sentences])
    count = min(sentences, max(1, int((lengths <= WORDS).sum())))
    if text.source is None:
        return dataclasses.replace(text, sentences=text.sentences[:count])
    cut = text.source.select(range(count))
    words = [sentence[:WORDS] for sentence in cut.sentences]
    cut = dataclasses.replace(cut, features=None, sentences=words)
    return run.tokenized(cut)


def _features(run, encoded, states):
    """Returns (the features' contributions at each position, ""), or (None, why there are none)."""
    model: Any = run.experiment.model
    head = model.head
    if not isinstance(head, LogLinear):
        return None, f"a {type(head).__name__} does not have features of words."
    arguments = run.lexicon, states.hidden, encoded.words, states.context
    params = model.head_params(run.params)
    return best_words.word_contributions(head, params, run.tables["head"], *arguments), ""


# ------------------- A text coloured by how much better one of two runs predicts each word

# Levels of a difference, nats: below the first, the runs are alike.
DIFFERENCE_LEVELS = (0.5, 2, 4)


def _token_key(row):
    """Returns the fields by which tokens under two runs are recognised as the same."""
    return row.sentence, row.position, row.word, row.counted


def difference_class(gain: float) -> str:
    """Returns the CSS class of a gain: "a1" to "a3" where the baseline is better, "b1" to "b3"
    where the candidate is, "s0" for neither."""
    size = sum(abs(gain) >= level for level in DIFFERENCE_LEVELS)
    return f"{'a' if gain > 0 else 'b'}{size}" if size else "s0"


def difference_classes(baseline: str, candidate: str) -> list[tuple[str, str]]:
    """Returns the classes of differences with their meanings, for a legend."""
    names = [f"from {level:g} nats" for level in DIFFERENCE_LEVELS]
    first = [(f"a{size}", f"{baseline} better {name}") for size, name in enumerate(names, 1)]
    second = [(f"b{size}", f"{candidate} better {name}") for size, name in enumerate(names, 1)]
    return [*reversed(first), ("s0", "alike"), *second]
