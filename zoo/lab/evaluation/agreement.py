"""Agreement: how often a model prefers the sentence of a treebank to a copy with a wrong form.

`pairs_of` makes the pairs. The model should find the sentence as it stood more probable (Linzen et
al. 2016; for pairs from treebanks see Gulordava et al. 2018). Dymetman and Xiao (2016), section
5.3, leave this evaluation of log-linear models to the future.
"""

import collections
import dataclasses
import math
import pathlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from zoo.errors import UserError, quote
from zoo.lab.evaluation import leakage, minimal_pairs, passport, significance
from zoo.lab.evaluation.figures import PairAccuracy, PairPassport
from zoo.lab.evaluation.passport import Judgement, Metric
from zoo.lab.evaluation.run import Run, splits_of
from zoo.lab.options import Option
from zoo.lab.table import COUNT, SHARE, Column, Table
from zoo.sources import conllu
from zoo.sources.conllu import Conllu

# The distances of cases.
DISTANCES = {"1": (1, 1), "2-4": (2, 4), "5+": (5, math.inf)}


class Row(NamedTuple):
    """A pair and its scores, a row of the table of pairs."""

    pair: int
    good: str
    bad: str
    log_prob_good: float  # nats
    log_prob_bad: float  # nats
    difference: float  # nats
    right: bool | None  # whether the good sentence is more probable; None where the pair is skipped
    missing: str
    sentence: int
    position: int
    phenomenon: str
    distance: int
    controller: str
    good_word: str
    bad_word: str
    good_count: int
    bad_count: int


# Facts about each pair, and the last columns, which depend on the model's lexicon.
COLUMNS = Row._fields
FACTS, COUNTS = COLUMNS[len(minimal_pairs.COLUMNS) : -2], COLUMNS[-2:]


def judge(run: Run, splits: Iterable[str], file: str | None = None) -> Iterator[Judgement]:
    """Judges a run on the agreement pairs of splits of its data, and of another treebank."""
    for split in splits:
        source = run.experiment.data.within()
        if not isinstance(source, Conllu):
            raise UserError(
                "agreement pairs are made from a treebank: give a run whose data are data.Conllu "
                "(runs of the micro language: python -m zoo compare --micro DIR)."
            )
        sentences = (sentence for name in source.splits() for sentence in source.tokens(name))
        yield _judge_pairs(run, split, source, split, paradigms(sentences))
    if file is not None:
        fused = run.experiment.data.form.fused or "surface"  # as in the run's own data
        bank = Conllu(file, file, fused=fused)
        forms = paradigms(bank.tokens("train"))
        name = pathlib.PurePath(file).name
        note = f"\n  other forms are looked up in {name} alone, and for the run's splits in all"
        yield _judge_pairs(run, name, bank, "train", forms, note)


class Agreement(Metric):
    """The accuracy on agreement pairs."""

    options = (Option("--agreement", "agreement pairs made from a treebank, instead of its text"),)

    def judge(self, run, arguments):
        splits, file = arguments.split, arguments.data
        return judge(run, splits if file else splits_of(run.path, splits), file)


