"""Figures with their passports: everything that comparing a number with another one requires.

A passport is a plain dict that is kept as JSON. Figures whose parts in
`zoo.evaluation.results` differ are not of the same quantity, and are not compared.
"""

import dataclasses
import datetime
import errno
import math
import os
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import jax
import numpy as np

from zoo import configuration, strict_json
from zoo.data import Corpus
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.evaluation import item_scores, leakage, mixtures
from zoo.evaluation.leakage import priors_that_saw
from zoo.evaluation.mixtures import Mixture
from zoo.evaluation.perplexity import PRECISION, Scores, impossible_words
from zoo.evaluation.run import Run
from zoo.heads import SpreadUnknown
from zoo.lexicon import Lexicon
from zoo.runs import location, seen_texts
from zoo.runs.output_files import machine, revision, versions
from zoo.runs.workdir import Workdir
from zoo.sources.evaluation_texts import GivenText

READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


def of_text(
    run: Run,
    split: str,
    corpus: Corpus,
    text: EncodedText,
    scores: Scores,
    mixture: Mixture | None = None,
) -> dict:
    """Makes the passport of a perplexity."""
    vocabulary, lexicon = run.experiment.vocabulary, run.lexicon
    words = sum(map(len, corpus.sentences))
    types = {word for sentence in corpus.sentences for word in sentence}
    figures = {
        "log_perplexity": scores.log_perplexity,
        "perplexity": scores.perplexity,
        "bits": scores.log_perplexity / math.log(2),
        **({} if scores.log_z is None else {"log_z": scores.log_z_figures()}),
        "bands": scores.bands(text.occurrences(lexicon), text.unknown(lexicon)),
        "seen": _part(scores, (text.occurrences(lexicon) > 0) & ~text.unknown(lexicon)),
        "unseen": unseen(lexicon, text, scores),
    }
    if mixture is not None:
        figures["mixture"] = mixtures.figures(mixture, lexicon, text, scores)
    if impossible := impossible_words(scores, text, lexicon):
        figures["impossible"] = dataclasses.asdict(impossible)
    if text.strings is not None:
        figures["strings"] = _part(scores, text.strings.counts >= 0)
    if run.experiment.head.renormalised:
        spelled = dataclasses.replace(scores, log_prob=scores.log_prob + scores.log_z)
        figures["log_perplexity_over_all_spellings"] = spelled.log_perplexity
    if vocabulary.boundary == "uncounted":
        boundaries = text.words == lexicon.boundary_id
        wider = dataclasses.replace(scores, counted=scores.counted | boundaries)
        figures["log_perplexity_with_boundaries"] = wider.log_perplexity
        figures["tokens_with_boundaries"] = wider.tokens
    return {
        "kind": "perplexity",
        "split": split,
        "figures": figures,
        "tokens": scores.tokens,
        "counts": counts_sentence(run),
        "out_of_vocabulary": int((~text.known).sum()),
        "unknown_tokens": int(text.unknown(lexicon).sum()),
        "priors_saw_this_text": priors_that_saw(
            run.experiment, lexicon, split, corpus.name, corpus.sentences
        ),
        "out_of_vocabulary_rate": float((~text.known).sum() / max(1, words)),
        "types": len(types),
        "out_of_vocabulary_types": sum(not vocabulary.has(word, lexicon) for word in types),
        "data": data_of(corpus.name, corpus.sentences),
        **_of_source(run, corpus),
        "policies": policies(run),
        **_of_run(run, corpus.sentences),
    }


def _of_source(run: Run, corpus: Corpus) -> dict:
    """Returns, for translations, {"source": as "data", with the number of unknown words}."""
    if corpus.source_text is None or len(run.others) != 1:
        return {}
    source = run.experiment.source_of(corpus)
    missing = run.experiment.reading_of_sources.missing(source.sentences, run.others[0])
    record = data_of(source.name, source.sentences)
    return {"source": {**record, "out_of_vocabulary": sum(missing.values())}}


