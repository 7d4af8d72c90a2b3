"""The recipe of one's own text or pairs, a treebank or a config: parts, language, sizes.

`choose` looks at a text and returns a config with the fields that differ, so that `train.py` can
repeat the run.
"""

import bisect
import collections
import dataclasses
import itertools
import math
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from zoo.base.trust import user_modules
from zoo.configuration import changed
from zoo.data import Characters, Conllu, Pairs, RawText, text_notes
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.heads import AdaptiveSoftmax
from zoo.sources import files, table_rows


def _language_model_sizes(size, dropout, batch, epochs):
    return {
        "model.embedding.size": size,
        "model.core.size": size,
        "model.core.dropout": dropout,
        "model.core.input_dropout": dropout,
        "training.batch": batch,
        "training.epochs": epochs,
    }


def _translator_sizes(size, batch, epochs):
    return {
        **{f"model.{part}.size": size for part in ("embedding", "core", "encoder.core")},
        "training.batch": batch,
        "training.epochs": epochs,
    }


# Held out for validation, and again for the test: a twentieth of the text, of a short text up to a
# tenth, and at most so many tokens.
_SHARE, _LARGEST_SHARE = 20, 10
_HELD_OUT_TOKENS = {"words": (5_000, 100_000), "letters": (25_000, 500_000), "pairs": (500, 2_000)}
# The least tokens, or pairs, of a text that a model can learn anything from, and be judged on.
_MIN_TOKENS = {"words": 2_000, "letters": 5_000, "pairs": 200}
_MIN_SENTENCES = 20
# {kind: ((training tokens below, or pairs; settings), ...)}: the first row that fits is taken.
_SIZES: dict[str, tuple[tuple[float, dict[str, Any]], ...]] = {
    "words": (
        (30_000, _language_model_sizes(size=192, dropout=0.5, batch=4, epochs=25)),
        (100_000, _language_model_sizes(size=192, dropout=0.5, batch=4, epochs=12)),
        (400_000, _language_model_sizes(size=192, dropout=0.5, batch=16, epochs=12)),
        (2_000_000, _language_model_sizes(size=256, dropout=0.4, batch=20, epochs=6)),
        (math.inf, _language_model_sizes(size=256, dropout=0.2, batch=32, epochs=4)),
    ),
    "letters": (
        (300_000, {"model.core.size": 128, "training.batch": 8, "training.epochs": 20}),
        (3_000_000, {"model.core.size": 256, "training.batch": 16, "training.epochs": 12}),
        (math.inf, {"model.core.size": 512, "training.batch": 32, "training.epochs": 2}),
    ),
    "pairs": (
        (3_000, _translator_sizes(size=128, batch=16, epochs=20)),
        (50_000, _translator_sizes(size=192, batch=32, epochs=8)),
        (math.inf, _translator_sizes(size=256, batch=32, epochs=4)),
    ),
}
# Frequent words by which a language is recognised among those whose rules Moses has.
_FREQUENT = {
    "en": "the of and to in is that was",
    "fr": "le la les et des est dans une",
    "de": "der die und das nicht ist den mit",
    "es": "el los que y en las por una",
    "it": "il che di è non per una gli",
    "pt": "o que não uma os do da em",
    "nl": "het een van en dat niet zijn op",
    "sv": "och att det som är på inte en",
    "cs": "a se že na je v to ale",
    "pl": "się nie i w na że do jest",
    "ru": "и в не на что он с как",
    "ro": "și să nu la cu din este o",
    "hu": "a az és hogy nem is egy volt",
    "fi": "ja on ei se että oli hän mutta",
    "ca": "el els que i amb les per una",
}
# From so many words on, and with so many different ones, a softmax over all takes most of the time.
_LONG_TEXT, _LARGE_VOCABULARY = 2_000_000, 20_000
_HIGH_UNKNOWN_SHARE = 0.2
_SAMPLE = 200_000  # words by which a text is looked at
_LONG_LINE = 5_000  # characters, more than a sentence has
_SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'”’»)\]]*$")


