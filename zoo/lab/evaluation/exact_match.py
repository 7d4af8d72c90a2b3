"""Exact match: answers that equal the given ones word for word, decoded greedily."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo.decoding import BeamSearch, steps
from zoo.decoding.sampling import sample
from zoo.errors import UserError
from zoo.lab.evaluation import item_scores, passport, scored_texts, significance
from zoo.lab.evaluation.figures import AnswerAccuracy, AnswerPassport
from zoo.lab.evaluation.passport import Judgement, Metric
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.translators import Translator
from zoo.lab.options import Option
from zoo.models import SequenceToSequence
from zoo.priors import Grammar
from zoo.sources.source import Corpus

# Questions answered side by side; matters for speed only.
ROWS = 64
# Words of an answer at most, where no grammar sets a limit.
LONGEST = 128
# Parses of an ambiguous beginning that are kept, more than is affordable in training.
STACKS = 16


def answer(
    run, corpus: Corpus, length: int | None = None, temperature: float = 0, seed: int = 0
) -> list[tuple[list[str], bool]]:
    """Decodes the answer to each sentence's prefix, or the translation of each source."""
    if length is None:
        background = run.experiment.head.background
        length = background.longest if isinstance(background, Grammar) else LONGEST
    if isinstance(run.experiment.model, SequenceToSequence):
        if temperature:
            raise UserError(
                f"{run.path} is an encoder-decoder, whose answers are searched for and not drawn: "
                "give a temperature of 0."
            )
        return _translate(run, corpus, length)
    model, lexicon = run.experiment.language_model, run.lexicon
    boundary = lexicon.ids.get(lexicon.boundary)
    if corpus.prefixes is None or boundary is None:
        raise UserError(
            f"--exact-match needs questions with answers, and a boundary: {corpus.name} is not "
            "of a data.Prefixed source, or vocabulary.boundary is none."
        )
    text = run.experiment.vocabulary.encode(corpus, lexicon)
    width = 1 + max(corpus.prefixes)
    prompts = np.full((len(text.starts), width), boundary, np.int32)
    real = np.zeros(prompts.shape, bool)
    for row, (start, prefix) in enumerate(zip(text.starts, corpus.prefixes, strict=True)):
        prompts[row, width - prefix :] = text.words[start : start + prefix]
        real[row, width - prefix - 1 :] = True
    step = steps.from_language_model(model, run.params, run.tables)
    answers = []
    for first in range(0, len(prompts), ROWS):
        rows = np.minimum(np.arange(first, first + ROWS), len(prompts) - 1)
        words = prompts[rows]
        with jax.default_matmul_precision(PRECISION):
            carry = _read(step, words[:, :-1], real[rows, :-1], model.initial_carry(ROWS))
            samples, _ = sample(
                step,
                words[:, -1],
                carry,
                jax.random.fold_in(jax.random.key(seed), first),
                length + 1,
                temperature=temperature,
                boundary=boundary,
            )
        for row in np.asarray(samples)[: len(prompts) - first]:
            ends = np.flatnonzero(row == boundary)
            ids = row[: ends[0]] if len(ends) else row[:length]
            answers.append(([lexicon.words[word] for word in ids], bool(len(ends))))
    return answers


def _translate(run, corpus, length: int) -> list[tuple[list[str], bool]]:
    """Returns (words, whether complete) of greedy translations of at most `length` words."""
    translator = Translator((run,))
    translations = translator.translate(
        run.experiment.source_corpus(corpus).sentences,
        BeamSearch(beam=1, longest=length + 1),
        ROWS,
        ratio=length + 1,
    )
    return [
        (translator.words(best[0]._replace(words=best[0].words[:length])), best[0].complete)
        if best
        else ([], False)
        for best in translations
    ]


@jax.jit
def _read(step, words, real, carry):
    """Computes the carry of each row after its words [B, T] at the real positions."""

    def read(carry, column):
        word, is_real = column
        next_carry = step(word, carry)[1]

        def choose(after, before):
            return jnp.where(is_real.reshape((-1,) + (1,) * (after.ndim - 1)), after, before)

        return jax.tree.map(choose, next_carry, carry), None

    return jax.lax.scan(read, carry, (words.T, real.T))[0]


def questions(corpus: Corpus) -> Corpus:
    """Returns the sentences of a mixture that have a prefix; raises UserError if there are none."""
    if corpus.prefixes is None:
        return corpus  # pairs; for other corpora `answer` raises the error
    rows = np.flatnonzero(corpus.prefixes).tolist()
    if not rows:
        raise UserError(f"no sentence of {corpus.name} has a question: give another split.")
    return corpus.select(rows)


def judge(run: Run, name: str, text: Corpus, grammar: str | None = None) -> Judgement:
    """Judges a run's answers to a text's questions, right if they are the text's word for word."""
    corpus = questions(text)
    answers = answer(run, corpus)
    prefixes = corpus.prefixes or [0] * len(corpus.sentences)
    truth = [sentence[prefix:] for sentence, prefix in zip(corpus.sentences, prefixes, strict=True)]
    correct = [decoded == words for (decoded, _), words in zip(answers, truth, strict=True)]
    right, count = sum(correct), len(correct)
    figures = AnswerAccuracy(
        accuracy=right / count,
        interval=significance.binomial_interval(right, count),
        answers=count,
        right=right,
        complete=sum(complete for _, complete in answers),
        well_formed=None if grammar is None else _well_formed(run, answers, grammar),
    )
    record = AnswerPassport(
        kind="exact match",
        split=f"answers:{name}",
        figures=figures,
        tokens=count,
        counts="answers that agree with the given one in every word, decoded greedily",
        data=passport.data_of(text.name, text.sentences),
        **passport.sentence_fields(run, text.sentences),
    )
    well_formed = figures.well_formed
    parsed = "" if well_formed is None else f", {well_formed:,} of the grammar"
    description = (
        f"{name}: exact match {figures.accuracy:.2%} {significance.percent(figures.interval)} "
        f"({right:,} of {count:,} answers; {figures.complete:,} complete{parsed})"
    )
    return Judgement(run, record, description, item_scores.from_answers(np.array(correct)))


def _well_formed(run, answers, grammar):
    """Counts the complete answers that a grammar parses."""
    head_background = run.experiment.head.background
    limits: dict[str, Any] = {}
    if isinstance(head_background, Grammar):
        limits = {"longest": head_background.longest, "depth": head_background.depth}
    background = Grammar(grammar, stacks=STACKS, splits=(), **limits)
    tables = jax.tree.map(jnp.asarray, background.prepare(run.lexicon, {}))
    ids, boundary = run.lexicon.ids, run.lexicon.boundary
    forms = [[ids[word] for word in (*words, boundary)] for words, _ in answers]
    parsed = background.violations(tables, run.lexicon, forms) < 0
    return int((parsed & np.array([complete for _, complete in answers])).sum())


class ExactMatch(Metric):
    """The share of questions that are answered word for word."""

    options = (
        Option("--exact-match", "counts the questions of the splits that greedy decoding answers"),
        Option(
            "--grammar FILE",
            "with --exact-match: counts the answers that parse",
            rules="--grammar needs --exact-match, --constrain: is for answers",
        ),
    )

    def judge(self, run, arguments):
        if arguments.exact_match and not arguments.agreement:
            for name, corpus in scored_texts.requested_texts(run, arguments):
                yield judge(run, name, corpus, arguments.grammar)
