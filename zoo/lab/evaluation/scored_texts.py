"""Perplexities of texts: of the splits of a run, and of files."""

import argparse
import dataclasses
import itertools
import math
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from zoo.data import Corpus
from zoo.data.encoded_text import EncodedText
from zoo.lab.evaluation import item_scores, leakage, mixtures, passport, unknown_words
from zoo.lab.evaluation.changes import registry
from zoo.lab.evaluation.figures import Part, PerplexityFigures, PerplexityPassport, SubwordFigures
from zoo.lab.evaluation.passport import Judgement, Metric
from zoo.lab.evaluation.perplexity import Scores, bits, impossible_words
from zoo.lab.evaluation.run import Run
from zoo.lab.table import COUNT, NATS, PERPLEXITY, Column, Table
from zoo.models import SequenceToSequence
from zoo.sources.tokens import TokenizedText


class Row(NamedTuple):
    """The perplexity of a text."""

    text: str
    state: str
    sentences: int
    tokens: int
    unknown: int
    log_perplexity: float  # nats per token
    bits: float  # the same in bits
    perplexity: float
    passport: str


class ScoredText(NamedTuple):
    """A text scored by a run."""

    run: Run  # under the state policy of the text
    name: str
    corpus: Corpus
    text: EncodedText  # the text as word ids
    scores: Scores
    file: TokenizedText | None = None  # the text as its file gives it; None for a split

    @property
    def tokenized(self) -> TokenizedText:
        """The text as its file gives it."""
        return self.file or split_text(self.run, self.name, self.corpus)

    @property
    def notes(self) -> list[str]:
        """Remarks on the text, and on a state that leaves little to learn from it."""
        remarks = []
        learns = any(change.learns for change in registry.changes_of(self.run))
        if learns and self.run.experiment.evaluation.state == "sentences":
            remarks = [
                "each sentence starts from an empty state, so that little of the text is left "
                "to learn from: see --state carried"
            ]
        items = self.corpus.items
        if items:
            state, count = self.run.experiment.evaluation.state, len(self.corpus.sentences)
            remarks += [
                f"{len(items):,} items are divided into {count:,} sentences at . ! ? and …; "
                f"--state items carries the state in an item, sentences empties it: {state} here"
            ]
        return remarks + unknown_words.unknown_notes(self.run, self.corpus.sentences)

    def judgement(self, mixture: mixtures.Mixture | None = None) -> Judgement:
        """Returns the perplexity of the text, perhaps of a mixture too."""
        run, record = self.run, passport_of(self, mixture)
        figures, unknown = record.figures, record.unknown_tokens
        row = Row(
            self.name,
            record.policies.state,
            len(self.corpus.sentences),
            record.tokens,
            unknown,
            figures.log_perplexity,
            figures.bits,
            figures.perplexity,
            str(passport.file_of(run, record)),
        )
        return Judgement(
            run,
            record,
            describe(record),
            item_scores.from_text(self.text, self.scores, run.lexicon),
            rows=[row],
            notes=self.notes,
            warnings=[unknown_words.warning(run.lexicon, unknown)] if unknown else [],
        )


def unseen_splits(run: Run) -> list[str]:
    """Returns the splits of a run but the training text, each followed by its parts."""
    data = run.experiment.data
    return [
        part for split in data.splits() if split != "train" for part in (split, *data.parts(split))
    ]


def score(
    run: Run,
    splits: Iterable[str],
    file: str | None = None,
    state: str | None = None,
    lines: bool = False,
) -> Iterator[ScoredText]:
    """Scores splits of a run, then a file; with `lines`, in one row (see `Run.score_corpus`)."""
    # The words of a split are known.
    split_run = dataclasses.replace(run, tokenizer="") if run.tokenizer else run
    for split in splits:
        state_run, corpus = split_run.with_state(state), run.read(split)
        yield ScoredText(state_run, split, corpus, *state_run.score_corpus(corpus, lines))
    if file is not None:
        yield score_text(run, run.read_file(file), name_of(file), state, lines)


def score_text(
    run: Run, text: TokenizedText, name: str, state: str | None = None, lines: bool = False
) -> ScoredText:
    """Scores a text from outside a run's data; see `for_text`."""
    run, corpus = for_text(run, text, state, lines), text.corpus
    return ScoredText(run, name, corpus, *run.score_corpus(corpus, lines), text)


