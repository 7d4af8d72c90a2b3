"""Texts to be scored, in any format, whatever the run was trained on.

A file is plain text, CoNLL-U, or a table of items; its name or its content decides which. Each
token keeps its position in the given line, in code points, and the words that the model reads for
it: French "du" is "de" "le" for a model of a treebank's syntactic words.
"""

import bisect
import dataclasses
import itertools
import pathlib
import re
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from zoo.errors import UserError, quote
from zoo.sources import conllu, files, moses, table_rows
from zoo.sources.source import Corpus, Source, ranged
from zoo.sources.text import RawText, Text

_TOKEN_LINE = re.compile(r"\d+([-.]\d+)?\t")
# Suffixes of files in CoNLL-U.
_TREEBANKS = (".conllu", ".conll", ".conllup")
_TABLES = (".tsv", ".csv")
# Columns of a table that name an item, and that tell sentences of one item apart.
_ITEMS = ("item", "id", "sentence", "sent_id", "item_number")
_KEYS = (*_ITEMS, "condition", "cond", "condition_name")
# Columns that name a reader, and that number words, or regions of several words; by any capitals.
_READER = re.compile(r"(subj(ect)?|participant|ppt?|worker|reader)([ _.]?(id|number))?", re.I)
_REGION = re.compile(r"region([ _.]?number)?", re.I)
_PLACE = re.compile(rf"{_REGION.pattern}|position|zone|word[ _.]?num(ber)?|ia[ _.]?id", re.I)
_NUMBER = re.compile(r"([0-9]{1,9})(\.0)?")  # pandas writes 1.0 where a value is missing
# Columns of these patterns that are written without capitals.
_NAMES = ("subject", "subj", "participant", "position", "region", "region_number")
_CONTENTS = ("word", "sentence", "critical", "good", "bad")


class Token(NamedTuple):
    """A token of a given text."""

    text: str
    start: int
    end: int
    words: tuple[str, ...]
    extra: tuple[str, ...] = ()
    further_extras: tuple[tuple[str, ...], ...] = ()  # of the same word's rows of further readers


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence of a given text."""

    line: int
    id: str | None
    tokens: list[Token]
    length: int
    extra: tuple[str, ...] = ()
    begins_item: bool = True  # False: the item of the sentence before goes on

    @property
    def words(self) -> list[str]:
        """The words that the model reads."""
        return [word for token in self.tokens for word in token.words]


@dataclasses.dataclass(frozen=True, repr=False)
class TokenizedText:
    """A text whose tokens keep their positions in its lines."""

    name: str
    sentences: list[Sentence]
    columns: tuple[str, ...] = ()  # of each sentence and token
    token_columns: tuple[str, ...] = ()  # of each token alone, after `columns`
    items: bool = False  # whether its sentences have nothing to do with each other
    source: Corpus | None = None
    blank_lines: str = "skipped"

    def __repr__(self):
        return f"TokenizedText({self.name!r}: {len(self.sentences):,} sentences)"

    @property
    def judged(self) -> list[Sentence]:
        """The sentences to score: those with words, or all sentences if blank lines are kept."""
        blank = self.blank_lines == "kept"
        return [sentence for sentence in self.sentences if sentence.tokens or blank]

    @property
    def corpus(self) -> Corpus:
        """The corpus of the sentences to score; raises UserError if it has no words."""
        judged = self.judged
        first = [n for n, sentence in enumerate(judged) if sentence.begins_item or not n]
        items = first if len(first) < len(judged) else None
        words = [sentence.words for sentence in judged]
        return self.source or Corpus(self.name, words, items=items)


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a run reads a token."""

    lower_case: bool = False
    # see `Conllu.fused`; None for a run trained on plain text, which never splits tokens
    fused: str | None = None
    parts: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    vocabulary: Container[str] = ()
    language: str = ""
    boundary: str | None = None

    def words(self, token: str) -> tuple[str, ...]:
        """Returns the words that the model reads for a token of plain text."""
        word = token.lower() if self.lower_case else token
        form = word if word in self.parts or word in self.vocabulary else word.lower()
        return self._join(word, self.parts.get(form, (word,)))

    def treebank_words(self, form: str, parts: Iterable[str]) -> tuple[str, ...]:
        """Returns the words that the model reads for a form of a treebank."""
        form, *parts = (word.lower() if self.lower_case else word for word in (form, *parts))
        return self._join(form, tuple(parts))

    def _join(self, form, parts):
        if parts == (form,) or self.fused not in ("split", "kept"):
            return (form,)
        return parts if self.fused == "split" else (form, *parts)