def _judge_pairs(run, name, bank, split, forms, note=""):
    """Judges a run on the pairs of a treebank's sentences."""
    sentences = bank.tokens(split)
    pairs = pairs_of(sentences, forms, run.experiment.vocabulary.lower_case)
    scores = minimal_pairs.score_pairs(run, pairs)
    if not any(token["deprel"] not in (None, "_") for sentence in sentences for token in sentence):
        raise UserError(
            f"{name} has no dependencies, from which agreement pairs are made: give a treebank "
            "with the columns HEAD and DEPREL."
        )
    if not pairs:
        raise UserError(
            f"{name} has no agreement pairs: give a treebank in which a lemma has forms that "
            "differ in number or gender alone."
        )
    if not scores.pairs:
        raise UserError(
            f"none of the {len(pairs):,} agreement pairs of {name} has its words in the lexicon, "
            f"such as {quote([word for word, _ in scores.commonest_missing])}: give a treebank of "
            "the run's language, or a run with more words."
        )
    corpus, history = run.experiment.vocabulary.read(bank, split), run.seen_texts
    knowledge = history.knowledge if history else None
    judged = name, corpus.name, corpus.sentences
    priors = leakage.priors_that_saw(run.experiment, run.lexicon, *judged, knowledge)
    facts = [pair_facts for _, _, pair_facts in pairs]
    for column in COUNTS:
        words = tuple(pair_facts[column.replace("count", "word")] for pair_facts in facts)
        for pair_facts, count in zip(facts, run.lexicon.occurrences(words).tolist(), strict=True):
            pair_facts[column] = count if run.lexicon.has_counts else None
    both_seen = np.array(
        [all(pair_facts[column] for column in COUNTS) for pair_facts in facts], bool
    )
    both_seen_figures = scores.select(both_seen).figures() if run.lexicon.has_counts else None
    figures = {"cases": by_case(scores, facts), "both_seen": both_seen_figures}
    record = minimal_pairs.passport_of(run, f"agreement-{name}", pairs, scores, **figures)
    record = dataclasses.replace(record, priors_saw_this_text=tuple(priors))
    table_rows = [*rows(pairs, scores)]
    return Judgement(run, record, describe(record) + note, scores.answers(), table_rows, COLUMNS)


def rows(
    pairs: list[tuple[list[str], list[str], dict]], scores: minimal_pairs.PairScores
) -> Iterator[Row]:
    """Yields a row for each pair."""
    plain = [
        minimal_pairs.Pair(good, bad, (" ".join(good), " ".join(bad))) for good, bad, _ in pairs
    ]
    for row, (*_, facts) in zip(minimal_pairs.rows(plain, scores), pairs, strict=True):
        values = row[: len(minimal_pairs.COLUMNS)]
        yield Row._make((*values, *(facts[name] for name in (*FACTS, *COUNTS))))


def by_case(scores, facts: list[dict]) -> dict[str, PairAccuracy]:
    """Returns the figures of each phenomenon at each distance: {"number, 2-4": figures, ...}."""
    cases = {}
    for name in map(str.lower, PHENOMENA):
        for label, (shortest, longest) in {**DISTANCES, "all": (1, math.inf)}.items():
            is_case = [
                pair_facts["phenomenon"] == name and shortest <= pair_facts["distance"] <= longest
                for pair_facts in facts
            ]
            cases[f"{name}, {label}"] = scores.select(np.array(is_case, bool)).figures()
    return cases


def describe(record: PairPassport) -> str:
    """Formats the figures of a passport as a table, a case a line."""
    figures = record.figures
    lines = [
        f"{record.split}: accuracy {figures.accuracy:.2%} "
        f"{significance.percent(figures.interval)} of {figures.pairs:,} pairs; of "
        f"{figures.pairs + figures.skipped:,} in the text, {figures.skipped:,} have words "
        "outside the lexicon",
    ]
    cases = {**figures.cases}
    if figures.both_seen and figures.both_seen.pairs < figures.pairs:
        cases["training saw both"] = figures.both_seen
    columns = [Column("agreement, distance"), Column("accuracy", SHARE), Column("95 %", SHARE)]
    rows = [
        [name, *((case.accuracy, case.interval) if case.pairs else (None, None)), case.pairs]
        for name, case in cases.items()
    ]
    lines += [f"  {line}" for line in Table([*columns, Column("pairs", COUNT)], rows).text()]
    if record.priors_saw_this_text:
        lines.append(f"  {passport.prior_line(record)}")
    return "\n".join([*lines, *passport.warnings(record.leak)])


# -------- agreement pairs made from a treebank: a form against the other form of its lemma
# In a sentence of the treebank, a word that agrees in number or gender with a word to its left is
# swapped for the form of the same lemma that differs in that feature alone:
#
#     la maison que les voisins ont achetée   ->   la maison que les voisins ont acheté

