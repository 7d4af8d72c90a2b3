"""Tables of items: a row a sentence, a word, an item of several conditions, or a minimal pair.

docs/scoring.md describes the tables, docs/data.md the marks by which each is known.
"""

import bisect
import itertools
import json
import pathlib
import re
from collections.abc import Iterator

from zoo.errors import UserError, quote
from zoo.sources import files, moses, table_rows
from zoo.sources.tokens import Reading, Sentence, Token, TokenizedText, place_tokens

# Columns of a table that name an item, and that tell sentences of one item apart.
_ITEMS = ("item", "id", "sentence", "sent_id", "item_number")
CONDITIONS = ("condition", "cond", "condition_name")
REGIONS = ("region", "region_number")
_KEYS = (*_ITEMS, *CONDITIONS)
# Columns that name a reader, and that number words, or regions of several words; by any capitals.
_READER = re.compile(r"(subj(ect)?|participant|ppt?|worker|reader)([ _.]?(id|number))?", re.I)
_REGION = re.compile(r"region([ _.]?number)?", re.I)
_PLACE = re.compile(rf"{_REGION.pattern}|position|zone|word[ _.]?num(ber)?|ia[ _.]?id", re.I)
_NUMBER = re.compile(r"([0-9]{1,9})(\.0)?")  # pandas writes 1.0 where a value is missing
# Columns of these patterns that are written without capitals.
_NAMES = ("subject", "subj", "participant", "position", *REGIONS)
_CONTENTS = ("word", "sentence", "critical", "good", "bad")
# Fields of BLiMP's minimal pairs, and the names of the good and the bad sentence of a pair.
GROUPS = ("field", "UID")
SIDES = (("sentence_good", "sentence_bad"), ("good", "bad"))
_LABELS = ("True", "False")

# Columns of a test suite of SyntaxGym beside its "content", which is read as "word".
_SUITE = ("item_number", "condition_name", "region_number")

# (number of a line, {column: cell})
Row = tuple[int, dict[str, str]]


def is_table(file: pathlib.Path, head: str, column: str) -> bool:
    """Whether a file that begins with `head` is a table, by its suffix or by its columns."""
    if files.kind(file) in (".tsv", ".csv") or table_rows.is_json(file, head):
        return True
    header = known_names(table_rows.header(head, file), column)
    names = {"word", "sentence", column} & {*header}
    return (len(header) > 1 and bool(names)) or bool(_conditions(header))


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


def _read_rows(text, file, *names) -> tuple[list[str], list[Row]]:
    """Reads (columns by their known names, rows) of a table; blank rows are left out."""
    columns, rows = table_rows.read_rows(text, file, {*_CONTENTS, *names})
    header = known_names(columns, *names)
    cells = ((number, row.values()) for number, row in rows if "".join(row.values()).strip())
    return header, [(number, dict(zip(header, values, strict=True))) for number, values in cells]


def parse_table(
    text: str, file: pathlib.Path, name: str, reading: Reading, column: str = "text"
) -> TokenizedText:
    """Reads a table that has a word, a sentence, or the sentences of an item in each row."""
    header, rows = _read_rows(text, file, column)
    if "word" in header:
        return _from_word_rows(rows, file, name, reading, header)
    chosen = next((content for content in (column, "sentence", "text") if content in header), None)
    if chosen is not None:
        return _from_sentence_rows(rows, file, name, reading, header, chosen, chosen != column)
    conditions = _conditions(header)
    if conditions:
        header, rows = _long(header, rows, conditions)
        return _from_sentence_rows(rows, file, name, reading, header, "sentence")
    if {"items", "predictions"} <= {*header}:
        rows = [*enumerate(_suite_regions(rows[0][1]["items"], file), 1)]
        return _from_word_rows(rows, file, name, reading, [*_SUITE, "word"])
    columns = header if table_rows.is_json(file, text) else table_rows.header(text, file)
    raise UserError(
        f"{file}, line 1: no column is called 'word', nor 'sentence', nor {column!r}, nor are "
        f"there sentence_A and sentence_B of two conditions, but {quote(columns)}: rename some, "
        "with tabs, commas or semicolons between all, or call the file .txt if it is plain text."
    )


