"""N-best lists of recognisers and translators, read list by list.

The first line that is not blank decides between three formats; lines of another are refused:

    fields   id ||| words ||| features ||| score       Moses, Joshua; more fields may follow
    json     {"id": ..., "hypotheses": [...]}          a list a line, or a hypothesis a line
    kaldi    utt-1 words                               with separate files of costs

The lines of a list are consecutive, and lists keep their order. One list is in memory at a time.
"""

import dataclasses
import itertools
import json
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence

from zoo import strict_json
from zoo.errors import UserError, named, shortened
from zoo.sources import files

# ---- hypotheses of recognisers and translators, and n-best lists, whatever their file format

_ASCII = re.compile(r"[0-9eE.+-]+")


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """A hypothesis of an n-best list."""

    line: int
    text: str
    features: dict[str, float]
    # the total score of the first system, larger is better; None if the file has none
    score: float | None = None
    rest: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        return self.text.split()


@dataclasses.dataclass(frozen=True)
class NBestList:
    """The hypotheses of one sentence."""

    id: str
    hypotheses: list[Hypothesis]
    # the reference transcript or translation; None if the file has none
    reference: str | None = None
    # whether the file has the id as a number of JSON
    numbered: bool = False


def number_of(text: object, where: str, what: str) -> float:
    """Parses a finite number; otherwise raises UserError naming `where` and `what`."""
    try:
        value = float(text) if isinstance(text, str | int | float) else math.nan
        # Refuse Python's own 1_000, and digits of other scripts.
        if isinstance(text, bool) or (isinstance(text, str) and not _ASCII.fullmatch(text)):
            value = math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{where}: {what} is {shortened(str(text), 80)!r}: give a finite number.")
    return value


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
    return files.read_lines(path, files.LONGEST_SENTENCE, files.LONGEST_LIST)


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
    return form, _checked(_joined(_READERS[form](lines, path, costs or {})), path, sparse)


def _joined(entries) -> Iterator[NBestList]:
    """Joins consecutive (key, id, hypotheses, reference) with one key to lists."""
    for _, group in itertools.groupby(entries, key=operator.itemgetter(0)):
        parts = [*group]
        references = [reference for *_, reference in parts if reference is not None]
        hypotheses = [hypothesis for _, _, some, _ in parts for hypothesis in some]
        id, reference = parts[0][1], references[0] if references else None
        yield NBestList(str(id), hypotheses, reference, isinstance(id, int))


def form_of(lines: Iterator[tuple[int, str]]) -> tuple[str, Iterator[tuple[int, str]]]:
    """Returns (the format of numbered lines, all lines), by the first that is not blank."""
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


def line(
    name: str | int,
    words: Sequence[str],
    features: Mapping[str, float],
    score: float,
    rest: Sequence[str] = (),
) -> str:
    """Formats a hypothesis as a line of the format "fields", without a line break."""
    # Moses writes a separator within a word so.
    text = " ".join(words).replace(SEPARATOR, "&#124;" * 3)
    values = " ".join(f"{name}= {value:.9g}" for name, value in features.items())
    return f" {SEPARATOR} ".join((str(name), text, values, f"{score:.9g}", *rest))


def features_of(text: str, where: str) -> dict[str, float]:
    """Parses the features of a field: `name= 1 2` (name_1, name_2), `name=1`, or numbers alone, f1,
    f2 ..."""
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
            what = f"the feature {shortened(full, 80)!r}"
            if full in features:
                raise UserError(f"{where}: {what} comes twice: keep one.")
            features[full] = number_of(number, where, what)
    return features


def _of_fields(lines, path, _costs):
    """Yields the entry of each line, for `_joined`."""
    for number, text in lines:
        where = f"{path}, line {number}"
        parts = text.split(SEPARATOR)
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
        hypothesis = Hypothesis(number, " ".join(words.split()), features, score, rest)
        yield id.strip(), id.strip(), [hypothesis], None


