"""N-best lists of recognisers and translators, read list by list.

The first lines decide between three formats; lines of another are refused:

    fields   id ||| words ||| features ||| score       Moses, Joshua; more fields may follow
    json     {"id": ..., "hypotheses": [...]}          a list a line, or a hypothesis a line
    kaldi    utt-1 words                               with separate files of costs

docs/rescoring.md has the mark of each format, and of the texts with a hypothesis or a reference a
line. The lines of a list are consecutive, and lists keep their order. One list is in memory at a
time.
"""

import dataclasses
import itertools
import json
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence

from zoo.base import strict_json
from zoo.errors import UserError, quote, shortened
from zoo.sources import files, foreign_formats

# ---- hypotheses of recognisers and translators, and n-best lists, whatever their file format


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """A hypothesis of an n-best list."""

    line: int
    text: str
    features: dict[str, float]
    # the total score of the first system, larger is better; None if the file has none
    score: float | None = None
    further_fields: tuple[str, ...] = ()
    # the number in a key of Kaldi, 1 for the best; 0 in other formats
    rank: int = 0

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


def bare_words(text: str) -> str:
    """Strips the marks around a hypothesis or reference, and joins its words by single blanks."""
    return " ".join(files.bare(text).split())


# Numbered lines, {name: file of costs}, and (format, lists).
_Lines = Iterator[tuple[int, str]]
_Costs = Mapping[str, str] | None
_Lists = tuple[str, Iterator[NBestList]]

SEPARATOR = "|||"
# Where the phrase before it comes from: |0-1|, or with scores |0-1,wa=0-0 1-1 ,total=-1.5|.
_ALIGNMENT = re.compile(r"(?<!\S)\|[0-9]+-[0-9]+(?:,[^|]*)?\|(?!\S)")
# The three missing factors behind a word that Moses does not know.
_UNKNOWN = re.compile(r"(?<=\S)(?:\|UNK){3}(?!\S)")
# Bars that Moses never writes in words: it writes each as &#124;.
_BARS = re.compile(
    r"(?<!\S)\|[0-9]+\||\|[0-9]+-[0-9]+(?:,[^|]*)?\||(?:\|UNK){3}|" + re.escape(SEPARATOR)
)
# The beginning of an object or a list of JSON, and not of [noise].
_JSON = re.compile(r"""\s*[{\[]\s*(?:["'{\[\]}]|$)""")
# The key of a hypothesis in Kaldi; numbers with zeros before them belong to utterances.
_NUMBERED = re.compile(r"(.+)-([1-9][0-9]*)")
_FORMATS = (
    "write id ||| words ||| features ||| score, an object of JSON, or Kaldi's utterance-1, "
    "utterance-2 ... and words; zoo rescore errors reads texts with a hypothesis a line"
)
# Most lines at the beginning of a file that are blank, or of different Kaldi lists.
_HEAD = 1000


def read_lists(path: str, costs: _Costs = None, sparse: bool = False) -> _Lists:
    """Reads (the format of a file, an iterator of its lists)."""
    return parse_lists(read_lines(path), path, costs, sparse)


def read_lines(path: str) -> _Lines:
    """Reads the numbered lines of a file of lists; raises UserError for a line that is too long."""
    return files.read_lines(path, files.LONGEST_SENTENCE, files.LONGEST_LIST)


def parse_lists(lines: _Lines, path: str, costs: _Costs = None, sparse: bool = False) -> _Lists:
    """Reads lists as `read_lists` does, from numbered lines."""
    form, lines = detect_format(lines)
    if form == "text":
        texts = [text for _, text in itertools.islice(lines, _HEAD)]
        foreign_formats.check(texts, path, _FORMATS)
        text = next(filter(str.strip, texts), "")
        raise UserError(
            f"{path}: lines such as {shortened(text, 80)!r} are not of n-best lists: {_FORMATS}."
        )
    if costs and form != "kaldi":
        raise UserError(
            f"--costs works only with Kaldi lists, and {path} has the format {form}: leave it out."
        )
    return form, _check_lists(_join_entries(_READERS[form](lines, path, costs or {})), path, sparse)


