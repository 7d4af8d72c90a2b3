"""Out-of-vocabulary words as a class: the unknown word of a trained head.

Let U be the words of a new lexicon that the head was not trained on, and its unknown word <unk>:

    p'(x | h) = p(<unk> | h) q(x | h)  for x in U,    p'(x | h) = p(x | h)  for all others.

The head does not tell the words of U apart, so they share its probability evenly, q = 1 / |U|: a
baseline for open heads. Or they compete by features phi within the class, as those of a log-linear
head without a background do:

    q(x | h) = exp((W h + c) . phi(x)) / sum_(y in U) exp((W h + c) . phi(y)).

W and c are fitted to the words that training read as <unk>, against all words of the class; with
W = c = 0 the shares are even. phi are the words' features in the lexicon or, with W = 0, the number
of letters and their log-probability by an n-gram model (`zoo.priors.strings`) of the words that the
head was trained on, each counted once. p' sums to one over the new lexicon if all words of the old
lexicon are in it.
"""

import dataclasses

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays.parameter_sharding import Axes
from zoo.base.arrays.types import Params, Tables
from zoo.errors import UserError, check_least
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.heads.head_around import HeadAround
from zoo.heads.log_linear import LogLinear
from zoo.lexicon import Lexicon, with_features
from zoo.lexicon.lexicon import NoUnknownWord, shares
from zoo.priors import strings

# q. Its penalty keeps the weights of features that few words have near 0, where shares are even.
_WITHIN = LogLinear(initial_scale=0.0, penalty=1.0)
# Strongest first: the parameters of each are the start of the next, and few iterations suffice.
_PENALTIES = (10.0, 1.0, 0.3, 0.1)
_ITERATIONS = 30


