"""Test suites of SyntaxGym: predictions on surprisals of regions, item by item.

Gauthier et al., "SyntaxGym: an online platform for targeted evaluation of language models" (2020).
A prediction such as `(5;%garden%) > (5;%plain%) + 1` compares surprisals in bits: of region 5, or
of all regions (*), of the conditions `garden` and `plain`.
"""

import collections
import dataclasses
import operator
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from zoo.base import strict_json
from zoo.errors import UserError, quote
from zoo.lab.evaluation import item_scores, passport, scored_texts, significance, surprisal
from zoo.lab.evaluation.figures import Accuracy, AccuracyPassport
from zoo.lab.evaluation.passport import Judgement, Metric
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.unknown_words import unknown_notes, unknown_share
from zoo.lab.options import Option
from zoo.sources import files, items, table_rows, text_formats

# By rising precedence: operators, all from the left, and whether they join claims, not numbers.
# Surprisals of equal regions, in bits, differ by rounding.
_OPERATORS: tuple[tuple[dict[str, Callable], bool], ...] = (
    ({"&": np.logical_and, "|": np.logical_or}, True),
    ({"<": np.less, ">": np.greater, "=": lambda a, b: np.isclose(a, b, 1e-5, 1e-3)}, False),
    ({"+": operator.add, "-": operator.sub}, False),
)
_BRACKETS = {"(": ")", "[": "]"}
_REGION = r"\(\s*(?:[0-9]+|\*)\s*;\s*%[^%]*%\s*\)"
_TOKEN = re.compile(rf"{_REGION}|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\S")
Regions = dict[tuple[str, str], np.ndarray]


class Row(NamedTuple):
    """A prediction for an item."""

    item: str
    prediction: int  # its number, from 1
    formula: str
    holds: bool
    known: bool  # whether all words of the item are known


def evaluate(formula: str, regions: Regions) -> np.ndarray:
    """Computes whether a prediction holds for each item, bool [n], from the surprisals of regions,
    bits [n]; raises ValueError or RecursionError for another formula."""
    tokens = collections.deque([*_TOKEN.findall(formula), "its end"])

    def operand():
        token = tokens.popleft()
        if token in _BRACKETS:
            value, closing = expression(0), tokens.popleft()
            if closing != _BRACKETS[token]:
                raise ValueError(f"{closing} in place of {_BRACKETS[token]}")
            return value
        if re.fullmatch(_REGION, token):
            number, _, condition = (part.strip(" ()%") for part in token.partition(";"))
            if (condition, number) not in regions:
                raise ValueError(f"not all items have region {number} of {condition}")
            return regions[condition, number]
        return np.float64(token + tokens.popleft() if token in ("-", "+") else token)

    def expression(level):
        if level == len(_OPERATORS):
            return operand()
        value = expression(level + 1)
        functions, joins_claims = _OPERATORS[level]
        while tokens[0] in functions:
            sign = tokens.popleft()
            operands = value, expression(level + 1)
            if any((np.asarray(x).dtype == bool) != joins_claims for x in operands):
                raise ValueError(f"{sign} joins {'claims' if joins_claims else 'numbers'}")
            value = functions[sign](*operands)
        return value

    value = np.asarray(expression(0))
    if len(tokens) > 1 or value.dtype != bool:
        raise ValueError(f"{tokens[0]} is left over" if len(tokens) > 1 else "it compares nothing")
    return value


def read_regions(scored: scored_texts.ScoredText) -> tuple[dict[str, bool], Regions]:
    """Returns ({item: whether all its words are known}, surprisals of the regions of all items)."""
    columns = surprisal.columns(scored.tokenized)
    condition, number = (
        next(filter(columns.__contains__, names), "") for names in (items.CONDITIONS, items.REGIONS)
    )
    if not condition or not number:
        raise UserError(
            f"{scored.name} has the columns {quote([*scored.tokenized.columns])}: name those of "
            "conditions and of the numbers of regions condition and region."
        )
    known: dict[str, bool] = {}
    bits: dict = collections.defaultdict(lambda: collections.defaultdict(float))
    text, lexicon = (scored.tokenized, scored.text, scored.scores), scored.run.lexicon
    for values in surprisal.rows(*text, lexicon):
        row = dict(zip(columns, values, strict=True))
        known[row["id"]] = known.get(row["id"], True) and row["known"]
        if row[number]:  # the end of a sentence is in no region
            for region in (row[number].removesuffix(".0"), "*"):
                bits[row[condition], region][row["id"]] += row["surprisal_bits"]
    return known, {
        region: np.array([by_item[item] for item in known])
        for region, by_item in bits.items()
        if by_item.keys() == known.keys()
    }


