"""Results of runs, read and put in columns: figures of one column are of the same quantity."""

import contextlib
import json
import os
import pathlib
import re
from collections.abc import Container, Iterable, Iterator
from types import NoneType
from typing import Any, NamedTuple

from zoo.base import regular_files, strict_json
from zoo.data.batches import POLICIES
from zoo.errors import UserError
from zoo.lab.evaluation import item_scores, records
from zoo.lab.evaluation.perplexity import BAND_NAMES, UNKNOWN
from zoo.lab.runs import location
from zoo.lab.runs.workdir import Workdir, check_folders

# Kinds of passports whose figures are accuracies of questions.
ANSWERS = ("minimal pairs", "exact match", "slot errors")
# A component of the user's own in a recipe.
_USER_COMPONENT = re.compile(r'"component": "(?!zoo[.:])')
# Fields that are read from passports, which `zoo.lab.evaluation.passport` writes, and their types.
_SIZES = {"sentences": int | None, "words": int | None}
_ANY = {"kind": str, "split": str, "tokens": int, "data": {"path": str, "sha256": str, **_SIZES}}
_COUNTS = dict.fromkeys(("sentences", "tokens", "of_sentences", "of_tokens"), int)
_OVERLAP = {"all": _COUNTS, "long": _COUNTS}
# Fields that are null, or not there, where there is nothing to tell.
_NULLABLE: dict[str, Any] = {
    "constraint": ({"grammar": str, "digest": str}, NoneType),
    "learns_from_text": ([str], NoneType),
    "source": ({"path": str, "sha256": str, "words": int, "out_of_vocabulary": int}, NoneType),
    "trained_on": ([{"by": str, "text": str, "digest": str, "sentences": int}], NoneType),
    "not_known": ([str], NoneType),
    "knowledge": ([{"text": str, "digest": str, "gave": [str]}], NoneType),
    "overlap": ({"trained_on": _OVERLAP, "selected_on": _OVERLAP}, NoneType),
    "training": ({"recipe_but_seed": str | None, "seed": int | None}, NoneType),
}
_MODEL_FIELDS = {
    **_ANY,
    "counts": str,
    "lexicon": {"words": str, "of_training": ({"words": str}, NoneType)},
    "constraint": _NULLABLE["constraint"],
    "renormalised": bool,
    "spread_unknown": bool,
    "spread_letters": int | None,
    "scores": str | None,
}
_PERPLEXITY = {
    **_MODEL_FIELDS,
    **_NULLABLE,
    "figures": {
        "log_perplexity": float,
        "perplexity": float,
        "impossible": ({"tokens": int, "first": str, "others": float}, NoneType),
        "mixture": ({"weight": float, "words": int, "log_perplexity": float}, NoneType),
    },
    "head": str,
    "parameters": int,
    "normalised_over": str,
    "policies": {"state": str, "boundary": str},
    "priors_saw_this_text": [str],
    "checkpoint": int | None,
}
_GROUP = {"right": int | None, "pairs": int | None}
_GROUPS = {"cases": ({...: (_GROUP, float)}, NoneType), "groups": ({...: {...: _GROUP}}, NoneType)}
_RIGHT = {"accuracy": float, "right": int, "skipped": int | None, **_GROUPS}
_ANSWERS = {**_MODEL_FIELDS, "figures": _RIGHT}
_TRANSLATION = {**_ANY, "figures": dict, "counts": str, "tokenizer": str, "policies": dict}
# Fields that not every passport has.
_OPTIONAL = ("source", "scores", "spread_letters", "knowledge", "learns_from_text")
# Fields of a passport that records the words outside the lexicon.
_OUTSIDE = {
    **dict.fromkeys(("out_of_vocabulary", "out_of_vocabulary_types"), int),
    **{"types": int, "unknown_tokens": int, "out_of_vocabulary_rate": float},
}
_BANDS = [{"band": str, "tokens": int, "log_perplexity": float}]
_NAMES = (UNKNOWN, *BAND_NAMES)
_SHAPES: dict[str, dict] = {
    "perplexity": _PERPLEXITY,
    "translation": _TRANSLATION,
    **dict.fromkeys(ANSWERS, _ANSWERS),
}