def _join_entries(entries) -> Iterator[NBestList]:
    """Joins consecutive (key, id, hypotheses, reference) with one key to lists."""
    for _, group in itertools.groupby(entries, key=operator.itemgetter(0)):
        parts = [*group]
        references = [reference for *_, reference in parts if reference is not None]
        hypotheses = [hypothesis for _, _, texts, _ in parts for hypothesis in texts]
        hypotheses.sort(key=operator.attrgetter("rank"))
        id, reference = parts[0][1], references[0] if references else None
        yield NBestList(str(id), hypotheses, reference, isinstance(id, int))


def detect_format(lines: _Lines) -> tuple[str, _Lines]:
    """Returns (the format of numbered lines, all lines); lists of no known format are "text"."""
    head: list[tuple[int, str]] = []
    utterances: set[str] = set()
    form = ""
    while not form and len(head) < _HEAD and (line := next(lines, None)):
        head.append(line)
        text = line[1].strip()
        if _JSON.match(text) and not utterances:
            form = "json"
        elif SEPARATOR in text and not utterances:
            form = "fields"
        elif key := _kaldi_key(text):
            form = "kaldi" if key[1] in utterances else ""
            utterances.add(key[1])
        elif text:
            break
    return form or "text", itertools.chain(head, lines)


def _kaldi_key(text):
    # Kaldi has no tab but behind a key; lines of other tools may have two.
    return _NUMBERED.fullmatch("" if text.count("\t") > 1 else "".join(text.split(None, 1)[:1]))


def line(
    name: str | int,
    words: Sequence[str],
    features: Mapping[str, float],
    score: float,
    further_fields: Sequence[str] = (),
) -> str:
    """Formats a hypothesis as a line of the format "fields", without a line break."""
    # Moses writes bars within a word so.
    text = _BARS.sub(lambda match: match[0].replace("|", "&#124;"), " ".join(words))
    values = " ".join(f"{name}= {value:.9g}" for name, value in features.items())
    return f" {SEPARATOR} ".join((str(name), text, values, f"{score:.9g}", *further_fields))


def parse_features(text: str, place: str) -> dict[str, float]:
    """Parses the features of a field: `name= 1 2` (name_1, name_2), `name=1`, or numbers alone, f1,
    f2 ..."""
    features: dict[str, float] = {}
    for group in re.split(r"(?<!\S)(?=\S*=)", text):  # each begins with a name, but the first
        key, equals, end = group.rpartition("=")
        values, wrong = end.split(), ""
        if equals and not key:
            wrong = f"{shortened(group.split()[0], 80)!r} is a value without a name: write one "
            wrong += "before ="
        elif equals and len(values) > 1 and not end[:1].isspace():
            wrong = f"{shortened(values[1], 80)!r} is a value without a name: write name= before it"
        elif equals and not values:
            wrong = f"the feature {shortened(key, 80)!r} has no value: write a number after it"
        if wrong:
            raise UserError(f"{place}: {wrong}.")
        for position, number in enumerate(values, 1):
            name = f"f{position}"
            if equals:
                name = f"{key}_{position}" if len(values) > 1 else key
            title = f"the feature {shortened(name, 80)!r}"
            if name in features:
                raise UserError(f"{place}: {title} comes twice: keep one.")
            features[name] = files.parse_number(number, place, title)
    return features


def without_alignments(text: str, place: str) -> str:
    """Returns the words of a hypothesis of Moses, without alignments between and marks of unknown
    words; raises UserError for other bars like these."""
    words = _UNKNOWN.sub("", _ALIGNMENT.sub(" ", text))
    bars = _BARS.search(words)
    if bars:
        raise UserError(
            f"{place}: {shortened(bars[0], 80)!r} is not as Moses writes it: write |0-1| between "
            "blanks, |UNK|UNK|UNK at the end of a word, and other bars in words as &#124;."
        )
    return " ".join(words.split())


def split_fields(line: str, place: str) -> list[str]:
    """Splits a line of the format "fields"; raises UserError for one without a hypothesis."""
    fields = line.split(SEPARATOR)
    # A line of a source and its translation, as for fast_align, has blanks in its first field.
    if len(fields) < 2 or (len(fields) == 2 and len(fields[0].split()) > 1):
        raise UserError(f"{place}: no hypothesis: write id ||| words ||| features ||| score.")
    return fields


