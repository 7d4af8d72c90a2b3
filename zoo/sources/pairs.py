"""Sentence pairs, a source and its translation: in two files line by line, or in one table.

Words are between blanks, or are found by the rules of a language.
"""

import dataclasses
import functools
import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from zoo.alignment import UnknownWords
from zoo.errors import UserError, check_choices, shortened
from zoo.sources import files, foreign_formats, moses, table_rows
from zoo.sources.source import Corpus, FileSource, Form, Paths, Source, ranged

# (place, for messages; source; translation)
Row = tuple[str, str, str]
# A side without words: the rules of languages drop control characters.
_NOTHING = re.compile(r"[\s\x00-\x1f]*")


@dataclasses.dataclass(frozen=True)
class Pairs(Paths):
    """Sentences and their translations, words between white space.

    A split is two files with corresponding lines, sources first, as in ("train.en", "train.fr"); or
    one table with a column of sources and one of translations, as in ("train.tsv",). Tables are
    .csv, .json, .jsonl, .parquet, 'hub:NAME:SPLIT', or .tsv: a .tsv file whose first line names
    neither of `columns` has two cells a line and no header. Files may be compressed with gzip,
    bzip2 or xz. Pairs with an empty side are skipped, and a warning counts them.

    Attributes:
      train: one or two paths, perhaps with a range of the pairs that are not skipped, the same for
        both: ("train.en[:1000]", "train.fr[:1000]").
      validation: as `train`.
      tests: as `train`, for the test splits "test1", "test2" ... ("test" if one).
      columns: the columns of sources and translations in a table; a point selects a field of a
        nested cell, as in ("translation.en", "translation.fr").
      unknowns: how unknown words are marked in training, to be replaced after translation; None
        leaves them unmarked. See `zoo.alignment`.
      known: the numbers of source words and of target words that are not unknown: the most frequent
        words of training. Marks are words: a lexicon includes them with minimum_count=1.
      alignments: files in Pharaoh's format, as written by `python -m zoo align`, perhaps with
        ranges: for train, validation, and perhaps the tests. Without them, the translations of a
        test are not marked.
      empty: "skipped", or "refused": a pair with an empty side is an error.

    Example:
      >>> _ = pathlib.Path("texte.txt").write_text("le chat dort\\nle chat\\n")
      >>> both = "text.txt", "texte.txt"
      >>> corpus = data.Pairs(train=both, validation=both).read("train")
      >>> corpus.sentences[0], corpus.source_text.sentences[0]
      (['le', 'chat', 'dort'], ['the', 'cat', 'sat'])
    """

    train: tuple[str, ...]
    validation: tuple[str, ...]
    tests: tuple[tuple[str, ...], ...] = ()
    columns: tuple[str, str] = ("source", "target")
    unknowns: UnknownWords | None = None
    known: tuple[int, int] = (15000, 15000)
    alignments: tuple[str, ...] = ()
    empty: str = "skipped"

    def __post_init__(self):
        check_choices(self, "data", empty=("skipped", "refused"))
        splits = (("train", self.train), ("validation", self.validation))
        for name, paths in (*splits, *((f"tests.{n}", p) for n, p in enumerate(self.tests))):
            if len(paths) not in (1, 2):
                raise UserError(
                    f"data.{name} has {len(paths)} paths: give two files, one of sources and one "
                    "of their translations, or one table with both."
                )
        if min(self.known) < 1:
            raise UserError(f"data.known is {self.known}: give at least 1 word of each side.")
        if len(self.alignments) > 2 + len(self.tests):
            raise UserError(
                f"data.alignments has {len(self.alignments)} files for {2 + len(self.tests)} "
                "splits: give one for each at most."
            )

    @property
    def form(self):
        return Form(pairs=True)

    @classmethod
    def from_file(cls, path: str) -> "Pairs":
        """Makes a source whose test is a table, or two files "SOURCE,TARGET"."""
        return cls(train=(path,), validation=(path,)).with_test(path)

    def with_test(self, path):
        paths = tuple(path.split(",")) if names_two_files(path) else (path,)
        return dataclasses.replace(self, tests=(paths,))

    def read(self, split):
        """Reads the translations of a split, with their sources as `source_text`."""
        corpus, nonempty = self._read(split)
        if self.unknowns is None:
            return corpus
        if len(self.alignments) < 2:
            raise UserError(
                "data.unknowns marks the words of training and validation by their alignments: "
                "set data.alignments to two files, as python -m zoo align writes them."
            )
        source, targets = corpus.source_text, corpus.sentences
        assert source is not None
        alignments_by_split = dict(zip(self.splits(), self.alignments, strict=False))
        if split in alignments_by_split:
            links = read_alignments(alignments_by_split[split], source.sentences, targets, nonempty)
            targets = []
            for pair in zip(source.sentences, corpus.sentences, links, strict=True):
                try:
                    targets.append(self.unknowns.annotate(*pair, *self._frequent_words)[1])
                except ValueError as error:  # a word of the text is a mark; the links are valid
                    raise UserError(f"{corpus.name}, pair {len(targets) + 1}: {error}.") from error
        frequent, _ = self._frequent_words
        sources = [self.unknowns.annotate_source(words, frequent) for words in source.sentences]
        return Corpus(corpus.name, targets, source_text=Corpus(source.name, sources))

    def as_written(self):
        return dataclasses.replace(self, unknowns=None)

    @functools.cached_property
    def _frequent_words(self) -> tuple[frozenset[str], frozenset[str]]:
        """The most frequent source and target words, which are not marked."""
        corpus, _ = self._read("train")
        assert corpus.source_text is not None
        sides = zip((corpus.source_text, corpus), self.known, strict=True)
        source, target = (_most_frequent(side.token_counts(), size) for side, size in sides)
        return source, target

    def _read(self, split) -> tuple[Corpus, list[bool]]:
        """Reads the pairs of a split without marks, and a mask of those that were not skipped."""
        languages = (self.form.source_language, self.form.language)
        rows, nonempty = self.rows(split)
        # Intern words: one object a word, not one a token.
        sources, targets = (
            [[*map(sys.intern, moses.words(row[column], language))] for row in rows]
            for column, language in enumerate(languages, 1)
        )
        names = [files.Part.parse(path).path for path in self.path_of(split)]
        return Corpus(names[-1], targets, source_text=Corpus(names[0], sources)), nonempty

    def rows(self, split: str) -> tuple[list[Row], list[bool]]:
        """Returns the pairs of a split as they are written, and a mask of those not skipped."""
        paths = self.path_of(split)
        parts = [files.Part.parse(path) for path in paths]
        if parts[0].range != parts[-1].range:
            raise UserError(
                f"{paths[0]} and {paths[1]} take different ranges of their lines: give both the "
                "same."
            )
        pairs = list(self._rows(*(part.path for part in parts)))
        nonempty = [not _empty_side(row) for row in pairs]
        rows = [*itertools.compress(pairs, nonempty)]
        if not all(nonempty):
            first = pairs[nonempty.index(False)]
            location, name = first[0], _empty_side(first)
            if self.empty == "refused":
                raise UserError(
                    f"{location}: the {name} is empty: leave the pair out, correct it, or set "
                    "data.empty=skipped."
                )
            files.warn_once(
                f"{' and '.join(part.path for part in parts)}: {len(pairs) - len(rows):,} of "
                f"{len(pairs):,} pairs have an empty side and are skipped, the first at {location} "
                "(data.empty=refused makes this an error)"
            )
        chosen = rows[parts[0].range]
        if not chosen:
            another = f", of {len(rows):,} in all: give another range" if rows else ": give some"
            raise UserError(f"{paths[0]} has no pairs{another}.")
        return chosen, nonempty

    def _rows(self, source_path, target_path=None) -> Iterator[Row]:
        """Yields the pairs of two files, or of a table."""
        files.check_path(source_path)
        if target_path is not None:
            yield from side_by_side(source_path, target_path)
            return
        if source_path.startswith("hub:"):
            place, table = source_path, table_rows.hub(source_path)
        else:
            place = files.find(source_path)
            kind = files.kind(place)
            if kind in table_rows.READERS and kind != ".tsv":
                table = table_rows.READERS[kind](place)
            elif {*self.columns} & {*table_rows.header(files.read_text(place))}:
                table = table_rows.READERS[".tsv"](place)
            else:
                yield from _split_cells(files.read_text(place), place)
                return
        for number, sides in table_rows.texts(table, place, self.columns, "data.columns"):
            texts = (" ".join(x) if isinstance(x, list) else x or "" for x in sides)
            source, target = map(files.bare, texts)
            yield f"{place}, row {number}", source, target