def for_text(run: Run, text: TokenizedText, state: str | None, lines: bool = False) -> Run:
    """Returns the run judged under a state policy; by default its own, but "sentences" for the
    items of a table, and for the sentences of any text with `lines`; "items" if an item has several
    sentences and the run's own policy carries the state."""
    is_translator = isinstance(run.experiment.model, SequenceToSequence)
    apart = (lines or text.items) and run.lexicon.boundary is not None and not is_translator
    if state is None and apart:
        carried = text.items and run.experiment.evaluation.state == "carried"
        state = "items" if carried and text.corpus.items else "sentences"
    return run.with_state(state)


def split_text(run: Run, split: str, corpus: Corpus) -> TokenizedText:
    """Reads the tokens of a split from its file if it has plain sentences; else its words."""
    source: Any = run.experiment.data.within()
    # A line of untokenised text may have several sentences.
    if source.form.plain and not source.form.language:
        text = run.read_file(source.path_of(split))
        if text.corpus.sentences == corpus.sentences:
            return text
    return run.tokenized(corpus)


def name_of(file: str) -> str:
    """Returns the name of a text that is no split."""
    return f"data:{pathlib.PurePath(file).name}"


def passport_of(scored: ScoredText, mixture: mixtures.Mixture | None = None) -> PerplexityPassport:
    """Makes the passport of a perplexity."""
    run, name, corpus, text, scores, _ = scored
    history, judged = run.seen_texts, (name, corpus.name, corpus.sentences)
    knowledge = history.knowledge if history else None
    priors = leakage.priors_that_saw(run.experiment, run.lexicon, *judged, knowledge)
    vocabulary, lexicon = run.experiment.vocabulary, run.lexicon
    occurrences, unknown = text.occurrences(lexicon), text.unknown(lexicon)
    is_unseen, words = occurrences == 0, sum(map(len, corpus.sentences))
    marks = [lexicon.ids[word] for word in (lexicon.unknown, lexicon.boundary) if word is not None]
    types = {word for sentence in corpus.sentences for word in sentence}
    figures: dict[str, Any] = {}
    if text.pieces is not None:
        counted = itertools.compress(map(len, text.pieces), scores.counted)
        total, subwords = scores.log_perplexity * scores.tokens, sum(counted)
        figures["per_subword"] = SubwordFigures(subwords, total / subwords)
    elif text.strings is not None:
        figures["strings"] = _part(scores, text.strings.counts >= 0)
    if run.experiment.head.renormalised:
        spelled = dataclasses.replace(scores, log_prob=scores.log_prob + scores.log_z)
        figures["log_perplexity_over_all_spellings"] = spelled.log_perplexity
    if vocabulary.boundary == "uncounted":
        boundaries = text.words == lexicon.boundary_id
        wider = dataclasses.replace(scores, counted=scores.counted | boundaries)
        figures["log_perplexity_with_boundaries"] = wider.log_perplexity
        figures["tokens_with_boundaries"] = wider.tokens
    return PerplexityPassport(
        kind="perplexity",
        split=name,
        figures=PerplexityFigures(
            log_perplexity=scores.log_perplexity,
            perplexity=scores.perplexity,
            bits=bits(scores.log_perplexity),
            log_z=scores.log_z_figures(),
            bands=scores.bands(occurrences, unknown),
            seen=_part(scores, ~is_unseen & ~unknown) if lexicon.has_counts else None,
            unseen=_part(scores, text.known & is_unseen & ~np.isin(text.words, marks)),
            mixture=mixtures.figures(mixture, lexicon, text, scores) if mixture else None,
            impossible=impossible_words(scores, text, lexicon),
            **figures,
        ),
        tokens=scores.tokens,
        counts=passport.counts_sentence(run),
        out_of_vocabulary=int((~text.known).sum()),
        unknown_tokens=int(unknown.sum()),
        priors_saw_this_text=tuple(priors),
        out_of_vocabulary_rate=float((~text.known).sum() / max(1, words)),
        types=len(types),
        out_of_vocabulary_types=sum(not vocabulary.has(word, lexicon) for word in types),
        data=passport.data_of(corpus.name, corpus.sentences),
        source=passport.source_of(run, corpus) if corpus.source_text else None,
        policies=passport.policies(run),
        **passport.run_fields(run, corpus.sentences),
    )


def _part(scores: Scores, chosen: np.ndarray) -> Part:
    """Computes the figures of some of the counted tokens."""
    part = dataclasses.replace(scores, counted=scores.counted & chosen)
    if not part.tokens:
        return Part(0, 0.0, None, None)
    return Part(part.tokens, part.tokens / scores.tokens, part.log_perplexity, part.perplexity)