class Column(NamedTuple):
    """A column of the table of results."""

    split: str
    state: str
    digest: str
    lexicon: str
    over: str
    constraint: str
    learns: str = ""

    @classmethod
    def from_passport(cls, passport: dict) -> "Column":
        """Returns the column of a result."""
        split, constraint = passport["split"], passport["constraint"]
        digest = passport["data"]["sha256"][:8] if ":" in split else ""
        grammar = ""
        if constraint:
            name = pathlib.PurePath(constraint["grammar"]).name
            grammar = f"{name} [{constraint['digest'][:8]}]"
        return cls(
            split,
            passport["policies"]["state"],
            digest,
            "" if is_over_strings(passport) else passport["lexicon"]["words"][:8],
            passport["normalised_over"],
            grammar,
            learns(passport),
        )

    def __str__(self):
        digest = f" [{self.digest}]" if self.digest else ""
        grammar = f"constrained by {self.constraint}" if self.constraint else ""
        learns = f"learning from the text by {self.learns}" if self.learns else ""
        return ", ".join(filter(None, (f"{self.split}{digest}", self.state, grammar, learns)))


def names_of(columns: Iterable[Column]) -> dict[Column, str]:
    """Names columns, with lexicon and normalisation where columns of one text and policy differ."""
    columns, names = [*columns], {}
    for column in columns:
        peers = [peer for peer in columns if str(peer) == str(column)]
        names[column] = str(column)
        if len({peer.lexicon for peer in peers}) > 1:
            names[column] += f", lexicon {column.lexicon}"
            peers = [peer for peer in peers if peer.lexicon == column.lexicon]
        if len({peer.over for peer in peers}) > 1:
            names[column] += f", over {column.over}"
    return names


def read_results(folders: Iterable[str | pathlib.Path]) -> dict[Any, dict[Column, dict]]:
    """Reads {run: passports of its perplexities by column}, in the order of file names."""
    folders = [*folders]
    check_folders(folders)
    results_by_folder = {folder: [*read_passports(folder, ("perplexity",))] for folder in folders}
    for folder, results in results_by_folder.items():
        if not results:
            on_disk = not records.is_record(folder) and not location.is_bucket(folder)
            if on_disk and not os.path.isdir(folder):  # takes a name that is too long
                problem = "is not a folder" if os.path.exists(folder) else "does not exist"
                raise UserError(f"{folder} {problem}: give the folder of an evaluated run.")
            if on_disk and not Workdir(folder).exists():
                raise UserError(f"{folder} is not a run: give a run's folder or FILE.jsonl:RUN.")
            raise UserError(f"{folder} has no results: python -m zoo evaluate {folder} makes them.")
    return {folder: _in_columns(folder, results) for folder, results in results_by_folder.items()}


class Place(NamedTuple):
    """Location of a result."""

    name: str
    scores: pathlib.Path
    prefix: str = ""

    def read_scores(self, passport: dict) -> item_scores.Arrays | None:
        """Reads the scores of the result; see `item_scores.read_archive`."""
        return item_scores.read_archive(self.scores, passport, self.prefix)


