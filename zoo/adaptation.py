"""Adaptation: a trained model of this zoo as the background of another.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 4: a background that was trained on much text,
b(x | history), and a log-linear model over it that learns from a little text of another kind where
to depart from it.
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
from zoo.lexicon import Lexicon
from zoo.lexicon.word_mapping import NoUnknownWord, shares
from zoo.models import LanguageModel
from zoo.priors import ContextualBackground
from zoo.runs import location
from zoo.runs.workdir import Workdir
from zoo.sources import files

__all__ = ["Trained", "WithWordsOf"]

logger = logging.getLogger(__name__)


class TrainedRun(typing.NamedTuple):
    """A trained run as it was when it was read from its folder."""

    model: LanguageModel
    lexicon: Lexicon
    params: dict
    tables: dict

    @classmethod
    def read(cls, workdir: str) -> "TrainedRun":
        """Reads the run of a folder; UserError if there is none, or it has classes of strings."""
        files.check_path(workdir)
        folder = Workdir(location.absolute(location.path_of(workdir)))
        if not folder.exists():
            raise UserError(
                f"the background {workdir} holds no run (looked for {folder.path}): train one "
                "there, or start from the folder in which its path is right."
            )
        experiment = folder.experiment()
        if experiment.vocabulary.open_classes:
            raise UserError(
                f"the model of {workdir} has strings outside its lexicon as words "
                "(vocabulary.open_classes), which a background cannot spell: take a run without."
            )
        lexicon = folder.lexicon()
        _, params = folder.params(experiment, lexicon, log=logger.warning)
        # With the tables, a run that this one in turn has as background is read as well.
        model = experiment.language_model
        return cls(model, lexicon, params, model.evaluation_tables(lexicon))


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Static:
    """A model among tables: part of what is compiled, no array."""

    model: LanguageModel


@dataclasses.dataclass(frozen=True)
class Trained(ContextualBackground):
    """b(x | c) = p(x | all words before) under the best parameters of a finished run, frozen.

    A word that the run does not know is read as its <unk>, and all of those share the probability
    of <unk>. Words that it knows and this lexicon does not are left out; the head normalises. With
    the same words b is the run's model exactly.

    The folder is read once, by `prepare` or `tables`, when an experiment is built or a run loaded.
    The other methods read what these have found.

    Attributes:
      workdir: the folder of the run, which must stay as it is.
    """

    workdir: str

    @functools.cached_property
    def _run(self):
        return TrainedRun.read(self.workdir)

    def prepare(self, lexicon, texts):
        """The run's words for those of the lexicon, and a digest of its parameters.

        Raises:
          UserError: there is no such run, it has classes of strings, or it has neither a word nor
            an unknown word.
        """
        _, theirs, params, _ = self._run
        try:
            shared = shares(theirs, lexicon)
        except NoUnknownWord as error:
            word = error.args[0]
            raise UserError(
                f"the model of {self.workdir} does not know {word!r}, nor any unknown word: give "
                "this one a vocabulary of its words, or train it with vocabulary.unknown=counted."
            ) from error
        return {
            "place": shared.word_ids,
            "log_share": shared.log_share,
            "digest": _digest(params),
        }

    def tables(self, lexicon):
        """Model, parameters and tables of the run; UserError if it has changed since `prepare`."""
        model, theirs, params, their_tables = self._run
        kept = lexicon.background_tables
        if not np.array_equal(kept["digest"], _digest(params)):
            raise UserError(
                f"the model of {self.workdir} has changed since it became a background: put back "
                "its checkpoint, or begin a new run."
            )
        same = np.array_equal(kept["place"], np.arange(len(theirs)))
        return {
            "model": Static(model),
            "params": params,
            "tables": their_tables,
            # None if the words are the same in the same order, so that none need be gathered.
            "place": None if same else jnp.asarray(kept["place"]),
            "log_share": jnp.asarray(kept["log_share"]),
        }

    def initial_carry(self, batch):
        """The carry of the run's model before any word.

        Raises:
          ValueError: the run has not been read.
        """
        if "_run" not in vars(self):
            raise ValueError(
                f"{self}.initial_carry: the run has not been read yet; build the experiment, or "
                "make the model's tables, first"
            )
        return self._run.model.initial_carry(batch)

    def apply(self, tables, words, carry, *, reset=None):
        """Runs the trained model: words [B, T] -> ((hidden [B, T, D], the context of its head),
        carry)."""
        hidden, context, carry = tables["model"].model.states(
            tables["params"], tables["tables"], _theirs(tables, words), carry, reset=reset
        )
        return (hidden, context), carry

    def log_prob(self, tables, contexts, words):
        """log b(words | c), nats, [...]."""
        head, *arguments = _head(tables)
        hidden, context = contexts
        log_prob = head.log_prob(*arguments, hidden, _theirs(tables, words), context=context)
        return log_prob + tables["log_share"][words]

    def log_probs(self, tables, contexts):
        """log b of every word, nats, [..., V]."""
        head, *arguments = _head(tables)
        hidden, context = contexts
        log_probs = head.log_probs(*arguments, hidden, context=context)
        if tables["place"] is not None:
            log_probs = log_probs[..., tables["place"]]
        return log_probs + jnp.broadcast_to(tables["log_share"], log_probs.shape)


def _head(tables):
    """(the run's head, its parameters, its tables)."""
    model = tables["model"].model
    return model.head, model.head_params(tables["params"]), tables["tables"]["head"]


def _theirs(tables, words):
    """The run's words for those of the lexicon."""
    return words if tables["place"] is None else tables["place"][words]


@dataclasses.dataclass(frozen=True)
class WithWordsOf(Source):
    """A source whose lexicon also has the words of a run, so that figures are over the same V.

    Attributes:
      source: where the text comes from.
      workdir: the folder of the run.
    """

    source: Source
    workdir: str

    def splits(self):
        return self.source.splits()

    def read(self, split):
        return self.source.read(split)

    def parts(self, split):
        return self.source.parts(split)

    @property
    def form(self):
        return self.source.form

    def with_test(self, path):
        return self.source.with_test(path)

    def within(self):
        return self.source.within()

    def texts(self):
        return self.source.texts()

    def lexicon_entries(self):
        """The words of the run, with what the source knows of them."""
        files.check_path(self.workdir)
        folder = Workdir(self.workdir)
        folder.experiment()  # its error says that there is no run
        lexicon = folder.lexicon()
        marks = (lexicon.unknown, lexicon.boundary)
        words = {word: () for word in lexicon.words if word not in marks}
        return words | self.source.lexicon_entries()


def _digest(params) -> np.ndarray:
    """A hash of all parameters, uint8 [32]."""
    hasher = hashlib.sha256()
    for leaf in jax.tree.leaves(params):
        hasher.update(np.asarray(leaf).tobytes())
    return np.frombuffer(hasher.digest(), np.uint8)
