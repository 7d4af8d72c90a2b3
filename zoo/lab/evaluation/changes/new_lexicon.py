"""New words for a trained model, beside the words of training or in their place."""

import dataclasses
from typing import TYPE_CHECKING

from zoo.errors import UserError
from zoo.lab.evaluation.changes.change import Change
from zoo.lab.options import Option, integer
from zoo.sources import files, table_rows

if TYPE_CHECKING:
    from zoo.lexicon import Lexicon  # which imports JAX: --help needs none

# Longer n-grams of letters tell nothing more of a word, and take memory.
_MAX_LETTERS = 20
ADDED_WORDS = (
    Option("--add-words FILE", "adds the words of FILE, one a line, to the lexicon"),
    Option(
        "--spread-unknown",
        "new words share the probability of <unk>; of several runs, in those without features",
        rules="--spread-unknown needs --add-words FILE, --lexicon FILE: is for new words",
    ),
    Option(
        "--spread-letters N",
        "new words compete for the probability of <unk> by a letter N-gram model of the known "
        "words and by their lengths, weighted as words that training read as <unk> ask for",
        integer(1, _MAX_LETTERS),
        rules="--spread-letters needs --add-words FILE, --lexicon FILE: is for new words",
    ),
    Option(
        "--spread-features",
        "new words compete for the probability of <unk> by their features, likewise",
        rules="""
        --spread-features needs --add-words FILE, --lexicon FILE: is for new words
        --spread-features excludes --spread-letters: has features in place of letters
        """,
    ),
)


@dataclasses.dataclass(frozen=True)
class NewLexicon(Change):
    """The words of a file, one a line, in the place of the words of training or beside them."""

    file: str
    adds: bool = False  # to the words of training
    spread: bool = False  # whether new words share the probability of <unk>
    letters: int = 0  # the order of the n-grams of letters by which they compete for it
    digest: str = ""  # of the words, once the change is applied
    by_features: bool = False  # whether they compete for it by their features

    name = "lexicon"
    options = (
        *ADDED_WORDS,
        Option(
            "--lexicon FILE",
            "replaces the run's lexicon by the words of FILE, one a line",
            rules="--lexicon excludes --add-words: replaces the words of the run's lexicon, and "
            "--add-words keeps them",
        ),
    )

    @classmethod
    def from_arguments(cls, arguments, run):
        file = getattr(arguments, "lexicon", None) or arguments.add_words
        letters = arguments.spread_letters
        by_features = arguments.spread_features
        spread = arguments.spread_unknown or letters is not None or by_features
        adds = bool(arguments.add_words)
        return cls(file, adds, spread, letters or 0, by_features=by_features)

    def apply(self, run):
        import jax  # here, for --help needs none
        import numpy as np

        from zoo.embeddings import Lookup
        from zoo.heads import SpreadUnknown
        from zoo.lab.evaluation.perplexity import PRECISION

        if run.experiment.vocabulary.open_classes:
            raise UserError(
                "strings outside the lexicon of this run are words already "
                "(vocabulary.open_classes): leave "
                f"{'--add-words' if self.adds else '--lexicon'} out."
            )
        trained, vocabulary = run.lexicon, run.experiment.vocabulary
        marks = [word for word in trained.words if word in (trained.boundary, trained.unknown)]
        listed = listed_words(self.file, trained, vocabulary.lower_case)
        words = tuple(dict.fromkeys((*(trained.words if self.adds else marks), *listed)))
        competes = self.letters or self.by_features
        larger = _extended(run, (*trained.left_out, *words) if competes else words)
        lexicon = dataclasses.replace(larger.select_words(words), alphabet=trained.letters)
        model, params = run.experiment.language_model, run.params
        if self.spread:
            head = model.head
            if head.tied:  # the embedding's table becomes the table of the new words
                params = {**params, "head": model.head_params(params)}
                head = dataclasses.replace(head, tied=False)
            head = SpreadUnknown(head, trained, self.letters, self.by_features)
            head_params = {"head": params["head"]}
            if competes:
                head_params["within"] = head.fit(larger, *_read_as_unknown(run, larger))
            model, params = dataclasses.replace(model, head=head), {**params, "head": head_params}
            if trained.feature_names:  # new words are read as <unk>, as training read them
                arrays = params["embedding"], run.tables["embedding"], np.arange(len(trained))
                with jax.default_matmul_precision(PRECISION):
                    params["embedding"] = {"table": model.embedding.apply(*arrays)}
                model = dataclasses.replace(model, embedding=Lookup(model.embedding.size))
        params = model.for_lexicon(params, trained, lexicon)
        change = dataclasses.replace(self, digest=lexicon.words_set_digest())
        parts = {"lexicon": lexicon, "params": params, "training_lexicon": trained}
        return run.with_change(change, model, **parts)

    @property
    def label(self):
        method = f"-letters-{self.letters}" if self.letters else "-features" * self.by_features
        return f"{self.name}-{self.digest[:8]}{f'-spread{method}' if self.spread else ''}"

    @property
    def title(self):
        title = f"lexicon {self.digest[:8]}"
        return f"{title}, <unk> spread over new words{self._method}" if self.spread else title

    @property
    def sentence(self):
        spread = f"; the unknown word's probability spread over new words{self._method}"
        return f"over other words than in training{spread if self.spread else ''}"

    @property
    def _method(self):
        by_letters = f" by {self.letters}-grams of their letters" if self.letters else ""
        return " by their features" if self.by_features else by_letters


def _extended(run, words):
    """Returns the lexicon of a run with further words after its own."""
    trained = run.lexicon
    words = tuple(dict.fromkeys((*trained.words, *words)))
    if trained.feature_names:
        return run.experiment.vocabulary.extended(run.experiment.data, trained, words)
    return trained.with_words(words, trained.occurrences(words))


def _read_as_unknown(run, lexicon):
    """Returns (hidden states [n, D], ids in a larger lexicon [n]) of the words of the training text
    that the run read as <unk>."""
    import jax
    import numpy as np

    from zoo.data.batches import Batches
    from zoo.lexicon.lexicon import shares

    model, recipe = run.experiment.language_model, run.experiment.evaluation
    text = run.experiment.vocabulary.encode(run.read("train"), lexicon)
    read_as = shares(run.lexicon, lexicon).word_ids
    step, carry = jax.jit(model.hidden), model.initial_carry(recipe.batch)
    hidden, words = [], []
    for batch in Batches(text, recipe.batch, recipe.length, recipe.state, lexicon.boundary_id):
        arrays = run.params, run.tables, read_as[batch.words], carry
        states, carry = step(*arrays, reset=batch.reset)
        is_new = batch.targets >= len(run.lexicon)
        hidden.append(np.asarray(states)[is_new])
        words.append(batch.targets[is_new])
    if not np.concatenate(words).size:
        raise UserError(
            f"{run.path} knows every word of its training text, so that nothing tells how new "
            "words compete: train with vocabulary.minimum_count=2, or give --spread-unknown."
        )
    return np.concatenate(hidden), np.concatenate(words)


def listed_words(path: str, lexicon: "Lexicon", lower_case: bool = False) -> dict[str, None]:
    """Reads the words of a file, each once, in its order, without the marks of a lexicon."""
    _, text = files.read(path)
    lines = [*enumerate(text.split("\n"), 1)]
    names = table_rows.header(text)
    spaced = any(" " in word for word in lexicon.words)
    if "word" in names and names != [lines[0][1]]:
        spaced = True  # a cell is one word
        lines = [(n, row["word"]) for n, row in table_rows.rows(text, path, "\t", full=True)[1]]
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
