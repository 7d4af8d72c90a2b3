"""The contract of a head: from a hidden state to a distribution over words."""

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar, final

import jax
import jax.numpy as jnp

from zoo.arrays import layouts, row_blocks
from zoo.arrays.partition import Axes, named
from zoo.arrays.types import Context, Key, Params, Prepared, Tables
from zoo.heads import argument_checks, arguments
from zoo.heads.argument_checks import Shapes
from zoo.heads.evaluation_methods import Evaluated
from zoo.lexicon import Lexicon
from zoo.losses import softmax, softmax_decoding
from zoo.losses.token_blocks import weighted_sum
from zoo.priors.contextual import Contextual


class Head(Evaluated):
    """The contract of heads, to train, score and sample. Subclasses are frozen dataclasses.

    Methods are pure functions. Shapes: hidden [..., D], targets and words int32 [...], losses and
    log-probabilities [...] in nats per token. Token weights are [...] or broadcast to it by the
    rules of numpy; booleans and whole numbers become floats. Other shapes are a ValueError, and so
    are tables of another lexicon than the parameters; targets that are no word id, which
    compiled code cannot look at, give any number. Of no tokens, results are empty and sums 0.

    The methods that are called are written once, here, and check their arguments. A head writes
    the same ones with an underscore, which get the arguments in this order, checked and regular:

        _init(key, hidden_size, lexicon) -> params
        _log_prob_and_log_z(params, tables, hidden, targets, context, prepared) -> ([...], [...])
        _log_probs(params, tables, hidden, context, prepared) -> [..., V], unless it is open

    and, where it has some to write,

        _tables(lexicon) -> pytree of arrays, what the head needs to know of the words
        _evaluation_tables(lexicon) -> the same, without what the loss alone needs
        _loss(params, tables, hidden, targets, key, context) -> [...], if it is not -log p
        _weighted_loss(params, tables, hidden, targets, token_weights, key, context) -> a scalar
        _penalties(params, hidden) -> [...], which the losses get besides
        _prepared(params, tables) -> pytree of arrays, computed once for many batches
        _sample(params, tables, hidden, key, context, prepared) -> [...]
        _top_k(params, tables, hidden, k, context, prepared) -> (log_probs [..., k], words [..., k])

    `loss` is what is trained: it may be sampled, and has all penalties in it. Train on
    `weighted_loss`, the sum of token_weights * loss, which is the faster way to it and knows
    padding: a token of weight 0 adds nothing, whatever its state and target hold, and no gradient
    but that of its own weight. `log_prob` is what is reported. log Z is the logarithm of what the
    head's scores have to be divided by: where it is near 0 for every hidden state, the scores may
    be used as they are. `context` is what a prior needs to know beyond the hidden state.

    What evaluation asks for besides stands in `zoo.heads.evaluation_methods.Evaluated`. `log_prob`
    and the methods below it take what `prepared` gave as `prepared=`, and compute it without.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    # Whether the output weights are the embedding's table, handed in as params["weights"].
    tied: bool = False

    def __init_subclass__(cls, **options):
        """Refuses a head that overrides a method that checks arguments."""
        super().__init_subclass__(**options)
        for name in vars(cls):
            if getattr(vars(Head).get(name), "__final__", False):
                raise TypeError(
                    f"{cls.__name__} overrides {name}, which checks the arguments of every head: "
                    f"write _{name}, with the arguments that zoo.heads.Head gives it"
                )

    @property
    def row_tables(self) -> tuple[str, ...]:
        """Names of the parameters, "a/b" for b within a, that `loss` reads by
        `zoo.arrays.row_lookup.take` alone: a training step then needs the gradients of some rows
        only. See zoo.training.row_sparse. None, unless a head says otherwise."""
        return ()

    @property
    def draws_noise(self) -> bool:
        """Whether `loss` draws random numbers. Devices that share the tokens out then compute it
        together, so that what is drawn is the same in every layout: see `zoo.heads.sharding`."""
        return False

    @property
    def prepares(self) -> bool:
        """Whether the head writes `_prepared`, whose arrays its methods then take."""
        return type(self)._prepared is not Head._prepared

    @property
    def array_shapes(self) -> Shapes | None:
        """The shapes of parameters and tables, by which methods know those of others; None of a
        head that does not say."""
        return None

    @property
    def parameter_axes(self) -> Axes:
        """Names of the axes of the parameters that have some: see `partition`."""
        return {}

    # A prior that runs along the sequence and gives `context`; the model feeds it.
    if TYPE_CHECKING:  # a field of some heads

        @property
        def background(self) -> Contextual | None: ...

    else:
        background = None

    @property
    def loss_name(self) -> str:
        """The name of `loss` where it is shown: a head whose loss is not -log_prob names it."""
        return "loss"

    @final
    def tables(self, lexicon: Lexicon) -> Tables:
        """The arrays that the head needs to know of the words; none, unless a head has some.

        Args:
          lexicon: the words.
        """
        argument_checks.check_lexicon(f"{type(self).__name__}.tables", lexicon)
        return self._tables(lexicon)

    @final
    def evaluation_tables(self, lexicon: Lexicon) -> Tables:
        """The tables that `log_prob` and the like need: all, unless the loss alone needs some.

        Args:
          lexicon: the words.
        """
        argument_checks.check_lexicon(f"{type(self).__name__}.evaluation_tables", lexicon)
        return self._evaluation_tables(lexicon)

    @final
    def init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """The parameters at the start of training.

        Args:
          key: a key of `jax.random`.
          hidden_size: D.
          lexicon: the words.
        """
        name = f"{type(self).__name__}.init"
        argument_checks.check_lexicon(name, lexicon)
        argument_checks.check_hidden_size(name, hidden_size)
        argument_checks.check_key(name, key)
        return self._init(key, hidden_size, lexicon)

    @final
    def partition(self, lexicon: Lexicon) -> Params:
        """The names of the axes of the parameters, a tree like `init`'s of `PartitionSpec`s.

        A name is "words" (rows of words, or of what they are grouped into), "features", "hidden"
        (numbers of a hidden state), or None. `zoo.arrays.partition.on_mesh` makes layouts
        of such names.

        Args:
          lexicon: the words.
        """
        argument_checks.check_lexicon(f"{type(self).__name__}.partition", lexicon)
        shapes = jax.eval_shape(lambda: self._init(jax.random.key(0), 1, lexicon))
        return named(shapes, self.parameter_axes)

    # ------------------------------------------------------------ to train

    @final
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
        """Computes what is trained: -log p(targets | hidden) with the penalties, unless a head says
        otherwise.

        Args:
          params: the parameters.
          tables: `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          key: of a sampled loss.
          context: of a background or expert, leaves [..., ?].

        Returns:
          [...], nats.
        """
        arrays = params, tables, hidden, targets
        return arguments.checked(
            self, "loss", self._penalised_loss, arrays, key=key, context=context
        )

    @final
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
        """Computes sum of token_weights * loss: what to train on.

        Args:
          params: the parameters.
          tables: `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          token_weights: u, [...] or broadcast to it; where 0, as of padding, a token may hold
            anything.
          key: of a sampled loss.
          context: of a background or expert, leaves [..., ?].

        Returns:
          A scalar, nats.
        """
        arrays = params, tables, hidden, targets, token_weights
        return arguments.checked(
            self, "weighted_loss", self._weighted_loss_and_penalty, arrays, key=key, context=context
        )[0]

    @final
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
        """Computes `weighted_loss`, and what of it is penalty.

        Args:
          params: the parameters.
          tables: `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          token_weights: u, [...] or broadcast to it.
          key: of a sampled loss.
          context: of a background or expert, leaves [..., ?].

        Returns:
          (sum of token_weights * loss, sum of token_weights * penalties), scalars, nats.
        """
        arrays = params, tables, hidden, targets, token_weights
        return arguments.checked(
            self,
            "weighted_loss_and_penalty",
            self._weighted_loss_and_penalty,
            arrays,
            key=key,
            context=context,
        )

    @final
    def penalties(self, params: Params, hidden: jax.Array) -> jax.Array:
        """The part of the losses that is shown apart from -log p: 0, unless a head has one.

        Args:
          params: the parameters.
          hidden: h, [..., D].

        Returns:
          [...], nats; it does not depend on the target.
        """
        return arguments.checked(
            self, "penalties", self._penalties_or_zeros, (params,), hidden=hidden
        )

    @final
    def prepared(self, params: Params, tables: Tables) -> Prepared:
        """Computes once what `log_prob` and the like would compute anew for every batch.

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.

        Returns:
          A pytree of arrays, which those methods take as `prepared`; None for nothing.
        """
        arguments.check(self, "prepared", params=params, tables=tables)
        return self._prepared(params, tables)

    # ------------------------------------------------------------ to score and to sample

    @final
    def log_prob(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Computes log p(targets | hidden), exactly.

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          [...], nats.
        """
        arrays = params, tables, hidden, targets
        return arguments.checked(
            self, "log_prob", self._log_prob_and_log_z, arrays, context=context, prepared=prepared
        )[0]

    @final
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
        """Computes log p(targets | hidden) and log Z.

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          (log p [...], log Z [...]), nats.
        """
        arrays = params, tables, hidden, targets
        return arguments.checked(
            self,
            "log_prob_and_log_z",
            self._log_prob_and_log_z,
            arrays,
            context=context,
            prepared=prepared,
        )

    @final
    def log_probs(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Computes log p of every word, of a closed head.

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          [..., V], nats.
        """
        arrays = params, tables, hidden
        return arguments.checked(
            self, "log_probs", self._log_probs, arrays, context=context, prepared=prepared
        )

    @final
    def sample(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        key: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Draws words from p(. | hidden), in blocks of tokens: never [tokens, V].

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          key: a key of `jax.random`.
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          int32 [...].
        """
        arrays = params, tables, hidden
        return arguments.checked(
            self, "sample", self._sample, arrays, key=key, context=context, prepared=prepared
        )

    @final
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
        """Finds the k most probable words, in blocks of tokens: never [tokens, V].

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          k: words, at most V.
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          (log-probabilities [..., k], nats, falling; words int32 [..., k]).
        """
        arrays = params, tables, hidden
        return arguments.checked(
            self, "top_k", self._top_k, arrays, k=k, context=context, prepared=prepared
        )

    # ------------------------------------------------------------ what a head writes of it

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        raise self._unwritten("_init")

    def _tables(self, lexicon: Lexicon) -> Tables:
        return {}

    def _evaluation_tables(self, lexicon: Lexicon) -> Tables:
        return self._tables(lexicon)

    def _prepared(self, params: Params, tables: Tables) -> Prepared:
        return None

    def _loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        key: Key | None,
        context: Context,
    ) -> jax.Array:
        """-log p(targets | hidden), without penalties; or what is trained in its place."""
        return -self._log_prob_and_log_z(params, tables, hidden, targets, context, None)[0]

    def _weighted_loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        token_weights: jax.Array,
        key: Key | None,
        context: Context,
    ) -> jax.Array:
        """The sum of token_weights * `_loss`, by a faster way where there is one."""
        losses = self._loss(params, tables, hidden, targets, key, context)
        return weighted_sum(losses, token_weights)

    def _penalties(self, params: Params, hidden: jax.Array) -> jax.Array | None:
        """Nats that the loss of each token has besides, [...]; None for none."""
        return None

    def _log_prob_and_log_z(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        context: Context,
        prepared: Prepared,
    ) -> tuple[jax.Array, jax.Array]:
        raise self._unwritten("_log_prob_and_log_z")

    def _log_probs(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        context: Context,
        prepared: Prepared,
    ) -> jax.Array:
        raise self._unwritten("_log_probs")

    def _sample(self, params, tables, hidden, key, context, prepared):
        def of_block(log_probs, first):
            drawn = jax.random.categorical(jax.random.fold_in(key, first), log_probs)
            return drawn.astype(jnp.int32)  # with 64 bits, too

        return self._over_log_probs(of_block, params, tables, hidden, context, prepared)

    def _top_k(self, params, tables, hidden, k, context, prepared):
        def of_block(log_probs, first):
            softmax_decoding.check_k(k, log_probs.shape[-1])
            return jax.lax.top_k(log_probs, k)

        return self._over_log_probs(of_block, params, tables, hidden, context, prepared)

    def _penalised_loss(self, params, tables, hidden, targets, key, context):
        losses, penalties = (
            self._loss(params, tables, hidden, targets, key, context),
            self._penalties(params, hidden),
        )
        return losses if penalties is None else penalties + losses

    def _weighted_loss_and_penalty(
        self, params, tables, hidden, targets, token_weights, key, context
    ):
        loss = self._weighted_loss(params, tables, hidden, targets, token_weights, key, context)
        penalties = self._penalties(params, hidden)
        if penalties is None:
            return loss, jnp.zeros_like(loss)
        penalty = weighted_sum(penalties, token_weights)
        return loss + penalty, penalty

    def _penalties_or_zeros(self, params, hidden):
        penalties = self._penalties(params, hidden)
        if penalties is None:
            return layouts.zeros(hidden.shape[:-1], softmax.accumulator(hidden), hidden)
        return penalties

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        """The numbers in which params and tables of one lexicon agree; methods refuse others.

        Args:
          params: the parameters.
          tables: `tables` or `evaluation_tables`.

        Returns:
          (what is counted, the number in params, the number in tables) of each; none, unless a head
          has some.
        """
        return ()

    def prepared_shapes(self, tables: Tables, hidden_size: int) -> Any:
        """The shapes of what `prepared` gives, of a head that has `array_shapes` and prepares.

        Args:
          tables: `tables` or `evaluation_tables`.
          hidden_size: D.
        """
        return None

    def _unwritten(self, method: str) -> TypeError:
        """The error of a head that lacks one of the methods that it has to write itself."""
        return TypeError(f"{type(self).__name__} has no method {method}, which its use needs")

    def _over_log_probs(self, function, params, tables, hidden, context, prepared):
        """function(log p of every word [n, V], the first token's position) of blocks of tokens."""
        shape = hidden.shape[:-1]
        tokens = math.prod(shape)
        if prepared is None:
            prepared = self._prepared(params, tables)  # once, not in every block

        def log_probs(hidden, context):
            return self._log_probs(params, tables, hidden, context, prepared)

        def of_block(columns):
            h, c, positions = columns
            return function(log_probs(h, c), positions[0])

        words = jax.eval_shape(log_probs, hidden, context).shape[-1]
        flat = jax.tree.map(lambda x: x.reshape(tokens, *x.shape[len(shape) :]), (hidden, context))
        block = softmax.token_block(tokens, self.scores_per_token(words))
        results = row_blocks.map_rows(of_block, (*flat, jnp.arange(tokens)), block)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), results)


class HeadAround(Head):
    """A head around another one, its field `head`, whose tables are `tables["head"]`."""

    if TYPE_CHECKING:  # a field of each

        @property
        def head(self) -> Head: ...

    @property
    def draws_noise(self) -> bool:
        return self.head.draws_noise

    @property
    def ordered_by_frequency(self) -> bool:
        return self.head.ordered_by_frequency

    def form_taken(self, tables: Tables) -> str | None:
        return self.head.form_taken(tables["head"])

    def scores_per_token(self, vocabulary: int) -> int:
        return self.head.scores_per_token(vocabulary)
