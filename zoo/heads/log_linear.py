"""The log-linear head: words as sets of features over a background.

Dymetman and Xiao, "Log-linear RNNs: towards recurrent neural networks with flexible prior
knowledge" (2016), section 2. With the adaptor a = W h + c over F features,

    p(x | h) = b(x) exp(a . phi(x)) / sum_v b(v) exp(a . phi(v)).

Words with the same features share a . phi. Let the signatures s be the distinct feature sets, and
B(s) the background mass of the words with the signature s. Then

    p(x | h) = p(s(x) | h) * b(x) / B(s(x)),    p(s | h) proportional to B(s) exp(a . phi_s),

and a . phi_s = (W^T phi_s) . h + c . phi_s. So the head is an exact softmax over signatures: its
weights are sums of feature vectors, its bias includes log B(s), and it costs S classes instead of
V. If there are many signatures with few features each, which they share, it is cheaper to compute
scores as a sparse product of the adaptor: see zoo.losses.log_linear.

If the background depends on a context c, b(x | c), so does the mass of each signature, and

    -log p(x | h, c) = log Z - a . phi(x) - log b(x | c),    Z = sum_s B(s | c) exp(a . phi_s).
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from zoo.base.arrays import precision
from zoo.base.arrays.parameter_sharding import FEATURES, HIDDEN, axes
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.types import Context, Params, Prepared, Tables
from zoo.errors import UserError, check_choices, check_least
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.lexicon import Lexicon, feature_signatures
from zoo.losses import log_linear, softmax
from zoo.losses.token_blocks import is_absent, stop_weight_gradients, weighted_sum
from zoo.losses.weighted_softmax import weighted_softmax_loss
from zoo.priors import ContextualBackground


@dataclasses.dataclass(frozen=True)
class LogLinear(Head):
    """p(x | h) proportional to b(x) exp(a . phi(x)), a = W h + c (equations 11 to 14).

    Features phi and background b come from the lexicon. With one identity feature for each word and
    a uniform background, the head is the softmax (section 2.4). A background that depends on the
    words before may replace the lexicon's.

    Attributes:
      tied: whether the feature vectors W are shared with an embeddings.Features; the model then
        passes its table as params["weights"].
      initial_scale: feature vectors start uniform in +-initial_scale, c at 0. The head starts near
        its background; with 0, it starts at it.
      background: b(x | c), whose contexts the model passes as `context`; None for the lexicon's.
      kinds: the kinds of features to use, the part of a feature's name before the colon ("Word",
        "POS"); () for all.
      penalty: lambda of lambda sum_f |a_f|^p, added to the loss of each token; 0 for none. It draws
        the adaptor to 0 and so the model to its background (section 2.2).
      penalty_norm: p, at least 1.
      form: how scores are computed, "dense_sums", "sparse_sums" or "product": see
        `zoo.lexicon.feature_signatures`; "auto" for the cheapest by an estimate. The form only
        changes speed and rounding.

    Raises:
      UserError: `form` is unknown, or it is "product" although there is a `background`, which needs
        sums.

    Example:
      >>> features = [{"Article": 1.0}, {"Noun": 1.0}, {"Verb": 1.0}]
      >>> lexicon = with_features(lexicon, features, np.log([0.5, 0.3, 0.2]))
      >>> head = heads.LogLinear(initial_scale=0.0)  # the background, to begin with
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> np.exp(head.log_prob(params, tables, hidden, targets)).round(2)
      array([0.5, 0.2], dtype=float32)
    """

    tied: bool = False
    initial_scale: float = 0.05
    background: ContextualBackground | None = None
    kinds: tuple[str, ...] = ()
    penalty: float = 0.0
    penalty_norm: float = 2.0
    form: str = "auto"

    parameter_axes = axes(weights=(FEATURES, HIDDEN), bias=(FEATURES,))

    def __post_init__(self):
        check_least(self, penalty=0, penalty_norm=1)
        check_choices(self, form=("auto", *feature_signatures.BY_NAME))
        if self.background is not None and self.form == "product":
            raise UserError(
                "form of LogLinear is 'product', which supports only the lexicon's background, and "
                f"its background is a {type(self.background).__name__}: give one of auto, "
                "dense_sums, sparse_sums."
            )

    @property
    def array_shapes(self) -> Shapes:
        tables: dict[str, str | None] = {"signature": "int V", "log_mass": "S", "log_within": "V"}
        if self.background is not None:
            tables["background"] = None
        return Shapes({"weights": "F D", "bias": "F"}, tables)

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws {"weights": W, [F, D], unless tied, "bias": c, [F]}."""
        if not lexicon.feature_names:
            raise UserError(
                "the log-linear head needs words with features, and this lexicon has none: "
                "give the config's vocabulary some, such as features=(priors.TopWords(2500), "
                "priors.Morphology()), or a lexicon of your own by zoo.data.with_priors."
            )
        shape = (len(lexicon.with_kinds(self.kinds).feature_names), hidden_size)
        params = {"bias": jnp.zeros(shape[0])}
        if not self.tied:
            params["weights"] = uniform(key, shape, self.initial_scale)
        return params

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Returns the parameters unchanged: none belongs to a word."""
        if self.background is not None:
            raise UserError(
                f"the log-linear head's background, a {type(self.background).__name__}, was made "
                "for the words of training: the head cannot score with another lexicon."
            )
        lexicon.check_same_features(new_lexicon)
        return params

    def _tables(self, lexicon: Lexicon) -> Tables:
        lexicon = lexicon.with_kinds(self.kinds)
        if not lexicon.feature_names:
            return {}
        if self.form != "auto":
            forms: tuple | None = (feature_signatures.BY_NAME[self.form],)
        else:  # a background of its own needs the weights of a softmax over signatures
            forms = None if self.background is None else feature_signatures.SUMS
        form = feature_signatures.choose_form(lexicon, forms) if forms else None
        tables: Tables = lexicon.tables(form)
        if self.background is not None:
            tables["background"] = self.background.tables(lexicon)
        return tables

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        if params["bias"] is None:
            return ()  # prepared arrays stand for them
        return (("features", len(params["bias"]), feature_signatures.feature_count(tables)),)

    def form_name(self, tables: Tables):
        return feature_signatures.form_of(tables).name.lower()

    def _signature_weights(self, params: Params, tables: Tables):
        """Computes the weights [S, D] and the bias [S] of the softmax over signatures; the bias
        includes log B(s), unless B(s) depends on the context."""
        vectors = params["weights"]
        weights = precision.rounded_as(feature_signatures.sum_features(tables, vectors), vectors)
        bias = feature_signatures.sum_features(tables, params["bias"][:, None])[:, 0]
        return weights, bias if self.background is not None else bias + tables["log_mass"]

    def _prepared(self, params: Params, tables: Tables) -> Prepared:
        """Computes (weights [S, D], bias [S]) of the softmax over signatures, if there is one."""
        return None if self._is_product(tables) else self._signature_weights(params, tables)

    def prepared_shapes(self, tables: Tables, hidden_size: int):
        count = len(tables["log_mass"])
        return None if self._is_product(tables) else ((count, hidden_size), (count,))

    def _is_product(self, tables: Tables) -> bool:
        """Whether scores are a sparse product of the adaptor, not a softmax over signatures."""
        return feature_signatures.form_of(tables) is feature_signatures.Form.PRODUCT

    def _measure(self, tables: Tables, context: Context) -> dict[str, Any]:
        """Returns log B(s | c), a measure for the softmax's losses; {} if the bias includes it."""
        if self.background is None:
            return {}
        log_masses = jax.tree_util.Partial(
            functools.partial(_log_masses, self.background, tables["log_mass"].shape[0]),
            tables["background"],
            tables["signature"],
        )
        width = len(tables["signature"])
        return {"log_measure": log_masses, "contexts": context, "width": width}

    def _log_offset(self, tables: Tables, context: Context, targets: jax.Array):
        """Computes the part of log p(targets) that the network does not change: log b(x) - log
        B(s(x)), or log b(x | c) if the signatures' measure is B(s | c)."""
        if self.background is None:
            return tables["log_within"][targets]
        return jax.lax.stop_gradient(
            self.background.log_prob(tables["background"], context, targets)
        )

    def adaptor(self, params: Params, hidden: jax.Array):
        """Computes a = W h + c, [..., F]."""
        return softmax.logits(hidden, params["weights"], params["bias"])

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        log_offset = self._log_offset(tables, context, targets)
        token_weights = stop_weight_gradients(token_weights, is_absent(log_offset, token_weights))
        weighted_signatures = tables["signature"][targets], token_weights
        if self._is_product(tables):
            features = tables, params["weights"], params["bias"]
            loss = log_linear.weighted_sparse_log_linear_loss(
                *features, hidden, *weighted_signatures
            )
        else:
            weights, bias = self._signature_weights(params, tables)
            measure = self._measure(tables, context)
            loss = weighted_softmax_loss(hidden, weights, bias, *weighted_signatures, **measure)
        return loss - weighted_sum(log_offset, token_weights)

    def _penalties(self, params: Params, hidden: jax.Array) -> jax.Array | None:
        """Computes penalty * sum_f |a_f|^penalty_norm, [...]."""
        if not self.penalty:
            return None
        return log_linear.adaptor_penalty(
            hidden, params["weights"], params["bias"], self.penalty, self.penalty_norm
        )

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        signatures = tables["signature"][targets]
        if self._is_product(tables):
            features = tables, params["weights"], params["bias"]
            loss, log_z = log_linear.sparse_log_linear_loss(*features, hidden, signatures)
        else:
            weights, bias = prepared or self._signature_weights(params, tables)
            measure = self._measure(tables, context)
            loss, log_z = softmax.softmax_loss(hidden, weights, bias, signatures, **measure)
        return self._log_offset(tables, context, targets) - loss, log_z

    def target_scores(self, params, tables, hidden, targets, context, prepared):
        """Computes a . phi(x) plus the logarithm of the background, see `Head.target_scores`; None
        for the form "product", or if the background depends on the context."""
        if self._is_product(tables) or self.background is not None:
            return None
        weights, bias = prepared or self._signature_weights(params, tables)
        logits = softmax.target_logits(hidden, weights, bias, tables["signature"][targets])
        return tables["log_within"][targets] + logits

    # `_top_k` and `_sample` are inherited: they score all words, by blocks of tokens. To go over
    # the S signatures instead would need tables of the words of each, which nothing else needs; to
    # gather a vector for each word from its signature would cost V D products a token.

    def _log_probs(self, params, tables, hidden, context, prepared):
        if self._is_product(tables):
            features = tables, params["weights"], params["bias"]
            log_probs = log_linear.sparse_log_linear_log_probs(*features, hidden)
            return self._word_log_probs(tables, log_probs)
        weights, bias = prepared or self._signature_weights(params, tables)
        scores = softmax.logits(hidden, weights, bias)
        if self.background is None:
            return self._word_log_probs(tables, jax.nn.log_softmax(scores, axis=-1))
        log_background = self.background.log_probs(tables["background"], context)
        log_background = jax.lax.stop_gradient(log_background).astype(scores.dtype)
        return jax.nn.log_softmax(scores[..., tables["signature"]] + log_background, axis=-1)

    def _word_log_probs(self, tables: Tables, log_probs):
        """Computes log p of words, [..., V], from log p of signatures, [..., S]."""
        words = log_probs[..., tables["signature"]]
        return words + jnp.broadcast_to(tables["log_within"], words.shape)


def _log_masses(background, signatures, tables, signature, contexts):
    """Computes log B(s | c), [..., S], without gradient."""
    return jax.lax.stop_gradient(background.log_masses(tables, contexts, signature, signatures))