@dataclasses.dataclass(frozen=True)
class RawPairs(Pairs):
    """Untokenised sentences and their translations, split into words by the Moses tokenizer.

    Sentences to be translated are tokenised in the same way, and translations are written without
    blanks before punctuation. See `zoo.sources.moses` for the rules.

    Attributes:
      languages: the languages of sources and translations, such as ("en", "fr"); "" for a side
        whose words stand between blanks.

    Example:
      >>> _ = pathlib.Path("raw.en").write_text("It's late.\\n")
      >>> _ = pathlib.Path("raw.fr").write_text("L'homme dort.\\n")
      >>> both = "raw.en", "raw.fr"
      >>> source = data.RawPairs(train=both, validation=both, languages=("en", "fr"))
      >>> source.read("train").sentences
      [["L'", 'homme', 'dort', '.']]
    """

    languages: tuple[str, str] = ("en", "en")

    def __post_init__(self):
        super().__post_init__()
        if len(self.languages) != 2:
            raise UserError(
                f"data.languages is {self.languages}: give two, of sources and translations, as in "
                '("en", "fr").'
            )
        for language in filter(None, self.languages):
            moses.check(language, "data.languages")

    @property
    def form(self):
        return Form(pairs=True, source_language=self.languages[0], language=self.languages[1])