PHENOMENA = ("Number", "Gender")
# Universal Dependencies, versions 1 and 2. A subject's predicate and the predicate's auxiliaries
# agree with it; a modifier with its noun.
SUBJECTS = {"nsubj", "nsubjpass", "nsubj:pass"}
AUXILIARIES = {"aux", "auxpass", "aux:pass", "aux:tense", "cop"}
MODIFIERS = {"amod", "acl"}
PARTS_OF_SPEECH = {"ADJ", "AUX", "VERB"}
# A form has features by annotation errors if it has them at most this often beside others.
ERRORS = 0.05
Features = frozenset[tuple[str, str]]
Paradigms = dict[tuple[str, str], dict[Features, collections.Counter]]


def paradigms(sentences: Iterable[list[dict]]) -> Paradigms:
    """Returns {(lemma, part of speech): {features: counts of forms}}, in lower case."""
    forms_of: collections.defaultdict = collections.defaultdict(
        lambda: collections.defaultdict(collections.Counter)
    )
    for sentence in sentences:
        for token in sentence:
            if isinstance(token["id"], int):
                lemma = token["lemma"], token["upos"]
                forms_of[lemma][_features(token)][token["form"].lower()] += 1
    return forms_of


def twin(token: dict, name: str, forms: Paradigms) -> str | None:
    """Returns the most frequent form of the token's lemma that differs in `name`'s value alone."""
    features = _features(token)
    analyses = forms.get((token["lemma"], token["upos"]), {})
    fixed = {pair for pair in features if pair[0] != name}
    counts: collections.Counter = collections.Counter()
    for analysis, form_counts in analyses.items():
        changes = analysis - fixed
        if analysis != features and analysis >= fixed and {pair[0] for pair in changes} == {name}:
            counts.update(form_counts)
    if not counts:
        return None
    form = min(counts, key=lambda form: (-counts[form], form))
    original = analyses.get(features, collections.Counter())[form]
    return None if form == token["form"].lower() or original > ERRORS * counts[form] else form


def agreements(sentence: list[dict]) -> list[tuple[int, int]]:
    """Returns positions (controller, controlled) of words that may agree, the controller first."""
    position_by_id = {token["id"]: position for position, token in enumerate(sentence)}
    pairs = set()
    for position, token in enumerate(sentence):
        head = position_by_id.get(token["head"])
        if head is None:
            continue
        if token["deprel"] in SUBJECTS:
            pairs.add((position, head))
            pairs.update(
                (position, auxiliary)
                for auxiliary, candidate in enumerate(sentence)
                if candidate["head"] == token["head"] and candidate["deprel"] in AUXILIARIES
            )
        elif token["deprel"] in MODIFIERS:
            pairs.add((head, position))
    return sorted(pair for pair in pairs if pair[0] < pair[1])


def pairs_of(
    sentences: Iterable[list[dict]], forms: Paradigms, lower_case: bool
) -> list[tuple[list[str], list[str], dict]]:
    """Returns (sentence, copy with a wrong form, {name: fact of `FACTS`}) of agreements that show.

    An agreement shows if the controlled word is a verb or an adjective, and if gender and number,
    as far as both words have them, each have a single value, the same in both: a participle that
    does not agree often differs in one of them. The distance is between the words' positions.
    Sentences and positions are counted from 1.
    """
    pairs = []
    for number, sentence in enumerate(sentences, 1):
        words = [token["form"].lower() if lower_case else token["form"] for token in sentence]
        for controller, controlled in agreements(sentence):
            controls, token = (dict(_features(sentence[p])) for p in (controller, controlled))
            shared = [name for name in PHENOMENA if name in controls and name in token]
            if sentence[controlled]["upos"] not in PARTS_OF_SPEECH or any(
                controls[name] != token[name] or "," in token[name] for name in shared
            ):
                continue
            for name in shared:
                form = twin(sentence[controlled], name, forms)
                if form is None:
                    continue
                wrong = [*words[:controlled], form, *words[controlled + 1 :]]
                distance, place = controlled - controller, controlled + 1
                forms_of_pair = words[controller], words[controlled], form
                facts = (number, place, name.lower(), distance, *forms_of_pair)
                pairs.append((words, wrong, dict(zip(FACTS, facts, strict=True))))
    return pairs


def _features(token) -> Features:
    return frozenset(conllu.pairs(token["feats"]).items())
