"""N-best lists of recognisers and translators, read list by list.

The first line that is not blank decides between three formats; lines of another are refused:

    fields   id ||| words ||| features ||| score       Moses, Joshua; more fields may follow
    json     {"id": ..., "hypotheses": [...]}          a list a line, or a hypothesis a line
    kaldi    utt-1 words                               with separate files of costs

The lines of a list are consecutive, and lists keep their order. One list is in memory at a time.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from zoo.errors import UserError, named, shortened
from zoo.sources import files, nbest_json, streams
from zoo.sources.hypotheses import Hypothesis, NBestList, number_of

SEPARATOR = "|||"
_NUMBERED = re.compile(r"(.+)-([0-9]+)")
# Most blank lines at the beginning of a file.
_BLANK = 1000


def read_lists(
    path: str,
    costs: Mapping[str, str] | None = None,
    sparse: bool = False,
) -> tuple[str, Iterator[NBestList]]:
    """Reads (the format of a file, an iterator of its lists)."""
    return lists_of(lines_of(path), path, costs, sparse)


def lines_of(path: str) -> Iterator[tuple[int, str]]:
    """Reads the numbered lines of a file of lists; raises UserError for a line that is too long."""
    return streams.read_lines(path, files.LONGEST_SENTENCE, files.LONGEST_LIST)


def lists_of(
    lines: Iterator[tuple[int, str]],
    path: str,
    costs: Mapping[str, str] | None = None,
    sparse: bool = False,
) -> tuple[str, Iterator[NBestList]]:
    """Reads lists as `read_lists` does, from numbered lines."""
    form, lines = form_of(lines)
    if costs and form != "kaldi":
        raise UserError(
            f"--costs works only with Kaldi lists, and {path} has the format {form}: leave it out."
        )
    if form == "json":
        lists = nbest_json.read(lines, path)
    elif form == "kaldi":
        lists = _grouped(_of_kaldi(lines, path, costs or {}))
    else:
        lists = _grouped(_of_fields(lines, path))
    return form, _checked(lists, path, sparse)


def form_of(lines: Iterator[tuple[int, str]]) -> tuple[str, Iterator[tuple[int, str]]]:
    """Returns (the format of numbered lines, all lines), by the first line that is not blank.

    The format is "fields" if it is neither "json" nor "kaldi". The readers refuse lines of another
    format.
    """
    seen: list[tuple[int, str]] = []
    for line in itertools.islice(lines, _BLANK):
        seen.append(line)
        if line[1].strip():
            break
    text = seen[-1][1]
    form = "fields"
    if text.lstrip()[:1] in ("{", "["):
        form = "json"
    elif SEPARATOR not in text and _NUMBERED.fullmatch((text.split() or [""])[0]):
        form = "kaldi"
    return form, itertools.chain(seen, lines)


def fields(line: str) -> list[str]:
    """Splits a line of the format "fields"; the blanks around the fields are kept."""
    return line.split(SEPARATOR)


def line(
    name: str | int,
    words: Sequence[str],
    features: Mapping[str, float],
    score: float,
    rest: Sequence[str] = (),
) -> str:
    """Formats a hypothesis as a line of the format "fields", without a line break.

    A separator within a word is written as "&#124;" three times, as in Moses.
    """
    text = " ".join(words).replace(SEPARATOR, "&#124;" * 3)
    values = " ".join(f"{name}= {value:.9g}" for name, value in features.items())
    return f" {SEPARATOR} ".join((str(name), text, values, f"{score:.9g}", *rest))


def features_of(text: str, where: str) -> dict[str, float]:
    """Parses the features of a field: `name= 1 2`, `name=1`, or numbers alone.

    Numbers alone are named f1, f2 ...; several numbers after a name are name_1, name_2 ...
    """
    # The name is None for numbers before any name, and "" for misplaced numbers after name=value.
    groups: list[tuple[str | None, list[str]]] = [(None, [])]
    for token in text.split():
        name, equals, value = token.rpartition("=")
        if not equals:
            groups[-1][1].append(token)
        elif not name:
            raise UserError(
                f"{where}: {shortened(token, 80)!r} is a value without a name: write one before =."
            )
        elif value:
            groups += [(name, [value]), ("", [])]
        else:
            groups.append((name, []))
    features: dict[str, float] = {}
    for key, values in groups:
        if key == "" and values:
            raise UserError(
                f"{where}: {shortened(values[0], 80)!r} is a value without a name: write name= "
                "before it."
            )
        if key and not values:
            raise UserError(
                f"{where}: the feature {shortened(key, 80)!r} has no value: write a number "
                "after it."
            )
        for position, number in enumerate(values, 1):
            full = f"f{position}" if key is None else key
            full = f"{key}_{position}" if key and len(values) > 1 else full
            if full in features:
                raise UserError(
                    f"{where}: the feature {shortened(full, 80)!r} comes twice: keep one."
                )
            features[full] = number_of(number, where, f"the feature {shortened(full, 80)!r}")
    return features


def _of_fields(lines, path):
    """Yields (id, hypothesis) for each line."""
    for number, text in lines:
        where = f"{path}, line {number}"
        parts = fields(text)
        if len(parts) < 2:
            raise UserError(f"{where}: no hypothesis: write id ||| words ||| features ||| score.")
        id, words, *others = parts
        if not id.strip():
            raise UserError(f"{where}: no id before {SEPARATOR}: write the id of the list there.")
        features = features_of(others[0], where) if others else {}
        score = None
        if len(others) > 1 and others[1].strip():
            score = number_of(others[1].strip(), where, "the score")
        rest = tuple(field.strip() for field in others[2:])
        yield id.strip(), Hypothesis(number, " ".join(words.split()), features, score, rest)


def _of_kaldi(lines, path, costs):
    """Yields (utterance, hypothesis) for each line, with the costs of the other files."""
    others = {
        name: streams.read_lines(file, files.LONGEST_SENTENCE) for name, file in costs.items()
    }
    last: str | None = None
    keys: set[str] = set()
    for number, line in lines:
        where = f"{path}, line {number}"
        key, *words = line.split() or [""]
        match = _NUMBERED.fullmatch(key)
        if not match:
            raise UserError(
                f"{where}: {shortened(key, 80)!r} is not the name of a hypothesis: write "
                "utterance-1 and the words, as the lines before."
            )
        if SEPARATOR in words:
            raise UserError(
                f"{where}: {SEPARATOR} in a Kaldi list: write utterance-1 and the words, as "
                "the lines before."
            )
        if match[1] != last:
            last, keys = match[1], set()
        if key in keys:
            raise UserError(f"{where}: the hypothesis {key!r} comes twice: keep one of the two.")
        keys.add(key)
        features = {}
        for name, file in others.items():
            at, cost_line = next(file, (number, ""))
            there, *values = cost_line.split() or [""]
            if there != key or len(values) != 1:
                raise UserError(
                    f"{costs[name]}, line {at}: {shortened(cost_line, 80)!r} where the cost of "
                    f"{key} should be: give both files in one order, a line each."
                )
            where_cost = f"{costs[name]}, line {at}"
            features[name] = -number_of(values[0], where_cost, f"the cost of {key}")
        yield match[1], Hypothesis(number, " ".join(words), features)
    for name, file in others.items():
        for at, cost_line in file:
            raise UserError(
                f"{costs[name]}, line {at}: {shortened(cost_line, 80)!r} has no hypothesis in "
                f"{path}: give both files in one order, a line each."
            )


def _grouped(hypotheses) -> Iterator[NBestList]:
    """Groups consecutive hypotheses with the same id into lists."""
    for id, group in itertools.groupby(hypotheses, key=lambda pair: pair[0]):
        yield NBestList(id, [hypothesis for _, hypothesis in group])


def comes_again(id: str, path: str, line: int) -> UserError:
    """Returns the error of a list that continues after another one."""
    return UserError(
        f"{path}, line {line}: the list {id!r} comes again after another one: put the lines of a "
        "list together."
    )


def _checked(lists, path, sparse) -> Iterator[NBestList]:
    """Yields the lists; raises UserError for a repeated id or for different features."""
    seen: set[str] = set()
    names: list[str] | None = None
    scored = False
    for nbest_list in lists:
        first = nbest_list.hypotheses[0]
        if nbest_list.id in seen:
            raise comes_again(nbest_list.id, path, first.line)
        seen.add(nbest_list.id)
        for hypothesis in nbest_list.hypotheses:
            where = f"{path}, line {hypothesis.line}"
            if names is None:
                names, scored = [*hypothesis.features], hypothesis.score is not None
            if (hypothesis.score is not None) != scored:
                has, others = ("no", "has one") if scored else ("a", "has none")
                raise UserError(
                    f"{where}: the hypothesis has {has} score, and the first of the file {others}: "
                    "give one to all, or to none."
                )
            if not sparse and hypothesis.features.keys() != {*names}:
                differ = sorted(hypothesis.features.keys() ^ {*names})
                raise UserError(
                    f"{where}: the hypothesis and the first of the file differ in the features "
                    f"{named(differ)}: give all the same, or add --sparse."
                )
        yield nbest_list
    if names is None:
        raise UserError(f"{path} has no lists: give a file with one or more.")