@dataclasses.dataclass(frozen=True)
class OwnRecipe:
    """A recipe for a text."""

    config: str  # the name of a config, as --config takes it
    settings: dict[str, Any]  # {field: value} that differ from it, in the order of --set
    notes: tuple[str, ...]  # sentences that describe the text and the choices made for it

    @classmethod
    def build(cls, config: str, settings: dict[str, Any], notes: Sequence[str]) -> "OwnRecipe":
        """Builds a recipe, and leaves out the settings that the config has already."""
        base = user_modules.configs().load(config)
        settings = {
            key: value for key, value in settings.items() if changed(base, {key: value}) != base
        }
        return cls(config, settings, tuple(notes))

    def experiment(self) -> Experiment:
        return changed(user_modules.configs().load(self.config), self.settings)

    def arguments(self) -> list[str]:
        """Returns the arguments of `train.py` for the same experiment, without the folder."""
        settings = [f"{field}={_format_value(value)}" for field, value in self.settings.items()]
        return ["--config", self.config, *(word for text in settings for word in ("--set", text))]


def choose(
    paths: Sequence[str], letters: bool = False, languages: Sequence[str] = (), lines: str = ""
) -> OwnRecipe:
    """Chooses a recipe for a text, a treebank, a config, or pairs of sentences in two files.

    `lines` is what a line of the text is, as `RawText.lines` names it, or "" to recognise it.
    """
    if len(paths) > 2:
        raise UserError(f"{len(paths)} texts are given: give one, or two for pairs.")
    recipe = _ready_recipe(paths[0]) if len(paths) == 1 else None
    if recipe:
        options = {"--letters": letters, "--language": languages, "--lines": lines}
        option = next((name for name, value in options.items() if value), None)
        if option:
            kind = "config" if recipe.config == paths[0] else "treebank"
            raise UserError(f"{option} is for a text, and {paths[0]} is a {kind}: leave it out.")
        return recipe
    if letters and (len(paths) == 2 or languages):
        reason = "--language finds words" if languages else "two files are pairs of sentences"
        raise UserError(f"--letters reads single letters, and {reason}: leave one of them out.")
    if lines and (letters or len(paths) == 2):
        raise UserError("--lines finds the sentences of one text of words: leave it out.")
    languages = ["" if code == "none" else code for code in languages]
    if len(paths) == 2:
        return _pair_recipe(paths[0], paths[1], languages)
    (path,) = paths
    if len(languages) > 1:
        raise UserError(f"{len(languages)} languages are given for one text: give one.")
    return _letter_recipe(path) if letters else _word_recipe(path, lines, *languages[:1])


def _ready_recipe(path: str) -> OwnRecipe | None:
    """Returns the recipe of a treebank, a folder of its files, or a config; None for a text."""
    if _is_treebank(path):
        return _treebank_recipe(path)
    if _path_exists(f"{path}/train.conllu"):
        train, validation, test = (f"{path}/{name}.conllu" for name in ("train", "dev", "test"))
        settings = {"data.train": train, "data.validation": validation, "data.tests": (test,)}
        return OwnRecipe.build("ud_treebank", settings, ())
    is_path = any(mark in path for mark in "./*") or _path_exists(path)
    return None if is_path and not path.endswith(".py") else OwnRecipe.build(path, {}, ())


def _is_treebank(path):
    return files.kind(pathlib.Path(path)) in (".conllu", ".conll")


def _path_exists(path):
    """Whether a path is found, in the working directory or in $ZOO_DATA."""
    return any(candidate.exists() for candidate in files.candidates(path))


def _treebank_recipe(path):
    """Chooses a recipe for a treebank in one file: its last tenth is the test."""
    count = len(Conllu(train=path, validation=path).read("train").sentences)
    if count < _MIN_SENTENCES:
        raise UserError(f"{path} has {count} sentences: give at least {_MIN_SENTENCES}.")
    held_out = count // _LARGEST_SHARE
    first, second = count - 2 * held_out, count - held_out
    notes = f"{path}: {count:,} sentences.", _parts_note(first, second, count, "sentences")
    return OwnRecipe.build("ud_treebank", _part_settings([path], first, second), notes)


def _word_recipe(path, kind, language=None):
    """Chooses a recipe for a text of words."""
    _check_path(path)
    as_lines = RawText(train=path, validation=path, language="", lines="sentences")
    lines = [*as_lines.raw_lines(path)]
    words = [*itertools.islice((word for line in lines for word in line.split()), _SAMPLE)]
    _check_blanks(path, words)
    language = _recognise_language(words) if language is None else language
    kind = kind or _recognise_lines(lines, tokenised=not language)
    source = dataclasses.replace(as_lines, language=language, lines=kind)
    sentences = source.raw_sentences(path)
    counts = [len(sentence.split()) for sentence in sentences]
    first, second = _split_points(counts, "words", path)
    training = sum(counts[:first])
    words_of_training = collections.Counter(_bare_words(sentences[:first]))
    frequent_words = {word for word, count in words_of_training.items() if count > 1}
    settings = {
        **_part_settings([path], first, second),
        "data.language": language,
        "data.lines": kind,
        **_sizes("words", training),
    }
    if training >= _LONG_TEXT and len(frequent_words) > _LARGE_VOCABULARY:
        settings["model.head"] = AdaptiveSoftmax()
    notes = (
        f"{path}: {len(counts):,} sentences, {sum(counts):,} words between blanks.",
        _LINE_NOTES[kind],
        _describe_language(language),
        _parts_note(first, second, len(counts), "sentences"),
        *_unknown_note(sentences[second:], frequent_words),
    )
    return OwnRecipe.build("own_text", settings, notes)


