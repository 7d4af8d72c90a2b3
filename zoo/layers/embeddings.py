"""The contract of embeddings, which compute vectors of words."""

import dataclasses
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from zoo.base.arrays import row_lookup, sharded_functions
from zoo.base.arrays.parameter_sharding import FEATURES, HIDDEN, WORDS, Axes, axes, partition_specs
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.types import Params, Tables
from zoo.base.component_registry import Component
from zoo.errors import UserError, check_least
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon, feature_signatures
from zoo.losses import value_checks


class Embedding(Component):
    """The contract of embeddings. Subclasses are frozen dataclasses; methods are pure functions.

    Every embedding writes `init` and `apply`.

    Arguments of methods:
      key: random key.
      lexicon: the words; of `for_lexicon`, the words of training; `new_lexicon` has the new ones.
      params: the parameters of `init`.
      tables: the arrays of `tables`.
      words: int32 [...].
    """

    # As Head.kinds and Head.ordered_by_frequency.
    kinds: tuple[str, ...] | None = None
    ordered_by_frequency: bool = False

    if TYPE_CHECKING:  # a field of most, without a value here

        @property
        def size(self) -> int: ...

    @property
    def row_tables(self) -> tuple[str, ...]:
        """Names of the parameters that `apply` reads by rows alone: see Head.row_tables."""
        return ()

    @property
    def parameter_axes(self) -> Axes:
        """Axis names of the parameters, if any; see `zoo.base.arrays.parameter_sharding`."""
        return {}

    def partition(self, lexicon: Lexicon) -> Params:
        """Returns the axis names of the parameters, a tree like `init`'s; see Head.partition."""
        shapes = jax.eval_shape(lambda: self.init(jax.random.key(0), lexicon))
        return partition_specs(shapes, self.parameter_axes)

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """Initialises the parameters."""
        raise self._unwritten("init")

    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        """Computes the vectors of words, [..., E]."""
        raise self._unwritten("apply")

    def vectors(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        """Computes the vectors as `apply`; a UserError if they are not of `size` numbers."""
        vectors = self.apply(params, tables, words)
        if vectors.shape != (*words.shape, self.size):
            raise UserError(
                f"{type(self).__name__}.apply returns vectors of the shape {vectors.shape}: return "
                f"{(*words.shape, self.size)}, the last being its size"
            )
        return vectors

    def tables(self, lexicon: Lexicon) -> Tables:
        """Makes the arrays of the words that the embedding needs; {} by default."""
        return {}

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Returns the parameters for another lexicon than the one of training.

        Raises:
          UserError: the embedding cannot take another lexicon, which is the default.
        """
        raise UserError(
            f"{type(self).__name__} embeddings cannot take a lexicon other than the one of "
            "training: use CharCNN, Features, Lookup, or a Concat of these."
        )

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts the words of which the embedding loses something; see Head.warnings."""
        return {}


# -------------------------------------------------------- one trained vector for each word


@dataclasses.dataclass(frozen=True)
class Lookup(Embedding):
    """e(x) = table[x].

    Attributes:
      size: E.
      initial_scale: the table is initialised uniformly in +-initial_scale.

    Example:
      >>> embedding = embeddings.Lookup(size=4)
      >>> params, tables = embedding.init(key, lexicon), embedding.tables(lexicon)
      >>> embedding.apply(params, tables, words).shape
      (2, 2, 4)
    """

    size: int = 256
    initial_scale: float = 0.05

    row_tables = ("table",)
    parameter_axes = axes(table=(WORDS, HIDDEN))

    def __post_init__(self):
        check_least(self, size=1)

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """Initialises {"table": [V, E]}."""
        return {"table": uniform(key, (len(lexicon), self.size), self.initial_scale)}

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Returns the vectors of the words of another lexicon; new words get the unknown word's.

        Raises:
          UserError: words are new, and `lexicon` has no unknown word.
        """
        unknown = None if lexicon.unknown is None else lexicon.ids.get(lexicon.unknown)
        ids = [lexicon.ids.get(word, unknown) for word in new_lexicon.words]
        if None in ids:
            raise UserError(
                f"the word {new_lexicon.words[ids.index(None)]!r} is not in the lexicon of "
                "training, which has no unknown word: train with vocabulary.unknown counted or "
                "skipped, or with embeddings of letters."
            )
        return {"table": params["table"][jnp.asarray(ids)]}

    @sharded_functions.over_tokens("words", axes=0)
    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        value_checks.check_ids(params["table"].shape[0], words=words)
        return row_lookup.take(params["table"], words)


# ------------------------------ word vectors as sums of the vectors of the word's features
# Dymetman and Xiao, "Log-linear RNNs" (2016), section 5.3: the input of the network is the feature
# representation of the output, followed by a linear layer.


@dataclasses.dataclass(frozen=True)
class Features(Embedding):
    """e(x) = sum_f phi_f(x) table[f].

    Attributes:
      size: E.
      initial_scale: the table is initialised uniformly in +-initial_scale.
      kinds: the features taken, by the part of their names before the colon ("Word", "POS"); all if
        empty. So input and head may have different features.

    Example:
      >>> known = with_features(lexicon, [{"POS:DET": 1}, {"POS:NOUN": 1}, {"POS:VERB": 1}])
      >>> embedding = embeddings.Features(size=4)
      >>> params, tables = embedding.init(key, known), embedding.tables(known)
      >>> params["table"].shape, embedding.apply(params, tables, words).shape
      ((3, 4), (2, 2, 4))
    """

    size: int = 256
    initial_scale: float = 0.05
    kinds: tuple[str, ...] = ()

    parameter_axes = axes(table=(FEATURES, HIDDEN))

    def __post_init__(self):
        check_least(self, size=1)

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Returns the parameters of the same features; UserError if the lexicons' differ."""
        lexicon.check_same_features(new_lexicon)
        return params

    def tables(self, lexicon: Lexicon) -> Tables:
        return lexicon.with_kinds(self.kinds).tables()

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """Initialises {"table": [F, E]}."""
        if not lexicon.feature_names:
            raise UserError(
                "embeddings.Features needs words with features, and this lexicon has none: "
                "give the config's vocabulary some, or use embeddings.Lookup."
            )
        count = len(lexicon.with_kinds(self.kinds).feature_names)
        return {"table": uniform(key, (count, self.size), self.initial_scale)}

    @sharded_functions.over_tokens("words", axes=0)
    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        return feature_signatures.sum_features_of(tables, params["table"], words)


# ---------------------------------------------- concatenation of several vectors of a word
# Concat((Lookup(128), CharCNN(128))), a vector of the word and a vector of its letters, is the
# "CWE" of Labeau and Allauzen (2017), section 2.2.


@dataclasses.dataclass(frozen=True)
class Concat(Embedding):
    """e(x) = e_1(x) : e_2(x) : ..., with : for concatenation.

    Attributes:
      parts: the embeddings.

    Example:
      >>> embedding = embeddings.Concat((embeddings.Lookup(size=4), embeddings.CharCNN(size=3)))
      >>> params, tables = embedding.init(key, lexicon), embedding.tables(lexicon)
      >>> embedding.size, embedding.apply(params, tables, words).shape
      (7, (2, 2, 7))
    """

    parts: tuple[Embedding, ...]

    def __post_init__(self):
        if not self.parts:
            raise UserError("parts of Concat is empty: give at least one embedding.")

    @property
    def size(self) -> int:
        """E, the sum of the parts' sizes."""
        return sum(part.size for part in self.parts)

    @property
    def row_tables(self) -> tuple[str, ...]:
        parts = enumerate(self.parts)
        return tuple(f"{number}/{name}" for number, part in parts for name in part.row_tables)

    @property
    def parameter_axes(self) -> Axes:
        axes = [part.parameter_axes.items() for part in self.parts]
        return {f"{number}/{name}": n for number, part in enumerate(axes) for name, n in part}

    def tables(self, lexicon: Lexicon) -> Any:
        return tuple(part.tables(lexicon) for part in self.parts)

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Returns the warnings of the parts, with the part's number if several parts have some."""
        warnings = [(number, part.warnings(lexicon)) for number, part in enumerate(self.parts)]
        warnings = [(number, notes) for number, notes in warnings if notes]
        if len(warnings) == 1:
            return warnings[0][1]
        return {
            f"{name}, part {number}": n for number, notes in warnings for name, n in notes.items()
        }

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        return {
            str(number): part.for_lexicon(params[str(number)], lexicon, new_lexicon)
            for number, part in enumerate(self.parts)
        }

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """Initialises {"0": parameters of the first part, ...}."""
        parts = zip(self.parts, jax.random.split(key, len(self.parts)), strict=True)
        return {str(number): part.init(k, lexicon) for number, (part, k) in enumerate(parts)}

    @sharded_functions.over_tokens("words", axes=0)
    def apply(self, params: Params, tables: Any, words: jax.Array) -> jax.Array:
        vectors = [
            part.apply(params[str(number)], tables[number], words)
            for number, part in enumerate(self.parts)
        ]
        return jnp.concatenate(vectors, axis=-1)


# ------------ word vectors from letters, by a convolution: see zoo.layers.char_convolution


@dataclasses.dataclass(frozen=True)
class CharCNN(Embedding):
    """e(x) = the convolution over the spelling of x, computed once for each distinct word.

    The default is Labeau and Allauzen (2017), section 2.1. For Kim et al. (2016), table 2, small:
    Convolution(letter_size=15, widths=(1, 2, 3, 4, 5, 6), filters=(25, 50, 75, 100, 125, 150),
    pooling="max", activation="tanh", highway=1).

    Attributes:
      size: E.
      network: the convolution.

    Example:
      >>> embedding = embeddings.CharCNN(size=4)
      >>> params, tables = embedding.init(key, lexicon), embedding.tables(lexicon)
      >>> embedding.apply(params, tables, words).shape
      (2, 2, 4)
    """

    size: int = 128
    network: Convolution = Convolution()

    def __post_init__(self):
        check_least(self, size=1)

    def tables(self, lexicon: Lexicon) -> Tables:
        return self.network.tables(lexicon)

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        return self.network.spelling.warnings(lexicon, "embedding")

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Returns the parameters of the same letters; UserError if the alphabets differ."""
        self.network.spelling.check_same_letters(lexicon, new_lexicon)
        return params

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        return self.network.init(key, self.size, lexicon)

    @sharded_functions.over_tokens("words", axes=0)
    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        return self.network.distinct_vectors(params, tables, words)