@contextlib.contextmanager
def _reading(path):
    """Raises UserError where the content of a file is not a passport."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror or error}): put back a copy of it."
        ) from error
    except ValueError as error:
        raise UserError(f"{path} is not a result of this zoo ({error}): remove it.") from error


def read_passport(path: pathlib.Path) -> dict:
    """Reads the passport of a file."""
    with _reading(path):
        passport = strict_json.loads(regular_files.read_text(path))
        _check(passport)
    return passport


def _check(passport):
    """Raises ValueError unless a passport has the fields of its kind, with possible values."""
    strict_json.check(passport, {"kind": str})
    kind = passport["kind"]
    if kind not in _SHAPES:
        return
    strict_json.check(passport, _NULLABLE | _SHAPES[kind])
    for name in _SHAPES[kind]:
        if name not in passport and name not in _OPTIONAL:
            raise ValueError(f"it has no {name}")
    tokens, figures, minimum = passport["tokens"], passport["figures"], int(kind == "perplexity")
    if tokens < minimum:
        raise ValueError(f"tokens is {tokens}, where at least {minimum} should be")
    interval = figures.get("interval")
    if interval is not None:
        strict_json.check(interval, [float], "figures.interval")
        if len(interval) != 2:
            raise ValueError(f"figures.interval has {len(interval)} numbers, not 2")
    if kind == "perplexity":
        _check_perplexity(passport, figures)
    if kind in ANSWERS:
        _check_answers(figures, tokens)


def _check_perplexity(passport, figures):
    state, outside = passport["policies"]["state"], passport.get("out_of_vocabulary")
    if state not in POLICIES:
        raise ValueError(f"policies.state is {state!r}, not {' or '.join(POLICIES)}")
    if outside is not None:
        strict_json.check(passport, _OUTSIDE)
        if outside and passport["types"] < 1:
            raise ValueError(f"{outside} words of {passport['types']} types are unknown")
    bands = figures.get("bands", [])
    strict_json.check(bands, _BANDS, "figures.bands")
    for row in bands:
        if row["band"] not in _NAMES:
            raise ValueError(f"figures.bands has {row['band']!r}, not {' or '.join(_NAMES)}")
    mixture = figures.get("mixture")
    if mixture and not (0 <= float(mixture["weight"]) < 1 and mixture["words"] > 0):
        raise ValueError("figures.mixture has a weight below 0 or not below 1, or no words")


def _check_answers(figures, tokens):
    if not 0 <= figures["right"] <= tokens:
        raise ValueError(f"{figures['right']} answers of {tokens} are right")
    if not 0 <= float(figures["accuracy"]) <= 1:
        raise ValueError(f"accuracy is {figures['accuracy']}, which is not from 0 to 1")
    for name, groups in {"cases": figures.get("cases"), **(figures.get("groups") or {})}.items():
        for group, counts in (groups or {}).items():
            if isinstance(counts, dict):
                right, pairs = counts.get("right") or 0, counts.get("pairs") or 0
                if not 0 <= right <= pairs:
                    raise ValueError(f"figures.{name}.{group} has {right} right of {pairs}")


def read_passports(run: str | pathlib.Path, kinds: Container[str]) -> Iterator[tuple[Place, dict]]:
    """Reads (place, passport) of the results of some kinds of a run, in the order of file names."""
    results = _from_record(run) if records.is_record(run) else _from_folder(location.to_path(run))
    return ((place, passport) for place, passport in results if passport["kind"] in kinds)


def _from_folder(folder):
    """Yields (place, passport) of the results in a run's folder."""
    # os.path.isdir takes a name that is too long, unlike pathlib.
    if not location.is_bucket(folder) and not os.path.isdir(folder):
        return
    with location.convert_errors(folder):
        paths = sorted((folder / "results").glob("*.json"))
    for path in paths:
        yield Place(path.name, item_scores.path_of(path)), read_passport(path)


def _from_record(path):
    """Yields (place, passport) of the results of a run of a record."""
    file, run = records.file_and_run(path)
    for name, passport in records.record_of(path).results.items():
        with _reading(f"{path}, {name}"):
            _check(passport)
        yield Place(name, records.scores_file(file), f"{run}/{name}/"), passport


# Parts of a recipe that comparisons read, each perhaps missing.
_COMPONENT = {"component": str | None}
_RECIPE = {
    "data": (_COMPONENT, NoneType),
    "model": ({"head": (_COMPONENT, NoneType)}, NoneType),
    "training": ({"seed": int | None}, NoneType),
}


def recipe_of(run: str | pathlib.Path) -> dict:
    """Reads the experiment of a run as JSON, with the digests of the user's modules; {} without."""
    if records.is_record(run):
        recipe = records.record_of(run).experiment
    else:
        with location.convert_errors(run):
            file = Workdir(run).file("experiment.json")
            recipe = strict_json.read(file) if file.exists() else {}
    try:
        strict_json.check(recipe, _RECIPE)
    except ValueError as error:
        raise UserError(
            f"{run} has a recipe that cannot be read ({error}): put back a copy of it."
        ) from error
    if _USER_COMPONENT.search(json.dumps(recipe)):
        for _, passport in read_passports(run, _SHAPES):
            origin = (passport.get("training") or {}).get("made_with")
            sources = origin.get("sources") if isinstance(origin, dict) else None
            if isinstance(sources, dict):
                text = ", ".join(f"{name} [{str(digest)[:8]}]" for name, digest in sources.items())
                return {**recipe, "source": text}
    return recipe


