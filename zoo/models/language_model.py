"""A language model: words -> embedding -> core -> head."""

import dataclasses
import functools
from typing import Any, ClassVar

import jax

from zoo.base.arrays.random_keys import Keys, fold_in_rows
from zoo.base.arrays.types import Carry, Context, Key, Params, Prepared, Tables
from zoo.base.component_registry import Component
from zoo.cores import LSTM, Core
from zoo.embeddings import Embedding, Lookup
from zoo.errors import UserError, check_least
from zoo.heads import Head, Softmax
from zoo.heads.head_around import nested
from zoo.layers import dropout
from zoo.layers.core import Stacked
from zoo.lexicon import Lexicon
from zoo.losses.token_blocks import weighted_sum
from zoo.priors.prior import Contextual

# ---- the interface of models: components composed into something that an experiment trains


class Model(Component):
    """A model of some kind. Subclasses are frozen dataclasses of components, with pure methods.

    A kind of model is trained by its task: see zoo.lab.training.tasks.
    """

    # Names in a run's folder of the lexicons that `init` and the tables take, in their order; the
    # first has the words that are predicted.
    lexicon_names: ClassVar[tuple[str, ...]] = ("lexicon",)

    # A prior that has to be prepared from the texts, or None.
    background: Contextual | None = None

    def init(self, key: jax.Array, lexicon: Lexicon, *source_lexicons: Lexicon) -> Params:
        """Initialises the parameters, for the lexicons of `lexicon_names`."""
        raise self._unwritten("init")

    def evaluation_tables(self, lexicon: Lexicon, *source_lexicons: Lexicon) -> Tables:
        """Returns the tables for exact probabilities; subclasses override it."""
        raise self._unwritten("evaluation_tables")

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts the words for which components lack information, by reason; see Head.warnings."""
        return {}

    def component(self, part: str) -> Any:
        """Returns the component of a group of parameters, as `init` names it."""
        return getattr(self, part)


# Uses of a batch's keys, besides the core's masks and noise words.
_WORDS, _OUTPUTS = 0x776F7264, 0x6F757470


class WordPredictor(Model):
    """A model that ends in an embedding of the words it predicts, and a head."""

    embedding: Embedding
    head: Head

    @property
    def background(self) -> Contextual | None:  # type: ignore[override]
        return self.head.background

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        return {**self.embedding.warnings(lexicon), **self.head.warnings(lexicon)}

    @functools.partial(jax.jit, static_argnums=0)
    def prepared(self, params: Params, tables: Tables) -> Prepared:
        """Computes the head's arrays that all texts share, or returns None; see Head.prepared."""
        return self.head.prepared(self.head_params(params), tables["head"])

    def head_params(self, params: Params) -> Params:
        """Returns the head's parameters, with the shared table if it is tied."""
        if self.head.tied:
            return {**params["head"], "weights": params["embedding"]["table"]}
        return params["head"]