def _letter_recipe(path):
    """Chooses a recipe for a text of letters."""
    _check_path(path)
    counts = [*map(len, Characters(train=path, validation=path).raw_sentences(path))]
    first, second = _split_points(counts, "letters", path)
    settings = _part_settings([path], first, second) | _sizes("letters", sum(counts[:first]))
    notes = (
        f"{path}: {len(counts):,} lines, {sum(counts):,} characters.",
        _parts_note(first, second, len(counts), "lines"),
    )
    return OwnRecipe.build("own_letters", settings, notes)


def _pair_recipe(source, target, languages=()):
    """Chooses a recipe for pairs of sentences in two files."""
    for path in (source, target):
        _check_path(path)
    corpus = Pairs(train=(source, target), validation=(source, target)).read("train")
    sides = corpus.source_text.sentences, corpus.sentences
    if len(languages) not in (0, 2):
        raise UserError("two files have two languages: give --language twice, sources first.")
    languages = tuple(languages) or tuple(
        _recognise_language([*itertools.islice(itertools.chain.from_iterable(side), _SAMPLE)])
        for side in sides
    )
    count = len(corpus.sentences)
    first, second = _split_points([1] * count, "pairs", f"{source}, {target}")
    settings = {
        **_part_settings([source, target], first, second),
        "data.languages": languages,
        **_sizes("pairs", first),
    }
    notes = (
        f"{source}, {target}: {count:,} pairs, {sum(map(len, sides[0])):,} and "
        f"{sum(map(len, sides[1])):,} words between blanks.",
        *(f"{path}: {_describe_language(languages[n])}" for n, path in enumerate((source, target))),
        _parts_note(first, second, count, "pairs"),
    )
    return OwnRecipe.build("own_pairs", settings, notes)


_LINE_NOTES = {
    "sentences": "Each line is a sentence (--lines sets another way).",
    "paragraphs": "Each line is a paragraph, which is split into sentences (--lines wrapped joins "
    "the lines up to blank ones first, as verse or broken lines may need).",
    "wrapped": "Lines are joined to paragraphs up to blank ones, and split into sentences (--lines "
    "paragraphs joins none).",
}


def _describe_language(language):
    if not language:
        return (
            "The text is tokenised: words are between its blanks, as by --language none (the Moses "
            "tokenizer splits them by --language en)."
        )
    return f"Words by the Moses tokenizer for language {language} (--language sets another)."


def _part_settings(paths: Sequence[str], first: int, second: int) -> dict[str, Any]:
    """Returns the settings of the three parts of a text, or of both sides of pairs."""
    ranges = f"[:{first}]", f"[{first}:{second}]", f"[{second}:]"
    texts = [tuple(f"{path}{part}" for path in paths) for part in ranges]
    train, validation, test = texts if len(paths) > 1 else (text for (text,) in texts)
    return {"data.train": train, "data.validation": validation, "data.tests": (test,)}


def _parts_note(first: int, second: int, count: int, noun: str) -> str:
    return (
        f"Training on the first {first:,} {noun}, validation on the next {second - first:,}, test "
        f"on the last {count - second:,}."
    )


def _bare_words(sentences):
    """Yields the words between blanks, without punctuation marks around them."""
    words = (word.strip(text_notes.MARKS) for sentence in sentences for word in sentence.split())
    return filter(None, words)


def _unknown_note(sentences, frequent_words):
    """Yields a sentence on unknown words, if they are many."""
    words = [*_bare_words(sentences)]
    share = sum(word not in frequent_words for word in words) / max(1, len(words))
    if share > _HIGH_UNKNOWN_SHARE:
        yield (
            f"Note: some {share:.0%} of the test's words, without punctuation marks, do not occur "
            "twice in this training text, and count as <unk>, which is easy to predict; --letters "
            "has no unknown words."
        )


def _sizes(kind, training):
    """Returns the settings of sizes for the number of training tokens or pairs."""
    return next(settings for below, settings in _SIZES[kind] if training < below)


