"""Translation: target sentences given sources, validated by their exact log-perplexity."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo.data.buckets import BucketedPairs, PairBatches
from zoo.errors import UserError
from zoo.evaluation import pair_scores
from zoo.heads import distributions
from zoo.runs import inherited_texts
from zoo.training import parameter_groups, warm_start
from zoo.training.task import Batch, Task, total_steps
from zoo.training.tasks.language_modelling import validation_of


class SourcesAndTargets(NamedTuple):
    """The inputs of a batch; see `zoo.data.pair_batches.PairBatch`."""

    source: np.ndarray  # int32 [B, S]
    lengths: np.ndarray  # int32 [B]
    words: np.ndarray  # int32 [B, T]
    targets: np.ndarray  # int32 [B, T]


class Translation(Task):
    """The task of a `SequenceToSequence` model, on the pairs of an experiment.

    The weights of a batch are 1 for targets that have a loss in training. Batches do not have a
    carry.
    """

    def __init__(self, experiment, lexicon, source_lexicon, corpora: dict):
        """Encodes the pairs and chooses the shapes of their batches."""
        if experiment.training.restart:
            raise UserError(
                "training.restart empties the state along running text, and pairs have none: set "
                "training.restart=0."
            )
        if experiment.training.windows is not None:
            raise UserError(
                "training.windows cuts running text, and pairs are batched whole: set "
                "training.windows=None."
            )
        self.experiment, self.corpora = experiment, corpora
        self.model, self.recipe = experiment.model, experiment.training
        self.lexicon, self.source_lexicon = lexicon, source_lexicon
        self.lexicons = dict(zip(self.model.lexicon_names, (lexicon, source_lexicon), strict=True))
        self.loss_name = self.model.head.loss_name
        self.tables = self.model.tables(lexicon, source_lexicon)
        distributions.check_untrained(self.model, self.tables, lexicon, source_lexicon)
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
        of_epochs = self.epoch_steps * self.recipe.epochs
        self.total_steps = total_steps(of_epochs, self.recipe.steps)
        counted = len(self.pairs.pairs) if self.recipe.mean_over == "pairs" else self.pairs.tokens
        self.usual_weight = max(1.0, counted / self.epoch_steps)

    def init(self, key):
        """Returns the parameters of each component; see `SequenceToSequence.init`."""
        return self.model.init(key, self.lexicon, self.source_lexicon)

    def epoch(self, number):
        """Returns the batches of an epoch, with pairs bucketed by length."""
        generator = np.random.default_rng((self.recipe.seed, number))
        return PairedBatches(self.pairs.epoch(generator if self.recipe.shuffle else None))

    def part(self, batches, index, rows):
        """Reads some pairs of a batch."""
        return batches.part(index, rows)

    def loss(self, params, tables, inputs, weights, carry, key):
        """Computes the model's `weighted_loss` of `SourcesAndTargets`; see Task.loss."""
        return *self.model.weighted_loss(params, tables, *inputs, weights, key=key), carry

    def validate(self, params, mesh=None):
        """Computes the exact log-perplexity of the validation targets, nats per counted token."""
        batch_rows = self.experiment.evaluation.batch
        scores = pair_scores.score(
            self.model, params, self.tables, self.validation, batch_rows, mesh
        )
        return validation_of(scores, self.validation.target, self.lexicon)

    @property
    def parameter_axes(self):
        """Axis names of the embeddings' and the head's parameters."""
        return parameter_groups.axes_of(self.model, ("source_embedding", "embedding", "head"))

    def row_tables(self, shapes):
        """Returns the paths of the word tables of which one step reads only some rows."""
        return self.model.row_tables(shapes)

    def summary(self):
        """Describes the data: words, pairs, shapes, padding and pairs that are left out."""
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
        """Returns a record of this run's texts and of texts that the model's parts saw before."""
        return inherited_texts.of_experiment(self.experiment, self.corpora, self.data, made_with)

    def start(self, path, frozen):
        """Reads the parts of another run that fit; see training.warm_start."""
        return warm_start.read(path, self.model, self.lexicon, frozen, self.source_lexicon)


class PairedBatches(Sequence):
    """Batches of pairs for the trainer."""

    def __init__(self, pairs: PairBatches):
        """Wraps the pairs of an epoch."""
        self.pairs = pairs

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.part(index)

    def part(self, index: int, rows: slice = slice(None)) -> Batch:
        """Returns some pairs of a batch."""
        one = self.pairs.part(index, rows)
        inputs = SourcesAndTargets(one.source, one.lengths, one.words, one.targets)
        batch_rows = np.arange(len(self.pairs.rows[index][0]), dtype=np.int32)[rows]
        return Batch(inputs, one.trained, batch_rows)