def _of_kaldi(lines, path, costs):
    """Yields the entry of each line, for `_joined`, with the costs of the other files."""
    others = {name: files.read_lines(file, files.LONGEST_SENTENCE) for name, file in costs.items()}
    last: str | None = None
    keys: set[str] = set()
    for number, line in lines:
        where = f"{path}, line {number}"
        key, *words = line.split() or [""]
        match = _NUMBERED.fullmatch(key)
        if not match or SEPARATOR in words:
            wrong = f"{shortened(key, 80)!r} is not the name of a hypothesis"
            wrong = f"{SEPARATOR} in a Kaldi list" if match else wrong
            raise UserError(
                f"{where}: {wrong}: write utterance-1 and the words, as the lines before."
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
            where = f"{costs[name]}, line {at}"
            if there != key or len(values) != 1:
                raise UserError(
                    f"{where}: {shortened(cost_line, 80)!r} where the cost of {key} should be: "
                    "give both files in one order, a line each."
                )
            features[name] = -number_of(values[0], where, f"the cost of {key}")
        # Without a total score, each cost counts once, as where Kaldi's lattices are searched.
        score = math.fsum(features.values()) if features else None
        yield match[1], match[1], [Hypothesis(number, " ".join(words), features, score)], None
    for name, file in others.items():
        for at, cost_line in file:
            raise UserError(
                f"{costs[name]}, line {at}: {shortened(cost_line, 80)!r} has no hypothesis in "
                f"{path}: give both files in one order, a line each."
            )


def comes_again(id: str, path: str, line: int) -> UserError:
    return UserError(
        f"{path}, line {line}: the list {id!r} comes again after another one: put the lines of a "
        "list together."
    )


def _checked(lists, path, sparse) -> Iterator[NBestList]:
    """Yields the lists; raises UserError for a repeated id or for different features."""
    seen: set[str] = set()
    names: set[str] | None = None
    scored = False
    for nbest_list in lists:
        first = nbest_list.hypotheses[0]
        if nbest_list.id in seen:
            raise comes_again(nbest_list.id, path, first.line)
        seen.add(nbest_list.id)
        for hypothesis in nbest_list.hypotheses:
            if names is None:
                names, scored = {*hypothesis.features}, hypothesis.score is not None
            wrong = ""
            if (hypothesis.score is not None) != scored:
                has, others = ("no", "has one") if scored else ("a", "has none")
                wrong = f"has {has} score, and the first of the file {others}: give one to all, or "
                wrong += "to none"
            elif not sparse and hypothesis.features.keys() != names:
                differ = named(sorted(hypothesis.features.keys() ^ names))
                wrong = f"and the first of the file differ in the features {differ}: give all the "
                wrong += "same, or add --sparse"
            if wrong:
                raise UserError(f"{path}, line {hypothesis.line}: the hypothesis {wrong}.")
        yield nbest_list
    if names is None:
        raise UserError(f"{path} has no lists: give a file with one or more.")


# ---------- N-best lists as lines of JSON, as written by ESPnet and in the HyPoradise data
# A line is a list, {"id": ..., "hypotheses": [...], "reference": ...}, or one hypothesis, {"id":
# ..., "text": ..., "score": ..., other numbers are features}. The hypotheses of a list are texts or
# such objects. Lists of numbers of the same length as "hypotheses" are features, too. The id of a
# list without one is its line number.

IDS = ("id", "utt", "utt_id", "name")
LISTS = ("hypotheses", "nbest", "input", "output")
TEXTS = ("text", "hyp", "hypothesis", "rec_text")
REFERENCES = ("reference", "ref", "output")


def _of_json(lines, path, _costs):
    """Yields the entry of each object, for `_joined`."""
    for number, where, value in _objects(lines, path):
        if not isinstance(value, dict):
            raise UserError(f'{where}: not an object: write {{"id": ..., "hypotheses": [...]}}.')
        id = next((value[name] for name in IDS if name in value), number)
        if not isinstance(id, str | int) or isinstance(id, bool) or not str(id).strip():
            raise UserError(
                f"{where}: the id is {shortened(json.dumps(id), 80)}: write a string or a whole "
                "number."
            )
        given = (value[name] for name in REFERENCES if isinstance(value.get(name), str))
        key = next((name for name in LISTS if isinstance(value.get(name), list)), None)
        hypotheses = _hypotheses(value, key, number, where, str(id))
        # Two whole lists with one id have different keys: the second is refused.
        yield (str(id), None if key is None else number), id, hypotheses, next(given, None)


def _objects(lines, path):
    """Yields (number, place, value) for each line of JSON, or for each item of one list."""
    # One list, as in HyPoradise, is read whole.
    lines = itertools.dropwhile(lambda line: not line[1].strip(), lines)
    number, first = next(lines)
    if first.lstrip().startswith("["):
        texts, size = [first], len(first)
        for _, text in lines:
            texts.append(text)
            size += len(text) + 1
            if size > files.LONGEST_LIST:
                raise UserError(
                    f"{path} is one JSON list of more than {files.LONGEST_LIST:,} characters: "
                    "write its items a line each, as jq -c '.[]' does."
                )
        whole = _parsed("\n".join(texts), f"{path}, line {number}")
        yield from ((n, f"{path}, item {n}", value) for n, value in enumerate(whole, 1))
        return
    for at, text in itertools.chain([(number, first)], lines):
        if text.strip():
            where = f"{path}, line {at}"
            yield at, where, _parsed(text, where)


def _parsed(text, where):
    try:
        return strict_json.loads(text, finite=False)  # `number_of` names infinite numbers
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error}): correct it.") from error