def _suite_regions(suite_items: str, file) -> Iterator[dict[str, str]]:
    """Yields the rows of a test suite of SyntaxGym in JSON, a region each."""
    try:
        for item in json.loads(table_rows.check_characters(suite_items, f"{file},")):
            for condition in item["conditions"]:
                for region in condition["regions"]:
                    row = item | condition | region
                    yield {name: str(row[name]) for name in _SUITE} | {
                        "word": row["content"].strip()
                    }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{file} has items that are not of a test suite of SyntaxGym ({error!r}): write them "
            "as SyntaxGym does."
        ) from error


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


def _from_sentence_rows(rows, path, name, reading, header, column, items=True):
    label = next((key for key in ("item", "id", "sent_id") if key in header), None)
    columns = tuple(key for key in header if key not in (column, label))
    sentences = []
    for count, (number, row) in enumerate(rows, 1):
        extra, key = tuple(row[key] for key in columns), row.get(label, str(count))
        # A cell between commas may have several lines, each a sentence, as in training.
        for line in files.lines(row[column]):
            tokens = reading.tokens(line)
            if "critical" in columns and line.strip():
                tokens = _join_region(tokens, row["critical"], reading, f"{path}, line {number}")
            tokens = [token._replace(extra=extra) for token in tokens]
            sentences.append(Sentence(number, key, tokens, len(line), extra))
    return TokenizedText(name, sentences, columns, items=items)


def _join_region(tokens, critical, reading, location):
    """Joins the tokens of the critical region of a sentence, if it has one, to one token."""
    region = [token.text for token in reading.tokens(critical)]
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
    place = _place_column(rows, header, [*keys, *readers])
    items = _gather_items(rows, path, keys, readers, place)
    varying = {name for item in items.values() for name in columns if len(_values(name, item)) > 1}
    sentences, end_place = [], 0
    for key, item in items.items():
        rows = [group[0] for group in item]
        while len(item) > 1 and _is_mark(_word(item[0])):
            del item[0]
        number = item[0][0][0]
        words = [group[0] for group in item if not _is_mark(_word(group))]
        reason = _describe_mixture([row for _, row in words], place)
        if reason:
            raise UserError(
                f"{path}, line {number}: the rows of {' '.join(key)!r} are not of one sentence "
                f"({reason}): name the column that tells sentences apart 'condition' or "
                "'subject', and sort by it and then by place."
            )
        if place:
            end_place = _check_gaps(rows, path, " ".join(key), place, end_place)
        blank = [line for line, row in words if not row["word"].strip()]
        if blank and (len(blank) == len(words) or not place):
            raise UserError(
                f"{path}, line {blank[0]}: the word is empty: give one, or leave the row out; an "
                "item that has words may have empty regions, numbered in a column 'region'."
            )
        for position, part in enumerate(_sentence_parts(item, reading)):
            end = None
            while part and _is_mark(_word(part[-1])):  # as Zoo's own tables
                (_, row), *_ = part.pop()
                end = tuple(row[name] for name in columns)
            # What differs from row to row elsewhere is not the sentence's, though it has one row.
            row_columns = {*varying, place} if len(part) == 1 else ()
            values = {name: () if name in row_columns else _values(name, part) for name in columns}
            shared = tuple("".join(cells) if len(cells) == 1 else "" for cells in values.values())
            tokens = []
            for group, token in zip(part, _regions([*map(_word, part)], reading), strict=True):
                first, *further = (tuple(row[name] for name in columns) for _, row in group)
                tokens.append(token._replace(extra=first, further_extras=tuple(further)))
            line = part[0][0][0] if part else number
            extra = shared if end is None else end
            sentences.append(Sentence(line, key[0], tokens, None, extra, not position))
    return TokenizedText(name, sentences, columns, items=True)


def _word(group):
    """Returns the word of the rows of its readers."""
    return group[0][1]["word"]


def _place_column(rows, header, keys) -> str:
    """Returns the column that numbers words and tells most rows apart; "" if there is none."""
    rows = [row for _, row in rows if not _is_mark(row["word"])]
    names = [name for name in header if _PLACE.fullmatch(name)]
    numbers = [name for name in names if all(_NUMBER.fullmatch(row[name]) for row in rows)]

    def order(name):
        texts = {(row[name], *(row[key] for key in keys)) for row in rows}
        return -len(texts), len({row[name] for row in rows})  # a number of the table's row is last

    return min(numbers, key=order, default="")


def _place(row, name):
    return int(row[name].removesuffix(".0"))