def _read_fields(lines, path, _costs):
    """Yields the entry of each line, for `_join_entries`."""
    for number, text in lines:
        place = f"{path}, line {number}"
        id, words, *fields = split_fields(text, place)
        if not id.strip():
            raise UserError(f"{place}: no id before {SEPARATOR}: write the id of the list there.")
        features = parse_features(fields[0], place) if fields else {}
        score = None
        if len(fields) > 1 and fields[1].strip():
            score = files.parse_number(fields[1].strip(), place, "the score")
        further_fields = tuple(field.strip() for field in fields[2:])
        hypothesis = Hypothesis(
            number, bare_words(without_alignments(words, place)), features, score, further_fields
        )
        yield id.strip(), id.strip(), [hypothesis], None


def _read_kaldi(lines, path, costs):
    """Yields the entry of each line, for `_join_entries`, with the costs of the other files."""
    columns = {name: files.read_lines(file, files.LONGEST_SENTENCE) for name, file in costs.items()}
    last: str | None = None
    keys: set[str] = set()
    for number, line in lines:
        place = f"{path}, line {number}"
        key, *words = line.split() or [""]
        match = _kaldi_key(line.strip())
        if not match or SEPARATOR in words:
            wrong = f"{shortened(key, 80)!r} is not the name of a hypothesis"
            wrong = f"{SEPARATOR} in a Kaldi list" if match else wrong
            raise UserError(
                f"{place}: {wrong}: write utterance-1 and the words, as the lines before."
            )
        if match[1] != last:
            last, keys = match[1], set()
        if key in keys:
            raise UserError(f"{place}: the hypothesis {key!r} comes twice: keep one of the two.")
        keys.add(key)
        features = {}
        for name, file in columns.items():
            cost_number, cost_line = next(file, (number, ""))
            cost_key, *values = cost_line.split() or [""]
            place = f"{costs[name]}, line {cost_number}"
            if cost_key != key or len(values) != 1:
                raise UserError(
                    f"{place}: {shortened(cost_line, 80)!r} where the cost of {key} should be: "
                    "give both files in one order, a line each."
                )
            features[name] = -files.parse_number(values[0], place, f"the cost of {key}")
        # Without a total score, each cost counts once, as where Kaldi's lattices are searched.
        score = math.fsum(features.values()) if features else None
        text = bare_words(" ".join(words))
        hypothesis = Hypothesis(number, text, features, score, rank=int(match[2]))
        yield match[1], match[1], [hypothesis], None
    for name, file in columns.items():
        for cost_number, cost_line in file:
            raise UserError(
                f"{costs[name]}, line {cost_number}: {shortened(cost_line, 80)!r} has no "
                f"hypothesis in {path}: give both files in one order, a line each."
            )


def repetition_error(id: str, path: str, line: int) -> UserError:
    return UserError(
        f"{path}, line {line}: the list {id!r} comes again after another one: put the lines of a "
        "list together."
    )


def _check_lists(lists, path, sparse) -> Iterator[NBestList]:
    """Yields the lists; raises UserError for a repeated id or for different features."""
    ids: set[str] = set()
    names: set[str] | None = None
    scored = False
    for nbest_list in lists:
        first = nbest_list.hypotheses[0]
        if nbest_list.id in ids:
            raise repetition_error(nbest_list.id, path, first.line)
        ids.add(nbest_list.id)
        for position, hypothesis in enumerate(nbest_list.hypotheses, 1):
            if names is None:
                names, scored = {*hypothesis.features}, hypothesis.score is not None
            wrong = ""
            # Kaldi's lattice-to-nbest leaves no gap: with a gap, the numbers are of utterances.
            if hypothesis.rank not in (0, position):
                wrong = f"has the number {hypothesis.rank} where {position} should be: number lists"
                wrong += " from 1 without a gap; zoo rescore errors reads texts with a hypothesis "
                wrong += "a line"
            elif (hypothesis.score is not None) != scored:
                has, status = ("no", "has one") if scored else ("a", "has none")
                wrong = f"has {has} score, and the first of the file {status}: give one to all, or "
                wrong += "to none"
            elif not sparse and hypothesis.features.keys() != names:
                differ = quote(sorted(hypothesis.features.keys() ^ names))
                wrong = f"and the first of the file differ in the features {differ}: give all the "
                wrong += "same, or add --sparse"
            if wrong:
                raise UserError(f"{path}, line {hypothesis.line}: the hypothesis {wrong}.")
        yield nbest_list
    if names is None:
        raise UserError(f"{path} has no lists: give a file with one or more.")