def judged_texts(folder: str | pathlib.Path) -> set[tuple[str, str]]:
    """Returns (split, SHA-256) of the texts on which a run has a perplexity."""
    passports = (passport for _, passport in read_passports(folder, ("perplexity",)))
    return {(passport["split"], passport["data"]["sha256"]) for passport in passports}


def _duplicate(folder, label, first, place):
    return UserError(
        f"{folder} has two results of {label}: {first} and {place.name}; take the one that is not "
        "meant out of its results."
    )


def _in_columns(folder, results):
    """Returns {column: passport}, with the `Place` where each was read as its "place"."""
    passports_by_column = {}
    names: dict = {}
    for place, passport in results:
        column = Column.from_passport(passport)
        if column in passports_by_column:
            raise _duplicate(folder, column, names[column], place)
        passports_by_column[column], names[column] = {**passport, "place": place}, place.name
    return passports_by_column


def columns_of(runs: dict[str, dict[Column, dict]]) -> dict[Column, dict[str, dict]]:
    """Returns {column: {run: passport}}, in the order of the runs' results.

    Runs that were judged on one split, but never alike (under other state policies, on other texts
    of one name, over other words), stand in one column, so that the check refuses them. In columns
    of their own they would stay apart in silence. Figures of models that learn from the judged text
    always stand apart, in a column whose name tells it.
    """
    columns: dict[Column, dict[str, dict]] = {}
    for name, results in runs.items():
        for column, passport in results.items():
            columns.setdefault(column, {})[name] = passport
    for column in list(columns):
        peers = [key for key in columns if (key.split, key.learns) == (column.split, column.learns)]
        for peer in [key for key in peers if key != column]:
            if column in columns and not _share_column(columns, column, peer):
                columns[column].update(columns.pop(peer))
    return columns


def _share_column(columns, first, second):
    """Whether a run of one column and a run of the other stand together in some column."""
    return any(
        columns[first].keys() & runs.keys() and columns[second].keys() & runs.keys()
        for column, runs in columns.items()
        if column.split == first.split
    )


# ---- comparability of figures: they may be put side by side if their passports are of one quantity

# Fields that must agree before two perplexities may be ranked.
PERPLEXITY_FIELDS = (
    "kind",
    "policies",
    "counts",
    "data.sha256",
    "source.sha256",
    "lexicon.words",
    "normalised_over",
    "constraint.digest",
    "learns_from_text",
    "tokens",
)
# Fields that must agree before two figures of translations may be ranked. The signature of BLEU
# has the tokenizer.
TRANSLATION_FIELDS = ("kind", "data.sha256", "source.sha256", "policies.lower_case", "tokenizer")


def learns(passport: dict) -> str:
    """Returns how a model learned from the judged text, without the settings."""
    return " and ".join(way.partition(" (")[0] for way in passport.get("learns_from_text") or ())


def is_over_strings(passport: dict) -> bool:
    """Whether a perplexity is over all strings of bytes, so that the lexicon has no part in it.

    A head that spells words gives every string its probability, as long as no word of the text is
    read as `<unk>`. Where it spells by characters, the lexicon gives the alphabet.
    """
    over = passport["normalised_over"]
    unread = passport.get("out_of_vocabulary", 1), passport.get("unknown_tokens", 1)
    return over.startswith("all spellings") and "outside" not in over and not any(unread)


def quantity(passport: dict, fields: tuple[str, ...] = PERPLEXITY_FIELDS) -> dict[str, Any]:
    """Returns {field: value} of the fields that must agree, each policy a field of its own."""
    values = {}
    for field in fields:
        # Not every text has sources.
        value: Any = {"source": None, **passport, "learns_from_text": learns(passport)}
        for name in field.split("."):
            value = None if value is None else value[name]  # constraint is null without a grammar
        nested = value if isinstance(value, dict) else {}
        values.update({f"{field}.{name}": item for name, item in nested.items()})
        if not nested:
            values[field] = value
    if "lexicon.words" in values and is_over_strings(passport):
        values["lexicon.words"] = None
    return values


