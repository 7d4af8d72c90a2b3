"""An encoder-decoder: source words -> encoder -> its last carry -> decoder -> head.

Sutskever, Vinyals and Le, "Sequence to sequence learning with neural networks" (2014), section 2.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from zoo.attention import Attention
from zoo.base.arrays import products
from zoo.base.arrays.random_keys import Keys, uniform
from zoo.base.arrays.types import Carry, Context, Key, Params, Prepared, Tables
from zoo.cores import LSTM, Core
from zoo.embeddings import Embedding, Lookup
from zoo.errors import UserError, check_choices, check_least
from zoo.heads import Head, Softmax
from zoo.layers.attention import PreparedMemory
from zoo.layers.core import Stacked
from zoo.layers.input_feeding import InputFed
from zoo.lexicon import Lexicon
from zoo.models.language_model import LanguageModel, WordPredictor
from zoo.priors import Grammar

ORDERS = ("forward", "source_reversed", "target_reversed")
BRIDGES = ("carry", "zeros", "last", "projection")


class Encoded(NamedTuple):
    """Encoded sources: the decoder's first carry, and the memory for attention."""

    carry: Carry  # the decoder's before its first word, leaves [B, ...]
    memory: jax.Array  # the encoder's hidden states [B, S, M]
    mask: jax.Array  # bool [B, S], False at padding
    prepared: PreparedMemory | None = None