def read(
    path: str, reading: Reading, column: str = "text", blank_lines: str = "skipped"
) -> TokenizedText:
    """Reads a text to be scored; see `detect_form`."""
    _, content = files.read(files.Part.parse(path).path)
    return from_content(content, path, reading, column, blank_lines)


def detect_form(file: pathlib.Path, head: str, column: str = "text") -> str:
    """Returns the form of a file that begins with `head`: "treebank", "table" or "plain"."""
    suffix = files.kind(file)
    if suffix in _TREEBANKS or _begins_as_conllu(head):
        return "treebank"
    names = known_names(table_rows.header(head), column)
    is_table = suffix in _TABLES or (len(names) > 1 and {"word", "sentence", column} & {*names})
    return "table" if is_table or _conditions(names) else "plain"


def known_names(header: list[str], *additional: str) -> list[str]:
    """Returns the names of columns, known ones without capitals: "Item" is "item"."""
    lower = [name.lower() for name in header]
    standard = {name.lower(): name for name in (*_KEYS, *_NAMES, *_CONTENTS, *additional)}
    names = []
    for name, low in zip(header, lower, strict=True):
        first, mark, end = name.partition("_")
        first = first.lower() if mark and first.lower() in ("sentence", "critical") else first
        names.append(standard.get(low, first + mark + end) if lower.count(low) == 1 else name)
    if "item_number" in names and "word" not in names:  # a test suite of SyntaxGym
        return ["word" if name.lower() == "content" else name for name in names]
    return names


def _conditions(header: list[str]) -> dict[str, str]:
    """Returns {column: condition} of a table that has a column of sentences for each condition."""
    if {"good", "bad"} <= {*header}:
        return {"good": "good", "bad": "bad"}
    columns = [name for name in header if name.startswith("sentence_")]
    return {name: name.removeprefix("sentence_") for name in columns if len(columns) > 1}


def is_treebank(path: str) -> bool:
    """Whether `read` reads the file at a path as CoNLL-U."""
    return is_readable(path) and detect_form(*files.read(files.Part.parse(path).path)) == "treebank"


def from_content(
    content: str, path: str, reading: Reading, column: str = "text", blank_lines: str = "skipped"
) -> TokenizedText:
    """Parses the content of the file at `path`; see `read`."""
    part = files.Part.parse(path)
    text = from_string(content, files.find(part.path), part.path, reading, column)
    text = dataclasses.replace(text, blank_lines=blank_lines)
    if part.range == slice(None):
        return text
    return dataclasses.replace(text, sentences=ranged(part, text.judged))


def from_string(
    content: str, file: pathlib.Path, name: str, reading: Reading, column: str = "text"
) -> TokenizedText:
    """Parses text of any form; messages name `file`, whose suffix may tell the form."""
    form = detect_form(file, content, column)
    if form == "treebank":
        return _from_treebank(content, file, name, reading)
    if form == "table":
        return _from_table(content, file, name, reading, column)
    return from_text(content, name, reading)


def is_readable(path: str) -> bool:
    """Whether `read` can read a file; the source `Text` reads others."""
    file = files.find_or_none(files.Part.parse(path).path)
    if file is None or file.is_dir():
        return False
    return files.kind(file) not in {*table_rows.READERS} - {*_TABLES}


def table(path: str, source: Source, language: str = "") -> Source:
    """Returns a source for a table that `read` cannot read: if the language is not "", a source
    that tokenises by its rules; else `source` itself if it is a `Text`."""
    if language:
        column = source.form.column
        return RawText(path, path, (path,), column, language=language, lines="sentences")
    if isinstance(source, Text):
        return source
    return Text(train=path, validation=path, tests=(path,))