@dataclasses.dataclass(frozen=True)
class LanguageModel(WordPredictor):
    """p(w_1 ... w_T) = prod_t p(w_t | h_t, c_t), h_t the core's state after w_1 ... w_(t-1).

    c_t is the context of the head's background after the same words, if it has one. The carry is
    the core's, or a pair of the core's and the background's.

    Attributes:
      embedding: maps words to vectors.
      core: maps vectors to hidden states. It must be causal: otherwise UserError.
      head: maps hidden states to distributions. A tied head shares the embedding's table.
      word_dropout: the rate at which training drops whole words of the lexicon: the vector of such
        a word is 0 wherever it occurs in the batch (Gal and Ghahramani 2016).
      output_dropout: the dropout rate of the hidden states that the head reads; all positions of a
        batch row share a mask. Beside the core's own `dropout` of its last layer.
      activation_penalty: alpha; training adds alpha times the mean square of the numbers of h_t,
        after `output_dropout` (Merity et al. 2018, section 4.6).
      temporal_penalty: beta; training adds beta times the mean square of h_t - h_(t-1), before
        `output_dropout`, but after the core's own dropout of its last layer, which the paper does
        not have (`last_dropout=0`).

    Arguments of methods:
      lexicon: the words; there are no `*source_lexicons`.
      hidden_size: D of the states that the head sees; 0 for the core's own.
      params, tables: the results of `init` and `tables`.
      words: int32 [B, T], the word before each position.
      targets: int32 [B, T], the word at each position.
      token_weights: [B, T], or an array that broadcasts to it.
      carry: of `initial_carry`; of `hidden`, the core's alone, without a background's.
      reset: bool [B, T], True where a text begins; or None.
      key: turns dropout and a sampled head's noise on; one key, or
        `zoo.base.arrays.random_keys.Keys`.
      prepared: the result of `prepared` for these parameters, to evaluate many batches; or None.
    """

    embedding: Embedding = Lookup()
    core: Core = LSTM()
    head: Head = Softmax()
    word_dropout: float = 0.0
    output_dropout: float = 0.0
    activation_penalty: float = 0.0
    temporal_penalty: float = 0.0

    def __post_init__(self):
        dropout.check_rates(self, "word_dropout", "output_dropout")
        check_least(self, "model", activation_penalty=0, temporal_penalty=0)
        if isinstance(self.core, Core) and not self.core.causal:
            raise UserError(
                f"model.core is {type(self.core).__name__}, whose hidden states depend on later "
                "words: take a causal core, such as LSTM; only an encoder may read later words."
            )

    @property
    def hidden_size(self) -> int:
        return self.core.output_size

    def tables(self, lexicon: Lexicon) -> Tables:
        """Returns {"embedding", "head"}: each component's constant arrays of the lexicon."""
        return {"embedding": self.embedding.tables(lexicon), "head": self.head.tables(lexicon)}

    def evaluation_tables(self, lexicon: Lexicon, *source_lexicons: Lexicon) -> Tables:
        head = self.head.evaluation_tables(lexicon)
        return {"embedding": self.embedding.tables(lexicon), "head": head}

    def init(
        self, key: jax.Array, lexicon: Lexicon, *source_lexicons: Lexicon, hidden_size: int = 0
    ) -> Params:
        """Initialises the parameters of each component: {"embedding", "core", "head"}."""
        hidden_size = hidden_size or self.core.output_size
        embedding_key, core_key, head_key = jax.random.split(key, 3)
        embedding = self.embedding.init(embedding_key, lexicon)
        if self.head.tied:
            self._check_tied_table(embedding, hidden_size, lexicon)
        return {
            "embedding": embedding,
            "core": self.core.init(core_key, self.embedding.size),
            "head": self.head.init(head_key, hidden_size, lexicon),
        }

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Returns the parameters for another lexicon; UserError if a component has none."""
        head = self.head.for_lexicon(params["head"], lexicon, new_lexicon)
        embedding = self.embedding.for_lexicon(params["embedding"], lexicon, new_lexicon)
        return {**params, "embedding": embedding, "head": head}

    def row_tables(self, params: Params) -> list[tuple[str, ...]]:
        """Returns paths of parameters of which a loss only reads rows: [("embedding", "table")]."""
        embedding_names, head_names = self.embedding.row_tables, self.head.row_tables
        if self.head.tied and "weights" not in head_names:
            embedding_names = ()  # the head reads all of the shared table
        paths = [("embedding", *name.split("/")) for name in embedding_names]
        paths += [("head", *name.split("/")) for name in head_names]
        return [path for path in paths if path[1] in params[path[0]]]

    def initial_carry(self, batch: int) -> Carry:
        """Returns the carry before any word, every leaf [batch, ...]."""
        carry = self.core.initial_carry(batch)
        background = self.head.background
        if background is None:
            return carry
        options = {"hidden_size": self.core.output_size} if background.reads_states else {}
        return carry, background.initial_carry(batch, **options)

    def hidden(
        self,
        params: Params,
        tables: Tables,
        words: jax.Array,
        carry: Carry,
        *,
        reset: jax.Array | None = None,
        key: Key | None = None,
    ) -> tuple[jax.Array, Carry]:
        """Runs embedding and core: words [B, T] -> (hidden [B, T, D], carry)."""
        inputs = self.embedding.vectors(params["embedding"], tables["embedding"], words)
        if key is not None and self.word_dropout:
            key = Keys.from_key(key, words.shape[0])
            word_key = jax.random.fold_in(key.batch, _WORDS)
            inputs = dropout.drop_words(inputs, words, self.word_dropout, word_key)
        return self.core.apply(params["core"], inputs, carry, reset=reset, key=key)

    def states(
        self,
        params: Params,
        tables: Tables,
        words: jax.Array,
        carry: Carry,
        *,
        reset: jax.Array | None = None,
        key: Key | None = None,
    ) -> tuple[jax.Array, Context, Carry]:
        """Runs embedding, core and background; returns (hidden [B, T, D], context, carry)."""
        background = self.head.background
        if background is None:
            hidden, carry = self.hidden(params, tables, words, carry, reset=reset, key=key)
            return hidden, None, carry
        core_carry, background_carry = carry
        hidden, core_carry = self.hidden(params, tables, words, core_carry, reset=reset, key=key)
        options = {"hidden": hidden} if background.reads_states else {}
        context, background_carry = background.apply(
            tables["head"]["background"], words, background_carry, reset=reset, **options
        )
        return hidden, context, (core_carry, background_carry)

    def weighted_loss(
        self,
        params: Params,
        tables: Tables,
        words: jax.Array,
        targets: jax.Array,
        token_weights: jax.Array,
        carry: Carry,
        *,
        reset: jax.Array | None = None,
        key: Key | None = None,
    ) -> tuple[jax.Array, jax.Array, Carry]:
        """Computes (sum of token_weights * loss, which training minimises, its part that is
        penalty, carry), both sums in nats."""
        if key is not None:
            key = Keys.from_key(key, words.shape[0])
        hidden, context, carry = self.states(params, tables, words, carry, reset=reset, key=key)
        outputs = hidden
        if key is not None and self.output_dropout:
            keys = fold_in_rows(key.rows, _OUTPUTS)
            outputs = dropout.drop(hidden.swapaxes(0, 1), self.output_dropout, keys, locked=True)
            outputs = outputs.swapaxes(0, 1)
        head_inputs = self.head_params(params), tables["head"], outputs, targets, token_weights
        loss, penalty = self.head.weighted_loss_and_penalty(*head_inputs, key=key, context=context)
        if self.activation_penalty or self.temporal_penalty:
            penalties = self.activation_penalty * dropout.activation_penalty(outputs)
            changes = dropout.temporal_penalty(hidden, reset)
            state_penalty = weighted_sum(penalties + self.temporal_penalty * changes, token_weights)
            loss, penalty = loss + state_penalty, penalty + state_penalty
        return loss, penalty, carry

    def log_prob(
        self,
        params: Params,
        tables: Tables,
        words: jax.Array,
        targets: jax.Array,
        carry: Carry,
        *,
        reset: jax.Array | None = None,
        prepared: Prepared = None,
    ) -> tuple[jax.Array, Carry]:
        """Computes (log p(target) [B, T] in nats, exact; carry)."""
        (log_prob, _), carry = self.log_prob_and_log_z(
            params, tables, words, targets, carry, reset=reset, prepared=prepared
        )
        return log_prob, carry

    def log_prob_and_log_z(
        self,
        params: Params,
        tables: Tables,
        words: jax.Array,
        targets: jax.Array,
        carry: Carry,
        *,
        reset: jax.Array | None = None,
        prepared: Prepared = None,
    ) -> tuple[tuple[jax.Array, jax.Array], Carry]:
        """Computes ((log p(target), log Z), [B, T] each, in nats, exact; carry)."""
        hidden, context, carry = self.states(params, tables, words, carry, reset=reset)
        head_inputs = self.head_params(params), tables["head"], hidden, targets
        options = {"context": context, "prepared": prepared}
        return self.head.log_prob_and_log_z(*head_inputs, **options), carry

    # ---- tied weights: output vectors that are the embedding's table (Press and Wolf 2017)

    def _check_tied_table(self, embedding_params: Params, hidden_size: int, lexicon: Lexicon):
        """Raises UserError if a tied head cannot share the embedding's table."""
        core, (*_, head) = self.core, nested(self.head)  # the parameters are the innermost head's
        head_kinds, embedding_kinds = (part.kinds or () for part in (head, self.embedding))
        if set(head_kinds) != set(embedding_kinds):
            raise UserError(
                f"a tied {type(head).__name__} shares the embedding's table, whose features are "
                f"{', '.join(embedding_kinds) or 'of all kinds'}, and the head's are "
                f"{', '.join(head_kinds) or 'of all kinds'}: give both the same kinds, or set "
                "model.head.tied=False."
            )
        untied = dataclasses.replace(head, tied=False)
        shapes = jax.eval_shape(lambda: untied.init(jax.random.key(0), hidden_size, lexicon))
        weights_shape = shapes["weights"].shape
        table = embedding_params.get("table")
        table_shape = None if table is None else table.shape
        if table_shape != weights_shape:
            alternative = ""
            if table_shape and table_shape[0] == weights_shape[0]:
                if getattr(head, "size", 0):  # of a mixture's contexts
                    alternative = f", a head with model.head.size={table_shape[1]}"
                elif isinstance(core, Stacked) and hidden_size == core.cells(core.layers - 1):
                    alternative = f", a core with model.core.last_size={table_shape[1]}"
            raise UserError(
                f"a tied {type(head).__name__} shares the embedding's table, which must have the "
                f"shape {weights_shape} and is {table_shape} in {self.embedding}: take an "
                f"embedding of the same kind with model.embedding.size={weights_shape[1]}"
                f"{alternative}, or set model.head.tied=False."
            )