# ---------- N-best lists as lines of JSON, as of ESPnet and NeMo, and in the HyPoradise data
# A line is a list, {"id": ..., "hypotheses": [...], "reference": ...}, or one hypothesis, {"id":
# ..., "text": ..., "score": ..., other numbers are features}. The hypotheses of a list are texts,
# [text, score], or such objects. Lists of numbers beside "hypotheses" are features, too. The id of
# a list without one is its line number.

IDS = ("id", "utt", "utt_id", "name")
LISTS = ("hypotheses", "nbest", "beams", "input", "output")
# "text" is a hypothesis only where no other name is.
TEXTS = ("hyp", "hypothesis", "rec_text", "pred_text", "text")
REFERENCES = ("reference", "ref", "output")
_REMEDY = (
    f"use the names {quote([*TEXTS])} for a text and {quote([*LISTS])} for a list of hypotheses, "
    "and leave out other lists and objects."
)
# Names of ESPnet and NeMo, beside which "text" is the transcript.
_RECOGNISED = {"rec_text", "pred_text", "beams"}
# Names of texts that are neither hypothesis nor transcript, as manifests have them.
_DESCRIPTIONS = {"audio", "audio_filepath", "dataset", "file", "lang", "language", "path"}
_DESCRIPTIONS |= {"source", "source_lang", "speaker", "target_lang", "task", "wav"}


def _read_json(lines, path, _costs):
    """Yields the entry of each object, for `_join_entries`."""
    # {whether it is an object of the file, not of a list: the field of its hypotheses}, as a line
    # without "pred_text" has the transcript in "text".
    fields: dict[bool, str] = {}
    for number, place, value in _read_objects(lines, path):
        if not isinstance(value, dict):
            raise UserError(f'{place}: not an object: write {{"id": ..., "hypotheses": [...]}}.')
        id = next((value[name] for name in IDS if name in value), number)
        if not isinstance(id, str | int) or isinstance(id, bool) or not str(id).strip():
            raise UserError(
                f"{place}: the id is {shortened(json.dumps(id), 80)}: write a string or a whole "
                "number."
            )
        items = _items(value, place, str(id))
        hypotheses = [_hypothesis(item, number, place) for item in items]
        for part in (value, *items):
            field = _field(part)
            first = fields.setdefault(part is value, field)
            if field != first:
                wrong = f"the hypothesis is in {field}, and in {first} before"
                raise UserError(f"{place}: {wrong}: give all hypotheses of a file in one field.")
        references = (text for text in map(_reference, (value, *items)) if text is not None)
        # Two whole lists with one id have different keys: the second is refused.
        key = None if items[0] is value else number
        yield (str(id), key), id, hypotheses, next(map(files.bare, references), None)


def _field(value):
    has_list = any(isinstance(value.get(name), list) for name in LISTS)
    return "a list" if has_list else repr(next(name for name in TEXTS if name in value))


def _reference(value):
    names = (*REFERENCES, "text") if value.keys() & _RECOGNISED else REFERENCES
    return next((value[name] for name in names if isinstance(value.get(name), str)), None)


def _read_objects(lines, path):
    """Yields (number, place, value) for each line of JSON, or for each item of one value."""
    lines = itertools.dropwhile(lambda line: not line[1].strip(), lines)
    number, first = next(lines)
    # A value over several lines is read whole: a list, as in HyPoradise, or ESPnet's data.json.
    if first.lstrip().startswith("[") or not first.rstrip().endswith("}"):
        texts, size = [first], len(first)
        for _, text in lines:
            texts.append(text)
            size += len(text) + 1
            if size > files.LONGEST_LIST:
                raise UserError(
                    f"{path} is one JSON value of more than {files.LONGEST_LIST:,} characters: "
                    "write its items a line each, as jq -c '.[]' does for a list."
                )
        values = _parse_json("\n".join(texts), f"{path}, line {number}")
        utterances = values.get("utts") if isinstance(values, dict) else None
        if isinstance(utterances, dict):
            values = [
                {"id": id} | entry if isinstance(entry, dict) else entry
                for id, entry in utterances.items()
            ]
        elif isinstance(values, dict):
            values = [values]
        yield from ((n, f"{path}, item {n}", value) for n, value in enumerate(values, 1))
        return
    for at, text in itertools.chain([(number, first)], lines):
        if text.strip():
            place = f"{path}, line {at}"
            yield at, place, _parse_json(text, place)