def _empty_side(row: Row) -> str | None:
    """Returns the name of a side that is empty; None if neither is."""
    sides = zip(("source", "translation"), row[1:], strict=True)
    return next((name for name, side in sides if _NOTHING.fullmatch(side)), None)


def side_by_side(source_path: str, target_path: str) -> Iterator[Row]:
    """Yields the pairs of two files; raises UserError for different numbers of lines."""
    (first, source), (second, target) = map(files.read, (source_path, target_path))
    sources = [*foreign_formats.check_text(files.lines(source), first)]
    targets = [*foreign_formats.check_text(files.lines(target), second)]
    if len(sources) != len(targets):
        short, long = sorted(((len(sources), first), (len(targets), second)), key=lambda x: x[0])
        raise UserError(
            f"{long[1]}, line {short[0] + 1}: {short[1]} has only {short[0]:,} lines and "
            f"this file {long[0]:,}: give two files with corresponding lines."
        )
    for number, sides in enumerate(zip(sources, targets, strict=True), 1):
        source, target = map(files.bare, sides)
        yield f"{second if source.strip() else first}, line {number}", source, target


def _split_cells(text, path) -> Iterator[Row]:
    """Yields the pairs of a text with a source, a tab and its translation on each line."""
    for number, cells in table_rows.lines(text, path):
        cells = cells if "".join(cells).strip() else ["", ""]
        if len(cells) != 2:
            problem = f"{len(cells)} cells" if cells[1:] else "no tab"
            raise UserError(
                f"{path}, line {number}: {problem}, where a source, one tab and its translation "
                "should be: correct the line, or give two files."
            )
        source, target = map(files.bare, cells)
        yield f"{path}, line {number}", source, target