def judge(run: Run, path: str, formulas: Sequence[str]) -> Judgement:
    """Judges a run on a suite in JSON, or in a table, which has the predictions `formulas`."""
    # Without a boundary, an item is one sentence, whatever marks it has.
    text = text_formats.read_tokens(path, dataclasses.replace(run.reading, boundary=None))
    file = files.find(path)
    if table_rows.is_json(file, ""):
        suite = strict_json.read(file, {"predictions": list[dict[str, str]], "meta": dict})
        formulas = [prediction.get("formula", "") for prediction in suite["predictions"]]
        if suite["meta"].get("metric", "sum") != "sum":
            raise UserError(f"{path} has the metric {suite['meta']['metric']}: write sum.")
    if not formulas:
        raise UserError(
            f"{path} has no predictions: give --prediction FORMULA, such as '(5;%a%) > (5;%b%)'."
        )
    scored = scored_texts.score_text(run, text, file.name, "sentences")
    known, regions = read_regions(scored)
    parts = {}
    for number, formula in enumerate(formulas, 1):
        try:
            parts[f"{number}: {formula}"] = np.broadcast_to(evaluate(formula, regions), len(known))
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{path}: the prediction {formula!r} cannot be read ({error}): compare regions "
                "that all items have, as in (5;%a%) > (5;%b%), and join such claims by & or |."
            ) from error
    predictions = [*parts.values()]
    right, is_known = np.all(predictions, axis=0), np.array([*known.values()])
    parts |= {"all": right, "all, items of known words": right[is_known]}
    accuracies = {name: _accuracy(part) for name, part in parts.items() if len(part)}
    sentences = scored.corpus.sentences
    record = AccuracyPassport(
        kind="suite",
        split=f"suite:{file.name}",
        figures=dataclasses.replace(accuracies["all"], details={"parts": accuracies}),
        tokens=len(right),
        counts="items for which all predictions hold, of surprisals summed over regions",
        data=passport.data_of(path, sentences),
        **passport.sentence_fields(run, sentences),
    )
    lines = [f"{path}: {len(known):,} items, {np.sum(~is_known):,} of them with unknown words"]
    lines += [
        f"  {accuracy.accuracy:.2%} {significance.percent(accuracy.interval)} "
        f"({accuracy.right:,} of {len(parts[name]):,}) {name}"
        for name, accuracy in accuracies.items()
    ]
    rows = [
        Row(item, number, formula, bool(holds[place]), known[item])
        for place, item in enumerate(known)
        for number, (formula, holds) in enumerate(zip(formulas, predictions, strict=True), 1)
    ]
    return Judgement(
        run,
        record,
        "\n".join(lines),
        item_scores.from_answers(right),
        rows=rows,
        columns=Row._fields,
        notes=[*unknown_notes(run, sentences), unknown_share(run, sentences, path)],
        warnings=passport.warnings(record.leak),
    )


def _accuracy(right: np.ndarray) -> Accuracy:
    interval = significance.binomial_interval(right.sum(), len(right))
    return Accuracy(accuracy=float(right.mean()), right=int(right.sum()), interval=interval)


class Suites(Metric):
    """The share of items for which the predictions of a test suite hold."""

    options = (
        Option("--suites FILE ...", "test suites of SyntaxGym, in JSON or a table"),
        Option("--prediction FORMULA ...", "of suites in tables, such as '(5;%%a%%) > (5;%%b%%)'"),
    )

    def judge(self, run, arguments):
        return (judge(run, path, arguments.prediction) for path in arguments.suites)