def unseen(lexicon: Lexicon, text: EncodedText, scores: Scores) -> dict:
    """Computes the figures of the lexicon's words that did not occur in the training text.

    Words outside the lexicon, which are read as the unknown word, are not among them.
    """
    marks = [lexicon.ids[word] for word in (lexicon.unknown, lexicon.boundary) if word is not None]
    never = text.occurrences(lexicon) == 0
    return _part(scores, text.known & never & ~np.isin(text.words, marks))


def _part(scores: Scores, chosen: np.ndarray) -> dict:
    """Computes the figures of some of the counted tokens."""
    part = dataclasses.replace(scores, counted=scores.counted & chosen)
    return {
        "tokens": part.tokens,
        "rate": part.tokens / scores.tokens,
        "log_perplexity": part.log_perplexity if part.tokens else None,
        "perplexity": part.perplexity if part.tokens else None,
    }


def of_pairs(run: Run, path: str, pairs: list, scores) -> dict:
    """Makes the passport of an accuracy on minimal pairs, scored by `minimal_pairs.score_pairs`."""
    sentences = [sentence for pair in pairs for sentence in pair[:2]]
    return {
        "kind": "minimal pairs",
        "split": f"pairs:{pathlib.Path(path).name}",
        "figures": scores.figures(),
        "tokens": scores.pairs,
        "counts": (
            "pairs whose differing words are in the lexicon; right if the sum of log p over the "
            "words, boundary not counted, is higher for the good sentence"
        ),
        "data": data_of(path, sentences),
        **_of_sentences(run, [good for good, *_ in pairs]),
    }


def of_exact_match(run: Run, split: str, corpus: Corpus, scores) -> dict:
    """Makes the passport of greedily decoded answers; see `exact_match`."""
    return {
        "kind": "exact match",
        "split": f"answers:{split}",
        "figures": scores.figures(),
        "tokens": scores.answers,
        "counts": "answers that agree with the given one in every word, decoded greedily",
        "data": data_of(corpus.name, corpus.sentences),
        **_of_sentences(run, corpus.sentences),
    }


def of_translations(run: Run, corpus: Corpus) -> dict:
    """Returns the fields of a passport of translations beside its figures; see
    `zoo.evaluation.translation_quality`.
    """
    return {
        "data": data_of(corpus.name, corpus.sentences),
        **_of_source(run, corpus),
        **_of_sentences(run, corpus.sentences),
    }


def _of_sentences(run: Run, sentences: list[list[str]]) -> dict:
    """Returns the fields of passports of sentences that each start from an empty state."""
    apart = {**policies(run), "state": "sentences", "batch": None}
    return {"policies": apart, **_of_run(run, sentences)}


def data_of(path: str, sentences: list[list[str]]) -> dict:
    """Describes a text by path, size and a hash of its words as read, which the path does not
    change.
    """
    return {
        "path": path,
        "sha256": seen_texts.digest_of(sentences),
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
    }


def policies(run: Run) -> dict:
    """Returns the choices that change a figure without changing the model."""
    vocabulary, recipe = run.experiment.vocabulary, run.experiment.evaluation
    texts = run.experiment.data.texts()
    blank_lines = {source.form.blank_lines for source in texts}
    return {
        "state": recipe.state,
        "batch": recipe.batch if recipe.state == "carried" else None,
        "boundary": vocabulary.boundary,
        "boundary_marks": vocabulary.boundary_marks if vocabulary.boundary != "none" else None,
        "unknown": vocabulary.unknown,
        "lower_case": vocabulary.lower_case,
        "fused": run.experiment.data.form.fused,
        "blank_lines": "kept" if "kept" in blank_lines else None,
    }