def names_two_files(path: str) -> bool:
    """Whether a path such as "a.en,a.fr" names two files, and not one file with a comma."""
    return "," in path and not any(map(os.path.exists, files.candidates(path)))


def _most_frequent(counts: Mapping[str, int], size: int) -> frozenset[str]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return frozenset(word for word, _ in ranked[:size])


# ------------- files of word alignments in Pharaoh's format, and of bilingual dictionaries
# A line of an alignment file holds the links of a sentence pair. A link `i-j` aligns the source
# word at position i with the target word at position j, both from 0; a pair without links has a
# blank line:
#
#     0-0 1-2 2-1
#
# A line of a dictionary has a source word, a tab, and its translation.

Link = tuple[int, int]
# At most nine digits: Python refuses to parse integers of several thousand digits.
_LINK = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


def read_alignments(
    path: str,
    sources: Sequence[Sequence[str]],
    targets: Sequence[Sequence[str]],
    nonempty: Sequence[bool] = (),
) -> list[list[Link]]:
    """Reads the word links of each sentence pair, a line a pair.

    A file may also have lines for pairs with an empty side: `nonempty` tells which lines to take.
    """
    part = files.Part.parse(path)
    file = files.find(part.path)
    lines = [*files.read_lines(part.path, files.LONGEST_SENTENCE)]
    if len(lines) == len(nonempty):
        lines = [*itertools.compress(lines, nonempty)]
    lines = lines[part.range]
    if len(lines) != len(sources):
        raise UserError(
            f"{path} has {len(lines):,} lines for {len(sources):,} sentence pairs: give a line of "
            "links for each, blank where there are none."
        )
    alignments = []
    for (number, line), source, target in zip(lines, sources, targets, strict=True):
        links = [_link(text, f"{file}, line {number}") for text in line.split()]
        for i, j in links:
            if i >= len(source) or j >= len(target):
                raise UserError(
                    f"{file}, line {number}: the link {i}-{j} lies outside its pair of "
                    f"{len(source)} source and {len(target)} target words, which are counted from "
                    "0: align the same files, in this order."
                )
        alignments.append([*dict.fromkeys(links)])
    return alignments


def pharaoh(links: Iterable[Link]) -> str:
    """Formats the links of a pair as a line, without a line break."""
    return " ".join(f"{i}-{j}" for i, j in links)


def read_dictionary(path: str) -> dict[str, str]:
    """Reads a dictionary file as {source word: target word}."""
    file, text = files.read(path)
    dictionary: dict[str, str] = {}
    for number, line in enumerate(files.lines(text), 1):
        words = line.split("\t")
        if len(words) != 2 or any(len(word.split()) != 1 for word in words):
            raise UserError(
                f"{file}, line {number}: {shortened(line, 80)!r} is not an entry: write a source "
                "word, a tab and a target word."
            )
        source, target = (word.strip() for word in words)
        if source in dictionary:
            raise UserError(
                f"{file}, line {number}: the source word {source!r} occurs twice: keep one."
            )
        dictionary[source] = target
    return dictionary


def _link(text, location):
    match = _LINK.fullmatch(text)
    if match:
        return int(match[1]), int(match[2])
    raise UserError(
        f"{location}: {shortened(text, 80)!r} is not a link: write source-target positions, as in "
        "0-0 1-2."
    )


# --------- sentences with given prefixes, as (source, target) pairs for an encoder-decoder


