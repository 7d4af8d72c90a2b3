"""A trained model loaded from its work directory, ready to be judged."""

import collections
import dataclasses
import functools
import itertools
import pathlib
import re
from collections.abc import Sequence
from typing import Any, Self

import jax

from zoo.data import Corpus, Pairs, text_notes
from zoo.data.batches import Batches
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.evaluation import evaluation_texts as texts
from zoo.lab.evaluation import perplexity, sentence_scores
from zoo.lab.evaluation.changes import dynamic_evaluation
from zoo.lab.evaluation.changes.change import Change
from zoo.lab.evaluation.changes.dynamic_evaluation import DynamicEvaluation
from zoo.lab.runs import seen_texts
from zoo.lab.runs.seen_texts import SeenTexts
from zoo.lab.runs.workdir import Workdir, check_folders
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel, SequenceToSequence
from zoo.sources import moses

TextAndScores = tuple[EncodedText, perplexity.Scores]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A run: its recipe, its words and its parameters."""

    path: pathlib.Path
    experiment: Experiment
    lexicon: Lexicon
    params: Any
    tables: dict
    checkpoint: int
    changes: tuple[Change, ...] = ()  # for its evaluation, in their order
    training_lexicon: Lexicon | None = None
    source_lexicons: tuple[Lexicon, ...] = ()
    # the language by whose rules texts from outside are tokenised, see `with_tokenizer`
    tokenizer: str = ""

    def __repr__(self):
        return f"{type(self).__name__}({self.summary})"

    @property
    def summary(self) -> str:
        """Folder, head, words, parameters and training step, in one line."""
        parameters = sum(leaf.size for leaf in jax.tree.leaves(self.params))
        return (
            f"{str(self.path)!r}: {type(self.experiment.head).__name__}, "
            f"{len(self.lexicon):,} words, {parameters:,} parameters, step {self.checkpoint:,}"
        )

    @classmethod
    def load(cls, path: str | pathlib.Path) -> Self:
        """Loads the run of a work directory."""
        workdir = Workdir(path)
        experiment, lexicon = workdir.experiment(), workdir.lexicon()
        step, params = workdir.params(experiment, lexicon)
        sources = workdir.other_lexicons(experiment)
        tables = experiment.model.evaluation_tables(lexicon, *sources)
        return cls(workdir.path, experiment, lexicon, params, tables, step, source_lexicons=sources)

    def with_state(self, state: str | None) -> Self:
        """Returns the run judged under another state policy; None changes nothing."""
        if state in (None, self.experiment.evaluation.state):
            return self
        evaluation = dataclasses.replace(self.experiment.evaluation, state=state)
        experiment = dataclasses.replace(self.experiment, evaluation=evaluation)
        return dataclasses.replace(self, experiment=experiment)

    def for_text(self, text: texts.TokenizedText, state: str | None, lines: bool = False) -> Self:
        """Returns the run judged under a state policy; by default its own, but "sentences" for the
        items of a table, and for the sentences of any text with `lines`; "items" if an item has
        several sentences and the run's own policy carries the state."""
        apart = (lines or text.items) and self.lexicon.boundary is not None
        if state is None and apart and not isinstance(self.experiment.model, SequenceToSequence):
            carried = text.items and self.experiment.evaluation.state == "carried"
            state = "items" if carried and text.corpus.items else "sentences"
        return self.with_state(state)

    def with_tokenizer(self, language: str | None) -> Self:
        """Returns the run that tokenises texts from outside its data, by the rules of Moses for a
        language; None changes nothing."""
        if language is None:
            return self
        moses.check(language, "the language of the tokenizer")
        form = self.experiment.data.with_test("a text").form
        if form.language or not form.plain:
            reads = "tokenises texts itself" if form.language else "does not read texts of words"
            raise UserError(f"{self.path} {reads}: leave the language of the tokenizer out.")
        return dataclasses.replace(self, tokenizer=language)

    def with_change(self, change: Change, model: Any = None, **parts: Any) -> Self:
        """Returns the run with one more change, which gives it another model or other parts."""
        run = dataclasses.replace(self, changes=(*self.changes, change), **parts)
        if model is None:
            return run
        experiment = dataclasses.replace(run.experiment, model=model)
        tables = model.evaluation_tables(run.lexicon, *run.source_lexicons)
        return dataclasses.replace(run, experiment=experiment, tables=tables)

    def require_language_model(self, option: str) -> LanguageModel:
        """Returns the model; raises UserError if it translates."""
        if isinstance(self.experiment.model, SequenceToSequence):
            raise UserError(f"{option} is for language models, and {self.path} translates.")
        return self.experiment.language_model

    @property
    def variant(self) -> str:
        """The changes in the names of results."""
        return "-".join(change.label for change in self.changes)

    @property
    def dynamic(self) -> DynamicEvaluation | None:
        """How the model is trained on the text that it is judged on; None if it is not."""
        kinds = (change for change in self.changes if isinstance(change, DynamicEvaluation))
        return next(kinds, None)

    @functools.cached_property
    def seen_texts(self) -> SeenTexts | None:
        """The texts that the model has seen; None where they cannot be known."""
        return seen_texts.load_seen_texts(self.path)

    @property
    def changed_sources(self) -> list[str]:
        """Notes on modules of the user's own that changed since training."""
        code = self.seen_texts and self.seen_texts.made_with
        recorded = code.sources if code else {}
        now = seen_texts.module_digests(self.experiment)
        return [
            f"! {name} has changed since training, and computes by its new code: SHA-256 "
            f"{digest[:8]} then, {now[name][:8]} now"
            for name, digest in recorded.items()
            if now.get(name, digest) != digest
        ]

    def read(self, split: str) -> Corpus:
        """Reads a split of the data, as the vocabulary reads it."""
        return self.experiment.vocabulary.read(self.experiment.data, split)

    @property
    def reading(self) -> texts.Reading:
        """Way in which the run reads the tokens of a text from outside its data."""
        return self._reading(self.experiment.data)

    def _reading(self, source):
        lower_case, lexicon, form = self.experiment.vocabulary.lower_case, self.lexicon, source.form
        language, parts = self.tokenizer or form.language, lexicon.fused
        return texts.Reading(lower_case, form.fused, parts, lexicon.ids, language, lexicon.boundary)

    def _read(self, path, source):
        """Reads the tokens of a treebank, table or plain text, in the form of the source."""
        blank_lines = source.form.blank_lines or "skipped"
        return texts.read(path, self._reading(source), source.form.column, blank_lines)

    def read_file(self, path: str) -> texts.TokenizedText:
        """Reads the tokens of a file: plain text, CoNLL-U or a table of items.

        See `zoo.lab.evaluation.evaluation_texts`. Runs on characters, and on answers to a question
        or condition, read files of the kind of their data, and so do all runs with files that only
        `datasets` reads: JSON, CSV, Parquet, folders. Runs on pairs read a table of pairs, or two
        files, "SOURCE,TARGET".
        """
        source = self.experiment.data.with_test(path)
        if isinstance(self.experiment.model, SequenceToSequence) and not source.form.pairs:
            source = Pairs.from_file(path)
        if source.form.plain:
            if texts.is_readable(path):
                return self._read(path, source)
            corpus = texts.table(path, source, self.tokenizer).read("test")
            return texts.from_corpus(corpus, reading=self._reading(source))
        return self._as_given(self.experiment.vocabulary.read(source, "test"))

    def read_split_file(self, split: str, corpus: Corpus) -> texts.TokenizedText:
        """Reads the tokens of a split from its file if it has plain sentences; else its words."""
        source: Any = self.experiment.data.within()
        raw = bool(source.form.language)  # a line may have several sentences
        if source.form.plain and not raw and texts.is_readable(corpus.name):
            text = self._read(source.path_of(split), source)
            if text.corpus.sentences == corpus.sentences:
                return text
        return self._as_given(corpus)

    def _as_given(self, corpus):
        return texts.from_corpus(corpus, "" if self.lexicon.is_character_level else " ")

    def notes(self, sentences: Sequence[list[str]]) -> list[str]:
        """Returns notes on unknown words of a text that the run knows in another form."""
        unknown = [*self.experiment.vocabulary.missing(sentences, self.lexicon)]
        notes = (
            self.lexicon.fused_note(unknown),
            *text_notes.form_notes(unknown, self.lexicon),
            self._untokenised(sentences, unknown),
            *text_notes.notes(sentences, unknown, self.lexicon),
        )
        return [note for note in notes if note]

    def noted(self, sentences: Sequence[list[str]]) -> dict[tuple[str, ...], None]:
        """Returns the words and phrases that notes on the sentences are about."""
        unknown = self.experiment.vocabulary.missing(sentences, self.lexicon)
        words = {*itertools.chain.from_iterable(sentences)}
        marks = (*text_notes.PUNCTUATION & words, *text_notes.sentence_marks(words))
        spaced = map(str.split, text_notes.find_split_words(sentences, self.lexicon))
        return dict.fromkeys([*((word,) for word in (*unknown, *marks)), *map(tuple, spaced)])

    def share(self, sentences: Sequence[list[str]], text: str) -> str | None:
        """Returns a note on the share of unknown words in sentences; None without any."""
        unknown = self.experiment.vocabulary.missing(sentences, self.lexicon).values()
        return sentence_scores.share(sum(map(len, sentences)), sum(unknown), text)

    def _untokenised(self, sentences, unknown):
        """Returns a note on unknown words that end with punctuation marks; None without any, or in
        a text most of whose marks stand alone."""
        note = text_notes.note(unknown, self.lexicon)
        if note is None or self.lexicon.is_character_level or self.reading.language:
            return None
        counts = collections.Counter(word for sentence in sentences for word in sentence)
        _, attached, separate = text_notes.count_marks(counts)
        return note if attached >= separate else None

    def score_corpus(self, corpus: Corpus, one_row: bool = False) -> TextAndScores:
        """Returns (the corpus as word ids, log p of its words under the state policy). A carried
        state begins empty in each of the `evaluation.batch` rows, or once with `one_row`."""
        recipe, boundary = self.experiment.evaluation, self.lexicon.boundary_id
        if one_row and recipe.state == "carried":
            recipe = dataclasses.replace(recipe, batch=1)
        model, vocabulary = self.experiment.model, self.experiment.vocabulary
        arrays = self.params, self.tables
        (params, tables), mesh = perplexity.on_devices(arrays, recipe.batch)
        if isinstance(model, SequenceToSequence):
            pairs = perplexity.read(self.experiment, self.lexicon, self.source_lexicons[0], corpus)
            text = pairs.target
            scores = perplexity.score_pairs(model, params, tables, pairs, recipe.batch, mesh)
        else:
            model, text = self.experiment.language_model, vocabulary.encode(corpus, self.lexicon)
            if self.dynamic is None:
                batches = Batches(text, recipe.batch, recipe.length, recipe.state, boundary)
                scores = perplexity.score(model, params, tables, text, batches, mesh)
            else:
                settings = self.dynamic, recipe.state, boundary, self._mean_squares
                scores = dynamic_evaluation.score(model, self.params, self.tables, text, *settings)
        text, scores = perplexity.merge_subwords(text, scores, vocabulary, self.lexicon)
        if scores.tokens:
            return text, scores
        if text.counted.any():
            raise UserError(
                f"{corpus.name} is too short: {self.path} has no boundary, and predicts nothing "
                "before the second word or character: give a longer text."
            )
        raise UserError(
            f"no token of {corpus.name} is counted: give a text that has words of the lexicon, "
            "or another vocabulary.unknown or vocabulary.boundary in training."
        )

    @functools.cached_property
    def _mean_squares(self):
        """The scale of dynamic evaluation by "rms", from the training text; None for "sgd"."""
        if self.dynamic is None or self.dynamic.rule != "rms":
            return None
        text = self.experiment.vocabulary.encode(self.read("train"), self.lexicon)
        model, boundary = self.experiment.language_model, self.lexicon.boundary_id
        return dynamic_evaluation.mean_squares(
            model, self.params, self.tables, text, self.dynamic, boundary
        )


def splits_of(workdir: str | pathlib.Path, splits: list[str]) -> list[str]:
    """Returns the splits, or the test splits of a run if there are none; reads no parameters."""
    if splits:
        return splits
    data_splits = Workdir(workdir).experiment().data.splits()
    tests = [split for split in data_splits if split not in ("train", "validation")]
    if not tests:
        raise UserError(f"{workdir} has no test splits: give --split validation.")
    return tests


def first_test(experiment: Experiment) -> str:
    """Returns the first test split, or validation without one."""
    tests = (split for split in experiment.data.splits() if split not in ("train", "validation"))
    return next(tests, "validation")


def short_names(workdirs: list[str]) -> list[str]:
    """Returns the runs' names for tables and pictures; whole paths where names are equal."""
    check_folders(workdirs)
    names = [re.sub(r".*\.jsonl:", "", pathlib.Path(path).name) for path in workdirs]
    return names if len({*names}) == len(names) else [str(path) for path in workdirs]