def from_corpus(corpus: Corpus, joint: str = " ", reading: Reading | None = None) -> TokenizedText:
    """Converts a corpus to a text whose tokens are its words with `joint` between them."""
    sentences = []
    for number, words in enumerate(corpus.sentences, 1):
        pairs = [(word, reading.words(word) if reading else (word,)) for word in words]
        sentences.append(_sentence(number, str(number), _place_tokens(pairs, [joint] * len(words))))
    source = None if reading else corpus
    return TokenizedText(corpus.name, sentences, source=source, blank_lines="kept")


def tokenize(line: str, reading: Reading, marks: bool = False) -> list[Token]:
    """Splits a line into tokens, at white space or by the rules of the reading's language; marks of
    the sentence around it are tokens only if asked for."""
    first, last = (0, len(line)) if marks else files.bare_span(line)
    spans = moses.spans(line[first:last], reading.language)
    places = (slice(first + start, first + end) for start, end in spans)
    return [Token(line[at], at.start, at.stop, reading.words(line[at])) for at in places]


def _sentence(line, name, tokens, length=None, extra=()):
    end = tokens[-1].end if tokens else 0
    return Sentence(line, name, tokens, end if length is None else length, extra)


def from_text(text: str, name: str, reading: Reading) -> TokenizedText:
    """Parses plain text, a sentence a line, words between white space."""
    lines = enumerate(files.lines(text), 1)
    sentences = [_sentence(n, None, tokenize(line, reading), len(line)) for n, line in lines]
    return TokenizedText(name, sentences)


def _begins_as_conllu(text):
    for line in text.split("\n", 1000)[:1000]:
        if line.strip() and not line.startswith("#"):
            return bool(_TOKEN_LINE.match(line)) and line.count("\t") == len(conllu.NAMES) - 1
    return False


def _from_treebank(text, path, name, reading):
    """Parses CoNLL-U; a token is a surface form, read as the words that the treebank has for it."""
    sentences = []
    for number, parsed in enumerate(conllu.parse(text.split("\n"), path), 1):
        pairs, spaces = [], []
        surface = conllu.surface(parsed.tokens)
        for token in surface:
            parts = [part["form"] for part in token.get("parts", (token,))]
            pairs.append((token["form"], reading.treebank_words(token["form"], parts)))
            spaces.append("" if conllu.pairs(token["misc"]).get("SpaceAfter") == "No" else " ")
        comments = parsed.comments
        line = comments.get("text") or comments.get("sentence-text") or ""
        tokens = _locate_tokens(line, pairs)
        length = None if tokens is None else len(line)
        tokens = _place_tokens(pairs, spaces) if tokens is None else tokens
        ids = (token["id"] for token in surface)  # 3, or (59, "-", 60) of a fused form
        names = ("".join(map(str, x)) if isinstance(x, tuple) else str(x) for x in ids)
        tokens = [t._replace(extra=(token_id,)) for t, token_id in zip(tokens, names, strict=True)]
        label = comments.get("sent_id") or comments.get("sentid") or str(number)
        sentences.append(_sentence(parsed.line, label, tokens, length))
    return TokenizedText(name, sentences, token_columns=("token",))


def _locate_tokens(line, pairs):
    """Locates the tokens in a line; returns None if the line has other text between them."""
    tokens, end = [], 0
    for form, words in pairs:
        start = line.find(form, end)
        if start < 0 or line[end:start].strip():
            return None
        end = start + len(form)
        tokens.append(Token(form, start, end, words))
    return None if line[end:].strip() else tokens


def _place_tokens(pairs, spaces):
    """Places the tokens one after the other, each followed by its space."""
    tokens, begin = [], 0
    for (form, words), space in zip(pairs, spaces, strict=True):
        tokens.append(Token(form, begin, begin + len(form), words))
        begin += len(form) + len(space)
    return tokens