def _hypotheses(value, key, number, where, id):
    """Returns the hypotheses of an object: those of its list, or the object itself."""
    if key is None:
        return [_hypothesis(value, number, where)]
    items = value[key]
    if not items:
        raise UserError(f"{where}: the list {id!r} has no hypotheses: leave it out.")
    columns = {
        name: column
        for name, column in value.items()
        if name != key and isinstance(column, list) and len(column) == len(items)
    }
    hypotheses = []
    for position, item in enumerate(items):
        own = {"text": item} if isinstance(item, str) else item
        if not isinstance(own, dict):
            raise UserError(
                f"{where}: hypothesis {position + 1} is neither text nor an object: write "
                "one of the two."
            )
        own = {**own, **{name: column[position] for name, column in columns.items()}}
        hypotheses.append(_hypothesis(own, number, where))
    return hypotheses


def _hypothesis(value, number, where):
    text = next((value[name] for name in TEXTS if isinstance(value.get(name), str)), None)
    if text is None:
        raise UserError(f'{where}: a hypothesis has no text: write {{"text": "..."}}.')
    score = value.get("score")
    return Hypothesis(
        number,
        " ".join(text.split()),
        {
            name: number_of(item, where, f"the feature {name!r}")
            for name, item in value.items()
            if name != "score" and name not in IDS and not isinstance(item, bool)
            if isinstance(item, int | float)
        },
        None if score is None else number_of(score, where, "the score"),
    )


# {format: its reader of (lines, path, files of costs)}
_READERS = {"fields": _of_fields, "json": _of_json, "kaldi": _of_kaldi}


# -------------------- references of n-best lists: the spoken words, or a human translation

# The share of sentences that may begin by chance with a number that is the id of a list.
_BY_CHANCE = 0.1
# Up to this many lines may begin with different numbers without being numbered.
_FEW = 2
# Among so many lines of a text, two begin with the same word, or one begins with a word that is
# found further on in a line: true of 40,000 windows drawn from ten corpora of four languages.
_MANY = 30
# The first word of a line and the last one, where they may be ids: 1000, utt-7, anna_x, (anna).
_FIRST = re.compile(r"\s*((?=\S*(?:[\d_]|[A-Za-z][-.:/@][A-Za-z]))\S+|\(\S+\)|\[\S+\]|<\S+>)(?!\S)")
_LAST = re.compile(r".*?(\([^\s()]+\))\s*")


def read_best(path: str) -> dict[str, str]:
    """Reads the first hypothesis of each list, or lines of an id and words, as {id: words}."""
    lines = filter(lambda line: line[1].strip(), lines_of(path))
    if (first := next(lines, None)) is None:
        raise UserError(f"{path} has no hypotheses: give lists, or lines of an id and words.")
    form, rest = form_of(itertools.chain([first], lines))
    if form == "json" or SEPARATOR in first[1]:
        return {one.id: one.hypotheses[0].text for one in lists_of(rest, path, sparse=True)[1]}
    best: dict[str, str] = {}
    for number, text in rest:
        id, *words = text.split("\t", 1) if "\t" in text else text.split(None, 1)
        if id.strip() in best:
            raise UserError(
                f"{path}, line {number}: the id {id.strip()!r} comes twice: keep one line of it."
            )
        best[id.strip()] = " ".join("".join(words).split())
    return best