@dataclasses.dataclass(frozen=True)
class SequenceToSequence(WordPredictor):
    """p(y_1 ... y_n | x) = prod_t p(y_t | h_t, c_t), h_t the decoder's state after y_1 ... y_(t-1).

    The decoder is the `LanguageModel` of embedding, core and head. Its carry starts as the
    encoder's after the last word of x, or as the bridge computes it, so that any head scores y
    exactly, with its background, its tied weights and its penalties. With attention the head sees
    the attentional states computed from h_t and the encoder's hidden states. They do not enter the
    decoder's carry, so that all positions are computed at once, unless input feeding is on.

    Attributes:
      embedding: the decoder's.
      core: the decoder's.
      head: the decoder's. A tied head shares the embedding's table.
      source_embedding: the encoder's, with its own parameters; None for one like the decoder's.
      encoder: the encoder's core, with its own parameters; None for one like the decoder's. Its
        carry, passed through `decoder_carry`, has the shapes of the core's, or there is a bridge.
      attention: one of `zoo.attention`, or None.
      order: "forward"; "source_reversed": the encoder reads x from its last word to its first; or
        "target_reversed": the decoder generates y from its last word to its first, then the
        boundary.
      source_share: the encoder reads the first ceil(source_share * n) of the n words of a source,
        above 0 and at most 1. With a reversed source and a share of a half, it leaves out the words
        that reversal moves away from their translations.
      initial_scale: all parameters start uniform in +-initial_scale, as in section 3.4 in +-0.08; 0
        keeps each component's own initialisation.
      input_feeding: whether the attentional state of a word is an input of the core at the next,
        beside the word's vector (Luong et al. 2015, section 3.3). Positions are then computed one
        after another.
      bridge: what the decoder's carry starts as: "carry", the encoder's; "zeros"; or h as the state
        and the cell of every layer, with s the last hidden state of the encoder's last layer:
        "last", h = s; "projection", h = tanh(s W + b) (Bahdanau et al. 2015, section A.2.2).
      source_boundary: whether the encoder reads the boundary after the words of a source (Sutskever
        et al. 2014, section 2).

    Arguments of methods:
      lexicon, *source_lexicons: the words of the target, and the words of the source.
      params, tables: the results of `init` and `tables`.
      source: int32 [B, S], words in the order in which they are read, padded on the left: so the
        last column holds every row's last word, and the last carry is the whole batch's.
      lengths: int32 [B], words of each row of the source, at least 1.
      encoded: of `encode`.
      hidden: [B, T, D], or [B K, D] of K hypotheses a sentence.
      words: int32 [B, T], the word before each position, the boundary first.
      targets: int32 [B, T], the word at each position.
      token_weights: [B, T], 0 at padding.
      key: turns dropout and a sampled head's noise on; one key, or
        `zoo.base.arrays.random_keys.Keys`.
      prepared: the result of `prepared`, or None.
    """

    embedding: Embedding = Lookup()
    core: Core = LSTM()
    head: Head = Softmax()
    source_embedding: Embedding | None = None
    encoder: Core | None = None
    attention: Attention | None = None
    order: str = "source_reversed"
    source_share: float = 1.0
    initial_scale: float = 0.0
    input_feeding: bool = False
    bridge: str = "carry"
    source_boundary: bool = False

    lexicon_names = ("lexicon", "source")

    def __post_init__(self):
        """Checks the numbers, and that the decoder's components fit an encoder-decoder."""
        check_choices(self, "model", order=ORDERS, bridge=BRIDGES)
        check_least(self, "model", initial_scale=0)
        if not 0 < self.source_share <= 1:
            raise UserError(
                f"model.source_share={self.source_share} is not a share of a source's words: give "
                "a number above 0, and at most 1."
            )
        if self.order == "target_reversed" and isinstance(self.head.background, Grammar):
            raise UserError(
                "model.order=target_reversed generates translations from the last word to the "
                "first, and the grammar of model.head.background reads from the first: give "
                "another order."
            )
        if self.head.background is not None and self.head.background.reads_states:
            raise UserError(
                f"model.head is {type(self.head).__name__}, whose memory is for one long text: "
                "give a decoder another head."
            )
        if self.input_feeding and self.attention is None:
            raise UserError(
                "model.input_feeding feeds attentional states, and model.attention is None: set "
                "model.attention=Luong, for example, or model.input_feeding=False."
            )
        encoder = getattr(self._encoder[1], "core", self._encoder[1])  # of one or both directions
        if self.bridge in ("last", "projection") and not isinstance(encoder, Stacked):
            raise UserError(
                f"model.bridge={self.bridge} reads the last layer of an encoder of layers, and "
                f"model.encoder is {type(encoder).__name__}: give LSTM, GRU or Elman, or "
                "model.bridge=zeros."
            )
        LanguageModel(self.embedding, self.core, self.head)  # refuses a core that is not causal

    @property
    def decoder(self) -> LanguageModel:
        """The language model of the target, with a part of the parameters and tables."""
        core = self.core
        if self.attention is not None and self.input_feeding:
            core = InputFed(core, self.attention)
        return LanguageModel(self.embedding, core, self.head)

    @property
    def hidden_size(self) -> int:
        size = self.core.output_size
        return size if self.attention is None else self.attention.output_size(size)

    @functools.cached_property
    def _encoder(self) -> tuple[Embedding, Core]:
        return self.source_embedding or self.embedding, self.encoder or self.core

    def component(self, part: str) -> Any:
        embedding, core = self._encoder
        parts = {"source_embedding": embedding, "encoder": core, "bridge": self.core}
        return parts.get(part) or getattr(self, part)

    def tables(self, lexicon: Lexicon, *source_lexicons: Lexicon) -> Tables:
        return {**self.decoder.tables(lexicon), **self._source_tables(*source_lexicons)}

    def evaluation_tables(self, lexicon: Lexicon, *source_lexicons: Lexicon) -> Tables:
        return {**self.decoder.evaluation_tables(lexicon), **self._source_tables(*source_lexicons)}

    def _source_tables(self, lexicon: Lexicon) -> Tables:
        tables: Tables = {"source_embedding": self._encoder[0].tables(lexicon)}
        if self.source_boundary:
            if lexicon.boundary_id is None:
                raise UserError(
                    "model.source_boundary reads a boundary that the source's words do not have: "
                    "set it when the run is trained, and not later."
                )
            tables["source_boundary"] = jnp.asarray(lexicon.boundary_id, jnp.int32)
        return tables

    def init(self, key: jax.Array, lexicon: Lexicon, *source_lexicons: Lexicon) -> Params:
        """Initialises {"embedding", "core", "head", "source_embedding", "encoder"}, and "attention"
        and "bridge" if there are such parameters."""
        (source_lexicon,) = source_lexicons
        embedding, core = self._encoder
        decoder_key, embedding_key, encoder_key, attention_key, scale_key = jax.random.split(key, 5)
        size, attention = self.core.output_size, self.attention
        params = {
            **self.decoder.init(decoder_key, lexicon, hidden_size=self.hidden_size),
            "source_embedding": embedding.init(embedding_key, source_lexicon),
            "encoder": core.init(encoder_key, embedding.size),
        }
        if attention is not None:
            params["attention"] = attention.init(attention_key, size, core.output_size)
        if self.bridge == "projection":
            carry = jax.eval_shape(lambda: core.decoder_carry(core.initial_carry(1)))
            shape = _last_state(carry).shape[1], size
            weights = uniform(jax.random.fold_in(encoder_key, 1), shape, shape[0] ** -0.5)
            params["bridge"] = {"weights": weights, "bias": jnp.zeros(size)}
        self._check_carries(params)
        if self.initial_scale:
            scale = self.initial_scale
            draw = functools.partial(jax.random.uniform, minval=-scale, maxval=scale)
            params = optax.tree.random_like(scale_key, params, draw)
        return params

    def _check_carries(self, params: Params):
        """Raises UserError unless the bridge gives a carry of the core's form."""
        core = self._encoder[1]
        carries = jax.eval_shape(
            lambda: (self.core.initial_carry(1), self._core_carry(params, core.initial_carry(1), 1))
        )
        shapes, encoder_shapes = (
            {path: leaf.shape[1:] for path, leaf in jax.tree.leaves_with_path(carry)}
            for carry in carries
        )
        if shapes != encoder_shapes:
            raise UserError(
                f"the last state of model.encoder, a {type(core).__name__}, has the shapes "
                f"{[*encoder_shapes.values()]}, and cannot start model.core, a "
                f"{type(self.core).__name__} with {[*shapes.values()]}: give both the same kind of "
                "core with the same size and layers (two directions that are concatenated have "
                "twice the encoder's size), or model.encoder=none for one like the decoder's, or "
                "model.bridge=projection, for layers of one size."
            )

    def _core_carry(self, params, carry, batch):
        """Returns the core's carry before the first target word, from the encoder's last."""
        carry = self._encoder[1].decoder_carry(carry)
        if self.bridge == "carry":
            return carry
        first = self.core.initial_carry(batch)
        if self.bridge == "zeros":
            return first
        state = _last_state(carry)
        if self.bridge == "projection":
            bridge = params["bridge"]
            state = jnp.tanh(products.affine(state, bridge["weights"], bridge["bias"]))
        return jax.tree.map(lambda _: state, first)

    def row_tables(self, params: Params) -> list[tuple[str, ...]]:
        """Returns paths of the parameters of which a loss only reads rows; see Task.row_tables."""
        paths = self.decoder.row_tables(params)
        source_params = params["source_embedding"]
        names = [name.split("/") for name in self._encoder[0].row_tables]
        return paths + [("source_embedding", *path) for path in names if path[0] in source_params]

    def encode(
        self,
        params: Params,
        tables: Tables,
        source: jax.Array,
        lengths: jax.Array,
        *,
        key: Key | None = None,
    ) -> Encoded:
        """Encodes sources, whatever their padding."""
        batch, width = source.shape
        source, lengths = self._select_words(source, lengths)
        if self.source_boundary:
            ends = jnp.broadcast_to(tables["source_boundary"], (batch, 1))
            source, lengths = jnp.concatenate([source, ends], axis=1), lengths + 1
            width += 1
        start = width - lengths[:, None]
        positions = jnp.arange(width)[None]
        embedding, core = self._encoder
        inputs = embedding.vectors(params["source_embedding"], tables["source_embedding"], source)
        # The reset at the first word removes the effect of padding on the carry.
        memory, carry = core.apply(
            params["encoder"],
            inputs,
            core.initial_carry(batch),
            reset=positions == start,
            key=None if key is None else Keys.from_key(key, batch).fold_in(_ENCODER),
        )
        carry = self._core_carry(params, carry, batch)
        if self.input_feeding:
            carry = carry, jnp.zeros((batch, self.hidden_size))
        if self.background is not None:
            carry = carry, self.background.initial_carry(batch)
        mask, prepared = positions >= start, None
        if self.attention is not None:
            prepared = self.attention.prepared(params["attention"], memory, mask)
        return Encoded(carry, memory, mask, prepared)

    def _select_words(self, source, lengths):
        """Returns (words, lengths) of the part of the sources that is read, in the last columns."""
        if self.source_share == 1:
            return source, lengths
        read_lengths = jnp.ceil(self.source_share * lengths).astype(lengths.dtype)
        if self.order != "source_reversed":
            # The first words of a sentence are not the last columns.
            source = _shift_right(source, lengths - read_lengths)
        return source, read_lengths

    def attentional_states(self, params: Params, hidden: jax.Array, encoded: Encoded) -> jax.Array:
        """Returns the states that the head sees: hidden states, or attentional ones."""
        if self.attention is None:
            return hidden
        return self._attend(params, hidden, encoded)[0]

    def _attend(self, params: Params, hidden: jax.Array, encoded: Encoded):
        if self.attention is None:
            raise UserError(
                "this model has no attention, and so no attention weights: train one with --set "
                "model.attention=Luong."
            )
        return self.attention.apply(
            params["attention"], hidden, encoded.memory, encoded.mask, prepared=encoded.prepared
        )

    def attention_weights(
        self,
        params: Params,
        tables: Tables,
        source: jax.Array,
        lengths: jax.Array,
        words: jax.Array,
    ) -> jax.Array:
        """Computes attention weights of target words to source words, [B, T, S].

        The weights of a target sum to 1 over the columns of its source's words, which are placed as
        in `source`: at the end, in the order in which they are read. With `source_boundary` the
        rest is the boundary's, which has no column.
        """
        encoded = self.encode(params, tables, source, lengths)
        hidden, *_ = self.advance(params, tables, encoded, words, encoded.carry)
        weights = self._attend(params, hidden, encoded)[1][:, :, : source.shape[1]]
        return self._by_source_word(weights, lengths)

    def _by_source_word(self, values, lengths):
        """Maps the columns of [B, T, S] from the words that are read to all of the sources'."""
        if self.source_share == 1 or self.order == "source_reversed":
            return values
        # Columns of words that were not read are 0, before the columns of the words that were.
        unread = lengths - self._select_words(jnp.zeros((len(lengths), 1), jnp.int32), lengths)[1]
        return jax.vmap(lambda rows, shift: jnp.roll(rows, -shift, axis=-1))(values, unread)

    def states(
        self,
        params: Params,
        tables: Tables,
        encoded: Encoded,
        words: jax.Array,
        *,
        key: Key | None = None,
    ) -> tuple[jax.Array, Any]:
        """Computes (the head's inputs [B, T, D], its context) after the word before each target."""
        _, states, context, _ = self.advance(params, tables, encoded, words, encoded.carry, key=key)
        return states, context

    def advance(
        self,
        params: Params,
        tables: Tables,
        encoded: Encoded,
        words: jax.Array,
        carry: Carry,
        *,
        key: Key | None = None,
    ) -> tuple[jax.Array, jax.Array, Context, Carry]:
        """Runs the decoder from a carry: (hidden [B, T, D], the head's inputs [B, T, R], context,
        carry)."""
        decoder, core = self.decoder, self.decoder.core
        if not isinstance(core, InputFed):
            hidden, context, carry = decoder.states(params, tables, words, carry, key=key)
            return hidden, self.attentional_states(params, hidden, encoded), context, carry
        core = dataclasses.replace(
            core, attention_params=params["attention"], memory=encoded.prepared
        )
        fed = dataclasses.replace(decoder, core=core)
        outputs, context, carry = fed.states(params, tables, words, carry, key=key)
        hidden, states = jnp.split(outputs, [self.core.output_size], axis=-1)
        return hidden, states, context, carry

    def weighted_loss(
        self,
        params: Params,
        tables: Tables,
        source: jax.Array,
        lengths: jax.Array,
        words: jax.Array,
        targets: jax.Array,
        token_weights: jax.Array,
        *,
        key: Key | None = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Computes (sum of token_weights * loss, its part that is penalty), scalars in nats."""
        if key is not None:
            key = Keys.from_key(key, words.shape[0])
        encoded = self.encode(params, tables, source, lengths, key=key)
        hidden, context = self.states(params, tables, encoded, words, key=key)
        head_inputs = self.head_params(params), tables["head"], hidden, targets, token_weights
        return self.head.weighted_loss_and_penalty(*head_inputs, key=key, context=context)

    def log_prob_and_log_z(
        self,
        params: Params,
        tables: Tables,
        source: jax.Array,
        lengths: jax.Array,
        words: jax.Array,
        targets: jax.Array,
        *,
        prepared: Prepared = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Computes (log p(target | source, targets before), log Z), [B, T] each, in nats, exact."""
        encoded = self.encode(params, tables, source, lengths)
        hidden, context = self.states(params, tables, encoded, words)
        head_inputs = self.head_params(params), tables["head"], hidden, targets
        return self.head.log_prob_and_log_z(*head_inputs, context=context, prepared=prepared)


# Folded into the batch's key for the encoder's dropout; the decoder uses the key itself.
_ENCODER = 0x656E63


def _last_state(carry):
    """Returns the hidden state of the last layer, which comes before its cell."""
    return jax.tree.leaves(carry[-1])[0]


def _shift_right(array, offsets):
    """Moves rows [B, S] to the right, each by its number of columns; fills with 0."""
    columns = jnp.arange(array.shape[1])[None] - offsets[:, None]
    shifted = jnp.take_along_axis(array, jnp.maximum(columns, 0), axis=1)
    return jnp.where(columns >= 0, shifted, 0)