def _split_points(counts: Sequence[int], kind: str, location: str) -> tuple[int, int]:
    """Returns the indices of the first sentence of validation and of the first of the test."""
    total, noun = sum(counts), {"letters": "characters"}.get(kind, kind)
    if total < _MIN_TOKENS[kind] or len(counts) < _MIN_SENTENCES:
        sentences = "" if kind == "pairs" else f" in {len(counts):,} sentences"
        raise UserError(
            f"{location} has {total:,} {noun}{sentences}, too few to train on and to judge by: "
            f"give at least {_MIN_TOKENS[kind]:,} {noun}, better a hundred times as many."
        )
    minimum, maximum = _HELD_OUT_TOKENS[kind]
    held_out = min(max(total // _SHARE, min(minimum, total // _LARGEST_SHARE)), maximum)
    ends = [*itertools.accumulate(counts)]
    first, second = (bisect.bisect_right(ends, total - part * held_out) for part in (2, 1))
    # At least a sentence each, however long sentences are.
    second = min(second, len(counts) - 1)
    return max(1, min(first, second - 1)), second


def _check_path(path):
    """Raises UserError for a treebank as a side of pairs, a range, or a table of pairs."""
    if _is_treebank(path):
        raise UserError(f"{path} is a treebank, which has no translation: give it alone.")
    if files.Part.parse(path).range != slice(None):
        raise UserError(f"{path} has a range, and parts are chosen here: give the path alone.")
    if path.endswith(".tsv") and _has_pairs(path):
        raise UserError(
            f"{path} has two columns, such as a sentence and its translation, and pairs are read "
            f"from two files here: cut -f1 {path} > sources.txt, cut -f2 {path} > targets.txt, and "
            "give both."
        )


def _has_pairs(path):
    """Whether path is a table without a column "text", each of whose first lines has one tab."""
    paths = [file for file in files.candidates(path) if file.is_file()]
    if not paths:  # missing, or a pattern of files
        return False
    with paths[0].open(encoding="utf-8", errors="replace") as file:
        lines = [line.rstrip("\n") for line in itertools.islice(file, 20) if line.strip()]
    has_two = bool(lines) and all(line.count("\t") == 1 for line in lines)
    return has_two and "text" not in table_rows.header(lines[0])


def _check_blanks(path, words):
    """Raises UserError for a script that does not put blanks between words."""
    if not words:
        raise UserError(f"{path} has no words: give a text with some.")
    if sum(map(len, words)) > 15 * len(words):
        raise UserError(
            f"{path} has hardly any blanks, by which words could be found: give --letters, or put "
            "blanks between words."
        )


def _recognise_lines(lines: Sequence[str], tokenised: bool) -> str:
    """Recognises what a line of a text is, as `RawText.lines` names it."""
    # Lines are wrapped if there are blank lines, and most lines within a paragraph end in the
    # middle of a sentence. Tokenised text has a sentence a line, unless a line is very long.
    texts = [line.strip() for line in lines]
    pairs = [(line, after) for line, after in itertools.pairwise(texts) if line and after]
    open_ends = sum(not _SENTENCE_END.search(line) for line, _ in pairs)
    gaps = sum(not line for line in texts[:-1])
    is_wrapped = gaps > len(texts) / 200 and open_ends > len(pairs) / 2
    if is_wrapped and len(pairs) > gaps / 2:
        return "wrapped"
    has_short_lines = all(len(line) < _LONG_LINE for line in texts)
    return "sentences" if tokenised and has_short_lines else "paragraphs"


def _recognise_language(words: Sequence[str]) -> str:
    """Recognises the language of a text by its frequent words; "" for tokenised text."""
    counts = collections.Counter(words)
    if text_notes.looks_tokenised(counts):
        return ""
    lower = collections.Counter(word.lower() for word in words)
    shares = {
        language: sum(lower[word] for word in frequent.split())
        for language, frequent in _FREQUENT.items()
    }
    best = max(shares, key=lambda language: shares[language])
    return best if shares[best] > len(words) / 50 else "en"


def _format_value(value: Any) -> str:
    """Formats a value as --set reads it."""
    if isinstance(value, tuple):
        end = "," if len(value) == 1 else ""
        return f"({','.join(map(_quote, value))}{end})"
    return type(value).__name__ if dataclasses.is_dataclass(value) else str(value)


def _quote(item: Any) -> str:
    if isinstance(item, tuple):
        return _format_value(item)
    mark = "'" if '"' in item else '"'
    return f"{mark}{item}{mark}"