def _from_table(text, path, name, reading, column):
    """Parses a table that has a word, a sentence, or the sentences of an item in each row."""
    columns, rows = table_rows.rows(text, path, table_rows.delimiter_of(path, text), full=True)
    header = known_names(columns, column)
    cells = ((number, row.values()) for number, row in rows if "".join(row.values()).strip())
    rows = [(number, dict(zip(header, values, strict=True))) for number, values in cells]
    if "word" in header:
        return _from_word_rows(rows, path, name, reading, header)
    for chosen in (column, "sentence", "text"):
        if chosen in header:
            table_text = _from_sentence_rows(rows, path, name, reading, header, chosen)
            return dataclasses.replace(table_text, items=chosen != column)
    conditions = _conditions(header)
    if conditions:
        header, rows = _long(header, rows, conditions)
        table_text = _from_sentence_rows(rows, path, name, reading, header, "sentence")
        return dataclasses.replace(table_text, items=True)
    raise UserError(
        f"{path}, line 1: no column is called 'word', nor 'sentence', nor are there sentence_A and "
        f"sentence_B of two conditions, but {quote(columns)}: rename some, with tabs, commas "
        "or semicolons between all, or call the file .txt if it is plain text."
    )


def _long(header, rows, conditions):
    """Gives each condition of an item a row of its own, with its critical region."""
    regions = {f"critical_{condition}" for condition in conditions.values()} & {*header}
    other_columns = [name for name in header if name not in {*conditions, *regions, "critical"}]
    renamed = {name: f"given_{name}" if name == "condition" else name for name in other_columns}
    label = [] if {"item", "id", "sent_id"} & {*header} else ["item"]
    critical = ["critical"] if regions or "critical" in header else []
    long_rows = []
    for count, (number, row) in enumerate(rows, 1):
        shared = {name_in_long: row[name] for name, name_in_long in renamed.items()}
        shared |= dict.fromkeys(label, str(count))
        for column, condition in conditions.items():
            region = row.get(f"critical_{condition}", row.get("critical", ""))
            condition_cells = {"condition": condition, "critical": region, "sentence": row[column]}
            long_rows.append((number, {**shared, **condition_cells}))
    return [*label, *renamed.values(), "condition", *critical, "sentence"], long_rows


def _from_sentence_rows(rows, path, name, reading, header, column):
    label = next((key for key in ("item", "id", "sent_id") if key in header), None)
    columns = tuple(key for key in header if key not in (column, label))
    sentences = []
    for count, (number, row) in enumerate(rows, 1):
        extra, key = tuple(row[key] for key in columns), row.get(label, str(count))
        # A cell between commas may have several lines, each a sentence, as in training.
        for line in files.lines(row[column]):
            placed = tokenize(line, reading)
            if "critical" in columns and line.strip():
                placed = _join_region(placed, row["critical"], reading, f"{path}, line {number}")
            tokens = [token._replace(extra=extra) for token in placed]
            sentences.append(Sentence(number, key, tokens, len(line), extra))
    return TokenizedText(name, sentences, columns)


def _join_region(tokens, critical, reading, location):
    """Joins the tokens of the critical region of a sentence, if it has one, to one token."""
    region = [token.text for token in tokenize(critical, reading)]
    end = len(region)
    texts = [token.text for token in tokens]
    starts = [at for at in range(len(texts)) if region and texts[at : at + end] == region]
    if len(starts) != bool(region):
        mend = "write a table with a word or region a row"
        raise UserError(
            f"{location}: the critical region {critical!r} is {len(starts)} times in its sentence: "
            f"{mend if starts else f'copy it from there, or {mend}'}."
        )
    for at in starts:
        joined = tokens[at : at + end]
        words = tuple(word for token in joined for word in token.words)
        region_token = Token(critical, joined[0].start, joined[-1].end, words)
        return [*tokens[:at], region_token, *tokens[at + end :]]
    return tokens


