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
from zoo.heads import LogLinear, SpreadUnknown, WithCache
from zoo.lab.evaluation import dynamic_evaluation, perplexity, sentence_scores
from zoo.lab.evaluation import evaluation_texts as texts
from zoo.lab.evaluation.dynamic_evaluation import DynamicEvaluation
from zoo.lab.runs import checksums, seen_texts
from zoo.lab.runs.seen_texts import SeenTexts
from zoo.lab.runs.workdir import Workdir, check_folders
from zoo.lexicon import Lexicon
from zoo.models import SequenceToSequence
from zoo.priors import Grammar
from zoo.sources import files, moses, table_rows

# Fields of a grammar's background that, beside its rules, determine which words it allows.
_LIMITS = ("start", "longest", "depth", "stacks")
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
    variant: str = ""
    training_lexicon: Lexicon | None = None
    source_lexicons: tuple[Lexicon, ...] = ()
    # how the model is trained on the text that it is judged on; None if it is not
    dynamic: DynamicEvaluation | None = None
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
        return self._with_recipe("", evaluation=evaluation)

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

    def with_lexicon(
        self, path: str | None, spread: bool = False, add: bool = False, letters: int = 0
    ) -> Self:
        """Returns the run judged on a file's words, one a line, not on the words of training."""
        if path is None:
            return self
        if self.experiment.vocabulary.open_classes:
            raise UserError(
                "strings outside the lexicon of this run are words already "
                f"(vocabulary.open_classes): leave {'--add-words' if add else '--lexicon'} out."
            )
        trained = self.lexicon
        marks = [word for word in trained.words if word in (trained.boundary, trained.unknown)]
        listed = listed_words(path, trained, self.experiment.vocabulary.lower_case)
        words = tuple(dict.fromkeys((*(trained.words if add else marks), *listed)))
        if trained.feature_names:
            vocabulary, source = self.experiment.vocabulary, self.experiment.data
            lexicon = vocabulary.extended(source, trained, words).select_words(words)
        else:
            lexicon = trained.with_words(words, trained.occurrences(words))
        lexicon = dataclasses.replace(lexicon, alphabet=trained.letters)
        model, params = self.experiment.language_model, self.params
        variant = f"lexicon-{lexicon.words_digest()[:8]}"
        if spread:
            head = model.head
            if head.tied:  # the embedding's table becomes the table of the new words
                params = {**params, "head": model.head_params(params)}
                head = dataclasses.replace(head, tied=False)
            model = dataclasses.replace(model, head=SpreadUnknown(head, trained, letters))
            variant += f"-spread-letters-{letters}" if letters else "-spread"
        run = dataclasses.replace(
            self,
            lexicon=lexicon,
            params=model.for_lexicon(params, trained, lexicon),
            tables=model.evaluation_tables(lexicon),
            training_lexicon=trained,
        )
        return run._with_recipe(variant, model=model)

    def renormalised(self) -> Self:
        """Returns the run with a head whose probabilities are over the words of the lexicon."""
        head = self.experiment.language_model.head
        if not head.spells:
            raise UserError(
                f"a {type(head).__name__} spells no words itself, so has nothing to renormalise: "
                "leave out --renormalise."
            )
        model = dataclasses.replace(
            self.experiment.language_model, head=dataclasses.replace(head, renormalised=True)
        )
        return self._with_recipe("renormalised", model=model)

    def with_cache(self, size: int, flatness: float, weight: float) -> Self:
        """Returns the run with a cache around its head; see heads.WithCache."""
        model = self._language_model("--cache")
        model = dataclasses.replace(model, head=WithCache(model.head, size, flatness, weight))
        run = dataclasses.replace(self, tables=model.evaluation_tables(self.lexicon))
        return run._with_recipe("cache", model=model)

    def with_dynamic(self, settings: DynamicEvaluation) -> Self:
        """Returns the run that reads one batch row, and is trained on segments once scored."""
        self._language_model("--dynamic")
        if self.constraint:
            raise UserError(
                "--dynamic has no gradient where a grammar forbids words: leave --constrain out."
            )
        evaluation = dataclasses.replace(self.experiment.evaluation, batch=1)
        run = dataclasses.replace(self, dynamic=settings)
        return run._with_recipe("dynamic", evaluation=evaluation)

    def _with_recipe(self, variant: str, **recipe: Any) -> Self:
        """Returns the run with other parts of the recipe, and one more variant in its name."""
        return dataclasses.replace(
            self,
            experiment=dataclasses.replace(self.experiment, **recipe),
            variant="-".join(filter(None, (self.variant, variant))),
        )

    def _language_model(self, option):
        """Returns the model; UserError if it translates."""
        if isinstance(self.experiment.model, SequenceToSequence):
            raise UserError(f"{option} is for language models, and {self.path} translates.")
        return self.experiment.language_model

    @property
    def learns_from_text(self) -> list[str]:
        """The ways in which the run learns from the very text that it is judged on, if any."""
        dynamic = [] if self.dynamic is None else [self.dynamic.description]
        head = self.experiment.head
        return dynamic + ([head.description] if isinstance(head, WithCache) else [])

    def constrained(self, grammar: str) -> Self:
        """Returns the run with the probabilities of words that a grammar forbids set to 0.

        p'(x) is proportional to p(x) where some form of the grammar continues with x after the
        words since the source's separator, or since the boundary if it has none: the head's uniform
        background becomes priors.Grammar, its parameters stay.
        """
        head = self.experiment.head
        if not isinstance(head, LogLinear) or head.background is not None:
            raise UserError(
                "--constrain needs a heads.LogLinear without a background of its own, and this "
                "run's head is another: leave --constrain out."
            )
        separators = {source.form.separator for source in self.experiment.data.texts()}
        if len(separators) > 1:
            raise UserError(
                f"the texts of {self.path} begin their answers in different ways: leave "
                "--constrain out."
            )
        if getattr(self.experiment.model, "order", None) == "target_reversed":
            raise UserError(
                f"{self.path} writes translations from the last word to the first "
                "(model.order=target_reversed), and a grammar reads from the first: leave "
                "--constrain out."
            )
        background = Grammar(grammar, start=separators.pop(), stacks=8, splits=())
        prepared = background.prepare(self.lexicon, {})
        lexicon = dataclasses.replace(self.lexicon, background_tables=prepared)
        # All forms give the same probabilities; "product" does not support such a background.
        form = "auto" if head.form == "product" else head.form
        head = dataclasses.replace(head, background=background, form=form)
        model: Any = dataclasses.replace(self.experiment.model, head=head)
        tables = model.evaluation_tables(lexicon, *self.source_lexicons)
        run = dataclasses.replace(self, lexicon=lexicon, tables=tables)
        return run._with_recipe(f"constrained-{run._digest_of(background)[:8]}", model=model)

    @property
    def constraint(self) -> dict | None:
        """Path of the grammar and digest of the words that it allows; None without a grammar."""
        background = self.experiment.head.background
        if not isinstance(background, Grammar):
            return None
        return {"grammar": background.path, "digest": self._digest_of(background)}

    def _digest_of(self, grammar: Grammar) -> str:
        """Hashes a grammar's tables over the words and its limits."""
        # Hashes the arrays that the run keeps: the file may have changed since training.
        tables = checksums.array_digests(self.lexicon.background_tables)
        limits = {name: getattr(grammar, name) for name in _LIMITS}
        return checksums.json_digest({"tables": tables, **limits})[:16]

    @functools.cached_property
    def seen_texts(self) -> SeenTexts | None:
        """The texts that the model has seen; None where they cannot be known."""
        return seen_texts.load_seen_texts(self.path)

    @property
    def changed_sources(self) -> list[str]:
        """Notes on modules of the user's own that changed since training."""
        recorded = self.seen_texts.made_with.get("sources", {}) if self.seen_texts else {}
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
            if texts.is_readable(path, source.form.column):
                return self._read(path, source)
            corpus = texts.table(path, source, self.tokenizer).read("test")
            return texts.from_corpus(corpus, reading=self._reading(source))
        return self._as_given(self.experiment.vocabulary.read(source, "test"))

    def read_split_file(self, split: str, corpus: Corpus) -> texts.TokenizedText:
        """Reads the tokens of a split from its file if it has plain sentences; else its words."""
        source: Any = self.experiment.data.within()
        raw = bool(source.form.language)  # a line may have several sentences
        if source.form.plain and not raw and texts.is_readable(corpus.name, source.form.column):
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
        scored = self._scores(corpus, one_row)
        text, scores = perplexity.merge_subwords(*scored, self.experiment.vocabulary, self.lexicon)
        if not scores.tokens and text.counted.any():
            raise UserError(
                f"{corpus.name} is too short: {self.path} has no boundary, and predicts nothing "
                "before the second word or character: give a longer text."
            )
        if not scores.tokens:
            raise UserError(
                f"no token of {corpus.name} is counted: give a text that has words of the lexicon, "
                "or another vocabulary.unknown or vocabulary.boundary in training."
            )
        return text, scores

    def _scores(self, corpus: Corpus, one_row: bool) -> TextAndScores:
        recipe = self.experiment.evaluation
        if one_row and recipe.state == "carried":
            recipe = dataclasses.replace(recipe, batch=1)
        mesh = perplexity.device_mesh(recipe.batch)
        params, tables = perplexity.replicate((self.params, self.tables), mesh)
        if isinstance(self.experiment.model, SequenceToSequence):
            pairs = perplexity.read(self.experiment, self.lexicon, self.source_lexicons[0], corpus)
            translator = self.experiment.model
            scores = perplexity.score_pairs(translator, params, tables, pairs, recipe.batch, mesh)
            return pairs.target, scores
        model = self.experiment.language_model
        text = self.experiment.vocabulary.encode(corpus, self.lexicon)
        boundary = self.lexicon.boundary_id
        if self.dynamic is not None:
            arguments = model, self.params, self.tables, text, self.dynamic, recipe.state, boundary
            return text, dynamic_evaluation.score(*arguments, self._mean_squares)
        batch_rows = Batches(text, recipe.batch, recipe.length, recipe.state, boundary)
        return text, perplexity.score(model, params, tables, text, batch_rows, mesh)

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


def listed_words(path: str, lexicon: Lexicon, lower_case: bool = False) -> dict[str, None]:
    """Reads the words of a file, each once, in its order, without the marks of a lexicon."""
    _, text = files.read(path)
    lines = [*enumerate(text.split("\n"), 1)]
    names = table_rows.header(text)
    if "word" in names and names != [lines[0][1]]:
        lines = [(n, row["word"]) for n, row in table_rows.rows(text, path, "\t", full=True)[1]]
    spaced = any(" " in word for word in lexicon.words)
    words: dict = {}
    for number, line in lines:
        line = line.lower() if lower_case else line
        # Where characters are words, so is a space.
        word = line if line in lexicon.ids else line.strip()
        if word not in lexicon.ids and len(word.split()) > 1 and ("\t" in word or not spaced):
            raise UserError(f"{path}, line {number}: {word!r} is not a word: write one a line.")
        is_listed = word in lexicon.ids or (word and not files.MARK.fullmatch(word))
        if is_listed and word not in (lexicon.boundary, lexicon.unknown):
            words[word] = None
    if not words:
        raise UserError(f"{path} has no words: give a file with one a line.")
    return words


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
