"""A trained model loaded from its work directory, ready to be judged."""

import dataclasses
import functools
import pathlib
import re
from typing import Any, Self

import jax
import jax.numpy as jnp

from zoo.data import Corpus, Pairs
from zoo.data.batches import Batches, fit
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.evaluation import perplexity
from zoo.lab.evaluation.changes import dynamic_evaluation
from zoo.lab.evaluation.changes.change import Change
from zoo.lab.evaluation.changes.dynamic_evaluation import DynamicEvaluation
from zoo.lab.runs import seen_texts
from zoo.lab.runs.seen_texts import SeenTexts
from zoo.lab.runs.workdir import Workdir, check_folders
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel, SequenceToSequence
from zoo.sources import moses, text_formats
from zoo.sources.tokens import Reading, TokenizedText

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
        experiment = workdir.experiment()
        lexicons = workdir.lexicons(experiment)
        step, params, _ = workdir.best(experiment, lexicons)
        tables = experiment.model.evaluation_tables(*lexicons)
        parts = lexicons[0], jax.tree.map(jnp.asarray, params), tables, step
        return cls(workdir.path, experiment, *parts, source_lexicons=lexicons[1:])

    def with_state(self, state: str | None) -> Self:
        """Returns the run judged under another state policy; None changes nothing."""
        if state in (None, self.experiment.evaluation.state):
            return self
        evaluation = dataclasses.replace(self.experiment.evaluation, state=state)
        experiment = dataclasses.replace(self.experiment, evaluation=evaluation)
        return dataclasses.replace(self, experiment=experiment)

    def with_tokenizer(self, language: str) -> Self:
        """Returns the run that tokenises texts from outside its data, by the rules of Moses for a
        language."""
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
    def reading(self) -> Reading:
        """Way in which the run reads the tokens of a text from outside its data."""
        lexicon, form = self.lexicon, self.experiment.data.form
        return Reading(
            self.experiment.vocabulary.lower_case,
            form.fused,
            lexicon.fused,
            lexicon.ids,
            self.tokenizer or form.language,
            lexicon.boundary,
        )

    def read_file(self, path: str) -> TokenizedText:
        """Reads the tokens of a file, or of another text that `zoo.sources.text_formats` reads.

        Runs on characters, and on answers to a question or condition, read files of the kind of
        their data. Runs on pairs read a table of pairs, or two files, "SOURCE,TARGET".
        """
        source = self.experiment.data.with_test(path)
        if isinstance(self.experiment.model, SequenceToSequence) and not source.form.pairs:
            source = Pairs.from_file(path)
        form = source.form
        if not form.plain:
            return self.tokenized(self.experiment.vocabulary.read(source, "test"))
        language = self.tokenizer or form.language
        reading = dataclasses.replace(self.reading, fused=form.fused, language=language)
        return text_formats.read_tokens(path, reading, form.column, form.blank_lines)

    def tokenized(self, corpus: Corpus) -> TokenizedText:
        """Converts a corpus to a text whose tokens are its words."""
        joint = "" if self.lexicon.is_character_level else " "
        return TokenizedText.from_corpus(corpus, joint)

    def score_corpus(self, corpus: Corpus, one_row: bool = False) -> TextAndScores:
        """Returns (the corpus as word ids, log p of its words under the state policy). A carried
        state begins empty in each of the `evaluation.batch` rows, or once with `one_row`."""
        recipe, boundary = self.experiment.evaluation, self.lexicon.boundary_id
        if one_row and recipe.state == "carried":
            recipe = dataclasses.replace(recipe, batch=1)
        model, vocabulary = self.experiment.model, self.experiment.vocabulary
        arrays = self.params, self.tables
        if isinstance(model, SequenceToSequence):
            (params, tables), mesh = perplexity.on_devices(arrays, recipe.batch)
            pairs = perplexity.read(self.experiment, self.lexicon, self.source_lexicons[0], corpus)
            text = pairs.target
            scores = perplexity.score_pairs(model, params, tables, pairs, recipe.batch, mesh)
        else:
            model, text = self.experiment.language_model, vocabulary.encode(corpus, self.lexicon)
            if self.dynamic is None:
                shape = recipe.batch, recipe.length
                if recipe.state == "sentences":
                    shape = fit(text.lengths, *shape)
                (params, tables), mesh = perplexity.on_devices(arrays, shape[0])
                batches = Batches(text, *shape, recipe.state, boundary)
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