def _from_word_rows(rows, path, name, reading, header):
    """Parses a table with a word or region a row, or one for each reader of the word."""
    keys = [key for key in _KEYS if key in header]
    if not {*_ITEMS} & {*keys}:
        raise UserError(
            f"{path}, line 1: a table with a word a row needs a column 'item': name the sentence "
            "of each word there."
        )
    columns = tuple(key for key in header if key not in ("word", keys[0]))
    if any(row["word"] == "NA" for _, row in rows):
        files.warn_once(f"{path}: NA is read as a word: delete its rows where a word is missing")
    readers = [key for key in header if _READER.fullmatch(key)]
    places = _place_columns(rows, header, [*keys, *readers])
    items = _gather_items(rows, path, keys, readers, places)
    varying = {name for item in items.values() for name in columns if len(_values(name, item)) > 1}
    sentences, end_place = [], 0
    for key, item in items.items():
        rows = [group[0] for group in item]
        while len(item) > 1 and _is_mark(_word(item[0])):
            del item[0]
        number = item[0][0][0]
        words = [group[0] for group in item if not _is_mark(_word(group))]
        reason = _describe_mixture([row for _, row in words], places[:1] if readers else places)
        if reason:
            raise UserError(
                f"{path}, line {number}: the rows of {' '.join(key)!r} are not of one sentence "
                f"({reason}): name the column that tells sentences apart 'condition' or "
                "'subject', and sort by it and then by place."
            )
        if places:
            end_place = _check_gaps(rows, path, " ".join(key), places[0], end_place)
        blank = [line for line, row in words if not row["word"].strip()]
        if blank and (len(blank) == len(words) or not places):
            raise UserError(
                f"{path}, line {blank[0]}: the word is empty: give one, or leave the row out; an "
                "item that has words may have empty regions, numbered in a column 'region'."
            )
        for position, part in enumerate(_sentence_parts(item, reading)):
            end = None
            while part and _is_mark(_word(part[-1])):  # as Zoo's own tables
                end = tuple(part.pop()[0][1][name] for name in columns)
            # What differs from row to row elsewhere is not the sentence's, though it has one row.
            row_columns = {*varying, *places} if len(part) == 1 else ()
            values = {name: () if name in row_columns else _values(name, part) for name in columns}
            shared = tuple("".join(cells) if len(cells) == 1 else "" for cells in values.values())
            tokens = []
            for group, token in zip(part, _regions([*map(_word, part)], reading), strict=True):
                first, *further = (tuple(row[name] for name in columns) for _, row in group)
                tokens.append(token._replace(extra=first, further_extras=tuple(further)))
            extra = shared if end is None else end
            sentence = _sentence(part[0][0][0] if part else number, key[0], tokens, extra=extra)
            sentences.append(dataclasses.replace(sentence, begins_item=not position))
    return TokenizedText(name, sentences, columns, items=True)


def _word(group):
    """Returns the word of the rows of its readers."""
    return group[0][1]["word"]


def _place_columns(rows, header, keys):
    """Returns the columns that number words, first the one that tells most rows apart."""
    rows = [row for _, row in rows if not _is_mark(row["word"])]
    names = [name for name in header if _PLACE.fullmatch(name)]
    numbers = [name for name in names if all(_NUMBER.fullmatch(row[name]) for row in rows)]

    def order(name):
        texts = {(row[name], *(row[key] for key in keys)) for row in rows}
        return -len(texts), len({row[name] for row in rows})  # a number of the table's row is last

    return sorted(numbers, key=order)


def _place(row, name):
    return int(row[name].removesuffix(".0"))


def _gather_items(rows, path, keys, readers, places):
    """Returns {values of the keys: words}; a word is a list of (line, row), one of each reader.

    Rows of several readers are sorted by place. Where a place has several rows of one reader, as a
    region of several words may, the first of one reader is the first of another.
    """
    items: dict = {}
    counts: dict = {}
    by_place, place, last = bool(readers and places), 0.0, None
    for number, row in rows:
        key = tuple(row[name] for name in keys)
        reader = (key, *(row[name] for name in readers))
        if reader != last and reader in counts and not by_place:
            raise UserError(
                f"{path}, line {number}: words of {' '.join((*key, *reader[1:]))!r} stand apart "
                f"from those before: sort the rows by {', '.join((*keys, *readers))}, then by "
                "their place in the sentence, or tell two sentences apart in 'condition' or "
                "'subject'."
            )
        last = reader
        if by_place:  # a mark, such as </s>, may lack a number
            is_number = _NUMBER.fullmatch(row[places[0]])
            place = _place(row, places[0]) if is_number else int(place) + 0.5
        count = counts.setdefault(reader, {})
        count[place] = count.get(place, 0) + 1
        item = items.setdefault(key, {})
        group = item.setdefault((place, count[place]), [])
        group.append((number, row))
        if _word(group) != row["word"]:
            name = f"{places[0]} {place}" if by_place else f"word {count[place]}"
            raise UserError(
                f"{path}, line {number}: {row['word']!r} and, on line {group[0][0]}, "
                f"{_word(group)!r} are both {name} of {' '.join(key)!r}: correct one, or name "
                "the column that tells texts apart 'condition', or that numbers words 'position'."
            )
    return {key: [item[place] for place in sorted(item)] for key, item in items.items()}