def counts_sentence(run: Run) -> str:
    """Describes the tokens that figures count."""
    chosen = policies(run)
    language = run.experiment.data.form.language
    tokens = f"words (by the Moses tokenizer for {language})" if language else "words"
    words = {
        None: "characters" if run.lexicon.of_characters else tokens,
        "split": "syntactic words (a fused form counts as the words in it)",
        "surface": "words as they are written (a fused form is one)",
        "kept": "syntactic words, and fused forms beside the words in them",
    }[chosen["fused"]]
    marks = chosen["boundary_marks"]
    many = f"the {marks} boundaries" if marks != 1 else "the boundary"
    boundary = {
        "counted": f"{many} after each sentence counted",
        "uncounted": f"{many} after each sentence predicted but not counted",
        "none": "no boundaries, and the first word of the text not predicted",
    }[chosen["boundary"]]
    if chosen["blank_lines"] and chosen["boundary"] != "none":
        boundary += ", blank lines being sentences without words"
    unknown = {
        "counted": "unknown words counted as <unk>",
        "skipped": "unknown words read as <unk> and not counted",
        "refused": "no unknown words",
    }[chosen["unknown"]]
    sentence = f"{words}; {boundary}; {unknown}"
    return sentence.replace("word", "character") if run.lexicon.of_characters else sentence


def _seen(run: Run, sentences: list[list[str]]) -> dict:
    """Returns the texts that the model had seen, as far as known, and their overlap with a text."""
    seen, workdir = run.seen_texts, Workdir(run.path)
    return {
        "trained_on": None if seen is None else list(seen.trained_on.about),
        "selected_on": None if seen is None else list(seen.selected_on.about),
        "not_known": None if seen is None else list(seen.not_known),
        "knowledge": None if seen is None or seen.knowledge is None else list(seen.knowledge),
        "overlap": None if seen is None else leakage.of_text(sentences, seen),
        "training": {
            "seed": run.experiment.training.seed,
            "recipe_sha256": workdir.recipe_digest(),
            "recipe_but_seed": workdir.recipe_digest_but_seed(),
            "made_with": None if seen is None else seen.made_with or None,
            "finished": workdir.finished(),
        },
    }


def _spread_letters(head):
    """Returns {"spread_letters": n} where new words share by n-grams of their letters."""
    shared = isinstance(head, SpreadUnknown) and head.letters
    return {"spread_letters": head.letters} if shared else {}


def _of_run(run: Run, sentences: list[list[str]]) -> dict:
    """Returns the fields of passports of all kinds; `sentences` is the judged text."""
    leaves, model, lexicon = jax.tree.leaves(run.params), run.experiment.model, run.lexicon
    head = run.experiment.head
    trained = run.lexicon if run.of_training is None else run.of_training
    over = head.normalised_over(lexicon)
    if classes := run.experiment.vocabulary.open_classes:
        names = ", ".join(kind.name for kind in classes)
        over += f", among which {names} stand for all their strings"
    return {
        "normalised_over": over,
        "constraint": run.constraint,
        "renormalised": head.renormalised,
        "spread_unknown": isinstance(head, SpreadUnknown),
        **_spread_letters(head),
        **({"learns_from_text": run.learns_from_text} if run.learns_from_text else {}),
        "notes": model.warnings(lexicon),
        "lexicon": {"hash": lexicon.digest(), **_words(lexicon), "of_training": _words(trained)},
        **{
            f"{name}_lexicon": {"hash": other.digest(), **_words(other)}
            for name, other in zip(model.lexicon_names[1:], run.others, strict=True)
        },
        **_seen(run, sentences),
        "head": repr(head),
        "form": head.form_taken(run.tables["head"]),
        "model": configuration.to_json(model),
        "vocabulary": configuration.to_json(run.experiment.vocabulary),
        "parameters": sum(math.prod(np.shape(leaf)) for leaf in leaves),
        "precision": ", ".join(sorted({str(leaf.dtype) for leaf in leaves})),
        "matmul_precision": PRECISION,
        "checkpoint": run.checkpoint,
        "started_from": Workdir(run.path).start(),
        "versions": versions(),
        "revision": revision(),
        "command": sys.argv,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
    }


def _words(lexicon: Lexicon) -> dict:
    """Returns a digest of the words, which does not depend on their order, and their number."""
    return {"words": lexicon.words_set_digest(), "size": len(lexicon)}


def file_of(run: Run, passport: dict) -> pathlib.Path:
    """Returns results/SPLIT.STATE.json, with part of a hash for texts and pairs given by path."""
    name = re.sub(r"[^\w.-]+", "_", passport["split"])
    if ":" in passport["split"]:
        name += f"-{passport['data']['sha256'][:8]}"
    variant = f".{run.variant}" if run.variant else ""
    return run.path / "results" / f"{name}.{passport['policies']['state']}{variant}.json"