@dataclasses.dataclass(frozen=True)
class AsPairs(Source):
    """Pairs made of sentences with prefixes: the prefix is the source, the other words the target.

    A language model reads a question and its answer as one sentence; an encoder-decoder reads the
    question and generates the answer. The separator is left out.

    Attributes:
      of: a source whose sentences begin with a prefix, such as `Prefixed`. Its tokens must be
        words, not characters: translations are read and written with blanks between words.

    Example:
      >>> _ = pathlib.Path("asked.tsv").write_text("how many cats ?\\tcount ( cat )\\n")
      >>> asked = data.Prefixed(train="asked.tsv", validation="asked.tsv")
      >>> corpus = data.AsPairs(asked).read("train")
      >>> corpus.source_text.sentences, corpus.sentences
      ([['how', 'many', 'cats', '?']], [['count', '(', 'cat', ')']])
    """

    of: Source

    def __post_init__(self):
        if self.of.is_character_level:
            raise UserError(
                "data.AsPairs makes pairs of sentences of words, and "
                f"{type(self.of).__name__} reads characters: give data.Prefixed with the source in "
                "one column and the target in the other."
            )

    @property
    def form(self):
        return Form(pairs=True)

    def with_test(self, path):
        """Returns the source with another test file, or the pairs of two files "SOURCE,TARGET"."""
        if names_two_files(path):
            return Pairs.from_file(path)
        return dataclasses.replace(self, of=self.of.with_test(path))

    def splits(self):
        return self.of.splits()

    def parts(self, split):
        return self.of.parts(split)

    def read(self, split):
        """Reads the pairs of a split; each sentence must have a prefix and more."""
        corpus = self.of.read(split)
        if corpus.mixture is not None:
            raise UserError(
                f"{corpus.name} is a mixture, whose sentences are drawn by weights: give "
                "data.AsPairs one corpus."
            )
        sources, targets = [], []
        prefixes = corpus.prefixes or [0] * len(corpus.sentences)
        for number, (words, prefix) in enumerate(zip(corpus.sentences, prefixes, strict=True), 1):
            separated = prefix > 0 and words[prefix - 1] == self.of.form.separator
            source, target = words[: prefix - separated], words[prefix:]
            if not source or not target:
                raise UserError(
                    f"{corpus.name}: sentence {number} has no prefix, or nothing but a prefix: "
                    "give data.AsPairs a source such as data.Prefixed, whose sentences have both."
                )
            sources.append(source)
            targets.append(target)
        return Corpus(corpus.name, targets, source_text=Corpus(corpus.name, sources))


# ---- questions and answers as one sequence: a question, a separator, and the answer to predict


@dataclasses.dataclass(frozen=True)
class Prefixed(FileSource):
    """Files with a question, a tab and its answer a line, words between white space.

    The question and the separator are a prefix: the model reads it, but is neither trained nor
    evaluated on it.

    Attributes:
      train: path of a file, perhaps with a range of its lines that are not blank.
      separator: the word between question and answer; it must not occur in either.

    Example:
      >>> _ = pathlib.Path("questions.tsv").write_text("how many ?\\tcount A\\n")
      >>> corpus = data.Prefixed(train="questions.tsv", validation="questions.tsv").read("train")
      >>> corpus.sentences, corpus.prefixes
      ([['how', 'many', '?', '|||', 'count', 'A']], [4])
    """

    separator: str = "|||"

    @property
    def form(self):
        return Form(separator=self.separator)

    def read(self, split):
        """Reads the pairs of a split; raises UserError, with its place, for a malformed pair."""
        part = self.part(split)
        sentences, prefixes = [], []
        for location, question, answer in self._pairs(files.find(part.path)):
            if self.separator in (*question, *answer):
                raise UserError(
                    f"{location}: the separator {self.separator!r} is in the question or its "
                    "answer: set data.separator (data.of.separator within AsPairs) to another."
                )
            sentences.append([*question, self.separator, *answer])
            prefixes.append(len(question) + 1)
        return Corpus(part.path, ranged(part, sentences), prefixes=prefixes[part.range])

    def _pairs(self, path) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
        """Yields (place, words of the question, words of the answer); subclasses read others."""
        for number, cells in table_rows.lines(files.read_text(path), path):
            columns = [files.bare(cell).split() for cell in cells]
            if not any(columns):
                continue
            location = f"{path}, line {number}"
            if len(columns) != 2 or not all(columns):
                raise UserError(f"{location}: write a question, one tab and its answer.")
            yield location, columns[0], columns[1]