def _parse_json(text, place):
    try:
        return strict_json.loads(text, finite=False)  # `files.parse_number` names infinite numbers
    except ValueError as error:
        raise UserError(
            f"{place}: not JSON by itself ({error}): correct it, or write each object on one "
            "line, as jq -c . does."
        ) from error


def _items(value, place, id):
    """Returns the hypotheses in an object's list as objects; without a list, the object itself."""
    lists = {name: items for name, items in value.items() if isinstance(items, list)}
    for name in LISTS:
        # "output" may be the reference.
        if name in value.keys() - lists and (name != "output" or not isinstance(value[name], str)):
            content = shortened(json.dumps(value[name]), 80)
            raise UserError(f"{place}: {name!r} is {content}: write a list of hypotheses.")
    names = [name for name in LISTS if name in lists]
    if len(names) > 1:
        raise UserError(f"{place}: both {quote(names)} may be the hypotheses: leave one out.")
    if not names:
        return [value]
    items = lists.pop(names[0])
    if not items:
        raise UserError(f"{place}: the list {id!r} has no hypotheses: leave it out.")
    uneven = [name for name, column in lists.items() if len(column) != len(items)]
    if uneven:
        raise UserError(f"{place}: {quote(uneven)} must have {len(items)} values, as {names[0]!r}.")
    objects = []
    for index, item in enumerate(items):
        match item:
            case str():
                item = {"text": item}
            case [str() as text, score]:
                item = {"text": text, "score": score}
        if not isinstance(item, dict):
            raise UserError(
                f"{place}: item {index + 1} must be a text, [text, score] or an object."
            )
        objects.append({**item, **{name: column[index] for name, column in lists.items()}})
    return objects


def _hypothesis(value, number, place):
    """Makes a hypothesis of an object of JSON; raises UserError where its text is not certain."""
    names = [name for name in TEXTS if name in value]
    if not names:
        raise UserError(f"{place}: a hypothesis has no text, only {quote([*value])}: {_REMEDY}")
    if len(names) > 1 and names[1] != "text":
        raise UserError(f"{place}: a hypothesis has the texts {quote(names)}: keep one.")
    if not isinstance(value[names[0]], str):
        content = shortened(json.dumps(value[names[0]]), 80)
        raise UserError(f"{place}: {names[0]!r} is {content}: write the hypothesis as a string.")
    for name, item in value.items():
        # Beside a hypothesis of an unknown name, "text" is the transcript.
        if names == ["text"] and _may_be_words(name, item):
            raise UserError(
                f"{place}: 'text' or {shortened(name, 80)!r} may be the hypothesis: name it "
                f"{quote([*TEXTS[:-1]])}, or leave out {shortened(name, 80)!r}."
            )
        # Hypotheses or features may be within it.
        if isinstance(item, dict | list) and not all(map(strict_json.is_number, item)):
            raise UserError(f"{place}: {shortened(name, 80)!r} is not known: {_REMEDY}")
    text = value[names[0]]
    if names[0] == "rec_text":  # of ESPnet, perhaps in pieces of SentencePiece
        text = text.removesuffix("<eos>").replace("▁", " ")
    score = value.get("score")
    return Hypothesis(
        number,
        bare_words(text),
        {
            name: files.parse_number(item, place, f"the feature {name!r}")
            for name, item in value.items()
            if name != "score" and name not in IDS and strict_json.is_number(item)
        },
        None if score is None else files.parse_number(score, place, "the score"),
    )


def _may_be_words(name, item):
    # A single word of ASCII is an id, a path or a code; "output" is of a recogniser, too.
    if name in ("text", "reference", "ref", *IDS, *_DESCRIPTIONS) or not isinstance(item, str):
        return False
    return len(item.split()) > 1 or not item.isascii()


# {format: its reader of (lines, path, files of costs)}
_READERS = {"fields": _read_fields, "json": _read_json, "kaldi": _read_kaldi}
