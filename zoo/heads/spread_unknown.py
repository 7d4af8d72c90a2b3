"""Out-of-vocabulary words that share the unknown word's probability: a baseline for open heads.

Let U be the words of a new lexicon that the head was not trained on, and its unknown word <unk>:

    p'(x | h) = p(<unk> | h) / |U|  for x in U,    p'(x | h) = p(x | h)  for all others.

The head does not tell the words of U apart, so they share its probability evenly. Letters may weigh
the shares instead:

    p'(x | h) = p(<unk> | h) (1 - 1 / |U|) q(x) / sum_(y in U') q(y)  for x in U' = U without <unk>

q is an n-gram model of the letters of the words that the head was trained on, each counted once
(`zoo.priors.strings`). The probabilities sum to one over the new lexicon if all words
of the old lexicon are in it.
"""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.base.arrays.types import Params, Tables
from zoo.errors import UserError, check_least
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.heads.head_around import HeadAround
from zoo.lexicon import Lexicon
from zoo.lexicon.lexicon import NoUnknownWord, shares
from zoo.priors import strings
from zoo.priors.prior import Contextual


@dataclasses.dataclass(frozen=True)
class SpreadUnknown(HeadAround):
    """p' of a trained head, for evaluation over words that training did not have.

    Tied heads raise ValueError, and heads that can score new words by themselves UserError.

    Attributes:
      head: the trained head, p.
      lexicon: the words of its training; ignored when heads are compared.
      letters: n of the n-grams of letters; 0 for even shares.

    Example:
      >>> lexicon = Lexicon(words=("<unk>", "cat"), counts=np.array([3, 1]), unknown="<unk>")
      >>> words, counts = ("<unk>", "cat", "dog"), np.array([3, 1, 0])
      >>> new_lexicon = Lexicon(words, counts, unknown="<unk>")
      >>> head = heads.SpreadUnknown(heads.Softmax(initial_scale=0.0), lexicon)
      >>> params, tables = head.init(key, 4, new_lexicon), head.tables(new_lexicon)
      >>> jnp.exp(head.log_prob(params, tables, hidden, targets)).round(2).tolist()
      [0.25, 0.25]
    """

    head: Head
    lexicon: Lexicon = dataclasses.field(compare=False, repr=False)
    letters: int = 0

    def __post_init__(self):
        check_least(self, "the head", letters=0)
        if self.head.tied:
            raise ValueError(
                "SpreadUnknown takes no tied head, whose weights are the embedding of the words of "
                "training: give the head with tied=False and its weights"
            )
        if isinstance(self.head.background, Contextual) and self.head.background.reads_states:
            raise UserError(
                f"a {type(self.head).__name__} remembers words of the new lexicon: put "
                "the cache around, WithCache(SpreadUnknown(head, lexicon))."
            )
        if type(self.head).for_lexicon is not Head.for_lexicon:
            raise UserError(
                f"--spread-unknown is for heads whose parameters belong to words, and a "
                f"{type(self.head).__name__} can score new words by itself: leave it out."
            )

    @property
    def array_shapes(self) -> Shapes | None:
        shapes = self.head.array_shapes
        tables = {"head": None, "word_ids": "int N", "log_share": "N"}
        return None if shapes is None else Shapes(shapes.params, tables)

    def vocabulary_size(self, params: Params, tables: Tables) -> int | None:
        return len(tables["word_ids"])

    def _tables(self, lexicon: Lexicon) -> Tables:
        """Returns {"head": the head's tables, "word_ids", "log_share"}; see `lexicon.shares`."""
        try:
            letter_model = self._spelling_log_probs if self.letters else None
            word_shares = shares(self.lexicon, lexicon, letter_model)
        except NoUnknownWord as error:
            raise UserError(
                f"this run has no unknown word whose probability {error.args[0]!r} could share: "
                "train with vocabulary.unknown=counted and vocabulary.minimum_count=2."
            ) from error
        missing = set(range(len(self.lexicon))) - set(word_shares.word_ids.tolist())
        if missing:
            word = self.lexicon.words[min(missing)]
            raise UserError(
                "--spread-unknown needs a file with all words of the run, whose probabilities "
                f"would otherwise be lost: {len(missing):,} are missing, such as {word!r}."
            )
        return {
            "head": self.head.evaluation_tables(self.lexicon),
            "word_ids": jnp.asarray(word_shares.word_ids),
            "log_share": jnp.asarray(word_shares.log_share),
        }

    def _spelling_log_probs(self, words: list[str]) -> list[float]:
        marks = {self.lexicon.unknown, self.lexicon.boundary}
        training_words = [word for word in self.lexicon.words if word not in marks]
        model = strings.letter_model(training_words, self.letters, extra_words=words)
        return [*map(model.log_prob, words)]

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        return self.head.init(key, hidden_size, self.lexicon)

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        return params

    # Not the inner head's: they concern the new words, and nothing is trained.
    normalised_over = Head.normalised_over
    _evaluation_tables = Head._evaluation_tables
    _penalties = Head._penalties

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts the words that share the unknown word's probability, beside the head's own."""
        word_shares = shares(self.lexicon, lexicon)
        count = {"words that share the unknown word's probability": int(word_shares.shared.sum())}
        return self.head.warnings(self.lexicon) | count

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        inner = params, tables["head"], hidden, tables["word_ids"][targets]
        log_prob, log_z = self.head.log_prob_and_log_z(*inner, context=context, prepared=prepared)
        return log_prob + tables["log_share"][targets], log_z

    def _log_probs(self, params, tables, hidden, context, prepared):
        log_probs = self.head.log_probs(
            params, tables["head"], hidden, context=context, prepared=prepared
        )
        log_probs = log_probs[..., tables["word_ids"]]
        return log_probs + jnp.broadcast_to(tables["log_share"], log_probs.shape)
