"""Adaptation: a trained model as the background of another.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 4: a background b(x | history) is trained on
much text, and a log-linear model over it learns from little text of another kind where to depart
from it.
"""

import dataclasses
import functools
import hashlib
import logging
import typing

import jax
import jax.numpy as jnp
import numpy as np

from zoo.data import Source
from zoo.errors import UserError
from zoo.lab.runs import location
from zoo.lab.runs.workdir import Workdir
from zoo.lexicon import Lexicon
from zoo.lexicon.lexicon import NoUnknownWord, shares
from zoo.models import LanguageModel
from zoo.priors import ContextualBackground
from zoo.sources import files

__all__ = ["Trained", "WithWordsOf"]

logger = logging.getLogger(__name__)


class TrainedRun(typing.NamedTuple):
    """A trained run, read from its folder."""

    model: LanguageModel
    lexicon: Lexicon
    params: dict
    tables: dict

    @classmethod
    def read(cls, workdir: str) -> "TrainedRun":
        """Reads the run of a folder."""
        files.check_path(workdir)
        folder = Workdir(location.absolute(location.to_path(workdir)))
        if not folder.exists():
            raise UserError(
                f"the background {workdir} does not hold a run (looked for {folder.path}): train "
                "one there, or start Zoo in the folder to which this path is relative."
            )
        experiment = folder.experiment()
        if experiment.vocabulary.open_classes:
            raise UserError(
                f"the model of {workdir} has strings outside its lexicon as words "
                "(vocabulary.open_classes), which a background cannot spell: take a run without."
            )
        lexicon = folder.lexicon()
        _, params, _ = folder.best(experiment, (lexicon,), log=logger.warning)
        # Evaluation tables include the run that is the background of this run, if there is one.
        model = experiment.language_model
        params = jax.tree.map(jnp.asarray, params)
        return cls(model, lexicon, params, model.evaluation_tables(lexicon))


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Static:
    """A model in a pytree of tables, as static data of compiled functions."""

    model: LanguageModel


@dataclasses.dataclass(frozen=True)
class Trained(ContextualBackground):
    """A background b(x | c) = p(x | all words before) under a run's best parameters, frozen.

    A word that the run does not know is read as the run's `<unk>`; all such words share the
    probability of `<unk>`. Words of the run that this lexicon does not have are left out; the head
    normalises. With the same words b is exactly the run's model.

    `prepare` or `tables` reads the folder once, when an experiment is built or a run loaded. The
    other methods use the model and tables that were read.

    Attributes:
      workdir: the folder of the run, which must stay as it is.
    """

    workdir: str

    @functools.cached_property
    def _run(self):
        return TrainedRun.read(self.workdir)

    def prepare(self, lexicon, texts):
        """Maps the words of the lexicon to words of the run, and hashes the run's parameters."""
        _, run_lexicon, params, _ = self._run
        try:
            words = shares(run_lexicon, lexicon)
        except NoUnknownWord as error:
            word = error.args[0]
            raise UserError(
                f"the model of {self.workdir} does not have {word!r} or an unknown word: give this "
                "model a vocabulary of that model's words, or train that model with "
                "vocabulary.unknown=counted."
            ) from error
        return {"place": words.word_ids, "log_share": words.log_share, "digest": _digest(params)}

    def tables(self, lexicon):
        """Returns model, parameters and tables of the run, and the map of its words."""
        model, run_lexicon, params, run_tables = self._run
        background = lexicon.background_tables
        if not np.array_equal(background["digest"], _digest(params)):
            raise UserError(
                f"the model of {self.workdir} has changed since it became a background: put back "
                "its checkpoint, or begin a new run."
            )
        same_words = np.array_equal(background["place"], np.arange(len(run_lexicon)))
        return {
            "model": Static(model),
            "params": params,
            "tables": run_tables,
            # None if the words are the same in the same order: then no gather is needed.
            "place": None if same_words else jnp.asarray(background["place"]),
            "log_share": jnp.asarray(background["log_share"]),
        }

    def initial_carry(self, batch):
        """Returns the carry of the run's model before the first word."""
        if "_run" not in vars(self):
            raise ValueError(
                f"{self}.initial_carry: the run has not been read yet; build the experiment, or "
                "make the model's tables, first"
            )
        return self._run.model.initial_carry(batch)

    def apply(self, tables, words, carry, *, reset=None):
        """Runs the trained model over words [B, T]."""
        hidden, context, carry = tables["model"].model.states(
            tables["params"], tables["tables"], _run_words(tables, words), carry, reset=reset
        )
        return (hidden, context), carry

    def log_prob(self, tables, contexts, words):
        """Computes log b(words | c), nats, [...]."""
        head, *arguments = _head(tables)
        hidden, context = contexts
        log_prob = head.log_prob(*arguments, hidden, _run_words(tables, words), context=context)
        return log_prob + tables["log_share"][words]

    def log_probs(self, tables, contexts):
        """Computes log b(x | c) for every word x, nats, [..., V]."""
        head, *arguments = _head(tables)
        hidden, context = contexts
        log_probs = head.log_probs(*arguments, hidden, context=context)
        if tables["place"] is not None:
            log_probs = log_probs[..., tables["place"]]
        return log_probs + jnp.broadcast_to(tables["log_share"], log_probs.shape)


def _head(tables):
    """Returns (the run's head, its parameters, its tables)."""
    model = tables["model"].model
    return model.head, model.head_params(tables["params"]), tables["tables"]["head"]


def _run_words(tables, words):
    """Maps word ids of the lexicon to word ids of the run."""
    return words if tables["place"] is None else tables["place"][words]


def _source_attribute(name) -> typing.Any:
    return property(lambda self: getattr(self.source, name))


@dataclasses.dataclass(frozen=True)
class WithWordsOf(Source):
    """A source whose lexicon also has the words of a run, so that perplexities have the same V.

    Attributes:
      source: the source of the text.
      workdir: the folder of the run.
    """

    source: Source
    workdir: str

    # What the source tells of itself, and its methods.
    is_character_level, unknowns, generated, form = map(
        _source_attribute, ("is_character_level", "unknowns", "generated", "form")
    )
    splits, read, parts = map(_source_attribute, ("splits", "read", "parts"))
    with_test, within, texts = map(_source_attribute, ("with_test", "within", "texts"))

    def as_written(self):
        return dataclasses.replace(self, source=self.source.as_written())

    def lexicon_entries(self):
        """Returns the words of the run, with the features that the source has for them."""
        files.check_path(self.workdir)
        folder = Workdir(self.workdir)
        folder.experiment()  # raises UserError if the folder does not hold a run
        lexicon = folder.lexicon()
        marks = (lexicon.unknown, lexicon.boundary)
        words = {word: () for word in lexicon.words if word not in marks}
        return words | self.source.lexicon_entries()


def _digest(params) -> np.ndarray:
    """Hashes all parameters, uint8 [32]."""
    hasher = hashlib.sha256()
    for leaf in jax.tree.leaves(params):
        hasher.update(np.asarray(leaf).tobytes())
    return np.frombuffer(hasher.digest(), np.uint8)
