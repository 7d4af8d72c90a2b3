"""A small LSTM that spells the next word, letter by letter, given the hidden state.

Jozefowicz et al., "Exploring the limits of language modeling" (2016), section 3.3. A spelling is
c_1 ... c_m, the letters of the word and the mark of its end; c_0 is the mark of its beginning. With
the hidden state h of the word-level core, at every letter,

    i, f, o = sigmoid(z), g = tanh(z),   z = C[c_(j-1)] W + h P + u_(j-1) U + b   (four blocks of z)
    s_j = f * s_(j-1) + i * g,  u_j = o * tanh(s_j)

    log p(word | h) = sum_j log softmax(u_j O + d)[c_j]

No parameter belongs to a word, and the cost of training on a word or of scoring it does not depend
on the number of words. p sums to one over all spellings, most of which are not words.
Renormalised over a lexicon V,

    log p_V(x | h) = log p(x | h) - log sum_{v in V} p(v | h),

which costs the letters of all words at each position; a prefix that words share is read once.

Letters are predicted in at least float32, whatever the type of the parameters: two functions score
the same spelling, and where bfloat16 rounded differently in the two, p would not sum to one.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp

from zoo.base.arrays import products, row_lookup, sharded_functions
from zoo.base.arrays.parameter_sharding import HIDDEN, axes
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.row_blocks import map_by_length
from zoo.base.arrays.types import Params, Tables
from zoo.errors import check_least
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.layers.lstm import cell_step, lstm
from zoo.lexicon import Lexicon
from zoo.lexicon.spelling import BEGIN, END, PrefixTree, Spelling, prefix_tree
from zoo.losses.token_blocks import sum_by_length


@dataclasses.dataclass(frozen=True)
class CharLSTM(Head):
    """p(x | h) = prod_j p(c_j | c_<j, h).

    Attributes:
      spelling: how words become letters. A word of `longest` letters or more is spelled without the
        mark of its end, and stands for all words that begin with these letters.
      size: the number of cells.
      letter_size: the dimension of a letter's vector.
      renormalised: whether `log_prob` is normalised over the words of the lexicon instead of all
        spellings. The loss is always normalised over all spellings.
      initial_scale: letter vectors start uniform in +-initial_scale.

    Example:
      >>> params = heads.CharLSTM(size=3).init(key, 4, lexicon)  # no parameter belongs to a word
      >>> heads.CharLSTM().normalised_over(lexicon)
      'all spellings of 50 bytes at most'
    """

    spelling: Spelling = Spelling()
    size: int = 128
    letter_size: int = 32
    renormalised: bool = False
    initial_scale: float = 0.5

    spells = True
    parameter_axes = axes(hidden=(HIDDEN, None))
    array_shapes = Shapes(
        {
            "letters": "A E",
            "input": "E G",
            "hidden": "D G",
            "recurrent": "S G",
            "bias": "G",
            "output": "S O",
            "output_bias": "O",
        },
        {
            "letters": "int V L",
            "lengths": "int V",
            "parent": "int B K",
            "letter": "int B K",
            "node": "int V",
            "final": "int V",
        },
    )

    def __post_init__(self):
        check_least(self, size=1, letter_size=1)

    def _tables(self, lexicon: Lexicon) -> Tables:
        """Returns the tables of Spelling.sequence_tables, and the words' PrefixTree."""
        tables = self.spelling.sequence_tables(lexicon)
        tables |= prefix_tree(tables["letters"], tables["lengths"], BEGIN)._asdict()
        return {name: jnp.asarray(array) for name, array in tables.items()}

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        # Each of several words that are then spelled alike has the probability of their spelling.
        return self.spelling.warnings(lexicon, "head")

    def normalised_over(self, lexicon: Lexicon) -> str:
        if self.renormalised:
            return super().normalised_over(lexicon)
        spellings = f"all spellings of {self.spelling.longest} {self.spelling.unit} at most"
        if self.spelling.unit == "characters":
            spellings += ", those outside the alphabet being one"
        return spellings

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Returns the parameters unchanged: none belongs to a word."""
        self.spelling.check_same_letters(lexicon, new_lexicon)
        return params

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws C, W, P, U, b, O and d of the equations, in the order of the names below.

        {"letters" [A, letter_size], "input", "hidden", "recurrent", "bias", "output" [size, A'],
        "output_bias"}; A' is the number of letters to predict, from END on. Weights start uniform,
        with the variance 1 / (3 inputs), and the forget gate's bias at 1.
        """
        letters = self.spelling.letter_count(lexicon)
        keys = iter(jax.random.split(key, 5))

        def linear(inputs, outputs):
            return uniform(next(keys), (inputs, outputs), inputs**-0.5)

        return {
            "letters": uniform(next(keys), (letters, self.letter_size), self.initial_scale),
            "input": linear(self.letter_size, 4 * self.size),
            "hidden": linear(hidden_size, 4 * self.size),
            "recurrent": linear(self.size, 4 * self.size),
            "bias": jnp.zeros((4, self.size)).at[1].set(1.0).reshape(-1),
            "output": linear(self.size, letters - END),
            "output_bias": jnp.zeros(letters - END),
        }

    # ------------------------------------------------------------ spelling

    def spelling_step(self, params: Params, projected, previous, state):
        """Reads the letters before, int [n], and the hidden states' part of the gates, [n, 4 size];
        returns (log p of the next letter [n, A'], the state)."""
        u, s = state
        inputs = products.matmul(params["letters"][previous], params["input"]) + projected
        u, s, _ = cell_step(inputs + products.matmul(u, params["recurrent"]), s)
        logits = products.affine(u, params["output"], params["output_bias"])
        return jax.nn.log_softmax(logits, axis=-1), (u, s)

    def spelling_start(self, projected):
        """Returns the state before the first letter of n spellings: (u, s), [n, size] each."""
        zeros = sharded_functions.zeros((projected.shape[0], self.size), projected.dtype, projected)
        return zeros, zeros

    def hidden_projection(self, params: Params, hidden: jax.Array):
        """Computes h P + b, the hidden state's part of every letter's gates, [n, 4 size]."""
        return products.affine(hidden, params["hidden"], params["bias"])

    def _with_alphabet(self, params: Params) -> Params:
        """Multiplies letters by the input weights once, for all blocks: "alphabet" [A, 4 size]."""
        weights = {name: x for name, x in params.items() if name not in ("letters", "input")}
        return {
            **weights,
            "alphabet": products.matmul(params["letters"], params["input"]),
        }

    def _spelling_log_prob(self, params: Params, letters, lengths, projected):
        """Computes log p of the spellings [n, L], nats, [n]."""
        count, longest = letters.shape
        previous = jnp.concatenate([jnp.full_like(letters[:, :1], BEGIN), letters[:, :-1]], axis=1)
        # As `spelling_step`, all letters being known: products of all positions at once. Spellings
        # keep their axis, along which they may be shared out.
        projections = row_lookup.take(params["alphabet"], previous.T) + projected[None]
        keep = jnp.ones((longest, count, 1), projected.dtype)
        u, s = self.spelling_start(projected)
        u, _ = lstm(projections, params["recurrent"], u, s, keep)
        logits = products.affine(u, params["output"], params["output_bias"])
        columns = jnp.maximum(letters.T - END, 0)[..., None]
        letter_logits = jnp.take_along_axis(logits, columns, axis=-1)[..., 0]
        log_prob = letter_logits - jax.nn.logsumexp(logits, axis=-1)
        is_letter = jnp.arange(longest)[:, None] < lengths[None]
        return jnp.where(is_letter, log_prob, 0).sum(axis=0)

    def spelled_log_prob(self, params: Params, hidden: jax.Array, letters, lengths, rows=1):
        """Computes log p of any spellings of N tokens in `rows` batch rows, [N], nats, normalised
        over all spellings; see Spelling.sequence_tables."""
        columns = letters, lengths, (self.hidden_projection(params, hidden),)
        params = self._with_alphabet(params)
        return map_by_length(self._spelling_log_prob, params, *columns, rows=rows)

    def sample_spellings(self, params: Params, hidden: jax.Array, key: jax.Array):
        """Draws spellings letter by letter, int32 [N, longest], with PADDING after END."""
        projected = self.hidden_projection(params, hidden)

        def step(carry, key):
            previous, ended, state = carry
            log_probs, state = self.spelling_step(params, projected, previous, state)
            letters = END + jax.random.categorical(key, log_probs, axis=-1).astype(jnp.int32)
            return (letters, ended | (letters == END), state), jnp.where(ended, 0, letters)

        count = hidden.shape[0]
        initial_carry = (
            sharded_functions.filled(count, BEGIN, jnp.int32, projected),
            sharded_functions.zeros(count, bool, projected),
            self.spelling_start(projected),
        )
        keys = jax.random.split(key, self.spelling.longest)
        return jax.lax.scan(step, initial_carry, keys)[1].T

    # ------------------------------------------------------------ the contract of heads

    def _open_log_prob(self, params: Params, tables: Tables, hidden: jax.Array, targets: jax.Array):
        """Computes log p of the targets' spellings, normalised over all spellings, [...]."""
        words = targets.ravel()
        log_prob = self.spelled_log_prob(
            params,
            hidden.reshape(-1, hidden.shape[-1]),
            tables["letters"][words],
            tables["lengths"][words],
            rows=math.prod(targets.shape[:1]),
        )
        return log_prob.reshape(targets.shape)

    def _map_open_log_probs(self, function, params: Params, tables: Tables, hidden: jax.Array):
        """Applies a function to log p of every word [V], normalised over all spellings, one
        position after another; a prefix that words share is read once."""
        rows = self.hidden_projection(params, hidden.reshape(-1, hidden.shape[-1]))
        tree = PrefixTree(*(tables[name] for name in PrefixTree._fields))
        results = jax.lax.map(lambda row: function(self._word_log_probs(params, tree, row)), rows)
        return results.reshape(*hidden.shape[:-1], *results.shape[1:])

    def _word_log_probs(self, params: Params, tree, projected):
        """Computes log p of every word, normalised over all spellings, [V], at the position whose
        hidden state's part of the gates is `projected`, [4 size]."""
        inputs = products.matmul(params["letters"], params["input"]) + projected[None]
        outputs, output_bias = params["output"].T, params["output_bias"]

        def extended_log_prob(states, prefixes, letters):
            """Computes log p of some prefixes, given by their ids, each followed by a letter."""
            u, _, log_z, log_prob = (state[prefixes] for state in states)
            letters = jnp.maximum(letters - END, 0)
            scores = products.einsum("nd,nd->n", u, outputs[letters])
            return log_prob + scores + output_bias[letters] - log_z

        def read(states, block):
            start, parents, letters = block
            u, s = states[0][parents], states[1][parents]
            u, s, _ = cell_step(inputs[letters] + products.matmul(u, params["recurrent"]), s)
            logits = products.affine(u, params["output"], output_bias)
            log_z = jax.nn.logsumexp(logits, axis=-1)
            # The empty prefix is not predicted but given.
            log_prob = jnp.where(parents == 0, 0, extended_log_prob(states, parents, letters))
            block_states = u, s, log_z, log_prob
            states = tuple(
                jax.lax.dynamic_update_slice_in_dim(state, part, start, axis=0)
                for state, part in zip(states, block_states, strict=True)
            )
            return states, None

        blocks, block = tree.parent.shape
        count = (blocks + 1) * block
        zeros = sharded_functions.zeros((count, self.size), projected.dtype, projected)
        states = (zeros, zeros, zeros[:, 0], zeros[:, 0])
        starts = block * (1 + jnp.arange(blocks))
        states, _ = jax.lax.scan(read, states, (starts, tree.parent, tree.letter))
        return extended_log_prob(states, tree.node, tree.final)

    def _loss(self, params, tables, hidden, targets, key, context):
        # Over all spellings, renormalised or not.
        return -self._open_log_prob(params, tables, hidden, targets)

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        projected = self.hidden_projection(params, hidden.reshape(-1, hidden.shape[-1]))
        words = targets.ravel()
        return -sum_by_length(
            self._spelling_log_prob,
            self._with_alphabet(params),
            tables["letters"][words],
            tables["lengths"][words],
            (projected,),
            weights=token_weights.ravel(),
            rows=math.prod(targets.shape[:1]),
        )

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        # Renormalised, log Z is the logarithm of the mass of the lexicon's words among all
        # spellings, so that the sum of both is log p over all spellings; otherwise it is 0.
        log_prob = self._open_log_prob(params, tables, hidden, targets)
        if not self.renormalised:
            return log_prob, jnp.zeros_like(log_prob)
        log_mass = self._map_open_log_probs(jax.nn.logsumexp, params, tables, hidden)
        return log_prob - log_mass, log_mass

    def _log_probs(self, params, tables, hidden, context, prepared):
        function = jax.nn.log_softmax if self.renormalised else jnp.asarray
        return self._map_open_log_probs(function, params, tables, hidden)