def describe(record: PerplexityPassport) -> str:
    """Formats the figures of a perplexity as text."""
    figures = record.figures
    is_character_level = record.counts.startswith("characters")
    token, word = ("character", "character") if is_character_level else ("token", "word")
    unit = "bits per character" if is_character_level else "bits"
    lines = [
        f"{record.split}: log-perplexity {figures.log_perplexity:.4f} nats per {token}, "
        f"{figures.bits:.4f} {unit}, perplexity {figures.perplexity:,.2f}, "
        f"{record.tokens:,} {token}s",
        *(f"  {line}" for line in passport.conditions(record)),
    ]
    subwords, start, log_z = figures.per_subword, record.started_from, figures.log_z
    if subwords:
        lines.append(
            f"  per subword: log-perplexity {subwords.log_perplexity:.4f} over "
            f"{subwords.tokens:,}; a word has the product over its subwords"
        )
    if start:
        lines.append(f"  started from {start.workdir}: its {', '.join(start.parts)}")
    if log_z:
        lines.append(
            f"  log Z of the unnormalised scores: mean {log_z.mean:.3f}, standard "
            f"deviation {log_z.standard_deviation:.3f} nats"
        )
    if figures.log_perplexity_over_all_spellings is not None:
        lines.append(
            f"  over all spellings: log-perplexity {figures.log_perplexity_over_all_spellings:.4f}"
        )
    for part, name in (
        (figures.seen, f"{word}s seen in training"),
        (figures.unseen, "words of the lexicon unseen in training"),
        (figures.strings, "strings outside the lexicon, of its classes"),
    ):
        if part and part.tokens:
            lines.append(
                f"  {name}: {part.tokens:,} tokens ({part.rate:.2%}), log-perplexity "
                f"{part.log_perplexity:.4f}, perplexity {part.perplexity:,.1f}"
            )
    mixture = figures.mixture
    if mixture:
        tuned = f"set on {mixture.tuned_on}" if mixture.tuned_on else "as given"
        lines.append(
            f"  with (1 - l) p + l/{mixture.words:,} over the words unseen in training, "
            f"l = {mixture.weight:.4g} {tuned}: log-perplexity {mixture.log_perplexity:.4f}"
        )
    lines += [f"  {note}: {count:,}" for note, count in record.notes.items() if count]
    if figures.tokens_with_boundaries is not None:
        lines.append(
            f"  with the boundaries counted too: log-perplexity "
            f"{figures.log_perplexity_with_boundaries:.4f} over "
            f"{figures.tokens_with_boundaries:,} tokens"
        )
    columns = [Column("seen in training"), Column("tokens", COUNT)]
    columns += [Column("log-perplexity", NATS), Column("perplexity", PERPLEXITY)]
    rows = [(row.band, row.tokens, row.log_perplexity, row.perplexity) for row in figures.bands]
    return "\n".join([*lines, *(f"  {line}" for line in Table(columns, rows).text() if rows)])


# ---------------------------------------- the texts that a command line asks for


def _splits(run, arguments):
    """Returns the splits to judge: by default all unseen ones, unless other texts are named."""
    others = arguments.data or arguments.minimal_pairs or arguments.suites
    return arguments.split or ([] if others else unseen_splits(run))


def requested_texts(run: Run, arguments: argparse.Namespace) -> Iterator[tuple[str, Corpus]]:
    """Reads (name, corpus) of the texts that a command line asks for."""
    yield from ((split, run.read(split)) for split in _splits(run, arguments))
    if arguments.data is not None:
        text = run.read_file(arguments.data)
        yield name_of(arguments.data), text.corpus


class Perplexity(Metric):
    """The perplexity of texts, and of the mixture for unseen words if it is asked for."""

    options = (mixtures.UNSEEN_WEIGHT,)
    needs_option = False

    def judge(self, run, arguments):
        weight, mixture, note = arguments.unseen_weight, None, None
        if arguments.agreement:
            return
        if weight is not None:
            mixture = mixtures.from_run(run, None if math.isnan(weight) else weight)
            note = "no word of the lexicon is without training text: nothing is mixed"
        for scored in score(run, _splits(run, arguments), arguments.data, arguments.state):
            judgement = scored.judgement(mixture)
            notes = [None if mixture else note, *judgement.notes]
            yield dataclasses.replace(judgement, notes=notes)