def check(folder: str | pathlib.Path):
    """Raises UserError if the folder of a run cannot hold results; makes and changes nothing.

    Where the folder does not hold a run, `Run.load` raises an error.
    """
    if location.is_bucket(folder):  # only writing shows whether it can be written to
        return
    results = pathlib.Path(folder) / "results"
    # os.path's functions take any name; a name that is too long does not exist.
    place = results if os.path.exists(results) else results.parent
    is_file = os.path.exists(results) and not os.path.isdir(results)
    if is_file or (os.path.isdir(place) and not os.access(place, os.W_OK | os.X_OK)):
        raise UserError(f"{place} is not a folder that can be written to: judge a copy of the run.")


def write(run: Run, passport: dict, scores: item_scores.Arrays | None = None) -> pathlib.Path:
    """Keeps a passport in the run's results; one of the same name is replaced when whole."""
    path = file_of(run, passport)
    if scores is not None:
        passport = {**passport, "scores": item_scores.digest(scores)}
    text = strict_json.dumps(passport, indent=2, ensure_ascii=False) + "\n"
    try:
        with location.reaching(path):
            _write(path, text, scores)
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        raise UserError(
            f"{path} cannot be written ({error.strerror}): judge a copy of the run."
        ) from error
    return path


def _write(path, text, scores):
    """Writes a passport and the scores beside it."""
    path.parent.mkdir(exist_ok=True)
    if scores is not None:
        item_scores.write(path, scores)
    location.write_text(path, text)
    if scores is None and item_scores.path_of(path).exists():  # left by a result of the same name
        item_scores.path_of(path).unlink()


# ------- perplexities of the splits of a run and of other texts, kept with their passports


class Judged(NamedTuple):
    """A text scored by a run."""

    run: Run  # under the state policy of the text
    name: str
    corpus: Corpus
    text: EncodedText  # the text as word ids
    scores: Scores
    file: GivenText | None = None  # the text as its file gives it; None for a split

    @property
    def given(self) -> GivenText:
        """The text as its file gives it."""
        return self.file or self.run.given_split(self.name, self.corpus)


class Row(NamedTuple):
    """The perplexity of a text."""

    text: str
    state: str
    sentences: int
    tokens: int
    unknown: int
    log_perplexity: float  # nats per token
    bits: float  # the same in bits
    perplexity: float
    passport: str


def unseen_splits(run: Run) -> list[str]:
    """Returns the splits of a run but the training text, each followed by its parts."""
    data = run.experiment.data
    return [
        part for split in data.splits() if split != "train" for part in (split, *data.parts(split))
    ]


def judge(
    run: Run,
    splits: Iterable[str],
    file: str | None = None,
    state: str | None = None,
    lines: bool = False,
) -> Iterator[Judged]:
    """Scores splits of a run, and then a file, one after another; see `Run.for_text`."""
    for split in splits:
        of_split = run.with_state(state)
        corpus = run.read(split)
        yield Judged(of_split, split, corpus, *of_split.score(corpus))
    if file is not None:
        given = run.given(file)
        of_file, corpus = run.for_text(given, state, lines), given.corpus
        name = f"data:{pathlib.PurePath(file).name}"
        yield Judged(of_file, name, corpus, *of_file.score(corpus), given)


def keep(
    judged: Judged, mixture: Mixture | None = None, scores: bool = True
) -> tuple[dict, pathlib.Path]:
    """Writes the passport of a text's perplexity; returns it and its file."""
    run, name, corpus, text, of_words, _ = judged
    figures = of_text(run, name, corpus, text, of_words, mixture)
    kept = item_scores.of_text(text, of_words, run.lexicon) if scores else None
    return figures, write(run, figures, kept)


def row(record: dict, file: pathlib.Path) -> Row:
    """Returns the figures of a passport."""
    figures = record["figures"]
    return Row(
        record["split"],
        record["policies"]["state"],
        record["data"]["sentences"],
        record["tokens"],
        record["unknown_tokens"],
        figures["log_perplexity"],
        figures["bits"],
        figures["perplexity"],
        str(file),
    )