def _check_gaps(rows, path, item, name, end_place):
    """Returns the last place of an item; raises UserError where its places leave a word out.

    The first place is 0, 1, or the one after the item before.
    """
    last, before = 0, ""
    for number, row in rows:
        # A mark, such as </s>, may lack a number.
        place = _place(row, name) if _NUMBER.fullmatch(row[name]) else last
        if place > last + 1 and (before or place != end_place + 1):
            raise UserError(
                f"{path}, line {number}: the rows of {item!r} leave out {name} {last + 1}, before "
                f"{row['word']!r}{before}: give each word a row, and a region without words an "
                "empty one, or number the words without gaps."
            )
        last, before = place, f" and after {row['word']!r}"
    return last


def _values(name, groups):
    return {row[name] for group in groups for _, row in group}


def _is_mark(word):
    return bool(word.strip()) and not files.bare(word)


def _sentence_parts(item, reading):
    """Divides the rows of an item at the ends of its sentences and at marks."""
    is_mark = [_is_mark(_word(group)) for group in item]
    cells = zip(is_mark, item, strict=True)
    words = ["" if mark else " ".join(_word(group).split()) for mark, group in cells]
    # A mark or an empty region ends with the words before it, and so belongs to their sentence.
    row_ends = [end - 1 for end in itertools.accumulate(len(word) + bool(word) for word in words)]
    line = " ".join(filter(None, words))
    inner: list[int] = []
    if reading.boundary:
        ends = {*moses.sentence_ends(line, reading.language)} & {*row_ends}
        inner = sorted(ends.union(itertools.compress(row_ends, is_mark)))
    numbered = zip(row_ends, item, strict=True)
    for _, part in itertools.groupby(numbered, lambda pair: bisect.bisect_left(inner, pair[0])):
        yield [group for _, group in part]


def _describe_mixture(rows, places):
    """Describes why rows of one item look like several sentences; None if they do not."""
    for name in places:
        stands_still = not _REGION.fullmatch(name)  # a region may have several rows
        for before, place in itertools.pairwise(_place(row, name) for row in rows):
            if place < before + stands_still:
                return f"{name!r} goes from {before} to {place}"
    words = [row["word"] for row in rows]
    counts = (n for n in range(2, len(words) // 2 + 1) if not len(words) % n)
    for count in counts if len({*words}) > 1 else ():
        if words == words[: len(words) // count] * count:
            return f"each word is there {count} times"
    repetitions = [len([*equal_words]) for _, equal_words in itertools.groupby(words)]
    if 1 < len(repetitions) < 2 * sum(count > 1 for count in repetitions):
        is_regular = len({*repetitions}) == 1
        each = f"each word is there {repetitions[0]} times"
        return each if is_regular else "most words are there several times in a row"
    return None


def _regions(regions, reading):
    """Places regions of one or more words with blanks between them, and splits them as a line."""
    spaces = [" " if region else "" for region in regions]
    placed = _place_tokens([(region, ()) for region in regions], spaces)
    words: list[list[str]] = [[] for _ in placed]
    ends = [token.end for token in placed]
    for token in tokenize(" ".join(filter(None, regions)), reading):
        words[bisect.bisect_left(ends, token.end)] += token.words
    return [token._replace(words=tuple(w)) for token, w in zip(placed, words, strict=True)]