@dataclasses.dataclass(frozen=True)
class SpreadUnknown(HeadAround):
    """p' of a trained head, for evaluation over words that training did not have.

    The parameters are {"head": the trained head's}, and if new words compete "within": W and c, of
    `fit`. Tied heads raise ValueError, and heads that spell words or have a background UserError.

    Attributes:
      head: the trained head, p.
      lexicon: the words of its training; ignored when heads are compared.
      letters: n of the n-grams of letters by which new words compete; 0 for none.
      by_features: whether new words compete by their features.

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
    by_features: bool = False

    def __post_init__(self):
        check_least(self, "the head", letters=0)
        if self.head.tied:
            raise ValueError(
                "SpreadUnknown takes no tied head, whose weights are the embedding of the words of "
                "training: give the head with tied=False and its weights"
            )
        if self.head.background is not None:
            raise UserError(
                f"a {type(self.head).__name__} has a background, which reads words of the new "
                "lexicon: leave --spread-unknown out, or put "
                "the cache around, WithCache(SpreadUnknown(head, lexicon))."
            )
        if self.head.spells:
            raise UserError(
                f"--spread-unknown is for heads that predict <unk>, and a "
                f"{type(self.head).__name__} can score new words by itself: leave it out."
            )

    @property
    def competes(self) -> bool:
        """Whether new words compete, so that there are parameters to fit."""
        return self.by_features or self.letters > 0

    @property
    def array_shapes(self) -> Shapes | None:
        shapes = self.head.array_shapes
        if shapes is None:
            return None
        params: dict = {f"head/{name}": letters for name, letters in shapes.params.items()}
        if self.competes:
            params["within"] = None
        return Shapes(params, {"head": None, "word_ids": "int N", "log_share": "N"})

    @property
    def parameter_axes(self) -> Axes:
        return {f"head/{name}": axes for name, axes in self.head.parameter_axes.items()}

    def inner_params(self, params: Params) -> Params:
        return params["head"]

    def vocabulary_size(self, params: Params, tables: Tables) -> int | None:
        return len(tables["word_ids"])

    def _tables(self, lexicon: Lexicon) -> Tables:
        """Returns {"head": the head's tables, "word_ids", "log_share"}, see `lexicon.shares`; and
        {"member": the number of each word within U, int [V], "within"} if new words compete."""
        try:
            word_shares = shares(self.lexicon, lexicon)
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
        tables = {
            "head": self.head.evaluation_tables(self.lexicon),
            "word_ids": jnp.asarray(word_shares.word_ids),
            "log_share": jnp.asarray(word_shares.log_share),
        }
        if self.competes:
            member = np.cumsum(word_shares.shared, dtype=np.int32) - 1
            tables["member"] = jnp.asarray(np.maximum(member, 0))
            tables["within"] = _WITHIN.tables(self._unknown_words(lexicon))
        return tables

    def _unknown_words(self, lexicon):
        """Returns the words of U with the features phi."""
        shared = shares(self.lexicon, lexicon).shared
        words = tuple(lexicon.words[word_id] for word_id in np.flatnonzero(shared))
        if self.by_features:
            return dataclasses.replace(lexicon.select_words(words), log_background=None)
        known = {*self.lexicon.words} - {self.lexicon.unknown, self.lexicon.boundary}
        model = strings.letter_model(sorted(known), self.letters, extra_words=words)
        features = [{"letters": model.log_prob(word), "length": len(word)} for word in words]
        return with_features(Lexicon(words, np.zeros(len(words), int)), features)

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        params = {"head": self.head.init(key, hidden_size, self.lexicon)}
        if self.competes:
            params["within"] = _WITHIN.init(key, hidden_size, self._unknown_words(lexicon))
        return params

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        return params

    def fit(self, lexicon: Lexicon, hidden: jax.Array, words: jax.Array) -> Params:
        """Fits W and c: minimises the mean of -log q(x | h) and a penalty, by L-BFGS.

        The lexicon has the words of training, those that training read as <unk>, and the new ones.
        Of `_PENALTIES`, the one is taken with which nine tenths of the words tell most of the last.

        Args:
          words: x, int [n], each word of the training text that was read as <unk>, after hidden.
        """
        tables, members = self._tables(lexicon), self._unknown_words(lexicon)
        start = _WITHIN.init(jax.random.key(0), hidden.shape[1], members)
        hidden, targets = self._states(hidden), tables["member"][words]
        count = max(len(words) * 9 // 10, 1)
        first = hidden[:count] if self.by_features else hidden, targets[:count]
        params, by_log_prob = start, {}
        for penalty in _PENALTIES:
            params = _minimise(penalty, params, tables["within"], *first)
            log_q = _log_q(params, tables["within"], hidden, targets)
            log_prob = log_q[min(count, len(words) - 1) :].mean()
            by_log_prob[float(log_prob)] = penalty, params
        return _minimise(*by_log_prob[max(by_log_prob)], tables["within"], hidden, targets)

    def _states(self, hidden):
        """Returns h, or one state for all tokens where W = 0."""
        return hidden if self.by_features else jnp.zeros(hidden.shape[-1], hidden.dtype)

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
        inner = params["head"], tables["head"], hidden, tables["word_ids"][targets]
        log_prob, log_z = self.head.log_prob_and_log_z(*inner, context=context, prepared=prepared)
        log_share = tables["log_share"][targets]
        if self.competes:
            within = params["within"], tables["within"], self._states(hidden)
            log_q = _log_q(*within, tables["member"][targets])
            log_share = jnp.where(log_share < 0, log_q, log_share)
        return log_prob + log_share, log_z

    def _log_probs(self, params, tables, hidden, context, prepared):
        log_probs = self.head.log_probs(
            params["head"], tables["head"], hidden, context=context, prepared=prepared
        )
        log_probs = log_probs[..., tables["word_ids"]]
        log_share = jnp.broadcast_to(tables["log_share"], log_probs.shape)
        if self.competes:
            within = _WITHIN.log_probs(params["within"], tables["within"], self._states(hidden))
            log_share = jnp.where(log_share < 0, within[..., tables["member"]], log_share)
        return log_probs + log_share


def _log_q(params, tables, hidden, targets):
    """Computes log q of targets after h, [..., D], or after one state for all of them, [D]."""
    if hidden.ndim == 1:
        return _WITHIN.log_probs(params, tables, hidden)[targets]
    return _WITHIN.log_prob(params, tables, hidden, targets)


@jax.jit
@jax.value_and_grad
def _loss(params, penalty, tables, hidden, targets):
    """Computes the mean loss of `_WITHIN`, by one program for all penalties."""
    if hidden.ndim == 1:
        log_q = _log_q(params, tables, hidden, targets)
        return penalty * _WITHIN._penalties(params, hidden) - log_q.mean()
    weights = jnp.full(len(targets), 1 / len(targets))
    loss, unit = _WITHIN.weighted_loss_and_penalty(params, tables, hidden, targets, weights)
    return loss + (penalty - 1) * unit


def _minimise(penalty, params, *text):
    """Returns the parameters of the least loss of `_WITHIN` with a penalty."""
    from scipy import optimize  # half a second, which few commands need

    vector, unravel = jax.flatten_util.ravel_pytree(params)

    def loss_in_double(vector):
        value, gradient = _loss(unravel(jnp.asarray(vector, jnp.float32)), penalty, *text)
        return float(value), np.asarray(jax.flatten_util.ravel_pytree(gradient)[0], np.float64)

    options = {"method": "L-BFGS-B", "options": {"maxiter": _ITERATIONS}}
    fitted = optimize.minimize(loss_in_double, vector, jac=True, **options)
    return unravel(jnp.asarray(fitted.x, jnp.float32))
