"""The contract of a head: from a hidden state to a distribution over words."""

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from zoo.arrays import blocks
from zoo.arrays.partition import Axes, named
from zoo.arrays.types import Context, Key, Params, Prepared, Tables
from zoo.errors import UserError
from zoo.heads import arguments
from zoo.lexicon import Lexicon
from zoo.losses import softmax, softmax_sum
from zoo.losses.token_weights import weighted_sum
from zoo.priors.contextual import Contextual
from zoo.recipes.former_names import FormerNames


@arguments.guarded
class Head(FormerNames):
    """What every head offers. Subclasses are frozen dataclasses; methods are pure functions.

    Shapes: hidden [..., D], targets and words int32 [...], losses and log-probabilities [...] in
    nats per token. Token weights are [...] or broadcast to it by the rules of numpy; booleans and
    whole numbers become floats. Other shapes are a ValueError; targets that are no place of a word,
    which compiled code cannot look at, give any number. `tables` is what `tables(lexicon)` gives;
    `context` is what a prior needs to know beyond the hidden state.

    Every head has these; `init`, `loss`, `log_prob_and_log_z` and, unless it is open, `log_probs`
    it has to write itself:

        tables(lexicon) -> pytree of arrays, what the head needs to know of the words
        init(key, hidden_size, lexicon) -> params
        loss(params, tables, hidden, targets, *, key=None, context=None) -> [...]
        weighted_loss(params, tables, hidden, targets, token_weights, ...) -> a scalar
        weighted_loss_and_penalty(..., token_weights, ...) -> (the same, what of it is penalty)
        penalties(params, hidden) -> [...], what of the loss is penalty
        log_prob(params, tables, hidden, targets, *, context=None, ...) -> [...]  exact, normalised
        log_prob_and_log_z(params, tables, hidden, targets, ...) -> ([...], [...])
        log_probs(params, tables, hidden, *, context=None, ...) -> [..., V]       closed heads
        sample(params, tables, hidden, key, *, context=None, ...) -> [...]
        top_k(params, tables, hidden, k, ...) -> (log_probs [..., k], words [..., k])

    Four more are for judging, and rarely need to be written:

        scores_per_token(vocabulary) -> how many numbers log_probs holds for a token
        evaluation_tables(lexicon) -> what of the tables log_prob and the like need
        prepared(params, tables) -> arrays that judging needs anew for every batch, or None
        for_lexicon(params, lexicon, other) -> params for another lexicon than the trained one

    and one for layouts on several devices:

        partition(lexicon) -> names of the axes of the parameters, a tree like `init`'s

    `log_prob` and the methods below it take these arrays as `prepared=`, and compute them without.
    A head that prepares nothing need not know the argument: it is not handed any.

    `loss` is what is trained: it may be sampled, and has all penalties in it. Train on
    `weighted_loss`, the sum of token_weights * loss, which is the faster way to it and knows
    padding: a token of weight 0 adds nothing, whatever its state and target hold, and no gradient
    but that of its own weight. `log_prob` is what is reported. log Z is the logarithm of what the
    head's scores have to be divided by: where it is near 0 for every hidden state, the scores may
    be used as they are. Of no tokens, results are empty and sums 0.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    former_names: ClassVar[dict[str, str]] = {
        "judging_tables": "evaluation_tables",
        "laid_out_by_counts": "ordered_by_frequency",
        "notes": "warnings",
        "width": "scores_per_token",
    }
    # Whether the output weights are the embedding's table, handed in as params["weights"].
    tied: bool = False
    # The kinds of features that the rows of the parameters are of, () for all; None where the rows
    # are of something else, such as words.
    kinds: tuple[str, ...] | None = None
    # Whether the head can say words letter by letter, as heads.CharLSTM does; and if so, whether
    # its probabilities are divided by those of the lexicon's words.
    spells: bool = False
    renormalised: bool = False

    def __init_subclass__(cls, **options):
        """Lets the methods of every head look at their arguments; see `arguments`."""
        super().__init_subclass__(**options)
        arguments.guarded(cls)

    @property
    def row_tables(self) -> tuple[str, ...]:
        """Names of the parameters, "a/b" for b within a, that `loss` reads by
        `zoo.arrays.rows.take` alone: a training step then needs the gradients of some rows only.
        See zoo.training.row_sparse. None, unless a head says otherwise."""
        return ()

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
    def ordered_by_frequency(self) -> bool:
        """Whether the frequencies of the words decide which parameters are whose."""
        return False

    @property
    def loss_name(self) -> str:
        """What `loss` is called where it is shown: a head whose loss is not -log_prob names it."""
        return "loss"

    def init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """The parameters at the start of training; every head writes this itself."""
        raise self._unwritten("init")

    def partition(self, lexicon: Lexicon) -> Params:
        """The names of the axes of the parameters, a tree like `init`'s of `PartitionSpec`s.

        A name is "words" (rows of words, or of what they are grouped into), "features", "hidden"
        (numbers of a hidden state), or None. `zoo.arrays.partition.on_mesh` makes of it what the
        `in_shardings` of `jax.jit` take.
        """
        shapes = jax.eval_shape(lambda: self.init(jax.random.key(0), 1, lexicon))
        return named(shapes, self.parameter_axes)

    def tables(self, lexicon: Lexicon) -> Tables:
        """Nothing, unless a head says otherwise."""
        return {}

    def evaluation_tables(self, lexicon: Lexicon) -> Tables:
        """The tables without what the loss alone needs, such as noise; all of them, unless a head
        says otherwise."""
        return self.tables(lexicon)

    def prepared(self, params: Params, tables: Tables) -> Prepared:
        """What `log_prob` and the like would compute anew for every batch, a pytree of arrays that
        they take as `prepared`; None, unless a head says otherwise."""
        return None

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """The parameters for words that were not there in training; UserError if the head cannot.

        A head can if its parameters are of letters or the like; one whose parameters are of words
        has none for new ones.
        """
        raise UserError(
            f"a {type(self).__name__} has parameters of the words that it was trained on and "
            "cannot score with another lexicon: heads.CNNSoftmax and heads.CharLSTM can, which "
            "know words by their letters, and heads.LogLinear, which knows them by their features. "
            "--spread-unknown gives new words even parts of its unknown word's probability."
        )

    def scores_per_token(self, vocabulary: int) -> int:
        """Numbers that `log_probs` holds for a token on the way to V: what blocks of tokens are
        chosen by. V, unless a head holds several arrays as wide."""
        return vocabulary

    def form_taken(self, tables: Tables) -> str | None:
        """The name of the form in which these tables let scores be computed, which is kept in
        passports; None for a head that has one form."""
        return None

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """What was lost of the words, by name, such as how many were cut; kept in passports."""
        return {}

    def normalised_over(self, lexicon: Lexicon) -> str:
        """What `log_prob` sums to one over, in words."""
        return f"the {len(lexicon):,} words of the lexicon"

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
        """What is trained, nats, [...]; every head writes this itself."""
        raise self._unwritten("loss")

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
        """sum of token_weights * loss, a scalar in nats; a head may have a faster way to it."""
        losses = self.loss(params, tables, hidden, targets, key=key, context=context)
        return weighted_sum(losses, token_weights)

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
        """(weighted_loss, the part of it that `penalties` are), scalars in nats."""
        options = {"key": key, "context": context}
        loss = self.weighted_loss(params, tables, hidden, targets, token_weights, **options)
        return loss, jnp.zeros(())

    def penalties(self, params: Params, hidden: jax.Array) -> jax.Array:
        """The part of each token's loss that is shown apart from -log p, [...]; 0 unless a head has
        one. It does not depend on the target."""
        return jnp.zeros(hidden.shape[:-1], softmax.accumulator(hidden))

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
        """log p(targets | hidden), nats, [...]; exact."""
        return self.log_prob_and_log_z(
            params, tables, hidden, targets, context=context, prepared=prepared
        )[0]

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
        """Words drawn from p(. | hidden), int32 [...], in blocks of tokens: never [tokens, V]."""

        def of_block(log_probs, first):
            return jax.random.categorical(jax.random.fold_in(key, first), log_probs)

        return self._over_log_probs(of_block, params, tables, hidden, context, prepared)

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
        """The k most probable words: (log-probabilities [..., k], words [..., k]).

        In blocks of tokens: never [tokens, V].
        """

        def of_block(log_probs, first):
            return jax.lax.top_k(log_probs, k)

        return self._over_log_probs(of_block, params, tables, hidden, context, prepared)

    def _unwritten(self, method: str) -> TypeError:
        """The error of a head that lacks one of the methods that it has to write itself."""
        return TypeError(f"{type(self).__name__} has no method {method}, which its use needs")

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
        """(log p(targets | hidden), log Z), nats, [...] each; every head writes this itself."""
        raise self._unwritten("log_prob_and_log_z")

    def log_probs(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """log p of every word, nats, [..., V]; closed heads write this themselves."""
        raise self._unwritten("log_probs")

    def _over_log_probs(
        self,
        function,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        context: Context,
        prepared: Prepared,
    ):
        """function(log p of every word [n, V], place of the first token) of blocks of n tokens."""
        shape = hidden.shape[:-1]
        tokens = math.prod(shape)
        if prepared is None:
            prepared = self.prepared(params, tables)  # once, not in every block

        def log_probs(hidden, context):
            return self.log_probs(params, tables, hidden, context=context, prepared=prepared)

        def of_block(columns):
            h, c, places = columns
            return function(log_probs(h, c), places[0])

        words = jax.eval_shape(log_probs, hidden, context).shape[-1]
        flat = jax.tree.map(lambda x: x.reshape(tokens, *x.shape[len(shape) :]), (hidden, context))
        block = softmax_sum.token_block(tokens, self.scores_per_token(words))
        results = blocks.map_rows(of_block, (*flat, jnp.arange(tokens)), block)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), results)
