"""A trained model taken from its work directory, ready to be judged."""

import dataclasses
import pathlib
from typing import Any

from zoo.data import Corpus, Source, Text
from zoo.data.lanes import Lanes
from zoo.data.vocabulary import EncodedText
from zoo.errors import UserError
from zoo.evaluation import perplexity
from zoo.experiment import Experiment
from zoo.lexicon import Lexicon
from zoo.workdir import Workdir


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """A run: its recipe, its words and its parameters.

    Attributes:
      path: the work directory. checkpoint: the training step of the parameters.
      params, tables: on the device.
    """

    path: pathlib.Path
    experiment: Experiment
    lexicon: Lexicon
    params: Any
    tables: dict
    checkpoint: int

    @classmethod
    def load(cls, path: str | pathlib.Path) -> "Run":
        """The run of a work directory; UserError if there is none or nothing is trained yet."""
        workdir = Workdir(path)
        experiment, lexicon = workdir.experiment(), workdir.lexicon()
        checkpoint, params = workdir.params(experiment, lexicon)
        tables = experiment.model.tables(lexicon)
        return cls(workdir.path, experiment, lexicon, params, tables, checkpoint)

    def with_state(self, state: str | None) -> "Run":
        """The same run, judged under another state policy (None changes nothing)."""
        if state is None:
            return self
        evaluation = dataclasses.replace(self.experiment.evaluation, state=state)
        return dataclasses.replace(
            self, experiment=dataclasses.replace(self.experiment, evaluation=evaluation)
        )

    def read(self, split: str) -> Corpus:
        """A split of the data, as the vocabulary reads it."""
        return self.experiment.vocabulary.read(self.experiment.data, split)

    def read_file(self, path: str) -> Corpus:
        """A file of the same kind as the data, as the vocabulary reads it."""
        return self.experiment.vocabulary.read(_as_test(self.experiment.data, path), "test")

    def score(self, corpus: Corpus) -> tuple[EncodedText, perplexity.Scores]:
        """(the corpus as word ids, exact log-probabilities of them under the state policy).

        Raises:
          UserError: the figures would count no token of the corpus.
        """
        judged, model = self.experiment.evaluation, self.experiment.model
        text = self.experiment.vocabulary.encode(corpus, self.lexicon)
        boundary = self.lexicon.ids.get(self.lexicon.boundary)
        lanes = Lanes(text, judged.lanes, judged.length, judged.state, boundary)
        scores = perplexity.score(model, self.params, self.tables, text, lanes)
        if not scores.tokens:
            raise UserError(
                f"no token of {corpus.name} is counted: give a text that has words of the lexicon, "
                "or another vocabulary.unknown or vocabulary.boundary in training."
            )
        return text, scores


def _as_test(source: Source, path: str) -> Source:
    """The source with `path` as its only test file; a source without files gives way to text."""
    if any(field.name == "tests" for field in dataclasses.fields(source)):
        return dataclasses.replace(source, tests=(path,))
    return Text(train=path, validation=path, tests=(path,))