def _gather_items(rows, path, keys, readers, place_column):
    """Returns {values of the keys: words}; a word is a list of (line, row), one of each reader.

    Rows of several readers are sorted by place. Where a place has several rows of one reader, as a
    region of several words may, the first of one reader is the first of another.
    """
    items: dict = {}
    counts: dict = {}
    by_place, place, last = bool(readers and place_column), 0.0, None
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
            is_number = _NUMBER.fullmatch(row[place_column])
            place = _place(row, place_column) if is_number else int(place) + 0.5
        count = counts.setdefault(reader, {})
        count[place] = count.get(place, 0) + 1
        item = items.setdefault(key, {})
        group = item.setdefault((place, count[place]), [])
        group.append((number, row))
        if _word(group) != row["word"]:
            name = f"{place_column} {place}" if by_place else f"word {count[place]}"
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


def _describe_mixture(rows, place_column):
    """Describes why rows of one item look like several sentences; None if they do not."""
    places = [_place(row, place_column) for row in rows if place_column]
    stands_still = not _REGION.fullmatch(place_column)  # a region may have several rows
    for before, after in itertools.pairwise(places):
        if after < before + stands_still:
            return f"{place_column!r} goes from {before} to {after}"
    words = [row["word"] for row in rows if row["word"].strip()]
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
    placed = place_tokens((region, (), " " if region else "") for region in regions)
    words: list[list[str]] = [[] for _ in placed]
    ends = [token.end for token in placed]
    for token in reading.tokens(" ".join(filter(None, regions))):
        words[bisect.bisect_left(ends, token.end)] += token.words
    return [token._replace(words=tuple(w)) for token, w in zip(placed, words, strict=True)]


# ---- minimal pairs: a good and a bad sentence, which docs/scoring.md describes


def read_pairs(file: pathlib.Path, text: str) -> Iterator[Row]:
    """Yields the rows of minimal pairs, with columns of `SIDES` and perhaps of `GROUPS`."""
    lines = [line for line in enumerate(files.lines(text), 1) if line[1].strip()]
    first = lines[0][1]
    header = known_names(table_rows.header(first, file), *SIDES[0])
    names = {name.lower().partition("_")[0] for name in header}
    if table_rows.is_json(file, text) or any({*sides} <= {*header} for sides in SIDES):
        yield from _read_rows(text, file, *GROUPS, *SIDES[0])[1]
    elif len(header) > 1 and {"item", "sentence", "condition", "good"} & names:
        raise UserError(
            f"{file}, line {lines[0][0]}: a table with the columns {quote(header)}: write one row "
            "per pair, in columns good and bad."
        )
    else:
        rows = [(n, table_rows.cells(line, f"{file}, line {n}")) for n, line in lines]
        is_table = len(rows[0][1]) > 2 and not {"", *_LABELS} & {*rows[0][1]}
        yield from (_rows_without_header if is_table else _labelled_pairs)(rows, file)


def _rows_without_header(rows, path):
    """Yields the pairs of a table without header: phenomenon, perhaps its kind, two sentences."""
    count = len(rows[0][1])
    similar = sum(a != b and (a[:1] == b[:1] or a[-1:] == b[-1:]) for _, (*_, a, b) in rows)
    if 2 * similar < len(rows):
        raise UserError(
            f"{path}: the last two cells of most lines do not begin or end alike, as a good and a "
            "bad sentence do: name the columns good and bad."
        )
    for number, values in rows:
        if len(values) != count:
            raise UserError(
                f"{path}, line {number}: {len(values)} cells with tabs between them, where the "
                f"first line has {count}: correct the line."
            )
        groups = values[0], " ".join(values[:2]) if count > 3 else ""
        yield number, dict(zip((*GROUPS, *SIDES[0]), (*groups, *values[-2:]), strict=True))


def _labelled_pairs(rows, path):
    """Yields each sentence labelled False with the one labelled True before it."""
    good, twins = None, 1

    def fail(number, problem):
        raise UserError(
            f"{path}, line {number}: {problem}; write True or False, a tab and the sentence, each "
            "True line followed by its False twins."
        )

    for number, (label, *cells) in rows:
        sentence = "\t".join(cells)
        if not cells or label not in _LABELS:
            fail(number, "not a labelled sentence")
        if not files.bare(sentence).strip():
            fail(number, "no words")
        if label == "True":
            if not twins:
                fail(number, "the True sentence before this one has no False twin")
            good, twins = sentence, 0
        elif good is None:
            fail(number, "a False sentence before any True one")
        else:
            twins += 1
            yield number, {"good": good, "bad": sentence}
    if not twins:
        fail(number, "the last True sentence has no False twin")