def check_comparable(
    first_passport: dict,
    second_passport: dict,
    names: tuple[Any, Any],
    fields: tuple[str, ...] = PERPLEXITY_FIELDS,
    verb: str = "evaluate",
):
    """Raises UserError for the first field in which two passports are not of the same quantity."""
    first, second = quantity(first_passport, fields), quantity(second_passport, fields)
    differing = [field for field in first | second if first.get(field) != second.get(field)]
    if "policies.fused" in differing and first.get("data.sha256") == second.get("data.sha256"):
        # The hash is of words as they were read: the text has no fused form read in two ways.
        for values in (first, second):
            values["policies.fused"] = None
            if "counts" in values:  # of which words, and of which marks
                values["counts"] = values["counts"].partition("; ")[2]
    for field in first | second:
        if first.get(field) != second.get(field):
            remedy = f"{verb} both alike"
            if field == "data.sha256":
                remedy = f"{verb} both on one text"
                if verb == "evaluate":
                    remedy += ", or choose a text that both have by zoo compare --split"
            raise UserError(
                f"{names[0]} and {names[1]} cannot be compared on {first_passport['split']}, "
                f"because {field} differs: {first.get(field)!r} against {second.get(field)!r}; "
                f"{remedy}."
            )


# ------------- accuracies of runs by their questions, and by the options of the evaluation

# {run: (passport, its answers, None if they were not kept)}
_AnswersByRun = dict[Any, tuple[dict, item_scores.Arrays | None]]


class Questions(NamedTuple):
    """Questions that were answered with the same options."""

    split: str
    digest: str
    # what the evaluation changed; () for the first result of each run
    options: tuple[str, ...] = ()

    def __str__(self):
        return ", ".join((self.split, *self.options))


def read_answers(folders: Iterable[str | pathlib.Path]) -> dict[Questions, _AnswersByRun]:
    """Reads the accuracies of runs by their questions.

    Of the results of a run on the same questions, the one of fewest options stands under no option,
    whichever it has, so that a model that was trained under a grammar is compared with a free one.
    Each of the others stands under its options, beside every run's result under the same.
    """
    folders = [*folders]
    check_folders(folders)
    by_questions: dict[tuple[str, str], dict] = {}  # {questions: {run: {options: its answers}}}
    names: dict = {}
    for folder in folders:
        for place, passport in read_passports(folder, ANSWERS):
            questions = Questions(passport["split"], passport["data"]["sha256"], _options(passport))
            earlier = names.get((folder, questions))
            if earlier:
                raise _duplicate(folder, questions, earlier, place)
            names[folder, questions] = place.name
            by_run = by_questions.setdefault(questions[:2], {})
            by_run.setdefault(folder, {})[questions.options] = passport, place.read_scores(passport)
    accuracies = {}
    for (split, digest), by_run in by_questions.items():
        fewest = {run: min(results, key=len) for run, results in by_run.items()}
        choices = {options for results in by_run.values() for options in results}
        accuracies[Questions(split, digest)] = {run: by_run[run][fewest[run]] for run in by_run}
        for options in sorted(choices, key=lambda options: (len(options), options)):
            same_options = {
                run: results[options] for run, results in by_run.items() if options in results
            }
            if any(fewest[run] != options for run in same_options):
                accuracies[Questions(split, digest, options)] = same_options
    return accuracies


def _options(passport):
    """Returns the changes that the evaluation made to the trained model, a string each."""
    words, trained = passport["lexicon"]["words"], passport["lexicon"].get("of_training")
    spread = "<unk> spread over new words"
    letters = passport.get("spread_letters")
    if letters:
        spread += f" by {letters}-grams of letters"
    learning = learns(passport)
    changes = {
        "constrained": passport["constraint"],
        f"lexicon {words[:8]}": trained and trained["words"] != words,
        spread: passport["spread_unknown"] or letters,
        "renormalised": passport["renormalised"],
        f"learning from the text by {learning}": learning,
    }
    return tuple(option for option, is_changed in changes.items() if is_changed)
