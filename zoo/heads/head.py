"""The base class of heads, which turn a hidden state into a distribution over words."""

import math
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp

from zoo.base.arrays import row_blocks
from zoo.base.arrays.parameter_sharding import Axes, partition_specs
from zoo.base.arrays.types import Context, Key, Params, Prepared, Tables
from zoo.base.component_registry import Component
from zoo.errors import UserError
from zoo.heads import checks
from zoo.heads.checks import Shapes
from zoo.lexicon import Lexicon
from zoo.losses import chosen_words, entropy, softmax, top_k
from zoo.losses.entropy import Statistics
from zoo.losses.shaping import Shaping
from zoo.losses.token_blocks import weighted_sum
from zoo.losses.weighted_softmax import TokenReport
from zoo.priors.prior import Contextual


class SoftmaxArrays(NamedTuple):
    """The arguments of a softmax over the words, of heads whose log p is a softmax."""

    hidden: jax.Array  # [..., D]
    weights: jax.Array  # [V, D]
    bias: jax.Array  # [V]
    soft_cap: float | None = None


def _is_one(temperature) -> bool:
    return isinstance(temperature, int | float) and temperature == 1


class Head(Component):
    """Base class of heads, which train, score and sample. Subclasses are frozen dataclasses.

    Methods are pure functions. Shapes: hidden [..., D], targets and words int32 [...], losses and
    log-probabilities [...] in nats per token. Token weights are [...] or broadcast to it by the
    rules of numpy; booleans and whole numbers become floats. Other shapes raise ValueError, and so
    do tables of another lexicon than the parameters and targets that are not words, unless they
    have weight 0. In compiled code, where targets have no values yet, the result for such a target
    is NaN, and it causes no gradient. Without tokens, results are empty and sums are 0.

    Users call the public methods, which are written once, here, and check their arguments. A head
    writes the same methods with an underscore. These take checked arguments of regular shapes and
    types, by these names and in this order:

        _init(key, hidden_size, lexicon) -> params
        _log_prob_and_log_z(params, tables, hidden, targets, context, prepared) -> ([...], [...])
        _log_probs(params, tables, hidden, context, prepared) -> [..., V], unless it is open

    Optional are

        _tables(lexicon) -> pytree of arrays that describe the words
        _evaluation_tables(lexicon) -> the same without the arrays that only the loss reads
        _loss(params, tables, hidden, targets, key, context) -> [...], if it is not -log p
        _weighted_loss(params, tables, hidden, targets, token_weights, key, context) -> a scalar
        _penalties(params, hidden) -> [...], added to the losses
        _prepared(params, tables) -> pytree of arrays, computed once for many batches
        _as_softmax(params, tables, hidden, prepared) -> `SoftmaxArrays`, if log p is a softmax's
        _sample(params, tables, hidden, key, context, prepared) -> [...]
        _top_k(params, tables, hidden, k, context, prepared) -> (log_probs [..., k], words [..., k])

    `loss` is the objective of training: it may be sampled, and includes all penalties. Train on
    `weighted_loss`, the sum of token_weights * loss: it is faster, and it handles padding. A token
    of weight 0 adds nothing to the sum, whatever its hidden state and target are, and the only
    gradient that it causes is its own weight's. Report `log_prob`. log Z is the logarithm of the
    normaliser of the head's scores: where it is near 0 for every hidden state, the scores may be
    used without normalising. `context` is a prior's input beside the hidden state. At a temperature
    T, p(x | h)^(1/T) divided by its sum replaces p(x | h).

    Arguments of methods:
      lexicon: the words.
      hidden_size: D.
      vocabulary: V.
      params: the result of `init`, or trained parameters.
      tables: `tables` of the lexicon; `evaluation_tables` are enough to score and to sample.
      hidden: h, [..., D].
      targets: x, int [...], each in [0, V).
      token_weights: u, [...] or broadcast to it; 0 for padding, whose hidden states and targets may
        be anything.
      key: a key of `jax.random`: for a sampled loss, a head's own dropout, `init` and `sample`.
      context: the context of a background or expert, leaves [..., ?].
      prepared: the result of `prepared`, computed once for many batches; None to compute it anew.
      temperature: T, above 0: a number, or an array of one number or of one for each token, [...],
        which gets a gradient.
    """

    # Whether the output weights are the embedding's table, handed in as params["weights"].
    tied: bool = False
    # The kinds of features that the rows of the parameters belong to, () for all kinds; None if the
    # rows belong to something else, such as words.
    kinds: tuple[str, ...] | None = None
    # Whether the head can spell words letter by letter, as heads.CharLSTM does; and if so, whether
    # its probabilities are renormalised over the lexicon's words.
    spells: bool = False
    renormalised: bool = False

    def __init_subclass__(cls, **options):
        """Raises TypeError for a head that overrides a method that checks arguments.

        A head that makes other arrays than its base without declaring their shapes declares none.
        """
        super().__init_subclass__(**options)
        if vars(cls).keys() & {"_init", "_tables"} and "array_shapes" not in vars(cls):
            cls.array_shapes = None  # type: ignore[assignment, method-assign]
        for name in vars(cls):
            if getattr(vars(Head).get(name), "__final__", False):
                raise TypeError(
                    f"{cls.__name__} overrides {name}, which checks the arguments of every head: "
                    f"write _{name}, with the arguments that zoo.heads.Head gives it"
                )

    @property
    def row_tables(self) -> tuple[str, ...]:
        """Names of the parameters that `loss` reads only by `zoo.base.arrays.row_lookup.take`.

        A training step then needs the gradients of some rows only: see zoo.row_updates.
        The name of b within a is "a/b". () unless a head overrides it.
        """
        return ()

    @property
    def loss_draws(self) -> bool:
        """Whether `loss` draws random numbers.

        If so, devices that share the tokens compute it together, so that every layout draws the
        same numbers: see `zoo.heads.checks`.
        """
        return False

    @property
    def prepares(self) -> bool:
        """Whether the head overrides `_prepared`, so that its methods take `prepared=`."""
        return type(self)._prepared is not Head._prepared

    @property
    def has_log_probs(self) -> bool:
        """Whether the head overrides `_log_probs`; a head that spells words need not."""
        return type(self)._log_probs is not Head._log_probs

    @property
    def array_shapes(self) -> Shapes | None:
        """Declared shapes of parameters and tables, which methods check; None to check none."""
        return None

    @property
    def parameter_axes(self) -> Axes:
        """Axis names of the parameters that have any; see `zoo.base.arrays.parameter_sharding`."""
        return {}

    # A prior that runs along the sequence and gives `context`; the model feeds it.
    background: Contextual | None = None

    @property
    def loss_name(self) -> str:
        """Name of `loss` in logs; a head whose loss is not -log_prob overrides it."""
        return "loss"

    @final
    @checks.checked
    def tables(self, lexicon: Lexicon) -> Tables:
        """Returns the arrays that describe the words to the head; {} if it needs none."""
        return self._tables(lexicon)

    @final
    @checks.checked
    def evaluation_tables(self, lexicon: Lexicon) -> Tables:
        """Returns the tables that scoring reads: not those that only the loss reads."""
        return self._evaluation_tables(lexicon)

    @final
    @checks.checked
    def init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws the parameters at the start of training."""
        return self._init(key, hidden_size, lexicon)

    @final
    @checks.checked
    def partition(self, lexicon: Lexicon) -> Params:
        """Returns the axis names of the parameters, a tree like `init`'s of `PartitionSpec`s.

        A name is "words" (rows of words or of groups of words), "features", "hidden" (dimensions of
        a hidden state), "vector" (dimensions of words' vectors of another size), or None.
        `zoo.heads.on_mesh` turns names into layouts.
        """
        shapes = jax.eval_shape(lambda: self._init(jax.random.key(0), 1, lexicon))
        return partition_specs(shapes, self.parameter_axes)

    # ------------------------------------------------------------ to train

    @final
    @checks.checked
    def loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> jax.Array:
        """Computes the training loss of each token, with the penalties, [...], nats.

        It is -log p(targets | hidden) plus the penalties unless a head defines another loss.
        """
        losses = self._loss(params, tables, hidden, targets, key=key, context=context)
        penalties = self._penalties(params, hidden)
        return losses if penalties is None else penalties + losses

    @final
    @checks.checked
    def weighted_loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        token_weights: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> jax.Array:
        """Computes the sum of token_weights * loss, the objective of training, nats."""
        arguments = params, tables, hidden, targets, token_weights, key, context
        return self._weighted_loss_and_penalty(*arguments)[0]

    @final
    @checks.checked
    def weighted_loss_and_report(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        token_weights: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> tuple[jax.Array, TokenReport]:
        """Computes `weighted_loss` and the log p, log Z and best word of each token, for metrics.

        A softmax takes the report from the logits of its loss; other heads score the tokens once
        more.
        """
        arguments = params, tables, hidden, targets, token_weights, key, context
        return self._weighted_loss_and_report(*arguments)

    @final
    @checks.checked
    def weighted_loss_and_penalty(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        token_weights: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Computes `weighted_loss` and the part of it that the penalties add.

        Returns:
          (sum of token_weights * loss, sum of token_weights * penalties), scalars, nats.
        """
        arguments = params, tables, hidden, targets, token_weights, key, context
        return self._weighted_loss_and_penalty(*arguments)

    @final
    @checks.checked
    def prepared(self, params: Params, tables: Tables) -> Prepared:
        """Computes arrays that scoring would otherwise compute anew for every batch.

        Returns:
          A pytree of arrays, which `log_prob` and the methods below it take as `prepared`; None if
          there is nothing to prepare.
        """
        return self._prepared(params, tables)

    # ------------------------------------------------------------ to score and to sample

    @final
    @checks.checked
    def log_prob(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        temperature: float | jax.Array = 1.0,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Computes log p(targets | hidden), exactly, [...], nats."""
        options = {"context": context, "prepared": prepared}
        if _is_one(temperature):
            return self._log_prob_and_log_z(params, tables, hidden, targets, **options)[0]
        return self._statistics(params, tables, hidden, targets, temperature, **options).log_prob

    @final
    @checks.checked
    def statistics(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        temperature: float | jax.Array = 1.0,
        context: Context = None,
        prepared: Prepared = None,
    ) -> Statistics:
        """Computes log p(targets | hidden), the entropy, and whether targets are the best words.

        Gives `zoo.losses.Statistics`, without an array [tokens, V].
        """
        return self._statistics(
            params, tables, hidden, targets, temperature, context=context, prepared=prepared
        )

    @final
    @checks.checked
    def word_log_probs(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        words: jax.Array,
        *,
        temperature: float | jax.Array = 1.0,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Computes log p of K words of each token, [..., K], nats, without an array [tokens, V].

        Args:
          words: K words of each token, int [..., K], such as those that a teacher stored.
        """
        arrays = self._as_softmax(params, tables, hidden, prepared)
        if arrays is not None:
            *table, soft_cap = arrays
            return chosen_words.softmax_word_log_probs(
                *table, words, soft_cap=soft_cap, temperature=temperature
            )

        def block_log_probs(log_probs, first, block_words, shaping):
            scores = jax.nn.log_softmax(shaping.apply(log_probs), axis=-1)
            return chosen_words.take_words(scores, block_words)

        arguments = params, tables, hidden, words, self._shaping_of_log_probs(temperature, hidden)
        return self._map_log_probs(block_log_probs, *arguments, context=context, prepared=prepared)

    @final
    @checks.checked
    def log_prob_and_log_z(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Computes (log p(targets | hidden), log Z), [...] each, nats."""
        return self._log_prob_and_log_z(
            params, tables, hidden, targets, context=context, prepared=prepared
        )

    @final
    @checks.checked
    def log_probs(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Computes log p of every word of the lexicon, [..., V], nats.

        They sum to 1 in all heads but one that spells words and is not renormalised: the lexicon's
        words have a part of the mass of all spellings.
        """
        return self._log_probs(params, tables, hidden, context, prepared)

    @final
    @checks.checked
    def sample(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        key: jax.Array,
        *,
        temperature: float | jax.Array = 1.0,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Draws words from p(. | hidden), int32 [...], without an array [tokens, V]."""
        options = {"context": context, "prepared": prepared}
        if _is_one(temperature):
            return self._sample(params, tables, hidden, key, **options)
        arrays = self._as_softmax(params, tables, hidden, prepared)
        if arrays is not None:
            *table, soft_cap = arrays
            return top_k.softmax_sample(*table, key, soft_cap=soft_cap, temperature=temperature)
        return self._sample_log_probs(params, tables, hidden, key, temperature, **options)

    @final
    @checks.checked
    def top_k(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        k: int,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Finds the k most probable words, without an array [tokens, V].

        Args:
          k: the number of words, at most V.

        Returns:
          (log-probabilities [..., k], nats, falling; words int32 [..., k]).
        """
        return self._top_k(params, tables, hidden, k, context=context, prepared=prepared)

    # ------------------------------------------------------- to evaluate; few heads override any

    @property
    def ordered_by_frequency(self) -> bool:
        """Whether the frequencies of words decide which parameters belong to which word."""
        return False

    def target_scores(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        context: Context,
        prepared: Prepared,
    ) -> jax.Array | None:
        """Computes log p(targets | hidden) + log Z, which needs no sum over the words.

        To score several words after one hidden state, log Z is then computed once. hidden [n, D],
        targets [n], context leaves [n, ?] or None.

        Returns:
          Scores [n], nats. None if the head's log-probabilities are not a score minus log Z, or if
          they cost no more than a score.
        """
        return None

    def scores_per_token(self, vocabulary: int) -> int:
        """Returns how many numbers `log_probs` holds for a token; sizes of blocks depend on it."""
        return vocabulary

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Returns the parameters for another lexicon than the one of training.

        Heads whose parameters belong to letters or features can do this; heads whose parameters
        belong to words cannot.

        Args:
          new_lexicon: the words to be scored.

        Raises:
          UserError: parameters belong to words.
        """
        raise UserError(
            f"a {type(self).__name__} has parameters for the words of its training and cannot "
            "score with another lexicon: train heads.CNNSoftmax or heads.CharLSTM, which read "
            "letters, or heads.LogLinear, which reads features; or give --spread-unknown, with "
            "which new words share the unknown word's probability evenly."
        )

    def form_name(self, tables: Tables) -> str | None:
        """Returns the name of the form in which scores are computed; None if there is one form."""
        return None

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts the words that the head does not represent in full, {description: number}."""
        return {}

    def normalised_over(self, lexicon: Lexicon) -> str:
        """Describes the set over which the probabilities of `log_prob` sum to one."""
        return f"the {len(lexicon):,} words of the lexicon"

    # ------------------------------------------------------------ to be overridden by heads

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        raise self._unwritten("_init")

    def _tables(self, lexicon: Lexicon) -> Tables:
        return {}

    def _evaluation_tables(self, lexicon: Lexicon) -> Tables:
        return self._tables(lexicon)

    def _prepared(self, params: Params, tables: Tables) -> Prepared:
        return None

    def _loss(self, params, tables, hidden, targets, key, context):
        """Computes the training loss without penalties: -log p(targets | hidden) by default."""
        return -self._log_prob_and_log_z(
            params, tables, hidden, targets, context=context, prepared=None
        )[0]

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        """Computes the sum of token_weights * `_loss`; heads override it with faster ways."""
        losses = self._loss(params, tables, hidden, targets, key=key, context=context)
        return weighted_sum(losses, token_weights)

    def _penalties(self, params: Params, hidden: jax.Array) -> jax.Array | None:
        """Computes the penalties added to the loss of each token, [...], nats; None for none."""
        return None

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        raise self._unwritten("_log_prob_and_log_z")

    def _log_probs(self, params, tables, hidden, context, prepared):
        raise self._unwritten("_log_probs")

    def _as_softmax(self, params, tables, hidden, prepared) -> SoftmaxArrays | None:
        """Returns the arguments of the softmax that gives log p; None for other heads."""
        return None

    def _statistics(self, params, tables, hidden, targets, temperature, context, prepared):
        arrays = self._as_softmax(params, tables, hidden, prepared)
        if arrays is not None:
            *table, soft_cap = arrays
            return entropy.softmax_statistics(
                *table, targets, soft_cap=soft_cap, temperature=temperature
            )

        def block_statistics(log_probs, first, block_targets, shaping):
            scores, requests = shaping.apply(log_probs), softmax.TermOptions(statistics=True)
            terms = softmax.terms_from_scores(
                requests, scores, block_targets, shaping.temperature is None
            )
            return entropy.statistics_from_terms(terms)

        arguments = params, tables, hidden, targets, self._shaping_of_log_probs(temperature, hidden)
        return self._map_log_probs(block_statistics, *arguments, context=context, prepared=prepared)

    def _sample(self, params, tables, hidden, key, context, prepared):
        return self._sample_log_probs(
            params, tables, hidden, key, temperature=1.0, context=context, prepared=prepared
        )

    def _sample_log_probs(self, params, tables, hidden, key, temperature, context, prepared):
        def sample_block(log_probs, first, shaping):
            block_key = jax.random.fold_in(key, first)
            words = jax.random.categorical(block_key, shaping.apply(log_probs))
            return words.astype(jnp.int32)  # with 64 bits, too

        arguments = params, tables, hidden, self._shaping_of_log_probs(temperature, hidden)
        return self._map_log_probs(sample_block, *arguments, context=context, prepared=prepared)

    def _top_k(self, params, tables, hidden, k, context, prepared):
        def block_top_k(log_probs, first):
            top_k.check_k(k, log_probs.shape[-1])
            return jax.lax.top_k(log_probs, k)

        return self._map_log_probs(
            block_top_k, params, tables, hidden, context=context, prepared=prepared
        )

    def _weighted_loss_and_penalty(
        self, params, tables, hidden, targets, token_weights, key, context
    ):
        loss = self._weighted_loss(
            params, tables, hidden, targets, token_weights, key=key, context=context
        )
        penalties = self._penalties(params, hidden)
        if penalties is None:
            return loss, jnp.zeros_like(loss)
        penalty = weighted_sum(penalties, token_weights)
        return loss + penalty, penalty

    def _weighted_loss_and_report(
        self, params, tables, hidden, targets, token_weights, key, context
    ):
        arguments = params, tables, hidden, targets, token_weights, key, context
        loss, _ = self._weighted_loss_and_penalty(*arguments)
        options = {"context": context, "prepared": self._prepared(params, tables)}
        log_prob, log_z = self._log_prob_and_log_z(params, tables, hidden, targets, **options)
        best_word = self._top_k(params, tables, hidden, 1, **options)[1][..., 0]
        report = TokenReport(log_prob, log_z, best_word, best_word == targets)
        return loss, jax.lax.stop_gradient(report)

    def vocabulary_size(self, params: Params, tables: Tables) -> int | None:
        """Returns V, the size that is "V" in `array_shapes`; None if no array tells it."""
        shapes = self.array_shapes
        if shapes is None:
            return None
        trees = (params, shapes.params), (tables, {**shapes.tables, **shapes.loss_tables})
        for tree, shape_by_path in trees:
            for path, letters in shape_by_path.items():
                if letters and letters.removeprefix(checks.INTEGERS).split()[0] == "V":
                    shape = getattr(checks.leaf_at(tree, path), "shape", ())
                    if shape:
                        return shape[0]
        return None

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        """Returns sizes that must agree between params and tables of one lexicon.

        Returns:
          Triples (unit, such as "words", number in params, number in tables).
        """
        return ()

    def prepared_shapes(self, tables: Tables, hidden_size: int) -> Any:
        """Returns the shapes of `prepared`; written beside `_prepared` and `array_shapes`."""
        return None

    def _shaping_of_log_probs(self, temperature, hidden):
        """Returns the shaping at a temperature, whose arrays are [...]."""
        shape = hidden.shape[:-1]
        shaping = Shaping.from_options(None, temperature, shape)
        return jax.tree.map(lambda array: array.reshape(shape), shaping)

    def _map_log_probs(self, function, params, tables, hidden, *token_arrays, context, prepared):
        """Applies function(log p of every word [n, V], position of the first token, ...) to blocks.

        Its further arguments are the blocks of arrays [...]. What a block holds is computed again
        in the backward pass.
        """
        shape = hidden.shape[:-1]
        tokens = math.prod(shape)
        if prepared is None:
            prepared = self._prepared(params, tables)  # once, not in every block

        def log_probs(hidden, context):
            return self._log_probs(params, tables, hidden, context, prepared)

        @jax.checkpoint
        def apply_to_block(columns):
            positions, (h, c, *blocks) = columns
            return function(log_probs(h, c), positions[0], *blocks)

        words = jax.eval_shape(log_probs, hidden, context).shape[-1]
        rows = jax.tree.map(
            lambda x: x.reshape(tokens, *x.shape[len(shape) :]), (hidden, context, *token_arrays)
        )
        block = softmax.token_block(tokens, self.scores_per_token(words))
        results = row_blocks.map_rows(apply_to_block, (jnp.arange(tokens), rows), block)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), results)