def read_references(path: str, ids: Sequence[str]) -> dict[str, str]:
    """Reads the references of n-best lists as {id: words}."""
    # docs/rescoring.md tells when lines have ids. `_check_plain` refuses ambiguous files.
    lines = list(files.read_lines(path, files.LONGEST_SENTENCE))
    numbers = all(id.isascii() and id.isdigit() for id in ids)
    # The lists' spelling of each number, such as 007: zeros before it may differ.
    written = {_number(id): id for id in ids} if numbers else {id: id for id in ids}
    pairs = [_keyed(text, written, numbers) for _, text in lines]
    found = {id for id, _ in pairs if id is not None}
    tabs = [number for number, text in lines if "\t" in text]
    known = [number for (number, _), (id, _) in zip(lines, pairs, strict=True) if id is not None]
    plain = numbers and not tabs and len(known) < len(lines) and 2 * len(found) <= len(lines)
    if numbers and tabs and not found:
        raise UserError(
            f"{path}, line {tabs[0]}: the line has a tab, but no line begins with the id of a "
            f"list, such as {shortened(ids[0], 80)!r}: write an id, a tab and the words on each "
            "line, or lines without tabs."
        )
    if plain:
        _check_plain(lines, known, path)
        pairs = [(written.get(str(n)), text) for n, (_, text) in enumerate(lines)]
    references: dict[str, str] = {}
    for (number, text), (id, words) in zip(lines, pairs, strict=True):
        wrong = ""
        if SEPARATOR in text:
            wrong = f"{SEPARATOR} as in an n-best list: give a file of references"
        elif id is None and plain:
            wrong = f"this reference is for the list {number - 1}, which does not exist: give "
            wrong += "lists and references of the same sentences"
        elif id is None:
            wrong = f"{shortened(text, 80)!r} does not begin with the id of a list, such as "
            wrong += f"{shortened(ids[0], 80)!r}: write an id, a tab and the words on each line, "
            wrong += "and references of these lists alone"
        elif id in references:
            wrong = f"the id {id!r} comes twice: keep one of its references"
        if wrong:
            raise UserError(f"{path}, line {number}: {wrong}.")
        references[id or ""] = " ".join(words.split())
    missing = [id for id in ids if id not in references]
    if missing:
        raise UserError(
            f"{path} has no reference for {len(missing):,} of {len(ids):,} lists, "
            f"{named(missing)}: give lists and references of the same sentences."
        )
    return {id: references[id] for id in ids}


def _check_plain(lines, known, path):
    """Raises UserError if lines taken as words alone may begin or end with ids."""
    if len(known) > _BY_CHANCE * len(lines):
        raise UserError(
            f"{path}, line {known[0]}: {len(known):,} of {len(lines):,} lines begin with the id of "
            "a list, which may be a word: write an id, a tab and the words on each line."
        )
    filled = [(number, text) for number, text in lines if text.strip()]
    for pattern, where in ((_FIRST, "begin"), (_LAST, "end")):
        matches = [pattern.match(text) for _, text in filled]
        ids = dict.fromkeys(match[1] for match in matches if match)
        if where == "begin" and _are_names([text.split() for _, text in filled]):
            ids = dict.fromkeys(text.split()[0] for _, text in filled)
        if len(ids) == len(filled) > _FEW:
            raise UserError(
                f"{path}, line {filled[0][0]}: all lines {where} with possible ids, such as "
                f"{shortened(next(iter(ids)), 80)!r}, but not all begin with ids of the lists: "
                "write the id of its list, a tab and the words on each line."
            )


def _are_names(sentences):
    """Whether each of many lines begins with another ASCII word, which no line has further on."""
    first = {words[0] for words in sentences}
    later = {word.lower() for words in sentences for word in words[1:]}
    alone = sum(len(words) == 1 for words in sentences)
    return (
        len(first) == len(sentences) >= _MANY
        and all(word.isascii() and word.lower() not in later for word in first)
        and alone <= _BY_CHANCE * len(sentences)
    )


def _number(text):
    return text.lstrip("0") or text[:1]


def _keyed(text, written, numbers):
    """Splits a line into (id, words); returns (None, "") for a line without an id."""
    first, *rest = text.split(None, 1) or [""]
    before, _, behind = text.partition("\t")
    # An id may have blanks in it where a tab, or the line, ends it.
    for key, words in ((before.strip(), behind), (first, "".join(rest))):
        id = written.get(_number(key) if numbers else key)
        if id is not None:
            return id, words
    return None, ""
