"""Translation: sentences given others, validated by their exact log-perplexity."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo.data.buckets import BucketedPairs, PairBatches
from zoo.errors import UserError
from zoo.evaluation import pair_scores
from zoo.runs import text_history
from zoo.training import parameter_groups, warm_start
from zoo.training.task import Batch, Task
from zoo.training.tasks.language_modelling import validation_of


class SourcesAndTargets(NamedTuple):
    """The inputs of a batch; see `zoo.data.buckets.PairBatch`.

    Attributes:
      source: int32 [B, S].
      lengths: int32 [B].
      words: int32 [B, T].
      targets: int32 [B, T].
    """

    source: np.ndarray
    lengths: np.ndarray
    words: np.ndarray
    targets: np.ndarray


class Translation(Task):
    """A `SequenceToSequence` on the pairs of an experiment.

    The weights of a batch are 1 for targets that have a loss in training. No batch hands anything
    to the next.
    """

    def __init__(self, experiment, lexicon, source_lexicon, corpora: dict):
        """Encodes the pairs and chooses the shapes of their batches.

        Args:
          experiment: the recipe.
          lexicon: of the translations.
          source_lexicon: of the sources.
          corpora: {split: Corpus} with at least "train" and "validation".

        Raises:
          UserError: no token of the validation text is counted, or all pairs are too long.
        """
        self.experiment, self.corpora = experiment, corpora
        self.model, self.recipe = experiment.model, experiment.training
        self.lexicon, self.source_lexicon = lexicon, source_lexicon
        self.lexicons = dict(zip(self.model.lexicon_names, (lexicon, source_lexicon), strict=True))
        self.loss_name = self.model.head.loss_name
        self.tables = self.model.tables(lexicon, source_lexicon)
        train, self.validation = (
            pair_scores.read(experiment, lexicon, source_lexicon, corpora[split])
            for split in ("train", "validation")
        )
        if not self.validation.target.counted.any():
            raise UserError(f"no token of {corpora['validation'].name} is counted: give another.")
        buckets = self.recipe.buckets
        self.pairs = BucketedPairs(train, self.recipe.batch, buckets.padding, buckets.longest)
        texts = train.target, self.validation.target, train.source, self.validation.source
        self.data = "-".join(text.digest() for text in texts)
        self.epoch_steps = self.pairs.steps
        self.total_steps = self.epoch_steps * self.recipe.epochs
        counted = len(self.pairs.pairs) if self.recipe.mean_over == "pairs" else self.pairs.tokens
        self.usual_weight = max(1.0, counted / self.epoch_steps)

    def init(self, key):
        """The parameters of each component; see `SequenceToSequence.init`."""
        return self.model.init(key, self.lexicon, self.source_lexicon)

    def epoch(self, number):
        """The pairs in buckets, as batches, in an order of the epoch's own if they are shuffled."""
        generator = np.random.default_rng((self.recipe.seed, number))
        return Batches(self.pairs.epoch(generator if self.recipe.shuffle else None))

    def part(self, batches, index, rows):
        """Some pairs of a batch, read alone."""
        return batches.part(index, rows)

    def loss(self, params, tables, inputs, weights, carry, key):
        """The sums of the model's `weighted_loss` over `SourcesAndTargets`."""
        return *self.model.weighted_loss(params, tables, *inputs, weights, key=key), carry

    def validate(self, params, mesh=None):
        """Log-perplexity of the validation translations, nats per counted token, exact."""
        lanes = self.experiment.evaluation.lanes
        scores = pair_scores.score(self.model, params, self.tables, self.validation, lanes, mesh)
        return validation_of(scores, self.validation.target, self.lexicon)

    @property
    def parameter_axes(self):
        """Of both embeddings and the head."""
        return parameter_groups.axes_of(self.model, ("source_embedding", "embedding", "head"))

    def row_tables(self, shapes):
        """Tables of words of which a step reads the rows of some words alone."""
        return self.model.row_tables(shapes)

    def summary(self):
        """Words, pairs, shapes, padding and what is left out."""
        pairs, shapes = self.pairs, self.pairs.shapes
        longest = self.recipe.buckets.longest
        left_out = (
            f"{pairs.dropped:,} pairs with more than training.buckets.longest={longest} words on a "
            "side are left out of training; "
            if pairs.dropped
            else ""
        )
        named = ", ".join(f"{source} x {target}" for source, target in shapes)
        sizes = f"{len(shapes)} shape{'s' * (len(shapes) > 1)} (source x target: {named})"
        return (
            f"{left_out}{len(self.source_lexicon):,} source words, {len(self.lexicon):,} target "
            f"words, {len(pairs.pairs):,} pairs, {pairs.tokens:,} target tokens, "
            f"{self.epoch_steps:,} steps an epoch in {sizes}, {pairs.padding:.1%} padding"
        )

    def seen_texts(self, made_with):
        """The training and validation text, and what the model's parts had seen before."""
        return text_history.of_experiment(self.experiment, self.corpora, self.data, made_with)

    def start(self, path, frozen):
        """The parts of another run that fit; see training.start_values."""
        return warm_start.read(path, self.model, self.lexicon, frozen, self.source_lexicon)


class Batches(Sequence):
    """Batches of pairs for the trainer."""

    def __init__(self, pairs: PairBatches):
        """Of the pairs of an epoch."""
        self.pairs = pairs

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.part(index)

    def part(self, index: int, rows: slice = slice(None)) -> Batch:
        """Some pairs of the i-th batch."""
        one = self.pairs.part(index, rows)
        inputs = SourcesAndTargets(one.source, one.lengths, one.words, one.targets)
        lanes = np.arange(len(self.pairs.rows[index][0]), dtype=np.int32)[rows]
        return Batch(inputs, one.trained, lanes)
